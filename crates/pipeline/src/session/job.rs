//! A version to be made, as a session hands it to its worker.

use recoup_core::{Measured, Plan, Prediction, Progress, Role};

use crate::staging::StagingSet;
use crate::verify::KnownNorms;
use crate::verify::ReportedResidual;

/// A version to be made.
#[derive(Debug)]
pub(crate) struct CheckpointJob {
    pub(crate) plan: Plan,
    pub(crate) progress: Progress,
    pub(crate) reported: ReportedResidual,
    pub(crate) known: KnownNorms,
    /// `||r||` of each column of a block, as its method knows them; empty where it does not say.
    pub(crate) column_norms: Vec<f64>,
    /// The solver's tolerance on relative residuals.
    pub(crate) tolerance: f64,
    /// The measurements of the run, where its policy asks for them.
    pub(crate) measured: Option<Measured>,
    /// Extra iterations expected of a recovery from it.
    pub(crate) predicted: Option<Prediction>,
    /// The method converges sooner from a symmetric state.
    pub(crate) gains_by_symmetry: bool,
    /// The name of the method, where it has one.
    pub(crate) method: Option<&'static str>,
    pub(crate) staging: StagingSet,
    pub(crate) stage_seconds: f64,
    pub(crate) wait_seconds: f64,
}

impl CheckpointJob {
    /// Returns `||b - A x||` of a column of a block, as the program knows it.
    pub(crate) fn known_column(&self, column: usize) -> Option<f64> {
        self.known.column_norms.get(column).copied()
    }

    /// Returns `d . A d` of the direction as the program knows it: it speaks of one direction.
    pub(crate) fn direction_squared(&self) -> Option<f64> {
        let directions = self.staging.staged.iter().filter(|staged| staged.record.role == Role::Direction);
        self.known.direction_squared.filter(|_| directions.count() == 1)
    }
}
