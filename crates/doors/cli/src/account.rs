//! The account of a protected run: its costs over its lives, compared with the undisturbed solve.

use recoup::model::horizon::Horizon;
use recoup::model::overhead;
use recoup::pipeline::{Ended, EventKind, FlipCounts, RunReport, Saved, Spent};
use serde::{Deserialize, Serialize};

use crate::decision::{DecisionJson, ExtraJson};
use crate::inject::heartbeat::HeartbeatCounters;
use crate::inject::virtual_time::MachineRates;
use crate::options::protection::SchemeChoice;
use crate::report::parts::OverheadParts;
use crate::solved::SolveReport;

/// The sums of one life of a run, or of several.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RunCosts {
    /// The version the first life continued from; `None` for the start.
    pub(crate) resumed_from: Option<u64>,
    #[serde(rename = "iterations_executed")]
    pub(crate) executed: u64,
    #[serde(rename = "iterations_lost")]
    pub(crate) lost: u64,
    pub(crate) failures: u64,
    pub(crate) recoveries: u64,
    pub(crate) checkpoints: u64,
    pub(crate) failed_checkpoints: u64,
    pub(crate) raw_bytes: u64,
    pub(crate) payload_bytes: u64,
    /// Raw bytes that were frozen without a copy.
    #[serde(default)]
    pub(crate) frozen_bytes: u64,
    /// Frames encoded on the device.
    #[serde(default)]
    pub(crate) device_frames: u64,
    /// Bytes of values that came from the device raw, to be measured, encoded or written.
    #[serde(default)]
    pub(crate) device_bytes: u64,
    pub(crate) seconds_total: f64,
    #[serde(rename = "seconds_checkpoint_blocking")]
    pub(crate) seconds_blocking: f64,
    pub(crate) seconds_backpressure: f64,
    pub(crate) seconds_drain: f64,
    /// After the end, until slower tiers had what they were to have; not in `seconds_total`.
    pub(crate) seconds_finishing: f64,
    pub(crate) seconds_verify: f64,
    pub(crate) seconds_recovery: f64,
    pub(crate) seconds_lost_work: f64,
    pub(crate) interval_seconds: Option<f64>,
    #[serde(flatten)]
    pub(crate) extra: ExtraJson,
    pub(crate) flips: FlipsJson,
    /// Breakdowns and stagnations after which a run went back, with no bit flipped on purpose.
    pub(crate) breakdown_rollbacks: u64,
    pub(crate) decisions: Vec<DecisionJson>,
    /// Interruptions by lost ranks.
    pub(crate) repairs: Vec<RepairJson>,
    /// Versions removed to stay within `--max-bytes`.
    pub(crate) versions_dropped: Vec<u64>,
    /// Notes on restores (where versions were read from, what was repaired or skipped) and on
    /// versions that a tier did not get.
    pub(crate) notes: Vec<String>,
}

/// Bits flipped, and what came of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FlipsJson {
    pub(crate) injected: u64,
    /// States found corrupted at a save.
    pub(crate) caught: u64,
    /// Breakdowns after a flip that were rolled back.
    pub(crate) rolled_back: u64,
    /// Restarts because of unsound directions.
    pub(crate) healed: u64,
    /// Flips that needed no action.
    pub(crate) absorbed: u64,
    /// Iterations done again because of the rollbacks.
    pub(crate) iterations_lost: u64,
}

impl FlipsJson {
    fn of(counts: &FlipCounts) -> Self {
        let FlipCounts { injected, caught, rolled_back, healed, lost } = *counts;
        Self { injected, caught, rolled_back, healed, absorbed: counts.absorbed(), iterations_lost: lost }
    }
}

impl RunCosts {
    /// The sums of one process.
    pub(crate) fn of(report: &RunReport) -> Self {
        let resumed = report.resumed_from();
        let saved = &report.saved;
        let interval = report.decisions.last().map(|d| d.interval_seconds).filter(|s| s.is_finite());
        Self {
            resumed_from: resumed.filter(|version| *version > 0),
            executed: report.executed,
            lost: report.lost,
            failures: report.failures,
            recoveries: report.recoveries + u64::from(resumed.is_some()),
            checkpoints: saved.len() as u64,
            failed_checkpoints: report.failed.len() as u64,
            raw_bytes: saved.iter().map(|s| s.raw_bytes).sum(),
            payload_bytes: saved.iter().map(|s| s.payload_bytes).sum(),
            frozen_bytes: saved.iter().map(|s| s.frozen_bytes).sum(),
            device_frames: saved.iter().map(|s| s.on_device.device_frames).sum(),
            device_bytes: saved.iter().map(|s| s.on_device.fetched_bytes).sum(),
            seconds_total: report.seconds_total,
            seconds_blocking: report.seconds_blocking,
            seconds_backpressure: total(saved, |spent| spent.wait_seconds),
            seconds_drain: total(saved, Spent::drain_seconds),
            seconds_finishing: report.seconds_finishing,
            seconds_verify: total(saved, |spent| spent.verify_seconds),
            seconds_recovery: report.seconds_recovery,
            seconds_lost_work: report.seconds_lost_work,
            interval_seconds: interval,
            extra: ExtraJson::of(&saved.iter().filter_map(|saved| saved.extra_iterations).collect::<Vec<_>>()),
            flips: FlipsJson::of(&report.flips),
            breakdown_rollbacks: report.breakdown_rollbacks,
            decisions: report.decisions.iter().map(DecisionJson::of).collect(),
            repairs: Vec::new(),
            versions_dropped: saved.iter().flat_map(|saved| saved.dropped.iter().copied()).collect(),
            notes: notes(report),
        }
    }

    /// Adds what a killed life left behind.
    pub(crate) fn add_life(&mut self, beat: &HeartbeatCounters) {
        self.executed += beat.executed;
        self.recoveries += u64::from(beat.restored > 0);
        self.checkpoints += beat.checkpoints;
        self.raw_bytes += beat.raw_bytes;
        self.payload_bytes += beat.payload_bytes;
        self.seconds_blocking += beat.blocking_nanoseconds as f64 / 1e9;
        self.seconds_recovery += beat.recovery_nanoseconds as f64 / 1e9;
    }

    /// Adds the life that came to its end, and the wall-clock time of all of them.
    pub(crate) fn add_last(&mut self, last: &Self, seconds_total: f64) {
        *self = Self {
            resumed_from: self.resumed_from,
            executed: self.executed + last.executed,
            lost: self.lost + last.lost,
            failures: self.failures + last.failures,
            recoveries: self.recoveries + last.recoveries,
            checkpoints: self.checkpoints + last.checkpoints,
            raw_bytes: self.raw_bytes + last.raw_bytes,
            payload_bytes: self.payload_bytes + last.payload_bytes,
            seconds_blocking: self.seconds_blocking + last.seconds_blocking,
            seconds_recovery: self.seconds_recovery + last.seconds_recovery,
            seconds_lost_work: self.seconds_lost_work + last.seconds_lost_work,
            seconds_total,
            ..last.clone()
        };
    }

    /// Returns the iterations per recovery that are neither the baseline's nor lost work; `None`
    /// for a run that resumed an earlier one, whose extra iterations cannot be separated.
    pub(crate) fn extra_iterations_mean(&self, baseline_iterations: Option<u64>) -> Option<f64> {
        let baseline = baseline_iterations.filter(|_| self.recoveries > 0 && self.resumed_from.is_none())?;
        let needed = self.executed as f64 - self.lost as f64;
        Some((needed - baseline as f64) / self.recoveries as f64)
    }

    fn per_checkpoint(&self, seconds: f64) -> f64 {
        seconds / self.checkpoints.max(1) as f64
    }

    /// Returns the overhead that the model expects of these mean costs at the interval in force;
    /// `None` if it expects no end.
    fn expected(&self, question: &Expected) -> Option<OverheadParts> {
        if question.scheme == SchemeChoice::None || self.checkpoints == 0 {
            let whole =
                Horizon { remaining_seconds: question.productive_seconds, at_risk_seconds: 0.0, fallback_seconds: 0.0 };
            let lost_work = whole.unprotected_overhead_fraction(question.mtti_seconds);
            return lost_work.is_finite().then(|| OverheadParts { lost_work, ..OverheadParts::default() });
        }
        let checkpoint_seconds = self.per_checkpoint(self.seconds_blocking);
        let scheme = overhead::CheckpointTiming {
            mtti_seconds: question.mtti_seconds,
            blocking_seconds: checkpoint_seconds,
            drain_seconds: if question.synchronous { 0.0 } else { self.per_checkpoint(self.seconds_drain) },
            recovery_seconds: match self.recoveries {
                0 => checkpoint_seconds,
                recoveries => self.seconds_recovery / recoveries as f64,
            },
            extra_seconds: question.extra_iterations.max(0.0) * question.iteration_seconds,
            safe_point_seconds: 0.0,
        };
        // Versions are saved at safe points alone, which may lie further apart than the interval
        // asked for.
        let pieces = (self.checkpoints + self.failures + 1) as f64;
        let spacing = self.executed as f64 * question.iteration_seconds / pieces;
        let interval = self.interval_seconds.unwrap_or_else(|| scheme.interval_seconds()).max(spacing);
        let checkpoints = scheme.blocking_seconds / interval;
        let total = scheme.exact_overhead_fraction(interval);
        // What failures cost, by cause as the first order has it.
        let causes = [interval / 2.0 + scheme.drain_seconds, scheme.recovery_seconds, scheme.extra_seconds];
        let [lost_work, recoveries, extra_iterations] =
            causes.map(|cause| (total - checkpoints) * cause / causes.iter().sum::<f64>());
        let parts = OverheadParts { checkpoints, lost_work, recoveries, extra_iterations, other: 0.0 };
        total.is_finite().then_some(parts)
    }

    /// Returns the measured overhead by cause, over this much productive time.
    fn measured(&self, extra_seconds: f64, productive_seconds: f64) -> OverheadParts {
        let causes = OverheadParts {
            checkpoints: self.seconds_blocking / productive_seconds,
            lost_work: self.seconds_lost_work / productive_seconds,
            recoveries: self.seconds_recovery / productive_seconds,
            extra_iterations: extra_seconds / productive_seconds,
            other: 0.0,
        };
        causes.with_total(self.seconds_total / productive_seconds - 1.0)
    }
}

/// Returns the notes of the restores of one process, and of its stores at the end.
fn notes(report: &RunReport) -> Vec<String> {
    let restored = report.events.iter().filter_map(|event| match &event.kind {
        EventKind::Recovery(restored) => Some(&restored.notes),
        _ => None,
    });
    let lost = report.events.iter().filter_map(|event| match &event.kind {
        EventKind::PlaceLost { message } => {
            Some(format!("iteration {}: {message}; the run continued without it", event.iteration))
        }
        _ => None,
    });
    let factors = report.events.iter().filter_map(|event| match event.kind {
        EventKind::FailuresPutOff { factor } => Some(factor),
        _ => None,
    });
    let put_off = factors.max().map(|factor| {
        format!(
            "failures struck too fast for a newer version between them: the MTTI is too short for this run, and the last \
             ones came {factor} times as late"
        )
    });
    lost.chain(put_off).chain(restored.flatten().chain(&report.notes).map(ToString::to_string)).collect()
}

/// A sum that is 0, not -0, of nothing.
fn total(saved: &[Saved], seconds: fn(&Spent) -> f64) -> f64 {
    saved.iter().fold(0.0, |sum, saved| sum + seconds(&saved.spent))
}

/// The inputs of an expected overhead besides measured costs.
struct Expected {
    scheme: SchemeChoice,
    mtti_seconds: f64,
    productive_seconds: f64,
    extra_iterations: f64,
    iteration_seconds: f64,
    synchronous: bool,
}

/// An interruption by lost ranks: from the last step before it to the first after it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct RepairJson {
    /// Processes lost.
    pub(crate) lost: u64,
    /// Ranks that continued.
    pub(crate) ranks: usize,
    /// Versions saved before.
    pub(crate) saved: u64,
    /// The version they continued from; 0 for the start.
    pub(crate) version: u64,
    /// Time from the last step to the error that reported the loss: the rest of a step, the
    /// library's detection, and its notice to all ranks. A loss during a recovery adds all time
    /// since the repair before.
    pub(crate) seconds_notice: f64,
    /// Sharing the places among those alive: new communicators.
    pub(crate) seconds_repair: f64,
    /// Time to rebuild problem, solver and session.
    pub(crate) seconds_rebuild: f64,
    /// Agreeing on a version, bringing its parts to who reads them, reading it.
    pub(crate) seconds_restore: f64,
    /// All of these.
    pub(crate) seconds: f64,
}

impl RepairJson {
    /// Each phase as long as the slowest rank took.
    pub(crate) fn stretch(&mut self, other: &Self) {
        self.seconds_notice = self.seconds_notice.max(other.seconds_notice);
        self.seconds_repair = self.seconds_repair.max(other.seconds_repair);
    }
}

/// The undisturbed solve that a run is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    /// Iterations of the undisturbed solve; `None` when it was not run.
    pub(crate) iterations: Option<u64>,
    /// Seconds of one iteration of that solve, on the run's clock; `None` takes the run's own.
    pub(crate) iteration_seconds: Option<f64>,
}

/// The facts of a run besides its sums.
pub(crate) struct RunConditions {
    pub(crate) scheme: SchemeChoice,
    pub(crate) baseline: Baseline,
    pub(crate) mtti_seconds: Option<f64>,
    /// Failures arrive at that rate, so the model has something to expect.
    pub(crate) has_arrivals: bool,
    pub(crate) synchronous: bool,
    pub(crate) seed: u64,
    pub(crate) rates: Option<MachineRates>,
    pub(crate) ended: Ended,
}

/// The report of `recoup run`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunJson {
    #[serde(flatten)]
    pub(crate) solve: SolveReport,
    pub(crate) baseline_iterations: Option<u64>,
    /// Time of the undisturbed solve, on the run's clock.
    pub(crate) baseline_seconds: Option<f64>,
    pub(crate) scheme: String,
    pub(crate) ended: &'static str,
    #[serde(flatten)]
    pub(crate) account: RunCosts,
    pub(crate) extra_iterations_mean: Option<f64>,
    pub(crate) overhead_fraction: Option<f64>,
    /// The same by cause.
    pub(crate) overhead_parts: Option<OverheadParts>,
    pub(crate) expected_overhead_fraction: Option<f64>,
    pub(crate) expected_overhead_parts: Option<OverheadParts>,
    pub(crate) ratio_mean: Option<f64>,
    pub(crate) mtti_seconds: Option<f64>,
    pub(crate) seed: u64,
    pub(crate) machine: Option<MachineRates>,
    /// The note on an undisturbed solve that is too short to be compared with.
    #[serde(skip)]
    pub(crate) noise: Option<String>,
}

impl RunJson {
    /// Puts sums, solve and terms together.
    pub(crate) fn new(mut solve: SolveReport, account: RunCosts, terms: &RunConditions) -> Self {
        let computing = account.seconds_total - account.seconds_blocking - account.seconds_recovery;
        solve.seconds_solve = computing.max(0.0);
        solve.seconds_per_iteration = solve.seconds_solve / account.executed.max(1) as f64;
        let iteration_seconds = terms.baseline.iteration_seconds.unwrap_or(solve.seconds_per_iteration);
        // A run that resumes an earlier one does a part of the work; the cost of the rest is
        // unknown.
        let whole = terms.baseline.iterations.filter(|_| account.resumed_from.is_none());
        let productive = whole.map(|n| n as f64 * iteration_seconds).filter(|&productive| productive > 0.0);
        let extra = account.extra_iterations_mean(whole).filter(|_| solve.converged);
        let mtti = terms.mtti_seconds.filter(|_| terms.has_arrivals);
        let expected = productive.zip(mtti).and_then(|(productive_seconds, mtti_seconds)| {
            account.expected(&Expected {
                scheme: terms.scheme,
                mtti_seconds,
                productive_seconds,
                extra_iterations: extra.unwrap_or(0.0),
                iteration_seconds,
                synchronous: terms.synchronous,
            })
        });
        let extra_seconds = extra.unwrap_or(0.0) * account.recoveries as f64 * iteration_seconds;
        let measured = productive.filter(|_| solve.converged).map(|p| account.measured(extra_seconds, p));
        Self {
            baseline_iterations: terms.baseline.iterations,
            baseline_seconds: productive,
            scheme: terms.scheme.to_string(),
            ended: ended_name(terms.ended),
            extra_iterations_mean: extra,
            overhead_fraction: measured.map(|parts| parts.total()),
            overhead_parts: measured,
            expected_overhead_fraction: expected.map(|parts| parts.total()),
            expected_overhead_parts: expected,
            ratio_mean: (account.payload_bytes > 0).then(|| account.raw_bytes as f64 / account.payload_bytes as f64),
            mtti_seconds: terms.mtti_seconds,
            seed: terms.seed,
            machine: terms.rates,
            noise: None,
            account,
            solve,
        }
    }
}

/// Returns the JSON name for how a run ended.
pub(crate) fn ended_name(ended: Ended) -> &'static str {
    match ended {
        Ended::Converged => "converged",
        Ended::NotConverged => "not-converged",
        Ended::Breakdown => "breakdown",
        Ended::Stopped => "stopped",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(account: &RunCosts) -> OverheadParts {
        let scheme = SchemeChoice::Traditional;
        let mtti_seconds = 100.0;
        let iteration_seconds = 1.0;
        let productive_seconds = 1000.0;
        let extra_iterations = 0.0;
        let synchronous = true;
        let asked =
            Expected { scheme, mtti_seconds, productive_seconds, extra_iterations, iteration_seconds, synchronous };
        account.expected(&asked).unwrap()
    }

    /// The first-order formula expects twice the measured overhead at an MTTI of ten checkpoints.
    #[test]
    fn expected_overhead_is_that_of_exponential_failures_at_the_spacing_of_versions() {
        let account = RunCosts { executed: 999, checkpoints: 50, seconds_blocking: 500.0, ..RunCosts::default() };
        let timed = RunCosts { interval_seconds: Some(40.0), ..account.clone() };
        let parts = expected(&timed);
        let daly = (10.0_f64 / 100.0).exp() * (50.0_f64 / 100.0).exp_m1() * 100.0 / 40.0 - 1.0;
        assert!((parts.total() - daly).abs() <= 16.0 * f64::EPSILON * daly, "{parts:?} {daly}");
        assert_eq!(parts.checkpoints, 0.25);
        // 51 pieces of 999 iterations: safe points lie further apart than was asked for.
        let asked = |seconds| expected(&RunCosts { interval_seconds: Some(seconds), ..account.clone() });
        assert_eq!(asked(0.01), asked(999.0 / 51.0));
        assert!(asked(0.01) != asked(40.0));
    }
}
