//! Do operators shared among ranks compute what one rank computes, and do the methods need the same
//! iterations on them?

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup_comm::{Solo, Threads};
use recoup_core::{Comm, CommError, ExactSum, JacobiSweep, Operator, Status, gather_words};
use recoup_solvers::{
    BasisStorage, BlockJacobi, Csr, DistributedCsr, DistributedError, DistributedPoisson3d, Ic0, Identity, Ilu0,
    JacobiPreconditioner, LocalRows, METHODS, MethodInputs, NamedMethod, Need, PointBlockJacobi, Poisson3d, Pool,
    Preconditioner, RightHandSide, RowPartition, Setting, Side, SsorPreconditioner, Stop, System, read_matrix,
    read_matrix_rows,
};

const RANKS: [usize; 4] = [1, 2, 4, 8];
/// No solve here needs more iterations.
const LIMIT: u64 = 5000;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/data/{name}.mtx.gz"))
}

/// An operator of one rank, and the same shared among the ranks of a communicator; its local rows
/// where it has some.
#[derive(Clone, Copy, Debug)]
enum Source {
    Stencil(usize),
    Poisson(usize),
    File(&'static str),
}

struct Shared {
    a: Box<dyn Operator + Send + Sync>,
    rows: Option<Arc<Csr>>,
}

impl Shared {
    fn matrix_free(a: impl Operator + Send + Sync + 'static) -> Self {
        Self { a: Box::new(a), rows: None }
    }
}

impl Source {
    fn whole(self) -> Shared {
        let csr = match self {
            Self::Stencil(n) => return Shared::matrix_free(Poisson3d::new(n)),
            Self::Poisson(n) => Csr::poisson3d(n),
            Self::File(name) => read_matrix(&data(name)).unwrap(),
        };
        Shared { a: Box::new(csr.clone()), rows: Some(Arc::new(csr)) }
    }

    fn shared(self, comm: &dyn Comm, threads: usize) -> Shared {
        let own = comm.dup().unwrap();
        let pool = Arc::new(Pool::new(threads));
        let (partition, rows) = match self {
            Self::Stencil(n) => return Shared::matrix_free(DistributedPoisson3d::new(own, n, pool)),
            Self::Poisson(n) => {
                let partition = RowPartition::even(n * n * n, n * n, comm.size());
                let rows = LocalRows::poisson3d(n, partition.range(comm.rank()));
                (partition, rows)
            }
            Self::File(name) => {
                let mut partition = RowPartition::even(0, 1, 1);
                let rows = read_matrix_rows(&data(name), |n| {
                    partition = RowPartition::even(n, 1, comm.size());
                    partition.range(comm.rank())
                });
                (partition, rows.unwrap())
            }
        };
        let matrix = DistributedCsr::new(own, &partition, &rows, pool).unwrap();
        let rows = Some(matrix.local());
        Shared { a: Box::new(matrix), rows }
    }
}

/// A vector whose values differ everywhere, by global row.
fn wave(first: u64, rows: usize) -> Vec<f64> {
    (0..rows).map(|i| ((first + i as u64) as f64 * 0.7).sin()).collect()
}

/// An operator of which its products alone are known.
struct ProductsAlone<'a>(&'a dyn Operator);

impl Operator for ProductsAlone<'_> {
    fn rows(&self) -> usize {
        self.0.rows()
    }

    fn chunk_rows(&self) -> usize {
        self.0.chunk_rows()
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.0.apply(x, y)
    }
}

/// `y = A x` and local sums next to it: of y, and of its squares.
fn product_with_sums(a: &dyn Operator, x: &[f64]) -> (Vec<f64>, [ExactSum; 2]) {
    let mut y = vec![0.0; x.len()];
    let mut sums = [ExactSum::from(1.0); 2];
    let of_block = |rows: std::ops::Range<usize>, y: &[f64], sums: &mut [f64]| {
        assert_eq!(rows.len(), y.len());
        sums[0] += y.iter().sum::<f64>();
        sums[1] += y.iter().map(|y| y * y).sum::<f64>();
    };
    a.apply_sums(x, &mut y, &mut sums, &of_block).unwrap();
    (y, sums)
}

/// Everything an operator computes of one vector: this rank's rows, and the sums over all ranks.
fn everything(a: &dyn Operator, comm: &dyn Comm) -> (Vec<Vec<f64>>, Vec<f64>) {
    let rows = a.rows();
    let x = wave(a.first_row(), rows);
    let b = RightHandSide::Smooth.build(a).unwrap();
    let mut vectors = vec![vec![0.0; rows]; 5];
    let [y, in_order, r, swept, absolute] = &mut vectors[..] else { unreachable!("five") };
    a.apply(&x, y).unwrap();
    a.apply_in_order(&x, in_order).unwrap();
    let mut sums = [ExactSum::ZERO; 6];
    let (product, sums_of_y) = product_with_sums(a, &x);
    assert_eq!(product_with_sums(&ProductsAlone(a), &x), (product.clone(), sums_of_y));
    assert_eq!(&product, y);
    sums[4..].copy_from_slice(&sums_of_y);
    [sums[0], sums[1]] = [a.apply_dot(&x, y).unwrap(), a.residual(&b, &x, r).unwrap()];
    let inverse: Vec<f64> = a.diagonal().unwrap().into_iter().map(f64::recip).collect();
    let mut iterate = x.clone();
    let sweep = JacobiSweep { b: &b, inverse_diagonal: &inverse, omega: 0.8, x: &mut iterate, target: swept };
    sums[2] = a.jacobi_sweep(sweep).unwrap();
    if a.sweeps_in_place() {
        swept.copy_from_slice(&iterate);
    }
    a.abs_apply(&x, absolute).unwrap().unwrap();
    sums[3] = a.frobenius_squared().unwrap();
    comm.sum_exact(&mut sums).unwrap();
    vectors.push(b);
    (vectors, sums.map(|sum| sum.rounded()).to_vec())
}

fn wrapping_sum(comm: &dyn Comm, value: u64) -> u64 {
    let all = gather_words(comm, [value]).unwrap();
    all.into_iter().map(|[value]| value).fold(0, u64::wrapping_add)
}

#[test]
fn shared_operators_compute_what_one_rank_computes() {
    for source in [Source::Stencil(9), Source::Poisson(9), Source::File("sherman5"), Source::File("bcsstk14")] {
        let whole = source.whole().a;
        let (vectors, sums) = everything(whole.as_ref(), &Solo);
        let nonzeros_in_row = whole.nonzeros().div_ceil(whole.rows() as u64) as f64 + 64.0;
        for ranks in [1, 2, 3, 4, 8, 9] {
            let parts = Threads::launch(ranks, |comm| {
                let a = source.shared(&comm, 1 + ranks % 2).a;
                assert_eq!(wrapping_sum(&comm, a.fingerprint()), whole.fingerprint(), "{source:?} on {ranks}");
                assert_eq!(wrapping_sum(&comm, a.nonzeros()), whole.nonzeros());
                assert_eq!(a.global_rows(), whole.global_rows());
                let largest = |value: Option<f64>| {
                    let all = gather_words(&comm, [value.unwrap().to_bits()]).unwrap();
                    all.into_iter().map(|[bits]| f64::from_bits(bits)).fold(0.0, f64::max)
                };
                let close = |a: f64, b: f64| (a - b).abs() <= nonzeros_in_row * f64::EPSILON * b.abs();
                assert!(close(largest(a.largest_row_sum()), whole.largest_row_sum().unwrap()));
                assert!(close(largest(a.largest_column_sum()), whole.largest_column_sum().unwrap()));
                everything(a.as_ref(), &comm)
            });
            for (index, expected) in vectors.iter().enumerate() {
                let found: Vec<f64> = parts.iter().flat_map(|(vectors, _)| vectors[index].clone()).collect();
                assert_eq!(found.len(), expected.len());
                for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
                    let bits = [found, expected].map(|value| value.to_bits());
                    assert_eq!(bits[0], bits[1], "{source:?}, {ranks} ranks, vector {index}, row {row}");
                }
            }
            for (_, found) in &parts {
                assert_eq!(found, &sums, "{source:?}, {ranks} ranks");
            }
        }
    }
}

#[test]
fn a_shared_operator_is_applied_by_two_threads_at_once() {
    Threads::launch(3, |comm| {
        let partition = RowPartition::even(12 * 144, 144, 3);
        let rows = LocalRows::poisson3d(12, partition.range(comm.rank()));
        let a = DistributedCsr::new(comm.dup().unwrap(), &partition, &rows, Arc::new(Pool::new(1))).unwrap();
        let other = a.over(comm.dup().unwrap());
        let x = wave(a.first_row(), a.rows());
        let mut expected = vec![0.0; a.rows()];
        a.apply(&x, &mut expected).unwrap();
        std::thread::scope(|scope| {
            for a in [a, other] {
                let x = &x;
                let expected = &expected;
                scope.spawn(move || {
                    let mut y = vec![0.0; x.len()];
                    for _ in 0..50 {
                        a.apply(x, &mut y).unwrap();
                        assert_eq!(&y, expected);
                    }
                });
            }
        });
    });
}

#[test]
fn rows_that_make_no_matrix_are_refused_on_every_rank() {
    let refused = Threads::launch(3, |comm| {
        let partition = RowPartition::even(6, 1, 3);
        let mut rows = LocalRows { row_starts: vec![0, 1, 2], columns: vec![0, 5], values: vec![1.0, 2.0] };
        if comm.rank() == 1 {
            rows.values[1] = f64::NAN;
        }
        DistributedCsr::new(comm.dup().unwrap(), &partition, &rows, Arc::new(Pool::new(1))).err().unwrap()
    });
    assert_eq!(refused[0], DistributedError::Elsewhere { rank: 1 });
    assert!(matches!(refused[1], DistributedError::Matrix { first_row: 2, .. }));
    assert_eq!(refused[2], refused[0]);
}

/// A method, its preconditioner and the tolerance.
#[derive(Clone, Copy, Debug)]
struct Case {
    method: &'static str,
    pc: &'static str,
    rtol: f64,
}

impl Case {
    fn new(method: &'static str, pc: &'static str, rtol: f64) -> Self {
        Self { method, pc, rtol }
    }

    /// A method of the table under a preconditioner that does not depend on ranks, to a tolerance
    /// that it reaches soon.
    fn usual(method: &NamedMethod) -> Self {
        let pc = if method.takes(Setting::Preconditioner) { "jacobi" } else { "none" };
        Self::new(method.name, pc, if method.profile.is_stationary { 1e-2 } else { 1e-8 })
    }
}

fn preconditioner<'a>(name: &str, shared: &'a Shared) -> Box<dyn Preconditioner + 'a> {
    let rows = || shared.rows.as_deref().unwrap();
    match name {
        "none" => Box::new(Identity),
        "jacobi" => Box::new(JacobiPreconditioner::new(shared.a.as_ref()).unwrap()),
        "bjacobi" => {
            let a = shared.a.as_ref();
            Box::new(BlockJacobi::on_rank(&Pool::new(1), a, rows(), 4, |block| Ic0::new(&block)).unwrap())
        }
        "pbjacobi" => Box::new(PointBlockJacobi::new(rows(), 16).unwrap()),
        "ssor" => Box::new(SsorPreconditioner::new(rows(), 1.0).unwrap()),
        "ilu0" => Box::new(Ilu0::new(rows()).unwrap()),
        "ic0" => Box::new(Ic0::new(rows()).unwrap()),
        other => panic!("no preconditioner {other}"),
    }
}

/// The end of a solve.
struct Ended {
    iterations: u64,
    /// The bits of the residual norm after each step.
    norms: Vec<u64>,
    /// The bits of this rank's rows of x.
    x: Vec<u64>,
    /// The true relative residual.
    relative: f64,
}

fn solve(shared: &Shared, comm: &dyn Comm, case: Case) -> Ended {
    let a = shared.a.as_ref();
    let pool = Pool::new(1);
    let b = RightHandSide::Random { seed: 7 }.build(a).unwrap();
    let method = METHODS.iter().find(|method| method.name == case.method).unwrap();
    let inputs = MethodInputs {
        system: System { a, b: &b, comm, pool: &pool },
        rows: shared.rows.as_deref(),
        preconditioner: &*preconditioner(case.pc, shared),
        x0: &vec![0.0; a.rows()],
        stop: Stop::at(case.rtol),
        omega: 1.0,
        restart: 30,
        side: Side::Right,
        harvest: 8,
        basis: BasisStorage::Double,
    };
    let mut solver = (method.make)(&inputs).unwrap();
    let mut norms = Vec::new();
    while solver.progress().status == Status::Running && solver.progress().iteration < LIMIT {
        norms.push(solver.step().unwrap().residual_norm.to_bits());
    }
    let x = solver.iterate().unwrap();
    let mut squares = [a.residual(&b, &x, &mut vec![0.0; a.rows()]).unwrap(), a.squared_norm(&b)];
    comm.sum_exact(&mut squares).unwrap();
    let iterations = solver.progress().iteration;
    let x = x.into_iter().map(f64::to_bits).collect();
    Ended { iterations, norms, x, relative: squares[0].sqrt() / squares[1].sqrt() }
}

/// A solve that has converged, on several ranks: the rows of x of all of them together.
fn solve_shared(source: Source, case: Case, ranks: usize) -> Ended {
    let ends = Threads::launch(ranks, |comm| solve(&source.shared(&comm, 1), &comm, case));
    let all = ends.into_iter().reduce(|mut all, end| {
        assert_eq!(all.norms, end.norms, "{source:?}, {case:?}: ranks differ");
        all.x.extend(end.x);
        all
    });
    let all = all.unwrap();
    assert!(all.relative <= case.rtol * (1.0 + 1e-10), "{source:?}, {case:?}, {ranks} ranks: {}", all.relative);
    all
}

#[test]
fn solves_have_the_same_bits_on_any_number_of_ranks() {
    let is_the_same_method = |method: &&NamedMethod| method.needs != Some(Need::Rows);
    let every = METHODS.iter().filter(is_the_same_method);
    let every = every.map(|method| (Source::Poisson(20), Case::usual(method), &[7][..]));
    let others = [
        (Source::Stencil(20), Case::new("cg", "none", 1e-8), &[2, 7, 16][..]),
        (Source::Stencil(20), Case::new("pipecg", "none", 1e-8), &[3]),
        (Source::Stencil(20), Case::new("jacobi", "none", 1e-2), &[4]),
        (Source::Poisson(20), Case::new("bicgstab", "none", 1e-8), &[3]),
        (Source::File("copter2_lap"), Case::new("gmres-dr", "jacobi", 1e-2), &[3]),
        (Source::File("copter2_lap"), Case::new("cg", "jacobi", 1e-2), &[1, 2, 3, 4, 7, 16, 64]),
        (Source::File("orsirr_1"), Case::new("gmres", "jacobi", 1e-2), &[1, 2, 3, 4, 7, 16, 64]),
        (Source::File("add32"), Case::new("bicgstab", "jacobi", 1e-8), &[1, 2, 3, 4, 7, 16, 64]),
        // Ranks that share four blocks evenly.
        (Source::Poisson(20), Case::new("cg", "bjacobi", 1e-8), &[1, 2, 4]),
        (Source::File("nos7"), Case::new("cg", "bjacobi", 1e-2), &[1, 2, 4]),
    ];
    for (source, case, ranks) in every.chain(others) {
        let expected = solve(&source.whole(), &Solo, case);
        println!("{source:?} {case:?}: {} iterations", expected.iterations);
        for &ranks in ranks {
            let found = solve_shared(source, case, ranks);
            assert_eq!(found.norms, expected.norms, "{source:?}, {case:?}, {ranks} ranks");
            assert!(found.x == expected.x, "{source:?}, {case:?}, {ranks} ranks: another x");
        }
    }
}

#[test]
fn methods_converge_on_any_number_of_ranks_where_blocks_depend_on_them() {
    let source = Source::Poisson(16);
    let blocks = METHODS.iter().filter(|method| method.needs == Some(Need::Rows));
    let blocks = blocks.map(|method| Case { rtol: 1e-3, ..Case::usual(method) });
    let others = [
        Case::new("cg", "bjacobi", 1e-8),
        Case::new("cg", "pbjacobi", 1e-8),
        Case::new("cg", "ssor", 1e-8),
        Case::new("cg", "ic0", 1e-8),
        Case::new("gmres", "ilu0", 1e-8),
    ];
    for case in blocks.chain(others) {
        let expected = solve(&source.whole(), &Solo, case).iterations;
        let found = RANKS.map(|ranks| solve_shared(source, case, ranks).iterations);
        println!("{source:?} {case:?}: {expected} iterations on one, {found:?} on {RANKS:?}");
        // One rank is the method itself; blocks cut off at ranks never make it better than a few
        // iterations.
        assert_eq!(found[0], expected, "{case:?}");
        assert!(found.iter().all(|&found| found <= 2 * expected + 20), "{case:?}: {expected}, {found:?}");
    }
}
