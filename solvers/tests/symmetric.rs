//! Do Jacobi and CG take the known number of iterations, come back from every version, and name
//! what breaks them?

use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::{BreakdownReason, Iteration, Operator, Resume, SolveError, Status};
use recoup_solvers::{
    Cg, Csr, Identity, Jacobi, JacobiPreconditioner, METHODS, Method, Poisson3d, Pool, Preconditioner,
    SsorPreconditioner, Stop, System,
};
use recoup_testkit::solver_suite::{SolverCase, check_solver};

/// A system with b = ones, and the threads that solve it.
struct Problem {
    a: Box<dyn Operator>,
    b: Vec<f64>,
    pool: Arc<Pool>,
}

impl Problem {
    fn matrix(n: usize, threads: usize) -> Self {
        let pool = Arc::new(Pool::new(threads));
        Self { a: Box::new(Csr::poisson3d(n).with_pool(Arc::clone(&pool))), b: vec![1.0; n.pow(3)], pool }
    }

    fn stencil(n: usize, threads: usize) -> Self {
        let pool = Arc::new(Pool::new(threads));
        Self { a: Box::new(Poisson3d::new(n).with_pool(Arc::clone(&pool))), b: vec![1.0; n.pow(3)], pool }
    }

    fn system(&self) -> System<'_> {
        System { a: &*self.a, b: &self.b, comm: &Solo, pool: &self.pool }
    }

    fn guess(&self) -> Vec<f64> {
        vec![0.0; self.b.len()]
    }

    fn cg<'a>(&'a self, preconditioner: &'a dyn Preconditioner, rtol: f64) -> Cg<'a> {
        Cg::new(self.system(), preconditioner, &self.guess(), Stop::at(rtol)).expect("a sound system")
    }

    fn jacobi(&self, rtol: f64) -> Jacobi<System<'_>> {
        Jacobi::new(self.system(), 1.0, &self.guess(), Stop::at(rtol)).expect("a sound system")
    }

    fn true_residual(&self, x: &[f64]) -> f64 {
        let mut y = self.guess();
        self.a.apply(x, &mut y).expect("one rank is never lost");
        self.b.iter().zip(&y).map(|(b, y)| (b - y) * (b - y)).sum::<f64>().sqrt()
    }

    fn check<'s>(&self, make: &dyn Fn() -> Box<dyn Method + 's>, rtol: f64, resumes: &[Resume]) {
        let profile = METHODS.iter().find(|method| method.name == make().name()).expect("a line").profile;
        let true_residual = |x: &[f64]| self.true_residual(x);
        check_solver(&SolverCase { make: &|| make(), true_residual: &true_residual, rtol, profile, resumes });
    }
}

fn iterations(solver: &mut dyn Iteration) -> u64 {
    while solver.progress().status == Status::Running {
        solver.step().expect("one rank is never lost");
    }
    assert!(solver.progress().is_converged(), "{:?}", solver.progress());
    solver.progress().iteration
}

/// Every residual norm of a solve, as bits.
fn history(solver: &mut dyn Iteration) -> Vec<u64> {
    let mut history = vec![solver.progress().residual_norm.to_bits()];
    while solver.progress().status == Status::Running {
        history.push(solver.step().expect("one rank is never lost").residual_norm.to_bits());
    }
    history
}

#[test]
fn cg_takes_the_known_iterations_on_the_laplacian() {
    // PETSc and a reference in double-double agree on these counts; rounding moves them by one at
    // most.
    for (n, expected) in [(64, 129_u64), (100, 203)] {
        let problem = Problem::stencil(n, 2);
        let preconditioner = JacobiPreconditioner::new(&*problem.a).unwrap();
        let count = iterations(&mut problem.cg(&preconditioner, 1e-6));
        assert!(count.abs_diff(expected) <= 1, "{n}^3: {count} iterations, {expected} expected");
    }
}

#[test]
fn jacobi_takes_the_iterations_the_spectrum_says() {
    // The error of b = ones expands in the odd sines; 7633 at 64^3 and 1e-4 follows from the
    // eigenvalues alone.
    let problem = Problem::stencil(64, 2);
    let count = iterations(&mut problem.jacobi(1e-4));
    assert!(count.abs_diff(7633) <= 1, "{count} iterations");
}

#[test]
fn cg_comes_back_with_every_kind_of_preconditioner() {
    let problem = Problem::matrix(11, 2);
    let csr = Csr::poisson3d(11);
    let jacobi = JacobiPreconditioner::new(&*problem.a).unwrap();
    let ssor = SsorPreconditioner::new(&csr, 1.0).unwrap();
    let preconditioners: [&dyn Preconditioner; 3] = [&Identity, &jacobi, &ssor];
    for preconditioner in preconditioners {
        problem.check(&|| Box::new(problem.cg(preconditioner, 1e-10)), 1e-10, &[Resume::Deflated, Resume::Traditional]);
        let restarted = || Box::new(problem.cg(preconditioner, 1e-10).restarted_every(10).unwrap()) as Box<_>;
        problem.check(&restarted, 1e-10, &[Resume::Deflated, Resume::Traditional]);
    }
}

#[test]
fn jacobi_comes_back_on_matrix_and_stencil() {
    for problem in [Problem::matrix(9, 2), Problem::stencil(9, 2), Problem::stencil(16, 2)] {
        problem.check(&|| Box::new(problem.jacobi(1e-5)), 1e-5, &[]);
    }
}

#[test]
fn solves_have_the_same_bits_for_any_number_of_threads_and_on_matrix_and_stencil() {
    let solve = |problem: &Problem| {
        let preconditioner = JacobiPreconditioner::new(&*problem.a).unwrap();
        history(&mut problem.cg(&preconditioner, 1e-8))
    };
    let alone = solve(&Problem::matrix(24, 1));
    assert_eq!(solve(&Problem::matrix(24, 3)), alone);
    assert_eq!(solve(&Problem::stencil(24, 2)), alone);
    let sweeps = |threads| history(&mut Problem::stencil(24, threads).jacobi(1e-2));
    assert_eq!(sweeps(1), sweeps(2));
    assert_eq!(sweeps(1), sweeps(16));
}

#[test]
fn traditional_resume_keeps_the_iteration_count() {
    // Tao et al. 2018, methods: (x, p, rho) saved, r recomputed, is the same Krylov process up to
    // rounding.
    let problem = Problem::matrix(20, 1);
    let undisturbed = iterations(&mut problem.cg(&Identity, 1e-8));
    let mut first = problem.cg(&Identity, 1e-8);
    while first.progress().iteration < undisturbed / 2 {
        first.step().unwrap();
    }
    first.resume(undisturbed / 2, Resume::Traditional).unwrap();
    assert!(iterations(&mut first).abs_diff(undisturbed) <= 1);
}

#[test]
fn an_indefinite_matrix_is_a_breakdown_by_name() {
    let a = Csr::new(vec![0, 1, 2], vec![0, 1], vec![1.0, -2.0]).unwrap();
    let problem = Problem { a: Box::new(a), b: vec![1.0, 1.0], pool: Arc::new(Pool::new(1)) };
    let progress = problem.cg(&Identity, 1e-8).step().unwrap();
    assert_eq!(progress.status, Status::Breakdown(BreakdownReason::NotPositiveDefinite { curvature: -1.0 }));
    assert_eq!(progress.iteration, 0);
}

#[test]
fn an_unreachable_tolerance_ends_as_stagnated() {
    let problem = Problem::matrix(12, 1);
    let mut cg = problem.cg(&Identity, 1e-17);
    while cg.progress().status == Status::Running && cg.progress().iteration < 2000 {
        cg.step().unwrap();
    }
    assert_eq!(cg.progress().status, Status::Breakdown(BreakdownReason::Stagnated), "{:?}", cg.progress());
}

#[test]
fn bad_input_is_named() {
    let problem = Problem::matrix(3, 1);
    let stop = Stop::at(1e-8);
    let short = Cg::new(problem.system(), &Identity, &[0.0], stop).err();
    assert_eq!(short, Some(SolveError::Length { what: "initial guess", expected: 27, found: 1 }));
    let mut guess = problem.guess();
    guess[4] = f64::INFINITY;
    let infinite = Jacobi::new(problem.system(), 1.0, &guess, stop).err();
    assert_eq!(infinite, Some(SolveError::NotFinite { what: "initial guess", index: 4, value: f64::INFINITY }));
    let hollow = Csr::new(vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0]).unwrap();
    let problem = Problem { a: Box::new(hollow), b: vec![1.0, 1.0], pool: Arc::new(Pool::new(1)) };
    let refused = Jacobi::new(problem.system(), 1.0, &problem.guess(), stop).err();
    assert!(matches!(refused, Some(SolveError::Diagonal { row: 0, .. })));
    let tiny = Csr::new(vec![0, 1, 2], vec![0, 1], vec![1.0, 1e-310]).unwrap();
    assert!(matches!(JacobiPreconditioner::new(&tiny), Err(SolveError::Diagonal { row: 1, .. })));
}

/// As in PETSc. Rows without a diagonal entry are common where equations hold constraints.
#[test]
fn a_zero_on_the_diagonal_is_one_for_the_preconditioner() {
    let a = Csr::new(vec![0, 1, 3, 4], vec![0, 0, 2, 2], vec![4.0, 1.0, 1.0, 2.0]).unwrap();
    let jacobi = JacobiPreconditioner::new(&a).unwrap();
    assert_eq!((jacobi.zeros(), jacobi.diagonal()), (1, Some(&[4.0, 1.0, 2.0][..])));
}
