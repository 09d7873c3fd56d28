//! Facts, figures and curves of runs, as a report shows them.

use super::figures::SchemeFigures;
use crate::decision::DecisionJson;

/// A fact on the problem, the machine or the method.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// A sentence, where the name does not say it all.
    pub(crate) meaning: Option<String>,
}

impl Fact {
    pub(crate) fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into(), meaning: None }
    }

    pub(crate) fn meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: Some(meaning.into()), ..self }
    }
}

/// A comparison of schemes on one problem.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    /// Headline: method and problem.
    pub(crate) title: String,
    /// Sentences on the scheme that cost least, and by how much.
    pub(crate) verdict: Vec<String>,
    pub(crate) facts: Vec<Fact>,
    /// Iterations of the undisturbed solve.
    pub(crate) baseline_iterations: u64,
    /// Time of the undisturbed solve, on the runs' clock.
    pub(crate) baseline_seconds: f64,
    pub(crate) schemes: Vec<SchemeFigures>,
    /// The undisturbed solve first, then the first trial of each scheme.
    pub(crate) curves: Vec<Curve>,
    /// Decisions of `auto` in its first trial, in order.
    pub(crate) decisions: Vec<DecisionJson>,
    /// The seed of the first trial.
    pub(crate) first_seed: u64,
    /// The command that makes this report again.
    pub(crate) command: String,
}

/// A run, iteration by iteration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    /// The scheme, or "undisturbed".
    pub(crate) name: String,
    /// Every iteration executed, lost work included; may be thinned.
    pub(crate) history: Vec<CurvePoint>,
    /// Events on the way.
    pub(crate) events: Vec<Moment>,
}

/// The residual after one iteration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CurvePoint {
    /// Iterations executed so far, lost work included: never goes back.
    pub(crate) executed: u64,
    /// Time on the run's clock.
    pub(crate) seconds: f64,
    /// `||r|| / ||b||`.
    pub(crate) relative_residual: f64,
}

/// Something that happened between two iterations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    /// Kind of the event.
    pub(crate) kind: MomentKind,
    /// Time and residual of the event: for a recovery, the residual it resumed with.
    pub(crate) at: CurvePoint,
}

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MomentKind {
    /// A version was staged.
    Checkpoint,
    /// All state was lost.
    Failure,
    /// The solver resumed from a version.
    Recovery,
}
