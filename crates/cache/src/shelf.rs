//! A shelf: the parts of versions one rank keeps, as files in memory that outlive the process.
//!
//! Promises: a part is there as it was written or not at all, since each carries its length and
//! checksum. A version is on the shelf once its commit mark is; without one it is a draft. Nothing
//! is synced: these files live as long as the machine's memory does. Must not know the shelves of
//! other ranks.
//!
//! The version removed last stays as [`RETIRED`] until the next is removed. A part that is started
//! takes the file of its name from there, and writes over it: new pages cost as much as the copy.
//! `part_file.rs` has the bytes of a part.
//!
//! Checksums find accidents, not intent: whoever can write a part can write its checksum. So a file
//! that another user might have written is never read. Every directory from the node's down is a
//! [`PrivateDir`], and its owner, its mode and the way there are checked whenever it is opened, at
//! a restore as at a save. Keyed checksums would add nothing. Their key would lie in a file that
//! only the same checks protect, and they hide nothing and keep nothing from being removed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

use recoup_core::{Manifest, StoreError};
use recoup_io::PrivateDir;

use crate::node::Node;
use crate::part;
use crate::part_file::{PartFile, PartMaps, PartReader, Replaced, TRAILER_BYTES, read_whole};

/// The name of a file of payloads, before the rank. Versions that are in memory now have it.
const PAYLOADS: &str = "blob-";
/// The version removed last, which no longer counts.
const RETIRED: &str = "retired";

/// One file of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShelfPart {
    /// All payloads of a rank, back to back.
    Payloads(usize),
    /// The part of a rank of the manifest.
    Manifest(usize),
    /// Parity rows, for the guard of this number.
    Parity(usize),
    /// Makes the version count; says what guards it.
    Commit,
}

impl ShelfPart {
    pub(crate) fn file(self) -> String {
        match self {
            Self::Payloads(rank) => format!("{PAYLOADS}{rank:06}"),
            Self::Manifest(rank) => format!("manifest-{rank:06}"),
            Self::Parity(guard) => format!("parity-{guard}"),
            Self::Commit => "commit".to_owned(),
        }
    }

    fn of_file(name: &str) -> Option<Self> {
        if let Some(rank) = name.strip_prefix(PAYLOADS) {
            return rank.parse().ok().map(Self::Payloads);
        }
        match name.split_once('-') {
            Some(("manifest", rank)) => rank.parse().ok().map(Self::Manifest),
            Some(("parity", guard)) => guard.parse().ok().map(Self::Parity),
            None if name == "commit" => Some(Self::Commit),
            _ => None,
        }
    }
}

/// The versions of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    node: Node,
    name: String,
    maps: PartMaps,
}

impl Shelf {
    /// Names the shelf of `rank` on a node; the first write makes it.
    pub(crate) fn new(node: &Node, rank: usize) -> Self {
        Self { node: node.clone(), name: format!("rank-{rank:06}"), maps: PartMaps::default() }
    }

    /// Returns the shelves on a node, with their ranks.
    pub(crate) fn on(node: &Node) -> Result<Vec<(usize, Self)>, StoreError> {
        let rank = |name: &String| name.strip_prefix("rank-")?.parse().ok();
        let names = names(node.open()?)?;
        Ok(names.iter().filter_map(rank).map(|rank| (rank, Self::new(node, rank))).collect())
    }

    #[cfg(test)]
    pub(crate) fn maps(&self) -> PartMaps {
        self.maps.clone()
    }

    fn open(&self) -> Result<Option<PrivateDir>, StoreError> {
        self.node.open()?.map_or(Ok(None), |node| node.open_dir(&self.name))
    }

    /// Opens the directory of a version or draft.
    fn open_version(&self, version: u64) -> Result<Option<PrivateDir>, StoreError> {
        self.open()?.map_or(Ok(None), |shelf| shelf.open_dir(&version_name(version)))
    }

    fn require_version(&self, version: u64) -> Result<PrivateDir, StoreError> {
        self.open_version(version)?.ok_or(StoreError::Missing { version })
    }

    /// Returns whether there is a version of this number, or a draft.
    pub(crate) fn has_place(&self, version: u64) -> Result<bool, StoreError> {
        Ok(self.open_version(version)?.is_some())
    }

    /// Makes an empty directory for a draft.
    pub(crate) fn clear(&self, version: u64) -> Result<(), StoreError> {
        self.remove(version)?;
        self.node.make()?.make_dir(&self.name)?.make_dir(&version_name(version)).map(drop)
    }

    /// Starts a part of a version, which is damaged until it is finished.
    pub(crate) fn start(&self, version: u64, part: ShelfPart) -> Result<PartFile, StoreError> {
        let place = self.require_version(version)?;
        let name = part.file();
        // A part that is here stays until it is replaced whole: it may be the only one left.
        let is_here = place.open_file(&name).is_ok();
        let written = if is_here { format!("{name}.new") } else { name.clone() };
        let (file, held) = match self.retired_file(&place, &name, &written) {
            Some(retired) => retired,
            None => (place.create_file(&written)?, 0),
        };
        let path = place.path().join(&written);
        let replaces = is_here.then_some(Replaced { place, written, name });
        Ok(PartFile::over(file, path, held, replaces, &self.maps))
    }

    /// Takes a file of the version removed last, and cuts the end that confirmed it. Best effort:
    /// a part that gets none is made. Returns the file with the bytes it has left.
    fn retired_file(&self, place: &PrivateDir, name: &str, written: &str) -> Option<(File, usize)> {
        let retired = self.open().ok()??.open_dir(RETIRED).ok()??;
        retired.move_to(name, place, written).ok().filter(|is_moved| *is_moved)?;
        let file = place.change_file(written).ok()?;
        let held = file.metadata().ok()?.len().saturating_sub(TRAILER_BYTES as u64);
        file.set_len(held).ok()?;
        Some((file, usize::try_from(held).ok()?))
    }

    /// Writes a whole part.
    pub(crate) fn put(&self, version: u64, part: ShelfPart, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self.start(version, part)?;
        file.append(bytes)?;
        file.finish()
    }

    /// Writes all bytes of a rank, as they travel: its payloads and its part of the manifest.
    pub(crate) fn put_rank(&self, version: u64, rank: usize, bytes: &[u8]) -> Result<(), StoreError> {
        let (payloads, text) = part::split(bytes).map_err(|what| StoreError::Manifest { version, what })?;
        self.put(version, ShelfPart::Payloads(rank), payloads)?;
        self.put(version, ShelfPart::Manifest(rank), text)
    }

    /// Reads all bytes of a rank, as they travel, verified.
    pub(crate) fn get_rank(&self, version: u64, rank: usize) -> Result<Vec<u8>, String> {
        let text = self.get(version, ShelfPart::Manifest(rank))?;
        Ok(part::join(self.get(version, ShelfPart::Payloads(rank))?, &text))
    }

    /// Reads the part of `rank` of the manifest.
    pub(crate) fn manifest(&self, version: u64, rank: usize) -> Result<Manifest, String> {
        part::open(&self.get(version, ShelfPart::Manifest(rank))?, version, rank)
    }

    /// Reads a whole part, and verifies its checksum.
    pub(crate) fn get(&self, version: u64, part: ShelfPart) -> Result<Vec<u8>, String> {
        part_in(&self.require_version(version).map_err(|e| e.to_string())?, part)
    }

    /// Opens a whole part, to be read in pieces.
    pub(crate) fn open_part(&self, version: u64, part: ShelfPart) -> Result<PartReader, String> {
        let name = part.file();
        let file = self.require_version(version).and_then(|place| place.open_file(&name)).map_err(|e| e.to_string())?;
        PartReader::new(file, name, &self.maps)
    }

    /// Reads bytes of a part, unverified.
    pub(crate) fn get_at(&self, version: u64, file: &str, at: (u64, u64), target: &mut Vec<u8>) -> Result<(), String> {
        let part = ShelfPart::of_file(file).ok_or_else(|| format!("file {file}: not a part"))?;
        let place = self.require_version(version).map_err(|e| e.to_string())?;
        let source = place.open_file(&part.file()).map_err(|e| e.to_string())?;
        let failed = |e: io::Error| format!("file {file}: {e}");
        let held = source.metadata().map_err(failed)?.len().saturating_sub(TRAILER_BYTES as u64);
        let (offset, len) = at;
        // Nothing is allocated for a length that the file cannot hold.
        if offset.checked_add(len).is_none_or(|end| end > held) {
            return Err(format!("file {file}: {len} bytes at {offset} expected, it holds {held}"));
        }
        target.clear();
        target.try_reserve_exact(len as usize).map_err(|_| format!("file {file}: no memory for {len} bytes"))?;
        target.resize(len as usize, 0);
        source.read_exact_at(target, offset).map_err(failed)
    }

    /// Returns the parts of a version, by the names of its files; they may be damaged.
    pub(crate) fn parts(&self, version: u64) -> Result<Vec<ShelfPart>, StoreError> {
        let names = names(self.open_version(version)?)?;
        let mut parts: Vec<ShelfPart> = names.iter().filter_map(|name| ShelfPart::of_file(name)).collect();
        parts.sort_unstable();
        Ok(parts)
    }

    /// Returns the versions with a commit mark, ascending.
    pub(crate) fn versions(&self) -> Result<Vec<u64>, StoreError> {
        let Some(shelf) = self.open()? else { return Ok(Vec::new()) };
        let mut versions = Vec::new();
        for version in places_in(&shelf)? {
            let has_mark = |place: PrivateDir| part_in(&place, ShelfPart::Commit).is_ok();
            if shelf.open_dir(&version_name(version))?.is_some_and(has_mark) {
                versions.push(version);
            }
        }
        Ok(versions)
    }

    /// Returns when a version got its commit mark; `None` for a draft.
    pub(crate) fn committed_at(&self, version: u64) -> Option<SystemTime> {
        let mark = self.open_version(version).ok()??.open_file(&ShelfPart::Commit.file()).ok()?;
        read_whole(&mark).ok()?;
        mark.metadata().ok()?.modified().ok()
    }

    /// Returns all versions and drafts, ascending.
    fn places(&self) -> Result<Vec<u64>, StoreError> {
        self.open()?.map_or(Ok(Vec::new()), |shelf| places_in(&shelf))
    }

    /// Removes a version, its commit mark first; one that is not there is fine. Its memory is kept
    /// for the next parts.
    pub(crate) fn remove(&self, version: u64) -> Result<(), StoreError> {
        let Some(shelf) = self.open()? else { return Ok(()) };
        let name = version_name(version);
        let Some(place) = shelf.open_dir(&name)? else { return Ok(()) };
        place.remove(&ShelfPart::Commit.file())?;
        shelf.remove(RETIRED)?;
        self.maps.forget_removed();
        shelf.move_to(&name, &shelf, RETIRED).map(drop)
    }

    /// Removes all drafts: versions without a commit mark.
    pub(crate) fn remove_drafts(&self) -> Result<(), StoreError> {
        let is_draft = |version: &u64| self.get(*version, ShelfPart::Commit).is_err();
        self.places()?.into_iter().filter(is_draft).try_for_each(|version| self.remove(version))
    }

    /// Removes the whole shelf.
    pub(crate) fn remove_all(&self) -> Result<(), StoreError> {
        self.places()?.into_iter().try_for_each(|version| self.remove(version))?;
        let removed = self.node.open()?.map_or(Ok(()), |node| node.remove(&self.name));
        self.maps.forget_removed();
        removed
    }
}

fn places_in(shelf: &PrivateDir) -> Result<Vec<u64>, StoreError> {
    let version = |name: &String| name.strip_prefix('v')?.parse().ok();
    let mut versions: Vec<u64> = shelf.names()?.iter().filter_map(version).collect();
    versions.sort_unstable();
    Ok(versions)
}

fn version_name(version: u64) -> String {
    format!("v{version:012}")
}

fn part_in(place: &PrivateDir, part: ShelfPart) -> Result<Vec<u8>, String> {
    let name = part.file();
    let file = place.open_file(&name).map_err(|e| e.to_string())?;
    read_whole(&file).map_err(|what| format!("{name}: {what}"))
}

/// Returns the names in a directory; none if there is no directory.
fn names(directory: Option<PrivateDir>) -> Result<Vec<String>, StoreError> {
    directory.map_or(Ok(Vec::new()), |directory| directory.names())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::part_file::trailer_of;

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_part_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 3);
        shelf.clear(7).unwrap();
        let bytes: Vec<u8> = (0..50).collect();
        shelf.put(7, ShelfPart::Payloads(3), &bytes).unwrap();
        assert_eq!(shelf.get(7, ShelfPart::Payloads(3)).unwrap(), bytes);
        let path = dir.path().join("node/rank-000003/v000000000007/blob-000003");
        let written = fs::read(&path).unwrap();
        for bit in 0..written.len() * 8 {
            let mut flipped = written.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, flipped).unwrap();
            assert!(shelf.get(7, ShelfPart::Payloads(3)).is_err(), "bit {bit}");
        }
        for len in 0..written.len() {
            fs::write(&path, &written[..len]).unwrap();
            assert!(shelf.get(7, ShelfPart::Payloads(3)).is_err(), "length {len}");
        }
    }

    /// The allocation of that length used to fail, or to succeed and exhaust the machine's memory.
    #[test]
    fn a_part_of_absurd_length_is_refused_by_name_and_not_read() {
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 0);
        shelf.clear(7).unwrap();
        shelf.put(7, ShelfPart::Commit, b"m").unwrap();
        let path = dir.path().join("node/rank-000000/v000000000007/commit");
        let file = File::options().write(true).open(path).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(shelf.get(7, ShelfPart::Commit).unwrap_err().starts_with("commit: not as it was written"));
        // More than any process can address.
        let cut = 1_u64 << 50;
        let held = (1_u64 << 50) + TRAILER_BYTES as u64;
        if file.set_len(held).and_then(|()| file.write_all_at(&trailer_of(cut, 0), cut)).is_ok() {
            let words = shelf.get(7, ShelfPart::Commit).unwrap_err();
            assert!(words.starts_with("commit: no memory for"), "{words}");
        }
    }

    /// A version of 131 MB once took as long for the pages of its memory as for all its copies.
    #[test]
    fn a_part_takes_the_memory_of_the_version_removed_last_and_is_damaged_until_it_is_finished() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 3);
        let part = ShelfPart::Payloads(3);
        let path = |version: u64| dir.path().join(format!("node/rank-000003/v{version:012}/blob-000003"));
        let mut before = 0;
        for (version, len) in [(0, 50), (1, 50), (2, 80), (3, 20), (4, 0)] {
            shelf.clear(version).unwrap();
            let bytes = vec![version as u8; len];
            let mut file = shelf.start(version, part).unwrap();
            let held = fs::metadata(path(version)).unwrap().len();
            assert_eq!(held, before, "version {version}");
            file.append(&bytes).unwrap();
            assert!(shelf.get(version, part).is_err(), "version {version} is not finished");
            file.finish().unwrap();
            assert_eq!(shelf.get(version, part).unwrap(), bytes);
            shelf.remove(version).unwrap();
            assert!(shelf.places().unwrap().is_empty());
            before = len as u64;
        }
        shelf.remove_all().unwrap();
        assert_eq!(fs::read_dir(dir.path().join("node")).unwrap().count(), 0);
    }

    /// A guard that was made again began with its damage: a second loss in that instant lost a part
    /// that had been safe.
    #[test]
    fn a_part_is_there_until_a_new_one_has_replaced_it_whole() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 0);
        shelf.clear(7).unwrap();
        let part = ShelfPart::Payloads(1);
        shelf.put(7, part, b"old").unwrap();
        let mut file = shelf.start(7, part).unwrap();
        file.append(b"new").unwrap();
        assert_eq!(shelf.get(7, part).unwrap(), b"old");
        assert_eq!(shelf.parts(7).unwrap(), [part]);
        file.finish().unwrap();
        assert_eq!(shelf.get(7, part).unwrap(), b"new");
    }

    #[test]
    fn a_part_that_is_read_in_pieces_is_read_as_it_was_written_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 0);
        shelf.clear(7).unwrap();
        let bytes: Vec<u8> = (0..10).collect();
        let mut file = shelf.start(7, ShelfPart::Payloads(0)).unwrap();
        let [first, second] = [&bytes[..3], &bytes[3..]];
        file.append_summed(first, crc32c::crc32c(first)).unwrap();
        file.append_summed(second, crc32c::crc32c(second)).unwrap();
        file.finish().unwrap();
        let read = |len: usize| {
            let mut reader = shelf.open_part(7, ShelfPart::Payloads(0))?;
            let mut found = Vec::new();
            let mut room = Vec::new();
            while found.len().is_multiple_of(len) {
                let piece = reader.next(len, &mut room)?;
                found.extend_from_slice(piece);
                if piece.is_empty() {
                    break;
                }
            }
            let is_whole = reader.trailer() == trailer_of(found.len() as u64, crc32c::crc32c(&found));
            if is_whole { Ok(found) } else { Err("not as it was written".to_owned()) }
        };
        (1..12).for_each(|len| assert_eq!(read(len).unwrap(), bytes, "pieces of {len}"));
        let path = dir.path().join("node/rank-000000/v000000000007/blob-000000");
        let written = fs::read(&path).unwrap();
        for byte in 0..written.len() {
            let mut flipped = written.clone();
            flipped[byte] ^= 1;
            fs::write(&path, flipped).unwrap();
            assert!(read(4).is_err(), "byte {byte}");
        }
    }

    #[test]
    fn version_without_a_commit_mark_is_a_draft() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 0);
        for version in [4, 9] {
            shelf.clear(version).unwrap();
            shelf.put(version, ShelfPart::Parity(0), b"m").unwrap();
        }
        shelf.put(4, ShelfPart::Commit, b"").unwrap();
        assert_eq!(shelf.versions().unwrap(), [4]);
        shelf.remove_drafts().unwrap();
        assert_eq!(
            (shelf.places().unwrap(), shelf.parts(4).unwrap()),
            (vec![4], vec![ShelfPart::Parity(0), ShelfPart::Commit])
        );
    }

    /// An empty shelf would have let the run start over without a word.
    #[test]
    fn a_shelf_that_others_may_reach_is_refused_and_not_taken_for_an_empty_one() {
        for below in ["", "rank-000000", "rank-000000/v000000000007"] {
            let dir = tempfile::tempdir().unwrap();
            let node = dir.path().join("node");
            let shelf = Shelf::new(&Node::at(&node), 0);
            shelf.clear(7).unwrap();
            shelf.put(7, ShelfPart::Commit, b"m").unwrap();
            fs::set_permissions(node.join(below), fs::Permissions::from_mode(0o770)).unwrap();
            let refusals = [
                shelf.versions().map(drop),
                shelf.has_place(7).map(drop),
                shelf.parts(7).map(drop),
                shelf.clear(7),
                shelf.remove_all(),
                shelf.get(7, ShelfPart::Commit).map(drop).map_err(|what| StoreError::Manifest { version: 7, what }),
            ];
            for refusal in refusals {
                let words = refusal.unwrap_err().to_string();
                assert!(words.contains("open to other users") && words.contains(below), "{words}");
            }
        }
    }

    #[test]
    fn a_part_that_is_a_link_is_damaged_and_what_it_leads_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(&Node::at(&dir.path().join("node")), 0);
        shelf.clear(7).unwrap();
        shelf.put(7, ShelfPart::Parity(0), b"m").unwrap();
        let part = dir.path().join("node/rank-000000/v000000000007/parity-0");
        let other = dir.path().join("other");
        fs::copy(&part, &other).unwrap();
        fs::remove_file(&part).unwrap();
        symlink(&other, &part).unwrap();
        assert!(shelf.get(7, ShelfPart::Parity(0)).unwrap_err().contains("is a link"));
        let whole = fs::read(&other).unwrap();
        shelf.put(7, ShelfPart::Parity(0), b"another").unwrap();
        assert_eq!(
            (shelf.get(7, ShelfPart::Parity(0)).unwrap(), fs::read(&other).unwrap()),
            (b"another".to_vec(), whole)
        );
    }
}
