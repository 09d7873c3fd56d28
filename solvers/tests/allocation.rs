//! Does a step, once warm, leave the allocator alone?
#![expect(unsafe_code, reason = "counts what goes through the global allocator")]

use std::alloc::{GlobalAlloc, Layout, System as SystemAllocator};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_comm::Solo;
use recoup_core::{Iteration, Status};
use recoup_solvers::{
    Bicgstab, BlockJacobi, Cg, Csr, GaussSeidel, Gmres, GmresOptions, Ic0, Identity, Ilu0, Jacobi,
    JacobiPreconditioner, PipelinedCg, Poisson3d, Pool, Preconditioner, Relaxation, Side, SsorPreconditioner, Stop,
    System,
};

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { SystemAllocator.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is the same.
        unsafe { SystemAllocator.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of ten steps after two.
fn allocations(solver: &mut dyn Iteration) -> u64 {
    let mut steps = |count| {
        for _ in 0..count {
            let status = solver.step().map(|progress| progress.status);
            assert_eq!(status, Ok(Status::Running), "the step does its work");
        }
        ALLOCATIONS.load(Ordering::Relaxed)
    };
    let warm = steps(2);
    steps(10) - warm
}

/// The only test of this program, as another's allocations would be counted too.
#[test]
fn steps_allocate_nothing() {
    let n = 24;
    let stop = Stop::at(1e-12);
    let pool = Arc::new(Pool::new(2));
    let matrix = Csr::poisson3d(n).with_pool(Arc::clone(&pool));
    let stencil = Poisson3d::new(n).with_pool(pool.clone());
    let b = vec![1.0; n.pow(3)];
    let x = vec![0.0; n.pow(3)];
    let system = System { a: &matrix, b: &b, comm: &Solo, pool: &pool };
    let jacobi = JacobiPreconditioner::new(&matrix).unwrap();
    assert_eq!(allocations(&mut Cg::new(system, &Identity, &x, stop).unwrap()), 0, "cg");
    assert_eq!(allocations(&mut Cg::new(system, &jacobi, &x, stop).unwrap()), 0, "cg with jacobi");
    assert_eq!(allocations(&mut PipelinedCg::new(system, &Identity, &x, stop).unwrap()), 0, "pipecg");
    assert_eq!(allocations(&mut PipelinedCg::new(system, &jacobi, &x, stop).unwrap()), 0, "pipecg with jacobi");
    assert_eq!(allocations(&mut Jacobi::new(system, 1.0, &x, stop).unwrap()), 0, "jacobi");
    for relaxation in [Relaxation::GaussSeidel, Relaxation::Ssor { omega: 1.5 }] {
        let mut solver = GaussSeidel::new(system, &matrix, relaxation, &x, stop).unwrap();
        assert_eq!(allocations(&mut solver), 0, "{relaxation:?}");
    }
    let blocks = BlockJacobi::new(&matrix, 16).unwrap();
    let ssor = SsorPreconditioner::new(&matrix, 1.0).unwrap();
    let ilu = Ilu0::new(&matrix).unwrap();
    let ic = Ic0::new(&matrix).unwrap();
    for preconditioner in [&Identity as &dyn Preconditioner, &jacobi, &blocks, &ssor, &ilu, &ic] {
        let name = preconditioner.name();
        assert_eq!(allocations(&mut Bicgstab::new(system, preconditioner, &x, stop).unwrap()), 0, "bicgstab {name}");
        for side in [Side::Left, Side::Right] {
            // Twelve steps are four cycles.
            let options = GmresOptions { restart: 3, side, stop };
            assert_eq!(allocations(&mut Gmres::new(system, preconditioner, &x, options).unwrap()), 0, "gmres {name}");
        }
    }
    // GMRES with a long cycle asks for as many sums; a pool that works alone has no use for room
    // per chunk.
    for (alone, rows) in [(Pool::new(1), n.pow(3)), (Pool::new(2), 10)] {
        alone.reserve_sums(200);
        let mut sums = vec![0.0; 200];
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        alone.sum_rows_into(rows, (), &mut sums, |rows, (), sums| sums[199] += rows.len() as f64);
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "200 sums of {rows} rows");
        assert_eq!(sums[199], rows as f64);
    }
    let system = System { a: &stencil, ..system };
    assert_eq!(allocations(&mut Jacobi::new(system, 1.0, &x, stop).unwrap()), 0, "jacobi on the stencil");
}
