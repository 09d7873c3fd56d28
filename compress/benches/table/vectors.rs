//! Vectors of solvers in the middle of a solve.

use std::path::Path;
use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::{Context, Iteration, Values};

use recoup_solvers::{
    Cg, Csr, Gmres, GmresOptions, Jacobi, JacobiPreconditioner, Pool, RightHandSide, Side, Stop, System, read_matrix,
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
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
    /// The vector some iterations before, where that is known.
    pub(crate) before: Option<Vec<f64>>,
    pub(crate) context: Context<'static>,
}

/// Vectors that are computed together: their names, or how these begin, and what computes them.
struct VectorGroup {
    names: &'static [&'static str],
    make: fn() -> Vec<Vector>,
}

/// The groups, in the order of the table.
const GROUPS: [VectorGroup; 12] = [
    VectorGroup { names: &["CG x", "CG x, late"], make: cg_x },
    VectorGroup { names: &["CG x, b = ones"], make: || vec![middle("CG x, b = ones", RightHandSide::Ones)] },
    VectorGroup { names: &["CG x, b smooth"], make: || vec![middle("CG x, b smooth", RightHandSide::Smooth)] },
    VectorGroup { names: &["CG p"], make: cg_p },
    VectorGroup { names: &["GMRES x"], make: || vec![gridded("GMRES x", gmres(), [SMALL; 3])] },
    VectorGroup { names: &["copter2_lap x"], make: || vec![flat("copter2_lap x", real())] },
    VectorGroup { names: &["3 unknowns"], make: unknowns },
    VectorGroup { names: &["random order"], make: random_order },
    VectorGroup { names: &["CG x, early", "CG x, b = ones, early", "CG x, b smooth, early"], make: early },
    VectorGroup { names: &["Jacobi x"], make: || vec![gridded("Jacobi x", jacobi(), [N; 3])] },
    VectorGroup { names: &["wave 3D", "wave 2D"], make: waves },
    VectorGroup { names: &["CG x, 256^3"], make: || vec![large("CG x, 256^3")] },
];

/// The vectors whose name has `wanted` in it, in the order of the table.
pub(crate) fn named(wanted: &str) -> Vec<Vector> {
    let may_have = |name: &&str| name.contains(wanted) || wanted.contains(*name);
    let groups = GROUPS.iter().filter(|group| group.names.iter().any(may_have));
    groups.flat_map(|group| (group.make)()).filter(|vector| vector.name.contains(wanted)).collect()
}

pub(crate) fn gridded(name: &str, values: Vec<f64>, dims: [usize; 3]) -> Vector {
    Vector { name: name.to_owned(), values, before: None, context: Context::grid(dims) }
}

fn flat(name: &str, values: Vec<f64>) -> Vector {
    let context = Context::flat(values.len());
    Vector { name: name.to_owned(), values, before: None, context }
}

fn cg_x() -> Vec<Vector> {
    let [early, x, late_before, late] = cg(N, RightHandSide::Random { seed: 1 }, "x", MIDDLE_AND_LATE);
    vec![
        Vector { before: Some(early), ..gridded("CG x", x, [N; 3]) },
        Vector { before: Some(late_before), ..gridded("CG x, late", late, [N; 3]) },
    ]
}

fn middle(name: &str, kind: RightHandSide) -> Vector {
    let [x] = cg(N, kind, "x", [CG_ITERATIONS]);
    gridded(name, x, [N; 3])
}

fn cg_p() -> Vec<Vector> {
    let [p] = cg(N, RightHandSide::Random { seed: 1 }, "p", [3 * CG_ITERATIONS]);
    vec![gridded("CG p", p, [N; 3])]
}

fn unknowns() -> Vec<Vector> {
    let x = |kind| {
        let [x] = cg(SMALL, kind, "x", [CG_ITERATIONS]);
        x
    };
    let fields = [x(RightHandSide::Ones), x(RightHandSide::Smooth), x(RightHandSide::Random { seed: 2 })];
    let vector = flat("3 unknowns", interleaved(fields.each_ref().map(Vec::as_slice)));
    vec![Vector { context: Context { stride: 3, ..vector.context }, ..vector }]
}

fn random_order() -> Vec<Vector> {
    vec![flat("random order", permuted(&middle("CG x", RightHandSide::Random { seed: 1 }).values))]
}

/// Iterates whose far end is still what it was at the start.
fn early() -> Vec<Vector> {
    let kinds = [
        ("CG x", RightHandSide::Random { seed: 1 }),
        ("CG x, b = ones", RightHandSide::Ones),
        ("CG x, b smooth", RightHandSide::Smooth),
    ];
    let mut vectors = Vec::new();
    for (name, kind) in kinds {
        let iterations = [40, 60, 90];
        for (n, x) in iterations.into_iter().zip(cg(N, kind, "x", iterations)) {
            vectors.push(gridded(&format!("{name}, early, {n}"), x, [N; 3]));
        }
    }
    vectors
}

fn waves() -> Vec<Vector> {
    let plane = [2048, 1024, 1];
    vec![
        gridded("wave 3D, 300", wave([N; 3], 300), [N; 3]),
        gridded("wave 3D, 440", wave([N; 3], 440), [N; 3]),
        gridded("wave 2D", wave(plane, 2000), plane),
    ]
}

fn large(name: &str) -> Vector {
    let [x] = cg(2 * N, RightHandSide::Ones, "x", [CG_ITERATIONS]);
    gridded(name, x, [2 * N; 3])
}

/// Some iterations before the middle of the solve, in the middle, and the same near its end.
const MIDDLE_AND_LATE: [usize; 4] =
    [CG_ITERATIONS - APART, CG_ITERATIONS, 3 * CG_ITERATIONS - APART, 3 * CG_ITERATIONS];

/// A variable of CG with Jacobi on the Poisson problem, after these numbers of iterations.
fn cg<const K: usize>(n: usize, kind: RightHandSide, variable: &str, wanted: [usize; K]) -> [Vec<f64>; K] {
    let pool = Arc::new(Pool::new(1));
    let a = Csr::poisson3d(n).with_pool(pool.clone());
    let b = kind.build(&a).expect("one rank");
    let m = JacobiPreconditioner::new(&a).expect("a diagonal");
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let zeros = vec![0.0; b.len()];
    let mut solver = Cg::new(system, &m, &zeros, Stop::at(1e-12)).expect("one rank");
    let mut done = 0;
    wanted.map(|iterations| {
        while done < iterations && !solver.progress().is_converged() {
            solver.step().expect("one rank");
            done += 1;
        }
        variable_of(&solver, variable)
    })
}

pub(crate) fn variable_of(solver: &dyn Iteration, name: &str) -> Vec<f64> {
    let found = solver.variables().into_iter().find(|variable| variable.name == name);
    match found.and_then(|variable| variable.values.host()) {
        Some(Values::F64(values)) => values.to_vec(),
        _ => unreachable!("the method has a vector {name}"),
    }
}

/// The acoustic wave of a Ricker pulse in the middle of a grid whose speed grows along y, after
/// `steps` of the leapfrog scheme of second order. The values are 0 at the edge.
fn wave(dims: [usize; 3], steps: usize) -> Vec<f64> {
    let [nx, ny, nz] = dims;
    let n = nx * ny * nz;
    let mut now = vec![0.0; n];
    let mut next = vec![0.0; n];
    let centre = nx / 2 + nx * (ny / 2 + ny * (nz / 2));
    for step in 0..steps {
        for i in 0..n {
            let place = [i % nx, i / nx % ny, i / nx / ny];
            let courant = 0.3 + 0.2 * place[1] as f64 / ny as f64;
            let mut laplacian = 0.0;
            for (axis, stride) in [1, nx, nx * ny].into_iter().enumerate().filter(|(axis, _)| dims[*axis] > 1) {
                let before = if place[axis] > 0 { now[i - stride] } else { 0.0 };
                let behind = if place[axis] + 1 < dims[axis] { now[i + stride] } else { 0.0 };
                laplacian += before - 2.0 * now[i] + behind;
            }
            next[i] = 2.0 * now[i] - next[i] + courant * courant * laplacian;
        }
        let t = (step as f64 - 60.0) * 0.05;
        next[centre] += (1.0 - 2.0 * t * t) * (-t * t).exp();
        std::mem::swap(&mut now, &mut next);
    }
    now
}

/// Jacobi's iteration after 200 steps.
fn jacobi() -> Vec<f64> {
    let pool = Arc::new(Pool::new(1));
    let a = Csr::poisson3d(N).with_pool(pool.clone());
    let b = RightHandSide::Ones.build(&a).expect("one rank");
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let zeros = vec![0.0; b.len()];
    let mut solver = Jacobi::new(system, 1.0, &zeros, Stop::at(1e-12)).expect("one rank");
    for _ in 0..200 {
        solver.step().expect("one rank");
    }
    variable_of(&solver, "x")
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
