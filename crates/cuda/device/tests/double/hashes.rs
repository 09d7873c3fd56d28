//! Hashes of zones on a device: those of the host, at every length around the borders of words,
//! stripes, blocks and zones.

use recoup_core::{DeviceValues, DeviceValuesErrorKind};
use recoup_cuda_double::{CudaStatus, Settings};
use recoup_device::{Device, DeviceElement, DeviceVec, DeviceVector, Stream, device_values_error, hash_zones};

use super::support::{double, on_device};

/// Bytes that differ, from a first one.
fn bytes(first: usize, n: usize) -> Vec<u8> {
    (first..first + n).map(|i| (i * i / 7 + i) as u8).collect()
}

/// Hashes `len` values from `start` on, which the host hashes, too.
fn compare<T: DeviceElement>(device: &Device, values: &[T], start: usize, len: usize, zone_bytes: usize) {
    let stream = Stream::new(device).unwrap();
    let vector = DeviceVector::new(DeviceVec::copy_of(&stream, values).unwrap(), stream);
    let held = vector.snapshot(values.len(), None).unwrap();
    let expected = hash_zones(bytemuck::cast_slice(&values[start..start + len]), zone_bytes);
    let found = held.zone_hashes(start, len, zone_bytes).unwrap();
    assert_eq!(found, Some(expected), "{len} of {} values from {start}, zones of {zone_bytes}", values.len());
}

#[test]
fn hashes_are_those_of_the_host_at_every_length() {
    on_device(&Settings::default(), |device| {
        let lengths = [0, 1, 8, 239, 240, 241, 255, 256, 257, 1023, 1024, 1025, 1087, 1088, 1089, 2048, 4095, 4096];
        for len in lengths {
            compare(device, &bytes(len, len), 0, len, 64 << 10);
        }
        // Several zones, the last of them short, not quite, whole, and one byte longer.
        for len in [3 * 512, 3 * 512 + 1, 3 * 512 + 240, 3 * 512 + 241, 20 * 512 - 1] {
            compare(device, &bytes(9, len), 0, len, 512);
        }
    });
}

#[test]
fn a_zone_is_64_kib_of_any_frame_of_a_vector() {
    on_device(&Settings::default(), |device| {
        let values: Vec<f64> = (0..20_001).map(|i| f64::from(i).sqrt()).collect();
        compare(device, &values, 0, 20_001, 64 << 10);
        compare(device, &values, 10_001, 10_000, 64 << 10);
        let singles: Vec<f32> = (0..3001).map(|i| i as f32).collect();
        compare(device, &singles, 2, 2999, 4096);
    });
}

#[test]
fn values_that_begin_within_a_word_are_to_be_fetched() {
    on_device(&Settings::default(), |device| {
        let stream = Stream::new(device).unwrap();
        let vector = DeviceVector::new(DeviceVec::copy_of(&stream, &bytes(0, 1000)).unwrap(), stream);
        let held = vector.snapshot(1000, None).unwrap();
        assert_eq!(held.zone_hashes(4, 900, 64 << 10).unwrap(), None);
        assert_eq!(held.zone_hashes(0, 900, 1001).unwrap(), None);
    });
}

#[test]
fn a_hash_of_a_frozen_copy_is_of_what_was_frozen_and_a_call_that_fails_gives_no_wrong_one() {
    let Some(double) = double() else { return };
    let scenario = || {
        let device = Device::open(0).map_err(device_values_error)?;
        let stream = Stream::new(&device).map_err(device_values_error)?;
        let values = DeviceVec::copy_of(&stream, &bytes(3, 5000)).map_err(device_values_error)?;
        let mut vector = DeviceVector::new(values, stream.clone());
        let held = vector.snapshot(5000, None)?;
        stream.fill_zero(&mut vector.write().map_err(device_values_error)?).map_err(device_values_error)?;
        held.zone_hashes(0, 5000, 1024)
    };
    let expected = hash_zones(&bytes(3, 5000), 1024);
    for seed in 0..super::support::SEEDS {
        double.reset(&Settings { seed, ..Settings::default() });
        assert_eq!(scenario(), Ok(Some(expected.clone())), "seed {seed}");
        assert!(double.report().is_clean(), "seed {seed}: {}", double.report());
    }
    let calls = double.report().total_calls();
    let mut told = 0;
    for call in 1..=calls {
        double.reset(&Settings { fail_call: Some(call), error: CudaStatus::Unknown, ..Settings::default() });
        match scenario() {
            Ok(found) => assert_eq!(found.as_ref(), Some(&expected), "call {call}"),
            Err(error) => {
                assert_eq!(error.kind, DeviceValuesErrorKind::Failed, "call {call}: {error}");
                told += 1;
            }
        }
        assert!(double.report().is_clean(), "call {call}: {}", double.report());
    }
    assert!(3 * told > calls, "{told} of {calls}");
}
