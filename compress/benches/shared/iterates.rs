//! Iterates of a solve, to be coded.

use recoup_comm::Solo;
use recoup_solvers::{Cg, Csr, JacobiPreconditioner, Method, Pool, RightHandSide, Stop, System};

/// Points along each axis.
pub(crate) const N: usize = 128;

/// CG after 100 and 120 iterations on the 3D Poisson problem with a random right-hand side.
pub(crate) fn iterates() -> [Vec<f64>; 2] {
    let a = Csr::poisson3d(N);
    let pool = Pool::new(1);
    let b = RightHandSide::Random { seed: 1 }.build(&a).expect("one rank");
    let m = JacobiPreconditioner::new(&a).expect("a diagonal");
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let mut cg = Cg::new(system, &m, &vec![0.0; b.len()], Stop::at(1e-12)).expect("one rank");
    [100, 20].map(|iterations| {
        for _ in 0..iterations {
            recoup_core::Iteration::step(&mut cg).expect("one rank");
        }
        cg.iterate().expect("one rank")
    })
}

/// Largest minus smallest value.
pub(crate) fn value_range(x: &[f64]) -> f64 {
    x.iter().copied().fold(f64::MIN, f64::max) - x.iter().copied().fold(f64::MAX, f64::min)
}
