//! The places of the versions of one name: this rank's in scratch, those of all ranks in persistent
//! storage.
//!
//! ```text
//! <scratch>/rank-000003/<name>/v000000000042/    one rank's part, published by itself
//! <scratch>/rank-000003/files-<name>/            files the program is writing, or reading back
//! <persistent>/<name>/v000000000042/             all ranks' parts, published by rank 0
//! ```
//!
//! A program of one process that uses no MPI has `single-<id>` in place of `rank-<rank>`, and above
//! its names in persistent storage. Names hold no dash, so these never meet. The directory of a
//! name that begins with a dot begins with `dot-` instead: no version is hidden.
//!
//! Scratch may be shared by users, and these names can be guessed. So the directories below it are
//! this user's alone: another user's is refused, and so is a link. Persistent storage is shared as
//! its owner likes: who may write there may also restart others.

use std::fs::{DirBuilder, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use recoup_core::{Store, StoreError};
use recoup_io::{Access, Hdf5Store};
use rustix::fs::OFlags;

use crate::{Config, Error};

/// Looks at a lock that another process holds.
const LOCK_LOOKS: usize = 200;

/// Time between two of them.
const LOCK_NAP: Duration = Duration::from_millis(50);

/// The directories of one process.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    scratch: PathBuf,
    persistent: PathBuf,
}

impl Places {
    pub(crate) fn of_rank(config: &Config, rank: usize) -> Self {
        Self { scratch: config.scratch.join(format!("rank-{rank:06}")), persistent: config.persistent.clone() }
    }

    pub(crate) fn of_single(config: &Config, id: u32) -> Self {
        let name = format!("single-{id:06}");
        Self { scratch: config.scratch.join(&name), persistent: config.persistent.join(&name) }
    }

    /// Returns the directory of routed files of checkpoints called `name`.
    pub(crate) fn files(&self, name: &str) -> PathBuf {
        self.scratch.join(format!("files-{name}"))
    }

    /// Returns the directory in which the parts of a drain are handed over. Its name is a draft's,
    /// so it is discarded with drafts.
    pub(crate) fn handover(&self, name: &str, token: u64) -> PathBuf {
        self.persistent.join(run_name(name)).join(format!("draft-parts-{token:016x}"))
    }

    /// Opens this rank's versions in scratch, and removes drafts of a killed process.
    pub(crate) fn open_scratch(&self, name: &str) -> Result<Arc<dyn Store>, Error> {
        if let Some(shared) = self.scratch.parent() {
            std::fs::create_dir_all(shared).map_err(|source| Error::file("create", shared, source))?;
        }
        take_private_dir(&self.scratch)?;
        take_private_dir(&self.scratch.join(run_name(name)))?;
        let store = open(&self.scratch, name, Access::Write)?;
        store.discard_drafts()?;
        Ok(store)
    }

    /// Returns whether there is a place for versions called `name` in scratch.
    pub(crate) fn has_scratch(&self, name: &str) -> bool {
        self.scratch.join(run_name(name)).is_dir()
    }

    /// Returns the same for persistent storage.
    pub(crate) fn has_persistent(&self, name: &str) -> bool {
        self.persistent.join(run_name(name)).is_dir()
    }

    /// Opens all ranks' versions. Rank 0 opens them before the others join.
    pub(crate) fn open_persistent(&self, name: &str) -> Result<Arc<dyn Store>, Error> {
        let store = open(&self.persistent, name, Access::Write)?;
        store.discard_drafts()?;
        Ok(store)
    }

    pub(crate) fn join_persistent(&self, name: &str) -> Result<Arc<dyn Store>, Error> {
        open(&self.persistent, name, Access::Join)
    }
}

/// Returns the name of the run that holds the checkpoints called `name`.
pub(crate) fn run_name(name: &str) -> String {
    name.strip_prefix('.').map_or_else(|| name.to_owned(), |rest| format!("dot-{rest}"))
}

/// Makes a directory for this user alone, or takes the one that is there.
///
/// # Errors
/// [`Error::Foreign`] for a link, a file, and another user's directory.
fn take_private_dir(path: &Path) -> Result<(), Error> {
    let private = Permissions::from_mode(0o700);
    match DirBuilder::new().mode(private.mode()).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.map_err(|source| Error::file("create", path, source)),
    }
    let refuse = |what: String| Error::Foreign { path: path.display().to_string(), what };
    let look = |source| Error::file("open", path, source);
    let found = std::fs::symlink_metadata(path).map_err(look)?;
    let user = rustix::process::geteuid().as_raw();
    if !found.is_dir() {
        return Err(refuse("is a link or a file: a directory expected".to_owned()));
    }
    if found.uid() != user {
        return Err(refuse(format!("belongs to user {}: user {user} expected", found.uid())));
    }
    if found.mode() & 0o077 != 0 {
        // Links are not followed, should another user have put one in its place just now.
        let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
        let directory = File::options().read(true).custom_flags(flags).open(path).map_err(look)?;
        directory.set_permissions(private).map_err(look)?;
    }
    Ok(())
}

/// Opens a store, and tries again while the lock is held: a process that was just killed may hold
/// it a moment longer.
fn open(dir: &Path, name: &str, access: Access) -> Result<Arc<dyn Store>, Error> {
    let mut looks = 0;
    loop {
        match Hdf5Store::open(dir, &run_name(name), access) {
            Err(StoreError::Busy { .. }) if looks < LOCK_LOOKS => std::thread::sleep(LOCK_NAP),
            opened => return Ok(Arc::new(opened?.with_replacement())),
        }
        looks += 1;
    }
}

/// The stores of one name.
#[derive(Clone)]
pub(crate) struct NameStores {
    pub(crate) scratch: Arc<dyn Store>,
    pub(crate) persistent: Arc<dyn Store>,
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, read_dir, set_permissions};
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    /// A number of no user, on the systems the tests run on.
    const STRANGER: u32 = 65534;

    fn places(dir: &Path) -> Places {
        Places { scratch: dir.join("scratch/rank-000000"), persistent: dir.join("persistent") }
    }

    fn refusal(places: &Places) -> String {
        places.open_scratch("heat").map(drop).unwrap_err().to_string()
    }

    #[test]
    fn directories_in_scratch_are_closed_to_other_users() {
        let dir = tempfile::tempdir().unwrap();
        let places = places(dir.path());
        for mode in [0o777, 0o755, 0o700] {
            places.open_scratch("heat").unwrap();
            for path in [places.scratch.clone(), places.scratch.join("heat")] {
                assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700, "{}", path.display());
                set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            }
        }
    }

    /// Another user who guesses the name would read, replace or remove what a restart trusts.
    #[test]
    fn links_and_files_planted_in_scratch_are_refused_by_name() {
        for name in ["rank-000000", "rank-000000/heat"] {
            let dir = tempfile::tempdir().unwrap();
            let places = places(dir.path());
            let planted = dir.path().join("scratch").join(name);
            let elsewhere = dir.path().join("elsewhere");
            create_dir(&elsewhere).unwrap();
            std::fs::create_dir_all(planted.parent().unwrap()).unwrap();
            symlink(&elsewhere, &planted).unwrap();
            let error = refusal(&places);
            assert!(error.contains(&format!("{name} is a link")), "{error}");
            assert_eq!(read_dir(&elsewhere).unwrap().count(), 0, "{name}");
            std::fs::remove_file(&planted).unwrap();
            std::fs::write(&planted, "").unwrap();
            assert!(refusal(&places).contains("a directory expected"));
        }
    }

    #[test]
    fn directory_of_another_user_is_refused_by_name() {
        for name in ["rank-000000", "rank-000000/heat"] {
            let dir = tempfile::tempdir().unwrap();
            let places = places(dir.path());
            let planted = dir.path().join("scratch").join(name);
            std::fs::create_dir_all(&planted).unwrap();
            if chown(&planted, Some(STRANGER), None).is_err() {
                eprintln!("SKIPPED: only root can give a directory away");
                return;
            }
            let error = refusal(&places);
            assert!(error.contains(&format!("{name} belongs to user {STRANGER}")), "{error}");
        }
    }
}
