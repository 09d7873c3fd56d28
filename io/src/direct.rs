//! Large payloads straight to the device, past the page cache.
//!
//! The page cache costs more than the write itself: pages are found, filled, written out, and
//! thrown away again when the version is removed, all on cores that solvers could use. A version is
//! rarely read soon. So whole pages of large payloads bypass the cache, from memory that is aligned
//! as devices require. The rest (ends of less than a page, file systems without direct writes) goes
//! through the cache. Either way, bytes are durable only after a sync. Must not know what the bytes
//! mean.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::reuse;

/// The unit of offset, length and address: no less than any device's block.
pub(crate) const PAGE: usize = 4096;
/// The fewest bytes that are worth a direct write.
pub(crate) const BYTES_MIN: usize = 1 << 20;
/// Bytes of one write, at most.
const PIECE_BYTES: usize = 8 << 20;

thread_local! {
    /// Aligned room for one piece, used again by all files this thread writes.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// All of a file that has one payload.
#[derive(Clone, Copy)]
pub(crate) struct WholeFile<'a> {
    /// The bytes before the payload.
    pub(crate) head: &'a [u8],
    pub(crate) payload: &'a [u8],
    /// The bytes after it.
    pub(crate) tail: &'a [u8],
}

impl WholeFile<'_> {
    /// Bytes of the file where it ends with a page.
    pub(crate) fn padded_bytes(&self) -> u64 {
        (self.head.len() + self.payload.len() + self.tail.len()).next_multiple_of(PAGE) as u64
    }

    /// Bytes of the payload that go with the head, on pages that are not the payload's alone.
    fn lead(&self) -> usize {
        self.head.len().next_multiple_of(PAGE) - self.head.len()
    }

    /// Returns whether a direct write pays, and the payload's pages can go from where they are.
    fn fits(&self) -> bool {
        let is_aligned = self.payload.as_ptr().addr() % PAGE == self.head.len() % PAGE;
        self.payload.len() >= BYTES_MIN && is_aligned
    }
}

/// A file that is written both ways.
pub(crate) struct DirectFile {
    file: File,
    /// The file system has no way past the page cache.
    is_refused: bool,
    /// The file holds the bytes of a retired version.
    is_reused: bool,
}

impl DirectFile {
    /// A new file, or one that is left of another version.
    pub(crate) fn new(file: File, is_reused: bool) -> Self {
        Self { file, is_refused: false, is_reused }
    }

    /// Empties a reused file that is not written whole, so that zeros lie between its parts.
    fn start_over(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_reused) { self.file.set_len(0) } else { Ok(()) }
    }

    /// Writes all bytes at `offset` of the file.
    pub(crate) fn write_all_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.start_over()?;
        let lead = ((offset.next_multiple_of(PAGE as u64) - offset) as usize).min(bytes.len());
        let body = (bytes.len() - lead) / PAGE * PAGE;
        if body < BYTES_MIN {
            return self.file.write_all_at(bytes, offset);
        }
        self.file.write_all_at(&bytes[..lead], offset)?;
        let pages = &bytes[lead..lead + body];
        let at = offset + lead as u64;
        let written =
            lead + self.past_cache(|file| ROOM.with_borrow_mut(|room| write_pieces(file, room, pages, at)))?;
        if written < lead + body {
            self.is_refused = true;
        }
        self.file.write_all_at(&bytes[written..], offset + written as u64)
    }

    /// Writes all of the file at once past the page cache, with zeros behind it to the end of a
    /// page. Says `false` where that cannot be; the file is then empty.
    pub(crate) fn write_whole(&mut self, whole: &WholeFile<'_>) -> io::Result<bool> {
        if !whole.fits() || self.is_refused {
            return Ok(false);
        }
        let written = self.past_cache(|file| ROOM.with_borrow_mut(|room| write_at_once(file, room, whole)))?;
        let is_reused = std::mem::take(&mut self.is_reused);
        if written == whole.padded_bytes() as usize {
            return if is_reused { reuse::cut(&self.file, whole.padded_bytes()) } else { Ok(()) }.map(|()| true);
        }
        self.is_refused = true;
        self.file.set_len(0).map(|()| false)
    }

    /// Makes the file's bytes durable, and what is needed to read them, whichever way they went.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Runs `write` past the page cache, and returns the bytes written; 0 where that is impossible.
    fn past_cache(&mut self, write: impl FnOnce(&File) -> io::Result<usize>) -> io::Result<usize> {
        if self.is_refused || !switch(&self.file, true)? {
            return Ok(0);
        }
        let written = write(&self.file);
        switch(&self.file, false)?;
        written
    }
}

/// Switches the file's writes past the page cache on or off. Returns whether the file system can do
/// that.
#[cfg(target_os = "linux")]
fn switch(file: &File, is_direct: bool) -> io::Result<bool> {
    use rustix::fs::{OFlags, fcntl_setfl};
    let flags = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
    match fcntl_setfl(file, flags).map_err(io::Error::from) {
        Ok(()) => Ok(true),
        Err(error) if is_refusal(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn switch(_: &File, _: bool) -> io::Result<bool> {
    Ok(false)
}

/// File systems say in several ways that they do not do this.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Writes until the file system refuses or has written less than it was given; how many bytes are
/// written.
fn write_pieces(file: &File, room: &mut Vec<u8>, bytes: &[u8], offset: u64) -> io::Result<usize> {
    let mut written = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        match file.write_at(aligned(room, piece), offset + written as u64) {
            Ok(n) if n == piece.len() => written += n,
            // An end that is not at a page is for the usual way, too.
            Ok(n) => return Ok(written + n),
            Err(error) if is_refusal(&error) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(written)
}

/// One write of the pages before the payload's own, of these from where they are, and of the pages
/// behind; how many bytes are written.
fn write_at_once(file: &File, room: &mut Vec<u8>, whole: &WholeFile<'_>) -> io::Result<usize> {
    let WholeFile { head, payload, tail } = *whole;
    let (first, rest) = payload.split_at(whole.lead());
    let (pages, last) = rest.split_at(rest.len() / PAGE * PAGE);
    let front_bytes = head.len() + first.len();
    let back_bytes = (last.len() + tail.len()).next_multiple_of(PAGE);
    let (front, back) = pages_of(room, front_bytes + back_bytes).split_at_mut(front_bytes);
    join(front, &[head, first]);
    join(back, &[last, tail]);
    let parts = [&*front, pages, &*back].map(io::IoSlice::new);
    match write_parts(file, &parts) {
        Err(error) if is_refusal(&error) => Ok(0),
        written => written,
    }
}

#[cfg(target_os = "linux")]
fn write_parts(file: &File, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
    Ok(rustix::io::pwritev(file, parts, 0)?)
}

#[cfg(not(target_os = "linux"))]
fn write_parts(_: &File, _: &[io::IoSlice<'_>]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fills `target` with the parts, and with zeros behind them.
fn join(target: &mut [u8], parts: &[&[u8]]) {
    let mut at = 0;
    for part in parts {
        target[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    target[at..].fill(0);
}

/// The bytes where they are, or a copy of them that begins at a page.
fn aligned<'a>(room: &'a mut Vec<u8>, bytes: &'a [u8]) -> &'a [u8] {
    if bytes.as_ptr().addr().is_multiple_of(PAGE) {
        return bytes;
    }
    let target = pages_of(room, bytes.len());
    target.copy_from_slice(bytes);
    target
}

/// Returns `bytes` bytes of the room, from the beginning of a page.
fn pages_of(room: &mut Vec<u8>, bytes: usize) -> &mut [u8] {
    let needed = bytes + PAGE;
    if room.len() < needed {
        room.clear();
        room.resize(needed, 0);
    }
    let start = room.as_ptr().addr().next_multiple_of(PAGE) - room.as_ptr().addr();
    &mut room[start..start + bytes]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a file in which the payload stands at the place of a page that it has in memory.
    fn head(payload: &[u8]) -> Vec<u8> {
        vec![1; 48 + payload.as_ptr().addr().wrapping_sub(48) % PAGE]
    }

    /// Writes of all sizes and places, on a disk and in memory, one after another into the same
    /// file as versions are made.
    #[test]
    fn bytes_are_those_of_plain_writes() {
        let values: Vec<u8> = (0..PIECE_BYTES + 3 * PAGE + 5).map(|i| ((i * i) >> 3) as u8).collect();
        let lengths = [1, PAGE, BYTES_MIN - 1, BYTES_MIN + PAGE - 1, BYTES_MIN + 2 * PAGE, values.len()];
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let paths = ["plain", "both"].map(|name| dir.path().join(name));
            let plain = File::create_new(&paths[0]).unwrap();
            let mut both = DirectFile::new(File::create_new(&paths[1]).unwrap(), false);
            let mut offset = 48;
            for (from, length) in lengths.into_iter().enumerate() {
                let bytes = &values[from.min(values.len() - length)..][..length];
                plain.write_all_at(bytes, offset).unwrap();
                both.write_all_at(bytes, offset).unwrap();
                offset += length as u64;
            }
            plain.write_all_at(b"front", 0).unwrap();
            both.write_all_at(b"front", 0).unwrap();
            both.sync().unwrap();
            assert!(std::fs::read(&paths[0]).unwrap() == std::fs::read(&paths[1]).unwrap(), "{}", dir.path().display());
        }
    }

    /// Payloads at all places of a page, and ends at all of them.
    #[test]
    fn a_file_written_at_once_is_its_parts_and_zeros() {
        let values: Vec<u8> = (0..BYTES_MIN + 4 * PAGE).map(|i| ((i * i) >> 3) as u8).collect();
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            for (number, start) in [0, 8, 2048, PAGE - 8].into_iter().enumerate() {
                let payload = &values[start..start + BYTES_MIN + 3 * PAGE - 100 * number];
                let head = head(payload);
                let tail = vec![2; 900 + number];
                let whole = WholeFile { head: &head, payload, tail: &tail };
                let path = dir.path().join(number.to_string());
                let mut both = DirectFile::new(File::create_new(&path).unwrap(), false);
                let mut expected = [&head, payload, &tail].concat();
                expected.resize(whole.padded_bytes() as usize, 0);
                let is_written = both.write_whole(&whole).unwrap();
                assert!(is_written || std::fs::read(&path).unwrap().is_empty());
                assert!(!is_written || std::fs::read(&path).unwrap() == expected, "{}", path.display());
                both.write_all_at(&[3], 0).unwrap();
            }
        }
    }

    /// Over longer files and shorter ones; what is not written whole has zeros between its parts.
    #[test]
    fn nothing_is_left_of_what_was_in_a_file() {
        let payload = vec![7; BYTES_MIN + PAGE];
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            for bytes in [PAGE, 3 * BYTES_MIN] {
                let path = dir.path().join(bytes.to_string());
                let left = || {
                    std::fs::write(&path, vec![9; bytes]).unwrap();
                    DirectFile::new(File::options().read(true).write(true).open(&path).unwrap(), true)
                };
                let head = head(&payload);
                let whole = WholeFile { head: &head, payload: &payload, tail: &[2; 100] };
                let mut expected = [&head[..], &payload, &[2; 100]].concat();
                expected.resize(whole.padded_bytes() as usize, 0);
                let found = if left().write_whole(&whole).unwrap() { expected } else { Vec::new() };
                assert!(std::fs::read(&path).unwrap() == found, "{}", path.display());
                left().write_all_at(b"tail", 10).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), b"\0\0\0\0\0\0\0\0\0\0tail");
            }
        }
    }

    #[test]
    fn what_does_not_begin_where_its_memory_does_is_not_written_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let payload = vec![7; BYTES_MIN];
        let mut both = DirectFile::new(File::create_new(dir.path().join("file")).unwrap(), false);
        let head = [&[1], &*head(&payload)].concat();
        assert!(!both.write_whole(&WholeFile { head: &head, payload: &payload, tail: &[] }).unwrap());
    }

    #[test]
    fn only_bytes_that_begin_elsewhere_are_copied() {
        let memory = vec![7; 3 * PAGE];
        let start = memory.as_ptr().addr().next_multiple_of(PAGE) - memory.as_ptr().addr();
        let mut room = Vec::new();
        let there = &memory[start..start + PAGE];
        assert_eq!(aligned(&mut room, there).as_ptr(), there.as_ptr());
        let moved = aligned(&mut room, &memory[start + 8..start + 8 + PAGE]);
        assert!(moved.as_ptr().addr().is_multiple_of(PAGE) && moved == there);
    }
}
