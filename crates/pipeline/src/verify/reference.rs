//! The problem a session saves the iterate of, and what a program knows of a state.

use std::sync::Arc;

use recoup_core::{ElementType, Operator, ProblemOnDevice, SolveError, VariableRecord};

/// The problem a session saves the iterate of: `A x = b`, or `A X = B` with several columns, shared
/// with the worker thread.
#[derive(Clone)]
pub struct Reference {
    /// The operator; applied by the worker while the solver applies it too.
    pub operator: Arc<dyn Operator + Send + Sync>,
    /// The right-hand sides, one after the other, of each this rank's rows.
    pub rhs: Arc<[f64]>,
    /// Number of right-hand sides, the same on all ranks. Where there are several, each variable of
    /// a solver names its [column](recoup_core::Variable::column).
    pub columns: usize,
    /// The same problem where the solver's vectors are stored, if that is elsewhere: what is stored
    /// there is measured there. The same on all ranks, or on none.
    pub on_device: Option<Arc<dyn ProblemOnDevice>>,
}

impl Reference {
    /// Makes the problem of one right-hand side, whose vectors are stored in this process's memory.
    #[must_use]
    pub fn new(operator: Arc<dyn Operator + Send + Sync>, rhs: Arc<[f64]>) -> Self {
        Self { operator, rhs, columns: 1, on_device: None }
    }

    /// Returns one right-hand side, this rank's rows.
    pub(crate) fn column(&self, column: usize) -> &[f64] {
        let rows = self.operator.rows();
        &self.rhs[column * rows..][..rows]
    }

    /// Returns whether a variable is a vector of this problem: real numbers, one per row, and of a
    /// known column where there are several.
    pub(crate) fn has_shape_of(&self, record: &VariableRecord) -> bool {
        let is_of_column = match record.column {
            Some(column) => column < self.columns,
            None => self.columns == 1,
        };
        is_of_column && is_vector(record, self.operator.rows())
    }

    /// Refuses right-hand sides of another length than the columns have together.
    pub(crate) fn check(&self) -> Result<(), SolveError> {
        let expected = self.operator.rows() * self.columns;
        let found = self.rhs.len();
        if found == expected { Ok(()) } else { Err(SolveError::Length { what: "b", expected, found }) }
    }
}

/// The norms a program knows of the state it saves, so that no product is spent on it; the same on
/// all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownNorms {
    /// `||b - A x||` of the iterate. Bounds are held to it; should the first one fail, it is
    /// measured all the same.
    pub residual_norm: Option<f64>,
    /// The same of each column of a block; empty where they are not known.
    pub column_norms: Vec<f64>,
    /// `d . A d` of the direction, where there is one.
    pub direction_squared: Option<f64>,
}

/// Returns whether a variable is a vector of doubles or singles, this many.
pub(crate) fn is_vector(record: &VariableRecord, rows: usize) -> bool {
    matches!(record.element, ElementType::F64 | ElementType::F32) && record.len as usize == rows
}
