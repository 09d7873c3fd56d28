//! A roll call of the ranks, through files: which of them have not come to where others wait.
//!
//! The network is what may be down, so the ranks of a host write to a file of its own in the run's
//! directory, a line at their start and one when they have waited long. The lowest rank that waits
//! reads them all and says which ranks do not. Nothing is written while ranks come in time.
//!
//! A rank that has made no call for long may compute, or wait in a call of the program's own. It
//! says so, too: a rank that then says nothing stands still, whatever the others wait in.
//!
//! Must not know what connects the ranks: their communicators show the calls under way
//! ([`Waits`]).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use recoup_cache::host_name;
use recoup_comm::Waits;
use recoup_core::{Clock, Comm, CommError};
use recoup_io::{ROLL_CALL, SystemClock};
use recoup_model::units::{ParseQuantityError, duration, shown_seconds};

/// A rank that has waited this long says so, or half of the limit if that is shorter.
const LONG: Duration = Duration::from_secs(60);
/// Looks in the time after which a rank says so.
const LOOKS: u32 = 20;
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Ranks of a host that are named.
const NAMED_MAX: usize = 8;
/// Ranks without a line that are listed.
const RANKS_MAX: usize = 1 << 20;

/// States of a rank in its file.
const HERE: &str = "here";
const WAITS: &str = "waits";
const AWAY: &str = "away";
/// Away, and others were not heard of when they should have said so.
const MISSES: &str = "misses";
/// The word behind the number of ranks.
const RANKS: &str = "ranks";

/// The variable with the time after which ranks that wait for each other end the job, for programs
/// that leave the option out.
pub const HANG_LIMIT_VARIABLE: &str = "RECOUP_HANG_LIMIT";

/// Reads the time after which ranks that wait for each other end the job, in seconds.
///
/// # Errors
/// Says what was expected.
pub fn hang_limit(text: &str) -> Result<f64, ParseQuantityError> {
    let expected = "at least 1s, such as 90s, 10min or 1h";
    duration(text).ok().filter(|seconds| *seconds >= 1.0).ok_or(ParseQuantityError { expected })
}

/// Returns the time that [`HANG_LIMIT_VARIABLE`] gives, in seconds, if it is there.
///
/// # Errors
/// As [`hang_limit`].
pub fn hang_limit_of_environment() -> Result<Option<f64>, ParseQuantityError> {
    std::env::var(HANG_LIMIT_VARIABLE).ok().map(|text| hang_limit(&text)).transpose()
}

/// A rank that others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingRank {
    /// Its number.
    pub rank: usize,
    /// Its host, if it has come to the start of the run.
    pub host: Option<String>,
}

/// The ranks that others wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissingRanks {
    /// The ranks; none where none waits.
    pub ranks: Vec<MissingRank>,
    /// Time since a rank has last said so, by the clocks of this machine and of the file system.
    pub said_ago: Duration,
}

/// The files of a run.
#[derive(Clone)]
struct Roll {
    folder: PathBuf,
    rank: usize,
    ranks: usize,
}

/// A word of a rank about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Comes in time, or says nothing.
    Here,
    /// Has waited for long in a call of ours.
    Waits,
    /// Has made no call of ours for long.
    Away,
}

impl Standing {
    fn of(word: &str) -> Self {
        match word {
            WAITS => Self::Waits,
            AWAY | MISSES => Self::Away,
            _ => Self::Here,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Here => HERE,
            Self::Waits => WAITS,
            Self::Away => AWAY,
        }
    }
}

/// The contents of all files.
#[derive(Debug, PartialEq)]
struct Called {
    /// The standing of the ranks that speak; `None` where all are here.
    standing: Option<Standing>,
    /// The ranks of that standing.
    speaking: Vec<usize>,
    missing: Vec<MissingRank>,
    /// A rank has found that others are missing.
    is_missed: bool,
    /// The last write.
    written_at: Option<SystemTime>,
}

/// Returns the ranks that others wait for in the run of this folder, which may have ended since.
#[must_use]
pub fn missing(run: &Path) -> MissingRanks {
    let called = read(&run.join(ROLL_CALL), None);
    let said_ago = called.written_at.and_then(|at| SystemTime::now().duration_since(at).ok()).unwrap_or_default();
    let ranks = if called.is_missed { called.missing } else { Vec::new() };
    MissingRanks { ranks, said_ago }
}

/// Returns the ranks by hosts, as a person reads them.
#[must_use]
pub fn by_host(missing: &[MissingRank]) -> String {
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

/// Reads the files of `ranks` ranks, or of as many as they say.
fn read(folder: &Path, ranks: Option<usize>) -> Called {
    let mut said: BTreeMap<usize, (String, String)> = BTreeMap::new();
    let mut ranks_said = None;
    let mut written_at = None;
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let host = file.file_name().to_string_lossy().into_owned();
        let bytes = fs::read(file.path()).unwrap_or_default();
        written_at = written_at.max(file.metadata().and_then(|found| found.modified()).ok());
        let text = String::from_utf8_lossy(&bytes);
        for (number, word) in text.lines().filter_map(|line| line.split_once(' ')) {
            match number.parse::<usize>() {
                Ok(number) if word == RANKS => ranks_said = Some(number),
                Ok(rank) => drop(said.insert(rank, (host.clone(), word.to_owned()))),
                Err(_) => {}
            }
        }
    }
    // Older builds do not say how many there are.
    let ranks = ranks.or(ranks_said).unwrap_or_else(|| said.keys().last().map_or(0, |last| last + 1));
    let of = |standing: Standing| {
        let stand_so = said.iter().filter(move |(rank, (_, word))| **rank < ranks && Standing::of(word) == standing);
        stand_so.map(|(rank, _)| *rank).collect::<Vec<_>>()
    };
    let [waiting, away] = [Standing::Waits, Standing::Away].map(of);
    // Whoever is away lets those wait that wait, and does not stand still.
    let (standing, speaking) = match (waiting.is_empty(), away.is_empty()) {
        (false, _) => (Some(Standing::Waits), waiting),
        (true, false) => (Some(Standing::Away), away),
        (true, true) => (None, Vec::new()),
    };
    // The number is read from a file: of one that is damaged, no more ranks are named than these.
    let missing = (0..ranks.min(said.len() + RANKS_MAX)).filter(|rank| speaking.binary_search(rank).is_err());
    let host = |rank: usize| said.get(&rank).map(|(host, _)| host.clone());
    let missing = missing.map(|rank| MissingRank { rank, host: host(rank) }).collect();
    let is_missed = standing == Some(Standing::Waits) || said.values().any(|(_, word)| word == MISSES);
    Called { standing, speaking, missing, is_missed, written_at }
}

impl Roll {
    /// Removes what an earlier job has written. On rank 0, before any rank writes.
    fn prepare(&self) {
        fs::remove_dir_all(&self.folder).ok();
        if let Err(error) = fs::create_dir_all(&self.folder) {
            tracing::debug!(%error, "no roll call");
        }
    }

    fn write(&self, word: &str) {
        let mut options = fs::File::options();
        let host = host_name().unwrap_or_else(|_| "unknown".to_owned());
        let file = options.create(true).append(true).open(self.folder.join(host.replace('/', "_")));
        // One write for each line: those of several ranks stay whole.
        let line = format!("{} {word}\n", self.rank);
        if let Err(error) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
            tracing::debug!(%error, "no roll call");
        }
    }

    /// Writes that this rank has come, and rank 0 how many there are.
    fn begin(&self) {
        if self.rank == 0 {
            Self { rank: self.ranks, ..self.clone() }.write(RANKS);
        }
        self.write(HERE);
    }

    /// Returns what the lowest of the ranks says that stand so.
    fn sentence(&self, own: Standing, waited: Duration) -> Option<String> {
        let Called { standing, speaking, missing, .. } = read(&self.folder, Some(self.ranks));
        if standing != Some(own) || speaking.first() != Some(&self.rank) {
            return None;
        }
        let waited = told(waited);
        let of_all = format!("{} of {} ranks", speaking.len(), self.ranks);
        match (own, missing.is_empty()) {
            (Standing::Waits, true) => {
                let all = self.ranks;
                let network = "the network between hosts may be down";
                Some(format!("all {all} ranks have waited for each other for {waited}: {network}"))
            }
            (Standing::Waits, false) => Some(format!("{of_all} have waited for {waited} for {}", by_host(&missing))),
            // The program computes.
            (_, true) => None,
            (_, false) => {
                self.write(MISSES);
                Some(format!("{of_all} have made no call for {waited}, and nothing is heard of {}", by_host(&missing)))
            }
        }
    }

    /// Returns whether some rank stands still, as far as the files say.
    fn lacks_rank(&self) -> bool {
        !read(&self.folder, Some(self.ranks)).missing.is_empty()
    }
}

/// A rank whose waits are watched.
pub struct WatchedRank {
    /// The folder of the run, in the directory of versions.
    pub run: PathBuf,
    /// The calls of this rank under way.
    pub waits: Arc<Waits>,
    /// The wait after which the job ends with code 75; none: never.
    pub limit: Option<Duration>,
    /// The name of the option that gives the limit, for people.
    pub option: &'static str,
    /// Prints a line for people.
    pub tell: fn(&str),
    /// Ends the job with code 75.
    pub end: fn(),
}

/// Watches how long this rank waits, from a thread of its own, until it is dropped.
pub struct RollCall {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The folder to remove at the end; on rank 0.
    folder: Option<PathBuf>,
}

impl RollCall {
    /// Begins to watch. A rank that has waited for the limit ends the job. `None` for a job of one
    /// rank. Collective, with the directory of the run locked.
    ///
    /// # Errors
    /// [`CommError`].
    pub fn start(watched: WatchedRank, comm: &dyn Comm) -> Result<Option<Self>, CommError> {
        if comm.size() == 1 {
            return Ok(None);
        }
        let roll = Roll { folder: watched.run.join(ROLL_CALL), rank: comm.rank(), ranks: comm.size() };
        if roll.rank == 0 {
            roll.prepare();
        }
        comm.barrier()?;
        let folder = (roll.rank == 0).then(|| roll.folder.clone());
        let (end, ended) = mpsc::channel();
        let long = watched.limit.map_or(LONG, |limit| LONG.min(limit / 2));
        let watch = move || {
            roll.begin();
            let clock = SystemClock::new();
            let mut watch = CallWatch { called_at: clock.now(), ..CallWatch::default() };
            let waits = watched.waits.clone();
            let mut vigil = Vigil { roll, watched, long, state: VigilState::AllCome };
            while ended.recv_timeout(long / LOOKS) == Err(RecvTimeoutError::Timeout) {
                vigil.look(watch.look(&waits, clock.now()));
            }
        };
        let thread = std::thread::Builder::new().name("recoup-roll-call".to_owned()).spawn(watch).ok();
        Ok(Some(Self { end: Some(end), thread, folder }))
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

/// The calls of a rank, as they are seen from look to look.
#[derive(Default)]
struct CallWatch {
    /// The calls under way at the last look, and when each was seen first.
    first_seen: BTreeMap<u64, Duration>,
    /// The number of calls begun up to the last look.
    begun: u64,
    /// The last look that found a call under way, or a new one.
    called_at: Duration,
}

/// The standing of a rank, and how long it has had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stay {
    standing: Standing,
    waited: Duration,
}

impl CallWatch {
    /// Returns how long the longest call has been under way, from the first look at it on; where
    /// none is, how long none was.
    fn look(&mut self, waits: &Waits, now: Duration) -> Stay {
        let under_way = waits.under_way();
        let begun = waits.begun();
        if begun != self.begun || !under_way.is_empty() {
            (self.begun, self.called_at) = (begun, now);
        }
        self.first_seen.retain(|call, _| under_way.contains(call));
        let seen = under_way.iter().map(|call| *self.first_seen.entry(*call).or_insert(now));
        match seen.min() {
            Some(first) => Stay { standing: Standing::Waits, waited: now.saturating_sub(first) },
            None => Stay { standing: Standing::Away, waited: now.saturating_sub(self.called_at) },
        }
    }
}

/// The waits of a rank, one after the other.
struct Vigil {
    roll: Roll,
    watched: WatchedRank,
    long: Duration,
    state: VigilState,
}

enum VigilState {
    /// This rank does not wait for long.
    AllCome,
    /// The files are written and read, by a thread: a shared directory may not answer.
    Asking(JoinHandle<Option<String>>),
    /// All is said, by this rank if it is the lowest.
    Said { here: bool },
    /// All ranks were heard at the limit: the program computes.
    Excused,
}

impl Vigil {
    fn look(&mut self, stay: Stay) {
        let Stay { standing, waited } = stay;
        if waited < self.long {
            self.end_wait();
            return;
        }
        let is_late = waited > 2 * self.long && standing == Standing::Waits;
        self.state = match std::mem::replace(&mut self.state, VigilState::AllCome) {
            VigilState::AllCome => VigilState::Asking(self.ask(stay)),
            VigilState::Asking(asked) if asked.is_finished() => {
                let sentence = asked.join().ok().flatten();
                sentence.iter().for_each(|sentence| (self.watched.tell)(sentence));
                VigilState::Said { here: sentence.is_some() }
            }
            VigilState::Asking(_) if is_late && self.roll.rank == 0 => {
                let folder = self.roll.folder.display();
                (self.watched.tell)(&format!("rank 0 has waited for {}, and {folder} does not answer", told(waited)));
                VigilState::Said { here: true }
            }
            state => state,
        };
        let is_speaker = matches!(self.state, VigilState::Said { here: true });
        // The others end the job only where the one that speaks does not.
        let patience = if is_speaker { Duration::ZERO } else { self.long / 2 };
        if self.watched.limit.is_some_and(|limit| waited >= limit + patience) {
            self.end_job(standing, is_speaker);
        }
    }

    /// Ends the job at the limit, unless the program may compute.
    fn end_job(&mut self, standing: Standing, is_speaker: bool) {
        if standing == Standing::Away {
            if matches!(self.state, VigilState::Excused) {
                return;
            }
            if !self.roll.lacks_rank() {
                self.state = VigilState::Excused;
                return;
            }
        }
        if is_speaker {
            self.conclude();
        }
        (self.watched.end)();
    }

    fn end_wait(&mut self) {
        match std::mem::replace(&mut self.state, VigilState::AllCome) {
            VigilState::AllCome => return,
            VigilState::Said { here: true } => (self.watched.tell)("all ranks have come: the run continues"),
            _ => {}
        }
        self.roll.write(HERE);
    }

    /// Says that the job ends, and removes the files: no rank waits any more.
    fn conclude(&self) {
        let end = "the job ends with code 75; the same command resumes from the newest version";
        (self.watched.tell)(&format!("{}: {end}", self.watched.option));
        let folder = self.roll.folder.clone();
        std::thread::spawn(move || fs::remove_dir_all(folder));
        // `mpirun` passes on what a process printed only while it lives.
        std::thread::sleep(LAST_WORDS);
    }

    /// Says how this rank stands, and finds out who does not, while the others say so, too.
    fn ask(&self, Stay { standing, waited }: Stay) -> JoinHandle<Option<String>> {
        let roll = self.roll.clone();
        let others = self.long / LOOKS * 4;
        std::thread::spawn(move || {
            roll.write(standing.word());
            std::thread::sleep(others);
            roll.sentence(standing, waited + others)
        })
    }
}

fn told(waited: Duration) -> String {
    shown_seconds(waited.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ranks_are_named_by_host_and_damage_is_passed_over() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(ROLL_CALL)).unwrap();
        let write = |host: &str, text: &[u8]| fs::write(dir.path().join(ROLL_CALL).join(host), text).unwrap();
        write("a", b"5 ranks\n0 here\n1 here\n0 waits\n99 waits\nno line\n\xff 3 waits\n1 wai");
        write("b", b"2 here\n2 waits\n2 here\n3 here\n");
        let numbers = |missing: &[MissingRank]| missing.iter().map(|missing| missing.rank).collect::<Vec<_>>();
        let found = missing(dir.path());
        assert_eq!(numbers(&found.ranks), [1, 2, 3, 4]);
        assert!(found.said_ago < Duration::from_secs(60));
        assert_eq!(by_host(&found.ranks), "rank 1 on a; rank 4 on a host that never came; ranks 2, 3 on b");
        write("a", b"99999999999999999 ranks\n0 waits\n1 here\n");
        assert!(missing(dir.path()).ranks.len() <= 4 + RANKS_MAX);
        write("a", b"5 ranks\n0 here\n1 here\n");
        assert_eq!(missing(dir.path()).ranks, [], "no rank waits");
        assert_eq!(missing(&dir.path().join("none")), MissingRanks::default());
    }

    /// Ranks that come back from their own work write one after the other.
    #[test]
    fn a_rank_is_missed_by_those_away_only_if_one_of_them_says_so() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(ROLL_CALL)).unwrap();
        let roll = |rank| Roll { folder: dir.path().join(ROLL_CALL), rank, ranks: 3 };
        let found = || missing(dir.path()).ranks.iter().map(|missing| missing.rank).collect::<Vec<_>>();
        let none: [usize; 0] = [];
        (0..3).for_each(|rank| roll(rank).begin());
        (0..2).for_each(|rank| roll(rank).write(AWAY));
        assert_eq!(found(), none);
        let said = [0, 1].map(|rank| roll(rank).sentence(Standing::Away, LONG));
        let host = host_name().unwrap();
        let expected = format!("2 of 3 ranks have made no call for 60.00 s, and nothing is heard of rank 2 on {host}");
        assert_eq!(said, [Some(expected), None]);
        assert_eq!(found(), [2]);
        roll(0).write(AWAY);
        roll(2).write(AWAY);
        assert_eq!((found(), roll(0).sentence(Standing::Away, LONG)), (vec![], None), "the program computes");
        roll(1).write(WAITS);
        assert_eq!(found(), [0, 2], "rank 1 waits for both");
    }

    #[test]
    fn a_rank_waits_as_long_as_the_same_call_is_under_way_and_is_away_as_long_as_none_is() {
        let waits = Waits::default();
        let mut watch = CallWatch::default();
        let mut look = |now| {
            let Stay { standing, waited } = watch.look(&waits, Duration::from_secs(now));
            (standing, waited.as_secs())
        };
        assert_eq!(look(5), (Standing::Away, 5));
        let first = waits.begin();
        assert_eq!(look(10), (Standing::Waits, 0));
        let second = waits.begin();
        assert_eq!(look(12), (Standing::Waits, 2));
        drop(first);
        assert_eq!(look(15), (Standing::Waits, 3), "the call that came later is under way since 12");
        drop(second);
        assert_eq!(look(16), (Standing::Away, 1));
        drop(waits.begin());
        assert_eq!(look(18), (Standing::Away, 0), "a call was begun and ended between two looks");
    }
}
