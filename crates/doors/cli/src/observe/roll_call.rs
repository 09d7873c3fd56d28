//! A roll call of the ranks, through files: which of them have not come to where others wait.
//!
//! The network is what may be down, so the ranks of a host write to a file of its own in the run's
//! directory, a line at their start and one when they have waited long. The lowest rank that waits
//! reads them all and says which ranks do not. Nothing is written while ranks come in time.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup::core::Comm;
use recoup::io::ROLL_CALL;

use crate::exit::Exit;
use crate::observe::status_file::host;
use crate::output::seconds;
use crate::ranks::{abort, longest_wait};
use crate::tell::tell;

/// A rank that has waited this long says so, or half of the limit if that is shorter.
const LONG: Duration = Duration::from_secs(60);
/// Looks in the time after which a rank says so.
const LOOKS: u32 = 20;
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Ranks of a host that are named.
const NAMED_MAX: usize = 8;

/// States of a rank in its file.
const WAITS: &str = "waits";
const HERE: &str = "here";

/// A rank that others wait for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingRank {
    pub(crate) rank: usize,
    /// Its host, if it has come to the start of the run.
    pub(crate) host: Option<String>,
}

/// The files of a run.
#[derive(Clone)]
struct Roll {
    folder: PathBuf,
    rank: usize,
    ranks: usize,
}

/// The contents of all files.
#[derive(Debug, PartialEq)]
struct Called {
    waiting: Vec<usize>,
    missing: Vec<MissingRank>,
}

/// Removes what an earlier job has written. Called on rank 0, before any rank begins its roll call.
pub(crate) fn prepare(run: &Path) {
    let folder = run.join(ROLL_CALL);
    fs::remove_dir_all(&folder).ok();
    if let Err(error) = fs::create_dir_all(&folder) {
        tracing::debug!(%error, "no roll call");
    }
}

/// Returns the ranks that others wait for, in a job of `ranks` ranks.
pub(crate) fn missing(run: &Path, ranks: usize) -> Vec<MissingRank> {
    let called = read(&run.join(ROLL_CALL), ranks);
    if called.waiting.is_empty() { Vec::new() } else { called.missing }
}

/// Returns the ranks by hosts, as a person reads them.
pub(crate) fn by_host(missing: &[MissingRank]) -> String {
    let mut hosts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for MissingRank { rank, host } in missing {
        hosts.entry(host.as_deref().unwrap_or("a host that never came")).or_default().push(*rank);
    }
    let named = |(host, ranks): (&str, Vec<usize>)| {
        let word = if ranks.len() == 1 { "rank" } else { "ranks" };
        let numbers: Vec<String> = ranks.iter().take(NAMED_MAX).map(ToString::to_string).collect();
        let more = ranks.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{word} {}{more} on {host}", numbers.join(", "))
    };
    hosts.into_iter().map(named).collect::<Vec<_>>().join("; ")
}

fn read(folder: &Path, ranks: usize) -> Called {
    let mut hosts = vec![None; ranks];
    let mut waits = vec![false; ranks];
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let host = file.file_name().to_string_lossy().into_owned();
        let bytes = fs::read(file.path()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        for (rank, state) in text.lines().filter_map(|line| line.split_once(' ')) {
            if let Some(rank) = rank.parse::<usize>().ok().filter(|rank| *rank < ranks) {
                hosts[rank] = Some(host.clone());
                waits[rank] = state == WAITS;
            }
        }
    }
    let waiting = (0..ranks).filter(|rank| waits[*rank]).collect();
    let missing = hosts.into_iter().enumerate().filter(|(rank, _)| !waits[*rank]);
    Called { waiting, missing: missing.map(|(rank, host)| MissingRank { rank, host }).collect() }
}

impl Roll {
    fn write(&self, state: &str) {
        let mut options = fs::File::options();
        let file = options.create(true).append(true).open(self.folder.join(host().replace('/', "_")));
        // One write for each line: those of several ranks stay whole.
        let line = format!("{} {state}\n", self.rank);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            tracing::debug!(%error, "no roll call");
        }
    }

    /// Returns what the lowest waiting rank says.
    fn sentence(&self, waited: Duration) -> Option<String> {
        let Called { waiting, missing } = read(&self.folder, self.ranks);
        if waiting.first().is_some_and(|lowest| *lowest < self.rank) {
            return None;
        }
        let waited = told(waited);
        Some(if missing.is_empty() {
            format!(
                "all {} ranks have waited for each other for {waited}: the network between hosts may be down",
                self.ranks
            )
        } else {
            format!("{} of {} ranks have waited for {waited} for {}", waiting.len(), self.ranks, by_host(&missing))
        })
    }
}

/// Watches how long this rank waits, from a thread of its own.
pub(crate) struct RollCall {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The folder to remove at the end; on rank 0.
    folder: Option<PathBuf>,
}

impl RollCall {
    /// Begins to watch. A rank that has waited for `limit` ends the job with code 75.
    pub(crate) fn start(run: &Path, comm: &dyn Comm, limit: Option<Duration>) -> Self {
        let roll = Roll { folder: run.join(ROLL_CALL), rank: comm.rank(), ranks: comm.size() };
        let folder = (comm.rank() == 0).then(|| roll.folder.clone());
        let (end, ended) = mpsc::channel();
        let long = limit.map_or(LONG, |limit| LONG.min(limit / 2));
        let watch = move || {
            roll.write(HERE);
            let mut vigil = Vigil { roll, long, limit, state: VigilState::AllCome };
            while ended.recv_timeout(long / LOOKS) == Err(RecvTimeoutError::Timeout) {
                vigil.look(longest_wait());
            }
        };
        let thread = std::thread::Builder::new().name("recoup-roll-call".to_owned()).spawn(watch).ok();
        Self { end: Some(end), thread, folder }
    }
}

impl Drop for RollCall {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
        if let Some(folder) = &self.folder {
            fs::remove_dir_all(folder).ok();
        }
    }
}

/// The waits of a rank, one after the other.
struct Vigil {
    roll: Roll,
    long: Duration,
    limit: Option<Duration>,
    state: VigilState,
}

enum VigilState {
    /// This rank does not wait for long.
    AllCome,
    /// The files are written and read, by a thread: a shared directory may not answer.
    Asking(JoinHandle<Option<String>>),
    /// All is said, by this rank if it is the lowest.
    Said { here: bool },
}

impl Vigil {
    fn look(&mut self, waited: Duration) {
        if waited < self.long {
            self.end_wait();
            return;
        }
        let is_late = waited > 2 * self.long;
        self.state = match std::mem::replace(&mut self.state, VigilState::AllCome) {
            VigilState::AllCome => VigilState::Asking(self.ask(waited)),
            VigilState::Asking(asked) if asked.is_finished() => {
                let sentence = asked.join().ok().flatten();
                sentence.iter().for_each(tell);
                VigilState::Said { here: sentence.is_some() }
            }
            VigilState::Asking(_) if is_late && self.roll.rank == 0 => {
                let folder = self.roll.folder.display();
                tell(format_args!("rank 0 has waited for {}, and {folder} does not answer", told(waited)));
                VigilState::Said { here: true }
            }
            state => state,
        };
        let is_speaker = matches!(self.state, VigilState::Said { here: true });
        // The others end the job only where the one that speaks does not.
        let patience = if is_speaker { Duration::ZERO } else { self.long / 2 };
        if self.limit.is_some_and(|limit| waited >= limit + patience) {
            if is_speaker {
                tell("--hang-limit: the job ends with code 75; the same command resumes from the newest version");
                // `mpirun` passes on what a process printed only while it lives.
                std::thread::sleep(LAST_WORDS);
            }
            abort(Exit::Stopped);
        }
    }

    fn end_wait(&mut self) {
        match std::mem::replace(&mut self.state, VigilState::AllCome) {
            VigilState::AllCome => return,
            VigilState::Said { here: true } => tell("all ranks have come: the run continues"),
            _ => {}
        }
        self.roll.write(HERE);
    }

    /// Says that this rank waits, and finds out who does not, while the others say so, too.
    fn ask(&self, waited: Duration) -> JoinHandle<Option<String>> {
        let roll = self.roll.clone();
        let others = self.long / LOOKS * 4;
        std::thread::spawn(move || {
            roll.write(WAITS);
            std::thread::sleep(others);
            roll.sentence(waited + others)
        })
    }
}

fn told(waited: Duration) -> String {
    seconds(waited.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_named_by_host_and_damage_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        prepare(dir.path());
        let write = |host: &str, text: &[u8]| fs::write(dir.path().join(ROLL_CALL).join(host), text).unwrap();
        write("a", b"0 here\n1 here\n0 waits\n99 waits\nno line\n\xff 3 waits\n1 wai");
        write("b", b"2 here\n2 waits\n2 here\n3 here\n");
        let numbers = |missing: &[MissingRank]| missing.iter().map(|missing| missing.rank).collect::<Vec<_>>();
        let found = missing(dir.path(), 5);
        assert_eq!(numbers(&found), [1, 2, 3, 4]);
        assert_eq!(by_host(&found), "rank 1 on a; rank 4 on a host that never came; ranks 2, 3 on b");
        write("a", b"0 here\n1 here\n");
        assert_eq!(missing(dir.path(), 5), [], "no rank waits");
        assert_eq!(missing(&dir.path().join("none"), 5), []);
    }
}
