//! The linear system a solver works on, and when it stops.

use recoup_core::{Comm, Iteration, Operator, SolveError};

use crate::{Pool, SummedRows};

/// The rows of `A x = b` that this rank owns, and the ranks and threads that compute with them.
#[derive(Clone, Copy)]
pub struct System<'a> {
    /// The operator.
    pub a: &'a dyn Operator,
    /// The right-hand side.
    pub b: &'a [f64],
    /// The ranks that share the system.
    pub comm: &'a dyn Comm,
    /// The threads of this rank.
    pub pool: &'a Pool,
}

impl System<'_> {
    /// Returns this rank's rows, as sums over all ranks cut them.
    #[must_use]
    pub fn rows(&self) -> SummedRows {
        SummedRows { rows: self.a.rows(), chunk_rows: self.a.chunk_rows() }
    }

    /// Checks what every method needs: b and x of the operator's length, and finite.
    ///
    /// # Errors
    /// [`SolveError::Length`], [`SolveError::NotFinite`].
    pub fn validate(&self, x: &[f64]) -> Result<(), SolveError> {
        for (what, values) in [("right-hand side", self.b), ("initial guess", x)] {
            if values.len() != self.a.rows() {
                return Err(SolveError::Length { what, expected: self.a.rows(), found: values.len() });
            }
            if let Some(index) = values.iter().position(|v| !v.is_finite()) {
                return Err(SolveError::NotFinite { what, index, value: values[index] });
            }
        }
        Ok(())
    }
}

/// End of a solve: at `||b - A x|| <= rtol ||b||`, the true residual; or where it has diverged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stop {
    /// Tolerance on the relative residual.
    pub rtol: f64,
    /// A solve whose residual norm reaches `dtol max(||b||, ||b - A x0||)` has diverged. Above 1;
    /// infinity for no limit.
    pub dtol: f64,
}

impl Stop {
    /// The divergence limit unless another is given, as in PETSc.
    pub const DTOL: f64 = 1e5;

    /// Stops at a relative residual of `rtol`, with the usual divergence limit.
    #[must_use]
    pub const fn at(rtol: f64) -> Self {
        Self { rtol, dtol: Self::DTOL }
    }
}

/// An iterative method as the program sees it.
pub trait Method: Iteration {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// Returns a copy of the iterate as it stands, in memory of the host.
    ///
    /// # Errors
    /// [`SolveError::Device`] when the place where the iterate rests fails.
    fn iterate(&self) -> Result<Vec<f64>, SolveError>;

    /// Iterations after which the work of an iteration repeats: those of a cycle.
    fn cycle_length(&self) -> u64 {
        1
    }

    /// Bytes this rank moves per iteration: each array counted once for each pass that reads it and
    /// once for each that writes it, no write-allocate, as STREAM counts.
    fn bytes_per_iteration(&self) -> f64;
}
