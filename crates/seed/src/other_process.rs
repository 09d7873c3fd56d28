//! Other processes next to a run: one that reads all versions, and one that prunes them.

use std::path::Path;

use recoup::core::{ErrorKind, KindedError as _, Store as _, StoreError};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::Retention;

use crate::run_story::{SharedStory, told};

/// Reads all versions of a directory, as `recoup verify` does. One that is retired meanwhile is
/// none of them, and there may be no directory yet.
pub(crate) fn inspect(story: &SharedStory, directory: &str, run: &str) -> Result<(), StoreError> {
    if !Path::new(directory).join(run).exists() {
        return Ok(());
    }
    let store = Hdf5Store::open(directory, run, Access::Read)?;
    for version in store.versions()? {
        let damages: Vec<String> = match store.inspect_damage(version) {
            Ok(damages) => damages.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        };
        if !damages.is_empty() && store.versions()?.contains(&version) {
            told(story).damaged.insert(version, damages.join(", "));
        }
    }
    Ok(())
}

/// Removes all versions but the newest and drafts, as `recoup prune` does: while no other process
/// writes there.
pub(crate) fn prune(story: &SharedStory, directory: &str, run: &str, keep: usize) {
    if let Err(error) = try_to_prune(directory, run, keep)
        && error.kind() != ErrorKind::InUse
    {
        told(story).failures.push(format!("prune: {error}"));
    }
}

fn try_to_prune(directory: &str, run: &str, keep: usize) -> Result<(), StoreError> {
    let store = Hdf5Store::open(directory, run, Access::Write)?;
    for version in Retention::new(keep).superfluous(&store, u64::MAX)? {
        store.remove(version)?;
    }
    store.discard_drafts()
}

/// Tries again while another process has the directory.
pub(crate) fn unless_in_use<T, E: recoup::core::KindedError>(mut open: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    loop {
        match open() {
            Err(error) if error.kind() == ErrorKind::InUse => std::thread::yield_now(),
            opened => return opened,
        }
    }
}
