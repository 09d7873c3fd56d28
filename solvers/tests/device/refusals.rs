//! Operators and preconditioners that have no form on a device.

use recoup_comm::Solo;
use recoup_core::{CommError, Operator};
use recoup_cuda_double::Settings;
use recoup_solvers::device::{DevicePreconditioner, DeviceSystem};
use recoup_solvers::{Csr, Ilu0, Pool, System};

use super::support::on_device;

/// An operator that only multiplies.
struct Unknown;

impl Operator for Unknown {
    fn rows(&self) -> usize {
        8
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        y.copy_from_slice(x);
        Ok(())
    }
}

#[test]
fn an_operator_or_preconditioner_without_a_form_on_a_device_is_refused_by_name() {
    on_device(&Settings::default(), |device| {
        let pool = Pool::new(1);
        let b = vec![1.0; 8];
        let system = System { a: &Unknown, b: &b, comm: &Solo, pool: &pool };
        let error = DeviceSystem::new(&system, device).unwrap_err().to_string();
        let expected = "a solve on a device needs all rows on one rank, as a matrix or a stencil, which this operator \
                        does not offer";
        assert_eq!(error, expected);
        let matrix = Csr::poisson3d(2);
        let system = DeviceSystem::new(&System { a: &matrix, ..system }, device).unwrap();
        let ilu = Ilu0::new(&matrix).unwrap();
        let error = DevicePreconditioner::of(&system, &ilu).unwrap_err().to_string();
        assert_eq!(error, "preconditioner ilu0 has no form on a device: use jacobi or none");
    });
}
