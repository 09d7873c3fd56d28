//! Random changes of files: flipped bits, lost and doubled pieces, numbers far out of range.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::folders::contents;

/// Numbers that a length or an offset should never be.
const EXTREMES: [u64; 6] = [0, 1, 1 << 31, 1 << 60, u64::MAX, i64::MAX as u64];

/// A folder whose files are changed one at a time.
#[derive(Debug)]
pub struct MutatedFolder {
    folder: PathBuf,
    whole: BTreeMap<PathBuf, Vec<u8>>,
}

impl MutatedFolder {
    /// Takes the files below a folder as they are for whole.
    ///
    /// # Panics
    /// When one cannot be read, or none is there.
    pub fn of(folder: &Path) -> Self {
        let whole = contents(folder);
        assert!(!whole.is_empty(), "{} has no files", folder.display());
        Self { folder: folder.to_owned(), whole }
    }

    /// Changes one of the files, and returns its path; `random` draws 64 random bits.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn mutate(&self, mut random: impl FnMut() -> u64) -> PathBuf {
        let position = random() as usize % self.whole.len();
        let (path, bytes) = self.whole.iter().nth(position).expect("a position among the files");
        write(path, &mutated(bytes, random));
        path.clone()
    }

    /// Makes all files as they were. Others are removed.
    ///
    /// # Panics
    /// When one cannot be written.
    pub fn put_back(&self) {
        let there = contents(&self.folder);
        for path in there.keys().filter(|path| !self.whole.contains_key(*path)) {
            fs::remove_file(path).unwrap_or_else(|error| panic!("remove {}: {error}", path.display()));
        }
        for (path, bytes) in self.whole.iter().filter(|(path, bytes)| there.get(*path) != Some(*bytes)) {
            write(path, bytes);
        }
    }
}

/// Writes a file. Folders are for this user alone, as those of versions in memory must be.
fn write(path: &Path, bytes: &[u8]) {
    let folder = path.parent().expect("a file is in a folder");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.and_then(|()| fs::write(path, bytes)).unwrap_or_else(|error| panic!("write {}: {error}", path.display()));
}

/// Returns a changed copy of a file; `random` draws 64 random bits.
pub fn mutated(bytes: &[u8], mut random: impl FnMut() -> u64) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    let kind = random() % 8;
    let at = random() as usize % bytes.len().max(1);
    let end = (at + 1 + random() as usize % 64).min(bytes.len());
    if bytes.is_empty() {
        return random().to_le_bytes().to_vec();
    }
    match kind {
        0 | 1 => changed[at] ^= 1 << (random() % 8),
        2 => changed.truncate(at),
        3 => changed[at..end].iter_mut().for_each(|byte| *byte = random() as u8),
        4 => {
            let width = end.min(at + 8) - at;
            let extreme = EXTREMES[random() as usize % EXTREMES.len()].to_le_bytes();
            changed[at..at + width].copy_from_slice(&extreme[..width]);
        }
        5 => drop(changed.drain(at..end)),
        6 => {
            let other = random() as usize % bytes.len();
            let piece = bytes[at..end].to_vec();
            changed.splice(other..other, piece);
        }
        _ => {
            let other = random() as usize % (bytes.len() - (end - at) + 1);
            changed.copy_within(at..end, other);
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_changes_change_something_and_none_panics() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 16
        };
        let n_changed = (0..1000).filter(|_| mutated(&bytes, &mut random) != bytes).count();
        assert!(n_changed > 900, "{n_changed}");
        (0..8).for_each(|n| drop((0..100).map(|_| mutated(&bytes[..n], &mut random)).collect::<Vec<_>>()));
    }
}
