//! What the pipeline asks of a solver: its variables, one step, and a way back.

use std::fmt;

use crate::{CommError, MethodProfile, Resume, Variable, VariableMut};

/// An owner of variables: a solver, or an application beside it.
pub trait Registered {
    /// The variables as they are now, always in the same order.
    fn variables(&self) -> Vec<Variable<'_>>;

    /// The same variables to be overwritten by a restore, in the same order.
    fn variables_mut(&mut self) -> Vec<VariableMut<'_>>;

    /// Returns a number that changes whenever names, roles, element types, lengths or extents of
    /// the variables do, but not with their values. It is asked for at every safe point, and
    /// [`Registered::variables`] only where it has changed or a version is due. An owner whose
    /// variables come, go or grow returns [`revision_of`](crate::revision_of) them, or counts the
    /// changes; a wrapper returns that of the owner it wraps.
    fn revision(&self) -> u64 {
        0
    }

    /// Called before a restore with the names of the variables of a version: an owner whose
    /// variables come and go makes those of them its own that it knows. The others are not its
    /// business.
    fn make_room(&mut self, _saved: &[&str]) {}
}

/// Why a method cannot go on.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BreakdownReason {
    /// `p . A p <= 0`: the operator is not positive definite.
    NotPositiveDefinite {
        /// The curvature found.
        curvature: f64,
    },
    /// A scalar the method divides by vanished.
    Vanished {
        /// Its name in the paper.
        scalar: &'static str,
    },
    /// The residual norm is NaN or infinite.
    NotFinite,
    /// The residual norm reached the divergence limit.
    Diverged {
        /// The residual norm.
        residual_norm: f64,
        /// The limit: a multiple of the right-hand side's norm, or of the initial residual's where
        /// that is larger.
        limit: f64,
    },
    /// The residual stays at the attainable accuracy, above the tolerance.
    Stagnated,
}

impl fmt::Display for BreakdownReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPositiveDefinite { curvature } => {
                write!(f, "the operator is not positive definite (p . A p = {curvature:e})")
            }
            Self::Vanished { scalar } => write!(f, "{scalar} vanished"),
            Self::NotFinite => f.write_str("the residual norm is not finite"),
            Self::Diverged { residual_norm, limit } => write!(
                f,
                "the solve diverged: the residual norm {residual_norm:.2e} reached the divergence limit {limit:.2e}; the \
                 method or the preconditioner may not suit this operator (cg needs a symmetric positive definite one)"
            ),
            Self::Stagnated => f.write_str("the residual stays at the attainable accuracy, above the tolerance"),
        }
    }
}

/// Where a solve stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    /// The tolerance is not met yet.
    Running,
    /// The true residual `||b - A x||` is at or below the tolerance.
    Converged,
    /// The method cannot go on.
    Breakdown(BreakdownReason),
}

/// What a step reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Iterations completed since the start of the solve, lost work not counted.
    pub iteration: u64,
    /// The residual norm the method knows: of the recurrence, or true.
    pub residual_norm: f64,
    /// `||b||`, so that `residual_norm / rhs_norm` is the relative residual.
    pub rhs_norm: f64,
    /// Where the solve stands.
    pub status: Status,
    /// A checkpoint may be taken now.
    pub is_safe_point: bool,
}

impl Progress {
    /// `||r|| / ||b||`; `||r||` itself when b is zero.
    #[must_use]
    pub fn relative_residual(&self) -> f64 {
        if self.rhs_norm > 0.0 { self.residual_norm / self.rhs_norm } else { self.residual_norm }
    }

    /// The tolerance is met.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.status == Status::Converged
    }
}

/// What the residual norm of a [`Progress`] is the norm of: how far the true residual `||b - A x||`
/// of the iterate may be from it says whether memory was corrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResidualKind {
    /// `b - A x`, computed from the iterate.
    True,
    /// A recurrence of `b - A x`: equal to it but for the rounding errors of all iterations.
    Recurrence,
    /// `b - A x` one Jacobi sweep ago.
    SweepBefore,
    /// Something else, or not known: nothing follows from it.
    #[default]
    Unknown,
}

/// An iterative method, one step at a time.
pub trait Iteration: Registered {
    /// Where the solve stands now.
    fn progress(&self) -> Progress;

    /// One iteration. A solve that is not [`Status::Running`] stays as it is.
    ///
    /// # Errors
    /// [`SolveError`] when a rank is lost; breakdown is a result, in the progress.
    fn step(&mut self) -> Result<Progress, SolveError>;

    /// Goes on from overwritten variables as after `iteration` iterations. What `how` does not
    /// bring back is recomputed.
    ///
    /// # Errors
    /// [`SolveError::Resume`] when the method has no such way back.
    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError>;

    /// What the residual norm is the norm of, at a safe point.
    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::Unknown
    }

    /// The name of the method, where its variables mean something to no other one: of another
    /// method's version the iterate alone is restored. `None` where nobody says.
    fn method(&self) -> Option<&'static str> {
        None
    }

    /// How the method takes a recovery from lossy values.
    fn profile(&self) -> MethodProfile {
        MethodProfile::UNKNOWN
    }

    /// The relative residual at which the method ends; `None` where it does not say.
    fn tolerance(&self) -> Option<f64> {
        None
    }

    /// Whether the directions of the method still fit its residual. A corrupted direction leaves
    /// iterate and residual consistent, but can keep the method from ever getting on; a restarted
    /// resume in place heals it. Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost.
    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        Ok(true)
    }
}

/// What a solver reports beside its results.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The communicator failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A vector has another length than the operator has rows.
    #[error("{what}: {expected} values expected, {found} found")]
    Length {
        /// Which vector.
        what: &'static str,
        /// Rows of the operator.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A value that must be finite is not.
    #[error("{what}: value {} is {value}, expected a finite number", .index + 1)]
    NotFinite {
        /// Which vector.
        what: &'static str,
        /// First such position, from 0; messages count from 1.
        index: usize,
        /// What stands there.
        value: f64,
    },
    /// A row has no usable diagonal.
    #[error("{what} needs a usable diagonal: row {} has {value}", .row + 1)]
    Diagonal {
        /// The method or preconditioner.
        what: &'static str,
        /// The row of the matrix given, from 0; messages count from 1.
        row: usize,
        /// Its diagonal entry.
        value: f64,
    },
    /// The operator cannot do what the method needs.
    #[error("{method} needs {needed}, which this operator does not offer")]
    Operator {
        /// The method.
        method: &'static str,
        /// What is missing.
        needed: &'static str,
    },
    /// The method cannot continue like this.
    #[error("{method} has no {how} resume")]
    Resume {
        /// The method.
        method: &'static str,
        /// What was asked.
        how: Resume,
    },
    /// A parameter is out of its range.
    #[error("{what} is {value}, expected {expected}")]
    Parameter {
        /// Which parameter.
        what: &'static str,
        /// What was given.
        value: f64,
        /// What is allowed.
        expected: &'static str,
    },
}
