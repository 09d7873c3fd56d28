//! Every call of the driver that fails in a short solve is a clean error, and so is a lost device.

use recoup_comm::Solo;
use recoup_core::{DeviceValuesErrorKind, SolveError};
use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{Device, device_values_error};
use recoup_solvers::{Csr, JacobiPreconditioner, Pool, System};

use super::lockstep::Case;
use super::support::{double, wave};

/// Two steps of CG, and the iterate.
fn scenario() -> Result<Vec<f64>, SolveError> {
    let device = Device::open(0).map_err(device_values_error)?;
    let matrix = Csr::poisson3d(4);
    let jacobi = JacobiPreconditioner::new(&matrix)?;
    let pool = Pool::new(1);
    let b = wave(64, 0);
    let system = System { a: &matrix, b: &b, comm: &Solo, pool: &pool };
    let mut solver = Case::new("cg", system, &jacobi).there(&device)?;
    solver.step()?;
    solver.step()?;
    solver.iterate()
}

fn run(double: &Double, settings: &Settings) -> (Result<Vec<f64>, SolveError>, DoubleReport) {
    double.reset(settings);
    let result = scenario();
    (result, double.report())
}

#[test]
fn every_call_that_fails_is_an_error_that_loses_nothing() {
    let Some(double) = double() else { return };
    let (result, report) = run(&double, &Settings::default());
    let expected = result.unwrap();
    let calls = report.total_calls();
    let errors = [
        (CudaStatus::OutOfMemory, DeviceValuesErrorKind::NoRoom),
        (CudaStatus::Unknown, DeviceValuesErrorKind::Failed),
    ];
    let mut told = 0;
    for (call, (error, kind)) in (1..=calls).zip(errors.into_iter().cycle()) {
        let (result, report) = run(&double, &Settings { fail_call: Some(call), error, ..Settings::default() });
        assert!(report.is_clean(), "call {call}: {result:?}\n{report}");
        match result {
            // A call that gives something back is made again, and told to no one.
            Ok(found) => assert_eq!(found, expected, "call {call}"),
            Err(SolveError::Device(found)) => {
                let is_driver = found.message.starts_with("no CUDA here: driver");
                assert!(is_driver || found.kind == kind, "call {call}: {found:?}");
                told += 1;
            }
            Err(other) => panic!("call {call}: {other}"),
        }
    }
    assert!(calls > 100 && 3 * told > calls, "{told} of {calls} calls");
    assert_eq!(run(&double, &Settings::default()).0, Ok(expected));
}

#[test]
fn a_device_lost_at_any_call_is_an_error_that_says_so() {
    let Some(double) = double() else { return };
    let (result, report) = run(&double, &Settings::default());
    let expected = result.unwrap();
    let calls = report.total_calls();
    let mut told = 0;
    let mut is_whole = false;
    for call in 1..=calls {
        let (result, report) = run(&double, &Settings { lost_at: Some(call), ..Settings::default() });
        assert!(report.faults.is_empty() && report.races.is_empty(), "call {call}: {report}");
        match result {
            Ok(found) => {
                assert_eq!(found, expected, "call {call}");
                is_whole = true;
            }
            Err(SolveError::Device(found)) => {
                let is_driver = found.message.starts_with("no CUDA here: driver");
                assert!(is_driver || found.kind == DeviceValuesErrorKind::Lost, "call {call}: {found:?}");
                // Only a loss after the last result goes unnoticed.
                assert!(!is_whole, "call {call}: {found:?}");
                told += 1;
            }
            Err(other) => panic!("call {call}: {other}"),
        }
    }
    assert!(3 * told > calls, "{told} of {calls}");
    assert_eq!(run(&double, &Settings::default()).0, Ok(expected));
}
