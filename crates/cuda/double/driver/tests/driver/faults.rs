//! Calls that fail, devices that are lost, drivers that are old: an error each time, never a panic.

use cudarc::driver::sys::{CUlimit, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceError, DeviceVec, HostBuffer, Stream, driver_version, probe};

use crate::bench::OpenedDevice;
use crate::sys;

/// Copies through two streams and registered memory: the bytes that come back.
fn scenario() -> Result<Vec<u32>, DeviceError> {
    let device = Device::open(0)?;
    let [a, b] = [Stream::new(&device)?, Stream::new(&device)?];
    let staged = HostBuffer::registered(&device, 400)?;
    for (index, word) in staged.write(0..400)?.chunks_mut(4).enumerate() {
        word.copy_from_slice(&(index as u32).to_ne_bytes());
    }
    let mut source = DeviceVec::<u32>::zeros(&a, 100)?;
    let loaded = staged.load(&a, 0, &mut source.view_mut())?;
    let mut target = DeviceVec::<u32>::zeros(&b, 100)?;
    b.wait_for(&loaded)?;
    b.copy(source.view(), &mut target.view_mut())?;
    let copied = b.ticket()?;
    a.wait_for(&copied)?;
    let mut other = vec![0; 100];
    let mut found = vec![0; 100];
    a.download(source.view(), &mut other)?;
    copied.wait()?;
    b.download(target.view(), &mut found)?;
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
    // What fails while things are given back has no one to tell, and is done again.
    let gives_back = |name: &str| {
        ["Destroy", "Free", "Unregister", "Release", "SetCurrent", "CtxGetCurrent", "CtxSynchronize"]
            .iter()
            .any(|part| name.contains(part))
    };
    let most: u64 = report.calls.iter().filter(|(name, _)| gives_back(name)).map(|(_, count)| count).sum();
    for error in [CudaStatus::OutOfMemory, CudaStatus::Unknown] {
        let mut silent = 0;
        for call in 1..=n {
            let settings = Settings { fail_call: Some(call), error, ..Settings::default() };
            let (result, report) = run(&double, &settings);
            assert!(report.is_clean(), "call {call}: {report}");
            let Ok(found) = result else { continue };
            assert_eq!(Some(&found), whole.as_ref().ok(), "call {call}");
            silent += 1;
        }
        assert!(silent <= most, "{silent} of {n} calls failed in silence, {most} give back");
    }
    assert_eq!(run(&double, &Settings::default()).0, whole);
}

#[test]
fn a_device_lost_at_any_call_is_an_error() {
    let double = Double::load();
    let n = run(&double, &Settings::default()).1.total_calls();
    let mut told = 0;
    for call in 1..=n {
        let (result, report) = run(&double, &Settings { lost_at: Some(call), ..Settings::default() });
        let is_told = matches!(&result, Err(error) if error.to_string().contains("DEVICE_UNAVAILABLE"));
        // The last calls only give things back, and none is told of them.
        assert!(is_told || result.as_ref().is_ok_and(|found| found.len() == 100), "call {call} of {n}: {result:?}");
        told += u64::from(is_told);
        assert!(report.faults.is_empty(), "call {call}: {report}");
    }
    assert!(3 * told > n, "{told} of {n}");
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

/// The loader says which one is missing.
#[test]
#[should_panic(expected = "cuCtxGetLimit")]
fn a_call_that_the_double_does_not_have_is_missing_by_its_name() {
    let _device = OpenedDevice::new();
    let mut bytes = 0;
    sys::limit(&raw mut bytes, CUlimit::CU_LIMIT_STACK_SIZE).unwrap();
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
        second.bind_to_thread()?;
        drop(two);
        first.bind_to_thread()?;
        drop(one);
        first.default_stream().alloc_zeros::<u8>(1 << 20).map(drop)
    };
    full().unwrap();
    assert!(double.report().is_clean(), "{}", double.report());
}
