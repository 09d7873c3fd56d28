//! Vectors of solvers in the middle of a solve.

use std::path::Path;
use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::{Context, Iteration, Values};

use recoup_solvers::{
    Cg, Csr, Gmres, GmresOptions, JacobiPreconditioner, Pool, RightHandSide, Side, Stop, System, read_matrix,
};

/// Points along each axis.
const N: usize = 128;
/// Points along each axis where a solver needs many vectors.
const SMALL: usize = 96;
/// A third of the way to 1e-8.
const CG_ITERATIONS: usize = 120;
/// Iterations between a version and its parent.
const APART: usize = 20;

/// A vector to code.
pub(crate) struct Vector {
    pub(crate) name: &'static str,
    pub(crate) values: Vec<f64>,
    /// The vector some iterations before, where that is known.
    pub(crate) before: Option<Vec<f64>>,
    pub(crate) context: Context<'static>,
}

/// The vectors, in the order of the table.
pub(crate) fn all() -> Vec<Vector> {
    let [early, x, late_before, late] = cg(N, RightHandSide::Random { seed: 1 }, "x");
    let grid = Context::grid([N; 3]);
    let vector = |name, values, before, context| Vector { name, values, before, context };
    let [.., direction, _, _] = cg(N, RightHandSide::Random { seed: 1 }, "p");
    let unknowns = interleaved([
        &cg(SMALL, RightHandSide::Ones, "x")[1],
        &cg(SMALL, RightHandSide::Smooth, "x")[1],
        &cg(SMALL, RightHandSide::Random { seed: 2 }, "x")[1],
    ]);
    let shuffled = permuted(&x);
    let flat = |values: &[f64]| Context::flat(values.len());
    let interleaved = Context { stride: 3, ..flat(&unknowns) };
    vec![
        vector("CG x", x, Some(early), grid),
        vector("CG x, late", late, Some(late_before), grid),
        vector("CG x, b = ones", cg(N, RightHandSide::Ones, "x")[1].clone(), None, grid),
        vector("CG x, b smooth", cg(N, RightHandSide::Smooth, "x")[1].clone(), None, grid),
        vector("CG p", direction, None, grid),
        vector("GMRES x", gmres(), None, Context::grid([SMALL; 3])),
        {
            let values = real();
            let context = flat(&values);
            vector("copter2_lap x", values, None, context)
        },
        vector("3 unknowns", unknowns, None, interleaved),
        {
            let context = flat(&shuffled);
            vector("random order", shuffled, None, context)
        },
    ]
}

/// A variable of CG with Jacobi on the Poisson problem: some iterations before the middle of the
/// solve, in the middle, and the same near its end.
fn cg(n: usize, kind: RightHandSide, variable: &str) -> [Vec<f64>; 4] {
    let pool = Arc::new(Pool::new(1));
    let a = Csr::poisson3d(n).with_pool(pool.clone());
    let b = kind.build(&a).expect("one rank");
    let m = JacobiPreconditioner::new(&a).expect("a diagonal");
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let zeros = vec![0.0; b.len()];
    let mut solver = Cg::new(system, &m, &zeros, Stop::at(1e-12)).expect("one rank");
    let wanted = [CG_ITERATIONS - APART, CG_ITERATIONS, 3 * CG_ITERATIONS - APART, 3 * CG_ITERATIONS];
    let mut done = 0;
    wanted.map(|iterations| {
        while done < iterations && !solver.progress().is_converged() {
            solver.step().expect("one rank");
            done += 1;
        }
        variable_of(&solver, variable)
    })
}

fn variable_of(solver: &dyn Iteration, name: &str) -> Vec<f64> {
    let found = solver.variables().into_iter().find(|variable| variable.name == name);
    match found.and_then(|variable| variable.values.near()) {
        Some(Values::F64(values)) => values.to_vec(),
        _ => unreachable!("the method has a vector {name}"),
    }
}

/// GMRES(30) after six cycles.
fn gmres() -> Vec<f64> {
    let pool = Arc::new(Pool::new(1));
    let a = Csr::poisson3d(SMALL).with_pool(pool.clone());
    let b = RightHandSide::Random { seed: 1 }.build(&a).expect("one rank");
    let m = JacobiPreconditioner::new(&a).expect("a diagonal");
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let zeros = vec![0.0; b.len()];
    let options = GmresOptions { restart: 30, side: Side::Right, stop: Stop::at(1e-12) };
    let mut solver = Gmres::new(system, &m, &zeros, options).expect("one rank");
    for _ in 0..180 {
        solver.step().expect("one rank");
    }
    variable_of(&solver, "x")
}

/// CG on a real matrix, half way.
fn real() -> Vec<f64> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/copter2_lap.mtx.gz");
    let pool = Arc::new(Pool::new(1));
    let a = read_matrix(&path).expect("is there").with_pool(pool.clone());
    let b = RightHandSide::Random { seed: 1 }.build(&a).expect("one rank");
    let m = JacobiPreconditioner::new(&a).expect("a diagonal");
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let zeros = vec![0.0; b.len()];
    let mut solver = Cg::new(system, &m, &zeros, Stop::at(1e-12)).expect("one rank");
    for _ in 0..CG_ITERATIONS {
        solver.step().expect("one rank");
    }
    variable_of(&solver, "x")
}

/// Three unknowns per point, of different sizes.
fn interleaved([u, v, w]: [&[f64]; 3]) -> Vec<f64> {
    u.iter().zip(v).zip(w).flat_map(|((u, v), w)| [*u, 10.0 * v, 0.1 * w]).collect()
}

/// The same values in an order without meaning.
fn permuted(x: &[f64]) -> Vec<f64> {
    let n = x.len();
    // An odd factor permutes the residues of a power of two.
    assert!(n.is_power_of_two(), "{n}");
    (0..n).map(|i| x[i.wrapping_mul(0x9e37_79b9_7f4a_7c15_usize) % n]).collect()
}
