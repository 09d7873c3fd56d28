//! How a run that is going on stands: a small file beside its versions, put in the place of the one
//! before every few seconds.
//!
//! It is for people and scripts that look, by `recoup status`; no run depends on it. It names the
//! process, so that one that ended without a word can be told from one that computes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup::core::{Failure, FailureSource, Phase, Progress};
use recoup::io::put_whole;
use recoup::pipeline::Ended;
use serde::{Deserialize, Serialize};

use crate::observe::saves::{Saves, unix_seconds};

/// The file's name, in the directory of the run's versions.
const FILE: &str = "status.json";
/// Between two writes.
pub(crate) const EVERY: Duration = Duration::from_secs(2);

/// What a run is doing, by its own word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    /// It computes.
    Running,
    /// It came to its end with a solution.
    Converged,
    /// It was asked to stop, and did.
    Stopped,
    /// It came to a limit, or could not go on.
    NotConverged,
    /// It ended with an error.
    Failed,
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standing {
    pub(crate) state: State,
    pub(crate) process: u32,
    /// When that process started, in ticks since its machine did: another one may get its number.
    pub(crate) process_start: Option<u64>,
    pub(crate) host: String,
    pub(crate) ranks: usize,
    /// Versions may be in memory that is not the directory's.
    #[serde(default)]
    pub(crate) has_memory: bool,
    pub(crate) method: String,
    pub(crate) scheme: String,
    /// As asked for.
    pub(crate) interval: String,
    /// Between the last two versions.
    pub(crate) interval_seconds: Option<f64>,
    pub(crate) iteration: u64,
    /// In this process.
    pub(crate) executed: u64,
    pub(crate) relative_residual: Option<f64>,
    pub(crate) rtol: f64,
    /// Versions this process has made, and the newest of them.
    pub(crate) checkpoints: u64,
    pub(crate) version: Option<u64>,
    /// Unix seconds.
    pub(crate) version_at: Option<f64>,
    /// Of the whole run, as far as its processes could tell.
    pub(crate) failures: u64,
    pub(crate) started_at: f64,
    pub(crate) updated_at: f64,
}

/// What an earlier run has said does not count any more.
pub(crate) fn forget(folder: &Path) {
    std::fs::remove_file(folder.join(FILE)).ok();
}

/// What does not change while a run goes on.
pub(crate) struct About<'a> {
    pub(crate) ranks: usize,
    pub(crate) has_memory: bool,
    pub(crate) method: String,
    pub(crate) scheme: String,
    pub(crate) interval: String,
    pub(crate) rtol: f64,
    /// The directory of the run's versions.
    pub(crate) folder: &'a Path,
    /// The newest of them, which the run is about to go on from; 0 for the start.
    pub(crate) newest: u64,
    /// Nothing of an earlier run counts.
    pub(crate) is_fresh: bool,
}

impl Standing {
    fn new(about: &About<'_>, before: Option<&Self>) -> Self {
        // One that left without a word was killed.
        let was_lost = before.is_some_and(|before| matches!(before.state, State::Running | State::Failed));
        let failures = before.map_or(0, |before| before.failures) + u64::from(was_lost);
        let now = unix_seconds();
        Self {
            state: State::Running,
            process: std::process::id(),
            process_start: start_of(std::process::id()),
            host: host(),
            ranks: about.ranks,
            has_memory: about.has_memory,
            method: about.method.clone(),
            scheme: about.scheme.clone(),
            interval: about.interval.clone(),
            interval_seconds: None,
            iteration: about.newest,
            executed: 0,
            relative_residual: None,
            rtol: about.rtol,
            checkpoints: 0,
            version: None,
            version_at: None,
            failures,
            started_at: now,
            updated_at: now,
        }
    }

    /// What the run in `folder` last said; `None` where it says nothing that can be read.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(folder.join(FILE)).ok()?).ok()
    }

    /// Whether the process is there; `None` on another machine.
    pub(crate) fn is_alive(&self) -> Option<bool> {
        (self.host == host()).then(|| {
            let start = start_of(self.process);
            start.is_some() && (self.process_start.is_none() || start == self.process_start)
        })
    }
}

/// Keeps the file of a run up to date, from a thread of its own: an iteration may take minutes.
pub(crate) struct StatusFile {
    shared: Arc<Shared>,
    /// What the file said before.
    before: Option<Standing>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    path: PathBuf,
    standing: Mutex<Standing>,
    saves: Arc<Saves>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let seen = self.saves.seen();
        let mut standing = self.lock();
        standing.updated_at = unix_seconds();
        standing.checkpoints = seen.count;
        (standing.version, standing.version_at) = seen.newest.unzip();
        standing.interval_seconds = seen.interval_seconds;
        let written = serde_json::to_vec(&*standing).map_err(|error| error.to_string());
        let written = written.and_then(|bytes| put_whole(&self.path, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = written {
            tracing::debug!(%error, "status not written");
        }
    }
}

impl StatusFile {
    /// Writes the file and goes on doing so. A file that cannot be written costs the view of a run,
    /// not the run.
    pub(crate) fn start(about: &About<'_>, saves: Arc<Saves>) -> Self {
        let before = Standing::read(about.folder).filter(|_| !about.is_fresh);
        let standing = Mutex::new(Standing::new(about, before.as_ref()));
        let shared = Arc::new(Shared { path: about.folder.join(FILE), standing, saves });
        shared.write();
        let (end, ended) = mpsc::channel();
        let theirs = shared.clone();
        let keep = move || {
            while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                theirs.write();
            }
        };
        let thread = std::thread::Builder::new().name("recoup-status".to_owned()).spawn(keep).ok();
        Self { shared, before, end: Some(end), thread }
    }

    /// After an iteration.
    pub(crate) fn look(&self, progress: &Progress, executed: u64) {
        self.stand(progress);
        self.shared.lock().executed = executed;
    }

    /// The run goes on from a version: that is where it stands, long before its first step is done.
    pub(crate) fn resumed(&self, progress: &Progress) {
        self.stand(progress);
        self.shared.write();
    }

    fn stand(&self, progress: &Progress) {
        let residual = progress.relative_residual();
        let mut standing = self.shared.lock();
        standing.iteration = progress.iteration;
        standing.relative_residual = residual.is_finite().then_some(residual);
    }

    /// A failure has struck inside the process.
    fn failed(&self) {
        self.shared.lock().failures += 1;
    }

    /// The run has come to its end.
    pub(crate) fn conclude(&self, ended: Ended, progress: &Progress) {
        self.stand(progress);
        self.shared.lock().state = match ended {
            Ended::Converged => State::Converged,
            Ended::Stopped => State::Stopped,
            Ended::NotConverged | Ended::Breakdown => State::NotConverged,
        };
    }
}

impl Drop for StatusFile {
    /// The last word; without a conclusion the run has failed. One that never began, as where the
    /// versions are another problem's, leaves what the file said of the run before.
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        {
            let mut standing = self.shared.lock();
            if standing.state == State::Running {
                standing.state = State::Failed;
                if let Some(before) = self.before.take().filter(|_| standing.executed == 0) {
                    *standing = before;
                }
            }
        }
        self.shared.write();
    }
}

/// A source of failures that tells of each.
pub(crate) struct ToldFailures {
    pub(crate) inner: Box<dyn FailureSource>,
    pub(crate) status: Arc<StatusFile>,
}

impl FailureSource for ToldFailures {
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure> {
        let failure = self.inner.due(now, iteration, phase);
        if failure.is_some() {
            self.status.failed();
        }
        failure
    }
}

/// When a process started, in ticks since its machine did; `None` where there is no such process.
fn start_of(process: u32) -> Option<u64> {
    /// Of the fields behind the name, which may hold spaces.
    const STATE: usize = 0;
    const START: usize = 19;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    // One that only waits for its parent to hear of its end computes no more.
    if matches!(*fields.get(STATE)?, "Z" | "X") {
        return None;
    }
    fields.get(START)?.parse().ok()
}

/// The name of this machine.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use recoup::core::Status;

    use super::*;

    fn about(folder: &Path) -> About<'_> {
        let (method, scheme, interval) = ("cg".to_owned(), "lossy".to_owned(), "auto".to_owned());
        About { ranks: 1, has_memory: false, method, scheme, interval, rtol: 1e-6, folder, newest: 0, is_fresh: false }
    }

    #[test]
    fn a_process_that_went_without_a_word_counts_as_a_failure_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let running = Standing::new(&about(dir.path()), None);
        assert_eq!((running.failures, running.is_alive()), (0, Some(true)));
        std::fs::write(dir.path().join(FILE), serde_json::to_vec(&running).unwrap()).unwrap();
        let file = StatusFile::start(&about(dir.path()), Arc::default());
        let (status, is_safe_point) = (Status::Converged, true);
        let progress = Progress { iteration: 9, residual_norm: 1e-8, rhs_norm: 1.0, status, is_safe_point };
        file.conclude(Ended::Converged, &progress);
        drop(file);
        let last = Standing::read(dir.path()).unwrap();
        assert_eq!((last.state, last.iteration, last.failures), (State::Converged, 9, 1));
        assert_eq!(Standing::new(&about(dir.path()), Some(&last)).failures, 1);
        // Number 0 is nobody's, and another process may have got the number of one that went.
        assert_eq!(Standing { process: 0, ..last.clone() }.is_alive(), Some(false));
        assert_eq!(Standing { process_start: Some(1), ..last.clone() }.is_alive(), Some(false));
        assert_eq!(Standing { host: "elsewhere".to_owned(), ..last }.is_alive(), None);
    }
}
