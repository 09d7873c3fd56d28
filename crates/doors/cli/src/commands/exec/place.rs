//! The directory of `recoup exec`: one job at a time, its log, and what its ranks report.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use recoup::io::{CALLS, FileLock, Hdf5Store, open_without_links};

use super::engine::Engines;

/// The file that a job locks.
const LOCK: &str = "exec.lock";
/// A line for each set of ranks, as the engine writes it.
const REPORT: &str = "report";

/// A directory that this job has for itself.
#[derive(Debug)]
pub(super) struct ExecPlace {
    dir: PathBuf,
    _lock: FileLock,
}

impl ExecPlace {
    /// Takes the directory, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be written to, or another job has it.
    pub(super) fn take(dir: &Path) -> Result<Self> {
        let calls = dir.join(CALLS);
        let shown = dir.display();
        fs::create_dir_all(&calls).with_context(|| format!("{shown} cannot be made"))?;
        let dir = dir.canonicalize().with_context(|| format!("{shown} cannot be found"))?;
        let mut options = File::options();
        let opened = open_without_links(options.write(true).create(true), &dir.join(LOCK));
        let file = opened.with_context(|| format!("{shown} cannot be written to"))?;
        let lock = FileLock::take(file).map_err(|_| anyhow!("another job has {shown}"))?;
        let place = Self { dir, _lock: lock };
        fs::remove_file(place.report()).ok();
        Ok(place)
    }

    /// Returns the file that ranks report to.
    pub(super) fn report(&self) -> PathBuf {
        self.dir.join(CALLS).join(REPORT)
    }

    /// Returns the variables that the program's ranks need.
    pub(super) fn environment(&self, engines: &Engines) -> Vec<(&'static str, OsString)> {
        let mut preloaded = engines.shim.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preloaded.push(":");
            preloaded.push(others);
        }
        let mut variables = vec![
            ("LD_PRELOAD", preloaded),
            ("RECOUP_ENGINES", engines.list()),
            ("RECOUP_DIR", self.dir.clone().into()),
            ("RECOUP_REPORT", self.report().into()),
        ];
        // Partitions that differ from start to start would give the rows other numbers.
        for (name, value) in [("SCOTCH_DETERMINISTIC", "1"), ("SCOTCH_PTHREAD_NUMBER", "1")] {
            if std::env::var_os(name).is_none() {
                variables.push((name, value.into()));
            }
        }
        variables
    }

    /// Returns whether calls were saved, by this start or an earlier one.
    pub(super) fn holds_calls(&self) -> bool {
        let report = self.report();
        let files = fs::read_dir(self.dir.join(CALLS)).into_iter().flatten().flatten();
        files.map(|file| file.path()).any(|path| path != report)
    }

    /// Removes the log, and the directory if nothing else is in it.
    pub(super) fn clear(&self) {
        let names = Hdf5Store::names(&self.dir).unwrap_or_default();
        for folder in names.iter().filter(|name| is_stream(name)).map(String::as_str).chain([CALLS]) {
            fs::remove_dir_all(self.dir.join(folder)).ok();
        }
        fs::remove_file(self.dir.join(LOCK)).ok();
        fs::remove_dir(&self.dir).ok();
    }
}

/// Returns whether a run is that of a stream of calls, which the engine names by a number.
fn is_stream(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
