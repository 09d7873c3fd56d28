//! Gauss-Seidel, SOR and SSOR for A with a nonzero diagonal.
//!
//! `x_i = x_i + omega (b_i - a_i x) / a_ii`, row by row with the newest x: rows ascending
//! (Gauss-Seidel with omega 1, SOR), or ascending and then descending (SSOR). Source: D. M. Young
//! 1954, doi 10.1090/S0002-9947-1954-0059635-7. A sweep is sequential, so its bits do not depend on
//! the number of threads; the residual behind it is threaded and true. Across ranks a sweep sees
//! the newest x in its own rows and the last sweep's in all others, so iteration counts depend on
//! the number of ranks.
//!
//! | vectors of length n | count | checkpoint |
//! |---|---|---|
//! | x | 1 | iterate |
//! | r, `1 / a_ii` | 2 | rebuilt |
//! | b less what other ranks' x contribute | 1 with several ranks | rebuilt |
//! | b, A | - | static |
//!
//! Every step is a safe point; an exact and a restarted resume are the same thing, bitwise, as x is
//! all there is.

use recoup_core::{
    BreakdownReason, Iteration, MethodProfile, Operator, Progress, Registered, ResidualKind, Resume, Role, SolveError,
    Status,
};

use crate::kernels::vector::axpy;
use crate::methods::named::{MethodInputs, NamedMethod, Need, Setting, table_facts};
use crate::methods::shared::{ResidualLimits, first_iterate, residual, rhs_norm, start};
use crate::methods::variables::lend_variables;
use crate::{Csr, Method, Stop, System, Vector};

/// Slot of the own right-hand side, behind x and r.
const OWN_RHS_SLOT: usize = 2;

/// Order and relaxation of a sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relaxation {
    /// Rows ascending, omega 1.
    GaussSeidel,
    /// Rows ascending, over-relaxed.
    Sor {
        /// Relaxation factor, between 0 and 2.
        omega: f64,
    },
    /// Rows ascending, then descending, over-relaxed.
    Ssor {
        /// Relaxation factor, between 0 and 2.
        omega: f64,
    },
}

impl Relaxation {
    /// The line of the table for this relaxation.
    fn named(self) -> &'static NamedMethod {
        match self {
            Self::GaussSeidel => &GAUSS_SEIDEL,
            Self::Sor { .. } => &SOR,
            Self::Ssor { .. } => &SSOR,
        }
    }

    fn omega(self) -> f64 {
        match self {
            Self::GaussSeidel => 1.0,
            Self::Sor { omega } | Self::Ssor { omega } => omega,
        }
    }
}

/// Rows ascending, omega 1.
pub(super) const GAUSS_SEIDEL: NamedMethod = NamedMethod {
    name: "gauss-seidel",
    summary: "Gauss-Seidel",
    profile: MethodProfile::STATIONARY,
    needs: Some(Need::Rows),
    settings: &[],
    make: |of| GaussSeidel::boxed(of, Relaxation::GaussSeidel),
    #[cfg(feature = "cuda")]
    make_on_device: None,
};

/// Rows ascending, over-relaxed.
pub(super) const SOR: NamedMethod = NamedMethod {
    name: "sor",
    summary: "Successive over-relaxation",
    settings: &[Setting::Omega],
    make: |of| GaussSeidel::boxed(of, Relaxation::Sor { omega: of.omega }),
    ..GAUSS_SEIDEL
};

/// Rows ascending, then descending, over-relaxed.
pub(super) const SSOR: NamedMethod = NamedMethod {
    name: "ssor",
    summary: "Symmetric successive over-relaxation",
    make: |of| GaussSeidel::boxed(of, Relaxation::Ssor { omega: of.omega }),
    ..SOR
};

/// Gauss-Seidel and its over-relaxed relatives.
pub struct GaussSeidel<'a> {
    system: System<'a>,
    matrix: &'a Csr,
    relaxation: Relaxation,
    limits: ResidualLimits,
    inverse_diagonal: Vec<f64>,
    x: Vector,
    r: Vector,
    /// b, less the product of the columns of other ranks with their x; b itself where there are
    /// none.
    own_rhs: Option<Vector>,
    progress: Progress,
}

impl<'a> GaussSeidel<'a> {
    /// Starts from `x`. The sweeps go through the rows of `matrix`, which is `system.a` or equal to
    /// it; with several ranks the entries of it between rows of this rank.
    ///
    /// # Errors
    /// [`SolveError::Length`] and [`SolveError::NotFinite`] for b, x or the matrix,
    /// [`SolveError::Diagonal`] for a zero on the diagonal, [`SolveError::Parameter`] for an omega
    /// outside (0, 2), [`SolveError::Comm`] when a rank is lost.
    pub fn new(
        system: System<'a>,
        matrix: &'a Csr,
        relaxation: Relaxation,
        x: &[f64],
        stop: Stop,
    ) -> Result<Self, SolveError> {
        system.validate(x)?;
        if matrix.n() != x.len() {
            return Err(SolveError::Length { what: "matrix rows", expected: x.len(), found: matrix.n() });
        }
        let rhs_norm = rhs_norm(&system)?;
        let has_other_ranks = system.a.global_rows() > x.len() as u64;
        let mut solver = Self {
            inverse_diagonal: inverse_diagonal(matrix, relaxation)?,
            matrix,
            relaxation,
            limits: ResidualLimits::new(stop, rhs_norm)?,
            x: first_iterate(&system, x, rhs_norm, 0)?,
            r: Vector::zeros(system.pool, x.len(), 1),
            own_rhs: has_other_ranks.then(|| Vector::zeros(system.pool, x.len(), OWN_RHS_SLOT)),
            progress: start(rhs_norm),
            system,
        };
        solver.resume(0, Resume::Restarted)?;
        solver.limits.set_start(&solver.progress);
        Ok(solver)
    }

    fn boxed(of: &MethodInputs<'a>, relaxation: Relaxation) -> Result<Box<dyn Method + 'a>, SolveError> {
        let missing = SolveError::Operator { method: relaxation.named().name, needed: "assembled rows" };
        Ok(Box::new(Self::new(of.system, of.rows.ok_or(missing)?, relaxation, of.x0, of.stop)?))
    }

    /// Relaxes rows, one after the other. Returns whether a value changed.
    fn relax(&mut self, rows: impl Iterator<Item = usize>) -> bool {
        let rhs = self.own_rhs.as_deref().unwrap_or(self.system.b);
        let omega = self.relaxation.omega();
        let x: &mut [f64] = &mut self.x;
        let mut has_changed = false;
        for i in rows {
            let (columns, values) = self.matrix.row(i);
            let product = columns.iter().zip(values).fold(0.0, |sum, (&j, a)| sum + a * x[j as usize]);
            let before = x[i];
            // x_i = x_i + omega (b_i - a_i x) / a_ii
            x[i] = before + omega * (rhs[i] - product) * self.inverse_diagonal[i];
            has_changed |= x[i] != before;
        }
        has_changed
    }

    /// Subtracts from b what other ranks' x contribute: r + A' x, with A' the entries between rows
    /// of this rank.
    fn take_in_others(&mut self) -> Result<(), SolveError> {
        let Some(own_rhs) = &mut self.own_rhs else { return Ok(()) };
        self.matrix.apply(&self.x, own_rhs)?;
        axpy(self.system.pool, 1.0, &self.r, own_rhs);
        Ok(())
    }

    /// Computes the residual norm of the iterate, and the status of the solve with it.
    fn measure_residual(&mut self) -> Result<(), SolveError> {
        self.limits.record(residual(&self.system, &self.x, &mut self.r)?, &mut self.progress);
        Ok(())
    }
}

/// `1 / a_ii`, after a look at omega.
fn inverse_diagonal(matrix: &Csr, relaxation: Relaxation) -> Result<Vec<f64>, SolveError> {
    let omega = relaxation.omega();
    if omega.is_nan() || omega <= 0.0 || omega >= 2.0 {
        return Err(SolveError::Parameter { what: "omega", value: omega, expected: "between 0 and 2, both excluded" });
    }
    let invert = |row: usize| {
        let (columns, values) = matrix.row(row);
        let position = columns.binary_search(&(row as u32));
        let value = position.map_or(0.0, |position| values[position]);
        let inverse = 1.0 / value;
        let what = relaxation.named().name;
        if inverse.is_finite() { Ok(inverse) } else { Err(SolveError::Diagonal { what, row, value }) }
    };
    (0..matrix.n()).map(invert).collect()
}

impl Registered for GaussSeidel<'_> {
    lend_variables! { |solver|
        rows("x", Role::Iterate, solver.x);
    }
}

impl Iteration for GaussSeidel<'_> {
    table_facts! { |solver| solver.name(), solver.relaxation.named().profile }

    fn step(&mut self) -> Result<Progress, SolveError> {
        if self.progress.status != Status::Running {
            return Ok(self.progress);
        }
        self.take_in_others()?;
        let n = self.x.len();
        let mut changed = self.relax(0..n);
        if let Relaxation::Ssor { .. } = self.relaxation {
            changed |= self.relax((0..n).rev());
        }
        self.progress.iteration += 1;
        self.measure_residual()?;
        // A sweep that changes nothing on any rank will never change anything.
        let any_changed = self.system.comm.max(i64::from(changed))? == 1;
        if !any_changed && self.progress.status == Status::Running {
            self.progress.status = Status::Breakdown(BreakdownReason::Stagnated);
        }
        Ok(self.progress)
    }

    /// Continues from x alone: exact, traditional and restarted are the same here.
    fn resume(&mut self, iteration: u64, how: Resume) -> Result<Progress, SolveError> {
        if how == Resume::Deflated {
            return Err(SolveError::Resume { method: self.name(), how });
        }
        self.progress.iteration = iteration;
        self.measure_residual()?;
        Ok(self.progress)
    }

    fn residual_kind(&self) -> ResidualKind {
        ResidualKind::True
    }
}

impl Method for GaussSeidel<'_> {
    fn name(&self) -> &'static str {
        self.relaxation.named().name
    }

    fn iterate(&self) -> Result<Vec<f64>, SolveError> {
        Ok(self.x.to_vec())
    }

    /// Each sweep reads the matrix, b, `1 / a_ii` and x and writes x; so does the residual, but for
    /// the diagonal.
    fn bytes_per_iteration(&self) -> f64 {
        let n = self.x.len() as f64;
        let matrix = self.system.a.bytes() as f64;
        let sweeps = if let Relaxation::Ssor { .. } = self.relaxation { 2.0 } else { 1.0 };
        let others = if self.own_rhs.is_some() { matrix + 40.0 * n } else { 0.0 };
        sweeps * (matrix + 32.0 * n) + matrix + 24.0 * n + others
    }
}
