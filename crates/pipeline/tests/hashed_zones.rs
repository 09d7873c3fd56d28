//! Increments of values that are hashed where they are stored: the versions of values that are
//! near, and no byte fetched of zones that did not change.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::{
    Borrowed, CodecId, DeviceSnapshot, DeviceValues, DeviceValuesError, Distribution, ElementType, IncrementMode, Plan,
    Registered, Resume, Role, Scheme, Values, ValuesMut, Variable, VariableMut,
};
use recoup_io::{Access, Hdf5Store, SystemClock};
use recoup_pipeline::{Codecs, Outcome, Session, SessionConfig};
use recoup_testkit::{SavesAt, TestDevice, TestDeviceVec, progress};
use xxhash_rust::xxh3::xxh3_128;

use crate::device_values::{manifests, outcomes};

/// All is saved exactly, as it is.
const PLAN: Plan = Plan::new(Scheme::Exact, CodecId::Raw, Resume::Exact);

fn session(dir: &Path) -> Session {
    let store = Arc::new(Hdf5Store::open(dir, "run", Access::Write).unwrap());
    let codecs = Codecs { table: recoup_compress::codec, threads: 1 };
    let config = SessionConfig::new("run", store, codecs, SavesAt::no_iteration(PLAN), Arc::new(SystemClock::new()));
    // The choice of `Auto` depends on the times of the machine.
    let increments = IncrementMode::Hash;
    let config = SessionConfig { keep: 9, key_every: 3, increments, checks_corruption: true, ..config };
    Session::open(config, &Solo).unwrap()
}

/// A vector elsewhere whose frozen copies are hashed where they are stored.
struct HashedVec(TestDeviceVec);

/// A frozen copy of it.
struct HashedCopy(Box<dyn DeviceSnapshot>);

impl DeviceValues for HashedVec {
    fn element(&self) -> ElementType {
        self.0.element()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn snapshot(
        &self,
        padded_len: usize,
        _: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        Ok(Box::new(HashedCopy(self.0.snapshot(padded_len, None)?)))
    }

    fn alloc(&self, padded_len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.0.alloc(padded_len)
    }

    fn overwrite(&mut self, held: &dyn DeviceSnapshot) -> Result<(), DeviceValuesError> {
        self.0.overwrite(held)
    }
}

impl DeviceSnapshot for HashedCopy {
    fn element(&self) -> ElementType {
        self.0.element()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), DeviceValuesError> {
        self.0.fetch(start, target)
    }

    fn zone_hashes(&self, start: usize, len: usize, zone_bytes: usize) -> Result<Option<Vec<u128>>, DeviceValuesError> {
        let mut values = vec![0_i64; len];
        self.0.fetch(start, ValuesMut::I64(&mut values))?;
        let bytes = Values::I64(&values).as_raw();
        Ok(bytes.map(|bytes| bytes.chunks(zone_bytes).map(xxh3_128).collect()))
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), DeviceValuesError> {
        self.0.put(start, source)
    }

    fn is_alike(&self, _: &dyn DeviceSnapshot) -> bool {
        false
    }

    fn alloc(&self) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.0.alloc()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The owner of one variable, near or elsewhere.
struct Counts<'a>(Borrowed<'a>);

impl Registered for Counts<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        vec![Variable::new("counts", Role::Dynamic, self.0, Distribution::RankLocal)]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        Vec::new()
    }
}

#[test]
fn an_increment_of_values_hashed_where_they_rest_fetches_the_zones_that_changed() {
    let n = 1 << 20;
    let zone = (64 << 10) / size_of::<i64>();
    let dir = tempfile::tempdir().unwrap();
    let [host_dir, device_dir] = ["near", "on_device"].map(|name| dir.path().join(name));
    let [mut near, mut on_device] = [session(&host_dir), session(&device_dir)];
    let mut counts: Vec<i64> = (0..n as i64).collect();
    let hashed = HashedVec(TestDeviceVec::new(&Arc::new(TestDevice::default()), Values::I64(&counts)));
    for (iteration, changed) in [(1, &[][..]), (2, &[3 * zone, 4 * zone - 1, 100 * zone]), (3, &[])] {
        changed.iter().for_each(|at| counts[*at] = -1);
        hashed.0.set(Values::I64(&counts));
        near.checkpoint(PLAN, progress(iteration), &[&Counts(Values::I64(&counts).into())]).unwrap();
        on_device.checkpoint(PLAN, progress(iteration), &[&Counts(Borrowed::Device(&hashed))]).unwrap();
    }
    outcomes(&mut near);
    let fetched = outcomes(&mut on_device).into_iter().map(|outcome| match outcome {
        Outcome::Saved(saved) => saved.on_device.fetched_bytes,
        other => panic!("{other:?}"),
    });
    let zone_bytes = 64 << 10;
    assert_eq!(fetched.collect::<Vec<u64>>(), [8 * n as u64, 2 * zone_bytes, 0]);
    assert_eq!(manifests(&host_dir), manifests(&device_dir));
}
