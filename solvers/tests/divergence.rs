//! Does a solve that runs away end by name, and is one that rises on its way to the solution left
//! alone?

use std::collections::BTreeSet;

use recoup_core::{BorrowedMut, BreakdownReason, Iteration, Registered, Resume, SolveError, Status, ValuesMut};
use recoup_solvers::{
    Bicgstab, Cg, Csr, GaussSeidel, Gmres, GmresOptions, Identity, Jacobi, JacobiPreconditioner, METHODS, PipelinedCg,
    Pool, Preconditioner, Relaxation, RightHandSide, Side, Stop, read_matrix,
};

use crate::problem::{Problem, data};
use crate::variants::variants;

/// No solve here needs more iterations.
const LIMIT: u64 = 6000;

impl Problem {
    fn random(a: Csr) -> Self {
        Self::with_rhs(a, RightHandSide::Random { seed: 1 })
    }

    fn read_random(name: &str) -> Self {
        Self::random(read_matrix(&data(name)).unwrap())
    }

    /// From a function of row and column.
    fn of_entries(n: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let columns = (0..n).flat_map(|_| 0..n as u32).collect();
        let values = (0..n * n).map(|at| entry(at / n, at % n)).collect();
        Self::random(Csr::new((0..=n).map(|row| row * n).collect(), columns, values).unwrap())
    }

    fn plain_cg(&self, stop: Stop) -> Cg<'_> {
        Cg::new(self.system(), &Identity, &self.zeros(), stop).unwrap()
    }
}

/// Where the solve ends, and its largest residual norm relative to b on the way.
fn end(solver: &mut dyn Iteration) -> (Status, f64) {
    let mut peak: f64 = 0.0;
    while solver.progress().status == Status::Running && solver.progress().iteration < LIMIT {
        peak = peak.max(solver.step().unwrap().relative_residual());
    }
    (solver.progress().status, peak)
}

/// The solve diverges, at the first residual norm past the limit that a start at zero gives it.
fn assert_diverges(what: &str, solver: &mut dyn Iteration, dtol: f64) {
    let (status, peak) = end(solver);
    let Status::Breakdown(BreakdownReason::Diverged { residual_norm, limit }) = status else {
        panic!("{what}: {status:?} after a peak of {peak:e}");
    };
    let progress = solver.progress();
    assert_eq!(limit, dtol * progress.rhs_norm, "{what}");
    assert!(residual_norm >= limit && residual_norm == progress.residual_norm, "{what}: {status:?}");
    assert_eq!(solver.step().unwrap(), progress, "{what}: a solve that diverged stays as it is");
}

/// One entry of every row far above the diagonal.
fn dominated() -> Problem {
    Problem::of_entries(20, |i, j| {
        if i == j {
            1.0
        } else if (i + 1) % 20 == j {
            30.0
        } else {
            0.0
        }
    })
}

/// Positive definite and far from symmetric: the identity plus a skew part.
fn skew(scale: f64) -> Problem {
    Problem::of_entries(20, |i, j| match j as i64 - i as i64 {
        0 => 1.0,
        1 => scale * (10.0 + i as f64),
        -1 => -scale * (10.0 + j as f64),
        _ => 0.0,
    })
}

/// Ends as 1 for the last row, which [`Blind`] hardly sees, and which all others feed.
fn hidden() -> Problem {
    Problem::of_entries(21, |i, j| match (i, j) {
        (20, 20) => 1.0,
        (20, _) => 1e7 * (1.0 + j as f64),
        (_, 20) => 0.0,
        (i, j) if i == j => 2.0,
        (i, j) if i.abs_diff(j) == 1 => -1.0,
        _ => 0.0,
    })
}

/// A preconditioner that all but loses the last row of [`hidden`].
struct Blind;

impl Preconditioner for Blind {
    fn name(&self) -> &'static str {
        "blind"
    }

    fn apply(&self, _pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        z.copy_from_slice(r);
        *z.last_mut().unwrap() *= 1e-12;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        0
    }
}

/// Whatever the method, the preconditioner and the side.
#[test]
fn no_method_goes_on_past_its_limit_and_each_reaches_it_somewhere() {
    let mut diverged = BTreeSet::new();
    for problem in [dominated(), skew(1.0), skew(1e6), hidden(), Problem::read_random("sherman5")] {
        let x0 = problem.zeros();
        for variant in variants(&[&Identity as &dyn Preconditioner, &Blind]) {
            for dtol in [10.0, Stop::DTOL] {
                let mut solver = variant.solver(problem.system(), &problem.a, &x0, Stop { rtol: 1e-8, dtol });
                while solver.progress().status == Status::Running && solver.progress().iteration < LIMIT {
                    let found = solver.progress().relative_residual();
                    assert!(found < dtol, "{} continues at {found:e}", variant.describe());
                    solver.step().unwrap();
                }
                let progress = solver.progress();
                if let Status::Breakdown(BreakdownReason::Diverged { residual_norm, limit }) = progress.status {
                    assert_eq!(limit, dtol * progress.rhs_norm, "{}", variant.describe());
                    assert!(residual_norm >= limit, "{}: {progress:?}", variant.describe());
                    diverged.insert(variant.method.name);
                }
            }
        }
    }
    let all: BTreeSet<&str> = METHODS.iter().map(|method| method.name).collect();
    assert_eq!(diverged, all, "a method that none of these problems makes diverge needs one that does");
}

#[test]
fn stationary_methods_end_where_they_diverge() {
    let problem = dominated();
    let stop = Stop::at(1e-8);
    let mut jacobi = Jacobi::new(problem.system(), 1.0, &problem.zeros(), stop).unwrap();
    assert_diverges("jacobi", &mut jacobi, Stop::DTOL);
    for relaxation in [Relaxation::GaussSeidel, Relaxation::Sor { omega: 1.2 }, Relaxation::Ssor { omega: 0.8 }] {
        let mut sweeps = GaussSeidel::new(problem.system(), &problem.a, relaxation, &problem.zeros(), stop).unwrap();
        assert_diverges(&format!("{relaxation:?}"), &mut sweeps, Stop::DTOL);
    }
}

/// CG restarted on this matrix continued to 1e150 and published versions with residuals of 1e151.
#[test]
fn cg_on_a_matrix_that_is_not_symmetric_ends_where_it_diverges() {
    let problem = Problem::read_random("sherman5");
    let jacobi = JacobiPreconditioner::new(&problem.a).unwrap();
    let cg = Cg::new(problem.system(), &jacobi, &problem.zeros(), Stop::at(1e-8)).unwrap();
    assert_diverges("cg-restarted", &mut cg.restarted_every(30).unwrap(), Stop::DTOL);
    let problem = skew(1.0);
    assert_diverges("cg", &mut problem.plain_cg(Stop::at(1e-8)), Stop::DTOL);
    assert_diverges("cg, a lower limit", &mut problem.plain_cg(Stop { rtol: 1e-8, dtol: 50.0 }), 50.0);
    let problem = skew(1e6);
    let mut pipelined = PipelinedCg::new(problem.system(), &Identity, &problem.zeros(), Stop::at(1e-8)).unwrap();
    assert_diverges("pipecg", &mut pipelined, Stop::DTOL);
}

/// From the left GMRES lowers the preconditioned residual, whatever becomes of the true one.
#[test]
fn gmres_ends_where_its_preconditioner_hides_the_residual() {
    let problem = hidden();
    let options = GmresOptions { restart: 6, side: Side::Left, stop: Stop::at(1e-8) };
    let gmres = || Gmres::new(problem.system(), &Blind, &problem.zeros(), options).unwrap();
    assert_diverges("gmres", &mut gmres(), Stop::DTOL);
    assert_diverges("gmres-dr", &mut gmres().deflated(2).unwrap(), Stop::DTOL);
}

/// Eigenvalues near the imaginary axis leave omega small, and each step divides by it. Here the
/// residual comes back from a hundred times b, so a lower limit ends what the usual one leaves
/// alone.
#[test]
fn bicgstab_ends_where_its_steps_grow() {
    let problem = skew(1.0);
    let bicgstab =
        |dtol| Bicgstab::new(problem.system(), &Identity, &problem.zeros(), Stop { rtol: 1e-8, dtol }).unwrap();
    assert_diverges("bicgstab", &mut bicgstab(10.0), 10.0);
    assert_eq!(end(&mut bicgstab(Stop::DTOL)).0, Status::Converged);
}

/// CG minimises the error in the energy norm: on ill-conditioned matrices the residual rises first.
#[test]
fn a_residual_that_rises_on_the_way_is_left_alone() {
    let problem = Problem::read_random("bcsstk14");
    let jacobi = JacobiPreconditioner::new(&problem.a).unwrap();
    for dtol in [Stop::DTOL, f64::INFINITY] {
        let stop = Stop { rtol: 1e-8, dtol };
        let (status, peak) = end(&mut Cg::new(problem.system(), &jacobi, &problem.zeros(), stop).unwrap());
        println!("bcsstk14: peak {peak}");
        assert_eq!(status, Status::Converged);
        assert!((2.0..1000.0).contains(&peak), "{peak}");
    }
}

/// A bad guess raises the limit, a bad version does not.
#[test]
fn the_limit_is_that_of_the_initial_guess() {
    let problem = Problem::random(Csr::poisson3d(6));
    let far: Vec<f64> = problem.b.iter().map(|b| 1e9 * b).collect();
    let stop = Stop::at(1e-6);
    let mut cg = Cg::new(problem.system(), &Identity, &far, stop).unwrap();
    assert_eq!(end(&mut cg).0, Status::Converged);
    let mut cg = problem.plain_cg(stop);
    for variable in &mut cg.variables_mut() {
        if let (true, BorrowedMut::Host(ValuesMut::F64(x))) = (variable.name == "x", &mut variable.values) {
            x.copy_from_slice(&far);
        }
    }
    let resumed = cg.resume(7, Resume::Restarted).unwrap();
    assert!(matches!(resumed.status, Status::Breakdown(BreakdownReason::Diverged { .. })), "{resumed:?}");
}

#[test]
fn a_limit_that_is_not_above_one_is_refused() {
    let problem = skew(1.0);
    for dtol in [1.0, 0.0, -1.0, f64::NAN] {
        let refused = Cg::new(problem.system(), &Identity, &problem.zeros(), Stop { rtol: 1e-8, dtol }).err();
        assert!(matches!(refused, Some(SolveError::Parameter { what: "dtol", .. })), "{dtol}: {refused:?}");
    }
}
