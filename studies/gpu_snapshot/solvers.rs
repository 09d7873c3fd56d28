//! Traces of our own solvers: the passes that their steps make over their vectors.

use std::cell::RefCell;

use recoup::comm::Solo;
use recoup::core::{Borrowed, Iteration, Operator, Resume, SafePoint, SolveError, Values};
use recoup::solvers::{
    Cg, Csr, Gmres, GmresOptions, Identity, Jacobi, Poisson3d, Pool, RightHandSide, Side, Stop, System,
};

use crate::Failed;
use crate::trace::{Recorder, WriteTrace};
use crate::traced_space::{TracedMemory, TracedSpace};

/// Steps between two versions and behind the second, at least: every vector is written by then.
const STEPS: u64 = 8;
/// Restart length of GMRES.
const RESTART: usize = 30;
/// A tolerance that no solve here reaches.
const STOP: Stop = Stop { rtol: 1e-300, dtol: f64::INFINITY };

/// A problem and the memory of its device, which holds A and b.
struct TracedProblem<'a> {
    a: &'a dyn Operator,
    b: Vec<f64>,
    pool: Pool,
    memory: RefCell<TracedMemory>,
}

impl<'a> TracedProblem<'a> {
    fn new(a: &'a dyn Operator) -> Result<Self, Failed> {
        let b = RightHandSide::Random { seed: 1 }.build(a)?;
        let mut recorder = Recorder::default();
        recorder.allocate(a.bytes());
        recorder.allocate(8 * b.len() as u64);
        let memory = RefCell::new(TracedMemory::new(recorder));
        Ok(Self { a, b, pool: Pool::new(1), memory })
    }

    fn space(&self) -> TracedSpace<'_> {
        let system = System { a: self.a, b: &self.b, comm: &Solo, pool: &self.pool };
        TracedSpace { system, memory: &self.memory }
    }

    /// Steps to the next safe point behind `STEPS` steps.
    fn advance(method: &mut impl Iteration) -> Result<(), SolveError> {
        let end = method.progress().iteration + STEPS;
        loop {
            let progress = method.step()?;
            if progress.iteration >= end && progress.safe_point == SafePoint::Any {
                return Ok(());
            }
        }
    }

    /// Records a solve around a version.
    fn trace(&self, name: &'static str, what: String, mut method: impl Iteration) -> Result<WriteTrace, Failed> {
        Self::advance(&mut method)?;
        self.memory.borrow_mut().recorder.start();
        Self::advance(&mut method)?;
        self.memory.borrow_mut().recorder.take_version();
        let named = {
            let memory = self.memory.borrow();
            let saved = method.variables().into_iter().filter(|variable| variable.role.is_saved_for(Resume::Exact));
            let place =
                |values| if let Borrowed::Host(Values::F64(values)) = values { memory.place(values) } else { None };
            saved.filter_map(|variable| place(variable.values)).collect()
        };
        Self::advance(&mut method)?;
        Ok(self.memory.take().recorder.finish(name, what, named))
    }
}

/// CG on a matrix of seven diagonals, `n^3` rows.
pub(crate) fn cg(n: usize) -> Result<WriteTrace, Failed> {
    let a = Csr::poisson3d(n);
    let problem = TracedProblem::new(&a)?;
    let start = vec![0.0; a.rows()];
    let method = Cg::new(problem.space(), &Identity, &start, STOP)?;
    problem.trace("CG", format!("3D Poisson matrix of {n}^3 rows"), method)
}

/// GMRES(30) on the same matrix.
pub(crate) fn gmres(n: usize) -> Result<WriteTrace, Failed> {
    let a = Csr::poisson3d(n);
    let problem = TracedProblem::new(&a)?;
    let start = vec![0.0; a.rows()];
    let options = GmresOptions { restart: RESTART, side: Side::Right, stop: STOP };
    let method = Gmres::new(problem.space(), &Identity, &start, options)?;
    problem.trace("GMRES(30)", format!("3D Poisson matrix of {n}^3 rows"), method)
}

/// Jacobi on a stencil of seven points, `n^3` rows, without a matrix.
pub(crate) fn jacobi(n: usize) -> Result<WriteTrace, Failed> {
    let a = Poisson3d::new(n);
    let problem = TracedProblem::new(&a)?;
    let start = vec![0.0; a.rows()];
    let method = Jacobi::new(problem.space(), 1.0, &start, STOP)?;
    problem.trace("Jacobi", format!("stencil of 7 points, {n}^3 rows"), method)
}
