//! The directory of `recoup exec`: one job at a time, its log, and what its ranks report.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use recoup::core::StoreError;
use recoup::io::{CALLS, CallDirectory};

use super::engine::Engines;

/// A line for each set of ranks, as the engine writes it.
const REPORT: &str = "report";

/// A directory that this job has for itself.
#[derive(Debug)]
pub(super) struct ExecPlace(CallDirectory);

impl ExecPlace {
    /// Takes the directory, which is made if it is not there.
    ///
    /// # Errors
    /// When it cannot be written to, or another job has it.
    pub(super) fn take(dir: &Path) -> Result<Self> {
        let shown = dir.display();
        let taken = CallDirectory::take(dir).map_err(|error| match error {
            StoreError::Busy { .. } => anyhow!("another job has {shown}"),
            error => anyhow!("{shown} cannot be made: {error}"),
        })?;
        let place = Self(taken);
        fs::remove_file(place.report()).ok();
        Ok(place)
    }

    /// Returns the file that ranks report to.
    pub(super) fn report(&self) -> PathBuf {
        self.0.path().join(CALLS).join(REPORT)
    }

    /// Returns the variables that the program's ranks need. The library is preloaded, or PETSc
    /// loads it.
    pub(super) fn environment(&self, engines: &Engines, is_appended: bool) -> Vec<(&'static str, OsString)> {
        let (name, before, after) =
            if is_appended { ("PETSC_OPTIONS", "-dll_append ", " ") } else { ("LD_PRELOAD", "", ":") };
        let mut loaded = OsString::from(before);
        loaded.push(&engines.shim);
        if let Some(others) = std::env::var_os(name).filter(|others| !others.is_empty()) {
            loaded.push(after);
            loaded.push(others);
        }
        let mut variables = vec![
            (name, loaded),
            ("RECOUP_ENGINES", engines.list()),
            ("RECOUP_DIR", self.0.path().into()),
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

    /// Returns whether calls, or versions within one, were saved, by this start or an earlier one.
    pub(super) fn holds_calls(&self) -> bool {
        let report = self.report();
        let dir = self.0.path();
        let files = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
        files(&dir.join(CALLS)).any(|file| file.path() != report)
            || files(dir).any(|run| is_stream(&run.file_name().to_string_lossy()))
    }

    /// Removes the log, and the directory if nothing else is in it.
    pub(super) fn clear(&self) {
        self.0.clear(is_stream);
    }
}

/// Returns whether a run is that of a stream of calls, which the engine names by a number.
fn is_stream(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
