//! The three solves of the evaluation, at a size two cores hold, and the machine they run on in
//! virtual time.

use std::fmt;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{CommError, Operator, SolveError, Status};
use recoup::pipeline::VirtualCosts;
use recoup::solvers::{
    Cg, Gmres, GmresOptions, Jacobi, JacobiPreconditioner, Method, Poisson3d, Pool, RightHandSide, Side, Stop, System,
};

use crate::Failed;
use crate::published::{self, Solve};

/// Copying one vector to memory, seconds: 39.4 MB per rank at 4 GB/s.
const STAGE_SECONDS: f64 = 0.01;

/// A method of the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Jacobi,
    Gmres,
    Cg,
}

impl Kind {
    /// In the paper's order.
    pub(crate) const ALL: [Self; 3] = [Self::Jacobi, Self::Gmres, Self::Cg];

    /// Its numbers in the paper.
    pub(crate) fn published(self) -> Solve {
        match self {
            Self::Jacobi => published::JACOBI,
            Self::Gmres => published::GMRES,
            Self::Cg => published::CG,
        }
    }

    /// Grid points in each direction that two cores solve in a second.
    fn grid(self) -> usize {
        match self {
            Self::Jacobi => 24,
            Self::Gmres => 32,
            Self::Cg => 48,
        }
    }

    /// Tolerance on the relative residual.
    fn rtol(self) -> f64 {
        match self {
            Self::Jacobi => 1e-4,
            Self::Gmres => 1e-10,
            Self::Cg => 1e-8,
        }
    }

    /// Allowed growth of the residual by our versions.
    pub(crate) fn theta(self) -> f64 {
        if self == Self::Cg { 0.5 } else { 3.0 }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jacobi => "Jacobi",
            Self::Gmres => "GMRES",
            Self::Cg => "CG",
        })
    }
}

/// Restart length of GMRES. The published solve has 5,875 / 30 = 196 cycles, if the restart length
/// is PETSc's default, and only their ends are safe: a small problem needs short cycles, or it
/// could not keep Young's interval.
const GMRES_RESTART: usize = 10;

/// One solve, and how long it takes undisturbed.
#[derive(Clone)]
pub(crate) struct Problem {
    pub(crate) kind: Kind,
    /// Grid points in each direction.
    grid: usize,
    pub(crate) operator: Arc<Poisson3d>,
    pub(crate) rhs: Arc<[f64]>,
    /// Iterations of the undisturbed solve.
    pub(crate) iterations: u64,
    /// Bytes a product with the operator moves over those of an iteration.
    product_share: f64,
    preconditioner: Arc<JacobiPreconditioner>,
    pool: Arc<Pool>,
    start: Arc<[f64]>,
}

impl Problem {
    /// Makes and solves it, on the method's own grid where none is given.
    ///
    /// # Errors
    /// When the method refuses it or does not converge.
    pub(crate) fn new(kind: Kind, rhs: RightHandSide, grid: Option<usize>) -> Result<Self, Failed> {
        let grid = grid.unwrap_or_else(|| kind.grid());
        let pool = Arc::new(Pool::new(1));
        let operator = Arc::new(Poisson3d::new(grid).with_pool(pool.clone()));
        let rhs: Arc<[f64]> = rhs.build(&*operator)?.into();
        let start: Arc<[f64]> = vec![0.0; rhs.len()].into();
        let preconditioner = Arc::new(JacobiPreconditioner::new(&*operator)?);
        let mut problem =
            Self { kind, grid, operator, rhs, iterations: 0, product_share: 1.0, preconditioner, pool, start };
        (problem.iterations, problem.product_share) = problem.undisturbed()?;
        Ok(problem)
    }

    /// The same with threads of its own.
    pub(crate) fn twin(&self) -> Self {
        let pool = Arc::new(Pool::new(1));
        let operator = Arc::new(Poisson3d::new(self.grid).with_pool(pool.clone()));
        Self { operator, pool, ..self.clone() }
    }

    /// Unknowns.
    pub(crate) fn n(&self) -> usize {
        self.rhs.len()
    }

    /// A fresh solver at x = 0.
    ///
    /// # Errors
    /// [`SolveError`].
    pub(crate) fn make(&self) -> Result<Box<dyn Method + '_>, SolveError> {
        let system = System { a: &*self.operator, b: &self.rhs, comm: &Solo, pool: &self.pool };
        let pc = &*self.preconditioner;
        let x = &self.start[..];
        let stop = Stop::at(self.rtol());
        Ok(match self.kind {
            Kind::Jacobi => Box::new(Jacobi::new(system, 1.0, x, stop)?),
            Kind::Gmres => {
                let options = GmresOptions { restart: GMRES_RESTART, side: Side::Left, stop };
                Box::new(Gmres::new(system, pc, x, options)?)
            }
            Kind::Cg => Box::new(Cg::new(system, pc, x, stop)?),
        })
    }

    /// Returns the tolerance of the solver.
    pub(crate) fn rtol(&self) -> f64 {
        self.kind.rtol()
    }

    /// Virtual time of one iteration: the published productive time over the iterations done here.
    pub(crate) fn iteration_seconds(&self) -> f64 {
        self.kind.published().productive_seconds / self.iterations as f64
    }

    /// The published machine: a vector of this problem takes as long as one of theirs.
    pub(crate) fn machine(&self) -> VirtualCosts {
        let bytes = 8.0 * self.n() as f64;
        let published = self.kind.published();
        VirtualCosts {
            iteration_seconds: self.iteration_seconds(),
            // A product of the size that takes 120 s to write, not of one in N of fewer and longer
            // iterations.
            product_seconds: self.product_share * published.productive_seconds / published.iterations,
            stage_bytes_per_second: bytes / STAGE_SECONDS,
            encode_bytes_per_second: bytes / published::ENCODE_SECONDS,
            decode_bytes_per_second: bytes / published::DECODE_SECONDS,
            store_bytes_per_second: bytes / published::VECTOR_SECONDS,
        }
    }

    /// `||b - A x|| / ||b||` from x alone.
    ///
    /// # Errors
    /// When a rank is lost.
    pub(crate) fn relative_residual(&self, x: &[f64]) -> Result<f64, CommError> {
        let mut r = vec![0.0; self.n()];
        let squared = self.operator.residual(&self.rhs, x, &mut r)?;
        Ok((squared.rounded() / self.rhs.iter().map(|b| b * b).sum::<f64>()).sqrt())
    }

    fn undisturbed(&self) -> Result<(u64, f64), Failed> {
        let mut solver = self.make()?;
        while solver.progress().status == Status::Running {
            solver.step()?;
        }
        let residual = self.relative_residual(&solver.iterate()?)?;
        if !solver.progress().is_converged() || residual > self.rtol() * 1.001 {
            return Err(format!("{}: the undisturbed solve ended at {residual:.2e}", self.kind).into());
        }
        let product_bytes = self.operator.bytes() as f64 + 16.0 * self.n() as f64;
        Ok((solver.progress().iteration, (product_bytes / solver.bytes_per_iteration()).min(1.0)))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grid = self.grid;
        let name = match self.kind {
            Kind::Gmres => format!("GMRES({GMRES_RESTART})"),
            other => other.to_string(),
        };
        let rtol = self.rtol();
        let iterations = self.iterations;
        write!(f, "{name} on 3D Poisson {grid}^3 to {rtol:.0e}, {iterations} iterations")
    }
}
