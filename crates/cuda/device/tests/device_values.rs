//! Vectors of a device lent to a pipeline, on the double of the driver: the bits of the owner at
//! the moment they were frozen, whatever the order in which streams run; and every call failing.

use recoup_core::{DeviceValues, DeviceValuesError, DeviceValuesErrorKind, Values, ValuesMut};
use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceError, DeviceVec, DeviceVector, Stream};

const LEN: usize = 1000;

fn values(first: u32) -> Vec<f64> {
    (0..LEN as u32).map(|i| f64::from(first + i).sin()).collect()
}

/// The values that come out of the scenario.
#[derive(Debug, PartialEq)]
struct Found {
    /// The first frozen copy, fetched after the owner continued.
    first: Vec<u64>,
    /// A part of the second copy, in the memory of the first.
    second: Vec<u64>,
    /// The owner after a restore.
    restored: Vec<u64>,
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn driver(error: DeviceError) -> DeviceValuesError {
    let kind = if error.is_lost() { DeviceValuesErrorKind::Lost } else { DeviceValuesErrorKind::Failed };
    DeviceValuesError { message: error.to_string(), kind }
}

/// An owner is frozen, continues, is frozen again in the same memory, and is restored.
fn scenario() -> Result<Found, DeviceValuesError> {
    let device = Device::open(0).map_err(driver)?;
    let stream = Stream::new(&device).map_err(driver)?;
    let [one, two] = [1, 5000].map(|first| DeviceVec::copy_of(&stream, &values(first)));
    let two = two.map_err(driver)?;
    let mut owner = DeviceVector::new(one.map_err(driver)?, stream.clone());
    let frozen = owner.snapshot(LEN, None)?;
    stream.copy(two.view(), &mut owner.write().map_err(driver)?).map_err(driver)?;
    let mut first = vec![0.0; LEN];
    frozen.fetch(0, ValuesMut::F64(&mut first))?;
    let again = owner.snapshot(LEN, Some(frozen))?;
    stream.fill_zero(&mut owner.write().map_err(driver)?).map_err(driver)?;
    let mut second = vec![0.0; 300];
    again.fetch(700, ValuesMut::F64(&mut second))?;
    let mut room = owner.alloc(LEN)?;
    room.put(0, Values::F64(&values(9)[..600]))?;
    room.put(600, Values::F64(&values(9)[600..]))?;
    owner.overwrite(room.as_ref())?;
    // The room is written again while the owner's stream may not have read it yet.
    room.put(0, Values::F64(&values(77)))?;
    let mut restored = vec![0.0; LEN];
    owner.download(&mut restored).map_err(driver)?;
    Ok(Found { first: bits(&first), second: bits(&second), restored: bits(&restored) })
}

fn expected() -> Found {
    Found { first: bits(&values(1)), second: bits(&values(5000)[700..]), restored: bits(&values(9)) }
}

fn run(double: &Double, settings: &Settings) -> (Result<Found, DeviceValuesError>, DoubleReport) {
    double.reset(settings);
    let found = scenario();
    (found, double.report())
}

#[test]
fn frozen_copies_hold_the_owners_bits_in_every_order_of_streams() {
    let double = Double::load();
    for seed in 0..200 {
        let (found, report) = run(&double, &Settings { seed, ..Settings::default() });
        assert_eq!(found, Ok(expected()), "seed {seed}");
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

#[test]
fn every_call_that_fails_is_an_error_and_the_next_run_is_whole() {
    let double = Double::load();
    let (whole, report) = run(&double, &Settings::default());
    let n_calls = report.total_calls();
    assert!(whole.is_ok() && n_calls > 50, "{n_calls} calls");
    let mut errors = 0;
    for call in 1..=n_calls {
        for error in [CudaStatus::OutOfMemory, CudaStatus::Unknown] {
            let (found, _) = run(&double, &Settings { fail_call: Some(call), error, ..Settings::default() });
            match found {
                Ok(found) => assert_eq!(found, expected(), "call {call}"),
                Err(_) => errors += 1,
            }
        }
    }
    assert!(errors > n_calls, "{errors} errors of {n_calls} calls");
    let (again, report) = run(&double, &Settings::default());
    assert_eq!(again, Ok(expected()));
    assert!(report.is_clean(), "{report}");
}

#[test]
fn a_device_lost_at_any_call_gives_errors_and_no_wrong_bits() {
    let double = Double::load();
    let n_calls = run(&double, &Settings::default()).1.total_calls();
    let mut lost = 0;
    for call in 1..=n_calls {
        match run(&double, &Settings { lost_at: Some(call), ..Settings::default() }).0 {
            Ok(found) => assert_eq!(found, expected(), "call {call}"),
            // Without a driver there is no device to lose.
            Err(error) if error.message.starts_with("no CUDA here") => (),
            Err(error) => {
                assert_eq!(error.kind, DeviceValuesErrorKind::Lost, "call {call}: {error}");
                lost += 1;
            }
        }
    }
    // The other calls give back what the scenario took.
    assert!(lost > 100, "{lost} of {n_calls}");
}

#[test]
fn runs_are_fetched_to_their_places_and_nothing_between_them_changes() {
    let double = Double::load();
    for seed in 0..4 {
        double.reset(&Settings { seed, ..Settings::default() });
        {
            let device = Device::open(0).unwrap();
            let stream = Stream::new(&device).unwrap();
            // More than the pinned memory has room for at once.
            let all: Vec<f64> = (0..5 << 18).map(f64::from).collect();
            let owner = DeviceVector::new(DeviceVec::copy_of(&stream, &all).unwrap(), stream);
            let held = owner.snapshot(all.len(), None).unwrap();
            let mut found = vec![-1.0; all.len() - 7];
            let runs = [0..3, 100..101, 5000..1_200_000, 1_200_001..1_300_000, found.len() - 2..found.len()];
            held.fetch_runs(7, &runs, ValuesMut::F64(&mut found)).unwrap();
            let is_fetched = |at| runs.iter().any(|run| run.contains(&at));
            let is_right = |at: usize| found[at] == if is_fetched(at) { all[at + 7] } else { -1.0 };
            assert!((0..found.len()).all(is_right), "seed {seed}");
            held.fetch_runs(0, &[], ValuesMut::F64(&mut found)).unwrap();
        }
        let report = double.report();
        assert!(report.is_clean(), "seed {seed}: {report}");
    }
}

#[test]
fn values_of_another_place_or_shape_are_refused() {
    let _double = Double::load();
    let device = Device::open(0).unwrap();
    let stream = Stream::new(&device).unwrap();
    let vector = |len| DeviceVector::new(DeviceVec::<f64>::zeros(&stream, len).unwrap(), stream.clone());
    let short = vector(3);
    let mut long = vector(4);
    let held = short.snapshot(3, None).unwrap();
    assert!(long.overwrite(held.as_ref()).is_err());
    assert!(held.fetch(0, ValuesMut::F32(&mut [0.0; 3])).is_err());
    assert_eq!(long.snapshot(4, Some(held)).unwrap().len(), 4, "memory that does not fit is not used");
}
