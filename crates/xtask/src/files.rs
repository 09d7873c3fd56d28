//! Files and folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Makes a folder that holds nothing.
pub(crate) fn clear(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Writes a file, and makes the folders above it.
pub(crate) fn put(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Copies a file, and makes the folders above its target.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// Copies all files below a folder.
pub(crate) fn copy_all(from: &Path, to: &Path) -> Result<()> {
    files_below(from)?.iter().try_for_each(|path| copy(path, &to.join(path.strip_prefix(from)?)))
}

/// All files below a folder, in a fixed order.
pub(crate) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() { pending.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    Ok(found)
}

/// The path of a file below a folder, with forward slashes.
pub(crate) fn name_below(folder: &Path, path: &Path) -> Result<String> {
    Ok(path.strip_prefix(folder)?.to_string_lossy().replace('\\', "/"))
}
