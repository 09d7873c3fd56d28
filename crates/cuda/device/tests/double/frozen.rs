//! Values frozen by a copy, and without one: what is fetched later is what was there, however the
//! owner went on, in every order of streams; and no more of the device's memory than the slots.

use std::collections::BTreeSet;
use std::sync::Arc;

use recoup_core::{DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind, Values, ValuesMut, mix};
use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{
    Device, DeviceFrozen, DeviceVec, DeviceVector, FreezeSettings, FreezeWay, Stream, VectorSnapshot, ZoneRing,
    device_values_error,
};

use super::support::{double, in_every_order, numbers, on_device};

const LEN: usize = 1000;
/// Values that repeat the last one.
const PADDING: usize = 24;

/// Small zones and slots: a vector has 125 zones, and passes the slots 32 times.
const SMALL: FreezeSettings = FreezeSettings { way: FreezeWay::Zones, zone_bytes: 64, slot_bytes: 256, slots: 2 };

/// An owner of a vector that is frozen by copies, or whose zones pass small slots.
fn owner(device: &Device, first: usize, is_zoned: bool) -> Result<DeviceVector<f64>, DeviceValuesError> {
    let stream = Stream::new(device).map_err(device_values_error)?;
    let values = DeviceVec::copy_of(&stream, &numbers(first, LEN)).map_err(device_values_error)?;
    if !is_zoned {
        return Ok(DeviceVector::new(values, stream));
    }
    Ok(DeviceVector::zoned(values, stream, &Arc::new(ZoneRing::new(device, SMALL))))
}

/// Overwrites the vector by work of its stream, for which the host does not wait.
fn overwrite(owner: &mut DeviceVector<f64>, source: &DeviceVec<f64>) -> Result<(), DeviceValuesError> {
    let stream = owner.stream().clone();
    let written = owner.write().and_then(|mut target| stream.copy(source.view(), &mut target));
    written.map_err(device_values_error)
}

fn fetch(held: &dyn DeviceSnapshot, start: usize, len: usize) -> Result<Vec<f64>, DeviceValuesError> {
    let mut found = vec![0.0; len];
    held.fetch(start, ValuesMut::F64(&mut found))?;
    Ok(found)
}

/// The numbers of a vector and their padding.
fn padded(first: usize) -> Vec<f64> {
    let mut all = numbers(first, LEN);
    all.resize(LEN + PADDING, all[LEN - 1]);
    all
}

/// The versions of the scenario, each whole or an error.
#[derive(Debug, PartialEq)]
struct Versions(Vec<Result<Vec<f64>, DeviceValuesError>>);

impl Versions {
    fn expected() -> [Vec<f64>; 6] {
        [numbers(107, 200), padded(7), padded(50), padded(7), padded(90), numbers(9, LEN)]
    }

    fn whole() -> Self {
        Self(Self::expected().map(Ok).into())
    }

    /// Compares the versions that are no error, and counts the others.
    fn lost(&self, label: &str) -> usize {
        for (found, expected) in self.0.iter().zip(Self::expected()) {
            assert!(found.as_ref().map_or(true, |found| *found == expected), "{label}");
        }
        self.0.iter().filter(|found| found.is_err()).count()
    }
}

/// Versions of a vector that is overwritten before they are fetched, some of them in part, then
/// restored, and gone before the last of them is fetched.
fn scenario(is_zoned: bool) -> Result<Versions, DeviceValuesError> {
    let device = Device::open(0).map_err(device_values_error)?;
    let mut owner = owner(&device, 7, is_zoned)?;
    let others =
        [50, 90].map(|first| DeviceVec::copy_of(owner.stream(), &numbers(first, LEN)).map_err(device_values_error));
    let [second, third] = others;
    let [second, third] = [second?, third?];
    let one = owner.snapshot(LEN + PADDING, None);
    let held = |held: &Result<Box<dyn DeviceSnapshot>, DeviceValuesError>, start, len| match held {
        Ok(held) => fetch(held.as_ref(), start, len),
        Err(error) => Err(error.clone()),
    };
    let part = held(&one, 100, 200);
    let again = owner.snapshot(LEN + PADDING, None);
    overwrite(&mut owner, &second)?;
    let two = owner.snapshot(LEN + PADDING, None);
    overwrite(&mut owner, &third)?;
    let first = held(&again, 0, LEN + PADDING);
    let three = owner.snapshot(LEN + PADDING, again.ok());
    let fetched = [held(&two, 0, LEN + PADDING), held(&one, 0, LEN + PADDING)];
    let restored = restore(&mut owner)?;
    drop(owner);
    let [second, whole] = fetched;
    Ok(Versions(vec![part, first, second, whole, held(&three, 0, LEN + PADDING), Ok(restored)]))
}

/// Restores the vector from room that is written again before the vector's stream has read it.
fn restore(owner: &mut DeviceVector<f64>) -> Result<Vec<f64>, DeviceValuesError> {
    let mut room = owner.alloc(LEN)?;
    let values = numbers(9, LEN);
    room.put(0, Values::F64(&values[..600]))?;
    room.put(600, Values::F64(&values[600..]))?;
    owner.overwrite(room.as_ref())?;
    room.put(0, Values::F64(&numbers(77, LEN)))?;
    let mut restored = vec![0.0; LEN];
    owner.download(&mut restored).map_err(device_values_error)?;
    Ok(restored)
}

fn run(double: &Double, is_zoned: bool, settings: &Settings) -> (Result<Versions, DeviceValuesError>, DoubleReport) {
    double.reset(settings);
    let found = scenario(is_zoned);
    (found, double.report())
}

#[test]
fn versions_are_what_was_there_in_every_order_of_streams() {
    for is_zoned in [false, true] {
        let Some(double) = double() else { return assert_eq!(scenario(is_zoned), Ok(Versions::whole())) };
        let mut orders = BTreeSet::new();
        for seed in 0..super::support::SEEDS {
            let settings = Settings { seed, ..Settings::default() };
            let (found, report) = run(&double, is_zoned, &settings);
            assert_eq!(found, Ok(Versions::whole()), "seed {seed}");
            assert!(report.is_clean(), "seed {seed}: {report}");
            orders.insert(report.trace.digest);
            assert_eq!(run(&double, is_zoned, &settings), (found, report), "seed {seed} repeats its order");
        }
        assert!(!is_zoned || orders.len() > 1, "seeds draw the order");
    }
}

#[test]
fn a_call_that_fails_costs_versions_or_the_owner_and_gives_no_wrong_value() {
    let Some(double) = double() else { return };
    for (is_zoned, calls_least, lost_least) in [(false, 100, 20), (true, 400, 100)] {
        let calls = run(&double, is_zoned, &Settings::default()).1.total_calls();
        let mut versions_lost = 0;
        for (call, error) in (1..=calls).zip([CudaStatus::OutOfMemory, CudaStatus::Unknown].into_iter().cycle()) {
            let settings = Settings { fail_call: Some(call), error, ..Settings::default() };
            let (found, report) = run(&double, is_zoned, &settings);
            assert!(report.is_clean(), "call {call}: {report}");
            // An owner that continued has lost versions at most.
            versions_lost += usize::from(found.is_ok_and(|found| found.lost(&format!("call {call}")) > 0));
        }
        let is_many = calls > calls_least && versions_lost > lost_least;
        assert!(is_many, "{versions_lost} of {calls} calls cost versions alone");
        assert_eq!(run(&double, is_zoned, &Settings::default()).0, Ok(Versions::whole()));
    }
}

#[test]
fn a_device_lost_at_any_call_is_told_so_and_gives_no_wrong_value() {
    let Some(double) = double() else { return };
    // The other calls give back what the scenario took.
    for (is_zoned, share) in [(false, 3), (true, 2)] {
        let calls = run(&double, is_zoned, &Settings::default()).1.total_calls();
        let mut lost = 0;
        for call in 1..=calls {
            let (found, report) = run(&double, is_zoned, &Settings { lost_at: Some(call), ..Settings::default() });
            assert!(report.faults.is_empty() && report.races.is_empty(), "call {call}: {report}");
            lost += match found {
                Ok(found) => usize::from(found.lost(&format!("call {call}")) > 0),
                // Without a driver there is no device to lose.
                Err(error) if error.message.starts_with("no CUDA here") => 1,
                Err(error) => {
                    assert_eq!(error.kind, DeviceValuesErrorKind::Lost, "call {call}: {error}");
                    1
                }
            };
        }
        assert!(share * lost > calls as usize, "{lost} of {calls}");
    }
}

/// One frozen version, and the values that it is to give.
struct Expected {
    held: Box<dyn DeviceSnapshot>,
    first: usize,
}

/// Freezes, overwrites, fetches and drops at random; all that is fetched is compared.
fn random_steps(device: &Device, seed: u64) {
    let mut state = seed;
    let mut random = |below: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(state) % below as u64) as usize
    };
    let mut first = random(500);
    let mut owner = owner(device, first, true).unwrap();
    let mut versions: Vec<Expected> = Vec::new();
    for step in 0..40 {
        match random(4) {
            0 if versions.len() < 3 => versions.push(Expected { held: owner.snapshot(LEN, None).unwrap(), first }),
            1 => {
                first = random(500);
                let source = DeviceVec::copy_of(owner.stream(), &numbers(first, LEN)).unwrap();
                overwrite(&mut owner, &source).unwrap();
            }
            2 if !versions.is_empty() => {
                let Expected { held, first } = &versions[random(versions.len())];
                let start = random(LEN);
                let len = random(LEN - start + 1);
                let found = fetch(held.as_ref(), start, len).unwrap();
                assert_eq!(found, numbers(first + start, len), "seed {seed}, step {step}");
            }
            _ if !versions.is_empty() => drop(versions.swap_remove(random(versions.len()))),
            _ => (),
        }
    }
    drop(owner);
    for Expected { held, first } in versions {
        assert_eq!(fetch(held.as_ref(), 0, LEN).unwrap(), numbers(first, LEN), "seed {seed}");
    }
}

#[test]
fn versions_taken_and_fetched_at_random_are_what_was_there() {
    for seed in 0..super::support::SEEDS {
        if on_device(&Settings { seed, ..Settings::default() }, |device| random_steps(device, seed)).is_none() {
            return;
        }
    }
}

/// A worker fetches a version while its owner continues in another thread.
#[test]
fn a_version_may_be_fetched_while_its_owner_writes() {
    in_every_order(|device| {
        let mut owner = owner(device, 3, true).unwrap();
        let source = DeviceVec::copy_of(owner.stream(), &numbers(60, LEN)).unwrap();
        let held = owner.snapshot(LEN, None).unwrap();
        let worker = std::thread::spawn(move || {
            let parts: Vec<f64> = (0..10).flat_map(|part| fetch(held.as_ref(), part * 100, 100).unwrap()).collect();
            assert_eq!(parts, numbers(3, LEN));
        });
        overwrite(&mut owner, &source).unwrap();
        worker.join().unwrap();
    });
}

#[test]
fn a_version_takes_the_slots_of_the_devices_memory_and_no_more() {
    on_device(&Settings::default(), |device| {
        let mut owner = owner(device, 0, true).unwrap();
        let source = DeviceVec::copy_of(owner.stream(), &numbers(9, LEN)).unwrap();
        let before = device.memory().unwrap().free;
        let mut versions = Vec::new();
        for _ in 0..3 {
            versions.push(owner.snapshot(LEN, None).unwrap());
            overwrite(&mut owner, &source).unwrap();
            versions.iter().for_each(|held| drop(fetch(held.as_ref(), 0, LEN).unwrap()));
            assert_eq!(before - device.memory().unwrap().free, SMALL.ring_bytes());
        }
    });
}

/// A vector of 1 MiB on a device with room for less than another.
#[test]
fn a_vector_is_frozen_without_a_copy_where_there_is_no_room_for_one() {
    let memory_bytes = 2 << 20;
    on_device(&Settings { memory_bytes, ..Settings::default() }, |device| {
        let n = (1 << 20) / size_of::<f64>();
        let settings = FreezeSettings { way: FreezeWay::Copy, slot_bytes: 64 << 10, ..FreezeSettings::default() };
        let ring = Arc::new(ZoneRing::new(device, settings));
        let stream = Stream::new(device).unwrap();
        let values = DeviceVec::copy_of(&stream, &numbers(0, n)).unwrap();
        let mut owner = DeviceVector::zoned(values, stream.clone(), &ring);
        let small = DeviceVector::zoned(DeviceVec::copy_of(&stream, &[1.0; 8]).unwrap(), stream.clone(), &ring);
        assert!(small.snapshot(8, None).unwrap().as_any().is::<VectorSnapshot<f64>>());
        let held = owner.snapshot(n, None).unwrap();
        let is_frozen = held.as_any().is::<DeviceFrozen<f64>>();
        assert!(is_frozen || device.memory().unwrap().total > memory_bytes as usize);
        stream.fill_zero(&mut owner.write().unwrap()).unwrap();
        assert!(fetch(held.as_ref(), 0, n).unwrap() == numbers(0, n));
        // Another version without a copy has the memory of the host that this one had.
        let again = owner.snapshot(n, Some(held)).unwrap();
        assert!(fetch(again.as_ref(), n - 5, 5).unwrap() == [0.0; 5]);
    });
}

#[test]
fn without_room_for_slots_a_version_is_refused_and_the_vector_stays() {
    let Some(double) = double() else { return };
    double.reset(&Settings { memory_bytes: 8 * LEN as u64 + 300, ..Settings::default() });
    {
        let device = Device::open(0).unwrap();
        let owner = owner(&device, 5, true).unwrap();
        assert_eq!(owner.snapshot(LEN, None).unwrap_err().kind, DeviceValuesErrorKind::NoRoom);
        let mut found = vec![0.0; LEN];
        owner.download(&mut found).unwrap();
        assert_eq!(found, numbers(5, LEN));
    }
    let report = double.report();
    assert!(report.is_clean(), "{report}");
}

#[test]
fn runs_are_fetched_to_their_places_and_nothing_between_them_changes() {
    for seed in 0..4 {
        on_device(&Settings { seed, ..Settings::default() }, |device| {
            let stream = Stream::new(device).unwrap();
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
        });
    }
}

#[test]
fn values_of_another_place_or_shape_are_refused() {
    on_device(&Settings::default(), |device| {
        let stream = Stream::new(device).unwrap();
        let vector = |len| DeviceVector::new(DeviceVec::<f64>::zeros(&stream, len).unwrap(), stream.clone());
        let short = vector(3);
        let mut long = vector(4);
        let held = short.snapshot(3, None).unwrap();
        assert!(long.overwrite(held.as_ref()).is_err());
        assert!(held.fetch(0, ValuesMut::F32(&mut [0.0; 3])).is_err());
        assert_eq!(long.snapshot(4, Some(held)).unwrap().len(), 4, "memory that does not fit is not used");
    });
}
