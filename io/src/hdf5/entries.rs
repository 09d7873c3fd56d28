//! The entries of a directory.

use std::path::Path;
use std::{fs, io};

use recoup_core::StoreError;

/// The names in a directory, sorted; those that are not Unicode are not ours and left out.
pub(super) fn entries(path: &Path) -> Result<Vec<String>, StoreError> {
    let failed = |source| StoreError::of_io("read", path, source);
    let entries: io::Result<Vec<_>> = fs::read_dir(path).map_err(failed)?.collect();
    let names = entries.map_err(failed)?.into_iter().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    Ok(names)
}
