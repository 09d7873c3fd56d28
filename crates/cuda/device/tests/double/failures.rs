//! Every call of the driver that can fail does, in turn: an error or none, nothing lost, and the
//! next use is right.

use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceError, DeviceVec, HostBuffer, Mapped, Stream};

use super::support::{double, load_axpy, numbers};
use super::sys::axpy;

const MIB: usize = 1 << 20;

/// Every type at work: a kernel, a ring of the device that grows, a buffer behind it.
fn scenario() -> Result<Vec<f64>, DeviceError> {
    let device = Device::open(0)?;
    let kernel = load_axpy(&device)?;
    let [solver, drain] = [Stream::new(&device)?, Stream::new(&device)?];
    let x = DeviceVec::copy_of(&solver, &numbers(0, 1000))?;
    let mut y = DeviceVec::zeros(&solver, 1000)?;
    axpy(&solver, &kernel, 128, 2.0, x.view(), &mut y.view_mut())?;
    let ring = Mapped::reserve(&device, 6 * MIB, 2 * MIB)?;
    ring.grow(3 * MIB)?;
    solver.copy(y.view(), &mut ring.view_mut(2 * MIB - 800, 1000))?;
    let staged = solver.ticket()?;
    solver.fill_zero(&mut y.view_mut())?;
    let behind = HostBuffer::reserve(&device, 4 * MIB, 2 * MIB)?;
    behind.register(2 * MIB)?;
    drain.wait_for(&staged)?;
    let drained = behind.store(&drain, ring.view::<f64>(2 * MIB - 800, 1000), 2 * MIB - 4000)?;
    staged.is_done()?;
    let mut back = DeviceVec::new(&device, 1000)?;
    behind.load(&solver, 2 * MIB - 4000, &mut back.view_mut())?;
    drained.wait()?;
    let mut found = vec![0.0; 1000];
    solver.download(back.view(), &mut found)?;
    device.memory()?;
    Ok(found)
}

fn run(double: &Double, settings: &Settings) -> (Result<Vec<f64>, DeviceError>, DoubleReport) {
    double.reset(settings);
    let result = scenario();
    (result, double.report())
}

fn expected() -> Vec<f64> {
    numbers(0, 1000).into_iter().map(|x| 2.0 * x).collect()
}

#[test]
fn the_scenario_is_right_in_every_order() {
    let Some(double) = double() else { return assert_eq!(scenario(), Ok(expected())) };
    for seed in 0..super::support::SEEDS {
        let (result, report) = run(&double, &Settings { seed, ..Settings::default() });
        assert_eq!(result, Ok(expected()), "seed {seed}");
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

/// Whether a function gives something back, or is called to do so.
fn gives_back(name: &str) -> bool {
    let parts = ["Destroy", "Free", "Unregister", "Release", "Unmap", "Unload", "CtxSynchronize", "Current"];
    parts.iter().any(|part| name.contains(part))
}

#[test]
fn every_call_that_fails_is_an_error_that_loses_nothing() {
    let Some(double) = double() else { return };
    let report = run(&double, &Settings::default()).1;
    let calls = report.total_calls();
    // What fails while things are given back is done again, and told to no one.
    let quiet: u64 = report.calls.iter().filter(|(name, _)| gives_back(name)).map(|(_, count)| count).sum();
    for error in [CudaStatus::OutOfMemory, CudaStatus::Unknown] {
        let mut silent = 0;
        for call in 1..=calls {
            let settings = Settings { fail_call: Some(call), error, ..Settings::default() };
            let (result, report) = run(&double, &settings);
            assert!(report.is_clean(), "call {call}: {result:?}\n{report}");
            match result {
                Ok(found) => {
                    assert_eq!(found, expected(), "call {call}");
                    silent += 1;
                }
                Err(DeviceError::Driver { code, .. }) => assert_eq!(code, error as i32, "call {call}"),
                Err(DeviceError::NotAvailable { what, .. }) => assert_eq!(what, "driver", "call {call}"),
                Err(other) => panic!("call {call}: {other}"),
            }
            assert_eq!(scenario(), Ok(expected()), "after call {call}");
        }
        assert!(calls > 100 && silent <= quiet, "{silent} of {calls} calls failed in silence, {quiet} give back");
    }
}

#[test]
fn a_device_lost_at_any_call_is_an_error_that_says_so() {
    let Some(double) = double() else { return };
    let calls = run(&double, &Settings::default()).1.total_calls();
    for lost_error in [CudaStatus::DeviceUnavailable, CudaStatus::EccUncorrectable] {
        let mut told = 0;
        let mut is_whole = false;
        for call in 1..=calls {
            let (result, report) = run(&double, &Settings { lost_at: Some(call), lost_error, ..Settings::default() });
            assert!(report.faults.is_empty() && report.races.is_empty(), "call {call}: {report}");
            match result {
                Ok(found) => {
                    assert_eq!(found, expected(), "call {call}");
                    is_whole = true;
                }
                Err(error) => {
                    let is_absent = matches!(error, DeviceError::NotAvailable { what: "driver", .. });
                    assert!(is_absent || error.is_lost(), "call {call}: {error}");
                    // Only a loss after the last result goes unnoticed.
                    assert!(!is_whole, "call {call}: {error}");
                    told += 1;
                }
            }
            assert_eq!(run(&double, &Settings::default()).0, Ok(expected()), "after call {call}");
        }
        assert!(3 * told > calls, "{told} of {calls}");
    }
}

#[test]
fn memory_that_runs_out_anywhere_is_an_error_that_loses_nothing() {
    let Some(double) = double() else { return };
    let mut refused = Vec::new();
    let few = (0..40_000).step_by(2000);
    for memory_bytes in few.chain((0..8 * MIB as u64).step_by(64 << 10)) {
        let (result, report) = run(&double, &Settings { memory_bytes, ..Settings::default() });
        assert!(report.is_clean(), "{memory_bytes} bytes: {report}");
        match result {
            Ok(found) => assert_eq!(found, expected()),
            Err(error) => {
                assert!(error.is_out_of_memory(), "{memory_bytes} bytes: {error}");
                refused.push(error.to_string());
            }
        }
    }
    refused.sort();
    refused.dedup();
    let calls = ["cuMemAlloc of 8000 bytes", "cuMemCreate of 2097152 bytes"];
    assert!(calls.iter().all(|call| refused.iter().any(|text| text.contains(call))), "{refused:?}");
}
