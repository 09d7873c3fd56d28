//! The status file of a run: `status.json` next to its versions, replaced every few seconds while
//! the run continues.
//!
//! People and scripts read it through `recoup status`; no run depends on it. It names the process,
//! so a run that was killed can be told from one that computes.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup::core::{Clock, Failure, FailureSource, Phase, Progress};
use recoup::io::{HISTORY, Hdf5Store, STATUS, put_whole};
use recoup::pipeline::Ended;
use serde::{Deserialize, Serialize};

use crate::observe::history::{ProcessFacts, RunHistory};
use crate::observe::saves::{Saves, unix_seconds};
use crate::version;

/// The time between two writes.
const WRITE_EVERY: Duration = Duration::from_secs(2);

/// The time between two looks for new entries of the history.
const APPEND_EVERY: Duration = Duration::from_millis(100);

/// A process on another machine counts as gone after this many writes were missed.
const MISSED_WRITES: f64 = 15.0;

/// A process counts as gone, too, if its clock cannot be trusted and it misses this many writes.
const AWAITED_WRITES: u32 = 3;
const NAP: Duration = Duration::from_millis(100);

/// The state of a run, as its own process reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunState {
    /// The run computes.
    Running,
    /// The run ended with a solution.
    Converged,
    /// The run was asked to stop, and did.
    Stopped,
    /// The run reached a limit, or broke down.
    NotConverged,
    /// The run ended with an error.
    Failed,
}

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunStatus {
    pub(crate) state: RunState,
    pub(crate) process: u32,
    /// Start of that process in clock ticks since boot: its number may be given to another one.
    pub(crate) process_start: Option<u64>,
    pub(crate) host: String,
    pub(crate) ranks: usize,
    /// Versions may be stored in memory, not in the directory.
    #[serde(default)]
    pub(crate) has_memory: bool,
    /// Versions rest in memory that is lost with the process.
    #[serde(default)]
    pub(crate) is_in_process_memory: bool,
    pub(crate) method: String,
    pub(crate) scheme: String,
    /// The interval as asked for.
    pub(crate) interval: String,
    /// Seconds between the last two versions.
    pub(crate) interval_seconds: Option<f64>,
    pub(crate) iteration: u64,
    /// Iterations executed by this process.
    pub(crate) executed: u64,
    pub(crate) relative_residual: Option<f64>,
    pub(crate) rtol: f64,
    /// Versions this process has made, and the newest of them.
    pub(crate) checkpoints: u64,
    pub(crate) version: Option<u64>,
    /// Unix seconds.
    pub(crate) version_at: Option<f64>,
    /// Failures of the whole run, as far as its processes could tell.
    pub(crate) failures: u64,
    pub(crate) started_at: f64,
    pub(crate) updated_at: f64,
    /// Version of the program, and what it was started with; older ones do not say.
    #[serde(default)]
    pub(crate) recoup: Option<String>,
    #[serde(default)]
    pub(crate) pc: Option<String>,
    #[serde(default)]
    pub(crate) threads: Option<usize>,
    #[serde(default)]
    pub(crate) command: Vec<String>,
}

/// Removes status and history of an earlier run, which no longer count.
pub(crate) fn forget(folder: &Path) {
    for name in [STATUS, HISTORY] {
        std::fs::remove_file(folder.join(name)).ok();
    }
}

/// The facts of a run that do not change.
pub(crate) struct RunFacts<'a> {
    /// The facts of this process, which the history has too.
    pub(crate) process: ProcessFacts,
    pub(crate) has_memory: bool,
    pub(crate) is_in_process_memory: bool,
    /// Threads of each rank.
    pub(crate) threads: usize,
    /// The run's folder in its directory; made if there is none.
    pub(crate) folder: &'a Path,
    /// The newest version, from which the run is about to resume; 0 for the start.
    pub(crate) newest: u64,
    /// The run ignores earlier runs.
    pub(crate) is_fresh: bool,
}

impl RunStatus {
    fn new(facts: &RunFacts<'_>, before: Option<&Self>) -> Self {
        // A process that wrote no final status was killed.
        let was_lost = before.is_some_and(|before| matches!(before.state, RunState::Running | RunState::Failed));
        let failures = before.map_or(0, |before| before.failures) + u64::from(was_lost);
        let process = facts.process.clone();
        Self {
            state: RunState::Running,
            process: process.process,
            process_start: start_of(process.process),
            host: process.host,
            ranks: process.ranks,
            has_memory: facts.has_memory,
            is_in_process_memory: facts.is_in_process_memory,
            method: process.method,
            scheme: process.scheme,
            interval: process.interval,
            interval_seconds: None,
            iteration: facts.newest,
            executed: 0,
            relative_residual: None,
            rtol: process.rtol,
            checkpoints: 0,
            version: None,
            version_at: None,
            failures,
            started_at: process.at,
            updated_at: process.at,
            recoup: Some(version::NUMBER.to_owned()),
            pc: Some(process.pc),
            threads: Some(facts.threads),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        }
    }

    /// Reads the status of the run in `folder`; `None` if there is none that can be read.
    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&Hdf5Store::read_status(folder).ok()?).ok()
    }

    /// Reads the status as [`RunStatus::read`] does. If the process is on another machine, and the
    /// clocks of the two do not say that it wrote lately, waits for its next write.
    pub(crate) fn read_settled(folder: &Path, clock: &dyn Clock) -> Option<Self> {
        let first = Self::read(folder)?;
        let is_ahead = first.updated_at > unix_seconds() + WRITE_EVERY.as_secs_f64();
        if first.state != RunState::Running || first.is_alive().is_some() || !(first.is_silent() || is_ahead) {
            return Some(first);
        }
        for _ in 0..(AWAITED_WRITES * WRITE_EVERY).as_millis() / NAP.as_millis() {
            clock.sleep_until(clock.now() + NAP);
            let next = Self::read(folder)?;
            if next.updated_at != first.updated_at {
                return Some(Self { updated_at: unix_seconds(), ..next });
            }
        }
        let silent_since = unix_seconds() - MISSED_WRITES * WRITE_EVERY.as_secs_f64();
        Some(Self { updated_at: first.updated_at.min(silent_since), ..first })
    }

    /// Returns whether the process exists; `None` on another machine.
    pub(crate) fn is_alive(&self) -> Option<bool> {
        (self.host == host()).then(|| {
            let start = start_of(self.process);
            start.is_some() && (self.process_start.is_none() || start == self.process_start)
        })
    }

    /// Returns the seconds since the last write.
    pub(crate) fn silent_seconds(&self) -> f64 {
        (unix_seconds() - self.updated_at).max(0.0)
    }

    /// Returns whether the last write is so long ago that the process is likely gone.
    pub(crate) fn is_silent(&self) -> bool {
        self.silent_seconds() >= MISSED_WRITES * WRITE_EVERY.as_secs_f64()
    }

    /// Returns whether the run computes, as far as can be seen from this machine.
    pub(crate) fn is_going_on(&self) -> bool {
        self.state == RunState::Running && self.is_alive().unwrap_or(!self.is_silent())
    }
}

impl ProcessFacts {
    /// The time, and the names of this process and machine.
    pub(crate) fn here() -> Self {
        Self { at: unix_seconds(), process: std::process::id(), host: host(), ..Self::default() }
    }
}

/// Keeps the files of a run up to date, from a thread of its own: an iteration may take minutes.
pub(crate) struct StatusFile {
    shared: Arc<SharedStatus>,
    /// The history of the run, which the same thread writes.
    pub(crate) history: Arc<RunHistory>,
    /// The previous contents of the file.
    before: Option<RunStatus>,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

struct SharedStatus {
    path: PathBuf,
    status: Mutex<RunStatus>,
    saves: Arc<Saves>,
}

impl SharedStatus {
    fn lock(&self) -> MutexGuard<'_, RunStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let seen = self.saves.seen();
        let mut status = self.lock();
        status.updated_at = unix_seconds();
        status.checkpoints = seen.count;
        (status.version, status.version_at) = seen.newest.unzip();
        status.interval_seconds = seen.interval_seconds;
        let written = serde_json::to_vec(&*status).map_err(|error| error.to_string());
        let written = written.and_then(|bytes| put_whole(&self.path, &bytes).map_err(|error| error.to_string()));
        if let Err(error) = written {
            tracing::debug!(%error, "status not written");
        }
    }
}

impl StatusFile {
    /// Writes the file now and every few seconds. If it cannot be written, the run continues
    /// without it.
    pub(crate) fn start(facts: &RunFacts<'_>, saves: Arc<Saves>) -> Self {
        if let Err(error) = std::fs::create_dir_all(facts.folder) {
            tracing::debug!(%error, "status not written");
        }
        let before = RunStatus::read(facts.folder).filter(|_| !facts.is_fresh);
        let status = Mutex::new(RunStatus::new(facts, before.as_ref()));
        let shared = Arc::new(SharedStatus { path: facts.folder.join(STATUS), status, saves });
        shared.write();
        let history = Arc::new(RunHistory::open(facts.folder, facts.process.clone(), facts.is_fresh));
        shared.saves.record(history.clone());
        let (end, ended) = mpsc::channel();
        let theirs = (shared.clone(), history.clone());
        let keep = move || {
            let mut looks = 0;
            while ended.recv_timeout(APPEND_EVERY) == Err(RecvTimeoutError::Timeout) {
                theirs.1.flush();
                looks += 1;
                if APPEND_EVERY * looks >= WRITE_EVERY {
                    theirs.0.write();
                    looks = 0;
                }
            }
        };
        let thread = std::thread::Builder::new().name("recoup-status".to_owned()).spawn(keep).ok();
        Self { shared, history, before, end: Some(end), thread }
    }

    /// Returns whether another process of the run was here before, and did not converge.
    pub(crate) fn follows_unfinished(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.state != RunState::Converged)
    }

    /// Takes note of an iteration.
    pub(crate) fn look(&self, progress: &Progress, executed: u64) {
        self.set_progress(progress);
        self.shared.lock().executed = executed;
        self.history.stepped(progress, executed);
    }

    /// Takes note of a resume at once: the first step may take long.
    pub(crate) fn resumed(&self, progress: &Progress) {
        self.set_progress(progress);
        self.history.resumed(progress);
        self.shared.write();
    }

    fn set_progress(&self, progress: &Progress) {
        let residual = progress.relative_residual();
        let mut status = self.shared.lock();
        status.iteration = progress.iteration;
        status.relative_residual = residual.is_finite().then_some(residual);
    }

    /// Counts a failure inside the process.
    fn count_failure(&self) {
        self.shared.lock().failures += 1;
        self.history.failed();
    }

    /// Takes note of the end of the run.
    pub(crate) fn conclude(&self, ended: Ended, progress: &Progress) {
        self.set_progress(progress);
        self.shared.lock().state = match ended {
            Ended::Converged => RunState::Converged,
            Ended::Stopped => RunState::Stopped,
            Ended::NotConverged | Ended::Breakdown => RunState::NotConverged,
        };
    }
}

impl Drop for StatusFile {
    /// Writes the final status. A run without a conclusion has failed. One that never began, for
    /// example because the versions are another problem's, leaves the status of the run before.
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        self.history.flush();
        {
            let mut status = self.shared.lock();
            if status.state == RunState::Running {
                status.state = RunState::Failed;
                if let Some(before) = self.before.take().filter(|_| status.executed == 0) {
                    *status = before;
                }
            }
        }
        self.shared.write();
    }
}

/// A source of failures that are counted in the status.
pub(crate) struct CountedFailures {
    pub(crate) inner: Box<dyn FailureSource>,
    pub(crate) status: Arc<StatusFile>,
}

impl FailureSource for CountedFailures {
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure> {
        let failure = self.inner.due(now, iteration, phase);
        if failure.is_some() {
            self.status.count_failure();
        }
        failure
    }
}

/// Returns when a process started, in clock ticks since boot; `None` if there is no such process.
fn start_of(process: u32) -> Option<u64> {
    /// Positions among the fields after the name, which may hold spaces.
    const STATE: usize = 0;
    const START: usize = 19;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split_ascii_whitespace().collect();
    // A zombie computes no more.
    if matches!(*fields.get(STATE)?, "Z" | "X") {
        return None;
    }
    fields.get(START)?.parse().ok()
}

/// Returns the name of this machine.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "unknown".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use recoup::core::{SafePoint, Status};

    use super::*;

    fn facts(folder: &Path) -> RunFacts<'_> {
        let process = ProcessFacts { ranks: 1, rtol: 1e-6, ..ProcessFacts::here() };
        let [has_memory, is_in_process_memory, is_fresh] = [false; 3];
        RunFacts { process, has_memory, is_in_process_memory, threads: 2, folder, newest: 0, is_fresh }
    }

    /// A clock on which each sleep is a write of the run, or none.
    struct Writes<'a>(Option<&'a Path>);

    impl Clock for Writes<'_> {
        fn now(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep_until(&self, _: Duration) {
            let Some(folder) = self.0 else { return };
            let status = RunStatus::read(folder).unwrap();
            write(folder, &RunStatus { updated_at: status.updated_at + 2.0, ..status });
        }
    }

    fn write(folder: &Path, status: &RunStatus) {
        std::fs::write(folder.join(STATUS), serde_json::to_vec(status).unwrap()).unwrap();
    }

    /// A run whose machine's clock was an hour behind was called silent while it computed, and one
    /// whose clock was an hour ahead was called running for an hour after it was killed.
    #[test]
    fn a_run_on_another_machine_is_silent_if_it_writes_no_more_whatever_its_clock() {
        let dir = tempfile::tempdir().unwrap();
        for ahead in [-3600.0, 3600.0] {
            for (is_silent, clock) in [(false, Writes(Some(dir.path()))), (true, Writes(None))] {
                let status = RunStatus::new(&facts(dir.path()), None);
                let updated_at = status.updated_at + ahead;
                write(dir.path(), &RunStatus { host: "elsewhere".to_owned(), updated_at, ..status });
                let found = RunStatus::read_settled(dir.path(), &clock).unwrap();
                assert_eq!(found.is_silent(), is_silent, "{ahead} s");
            }
        }
    }

    #[test]
    fn process_that_wrote_no_final_status_counts_as_a_failure_of_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let running = RunStatus::new(&facts(dir.path()), None);
        assert_eq!((running.failures, running.is_alive()), (0, Some(true)));
        std::fs::write(dir.path().join(STATUS), serde_json::to_vec(&running).unwrap()).unwrap();
        let file = StatusFile::start(&facts(dir.path()), Arc::default());
        let progress = Progress {
            iteration: 9,
            residual_norm: 1e-8,
            rhs_norm: 1.0,
            status: Status::Converged,
            safe_point: SafePoint::Any,
        };
        file.conclude(Ended::Converged, &progress);
        drop(file);
        let last = RunStatus::read(dir.path()).unwrap();
        assert_eq!((last.state, last.iteration, last.failures), (RunState::Converged, 9, 1));
        assert_eq!(RunStatus::new(&facts(dir.path()), Some(&last)).failures, 1);
        // No process has number 0, and the number of a dead process may be given to another one.
        assert_eq!(RunStatus { process: 0, ..last.clone() }.is_alive(), Some(false));
        assert_eq!(RunStatus { process_start: Some(1), ..last.clone() }.is_alive(), Some(false));
        assert_eq!(RunStatus { host: "elsewhere".to_owned(), ..last }.is_alive(), None);
    }
}
