//! Increments of values that are hashed where they are stored: the versions of values that are
//! near, and no byte fetched of zones that did not change.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic as tests do")]

use std::any::Any;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use recoup_comm::Solo;
use recoup_core::{
    Borrowed, BoundRule, BoundScale, CodecId, Decision, DeviceSnapshot, DeviceValues, DeviceValuesError, Distribution,
    ElementType, IncrementMode, Manifest, Observation, Plan, Policy, Progress, Registered, Resume, Role, SafePoint,
    Scheme, Status, Store, Values, ValuesMut, Variable, VariableMut,
};
use recoup_io::{Access, Hdf5Store, SystemClock};
use recoup_pipeline::{Codecs, Outcome, Session, SessionConfig, StagingMode, Timing};
use recoup_testkit::{TestDevice, TestDeviceVec};
use xxhash_rust::xxh3::xxh3_128;

struct Never;

impl Policy for Never {
    fn decide(&mut self, _: &Observation) -> Decision {
        let in_force = plan();
        Decision { save: None, in_force, why: None, interval_seconds: 1.0, extra_iterations: None }
    }
}

/// All is saved exactly, as it is.
fn plan() -> Plan {
    Plan {
        scheme: Scheme::Exact,
        codec: CodecId::Raw,
        rule: BoundRule::Verified,
        theta: 0.5,
        delta: 0.05,
        resume: Resume::Exact,
        grain: BoundScale::Usual,
    }
}

fn session(dir: &Path) -> Session {
    let config = SessionConfig {
        name: "run".to_owned(),
        store: Arc::new(Hdf5Store::open(dir, "run", Access::Write).unwrap()),
        codecs: Codecs { table: recoup_compress::codec, threads: 1 },
        policy: Box::new(Never),
        clock: Arc::new(SystemClock::new()),
        timing: Timing::Real,
        keep: 9,
        max_bytes: None,
        candidates: Vec::new(),
        key_every: 3,
        // The choice of `Auto` depends on the times of the machine.
        increments: IncrementMode::Hash,
        checks_corruption: true,
        synchronous: false,
        staging: StagingMode::Copy,
        pin_worker: false,
        tolerance: 1e-10,
        bytes_per_second: None,
        reference: None,
        same_operator: true,
        abort: Arc::new(AtomicBool::new(false)),
    };
    Session::open(config, &Solo).unwrap()
}

fn progress(iteration: u64) -> Progress {
    Progress { iteration, residual_norm: 0.5, rhs_norm: 1.0, status: Status::Running, safe_point: SafePoint::Any }
}

/// Returns the manifests of all versions, without the places of frames and files in the store: the
/// sum of every payload is in them.
fn manifests(dir: &Path) -> Vec<Manifest> {
    let store = Hdf5Store::open(dir, "run", Access::Read).unwrap();
    let stripped = |version: u64| {
        let mut manifest = store.manifest(version).unwrap();
        manifest.frames.iter_mut().for_each(|frame| frame.place = None);
        manifest.files.clear();
        manifest
    };
    store.versions().unwrap().into_iter().map(stripped).collect()
}

fn outcomes(session: &mut Session) -> Vec<Outcome> {
    session.wait().unwrap();
    session.take_outcomes()
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
        near.checkpoint(plan(), progress(iteration), &[&Counts(Values::I64(&counts).into())]).unwrap();
        on_device.checkpoint(plan(), progress(iteration), &[&Counts(Borrowed::Device(&hashed))]).unwrap();
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
