//! The report of a run: how it ended, what happened, and what it cost.

use recoup_core::{
    Bit, BorrowedMut, BreakdownReason, Distribution, ErrorKind, FlipTarget, KindedError, Note, Phase, Progress,
    Registered, Role, Values, ValuesMut, Variable,
};
use recoup_model::Rng;

use crate::costs::{Outcome, Saved};
use crate::error::PipelineError;
use crate::restore::Restored;
use crate::session::DecisionRecord;
use crate::verify::Suspicion;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The true residual meets the tolerance.
    Converged,
    /// A limit came first.
    NotConverged,
    /// The method cannot continue.
    Breakdown,
    /// The run was asked to stop, and can be resumed.
    Stopped,
}

/// Something that happened, for logs and plots.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The iteration it happened at.
    pub iteration: u64,
    /// Time of the event, on the run's clock.
    pub seconds: f64,
    /// Iterations executed so far.
    pub executed: u64,
    /// Kind of the event.
    pub kind: EventKind,
}

/// One executed iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Index of the iteration: goes back at a recovery.
    pub iteration: u64,
    /// `||r|| / ||b||` after it, as the method reports it.
    pub relative_residual: f64,
    /// Time at which the iteration ended, on the run's clock.
    pub seconds: f64,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// A checkpoint was staged.
    Checkpoint,
    /// A failure struck during this phase.
    Failure(Phase),
    /// The place where the vectors rested was lost: a device, say. What follows tells where the
    /// run continued from.
    PlaceLost {
        /// The place's own words.
        message: String,
    },
    /// Failures let the run get nowhere: the next ones come this many times as late.
    FailuresPutOff {
        /// Seconds of the run for one second of the source of failures.
        factor: u32,
    },
    /// A bit was flipped, silently.
    Flip(Flipped),
    /// The state turned out to be corrupted.
    Corruption(Corrupted),
    /// A version was restored.
    Recovery(Box<Restored>),
    /// The method was restarted from its iterate, because the residual had not fallen for long
    /// since lossy recurrences were restored.
    Stall,
    /// No version was usable: the solve starts from nothing.
    StartOver {
        /// The reason, when there were versions.
        reason: Option<String>,
    },
}

/// The sign of corruption.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Corrupted {
    /// A suspicious residual, found at a save: rolled back.
    State(Suspicion),
    /// The method broke down, for which corruption is the likelier reason the first times: rolled
    /// back.
    Breakdown(BreakdownReason),
    /// The directions no longer fitted the residual: the method was restarted from its iterate.
    Directions,
}

/// Bits flipped in a run, and what came of them. What was neither caught, rolled back nor healed
/// was absorbed by the method: it continued, if with more iterations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlipCounts {
    /// Bits flipped on purpose.
    pub injected: u64,
    /// States found corrupted at a save.
    pub caught: u64,
    /// Breakdowns after a flip that were rolled back.
    pub rolled_back: u64,
    /// Restarts because of unsound directions.
    pub healed: u64,
    /// Iterations done again because of these rollbacks; in `lost` too.
    pub lost: u64,
}

impl FlipCounts {
    /// Flips nothing was done about. One flip can show more than once, so this is a lower bound.
    #[must_use]
    pub fn absorbed(&self) -> u64 {
        self.injected.saturating_sub(self.caught + self.rolled_back + self.healed)
    }
}

/// A version that does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedVersion {
    /// The version that is not.
    pub version: u64,
    /// The kind of the error, the same on all ranks unless one is lost.
    pub kind: ErrorKind,
    /// The error of the first rank that failed.
    pub message: String,
}

/// The report of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// The end of the run.
    pub ended: Ended,
    /// The solver's state at the end.
    pub progress: Progress,
    /// Iterations executed in this process, lost work included.
    pub executed: u64,
    /// Executed iterations that were done again because of a rollback.
    pub lost: u64,
    /// Failures that struck.
    pub failures: u64,
    /// Places of vectors that were lost.
    pub places_lost: u64,
    /// Versions restored after a failure or the loss of a place.
    pub recoveries: u64,
    /// Everything that happened, in order.
    pub events: Vec<Event>,
    /// Versions that counted.
    pub saved: Vec<Saved>,
    /// The version of the converged state, where one was asked for; not among `saved`.
    pub last: Option<Saved>,
    /// Bits flipped, and what came of them.
    pub flips: FlipCounts,
    /// Breakdowns and stagnations, with no bit flipped on purpose, after which the run went back to
    /// a version.
    pub breakdown_rollbacks: u64,
    /// Versions that did not, and why.
    pub failed: Vec<FailedVersion>,
    /// Versions the stores had to pass over, and those a slower tier did not get.
    pub notes: Vec<Note>,
    /// Decisions taken.
    pub decisions: Vec<DecisionRecord>,
    /// Every executed iteration, lost work included.
    pub history: Vec<Sample>,
    /// Time on the run's clock, from start to end.
    pub seconds_total: f64,
    /// Time after the end, until slower tiers had what they were to have.
    pub seconds_finishing: f64,
    /// The time for which checkpoints blocked the solver.
    pub seconds_blocking: f64,
    /// Time spent reading versions back.
    pub seconds_recovery: f64,
    /// Computing that was lost.
    pub seconds_lost_work: f64,
}

impl RunReport {
    pub(crate) fn new(progress: Progress) -> Self {
        Self {
            ended: Ended::NotConverged,
            progress,
            executed: 0,
            lost: 0,
            failures: 0,
            places_lost: 0,
            recoveries: 0,
            events: Vec::new(),
            saved: Vec::new(),
            last: None,
            flips: FlipCounts::default(),
            breakdown_rollbacks: 0,
            failed: Vec::new(),
            notes: Vec::new(),
            decisions: Vec::new(),
            history: Vec::new(),
            seconds_total: 0.0,
            seconds_finishing: 0.0,
            seconds_blocking: 0.0,
            seconds_recovery: 0.0,
            seconds_lost_work: 0.0,
        }
    }

    /// Returns the version of an earlier run that this one continued from.
    pub fn resumed_from(&self) -> Option<u64> {
        self.events.first().and_then(|event| match &event.kind {
            EventKind::Recovery(restored) if event.executed == 0 => Some(restored.version),
            _ => None,
        })
    }

    /// Returns whether nothing was computed since a version was restored.
    pub(crate) fn is_just_restored(&self) -> bool {
        let last = self.events.iter().rfind(|event| !matches!(event.kind, EventKind::FailuresPutOff { .. }));
        last.is_some_and(|last| last.executed == self.executed && matches!(last.kind, EventKind::Recovery(_)))
    }

    fn fail(&mut self, version: u64, error: &PipelineError) {
        self.failed.push(FailedVersion { version, kind: error.kind(), message: error.to_string() });
    }

    /// Takes in what became of checkpoints.
    pub(crate) fn take(&mut self, outcomes: Vec<Outcome>) {
        for outcome in outcomes {
            match outcome {
                Outcome::Saved(saved) => self.saved.push(*saved),
                Outcome::Failed { version, kind, message } => {
                    self.failed.push(FailedVersion { version, kind, message });
                }
                Outcome::Suspicious(suspicion) => {
                    self.fail(suspicion.version, &PipelineError::Suspicious(suspicion));
                }
                Outcome::Aborted { version } => self.fail(version, &PipelineError::Aborted),
            }
        }
    }
}

/// A bit that was flipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flipped {
    /// The vector.
    pub variable: String,
    /// Position of the value in the global vector.
    pub row: u64,
    /// Position of the bit.
    pub bit: u32,
}

/// Flips one bit of one value of one vector, the same on all ranks, by the rank that holds it;
/// `None` where there is no such vector.
pub(crate) fn flip<R: Registered + ?Sized>(owner: &mut R, target: &FlipTarget, bit: Bit) -> Option<Flipped> {
    let is_shared = |variable: &Variable<'_>| {
        let is_double = matches!(variable.values.host(), Some(Values::F64(_)));
        is_double && matches!(variable.distribution, Distribution::Rows { .. })
    };
    let mut rng = Rng::new(if let Bit::Drawn(draw) = bit { draw } else { 0 });
    let mut draw = |n: u64| rng.next_u64() % n.max(1);
    let vectors: Vec<Variable<'_>> = owner.variables().into_iter().filter(is_shared).collect();
    let position = match target {
        FlipTarget::Any => draw(vectors.len() as u64) as usize,
        FlipTarget::Iterate => vectors.iter().position(|v| v.role == Role::Iterate)?,
        FlipTarget::Named(name) => vectors.iter().position(|v| v.name == *name)?,
    };
    let vector = vectors.get(position)?;
    let Distribution::Rows { first, global } = vector.distribution else { return None };
    let name = vector.name.to_owned();
    let (row, bit) = match bit {
        Bit::At { row, bit } => (row, bit % u64::BITS),
        Bit::Drawn(_) => (draw(global), draw(u64::from(u64::BITS)) as u32),
    };
    drop(vectors);
    let mut variables = owner.variables_mut();
    let variable = variables.iter_mut().find(|v| v.name == name)?;
    if let BorrowedMut::Host(ValuesMut::F64(values)) = &mut variable.values
        && let Some(value) = row.checked_sub(first).and_then(|local| values.get_mut(local as usize))
    {
        *value = f64::from_bits(value.to_bits() ^ (1 << bit));
    }
    Some(Flipped { variable: name, row, bit })
}
