//! One of two versions to be compared: its run, and how it was named.

use std::path::{Path, PathBuf};

use anyhow::Result;
use recoup::core::{Manifest, Store, StoreError};
use recoup::io::Hdf5Store;

use crate::directory::open;
use crate::exit::Exit;
use crate::observe::status_file::RunStatus;

/// A run, and the version of it that was asked for.
pub(super) struct ComparedRun {
    pub(super) dir: PathBuf,
    pub(super) name: String,
    pub(super) store: Box<dyn Store>,
    asked: Option<u64>,
}

impl ComparedRun {
    /// Opens what a path names: DIR, DIR/RUN or DIR/RUN/VERSION.
    ///
    /// # Errors
    /// Exit 2 where it names nothing of recoup, or several runs.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let refused = |what: String| Exit::Usage.because(format!("{}: {what}", path.display()));
        let parent = path.parent().map(|above| if above.as_os_str().is_empty() { Path::new(".") } else { above });
        let numbered = || version_of(path).zip(parent).map(|(version, run)| (run, Some(version)));
        // A directory may have a number for a name.
        let candidates = [Some((path, None)), numbered()];
        for (run, asked) in candidates.into_iter().flatten().filter(|(run, _)| run.is_dir()) {
            let names = Hdf5Store::names(run)?;
            let found = match &names[..] {
                [name] => Some((run.to_owned(), name.clone())),
                [] => above(run),
                several => return Err(refused(format!("several runs, {}: say which as DIR/RUN", several.join(", ")))),
            };
            if let Some((dir, name)) = found {
                let store = open(&dir, &name)?;
                return Ok(Self { dir, name, store, asked });
            }
        }
        Err(refused(if path.is_dir() {
            "no versions of a run; expected DIR, DIR/RUN or DIR/RUN/VERSION".to_owned()
        } else if path.exists() {
            "a directory expected, a file found".to_owned()
        } else {
            "there is no such directory or version; expected DIR, DIR/RUN or DIR/RUN/VERSION".to_owned()
        }))
    }

    /// Returns the name of a version, for people.
    pub(super) fn label(&self, version: u64) -> String {
        self.dir.join(&self.name).join(version.to_string()).display().to_string()
    }

    /// Returns the manifest of a version.
    ///
    /// # Errors
    /// Exit 4 where it is missing or damaged.
    pub(super) fn manifest(&self, version: u64) -> Result<Manifest> {
        let refused = |error: StoreError| Exit::NoCheckpoint.because(format!("{}: {error}", self.label(version)));
        self.store.manifest(version).map_err(refused)
    }

    /// Returns whether a version that nothing asked for by its number is gone.
    pub(super) fn has_retired(&self, version: u64) -> bool {
        self.asked.is_none() && matches!(self.store.manifest(version), Err(StoreError::Missing { .. }))
    }

    /// Returns the status of the newest process of the run, where there is one.
    pub(super) fn status(&self) -> Option<RunStatus> {
        RunStatus::read(&self.dir.join(&self.name))
    }

    fn versions(&self) -> Result<Vec<u64>> {
        let versions = self.store.versions()?;
        let run = self.dir.join(&self.name).display().to_string();
        let Some(asked) = self.asked.filter(|asked| !versions.contains(asked)) else {
            let is_empty = versions.is_empty();
            let missing = || Exit::NoCheckpoint.because(format!("{run}: there is no version"));
            return if is_empty { Err(missing()) } else { Ok(versions) };
        };
        let known: Vec<String> = versions.iter().map(ToString::to_string).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(Exit::NoCheckpoint.because(format!("{run}: there is no version {asked}; there are: {known}")))
    }
}

/// Chooses a version of each: those asked for, or the newest that both have, or the newest of each.
///
/// # Errors
/// Exit 4 where a run has none, or not the one asked for.
pub(super) fn choose(a: &ComparedRun, b: &ComparedRun) -> Result<[u64; 2]> {
    let versions = [a.versions()?, b.versions()?];
    let newest = |at: usize| versions[at].last().copied().unwrap_or_default();
    let or_newest = |at: usize, version: u64| if versions[at].contains(&version) { version } else { newest(at) };
    Ok(match (a.asked, b.asked) {
        (Some(a), Some(b)) => [a, b],
        (Some(a), None) => [a, or_newest(1, a)],
        (None, Some(b)) => [or_newest(0, b), b],
        (None, None) => match versions[0].iter().rev().find(|version| versions[1].contains(version)) {
            Some(&common) => [common; 2],
            None => [newest(0), newest(1)],
        },
    })
}

/// Returns the version that the end of a path names, as `inspect` does or as its directory is
/// called.
fn version_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    let digits = name.strip_prefix('v').unwrap_or(name);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Returns the directory and the name of a run, given the folder of the run.
fn above(run: &Path) -> Option<(PathBuf, String)> {
    let run = run.canonicalize().ok()?;
    let name = run.file_name()?.to_str()?.to_owned();
    let dir = run.parent()?;
    Hdf5Store::names(dir).ok()?.contains(&name).then(|| (dir.to_owned(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_a_number_or_the_name_of_its_directory() {
        for (path, version) in [("d/solve/40", Some(40)), ("d/solve/v000000000040/", Some(40)), ("d/solve", None)] {
            assert_eq!(version_of(Path::new(path)), version, "{path}");
        }
        assert_eq!(["v", "", "vx1", "99999999999999999999"].map(|path| version_of(Path::new(path))), [None; 4]);
    }
}
