//! Folders of files and of versions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The paths in a folder, sorted.
///
/// # Panics
/// When it cannot be read.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = read().unwrap_or_else(|error| panic!("read {}: {error}", folder.display()));
    paths.sort();
    paths
}

/// The bytes of all files below a folder, by their paths.
///
/// # Panics
/// When one cannot be read.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.append(&mut contents(&path));
        } else {
            let bytes = fs::read(&path).unwrap_or_else(|error| panic!("read {}: {error}", path.display()));
            found.insert(path, bytes);
        }
    }
    found
}

/// Copies a folder and all below it.
///
/// # Panics
/// When one cannot be read or written.
pub fn copy_tree(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap_or_else(|error| panic!("create {}: {error}", target.display()));
    for path in entries(source) {
        let copy = target.join(path.file_name().expect("an entry has a name"));
        if path.is_dir() {
            copy_tree(&path, &copy);
        } else {
            fs::copy(&path, &copy).unwrap_or_else(|error| panic!("copy {}: {error}", path.display()));
        }
    }
}

/// The numbers and the folders of the versions of a run, the oldest first; none of one that is not
/// there.
pub fn versions(run: &Path) -> Vec<(u64, PathBuf)> {
    let paths = fs::read_dir(run).into_iter().flatten().flatten().map(|entry| entry.path());
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix('v')?.parse().ok();
    let mut found: Vec<(u64, PathBuf)> = paths.filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    found
}

/// The newest version of a run.
pub fn newest_version(run: &Path) -> Option<u64> {
    versions(run).last().map(|(version, _)| *version)
}

/// The bytes of all files of the versions of a run, by version and name.
///
/// # Panics
/// When one cannot be read.
pub fn files_of_versions(run: &Path) -> BTreeMap<(u64, String), Vec<u8>> {
    let mut files = BTreeMap::new();
    for (version, folder) in versions(run) {
        for (path, bytes) in contents(&folder) {
            let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
            files.insert((version, name), bytes);
        }
    }
    files
}
