//! Work runs as late as it may: whoever does not wait sees what was there before.

use std::ptr::null_mut;

use cudarc::driver::sys::CUresult;
use recoup_cuda_double::Settings;

use crate::bench::OpenedDevice;
use crate::sys;

#[test]
fn fresh_memory_of_the_device_holds_a_pattern() {
    let device = OpenedDevice::new();
    let address = device.allocate(1 << 20);
    let bytes = device.read(address, 1 << 20, null_mut());
    assert!(bytes.iter().all(|byte| *byte == 0xA5));
    assert!(device.give_back().is_clean());
}

#[test]
fn a_pinned_source_is_read_when_the_copy_runs() {
    let device = OpenedDevice::new();
    let address = device.allocate(8);
    let stream = device.stream();
    let pinned = device.pinned(8);
    sys::bytes_at(pinned, 8).fill(1);
    sys::to_device(address, pinned, 8, stream).unwrap();
    // A program that does not wait for its copy sends the bytes it writes too early.
    sys::bytes_at(pinned, 8).fill(2);
    assert_eq!(device.read(address, 8, stream), [2; 8]);
    assert!(device.give_back().is_clean());
}

#[test]
fn a_pageable_source_is_read_when_the_call_is_made() {
    let device = OpenedDevice::new();
    let address = device.allocate(8);
    let stream = device.stream();
    let mut source = [1u8; 8];
    sys::to_device(address, source.as_ptr().cast(), 8, stream).unwrap();
    source.fill(2);
    assert_eq!(device.read(address, 8, stream), [1; 8]);
    assert_eq!(source, [2; 8]);
    assert!(device.give_back().is_clean());
}

#[test]
fn a_pinned_target_is_written_only_when_something_waits() {
    let device = OpenedDevice::new();
    let address = device.allocate(8);
    let stream = device.stream();
    let pinned = device.pinned(8);
    sys::fill(address, 7, 8, stream).unwrap();
    sys::to_host(pinned, address, 8, stream).unwrap();
    assert_eq!(sys::byte_at(pinned), 0xA5, "it has not been waited for");
    sys::finish_stream(stream).unwrap();
    assert_eq!(sys::byte_at(pinned), 7);
    assert!(device.give_back().is_clean());
}

#[test]
fn only_what_a_wait_depends_on_runs() {
    let device = OpenedDevice::new();
    let a = device.stream();
    let b = device.stream();
    let pinned = device.pinned(2);
    let other = device.pinned(2);
    let address = device.allocate(4);
    sys::fill(address, 1, 2, a).unwrap();
    sys::to_host(pinned, address, 2, a).unwrap();
    sys::fill(address + 2, 2, 2, b).unwrap();
    sys::to_host(other, address + 2, 2, b).unwrap();
    sys::finish_stream(a).unwrap();
    assert_eq!([sys::byte_at(pinned), sys::byte_at(other)], [1, 0xA5]);
    sys::synchronize().unwrap();
    assert_eq!(sys::byte_at(other), 2);
    assert!(device.give_back().is_clean());
}

#[test]
fn a_query_is_answered_by_a_coin_and_in_the_end_by_yes() {
    let mut answers = Vec::new();
    for seed in 0..20 {
        let device = OpenedDevice::with(&Settings { seed, ..Settings::default() });
        let address = device.allocate(8);
        let stream = device.stream();
        sys::fill(address, 1, 8, stream).unwrap();
        let event = device.recorded(stream);
        let mut asked = 0;
        while let Err(error) = sys::query_event(event) {
            assert_eq!(error, CUresult::CUDA_ERROR_NOT_READY);
            asked += 1;
        }
        answers.push(asked);
        assert!(device.give_back().is_clean());
    }
    assert!(answers.contains(&0) && answers.iter().any(|asked| *asked > 1), "{answers:?}");
}

#[test]
fn blocking_streams_and_the_legacy_stream_wait_for_each_other() {
    let device = OpenedDevice::new();
    let mut blocking = null_mut();
    sys::create_stream(&raw mut blocking, 0).unwrap();
    let address = device.allocate(8);
    sys::fill(address, 1, 8, blocking).unwrap();
    assert_eq!(device.read(address, 8, null_mut()), [1; 8], "the legacy stream comes after");
    sys::fill_now(address, 2, 8).unwrap();
    assert_eq!(device.read(address, 8, blocking), [2; 8], "and before");
    let free = device.stream();
    sys::fill_now(address, 3, 8).unwrap();
    assert_eq!(device.read(address, 8, free), [2; 8], "a stream that does not block sees what was there before");
    sys::synchronize().unwrap();
    [blocking, free].into_iter().for_each(|stream| sys::destroy_stream(stream).unwrap());
    sys::free(address).unwrap();
    let report = device.close();
    assert_eq!(report.races.len(), 1, "{report}");
    assert!(report.races[0].contains("fill of 8 bytes") && report.faults.is_empty() && report.leaks.is_empty());
}

#[test]
fn work_of_a_stream_that_is_gone_runs_when_the_context_is_waited_for() {
    let device = OpenedDevice::new();
    let address = device.allocate(8);
    let pinned = device.pinned(8);
    let stream = device.stream();
    sys::fill(address, 9, 8, stream).unwrap();
    sys::to_host(pinned, address, 8, stream).unwrap();
    sys::destroy_stream(stream).unwrap();
    assert_eq!(sys::destroy_stream(stream), Err(CUresult::CUDA_ERROR_INVALID_HANDLE));
    assert_eq!(sys::byte_at(pinned), 0xA5);
    sys::synchronize().unwrap();
    assert_eq!(sys::byte_at(pinned), 9);
    sys::unregister(pinned).unwrap();
    sys::free(address).unwrap();
    assert!(device.close().is_clean());
}

#[test]
fn an_event_recorded_again_changes_nothing_for_who_waits_already() {
    let device = OpenedDevice::new();
    let a = device.stream();
    let b = device.stream();
    let address = device.allocate(8);
    sys::fill(address, 1, 8, a).unwrap();
    let event = device.recorded(a);
    sys::wait_event(b, event, 0).unwrap();
    let pinned = device.pinned(8);
    sys::to_host(pinned, address + 4, 4, a).unwrap();
    sys::record(event, a).unwrap();
    assert_eq!(device.read(address, 8, b), [1; 8]);
    assert_eq!(sys::byte_at(pinned), 0xA5, "the later record was not waited for");
    sys::finish_event(event).unwrap();
    assert_eq!(sys::byte_at(pinned), 1);
    assert!(device.give_back().is_clean());
}

#[test]
fn events_count_operations_where_a_device_has_a_clock() {
    let device = OpenedDevice::new();
    let stream = device.stream();
    let address = device.allocate(8);
    let start = device.recorded(stream);
    sys::fill(address, 1, 8, stream).unwrap();
    let end = device.recorded(stream);
    let mut milliseconds = -1.0;
    assert_eq!(sys::elapsed(&raw mut milliseconds, start, end), Err(CUresult::CUDA_ERROR_NOT_READY));
    sys::finish_stream(stream).unwrap();
    sys::elapsed(&raw mut milliseconds, start, end).unwrap();
    assert!((milliseconds - 2e-3).abs() < 1e-9, "a fill and a record: {milliseconds}");
    assert!(device.give_back().is_clean());
}
