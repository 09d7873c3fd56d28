//! Contexts: whose is current, what they leave behind, and what ends with them.

use std::ptr::null_mut;

use cudarc::driver::sys::{CUcontext, CUresult};
use recoup_cuda_double::Settings;

use crate::bench::OpenedDevice;
use crate::sys;

#[test]
fn a_thread_without_a_context_is_refused() {
    let device = OpenedDevice::new();
    let refused = || {
        let mut address = 0;
        sys::allocate(&raw mut address, 8)
    };
    let result = std::thread::scope(|scope| scope.spawn(refused).join().unwrap());
    assert_eq!(result, Err(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    assert!(device.close().is_clean());
}

#[test]
fn streams_and_events_of_two_contexts_do_not_mix_in_a_record() {
    let device = OpenedDevice::with(&Settings { devices: 2, ..Settings::default() });
    let mut other: CUcontext = null_mut();
    sys::retain(&raw mut other, 1).unwrap();
    let stream = device.stream();
    let event = device.event();
    sys::set_current(other).unwrap();
    let foreign = device.stream();
    assert_eq!(sys::record(event, foreign), Err(CUresult::CUDA_ERROR_INVALID_HANDLE));
    sys::record(event, stream).unwrap();
    sys::wait_event(foreign, event, 0).unwrap();
    sys::finish_stream(foreign).unwrap();
    sys::destroy_stream(foreign).unwrap();
    sys::release(1).unwrap();
    sys::set_current(device.context).unwrap();
    sys::destroy_stream(stream).unwrap();
    sys::destroy_event(event).unwrap();
    assert_eq!(device.close().faults, ["cuEventRecord: stream and event are of two contexts"]);
}

#[test]
fn whatever_is_not_given_back_before_its_context_is_a_leak() {
    let device = OpenedDevice::new();
    let _stream = device.stream();
    let _event = device.event();
    let _address = device.allocate(100);
    let _pinned = device.pinned(200);
    let report = device.double.report();
    assert_eq!(report.live.len(), 5, "{report}");
    let report = device.close();
    let expected = ["100 bytes at", "200 registered bytes", "1 streams", "1 events"];
    assert_eq!(report.leaks.len(), expected.len(), "{report}");
    assert!(expected.iter().all(|what| report.leaks.iter().any(|leak| leak.starts_with(what))), "{report}");
    assert!(report.live.is_empty());
}

#[test]
fn nothing_outlives_its_context() {
    let device = OpenedDevice::new();
    let stream = device.stream();
    let address = device.allocate(8);
    let mut context = device.context;
    sys::retain(&raw mut context, 0).unwrap();
    sys::release(0).unwrap();
    sys::fill(address, 1, 8, stream).unwrap();
    sys::release(0).unwrap();
    assert_eq!(sys::fill(address, 1, 8, stream), Err(CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED));
    assert_eq!(sys::set_current(context), Err(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    assert_eq!(sys::release(0), Err(CUresult::CUDA_ERROR_INVALID_CONTEXT));
    device.close();
}
