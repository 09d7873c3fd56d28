//! The suite of all solvers, on a device.

use recoup_comm::Solo;
use recoup_core::{Operator, Resume};
use recoup_cuda_double::Settings;
use recoup_solvers::{Csr, JacobiPreconditioner, Pool, System};
use recoup_testkit::solver_suite::{SolverCase, check_solver};

use super::lockstep::{Case, TOLERANCE};
use super::support::{on_device, wave};

#[test]
fn solvers_on_a_device_pass_the_suite_of_solvers() {
    on_device(&Settings::default(), |device| {
        let a = Csr::poisson3d(3);
        let b = wave(a.rows(), 0);
        let pool = Pool::new(1);
        let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
        let m = JacobiPreconditioner::new(&a).unwrap();
        let true_residual = |x: &[f64]| {
            let mut r = vec![0.0; x.len()];
            a.residual(&b, x, &mut r).unwrap().sqrt()
        };
        let cg: &[Resume] = &[Resume::Traditional, Resume::Deflated];
        for (name, resumes) in [("cg", cg), ("gmres", &[]), ("bicgstab", &[Resume::Traditional])] {
            let start = || Case::new(name, system, &m).there(device).unwrap();
            let profile = start().profile();
            let make = || -> Box<dyn recoup_core::Iteration + '_> { start() };
            check_solver(&SolverCase { make: &make, true_residual: &true_residual, rtol: TOLERANCE, profile, resumes });
        }
    });
}
