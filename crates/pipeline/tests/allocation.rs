//! A version needs little memory besides the values it saves.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_comm::Solo;
use recoup_core::{
    Borrowed, BorrowedMut, CodecId, Distribution, Plan, Registered, Resume, Role, Scheme, Values, ValuesMut, Variable,
    VariableMut,
};
use recoup_io::{Access, Hdf5Store, SystemClock};
use recoup_pipeline::{Codecs, Outcome, Session, SessionConfig, StagingMode};
use recoup_solvers::{Pool, Vector};
use recoup_testkit::allocation::{CountingAllocator, peak_of};
use recoup_testkit::{SavesAt, TestDevice, TestDeviceVec, progress};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Lets one test measure at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes of a frame of a large variable.
const FRAME_BYTES: usize = 8 << 20;

/// One vector that is stored elsewhere.
struct Elsewhere(TestDeviceVec);

impl Registered for Elsewhere {
    fn variables(&self) -> Vec<Variable<'_>> {
        vec![Variable::new("x", Role::Iterate, Borrowed::Device(&self.0), Distribution::RankLocal)]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("x", BorrowedMut::Device(&mut self.0))]
    }
}

/// A variable that is stored elsewhere was once fetched whole before its first byte was written,
/// and its payloads kept until the last was coded: a version took the memory of the variable once
/// more.
///
/// A frame takes 8 MiB. One is fetched, one is coded, and one is aligned for the device. Zstd keeps
/// its bytes in another order, and a payload of each order to choose from. What is small is less
/// than one frame.
#[test]
fn a_variable_that_rests_elsewhere_is_saved_in_the_memory_of_a_few_frames() {
    let _alone = alone();
    let n = 10 * FRAME_BYTES / size_of::<f64>();
    let values: Vec<f64> = (0..n).map(|i| (i as f64).sqrt()).collect();
    let owner = Elsewhere(TestDeviceVec::new(&Arc::new(TestDevice::default()), Values::F64(&values)));
    drop(values);
    for (codec, frames) in [(CodecId::Raw, 4), (CodecId::Zstd, 6)] {
        let peak = peak_of_version(codec, &owner);
        assert!(peak <= frames * FRAME_BYTES, "{codec}: {peak} bytes");
    }
}

/// One vector of the host, which sees the writes to it.
struct Here(Vector);

impl Registered for Here {
    fn variables(&self) -> Vec<Variable<'_>> {
        let variable = Variable::new("x", Role::Iterate, Values::F64(&self.0), Distribution::RankLocal);
        vec![Variable { zones: Some(&self.0), ..variable }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("x", ValuesMut::F64(&mut self.0))]
    }
}

/// A copy takes the memory of the vector once more, 256 MiB here. Frozen, it takes a frame that is
/// fetched, a frame that is coded and a frame that is aligned for the device.
#[test]
fn a_frozen_vector_is_saved_in_the_memory_of_a_few_frames() {
    let _alone = alone();
    let n = 32 * FRAME_BYTES / size_of::<f64>();
    let owner = Here(Vector::zeros(&Pool::new(2), n, 0));
    let peak = peak_of_version(CodecId::Raw, &owner);
    assert!(peak <= 4 * FRAME_BYTES, "{peak} bytes");
}

/// Saves one version of an owner and returns the most memory in use meanwhile.
fn peak_of_version(codec: CodecId, owner: &dyn Registered) -> usize {
    let dir = tempfile::tempdir().expect("a directory");
    let plan = Plan::new(Scheme::Exact, codec, Resume::Exact);
    let store = Arc::new(Hdf5Store::open(dir.path(), "run", Access::Write).expect("a store"));
    let codecs = Codecs { table: recoup_compress::codec, threads: 1 };
    let config = SessionConfig::new("run", store, codecs, SavesAt::no_iteration(plan), Arc::new(SystemClock::new()));
    let config = SessionConfig { keep: 1, staging: StagingMode::Touch, ..config };
    let mut session = Session::open(config, &Solo).expect("a session");
    let peak = peak_of(|| {
        session.checkpoint(plan, progress(1), &[owner]).expect("staged");
        session.wait().expect("saved");
    });
    let outcomes = session.take_outcomes();
    assert!(matches!(&outcomes[..], [Outcome::Saved(_)]), "{outcomes:?}");
    peak
}
