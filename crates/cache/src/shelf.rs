//! A shelf: the parts of versions one rank keeps, as files in memory that outlive the process.
//!
//! Promises: a part is there as it was written or not at all, since each carries its length and checksum; a version is on
//! the shelf once its commit mark is, and what lies there without one is a draft. Nothing is synced: these files live as
//! long as the machine's memory does. Must not know who else holds what.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use recoup_core::StoreError;

const MAGIC: [u8; 4] = *b"rcpt";
const TRAILER_BYTES: usize = 16;

/// One file of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// All payloads of a rank, back to back.
    Blob(usize),
    /// Parity rows, for the guard of this number.
    Parity(usize),
    Manifest,
    /// Makes the version count; says what guards it.
    Commit,
}

impl Part {
    pub(crate) fn file(self) -> String {
        match self {
            Self::Blob(rank) => format!("blob-{rank:06}"),
            Self::Parity(guard) => format!("parity-{guard}"),
            Self::Manifest => "manifest".to_owned(),
            Self::Commit => "commit".to_owned(),
        }
    }

    fn of_file(name: &str) -> Option<Self> {
        match name.split_once('-') {
            Some(("blob", rank)) => rank.parse().ok().map(Self::Blob),
            Some(("parity", guard)) => guard.parse().ok().map(Self::Parity),
            None if name == "manifest" => Some(Self::Manifest),
            None if name == "commit" => Some(Self::Commit),
            _ => None,
        }
    }
}

/// The versions of one rank.
#[derive(Clone, Debug)]
pub(crate) struct Shelf {
    root: PathBuf,
}

impl Shelf {
    /// The shelf of `rank` under a node's directory; made when first written to.
    pub(crate) fn new(node: &Path, rank: usize) -> Self {
        Self { root: node.join(format!("rank-{rank:06}")) }
    }

    /// The ranks that have shelves under a node's directory.
    pub(crate) fn ranks(node: &Path) -> Vec<usize> {
        let rank = |name: &String| name.strip_prefix("rank-")?.parse().ok();
        let mut ranks: Vec<usize> = entries(node).iter().filter_map(rank).collect();
        ranks.sort_unstable();
        ranks
    }

    pub(crate) fn path(&self, version: u64) -> PathBuf {
        self.root.join(format!("v{version:012}"))
    }

    /// An empty place for a draft.
    pub(crate) fn clear(&self, version: u64) -> Result<(), StoreError> {
        self.remove(version)?;
        let path = self.path(version);
        fs::create_dir_all(&path).map_err(|e| refused("create", &path, e))
    }

    /// Starts a part of a version; it is none until it is finished.
    pub(crate) fn start(&self, version: u64, part: Part) -> Result<PartFile, StoreError> {
        let path = self.path(version).join(part.file());
        let file = File::create(&path).map_err(|e| refused("create", &path, e))?;
        Ok(PartFile { file, path, bytes: 0, crc32c: 0 })
    }

    /// Writes a whole part.
    pub(crate) fn put(&self, version: u64, part: Part, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self.start(version, part)?;
        file.append(bytes)?;
        file.finish()
    }

    /// A whole part, its checksum verified.
    pub(crate) fn get(&self, version: u64, part: Part) -> Result<Vec<u8>, String> {
        let name = part.file();
        let mut bytes = fs::read(self.path(version).join(&name)).map_err(|e| format!("{name}: {e}"))?;
        let cut = bytes.len().checked_sub(TRAILER_BYTES).ok_or_else(|| format!("{name}: cut short"))?;
        let trailer = bytes.split_off(cut);
        let expected = trailer_of(cut as u64, crc32c::crc32c(&bytes));
        if trailer == expected { Ok(bytes) } else { Err(format!("{name}: not as it was written")) }
    }

    /// `len` bytes of a part, unverified.
    pub(crate) fn get_at(&self, version: u64, file: &str, at: (u64, u64), target: &mut Vec<u8>) -> Result<(), String> {
        let part = Part::of_file(file).ok_or_else(|| format!("file {file}: not a part"))?;
        let failed = |e: io::Error| format!("file {file}: {e}");
        let source = File::open(self.path(version).join(part.file())).map_err(failed)?;
        let held = source.metadata().map_err(failed)?.len().saturating_sub(TRAILER_BYTES as u64);
        let (offset, len) = at;
        // Nothing is allocated on the word of a record that lies.
        if offset.checked_add(len).is_none_or(|end| end > held) {
            return Err(format!("file {file}: {len} bytes at {offset} expected, it holds {held}"));
        }
        target.resize(len as usize, 0);
        source.read_exact_at(target, offset).map_err(failed)
    }

    /// The files of a version that have the names of parts; they may be damaged.
    pub(crate) fn parts(&self, version: u64) -> Vec<Part> {
        let mut parts: Vec<Part> = entries(&self.path(version)).iter().filter_map(|name| Part::of_file(name)).collect();
        parts.sort_unstable();
        parts
    }

    /// The versions with a commit mark, ascending.
    pub(crate) fn versions(&self) -> Vec<u64> {
        self.places().into_iter().filter(|&version| self.get(version, Part::Commit).is_ok()).collect()
    }

    /// All versions and drafts, ascending.
    fn places(&self) -> Vec<u64> {
        let version = |name: &String| name.strip_prefix('v')?.parse().ok();
        let mut versions: Vec<u64> = entries(&self.root).iter().filter_map(version).collect();
        versions.sort_unstable();
        versions
    }

    /// Removes a version, its commit mark first; one that is not there is fine.
    pub(crate) fn remove(&self, version: u64) -> Result<(), StoreError> {
        let path = self.path(version);
        let mark = path.join(Part::Commit.file());
        gone(fs::remove_file(&mark)).map_err(|e| refused("remove", &mark, e))?;
        gone(fs::remove_dir_all(&path)).map_err(|e| refused("remove", &path, e))
    }

    /// Removes what has no commit mark.
    pub(crate) fn remove_drafts(&self) -> Result<(), StoreError> {
        let is_draft = |version: &u64| self.get(*version, Part::Commit).is_err();
        self.places().into_iter().filter(is_draft).try_for_each(|version| self.remove(version))
    }

    /// Removes the whole shelf.
    pub(crate) fn remove_all(&self) -> Result<(), StoreError> {
        self.places().into_iter().try_for_each(|version| self.remove(version))?;
        gone(fs::remove_dir_all(&self.root)).map_err(|e| refused("remove", &self.root, e))
    }
}

/// A part being written. Dropped unfinished, it is damaged.
pub(crate) struct PartFile {
    file: File,
    path: PathBuf,
    bytes: u64,
    crc32c: u32,
}

impl PartFile {
    /// Bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|e| refused("write", &self.path, e))?;
        self.bytes += bytes.len() as u64;
        self.crc32c = crc32c::crc32c_append(self.crc32c, bytes);
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        let trailer = trailer_of(self.bytes, self.crc32c);
        self.file.write_all(&trailer).map_err(|e| refused("write", &self.path, e))
    }
}

fn trailer_of(bytes: u64, crc32c: u32) -> [u8; TRAILER_BYTES] {
    let mut trailer = [0; TRAILER_BYTES];
    trailer[..4].copy_from_slice(&MAGIC);
    trailer[4..8].copy_from_slice(&crc32c.to_le_bytes());
    trailer[8..].copy_from_slice(&bytes.to_le_bytes());
    trailer
}

/// The names in a directory; none where there is no directory.
fn entries(path: &Path) -> Vec<String> {
    let names = fs::read_dir(path).into_iter().flatten().flatten();
    names.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn refused(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    let path = path.display().to_string();
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full { path },
        _ => StoreError::Io { action, path, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_truncation_of_a_part_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path(), 3);
        shelf.clear(7).unwrap();
        let bytes: Vec<u8> = (0..50).collect();
        shelf.put(7, Part::Blob(3), &bytes).unwrap();
        assert_eq!(shelf.get(7, Part::Blob(3)).unwrap(), bytes);
        let path = shelf.path(7).join("blob-000003");
        let written = fs::read(&path).unwrap();
        for bit in 0..written.len() * 8 {
            let mut flipped = written.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, flipped).unwrap();
            assert!(shelf.get(7, Part::Blob(3)).is_err(), "bit {bit}");
        }
        for len in 0..written.len() {
            fs::write(&path, &written[..len]).unwrap();
            assert!(shelf.get(7, Part::Blob(3)).is_err(), "length {len}");
        }
    }

    #[test]
    fn what_has_no_commit_mark_is_a_draft() {
        let dir = tempfile::tempdir().unwrap();
        let shelf = Shelf::new(dir.path(), 0);
        for version in [4, 9] {
            shelf.clear(version).unwrap();
            shelf.put(version, Part::Manifest, b"m").unwrap();
        }
        shelf.put(4, Part::Commit, b"").unwrap();
        assert_eq!(shelf.versions(), [4]);
        shelf.remove_drafts().unwrap();
        assert_eq!((shelf.places(), shelf.parts(4)), (vec![4], vec![Part::Manifest, Part::Commit]));
    }
}
