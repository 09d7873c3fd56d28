//! Waits of the host in an iteration: one for each pass with sums, by which the method decides.

use recoup_comm::Solo;
use recoup_core::Operator;
use recoup_cuda_double::{Double, Settings};
use recoup_device::Device;
use recoup_solvers::{Csr, JacobiPreconditioner, Pool, System};

use super::lockstep::Case;
use super::support::{double, wave};

/// Waits for the device so far.
fn waits(double: &Double) -> u64 {
    let report = double.report();
    ["cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"].iter().map(|name| report.count(name)).sum()
}

#[test]
fn an_iteration_waits_once_for_each_pass_with_sums() {
    let Some(double) = double() else { return };
    double.reset(&Settings::default());
    let device = Device::open(0).unwrap();
    let a = Csr::poisson3d(4);
    let b = wave(a.rows(), 0);
    let pool = Pool::new(1);
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let m = JacobiPreconditioner::new(&a).unwrap();
    // GMRES takes the products with its basis, then the norm of what is left.
    for (name, expected) in [("cg", 2), ("bicgstab", 3), ("jacobi", 1), ("gmres", 2)] {
        let mut solver = Case::new(name, system, &m).there(&device).unwrap();
        // The first iteration also makes room for its sums.
        solver.step().unwrap();
        for step in 2..=4 {
            let before = waits(&double);
            solver.step().unwrap();
            assert_eq!(waits(&double) - before, expected, "{name}, step {step}");
        }
    }
    drop(device);
    assert!(double.report().is_clean(), "{}", double.report());
}
