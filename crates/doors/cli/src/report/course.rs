//! The course of one run: its residuals, what happened to it, and where its time went; from its
//! history, or from the report of a run that keeps none.

use recoup::pipeline::{EventKind, RunReport};

use super::{Curve, CurvePoint, Moment, MomentKind};
use crate::commands::compare::curves;
use crate::decision::DecisionJson;
use crate::observe::history::{
    HistoryEntry, HistoryKind, HistoryPoint, ProcessCosts, ProcessFacts, RecordedHistory, SavedVersion,
};

/// Marks of versions on a curve, at most.
const MARKS_MAX: usize = 40;

/// A run through all its processes.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunCourse {
    /// The facts of the newest process; `None` where no history was kept.
    pub(crate) facts: Option<ProcessFacts>,
    /// The kind of its end; `None` for one that computes or was killed.
    pub(crate) ended: Option<String>,
    pub(crate) processes: u64,
    /// Failures inside processes, and ends without a word.
    pub(crate) failures: u64,
    pub(crate) recoveries: u64,
    /// The last place that is known.
    pub(crate) last: HistoryPoint,
    /// Sums over all processes.
    pub(crate) costs: ProcessCosts,
    pub(crate) curve: Curve,
    /// The versions, and the times at which they were published.
    pub(crate) versions: Vec<(f64, SavedVersion)>,
    /// The decisions, and the times at which they were taken.
    pub(crate) decisions: Vec<(f64, DecisionJson)>,
    /// Damaged lines of the history.
    pub(crate) damaged: usize,
}

/// The course so far, and the process that entries belong to.
#[derive(Default)]
struct Telling {
    course: RunCourse,
    /// The begin of the process, or the failure that the run has to recover from.
    interrupted: Option<HistoryPoint>,
    /// The place at which the process began.
    begin: HistoryPoint,
    /// Costs of the process as far as entries tell them.
    told: ProcessCosts,
    is_open: bool,
}

impl RunCourse {
    /// Tells a run from its history.
    pub(crate) fn of(history: &RecordedHistory) -> Self {
        let mut telling = Telling::default();
        for entry in &history.entries {
            telling.tell(entry);
        }
        telling.close(None);
        let mut course = Self { damaged: history.damaged, ..telling.course };
        course.thin_marks();
        course
    }

    /// Tells a run of one process from its report.
    pub(crate) fn of_report(scheme: &str, report: &RunReport, is_virtual: bool, ended: &str) -> Self {
        let curve = curves::of(scheme, report, is_virtual);
        let saved_at = report.events.iter().filter(|event| event.kind == EventKind::Checkpoint);
        let seconds_at = |iteration: u64| {
            let sample = report.history.iter().rfind(|sample| sample.iteration == iteration);
            sample.map_or(0.0, |sample| sample.seconds)
        };
        let mut sums = SavedVersion::default();
        let versions = saved_at.zip(&report.saved).map(|(event, saved)| {
            sums = SavedVersion {
                version: saved.version,
                raw_bytes: saved.raw_bytes,
                stored_bytes: saved.payload_bytes,
                versions: sums.versions + 1,
                versions_raw_bytes: sums.versions_raw_bytes + saved.raw_bytes,
                versions_stored_bytes: sums.versions_stored_bytes + saved.payload_bytes,
                versions_seconds: sums.versions_seconds + saved.spent.drain_seconds(),
            };
            (event.seconds, sums)
        });
        let decisions = report.decisions.iter().map(|record| (seconds_at(record.iteration), DecisionJson::of(record)));
        Self {
            ended: Some(ended.to_owned()),
            processes: 1,
            failures: report.failures,
            recoveries: report.recoveries + u64::from(report.resumed_from().is_some()),
            last: HistoryPoint {
                seconds: report.seconds_total,
                executed: report.executed,
                iteration: report.progress.iteration,
                relative_residual: Some(report.progress.relative_residual()).filter(|residual| residual.is_finite()),
                blocking_seconds: report.seconds_blocking,
            },
            costs: ProcessCosts::of(report),
            versions: versions.collect(),
            decisions: decisions.collect(),
            curve,
            ..Self::default()
        }
    }

    /// Leaves out marks of versions that would hide the line and all other marks.
    fn thin_marks(&mut self) {
        let step = self.versions.len().div_ceil(MARKS_MAX).max(1);
        let mut number = 0;
        self.curve.events.retain(|event| {
            number += usize::from(event.kind == MomentKind::Checkpoint);
            event.kind != MomentKind::Checkpoint || number.is_multiple_of(step)
        });
    }

    /// Returns where the time went: names, and seconds that sum to the total.
    pub(crate) fn phases(&self) -> [(&'static str, f64); 4] {
        let costs = &self.costs;
        let others = costs.blocking_seconds + costs.recovery_seconds + costs.lost_seconds;
        [
            ("iterations", (costs.total_seconds - others).max(0.0)),
            ("iterations lost", costs.lost_seconds),
            ("checkpoints", costs.blocking_seconds),
            ("recoveries", costs.recovery_seconds),
        ]
    }

    /// The sums over all versions; zeros if there are none.
    pub(crate) fn saved(&self) -> SavedVersion {
        self.versions.last().map_or_else(SavedVersion::default, |(_, saved)| *saved)
    }
}

impl Telling {
    fn tell(&mut self, entry: &HistoryEntry) {
        let at = entry.at;
        let computes = matches!(entry.kind, HistoryKind::Step | HistoryKind::Failure | HistoryKind::Resume);
        if !self.is_open && computes {
            // The line with its begin was damaged.
            self.begin(HistoryPoint { seconds: self.course.last.seconds, ..at });
        }
        match &entry.kind {
            HistoryKind::Begin(facts) => {
                self.begin(at);
                self.course.facts = Some(facts.clone());
                self.course.curve.name = facts.scheme.clone();
            }
            HistoryKind::Step => {
                // Without a version the solve began again.
                self.goes_back(at.iteration.saturating_sub(1));
                self.interrupted = None;
                self.course.curve.history.extend(curve_point(at));
            }
            HistoryKind::Failure => {
                self.course.failures += 1;
                self.happen(MomentKind::Failure, at);
                self.course.curve.history.extend(curve_point(at));
                self.interrupted = Some(at);
            }
            HistoryKind::Resume => self.resume(at),
            HistoryKind::Version(saved) => {
                self.happen(MomentKind::Checkpoint, at);
                self.course.versions.push((at.seconds, *saved));
            }
            HistoryKind::Decision { decision } => self.course.decisions.push((at.seconds, decision.clone())),
            HistoryKind::End { ended, costs } => {
                self.course.curve.history.extend(curve_point(at));
                self.course.last = at;
                self.course.ended = Some(ended.clone());
                self.close(Some(costs));
                return;
            }
        }
        self.course.last = at;
    }

    /// A process takes up the run. One before it that did not end was killed.
    fn begin(&mut self, at: HistoryPoint) {
        if self.is_open {
            self.course.failures += 1;
            self.happen(MomentKind::Failure, self.course.last);
        }
        self.close(None);
        self.course.processes += 1;
        self.course.ended = None;
        self.is_open = true;
        self.begin = at;
        self.interrupted = Some(at);
    }

    /// A restart of the method in place is no recovery.
    fn resume(&mut self, at: HistoryPoint) {
        let goes_back = (at.iteration < self.course.last.iteration).then_some(self.course.last);
        let Some(interrupted) = self.interrupted.take().or(goes_back) else { return };
        self.goes_back(at.iteration);
        self.told.recovery_seconds += (at.seconds - interrupted.seconds).max(0.0);
        self.course.recoveries += 1;
        self.course
            .curve
            .history
            .extend(curve_point(HistoryPoint { relative_residual: self.course.last.relative_residual, ..at }));
        self.course.curve.history.extend(curve_point(at));
        self.happen(MomentKind::Recovery, at);
    }

    /// Counts the iterations that a run does again because it continues behind this one. A process
    /// knows nothing of those that the one before it took along.
    fn goes_back(&mut self, iteration: u64) {
        let last = self.course.last;
        let lost = last.iteration.saturating_sub(iteration);
        let is_of_process = self.begin.executed < last.executed;
        let costs = if is_of_process { &mut self.told } else { &mut self.course.costs };
        let computed = (last.seconds - last.blocking_seconds) / last.executed.max(1) as f64;
        costs.lost_iterations += lost;
        costs.lost_seconds += lost as f64 * computed.max(0.0);
    }

    fn happen(&mut self, kind: MomentKind, at: HistoryPoint) {
        self.course.curve.events.extend(curve_point(at).map(|at| Moment { kind, at }));
    }

    /// Adds the costs of a process: its own words, or what entries tell of one that was killed. A
    /// loss between two processes is no part of either's words.
    fn close(&mut self, own: Option<&ProcessCosts>) {
        if !std::mem::take(&mut self.is_open) {
            return;
        }
        let told = std::mem::take(&mut self.told);
        let last = self.course.last;
        let costs = own.copied().unwrap_or(ProcessCosts {
            total_seconds: (last.seconds - self.begin.seconds).max(0.0),
            blocking_seconds: (last.blocking_seconds - self.begin.blocking_seconds).max(0.0),
            ..told
        });
        let sums = &mut self.course.costs;
        sums.total_seconds += costs.total_seconds;
        sums.blocking_seconds += costs.blocking_seconds;
        sums.recovery_seconds += costs.recovery_seconds;
        sums.lost_seconds += costs.lost_seconds;
        sums.lost_iterations += costs.lost_iterations;
    }
}

fn curve_point(at: HistoryPoint) -> Option<CurvePoint> {
    let relative_residual = at.relative_residual?;
    Some(CurvePoint { executed: at.executed, seconds: at.seconds, relative_residual })
}
