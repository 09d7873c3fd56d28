//! Jacobi's method for diagonally dominant A: `x + omega D^-1 (b - A x)`, one fused sweep per
//! iteration.
//!
//! Source: C. G. J. Jacobi 1845, doi 10.1002/asna.18450222002; damping and convergence as in Y.
//! Saad, Iterative Methods for Sparse Linear Systems 2003, chapter 4, doi 10.1137/1.9780898718003.
//! Departures: a sweep finds the residual of the iterate it starts from, so the residual norm
//! reported is one iteration old; when it meets the tolerance, the residual of the new iterate is
//! measured, and that one decides.
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | residual norm reported (a scalar) | - | measured, saved for an exact resume |
//! | target (room for the next x) | 1 | not needed |
//! | `D^-1` | 1 | rebuilt from A |
//! | b, A | - | static |
//!
//! Every step is a safe point. After every resume the iterates have the same bits. An exact one
//! reports the norm that was saved, and ends where the undisturbed solve does. The others measure
//! that of x, and may end one iteration earlier.

mod passes;

use recoup_core::{Iteration, MethodProfile, Progress, Registered, ResidualKind, Resume, Role, SolveError, Status};

pub use passes::JacobiPasses;

use crate::methods::named::{MethodInputs, NamedMethod, Setting, table_facts};
use crate::methods::shared::{
    FOR_EXACT, ResidualLimits, first_iterate, global_norm, loaded, residual, rhs_norm, start,
};
use crate::methods::variables::lend_variables;
use crate::preconditioner::inverse_diagonal;
use crate::{Method, Stop};

/// The name of the residual norm as a variable.
const RESIDUAL_NORM: &str = "residual_norm";

/// The method.
pub(super) const JACOBI: NamedMethod = NamedMethod {
    name: "jacobi",
    summary: "Jacobi",
    profile: MethodProfile::STATIONARY,
    needs: None,
    settings: &[Setting::Omega],
    make: |of| Ok(Box::new(Jacobi::of_inputs(of.system, of)?)),
    #[cfg(feature = "cuda")]
    make_on_device: Some(|system, of| Ok(Box::new(Jacobi::of_inputs(system, of)?))),
};

/// Damped Jacobi.
pub struct Jacobi<S: JacobiPasses> {
    system: S,
    omega: f64,
    inverse_diagonal: S::Vector,
    limits: ResidualLimits,
    x: S::Vector,
    target: S::Vector,
    progress: Progress,
    /// The residual norm of `progress`; `None` while a version without it is restored.
    reported: Option<[f64; 1]>,
}

impl<S: JacobiPasses> Jacobi<S> {
    /// Starts from `x0` with damping `omega`, 1 for the plain method.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for bad vectors,
    /// [`SolveError::Diagonal`] for a zero on the diagonal, [`SolveError::Operator`] when there is
    /// no diagonal to read, [`SolveError::Parameter`] for a damping outside (0, 2),
    /// [`SolveError::Comm`] when a rank is lost, [`SolveError::Device`] when the place of the
    /// vectors fails.
    pub fn new(system: S, omega: f64, x0: &[f64], stop: Stop) -> Result<Self, SolveError> {
        system.host().validate(x0)?;
        if !(omega > 0.0 && omega < 2.0) {
            let expected = "a number between 0 and 2";
            return Err(SolveError::Parameter { what: "omega", value: omega, expected });
        }
        let known_diagonal = inverse_diagonal("Jacobi's method", system.host().a)?;
        let rhs_norm = rhs_norm(system.host())?;
        let mut jacobi = Self {
            omega,
            inverse_diagonal: loaded(&system, &known_diagonal, 2)?,
            limits: ResidualLimits::new(stop, rhs_norm)?,
            x: first_iterate(&system, x0, rhs_norm, 0)?,
            target: system.zeros(1)?,
            progress: start(rhs_norm),
            reported: None,
            system,
        };
        jacobi.measure_residual()?;
        jacobi.limits.set_start(&jacobi.progress);
        Ok(jacobi)
    }

    fn of_inputs(system: S, of: &MethodInputs<'_>) -> Result<Self, SolveError> {
        Self::new(system, of.omega, of.x0, of.stop)
    }

    /// Computes the residual norm of the iterate, and the status of the solve with it.
    fn measure_residual(&mut self) -> Result<(), SolveError> {
        let residual_norm = residual(&self.system, &self.x, &mut self.target)?;
        self.report(residual_norm);
        Ok(())
    }

    /// Reports this residual norm, with the status it means.
    fn report(&mut self, residual_norm: f64) {
        self.limits.record(residual_norm, &mut self.progress);
        self.reported = Some([residual_norm]);
    }
}

impl<S: JacobiPasses> Registered for Jacobi<S> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
        given(Some(norm) in solver.reported) {
            scalars(RESIDUAL_NORM, FOR_EXACT, norm[..]);
        }
    }

    /// Versions of earlier builds hold x alone.
    fn make_room(&mut self, saved: &[&str]) {
        self.reported = saved.contains(&RESIDUAL_NORM).then_some([f64::NAN]);
    }
}

impl<S: JacobiPasses> Iteration for Jacobi<S> {
    table_facts! { |solver| solver.name(), JACOBI.profile }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        // x = x + omega D^-1 (b - A x)
        let residual_squared = self.system.sweep(&self.inverse_diagonal, self.omega, &mut self.x, &mut self.target)?;
        self.progress.iteration += 1;
        self.report(global_norm(&self.system, residual_squared)?);
        if self.progress.is_converged() {
            self.measure_residual()?;
        }
        Ok(self.progress)
    }

    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        if how == Resume::Deflated {
            return Err(SolveError::Resume { method: self.name(), how });
        }
        self.progress.iteration = iteration;
        match self.reported {
            Some([residual_norm]) if how == Resume::Exact => self.report(residual_norm),
            _ => self.measure_residual()?,
        }
        Ok(self.progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::SweepBefore
    }
}

impl<S: JacobiPasses> Method for Jacobi<S> {
    fn name(&self) -> &'static str {
        JACOBI.name
    }

    fn iterate(&self) -> Result<Vec<f64>, SolveError> {
        self.system.to_host(&self.x)
    }

    fn bytes_per_iteration(&self) -> f64 {
        let a = self.system.host().a;
        // read x and b, write x; not in place, the diagonal is read and x written elsewhere
        let arrays = if a.sweeps_in_place() { 3 } else { 4 };
        (a.bytes() + arrays * 8 * a.rows() as u64) as f64
    }
}
