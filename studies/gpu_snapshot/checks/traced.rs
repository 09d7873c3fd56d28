//! The programs: they compute what they should, and their traces hold what they write.

use std::cell::RefCell;

use recoup::comm::Solo;
use recoup::core::Iteration;
use recoup::model::Rng;
use recoup::solvers::{Cg, Csr, Identity, Method, Pool, RightHandSide, Stop, System};

use crate::front::{AdaptiveFront, morton};
use crate::lu::DenseMatrix;
use crate::pagerank::{Graph, ResidualRanks, power_round};
use crate::programs::{ProblemSizes, traces};
use crate::trace::{Recorder, WriteTrace, ZONE_BYTES};
use crate::traced_space::{TracedMemory, TracedSpace};
use crate::zones::ZoneTable;

const SMALL: ProblemSizes = ProblemSizes { grid: 20, columns: 256, blocks: 64, scale: 12 };

#[test]
fn tracing_changes_no_bit_of_a_solve() {
    let a = Csr::poisson3d(12);
    let b = RightHandSide::Random { seed: 3 }.build(&a).unwrap();
    let pool = Pool::new(1);
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let start = vec![0.0; b.len()];
    let memory = RefCell::new(TracedMemory::default());
    let mut plain = Cg::new(system, &Identity, &start, Stop::at(1e-9)).unwrap();
    let mut traced = Cg::new(TracedSpace { system, memory: &memory }, &Identity, &start, Stop::at(1e-9)).unwrap();
    while !plain.progress().is_converged() {
        assert_eq!(plain.step().unwrap(), traced.step().unwrap());
    }
    let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(plain.iterate().unwrap()), bits(traced.iterate().unwrap()));
}

#[test]
fn traces_hold_what_programs_write() {
    let all = traces(SMALL).unwrap();
    let vector = 8 * SMALL.grid.pow(3) as u64;
    let zones = |bytes: u64| bytes.div_ceil(ZONE_BYTES) * ZONE_BYTES;
    let dirty = |trace: &WriteTrace| ZoneTable::dirty(trace, ZONE_BYTES).pending_bytes();
    let named = |trace: &WriteTrace| ZoneTable::named(trace, ZONE_BYTES).pending_bytes();
    let [cg, gmres, jacobi, lu, front, pagerank, delta] = &all[..] else { panic!("{} programs", all.len()) };
    // CG writes x, r, p and q, and saves the first three for an exact resume.
    assert_eq!([dirty(cg), named(cg)], [4 * zones(vector), 3 * zones(vector)]);
    // GMRES(30) writes 30 of its 31 basis vectors, for it needs only the norm of the last, x, r and
    // a work vector, and saves x.
    assert_eq!([dirty(gmres), named(gmres)], [33 * zones(vector), zones(vector)]);
    // Jacobi writes x and the room for the next x in turn, and saves x.
    assert_eq!([dirty(jacobi), named(jacobi)], [2 * zones(vector), zones(vector)]);
    // From a quarter to a half of the columns, LU writes three quarters of them, and swaps rows in
    // the others.
    let matrix = 8 * SMALL.columns.pow(2) as u64;
    assert!(dirty(lu) >= 3 * matrix / 4 && dirty(lu) <= matrix, "{}", dirty(lu));
    assert!(dirty(front) < front.footprint_bytes);
    // The edges stay.
    for trace in [pagerank, delta] {
        assert!(dirty(trace) < trace.footprint_bytes / 2, "{}", trace.name);
    }
    assert!(all.iter().all(|trace| trace.after.iter().any(|kernel| !kernel.pieces.is_empty())));
}

/// Backward error of a stable factorisation: `n eps` times the growth of the entries, about
/// `n^(2/3)` for random matrices (Trefethen, Schreiber 1990, doi 10.1137/0611023).
#[test]
fn factors_give_the_matrix_back() {
    let n = 150;
    let mut recorder = Recorder::default();
    let place = recorder.allocate(8 * (n * n) as u64);
    let mut matrix = DenseMatrix::random(n, &mut Rng::new(7), place);
    let mut permuted = matrix.values.clone();
    let pivots = matrix.factor(&mut recorder, |_, _| ());
    for (row, &pivot) in pivots.iter().enumerate() {
        (0..n).for_each(|column| permuted.swap(column * n + row, column * n + pivot));
    }
    let f = &matrix.values;
    for (row, column) in (0..n).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let lower = |k: usize| if k == row { 1.0 } else { f[k * n + row] };
        let product: f64 = (0..=row.min(column)).map(|k| lower(k) * f[column * n + k]).sum();
        let allowed = f64::EPSILON * (n as f64).powf(5.0 / 3.0);
        assert!((product - permuted[column * n + row]).abs() <= allowed, "row {row}, column {column}");
    }
    assert!((0..n * n).all(|at| at / n >= at % n || f[at].abs() <= 1.0), "multipliers stay below 1");
}

#[test]
fn morton_order_visits_each_block_once() {
    let mut seen = vec![false; 64 * 64];
    (0..64 * 64).for_each(|at| seen[morton(at % 64, at / 64)] = true);
    assert!(seen.into_iter().all(|seen| seen));
    assert_eq!([morton(1, 0), morton(0, 1), morton(3, 5)], [1, 2, 0b10_0111]);
}

/// `4 D + r` is below 1, so u stays between 0 and 1 (discrete maximum principle).
#[test]
fn the_front_spreads_and_blocks_far_from_it_rest() {
    let mut front = AdaptiveFront::new(16);
    let filled = |front: &AdaptiveFront| front.cells.iter().sum::<f64>();
    let mut before = filled(&front);
    for step in 0..40 {
        let written = front.step();
        let now = filled(&front);
        assert!(now > before, "step {step}");
        assert!(step == 0 || written.len() < 16 * 16 / 2, "step {step}: {}", written.len());
        assert!(written.windows(2).all(|pair| pair[0] < pair[1]), "step {step}");
        before = now;
    }
    assert!(front.cells.iter().all(|u| (0.0..=1.0).contains(u)));
}

/// Both solve `x = (1 - d) + d P x`. What residuals leave is below their sum over `1 - d`.
#[test]
fn both_ways_give_the_same_ranks() {
    let graph = Graph::random(10, 3);
    let reversed = graph.reversed();
    let mut ranks = vec![1.0; graph.n()];
    (0..200).for_each(|_| power_round(&graph, &reversed, &mut ranks));
    let mut state = ResidualRanks::new(graph.n());
    while !state.round(&graph).is_empty() {}
    let left: f64 = state.residuals.iter().sum::<f64>() / (1.0 - 0.85);
    let apart: f64 = ranks.iter().zip(&state.ranks).map(|(a, b)| (a - b).abs()).sum();
    // 200 rounds leave 0.85^200 of the ranks, below rounding.
    assert!(apart <= left + 1e-9 * graph.n() as f64, "{apart} {left}");
}
