//! Vectors drawn by a seed: grids of any size, four methods, three right-hand sides, any instant.
//!
//! A seed that a codec was tuned with judges nothing: each claim names a seed of its own.

use std::sync::Arc;

use recoup_comm::Solo;
use recoup_compress::{Pco, Pyramid, Qb, effective_bound};
use recoup_core::{Bound, Codec, Iteration, Values, ValuesMut};
use recoup_solvers::{
    Bicgstab, Cg, Csr, Gmres, GmresOptions, Jacobi, JacobiPreconditioner, Pool, RightHandSide, Side, Stop, System,
};
use recoup_testkit::Random;

use crate::vectors::{Vector, gridded, variable_of};

/// Parts of the value range that bound the errors of a vector, each a row.
const BOUNDS: [f64; 3] = [1e-3, 1e-4, 1e-5];

/// Codecs that are compared with SZ3, the smallest of them last.
const NAMES: [&str; 4] = ["qb", "pco", "pyramid", "smallest"];

/// The ratios of one vector under one bound.
struct DrawnRow {
    is_smooth: bool,
    ratios: [f64; NAMES.len()],
    sz3: Option<f64>,
}

/// Prints the ratios of `count` vectors, and how often each codec falls behind SZ3.
pub(crate) fn print(seed: u64, count: usize) {
    let mut random = Random(seed);
    let mut rows = Vec::new();
    println!("{:<44} {:>6} {:>8} {:>8} {:>8} {:>8} {:>8}", "vector", "bound", "qb", "pco", "pyramid", "sz3", "over");
    for _ in 0..count {
        let (vector, is_smooth) = drawn(&mut random);
        for part in BOUNDS {
            let row = row(&vector, is_smooth, part);
            let [qb, pco, pyramid, smallest] = row.ratios;
            let sz3 = row.sz3.unwrap_or(f64::NAN);
            let over = smallest / sz3;
            println!("{:<44} {part:>6.0e} {qb:>8.1} {pco:>8.1} {pyramid:>8.1} {sz3:>8.1} {over:>8.2}", vector.name);
            rows.push(row);
        }
    }
    summarise("all rows", &rows, |_| true);
    summarise("smooth right-hand sides", &rows, |row| row.is_smooth);
    summarise("random right-hand sides", &rows, |row| !row.is_smooth);
}

/// Prints how often and by how much each codec falls behind SZ3 in some of the rows.
fn summarise(title: &str, rows: &[DrawnRow], is_wanted: impl Fn(&DrawnRow) -> bool) {
    let wanted: Vec<&DrawnRow> = rows.iter().filter(|row| is_wanted(row) && row.sz3.is_some()).collect();
    println!("\n{title}: {} beside SZ3", wanted.len());
    for (codec, name) in NAMES.iter().enumerate() {
        let mut over: Vec<f64> = wanted.iter().filter_map(|row| Some(row.ratios[codec] / row.sz3?)).collect();
        over.sort_by(f64::total_cmp);
        let below = |limit: f64| over.iter().filter(|over| **over < limit).count();
        let mean = (over.iter().map(|over| over.ln()).sum::<f64>() / over.len() as f64).exp();
        let least: Vec<String> = over.iter().take(5).map(|over| format!("{over:.2}")).collect();
        println!(
            "{name:>10}: below 1 in {}, below 0.95 in {}, geometric mean {mean:.2}, least {}",
            below(1.0),
            below(0.95),
            least.join(" ")
        );
    }
}

fn row(vector: &Vector, is_smooth: bool, part: f64) -> DrawnRow {
    let ratio = |codec: &dyn Codec| ratio(codec, vector, part);
    let [qb, pco, pyramid] = [ratio(&Qb::default()), ratio(&Pco), ratio(&Pyramid::default())];
    #[cfg(feature = "sz3")]
    let sz3 = Some(ratio(&recoup_compress::Sz3));
    #[cfg(not(feature = "sz3"))]
    let sz3 = None;
    DrawnRow { is_smooth, ratios: [qb, pco, pyramid, qb.max(pco).max(pyramid)], sz3 }
}

/// Raw over encoded bytes; each codec must keep the bound.
fn ratio(codec: &dyn Codec, vector: &Vector, part: f64) -> f64 {
    let x = &vector.values;
    let bound = effective_bound(Values::F64(x), Bound::Range(part)).expect("a bound");
    let mut payload = Vec::new();
    let encoded = codec.encode(Values::F64(x), bound, &vector.context, &mut payload).expect("encodes");
    if !encoded.stored_raw {
        let mut decoded = vec![0.0; x.len()];
        codec.decode(&payload, encoded.bound, &vector.context, ValuesMut::F64(&mut decoded)).expect("decodes");
        let broken = recoup_compress::bound_holds(Values::F64(x), Values::F64(&decoded), bound);
        assert!(broken.is_none(), "{}: {} breaks its bound at {broken:?}", vector.name, codec.id());
    }
    size_of_val(&x[..]) as f64 / payload.len() as f64
}

/// The next vector, and whether its right-hand side is smooth.
fn drawn(random: &mut Random) -> (Vector, bool) {
    let grid = drawn_grid(random);
    let kind = drawn_side(random);
    let a = laplacian(grid);
    let b = kind.build(&a).expect("one rank");
    let method = random.below(4);
    // Jacobi moves slowest, so it takes longer to get anywhere.
    let iterations = if method == 3 { 40 + random.below(400) } else { 15 + random.below(140) };
    let name = ["CG", "BiCGSTAB", "GMRES(30)", "Jacobi"][method];
    let [x, y, z] = grid;
    let title = format!("{name}, b {}, {x} x {y} x {z}, {iterations}", word(kind));
    let vector = gridded(&title, iterate(&a, &b, method, iterations), grid);
    (vector, !matches!(kind, RightHandSide::Random { .. }))
}

fn word(kind: RightHandSide) -> &'static str {
    match kind {
        RightHandSide::Ones => "ones",
        RightHandSide::Smooth => "smooth",
        RightHandSide::Random { .. } => "random",
    }
}

/// Cubes and boxes of 40 to 75 points an axis, one in eight of up to 130; planes; thin boxes.
fn drawn_grid(random: &mut Random) -> [usize; 3] {
    let mut side = |least: usize, most: usize| least + random.below(most - least + 1);
    match side(0, 7) {
        0 => [side(76, 130); 3],
        1 | 2 => [side(40, 75); 3],
        3..=5 => [side(40, 75), side(40, 75), side(40, 75)],
        6 => [side(150, 700), side(150, 700), 1],
        _ => {
            let mut thin = [side(60, 250), side(60, 250), side(60, 250)];
            thin[side(0, 2)] = side(2, 9);
            thin
        }
    }
}

/// Ones and smooth sides two times in five each.
fn drawn_side(random: &mut Random) -> RightHandSide {
    match random.below(5) {
        0 | 1 => RightHandSide::Ones,
        2 | 3 => RightHandSide::Smooth,
        _ => RightHandSide::Random { seed: random.bits() },
    }
}

/// The Laplacian of a grid with Dirichlet boundary: of 5 points on a plane, of 7 in a box.
fn laplacian(grid: [usize; 3]) -> Csr {
    let [nx, ny, nz] = grid;
    let strides = [1, nx, nx * ny];
    let diagonal = 2.0 * grid.iter().filter(|extent| **extent > 1).count() as f64;
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in 0..nx * ny * nz {
        let place = [row % nx, row / nx % ny, row / nx / ny];
        let before = (0..3).rev().filter(|axis| place[*axis] > 0).map(|axis| row - strides[axis]);
        let behind = (0..3).filter(|axis| place[*axis] + 1 < grid[*axis]).map(|axis| row + strides[axis]);
        for column in before.chain([row]).chain(behind) {
            columns.push(column as u32);
            values.push(if column == row { diagonal } else { -1.0 });
        }
        row_starts.push(columns.len());
    }
    Csr::new(row_starts, columns, values).expect("the Laplacian is a matrix").with_grid(grid)
}

/// The iterate of a method, by its number.
fn iterate(a: &Csr, b: &[f64], method: usize, iterations: usize) -> Vec<f64> {
    let pool = Arc::new(Pool::new(1));
    let m = JacobiPreconditioner::new(a).expect("a diagonal");
    let system = System { a, b, comm: &Solo, pool: &pool };
    let zeros = vec![0.0; b.len()];
    let stop = Stop::at(1e-12);
    match method {
        0 => after(Cg::new(system, &m, &zeros, stop).expect("one rank"), iterations),
        1 => after(Bicgstab::new(system, &m, &zeros, stop).expect("one rank"), iterations),
        2 => {
            let options = GmresOptions { restart: 30, side: Side::Right, stop };
            after(Gmres::new(system, &m, &zeros, options).expect("one rank"), iterations)
        }
        _ => after(Jacobi::new(system, 1.0, &zeros, stop).expect("one rank"), iterations),
    }
}

/// The iterate after some iterations, or where the method ends before.
fn after(mut solver: impl Iteration, iterations: usize) -> Vec<f64> {
    for _ in 0..iterations {
        if solver.progress().is_converged() {
            break;
        }
        solver.step().expect("one rank");
    }
    variable_of(&solver, "x")
}
