//! Calls that fail, devices that are lost, drivers that are old: an error each time, never a panic.

use cudarc::driver::sys::{CUlimit, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceError, driver_version, pinned, probe};

use crate::bench::OpenedDevice;
use crate::sys;

/// Copies through two streams and pinned memory: the bytes that come back.
fn scenario() -> Result<Vec<u32>, DeviceError> {
    let device = Device::open(0)?;
    let [a, b] = [device.context().new_stream()?, device.context().new_stream()?];
    let mut staged = pinned::<u32>(&device, 100)?;
    for (index, word) in staged.as_mut_slice()?.iter_mut().enumerate() {
        *word = index as u32;
    }
    let mut source = a.alloc_zeros::<u32>(100)?;
    a.memcpy_htod(&staged, &mut source)?;
    let mut target = b.alloc_zeros::<u32>(100)?;
    b.memcpy_dtod(&source, &mut target)?;
    let event = b.record_event(None)?;
    a.wait(&event)?;
    let other = a.clone_dtoh(&source)?;
    event.synchronize()?;
    let found = b.clone_dtoh(&target)?;
    // What the last call of a stream could not do is told here.
    a.synchronize()?;
    b.synchronize()?;
    device.context().synchronize()?;
    assert_eq!(found, other);
    Ok(found)
}

fn run(double: &Double, settings: &Settings) -> (Result<Vec<u32>, DeviceError>, DoubleReport) {
    double.reset(settings);
    let result = scenario();
    (result, double.report())
}

#[test]
fn a_hundred_seeds_repeat_exactly_and_differ_in_their_order() {
    let double = Double::load();
    let expected: Vec<u32> = (0..100).collect();
    let mut digests = Vec::new();
    for seed in 0..100 {
        let settings = Settings { seed, ..Settings::default() };
        let (found, report) = run(&double, &settings);
        assert_eq!(found.as_ref(), Ok(&expected), "seed {seed}");
        assert!(report.is_clean(), "seed {seed}: {report}");
        assert_eq!(run(&double, &settings), (found, report.clone()), "seed {seed}");
        digests.push(report.trace.digest);
    }
    digests.sort_unstable();
    digests.dedup();
    assert!(digests.len() > 1, "the seed draws the order");
}

#[test]
fn every_call_that_fails_gives_an_error_and_the_next_run_is_whole() {
    let double = Double::load();
    let (whole, report) = run(&double, &Settings::default());
    let n = report.total_calls();
    assert!(whole.is_ok() && n > 50, "{n} calls");
    let mut silent = Vec::new();
    for error in [CudaStatus::OutOfMemory, CudaStatus::Unknown] {
        for call in 1..=n {
            let settings = Settings { fail_call: Some(call), error, ..Settings::default() };
            let (result, report) = run(&double, &settings);
            // A wait that failed is told, and memory may be gone then under work that is of no use.
            let Ok(found) = result else { continue };
            assert_eq!(Some(&found), whole.as_ref().ok(), "call {call}");
            assert!(report.faults.is_empty() && report.races.is_empty(), "call {call}: {report}");
            silent.push(call);
        }
    }
    // What fails while things are given back has no one to tell; nothing else stays silent.
    assert!(silent.iter().all(|call| n - call < 40), "of {n} calls: {silent:?}");
    assert_eq!(run(&double, &Settings::default()).0, whole);
}

#[test]
fn a_device_lost_at_any_call_is_an_error() {
    let double = Double::load();
    let n = run(&double, &Settings::default()).1.total_calls();
    for call in 1..=n {
        let (result, report) = run(&double, &Settings { lost_at: Some(call), ..Settings::default() });
        let is_told = matches!(&result, Err(error) if error.to_string().contains("DEVICE_UNAVAILABLE"));
        // The last calls only give things back.
        assert!(is_told || (result.is_ok() && n - call < 40), "call {call} of {n}: {result:?}");
        assert!(report.faults.is_empty(), "call {call}: {report}");
    }
}

#[test]
fn drivers_that_are_missing_old_or_without_a_device_are_not_available() {
    let double = Double::load();
    for version in [None, Some(11_040), Some(12_010)] {
        double.reset(&Settings { driver_version: version, ..Settings::default() });
        let result = Device::open(0);
        assert!(result.is_err(), "{version:?}");
        assert_eq!(probe().err(), result.err(), "{version:?}");
    }
    double.reset(&Settings { driver_version: Some(12_020), ..Settings::default() });
    assert_eq!(driver_version().map(|version| version.to_string()), Ok("12.2".to_owned()));
    double.reset(&Settings { devices: 0, ..Settings::default() });
    assert!(matches!(Device::open(0), Err(DeviceError::NotAvailable { what: "device", .. })));
    double.reset(&Settings { devices: 3, ..Settings::default() });
    assert_eq!(probe().unwrap().len(), 3);
    assert!(double.report().is_clean());
}

#[test]
fn a_call_before_the_first_is_refused() {
    let double = Double::load();
    assert_eq!(sys::synchronize(), Err(CUresult::CUDA_ERROR_NOT_INITIALIZED));
    assert!(double.report().is_clean());
}

#[test]
fn a_call_that_the_double_does_not_have_is_an_error_with_its_name() {
    let device = OpenedDevice::new();
    let mut bytes = 0;
    let result = sys::limit(&raw mut bytes, CUlimit::CU_LIMIT_STACK_SIZE);
    assert_eq!(result, Err(CUresult::CUDA_ERROR_NOT_SUPPORTED));
    assert_eq!(device.close().faults, ["cuCtxGetLimit: the double does not have this call"]);
}

#[test]
fn a_device_of_two_has_memory_of_its_own() {
    let double = Double::load();
    double.reset(&Settings { devices: 2, memory_bytes: 1 << 20, ..Settings::default() });
    let full = || -> Result<(), DriverError> {
        let [first, second] = [CudaContext::new(0)?, CudaContext::new(1)?];
        let one = first.default_stream().alloc_zeros::<u8>(1 << 20)?;
        let two = second.default_stream().alloc_zeros::<u8>(1 << 20)?;
        assert!(first.default_stream().alloc_zeros::<u8>(1).is_err());
        // A vector is given back in the stream 0 of whatever context is current.
        second.bind_to_thread()?;
        drop(two);
        first.bind_to_thread()?;
        drop(one);
        first.default_stream().alloc_zeros::<u8>(1 << 20).map(drop)
    };
    full().unwrap();
    assert!(double.report().is_clean(), "{}", double.report());
}
