//! Does a step, once warm, leave the allocator alone?

#[path = "shared/variants.rs"]
mod variants;

use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::{ExactSum, Iteration, SafePoint, Status};
use recoup_solvers::{
    BlockJacobi, Csr, Ic0, Identity, Ilu0, JacobiPreconditioner, NamedMethod, Need, PointBlockJacobi, Poisson3d, Pool,
    Preconditioner, Setting, SsorPreconditioner, Stop, System,
};

use recoup_testkit::allocation::{CountingAllocator, allocated};
use variants::variants;

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Points of the grid in each direction.
const N: usize = 24;

/// Eight steps after eight, in which every method has begun its second cycle. Of the methods that
/// carry directions over, the end of a cycle solves an eigenvalue problem of the size of the cycle;
/// it may take memory for small matrices, but for no vector. A basis in bits that change from cycle
/// to cycle changes there, too.
fn assert_allocates_nothing(method: &NamedMethod, solver: &mut dyn Iteration, what: &str) {
    for step in 0..16 {
        let before = allocated();
        let progress = solver.step().expect("one rank is never lost");
        let now = allocated();
        let [allocations, bytes] = [0, 1].map(|which| now[which] - before[which]);
        assert_eq!(progress.status, Status::Running, "{what}: the step does its work");
        if what.ends_with("basis Auto") && progress.safe_point == SafePoint::Any {
            continue;
        }
        if method.takes(Setting::Harvest) && progress.safe_point == SafePoint::Any {
            assert!(bytes < 8 * N.pow(3) as u64, "{what}, step {step}: {bytes} bytes");
        } else {
            assert!(step < 8 || allocations == 0, "{what}, step {step}: {allocations} allocations");
        }
    }
}

/// The only test of this program, as another's allocations would be counted too.
#[test]
fn steps_allocate_nothing() {
    let stop = Stop::at(1e-14);
    let pool = Arc::new(Pool::new(2));
    let matrix = Csr::poisson3d(N).with_pool(Arc::clone(&pool));
    let stencil = Poisson3d::new(N).with_pool(pool.clone());
    let b = vec![1.0; N.pow(3)];
    let x0 = vec![0.0; N.pow(3)];
    let system = System { a: &matrix, b: &b, comm: &Solo, pool: &pool };
    let jacobi = JacobiPreconditioner::new(&matrix).unwrap();
    let points = PointBlockJacobi::new(&matrix, 16).unwrap();
    let blocks = BlockJacobi::new(&pool, &matrix, 5, |block| Ic0::new(&block)).unwrap();
    let ssor = SsorPreconditioner::new(&matrix, 1.0).unwrap();
    let ilu = Ilu0::new(&matrix).unwrap();
    let ic = Ic0::new(&matrix).unwrap();
    for variant in variants(&[&Identity as &dyn Preconditioner, &jacobi, &points, &blocks, &ssor, &ilu, &ic]) {
        let mut solver = variant.solver(system, &matrix, &x0, stop);
        assert_allocates_nothing(variant.method, &mut *solver, &variant.describe());
    }
    // GMRES with a long cycle asks for as many sums.
    for (threads, rows) in [(1, N.pow(3)), (2, 10)] {
        let pool = Pool::new(threads);
        pool.reserve_sums(200);
        // A thread allocates where it begins.
        pool.for_rows(N.pow(3), (), |_, ()| ());
        let mut sums = vec![ExactSum::ZERO; 200];
        let [before, _] = allocated();
        pool.sum_rows_into(rows, (), &mut sums, |rows, (), sums| sums[199] += rows.len() as f64);
        assert_eq!(allocated()[0] - before, 0, "200 sums of {rows} rows");
        assert_eq!(sums[199].rounded(), rows as f64);
    }
    let system = System { a: &stencil, ..system };
    for variant in variants(&[&Identity]).iter().filter(|variant| variant.method.needs != Some(Need::Rows)) {
        let mut solver = variant.solver(system, &matrix, &x0, stop);
        assert_allocates_nothing(variant.method, &mut *solver, &format!("the stencil: {}", variant.describe()));
    }
}
