//! The log of decisions.

use recoup_core::{Plan, Prediction};

/// One line of the decision log.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRecord {
    /// The iteration it was taken at.
    pub iteration: u64,
    /// The way versions are saved from now on.
    pub plan: Plan,
    /// The interval in force.
    pub interval_seconds: f64,
    /// Extra iterations expected of a recovery from such versions; `None` where nothing is saved.
    pub extra_iterations: Option<Prediction>,
    /// The reasons, in numbers.
    pub why: String,
}
