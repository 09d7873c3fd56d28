//! A part of a version as a file: its bytes, then a trailer that confirms them.
//!
//! Promises: a part is read as it was written or is refused, since the trailer has its length and
//! checksum and comes last. Where a part is written over an old one in memory, and is large, its
//! bytes are stored through a map that is kept from version to version: a call of the system takes
//! twice the time of a copy, and a new map that of three. Must not choose where files are, nor how
//! they are called: it is told both.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::StoreError;
use recoup_io::PrivateDir;

use crate::sys::PartMap;

const MAGIC: [u8; 4] = *b"rcpt";
/// Bytes of a trailer.
pub(crate) const TRAILER_BYTES: usize = 16;
/// Smaller files are not mapped: calls of the system are as fast.
const MAPPED_BYTES_MIN: usize = 1 << 20;
/// Maps that are kept, and their files held open: those of three versions, one of them the retired
/// one, and of their copies from a few ranks.
const MAPS_MAX: usize = 16;

/// The maps of files that may be written over.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartMaps(Arc<Mutex<Vec<PartMap>>>);

impl PartMaps {
    fn lock(&self) -> MutexGuard<'_, Vec<PartMap>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the map of a file, if there is one.
    fn take(&self, file: &File) -> Option<PartMap> {
        let mut maps = self.lock();
        let at = maps.iter().position(|map| map.is_of(file).unwrap_or(false))?;
        Some(maps.swap_remove(at))
    }

    /// Takes the map of a file, or makes one of the `bytes` bytes that it has.
    fn take_or_make(&self, file: &File, bytes: usize) -> Option<PartMap> {
        let kept = self.take(file).filter(|map| map.bytes() >= bytes);
        // Without a map the system writes, which is slower.
        let make = || if bytes < MAPPED_BYTES_MIN { None } else { PartMap::new(file, bytes).ok().flatten() };
        kept.or_else(make)
    }

    fn keep(&self, map: PartMap) {
        let mut maps = self.lock();
        if maps.len() < MAPS_MAX {
            maps.push(map);
        }
    }

    /// Gives back the memory of files that were removed.
    pub(crate) fn forget_removed(&self) {
        self.lock().retain(|map| !map.is_removed());
    }
}

/// A part that a new one takes the place of, once that is whole.
pub(crate) struct Replaced {
    pub(crate) place: PrivateDir,
    /// The name of the new one until then.
    pub(crate) written: String,
    pub(crate) name: String,
}

/// A part being written. Dropped unfinished, it is damaged; one that it was to replace is not.
pub(crate) struct PartFile {
    file: File,
    path: PathBuf,
    replaces: Option<Replaced>,
    bytes: usize,
    crc32c: u32,
    map: Option<PartMap>,
    /// Bytes at the beginning of the file that are stored to through the map.
    mapped_bytes: usize,
    /// The place of bytes that come before they are written.
    room: Vec<u8>,
    maps: PartMaps,
}

impl PartFile {
    /// Begins a part in a file, over `held` bytes that it has.
    pub(crate) fn over(file: File, path: PathBuf, held: usize, replaces: Option<Replaced>, maps: &PartMaps) -> Self {
        let map = maps.take_or_make(&file, held);
        let mapped_bytes = if map.is_some() { held } else { 0 };
        Self { file, path, replaces, bytes: 0, crc32c: 0, map, mapped_bytes, room: Vec::new(), maps: maps.clone() }
    }

    /// Returns the bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.bytes as u64
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        self.store(bytes)
    }

    /// Appends bytes whose checksum is known: it is not taken again.
    pub(crate) fn append_summed(&mut self, bytes: &[u8], crc32c: u32) -> Result<(), StoreError> {
        self.crc32c = crc32c::crc32c_combine(self.crc32c, crc32c, bytes.len());
        self.store(bytes)
    }

    fn store(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        let (mapped, rest) = bytes.split_at(self.mapped_bytes.saturating_sub(self.bytes).min(bytes.len()));
        let written = self.bytes + mapped.len();
        if let Some(map) = &mut self.map {
            map.part_mut(self.bytes..written).copy_from_slice(mapped);
        }
        let done = if rest.is_empty() { Ok(()) } else { self.file.write_all_at(rest, written as u64) };
        done.map_err(|e| StoreError::of_io("write", &self.path, e))?;
        self.bytes += bytes.len();
        Ok(())
    }

    /// Lends room for the next bytes, where they stay if it is mapped; see [`PartFile::fill`].
    pub(crate) fn room(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.bytes + bytes;
        match &mut self.map {
            Some(map) if end <= self.mapped_bytes => map.part_mut(self.bytes..end),
            _ => {
                self.room.resize(bytes, 0);
                &mut self.room
            }
        }
    }

    /// Appends the first `len` bytes of the room for `bytes` that was lent last.
    pub(crate) fn fill(&mut self, bytes: usize, len: usize) -> Result<(), StoreError> {
        if self.bytes + bytes > self.mapped_bytes {
            let room = std::mem::take(&mut self.room);
            let appended = self.append(&room[..len]);
            self.room = room;
            return appended;
        }
        let stored = self.bytes..self.bytes + len;
        let bytes = self.map.as_ref().map_or(&[][..], |map| map.part(stored));
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        self.bytes += len;
        Ok(())
    }

    /// Returns the trailer of the bytes so far.
    pub(crate) fn trailer(&self) -> [u8; TRAILER_BYTES] {
        trailer_of(self.bytes as u64, self.crc32c)
    }

    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let written = self.file.write_all_at(&self.trailer(), self.len());
        // The file of a retired version may have been longer.
        let cut = written.and_then(|()| self.file.set_len(self.len() + TRAILER_BYTES as u64));
        self.map.into_iter().for_each(|map| self.maps.keep(map));
        cut.map_err(|e| StoreError::of_io("write", &self.path, e))?;
        let Some(Replaced { place, written, name }) = self.replaces else { return Ok(()) };
        place.move_to(&written, &place, &name).map(drop)
    }
}

/// A part that is read in pieces, unverified: who has them all compares them with the trailer.
pub(crate) struct PartReader {
    file: File,
    name: String,
    /// Bytes that were read.
    at: usize,
    bytes: usize,
    crc32c: u32,
    map: Option<PartMap>,
    maps: PartMaps,
}

impl PartReader {
    /// Opens a part that has a trailer.
    pub(crate) fn new(file: File, name: String, maps: &PartMaps) -> Result<Self, String> {
        let (bytes, crc32c) = trailer(&file).map_err(|what| format!("{name}: {what}"))?;
        let bytes = usize::try_from(bytes).map_err(|e| format!("{name}: {e}"))?;
        let map = maps.take(&file);
        Ok(Self { file, name, at: 0, bytes, crc32c, map, maps: maps.clone() })
    }

    /// Reads the next bytes, up to `bytes` of them; fewer are the last ones. They may be lent from
    /// `room`.
    ///
    /// # Errors
    /// In words, where the file cannot be read.
    pub(crate) fn next<'a>(&'a mut self, bytes: usize, room: &'a mut Vec<u8>) -> Result<&'a [u8], String> {
        let range = self.at..self.bytes.min(self.at + bytes);
        self.at = range.end;
        if let Some(map) = self.map.as_ref().filter(|map| range.end <= map.bytes()) {
            return Ok(map.part(range));
        }
        room.resize(range.len(), 0);
        self.file.read_exact_at(room, range.start as u64).map_err(|e| format!("{}: {e}", self.name))?;
        Ok(room)
    }

    /// Returns the trailer.
    pub(crate) fn trailer(&self) -> [u8; TRAILER_BYTES] {
        trailer_of(self.bytes as u64, self.crc32c)
    }
}

impl Drop for PartReader {
    fn drop(&mut self) {
        self.map.take().into_iter().for_each(|map| self.maps.keep(map));
    }
}

/// Reads the bytes before the trailer, if that confirms them.
pub(crate) fn read_whole(file: &File) -> Result<Vec<u8>, String> {
    let failed = |e: io::Error| e.to_string();
    let (cut, crc32c) = trailer(file)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(cut as usize).map_err(|_| format!("no memory for {cut} bytes"))?;
    file.take(cut).read_to_end(&mut bytes).map_err(failed)?;
    let is_whole = (bytes.len() as u64, crc32c::crc32c(&bytes)) == (cut, crc32c);
    if is_whole { Ok(bytes) } else { Err("not as it was written".to_owned()) }
}

/// Reads the trailer: the length of the bytes before it and their checksum. A file of another
/// length is refused, however long it is.
fn trailer(file: &File) -> Result<(u64, u32), String> {
    let failed = |e: io::Error| e.to_string();
    let held = file.metadata().map_err(failed)?.len();
    let cut = held.checked_sub(TRAILER_BYTES as u64).ok_or("cut short")?;
    let mut found = [0; TRAILER_BYTES];
    file.read_exact_at(&mut found, cut).map_err(failed)?;
    let [.., c0, c1, c2, c3] = *found.first_chunk::<8>().unwrap_or(&[0; 8]);
    let crc32c = u32::from_le_bytes([c0, c1, c2, c3]);
    if found == trailer_of(cut, crc32c) {
        Ok((cut, crc32c))
    } else {
        Err(format!("not as it was written: {held} bytes found"))
    }
}

pub(crate) fn trailer_of(bytes: u64, crc32c: u32) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[..4].copy_from_slice(&MAGIC);
    trailer[4..8].copy_from_slice(&crc32c.to_le_bytes());
    trailer[8..].copy_from_slice(&bytes.to_le_bytes());
    trailer
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::node::Node;
    use crate::shelf::{Shelf, ShelfPart};

    const PART: ShelfPart = ShelfPart::Payloads(0);
    const PIECE: usize = MAPPED_BYTES_MIN;

    fn in_memory() -> TempDir {
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
    }

    /// Bytes in pieces: one that is known, one that comes to a room, one that is summed up.
    fn write(file: &mut PartFile, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len() / 3);
        let (second, third) = rest.split_at(PIECE.min(rest.len()) / 2);
        file.append_summed(first, crc32c::crc32c(first)).unwrap();
        file.room(PIECE)[..second.len()].copy_from_slice(second);
        file.fill(PIECE, second.len()).unwrap();
        file.append(third).unwrap();
    }

    #[test]
    fn parts_over_maps_are_read_as_they_were_written_and_damaged_until_they_are_finished() {
        let dir = in_memory();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 0);
        let maps = shelf.maps();
        let mut mapped = Vec::new();
        // Longer and shorter ones, up to a map's end, beyond it, and without one.
        for (version, len) in
            [3 * PIECE, 3 * PIECE, 3 * PIECE, 4 * PIECE + 7, 2 * PIECE, 5, 3 * PIECE, 3 * PIECE].into_iter().enumerate()
        {
            let version = version as u64;
            let bytes: Vec<u8> = (0..len).map(|i| (i / 4096 + i + version as usize) as u8).collect();
            shelf.clear(version).unwrap();
            let mut file = shelf.start(version, PART).unwrap();
            mapped.push(file.mapped_bytes);
            write(&mut file, &bytes);
            assert!(shelf.get(version, PART).is_err(), "version {version} is not finished");
            file.finish().unwrap();
            assert!(shelf.get(version, PART).unwrap() == bytes, "version {version}");
            let mut reader = shelf.open_part(version, PART).unwrap();
            assert!(reader.next(len, &mut Vec::new()).unwrap() == bytes, "version {version}");
            drop(reader);
            shelf.remove(version).unwrap();
        }
        // Elsewhere than in memory nothing is mapped.
        if !maps.lock().is_empty() {
            let [three, four, two] = [3, 4, 2].map(|pieces| pieces * PIECE);
            assert_eq!(mapped, [0, three, three, three, four + 7, two, 5, three]);
        }
        shelf.remove_all().unwrap();
        assert!(maps.lock().is_empty(), "maps of removed files keep their memory");
    }

    /// A store to memory that is not there, and cannot be had, ends the process by a signal.
    #[test]
    fn a_file_with_holes_is_not_mapped() {
        let dir = in_memory();
        let file = tempfile::tempfile_in(dir.path()).unwrap();
        file.write_all_at(&[1; PIECE], 0).unwrap();
        let is_mapped = PartMap::new(&file, PIECE).unwrap().is_some();
        file.set_len(3 * PIECE as u64).unwrap();
        assert!(PartMap::new(&file, 3 * PIECE).unwrap().is_none());
        assert_eq!(PartMap::new(&file, PIECE).unwrap().is_some(), is_mapped);
    }
}
