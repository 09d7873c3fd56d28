//! The interface between the pipeline and a solver: its variables, one step, and a way back.

use std::fmt;

use crate::{
    CommError, DeviceValuesError, ErrorKind, KindedError, MethodProfile, Plan, Resume, Variable, VariableMut,
    short_number,
};

/// An owner of variables: a solver, or an application around it.
pub trait Registered {
    /// Lends the variables as they are now, always in the same order.
    fn variables(&self) -> Vec<Variable<'_>>;

    /// Lends the same variables to be overwritten by a restore, in the same order.
    fn variables_mut(&mut self) -> Vec<VariableMut<'_>>;

    /// Returns a number that changes whenever names, roles, element types, lengths or extents of
    /// the variables do, but not with their values. It is asked for at every safe point, and
    /// [`Registered::variables`] only where it has changed or a version is due. An owner whose
    /// variables come, go or grow returns [`revision_of`](crate::revision_of) them, or counts the
    /// changes; a wrapper returns that of the owner it wraps.
    fn revision(&self) -> u64 {
        0
    }

    /// Makes the variables of a version that this owner knows, before a restore. It matters to
    /// owners whose variables come and go; names of other owners are ignored.
    fn make_room(&mut self, _saved: &[&str]) {}
}

/// The reason why a method cannot continue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BreakdownReason {
    /// `p . A p <= 0`: the operator is not positive definite.
    NotPositiveDefinite {
        /// The curvature found.
        curvature: f64,
    },
    /// A scalar the method divides by vanished.
    Vanished {
        /// Name of the scalar in the paper.
        scalar: &'static str,
        /// Times the method had restarted from its iterate because a scalar vanished.
        restarts: u32,
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
                write!(f, "the operator is not positive definite (p . A p = {curvature:.2e})")
            }
            Self::Vanished { scalar, restarts: 0 } => write!(f, "{scalar} vanished"),
            Self::Vanished { scalar, restarts } => {
                write!(f, "{scalar} vanished, also after {restarts} restarts from the iterate: take gmres")
            }
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

/// The state of a solve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    /// The tolerance is not met yet.
    Running,
    /// The true residual `||b - A x||` is at or below the tolerance.
    Converged,
    /// The method cannot continue.
    Breakdown(BreakdownReason),
}

/// The report of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Iterations completed since the start of the solve, lost work not counted.
    pub iteration: u64,
    /// The residual norm the method knows: of the recurrence, or true.
    pub residual_norm: f64,
    /// `||b||`, so that `residual_norm / rhs_norm` is the relative residual.
    pub rhs_norm: f64,
    /// The state of the solve.
    pub status: Status,
    /// The checkpoints that may be taken now.
    pub safe_point: SafePoint,
}

/// The checkpoints that may be taken of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SafePoint {
    /// None.
    No,
    /// Checkpoints that are resumed exactly. Other ones would lose the work that is not in the
    /// iterate yet: in mid-cycle the iterate of GMRES is that of the cycle's start. The residual
    /// norm reported is not that of the iterate.
    Exact,
    /// All.
    Any,
}

impl SafePoint {
    /// Returns whether a checkpoint of this plan may be taken.
    #[must_use]
    pub fn admits(self, plan: &Plan) -> bool {
        match self {
            Self::No => false,
            Self::Exact => plan.resumes_exactly(),
            Self::Any => true,
        }
    }
}

impl Progress {
    /// Makes a state from which the solve continues, and of which any checkpoint may be taken.
    #[must_use]
    pub const fn running(iteration: u64, residual_norm: f64, rhs_norm: f64) -> Self {
        Self { iteration, residual_norm, rhs_norm, status: Status::Running, safe_point: SafePoint::Any }
    }

    /// Returns `||r|| / ||b||`; `||r||` itself when b is zero.
    #[must_use]
    pub fn relative_residual(&self) -> f64 {
        if self.rhs_norm > 0.0 { self.residual_norm / self.rhs_norm } else { self.residual_norm }
    }

    /// Returns whether the tolerance is met.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.status == Status::Converged
    }
}

/// The vector of which a [`Progress`] has the norm: how far the true residual `||b - A x||`
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
    /// Returns the state of the solve now.
    fn progress(&self) -> Progress;

    /// Does one iteration. A solve that is not [`Status::Running`] stays as it is.
    ///
    /// # Errors
    /// [`SolveError`] when a rank is lost; breakdown is a result, in the progress.
    fn step(&mut self) -> Result<Progress, SolveError>;

    /// Continues from overwritten variables as after `iteration` iterations. What `how` does not
    /// bring back is recomputed.
    ///
    /// # Errors
    /// [`SolveError::Resume`] when the method has no such way back.
    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError>;

    /// Returns the vector of which the residual norm is the norm, at a [`SafePoint::Any`].
    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::Unknown
    }

    /// Returns the name of the method, if its variables mean nothing to other methods: of another
    /// method's version the iterate alone is restored. `None` where that is not known.
    fn method(&self) -> Option<&'static str> {
        None
    }

    /// Writes the residual norms of all columns, as the method knows them, into `norms`. A method
    /// of one right-hand side leaves it empty.
    fn column_norms(&self, _norms: &mut Vec<f64>) {}

    /// Returns how the method takes a recovery from lossy values.
    fn profile(&self) -> MethodProfile {
        MethodProfile::UNKNOWN
    }

    /// Returns the relative residual at which the method ends; `None` where that is not known.
    fn tolerance(&self) -> Option<f64> {
        None
    }

    /// Returns whether the directions of the method still fit its residual. A corrupted direction
    /// leaves iterate and residual consistent, but can keep the method from ever getting on; a
    /// restarted resume in place heals it. Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost.
    fn has_sound_directions(&self) -> Result<bool, SolveError> {
        Ok(true)
    }
}

/// An error of a solver.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// The communicator failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The place where the vectors rest failed.
    #[error(transparent)]
    Device(#[from] DeviceValuesError),
    /// A vector has another length than the operator has rows.
    #[error("{what}: {expected} values expected, {found} found")]
    Length {
        /// The vector.
        what: &'static str,
        /// Rows of the operator.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A value that must be finite is not.
    #[error("{what}: value {} is {value}, expected a finite number", .index + 1)]
    NotFinite {
        /// The vector.
        what: &'static str,
        /// First such position, from 0; messages count from 1.
        index: usize,
        /// The value found.
        value: f64,
    },
    /// A row has no usable diagonal.
    #[error("{what} needs a usable diagonal: row {} has {}", .row + 1, short_number(*.value))]
    Diagonal {
        /// The method or preconditioner.
        what: &'static str,
        /// The row of the matrix given, from 0; messages count from 1.
        row: usize,
        /// The diagonal entry of that row.
        value: f64,
    },
    /// The operator cannot do what the method needs.
    #[error("{method} needs {needed}, which this operator does not offer")]
    Operator {
        /// The method.
        method: &'static str,
        /// The missing ability.
        needed: &'static str,
    },
    /// The preconditioner cannot be applied where the vectors are stored.
    #[error("preconditioner {name} has no form on a device: use {instead}")]
    Preconditioner {
        /// Name of the preconditioner.
        name: &'static str,
        /// Names of those that can be applied there.
        instead: &'static str,
    },
    /// A library that a preconditioner calls failed.
    #[error("{library}: {call} returned {code}")]
    Library {
        /// The library.
        library: &'static str,
        /// The call.
        call: &'static str,
        /// The error that it returned.
        code: i32,
    },
    /// The method cannot continue like this.
    #[error("{method} has no {how} resume")]
    Resume {
        /// The method.
        method: &'static str,
        /// The resume that was asked for.
        how: Resume,
    },
    /// A parameter is out of its range.
    #[error("{what} is {}, expected {expected}", short_number(*.value))]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// The value given.
        value: f64,
        /// The values allowed.
        expected: &'static str,
    },
}

impl SolveError {
    /// The same error of rows that begin at row `first` of a larger matrix, with the row's number
    /// there.
    #[must_use]
    pub fn in_rows_from(self, first: usize) -> Self {
        match self {
            Self::Diagonal { what, row, value } => Self::Diagonal { what, row: first + row, value },
            other => other,
        }
    }
}

impl KindedError for SolveError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Comm(error) => error.kind(),
            Self::Device(error) => error.kind.into(),
            _ => ErrorKind::Refused,
        }
    }
}
