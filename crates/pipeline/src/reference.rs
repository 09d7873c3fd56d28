//! The problem a session saves the iterate of, and what a program knows of a state.

use std::sync::Arc;

use recoup_core::{AfarProblem, Operator};

/// The problem a session saves the iterate of: `A x = b`, shared with the worker thread.
#[derive(Clone)]
pub struct Reference {
    /// The operator; applied by the worker while the solver applies it too.
    pub operator: Arc<dyn Operator + Send + Sync>,
    /// The right-hand side, this rank's rows.
    pub rhs: Arc<[f64]>,
    /// The same problem where the solver's vectors rest, if that is elsewhere: what rests there is
    /// measured there. The same on all ranks, or on none.
    pub afar: Option<Arc<dyn AfarProblem>>,
}

/// The norms a program knows of the state it saves, so that no product is spent on it; the same on
/// all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KnownNorms {
    /// `||b - A x||` of the iterate. Bounds are held to it; should the first one fail, it is
    /// measured all the same.
    pub residual_norm: Option<f64>,
    /// `d . A d` of the direction, where there is one.
    pub direction_squared: Option<f64>,
}
