//! Large payloads straight to the device, past the page cache.
//!
//! The page cache costs a write more than the write: pages are found, filled, written out, and thrown away again when the
//! version goes, all on cores that solvers could use. Nobody reads a version soon, so whole pages of large payloads leave
//! it aside, from memory that is aligned as devices ask for. What cannot go that way (ends of less than a page, file
//! systems without it) goes the usual one. Durable it is after a sync only, either way. Must not know what the bytes mean.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What offset, length and address must be multiples of: no less than any device's block.
const PAGE: usize = 4096;
/// Bytes that are worth it, at least.
const BYTES_MIN: usize = 1 << 20;
/// Bytes of one write, at most.
const PIECE_BYTES: usize = 8 << 20;

/// Bytes to leave out behind `end` so that the payload stands in the file at the same place of a page as it does in memory: its whole
/// pages then go to the device from where they are, without a copy.
pub(crate) fn gap(payload: &[u8], end: u64) -> u64 {
    if payload.len() < BYTES_MIN {
        return 0;
    }
    (payload.as_ptr().addr() as u64).wrapping_sub(end) % PAGE as u64
}

thread_local! {
    /// Aligned room for one piece, used again by all files this thread writes.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A file under its usual handle, and under one past the page cache once that is wanted.
pub(crate) struct Both {
    usual: File,
    direct: Direct,
}

enum Direct {
    Unopened,
    Open(File),
    /// The file system has no such thing.
    Refused,
}

impl Both {
    pub(crate) fn new(usual: File) -> Self {
        Self { usual, direct: Direct::Unopened }
    }

    /// Puts all bytes at `offset` of the file, which is at `path`.
    pub(crate) fn write_all_at(&mut self, path: &Path, bytes: &[u8], offset: u64) -> io::Result<()> {
        let lead = ((offset.next_multiple_of(PAGE as u64) - offset) as usize).min(bytes.len());
        let body = (bytes.len() - lead) / PAGE * PAGE;
        if body < BYTES_MIN {
            return self.usual.write_all_at(bytes, offset);
        }
        self.usual.write_all_at(&bytes[..lead], offset)?;
        let written = lead + self.write_pages(path, &bytes[lead..lead + body], offset + lead as u64)?;
        self.usual.write_all_at(&bytes[written..], offset + written as u64)
    }

    /// Makes the file's bytes durable, whichever way they went.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        self.usual.sync_all()
    }

    /// Writes whole pages past the page cache; how many bytes of them went, the rest being for the usual way.
    fn write_pages(&mut self, path: &Path, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if matches!(self.direct, Direct::Unopened) {
            self.direct = open(path)?;
        }
        let Direct::Open(file) = &self.direct else { return Ok(0) };
        let written = ROOM.with_borrow_mut(|room| write_pieces(file, room, bytes, offset))?;
        if written < bytes.len() {
            self.direct = Direct::Refused;
        }
        Ok(written)
    }
}

#[cfg(target_os = "linux")]
fn open(path: &Path) -> io::Result<Direct> {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    match File::options().write(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Direct::Open(file)),
        Err(error) if is_refusal(&error) => Ok(Direct::Refused),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn open(_: &Path) -> io::Result<Direct> {
    Ok(Direct::Refused)
}

/// File systems say in several ways that they do not do this.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

/// Writes until the file system refuses or has written less than it was given; how many bytes are written.
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

/// The bytes where they are, or a copy of them that begins at a page.
fn aligned<'a>(room: &'a mut Vec<u8>, bytes: &'a [u8]) -> &'a [u8] {
    if bytes.as_ptr().addr().is_multiple_of(PAGE) {
        return bytes;
    }
    let needed = bytes.len() + PAGE;
    if room.len() < needed {
        room.clear();
        room.resize(needed, 0);
    }
    let start = room.as_ptr().addr().next_multiple_of(PAGE) - room.as_ptr().addr();
    let target = &mut room[start..start + bytes.len()];
    target.copy_from_slice(bytes);
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes of all sizes and places, on a disk and in memory, one after another into the same file as versions are made.
    #[test]
    fn bytes_are_those_of_plain_writes() {
        let values: Vec<u8> = (0..PIECE_BYTES + 3 * PAGE + 5).map(|i| ((i * i) >> 3) as u8).collect();
        let lengths = [1, PAGE, BYTES_MIN - 1, BYTES_MIN + PAGE - 1, BYTES_MIN + 2 * PAGE, values.len()];
        for dir in [tempfile::tempdir(), tempfile::tempdir_in("/dev/shm")].into_iter().flatten() {
            let paths = ["plain", "both"].map(|name| dir.path().join(name));
            let plain = File::create_new(&paths[0]).unwrap();
            let mut both = Both::new(File::create_new(&paths[1]).unwrap());
            let mut offset = 48;
            for (from, length) in lengths.into_iter().enumerate() {
                let bytes = &values[from.min(values.len() - length)..][..length];
                plain.write_all_at(bytes, offset).unwrap();
                both.write_all_at(&paths[1], bytes, offset).unwrap();
                offset += length as u64;
            }
            plain.write_all_at(b"front", 0).unwrap();
            both.write_all_at(&paths[1], b"front", 0).unwrap();
            both.sync_all().unwrap();
            assert!(std::fs::read(&paths[0]).unwrap() == std::fs::read(&paths[1]).unwrap(), "{}", dir.path().display());
        }
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
