//! Operations that touch the same bytes in no order, and the waits that give them one.

use recoup_cuda_double::{DoubleReport, Settings};

use crate::bench::OpenedDevice;
use crate::sys;

/// Fills in one stream and copies in another, with or without the wait between them; the account
/// and the bytes.
fn fill_and_copy(seed: u64, waits: bool) -> (DoubleReport, Vec<u8>) {
    let device = OpenedDevice::with(&Settings { seed, ..Settings::default() });
    let a = device.stream();
    let b = device.stream();
    let source = device.allocate(64);
    let target = device.allocate(64);
    sys::fill(source, 5, 64, a).unwrap();
    let event = device.recorded(a);
    if waits {
        sys::wait_event(b, event, 0).unwrap();
    }
    sys::on_device(target, source, 64, b).unwrap();
    let bytes = device.read(target, 64, b);
    sys::synchronize().unwrap();
    (device.give_back(), bytes)
}

#[test]
fn a_wait_taken_out_is_found_with_every_seed() {
    for seed in 0..100 {
        let (report, bytes) = fill_and_copy(seed, true);
        assert!(report.is_clean() && bytes == [5; 64], "seed {seed}: {report}");
        let (report, bytes) = fill_and_copy(seed, false);
        assert_eq!(report.races.len(), 1, "seed {seed}: {report}");
        assert!(report.races[0].contains("the same 64 bytes"), "{report}");
        assert_eq!(bytes, [0xA5; 64], "seed {seed}: what was not waited for is not there");
    }
}

#[test]
fn a_race_is_told_in_whatever_order_the_two_have_run() {
    let device = OpenedDevice::new();
    let a = device.stream();
    let b = device.stream();
    let address = device.allocate(8);
    sys::fill(address, 1, 8, a).unwrap();
    sys::finish_stream(a).unwrap();
    // The host has seen the end of the first: this is ordered.
    sys::fill(address, 2, 8, b).unwrap();
    // This one is not ordered after the second, though it runs first.
    sys::fill(address + 6, 3, 2, a).unwrap();
    sys::finish_stream(a).unwrap();
    sys::finish_stream(b).unwrap();
    let report = device.give_back();
    assert_eq!(report.races.len(), 1, "{report}");
    assert!(report.races[0].contains("the same 2 bytes"), "{report}");
}

#[test]
fn readers_do_not_race() {
    let device = OpenedDevice::new();
    let a = device.stream();
    let b = device.stream();
    let address = device.allocate(24);
    sys::on_device(address + 8, address, 8, a).unwrap();
    sys::on_device(address + 16, address, 8, b).unwrap();
    sys::synchronize().unwrap();
    assert!(device.give_back().is_clean());
}

#[test]
fn memory_that_the_host_frees_too_early_is_found() {
    let device = OpenedDevice::new();
    let stream = device.stream();
    let address = device.allocate(64);
    sys::fill(address, 1, 64, stream).unwrap();
    sys::free(address).unwrap();
    let result = sys::finish_stream(stream);
    assert_eq!(result, Err(cudarc::driver::sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS));
    assert_eq!(sys::finish_stream(stream), result, "the context is lost");
    assert_eq!(sys::synchronize(), result);
    let report = device.close();
    assert!(report.faults[0].contains("fill of 64 bytes"), "{report}");
}
