//! The history of a run: `history.log` next to its versions, to which each of its processes appends
//! what happened. [io/FORMAT.md](../../../../../io/FORMAT.md#historylog) states the layout.
//!
//! Promises: the solver puts an entry into memory and waits for no file; the file is bounded; what
//! cannot be written is left out, and the run continues; a line that is damaged or cut short costs
//! itself. A process that is killed loses the entries of its last tenth of a second.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recoup::SystemClock;
use recoup::core::{Clock, Decision, Observation, Plan, Policy, Progress};
use recoup::io::{HISTORY, open_without_links};
use recoup::pipeline::{DecisionRecord, RunReport};
use serde::{Deserialize, Serialize};

use crate::decision::DecisionJson;

/// The layout of lines and entries.
const LAYOUT: u32 = 1;
/// Digits of the checksum before each entry, and the blank behind them.
const CHECKSUM_CHARS: usize = 9;
/// No more is appended to a longer file, and no more is read.
const FILE_BYTES_MAX: u64 = 8 << 20;
/// Entries that wait to be written, at most: where a disk hangs, further ones are left out.
const PENDING_MAX: usize = 4096;
/// Entries of a kind until every second one is left out, and again until three of four are.
const ENTRIES_PER_OCTAVE: u64 = 512;

/// The place of an entry in the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct HistoryPoint {
    /// Time that processes of the run have taken so far; the time between two of them is left out.
    pub(crate) seconds: f64,
    /// Iterations executed so far, by all processes.
    pub(crate) executed: u64,
    /// Index of the last iteration.
    pub(crate) iteration: u64,
    /// `||r|| / ||b||`; `None` where it is not known or not finite.
    pub(crate) relative_residual: Option<f64>,
    /// Time between steps so far: checkpoints and decisions.
    pub(crate) blocking_seconds: f64,
}

/// The facts of a process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessFacts {
    pub(crate) layout: u32,
    /// Unix seconds.
    pub(crate) at: f64,
    pub(crate) process: u32,
    pub(crate) host: String,
    pub(crate) ranks: usize,
    /// Method and problem.
    pub(crate) title: String,
    pub(crate) method: String,
    pub(crate) pc: String,
    pub(crate) unknowns: u64,
    pub(crate) scheme: String,
    pub(crate) interval: String,
    pub(crate) rtol: f64,
}

/// The costs of a process that came to its end, as it measured them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProcessCosts {
    pub(crate) total_seconds: f64,
    pub(crate) blocking_seconds: f64,
    pub(crate) recovery_seconds: f64,
    pub(crate) lost_seconds: f64,
    pub(crate) lost_iterations: u64,
}

impl ProcessCosts {
    pub(crate) fn of(report: &RunReport) -> Self {
        Self {
            total_seconds: report.seconds_total,
            blocking_seconds: report.seconds_blocking,
            recovery_seconds: report.seconds_recovery,
            lost_seconds: report.seconds_lost_work,
            lost_iterations: report.lost,
        }
    }
}

/// A version, and the bytes of its values and of its payloads, of all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedBytes {
    pub(crate) version: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
}

/// A version that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SavedVersion {
    pub(crate) version: u64,
    /// Bytes of its values, and of its payloads, of all ranks.
    pub(crate) raw_bytes: u64,
    pub(crate) stored_bytes: u64,
    /// Sums over all versions of the run so far.
    pub(crate) versions: u64,
    pub(crate) versions_raw_bytes: u64,
    pub(crate) versions_stored_bytes: u64,
    /// Time behind the solver, from draft to publication.
    pub(crate) versions_seconds: f64,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum HistoryKind {
    /// A process takes up the run.
    Begin(ProcessFacts),
    /// An iteration ended.
    Step,
    /// A failure struck inside the process.
    Failure,
    /// The solver continues from a version.
    Resume,
    Version(SavedVersion),
    Decision {
        decision: DecisionJson,
    },
    /// The run ended.
    End {
        ended: String,
        costs: ProcessCosts,
    },
}

/// A line of the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct HistoryEntry {
    #[serde(flatten)]
    pub(crate) at: HistoryPoint,
    #[serde(flatten)]
    pub(crate) kind: HistoryKind,
}

impl HistoryEntry {
    /// Returns the line, with its end.
    fn seal(&self) -> Option<String> {
        let text = serde_json::to_string(self).ok()?;
        Some(format!("{:08x} {text}\n", crc32c::crc32c(text.as_bytes())))
    }

    /// Reads a line without its end; `None` if it is damaged.
    fn open(line: &[u8]) -> Option<Self> {
        let (checksum, text) = line.split_at_checked(CHECKSUM_CHARS)?;
        let checksum = std::str::from_utf8(checksum).ok()?.strip_suffix(' ')?;
        let is_whole = checksum == format!("{:08x}", crc32c::crc32c(text));
        serde_json::from_slice(text).ok().filter(|_| is_whole)
    }
}

/// The contents of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RecordedHistory {
    pub(crate) entries: Vec<HistoryEntry>,
    /// Lines that are damaged, and left out.
    pub(crate) damaged: usize,
    /// The file ends in the middle of a line.
    pub(crate) is_cut: bool,
}

impl RecordedHistory {
    /// Reads the history of the run in `folder`; an empty one if there is none.
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let file = match open_without_links(File::options().read(true), &folder.join(HISTORY)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let mut recorded = Self { is_cut: !bytes.is_empty() && !bytes.ends_with(b"\n"), ..Self::default() };
        let lines = bytes.split_inclusive(|&byte| byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
        for line in lines.filter(|line| !line.is_empty()) {
            match HistoryEntry::open(line) {
                Some(entry) => recorded.entries.push(entry),
                None => recorded.damaged += 1,
            }
        }
        recorded
    }
}

/// The writing end, shared by the solver, the checkpoint worker and the thread that writes.
#[derive(Debug)]
pub(crate) struct RunHistory {
    path: PathBuf,
    clock: SystemClock,
    /// The end of the processes before this one.
    before: HistoryPoint,
    pending: Mutex<PendingEntries>,
    /// Bytes of the file; `None` after a write that failed in the middle of a line.
    length: Mutex<Option<u64>>,
}

/// Entries that are not written yet, and the state they come from.
#[derive(Debug, Default)]
struct PendingEntries {
    entries: Vec<HistoryEntry>,
    /// The facts of this process, until its first entry.
    facts: Option<ProcessFacts>,
    last: HistoryPoint,
    step_ended: Option<Duration>,
    saved: SavedVersion,
    decisions: u64,
}

impl PendingEntries {
    fn push(&mut self, at: HistoryPoint, kind: HistoryKind) {
        if self.entries.len() < PENDING_MAX {
            self.entries.push(HistoryEntry { at, kind });
        }
    }
}

/// Returns whether the entry of this number is kept: all of the first ones, then every second,
/// every fourth, and so on, so that their count grows with the logarithm.
fn is_kept(number: u64) -> bool {
    let octaves = (number / ENTRIES_PER_OCTAVE + 1).ilog2();
    number.is_multiple_of(1 << octaves)
}

impl RunHistory {
    /// Continues the history of the run in `folder`, or begins it again. Nothing is written before
    /// the solver has resumed or stepped: a run that is refused leaves no entry.
    pub(crate) fn open(folder: &Path, facts: ProcessFacts, is_fresh: bool) -> Self {
        let path = folder.join(HISTORY);
        if is_fresh {
            std::fs::remove_file(&path).ok();
        }
        let recorded = RecordedHistory::read(folder).unwrap_or_default();
        let before = recorded.entries.last().map_or_else(HistoryPoint::default, |entry| entry.at);
        let mut pending = PendingEntries {
            facts: Some(ProcessFacts { layout: LAYOUT, ..facts }),
            last: HistoryPoint { relative_residual: None, ..before },
            ..PendingEntries::default()
        };
        for entry in &recorded.entries {
            match &entry.kind {
                HistoryKind::Version(saved) => pending.saved = *saved,
                HistoryKind::Decision { .. } => pending.decisions += 1,
                _ => {}
            }
        }
        let length = std::fs::metadata(&path).map_or(0, |file| file.len());
        let length = Mutex::new(Some(length).filter(|&length| !recorded.is_cut || length >= FILE_BYTES_MAX));
        Self { path, clock: SystemClock::new(), before, pending: Mutex::new(pending), length }
    }

    fn lock(&self) -> MutexGuard<'_, PendingEntries> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seconds(&self) -> f64 {
        self.before.seconds + self.clock.now().as_secs_f64()
    }

    /// Changes the place that the run has come to, and adds an entry there.
    fn note(&self, change: impl FnOnce(&mut PendingEntries) -> Option<HistoryKind>) {
        let seconds = self.seconds();
        let mut pending = self.lock();
        let begin = HistoryPoint { seconds: self.before.seconds, ..pending.last };
        if let Some(facts) = pending.facts.take() {
            pending.push(begin, HistoryKind::Begin(facts));
        }
        if let Some(kind) = change(&mut pending) {
            pending.last.seconds = seconds;
            let at = pending.last;
            pending.push(at, kind);
        }
    }

    /// Takes note that a step begins: what the solver did since the last one was no iteration.
    pub(crate) fn step_begins(&self) {
        let now = self.clock.now();
        let mut pending = self.lock();
        if let Some(ended) = pending.step_ended.take() {
            pending.last.blocking_seconds += now.saturating_sub(ended).as_secs_f64();
        }
    }

    /// Takes note of an iteration, after `executed` of them in this process.
    pub(crate) fn stepped(&self, progress: &Progress, executed: u64) {
        let now = self.clock.now();
        self.note(|pending| {
            pending.step_ended = Some(now);
            pending.last.executed = self.before.executed + executed;
            pending.reach(progress);
            is_kept(pending.last.executed).then_some(HistoryKind::Step)
        });
    }

    /// Takes note of a failure inside the process.
    pub(crate) fn failed(&self) {
        self.note(|_| Some(HistoryKind::Failure));
    }

    /// Takes note of a resume. Its time is no checkpoint's.
    pub(crate) fn resumed(&self, progress: &Progress) {
        self.note(|pending| {
            pending.step_ended = None;
            pending.reach(progress);
            Some(HistoryKind::Resume)
        });
    }

    /// Takes note of a version that counts, and of the time it took behind the solver.
    pub(crate) fn saved(&self, saved: SavedBytes, took: Duration) {
        self.note(|pending| {
            let sums = &mut pending.saved;
            let SavedBytes { version, raw_bytes, stored_bytes } = saved;
            *sums = SavedVersion {
                version,
                raw_bytes,
                stored_bytes,
                versions: sums.versions + 1,
                versions_raw_bytes: sums.versions_raw_bytes + raw_bytes,
                versions_stored_bytes: sums.versions_stored_bytes + stored_bytes,
                versions_seconds: sums.versions_seconds + took.as_secs_f64(),
            };
            is_kept(sums.versions).then_some(HistoryKind::Version(*sums))
        });
    }

    fn decided(&self, decision: &Decision, why: &str) {
        self.note(|pending| {
            pending.decisions += 1;
            let record = DecisionRecord {
                iteration: pending.last.iteration,
                plan: decision.in_force,
                interval_seconds: decision.interval_seconds,
                extra_iterations: decision.extra_iterations,
                why: why.to_owned(),
            };
            is_kept(pending.decisions).then(|| HistoryKind::Decision { decision: DecisionJson::of(&record) })
        });
    }

    /// Takes note of the end, under the name of its kind.
    pub(crate) fn ended(&self, report: &RunReport, ended: &str) {
        self.note(|pending| {
            pending.reach(&report.progress);
            Some(HistoryKind::End { ended: ended.to_owned(), costs: ProcessCosts::of(report) })
        });
    }

    /// Appends the entries that wait. Those that cannot be written are left out.
    pub(crate) fn flush(&self) {
        let entries = std::mem::take(&mut self.lock().entries);
        let mut length = self.length.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.is_empty() || length.is_some_and(|length| length >= FILE_BYTES_MAX) {
            return;
        }
        let lines: String = entries.iter().filter_map(HistoryEntry::seal).collect();
        // A line that was cut ends here.
        let text = if length.is_none() { format!("\n{lines}") } else { lines };
        let append = || -> io::Result<u64> {
            let mut file = open_without_links(File::options().create(true).append(true), &self.path)?;
            file.write_all(text.as_bytes())?;
            Ok(file.metadata()?.len())
        };
        let appended = append().inspect_err(|error| tracing::debug!(%error, "history not written"));
        *length = appended.ok();
    }
}

impl PendingEntries {
    fn reach(&mut self, progress: &Progress) {
        let residual = progress.relative_residual();
        self.last.iteration = progress.iteration;
        self.last.relative_residual = residual.is_finite().then_some(residual);
    }
}

/// A policy whose decisions go into the history.
pub(crate) struct RecordedPolicy {
    pub(crate) inner: Box<dyn Policy>,
    pub(crate) history: std::sync::Arc<RunHistory>,
}

impl Policy for RecordedPolicy {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let decision = self.inner.decide(seen);
        if let Some(why) = &decision.why {
            self.history.decided(&decision, why);
        }
        decision
    }

    fn first_plan(&self) -> Option<Plan> {
        self.inner.first_plan()
    }

    fn is_adaptive(&self) -> bool {
        self.inner.is_adaptive()
    }
}

#[cfg(test)]
mod tests {
    use recoup::core::{SafePoint, Status};

    use super::*;

    /// Two lines as the first build wrote them.
    const FROZEN: &str = concat!(
        r#"474489c7 {"seconds":0.0,"executed":0,"iteration":0,"relative_residual":null,"blocking_seconds":0.0,"#,
        r#""kind":"begin","layout":1,"at":1.5,"process":7,"host":"h","ranks":1,"title":"cg, A","method":"cg","#,
        r#""pc":"none","unknowns":8,"scheme":"lossy","interval":"auto","rtol":0.001}"#,
        "\n",
        r#"170e94d1 {"seconds":0.5,"executed":3,"iteration":2,"relative_residual":0.25,"blocking_seconds":0.125,"#,
        r#""kind":"step"}"#,
        "\n",
    );

    fn progress(iteration: u64) -> Progress {
        let status = Status::Running;
        let safe_point = SafePoint::Any;
        Progress { iteration, residual_norm: 1.0 / iteration as f64, rhs_norm: 1.0, status, safe_point }
    }

    fn opened(folder: &Path, is_fresh: bool) -> RunHistory {
        RunHistory::open(folder, ProcessFacts { host: "here".to_owned(), ..ProcessFacts::default() }, is_fresh)
    }

    /// A file of two processes, the second of which was killed in the middle of a line.
    fn written(folder: &Path) -> Vec<u8> {
        for from in [0, 4] {
            let history = opened(folder, false);
            history.resumed(&progress(from + 1));
            for step in 1..=4 {
                history.step_begins();
                history.stepped(&progress(from + step), step);
            }
            history.failed();
            history.flush();
        }
        let mut bytes = std::fs::read(folder.join(HISTORY)).unwrap();
        bytes.truncate(bytes.len() - 5);
        std::fs::write(folder.join(HISTORY), &bytes).unwrap();
        bytes
    }

    #[test]
    fn frozen_lines_are_read_and_written_as_they_are() {
        let recorded = RecordedHistory::of(FROZEN.as_bytes());
        assert_eq!((recorded.entries.len(), recorded.damaged), (2, 0));
        let lines: String = recorded.entries.iter().map(|entry| entry.seal().unwrap()).collect();
        assert_eq!(lines, FROZEN);
    }

    #[test]
    fn each_damaged_byte_and_each_cut_costs_the_lines_it_is_in_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let bytes = written(dir.path());
        let whole = RecordedHistory::of(&bytes);
        assert_eq!((whole.entries.len(), whole.damaged, whole.is_cut), (2 * 7 - 1, 0, true));
        for position in 0..bytes.len() {
            let cut = RecordedHistory::of(&bytes[..position]);
            assert_eq!(cut.entries, whole.entries[..cut.entries.len()], "cut at {position}");
            assert_eq!(cut.damaged, 0, "cut at {position}");
            let mut damaged = bytes.clone();
            damaged[position] ^= 1 << (position % 8);
            let damaged = RecordedHistory::of(&damaged);
            // The end of a line takes the next one along.
            assert!(damaged.entries.len() + 2 >= whole.entries.len(), "byte {position}");
            assert!(damaged.entries.iter().all(|entry| whole.entries.contains(entry)), "byte {position}");
        }
    }

    #[test]
    fn a_process_continues_behind_a_cut_line_where_the_one_before_it_was() {
        let dir = tempfile::tempdir().unwrap();
        written(dir.path());
        let history = opened(dir.path(), false);
        history.stepped(&progress(6), 1);
        history.flush();
        let recorded = RecordedHistory::read(dir.path()).unwrap();
        assert_eq!((recorded.damaged, recorded.is_cut), (1, false));
        let [.., before, begin, last] = recorded.entries.as_slice() else { panic!("{recorded:?}") };
        assert!(matches!(begin.kind, HistoryKind::Begin(_)), "{begin:?}");
        assert_eq!((begin.at.seconds, begin.at.executed), (before.at.seconds, 8));
        assert_eq!((last.at.executed, last.at.iteration), (9, 6));
        opened(dir.path(), true);
        assert_eq!(RecordedHistory::read(dir.path()).unwrap(), RecordedHistory::default());
    }

    #[test]
    fn what_cannot_be_written_is_left_out_and_later_entries_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("later");
        let history = opened(&folder, false);
        history.stepped(&progress(1), 1);
        history.flush();
        std::fs::create_dir(&folder).unwrap();
        history.stepped(&progress(2), 2);
        history.flush();
        let recorded = RecordedHistory::read(&folder).unwrap();
        assert_eq!((recorded.entries.len(), recorded.entries[0].at.executed, recorded.damaged), (1, 2, 0));
    }

    #[test]
    fn entries_of_a_kind_grow_with_the_logarithm_of_their_number() {
        let kept = |n: u64| (1..=n).filter(|&number| is_kept(number)).count() as u64;
        assert_eq!(kept(ENTRIES_PER_OCTAVE - 1), ENTRIES_PER_OCTAVE - 1);
        // The first 512, and 512 of each doubling.
        assert!(kept(ENTRIES_PER_OCTAVE << 10) <= 11 * ENTRIES_PER_OCTAVE);
    }
}
