//! The sweep of Jacobi's method.

use recoup_core::{ExactSum, JacobiSweep, SolveError};

use crate::{Space, System, Vector};

/// The pass of Jacobi's method in a space.
pub trait JacobiPasses: Space {
    /// One sweep `x = x + omega D^-1 (b - A x)`, and the local part of `||b - A x||^2` for the x
    /// before it. `room` is overwritten.
    fn sweep(
        &self,
        inverse_diagonal: &Self::Vector,
        omega: f64,
        x: &mut Self::Vector,
        room: &mut Self::Vector,
    ) -> Result<ExactSum, SolveError>;
}

impl JacobiPasses for System<'_> {
    fn sweep(
        &self,
        inverse_diagonal: &Vector,
        omega: f64,
        x: &mut Vector,
        room: &mut Vector,
    ) -> Result<ExactSum, SolveError> {
        let squared = self.a.jacobi_sweep(JacobiSweep { b: self.b, inverse_diagonal, omega, x, target: room })?;
        if !self.a.sweeps_in_place() {
            std::mem::swap(x, room);
        }
        Ok(squared)
    }
}
