//! `--failures kill`: this program runs itself as a child, kills it with SIGKILL at exponential
//! times, and starts it again until it comes to its end.
//!
//! Failures arrive while a life restores, computes or saves. The time a process takes to start and
//! to read its problem is not part of the modelled job and is not counted. If lives are too short
//! to make progress, the next ones get more time, and the report says so.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use recoup::SystemClock;
use recoup::cache::{Dispensable, RunMemory};
use recoup::core::{Clock, FailureSource, Phase};
use recoup::io::PrivateDir;
use recoup::model::failures::Exponential;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::account::RunCosts;
use crate::exit::Exit;
use crate::inject::heartbeat::HeartbeatCounters;
use crate::inject::lives::LifeSums;
use crate::options::FailureChoice;
use crate::options::protection::ProtectionArgs;
use crate::options::tiers::refused;
use crate::results::Results;
use crate::solved::SolveReport;
use crate::tell::tell;

/// Limit on the number of lives.
const LIVES_MAX: u32 = 100_000;
/// LifeHistory in a row without a newer version before the next ones are given more time.
const PATIENCE: u32 = 25;
/// LifeHistory whose first iterations are reported.
const LIVES_SHOWN: usize = 12;
/// Time between two looks at the child.
const POLL: Duration = Duration::from_micros(500);

/// The report of the last life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ChildResult {
    pub(crate) iterations: u64,
    pub(crate) converged: bool,
    pub(crate) reason: Option<String>,
    pub(crate) relative_residual: f64,
    pub(crate) results: Results,
    account: RunCosts,
}

impl ChildResult {
    /// The result of a life.
    pub(crate) fn new(solve: &SolveReport, results: Results, account: RunCosts) -> Self {
        let iterations = solve.iterations;
        let converged = solve.converged;
        let reason = solve.reason.clone();
        let relative_residual = solve.relative_residual;
        Self { iterations, converged, reason, relative_residual, results, account }
    }

    /// Leaves the result beside the heartbeat.
    pub(crate) fn write(&self, heartbeat: &Path) -> Result<()> {
        let path = result_path(heartbeat);
        std::fs::write(&path, serde_json::to_vec(self)?).with_context(|| format!("cannot write {}", path.display()))
    }

    fn read(heartbeat: &Path) -> Result<Self> {
        let path = result_path(heartbeat);
        let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

fn result_path(heartbeat: &Path) -> PathBuf {
    heartbeat.with_extension("json")
}

/// A child does not outlive the parent that watches it.
pub(crate) fn die_with_parent() {
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        tracing::warn!(%error, "this process will outlive its parent");
    }
}

/// All lives of a run that was killed as a whole.
pub(crate) struct Killed {
    /// The report of the last life.
    pub(crate) last: ChildResult,
    /// Exit of that life.
    pub(crate) exit: Exit,
    /// The sums of all.
    pub(crate) account: RunCosts,
}

/// Runs, kills and restarts until a life comes to its end, or `stop` is raised; `memory` goes with
/// a node that is killed.
///
/// # Errors
/// When a child cannot be started or fails by itself: with its exit code.
pub(crate) fn lives(
    args: &ProtectionArgs,
    iteration_seconds: Option<f64>,
    memory: &RunMemory,
    stop: &Arc<AtomicBool>,
) -> Result<Killed> {
    let folder = Scratch::create()?;
    let heartbeat = folder.0.path().join("heartbeat");
    let clock = SystemClock::new();
    let mtti = Duration::from_secs_f64(args.mtti_seconds().unwrap_or(f64::MAX).min(1e9));
    let mut reaper = Reaper { kills: Exponential::new(mtti, args.seed), lived: Duration::ZERO, stretch: 1 };
    let mut sums = LifeSums::new(iteration_seconds);
    let mut origins = Vec::new();
    for _ in 0..LIVES_MAX {
        // A life that dies before its first beat must not leave its predecessor's.
        remove_if_there(&heartbeat)?;
        remove_if_there(&result_path(&heartbeat))?;
        let mut child = spawn(&heartbeat)?;
        match reaper.watch(&mut child, &heartbeat, &clock, stop)? {
            Death::Killed => {
                if args.failures == Some(FailureChoice::KillNode) {
                    // A node that dies takes its memory with it.
                    memory.remove(&Dispensable::given_up()).map_err(refused)?;
                }
                let beat = HeartbeatCounters::read(&heartbeat);
                origins.push(beat.restored);
                sums.add(&beat, 1);
                if sums.idle >= PATIENCE {
                    reaper.stretch = reaper.stretch.saturating_mul(2);
                    sums.idle = 0;
                    tell(format_args!(
                        "{PATIENCE} lives in a row saved nothing: an MTTI of {} s is too short for this run; \
                         the next failures come {} times as late",
                        mtti.as_secs_f64(),
                        reaper.stretch
                    ));
                }
            }
            Death::Natural { code } => {
                let ends = [Exit::Done, Exit::NotConverged, Exit::Stopped];
                let Some(exit) = ends.into_iter().find(|exit| code == Some(*exit as i32)) else {
                    return Err(child_failed(code));
                };
                let last = ChildResult::read(&heartbeat)?;
                origins.push(last.account.resumed_from.unwrap_or(0));
                let mut account = sums.finish(&last.account, clock.now());
                account.notes.insert(0, told(&origins));
                return Ok(Killed { account, last, exit });
            }
        }
    }
    bail!("{LIVES_MAX} lives and no end: the MTTI is too short")
}

/// Lists the versions from which the lives of a run began.
fn told(origins: &[u64]) -> String {
    let name = |version: &u64| if *version == 0 { "the start".to_owned() } else { version.to_string() };
    let shown: Vec<String> = origins.iter().take(LIVES_SHOWN).map(name).collect();
    let more = origins.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("lives continued from: {}{more}", shown.join(", "))
}

fn child_failed(code: Option<i32>) -> anyhow::Error {
    let exit = match code {
        Some(2) => Exit::Usage,
        Some(4) => Exit::NoCheckpoint,
        Some(5) => Exit::NotAvailable,
        _ => Exit::Failed,
    };
    let how = code.map_or_else(|| "was ended by somebody else".to_owned(), |code| format!("failed with code {code}"));
    exit.because(format!("the solver's process {how}; its reason stands above"))
}

fn remove_if_there(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The same command, as a child.
fn spawn(heartbeat: &Path) -> Result<Child> {
    let program = std::env::current_exe().context("finding this program")?;
    Command::new(program)
        .args(std::env::args_os().skip(1))
        .arg("--child")
        .arg(heartbeat)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("starting the solver's process")
}

/// The end of a life.
enum Death {
    /// Kill by the parent.
    Killed,
    /// Natural end, with this exit code.
    Natural { code: Option<i32> },
}

/// Knows when to kill.
struct Reaper {
    kills: Exponential,
    /// Time all lives have spent restoring, computing and saving.
    lived: Duration,
    /// Makes lives longer where they lead nowhere.
    stretch: u32,
}

impl Reaper {
    fn watch(&mut self, child: &mut Child, heartbeat: &Path, clock: &SystemClock, stop: &AtomicBool) -> Result<Death> {
        let mut started: Option<Duration> = None;
        let mut is_told = false;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Death::Natural { code: status.code() });
            }
            if stop.load(Ordering::Acquire) && !is_told {
                is_told = true;
                kill_process(Pid::from_child(child), Signal::TERM).context("stopping the solver's process")?;
            }
            if started.is_none() && HeartbeatCounters::read(heartbeat).started > 0 {
                started = Some(clock.now());
            }
            let due = self.kills.next_at().saturating_sub(self.lived) * self.stretch;
            if !is_told && started.is_some_and(|at| clock.now() >= at + due) {
                return self.kill(child);
            }
            clock.sleep_until(clock.now() + POLL);
        }
    }

    fn kill(&mut self, child: &mut Child) -> Result<Death> {
        use std::os::unix::process::ExitStatusExt;
        child.kill().context("killing the solver's process")?;
        let status = child.wait()?;
        if status.signal().is_none() {
            return Ok(Death::Natural { code: status.code() });
        }
        self.lived = self.kills.next_at();
        self.kills.due(self.lived, 0, Phase::Computing);
        Ok(Death::Killed)
    }
}

/// A directory for the heartbeat, gone with this value.
///
/// Everybody may write to the directory it is made in, so its name is drawn, and what is there
/// already is not taken.
struct Scratch(PrivateDir);

impl Scratch {
    fn create() -> Result<Self> {
        let drawn = RandomState::new().hash_one("");
        let path = std::env::temp_dir().join(format!("recoup-lives-{:016x}", drawn));
        Ok(Self(PrivateDir::make_new(path)?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let path = self.0.path();
        if let Err(error) = std::fs::remove_dir_all(path) {
            tracing::warn!(%error, "{} is left over", path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    /// The name followed from the process's number, and a directory that was there was taken,
    /// whoever had made it.
    #[test]
    fn a_scratch_directory_is_new_and_closed_to_others() {
        let one = Scratch::create().unwrap();
        let other = Scratch::create().unwrap();
        let paths = [one.0.path().to_owned(), other.0.path().to_owned()];
        assert_ne!(paths[0], paths[1]);
        assert!(paths.iter().all(|path| std::fs::metadata(path).unwrap().mode() & 0o7777 == 0o700));
        drop((one, other));
        assert!(paths.iter().all(|path| !path.exists()));
    }
}
