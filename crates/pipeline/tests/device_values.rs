//! Values that are stored elsewhere: the files and the bits of values that are near, whatever the
//! codec; and a place that fails costs a version, never a wrong byte.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use recoup_comm::Solo;
use recoup_compress::Qb;
use recoup_core::{
    Borrowed, BorrowedMut, Bound, Chain, Codec, CodecId, CodecResult, CommError, Context, DeviceFrame, DeviceParent,
    DeviceSnapshot, Distribution, ExactSum, Manifest, Operator, Parent, Plan, ProblemOnDevice, Registered, Resume,
    Role, Scheme, SolveError, Store, Values, ValuesMut, Variable, VariableMut,
};
use recoup_io::{Access, Hdf5Store, MemoryStore, SystemClock};
use recoup_pipeline::{CodecTable, Codecs, Outcome, PipelineError, Reference, Saved, Session, SessionConfig};
use recoup_testkit::{SavesAt, TestDevice, TestDeviceCopy, TestDeviceVec, progress};

/// Values of a vector of one frame.
const SHORT: usize = 5000;
/// Values of a vector of two frames, the last of them padded.
const PADDED: usize = (1 << 20) + 3;

fn plan(scheme: Scheme, codec: CodecId) -> Plan {
    Plan::new(scheme, codec, if scheme == Scheme::Lossy { Resume::Deflated } else { Resume::Exact })
}

/// `A = tridiag(-1, 2.5, -1)`.
struct Tridiagonal(usize);

impl Operator for Tridiagonal {
    fn rows(&self) -> usize {
        self.0
    }

    fn first_row(&self) -> u64 {
        0
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        let at = |row: usize| x.get(row).copied().unwrap_or_default();
        y.iter_mut().enumerate().for_each(|(i, y)| *y = 2.5 * x[i] - at(i.wrapping_sub(1)) - at(i + 1));
        Ok(())
    }

    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<ExactSum, CommError> {
        self.apply(x, y)?;
        Ok(x.iter().zip(&*y).map(|(x, y)| x * y).collect())
    }
}

/// The same problem in a place of the testkit, for the right-hand side of ones.
struct TridiagonalThere(Tridiagonal);

impl TridiagonalThere {
    fn doubles(&self, values: &dyn DeviceSnapshot) -> Vec<f64> {
        let copy = values.as_any().downcast_ref::<TestDeviceCopy>().unwrap();
        copy.bytes().as_chunks().0.iter().take(self.0.0).map(|b| f64::from_le_bytes(*b)).collect()
    }

    fn energy(&self, v: &[f64]) -> ExactSum {
        self.0.apply_dot(v, &mut vec![0.0; v.len()]).unwrap()
    }
}

impl ProblemOnDevice for TridiagonalThere {
    fn is_beside(&self, values: &dyn DeviceSnapshot) -> bool {
        values.as_any().is::<TestDeviceCopy>()
    }

    fn squared_residual(&self, x: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        let x = self.doubles(x);
        Ok(self.0.residual(&vec![1.0; x.len()], &x, &mut vec![0.0; x.len()]).unwrap())
    }

    fn squared_norm(&self, x: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        Ok(self.0.squared_norm(&self.doubles(x)))
    }

    fn squared_energy(&self, v: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        Ok(self.energy(&self.doubles(v)))
    }

    fn squared_energy_of_error(&self, v: &dyn DeviceSnapshot, w: &dyn DeviceSnapshot) -> Result<ExactSum, SolveError> {
        let difference = self.doubles(w).iter().zip(self.doubles(v)).map(|(w, v)| w - v).collect::<Vec<f64>>();
        Ok(self.energy(&difference))
    }
}

fn session(store: Arc<dyn Store>, n: usize, table: CodecTable) -> Session {
    let on_device: Arc<dyn ProblemOnDevice> = Arc::new(TridiagonalThere(Tridiagonal(n)));
    let rhs = vec![1.0; n].into();
    let reference = Reference { on_device: Some(on_device), ..Reference::new(Arc::new(Tridiagonal(n)), rhs) };
    let policy = SavesAt::no_iteration(plan(Scheme::Exact, CodecId::Raw));
    let config = SessionConfig::new("run", store, Codecs { table, threads: 1 }, policy, Arc::new(SystemClock::new()));
    let reference = Some(reference);
    let config = SessionConfig { keep: 9, key_every: 3, checks_corruption: true, reference, ..config };
    Session::open(config, &Solo).unwrap()
}

/// The values of one variable of each type, as an iteration leaves them.
struct State {
    x: Vec<f64>,
    p: Vec<f64>,
    singles: Vec<f32>,
    counts: Vec<i64>,
    bytes: Vec<u8>,
}

impl State {
    fn at(iteration: u64, n: usize) -> Self {
        let value = |i: usize| (i as f64 * 0.01).sin() + iteration as f64 * 1e-3;
        Self {
            x: (0..n).map(value).collect(),
            p: (0..n).map(|i| value(i + 7) * 1e-2).collect(),
            singles: (0..n / 3).map(|i| value(i) as f32).collect(),
            counts: (0..n as i64 / 5).map(|i| i * i - iteration as i64).collect(),
            bytes: (0..n / 2).map(|i| (i as u64 * iteration) as u8).collect(),
        }
    }

    fn all(&self) -> [(&'static str, Role, Values<'_>); 5] {
        [
            ("x", Role::Iterate, Values::F64(&self.x)),
            ("p", Role::Direction, Values::F64(&self.p)),
            ("singles", Role::Dynamic, Values::F32(&self.singles)),
            ("counts", Role::Dynamic, Values::I64(&self.counts)),
            ("bytes", Role::Dynamic, Values::Bytes(&self.bytes)),
        ]
    }

    /// Returns the bytes of all values.
    fn bits(&self) -> Vec<u8> {
        self.all().into_iter().flat_map(|(_, _, values)| values.as_raw().unwrap().to_vec()).collect()
    }
}

/// An owner whose values are near.
struct OwnerOnHost(State);

impl Registered for OwnerOnHost {
    fn variables(&self) -> Vec<Variable<'_>> {
        let all = self.0.all();
        all.map(|(name, role, values)| Variable::new(name, role, values, Distribution::RankLocal)).into()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        let State { x, p, singles, counts, bytes } = &mut self.0;
        vec![
            VariableMut::new("x", ValuesMut::F64(x)),
            VariableMut::new("p", ValuesMut::F64(p)),
            VariableMut::new("singles", ValuesMut::F32(singles)),
            VariableMut::new("counts", ValuesMut::I64(counts)),
            VariableMut::new("bytes", ValuesMut::Bytes(bytes)),
        ]
    }
}

/// An owner whose values are stored elsewhere.
struct OwnerOnDevice {
    vectors: Vec<(&'static str, Role, TestDeviceVec)>,
}

impl OwnerOnDevice {
    fn new(place: &Arc<TestDevice>, state: &State) -> Self {
        Self { vectors: state.all().map(|(name, role, values)| (name, role, TestDeviceVec::new(place, values))).into() }
    }

    fn set(&self, state: &State) {
        self.vectors.iter().zip(state.all()).for_each(|((_, _, vector), (_, _, values))| vector.set(values));
    }

    fn bits(&self) -> Vec<u8> {
        self.vectors.iter().flat_map(|(_, _, vector)| vector.to_bytes()).collect()
    }
}

impl Registered for OwnerOnDevice {
    fn variables(&self) -> Vec<Variable<'_>> {
        let vectors = self.vectors.iter();
        vectors.map(|v| Variable::new(v.0, v.1, Borrowed::Device(&v.2), Distribution::RankLocal)).collect()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        self.vectors.iter_mut().map(|v| VariableMut::new(v.0, BorrowedMut::Device(&mut v.2))).collect()
    }
}

fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(
                path.strip_prefix(dir.parent().unwrap()).unwrap().display().to_string(),
                std::fs::read(&path).unwrap(),
            );
        }
    }
    found
}

/// Returns the manifests of all versions, without the places of frames and files in the store: the
/// sum of every payload is in them.
pub(crate) fn manifests(dir: &Path) -> Vec<Manifest> {
    let store = Hdf5Store::open(dir, "run", Access::Read).unwrap();
    let stripped = |version: u64| {
        let mut manifest = store.manifest(version).unwrap();
        manifest.frames.iter_mut().for_each(|frame| frame.place = None);
        manifest.files.clear();
        manifest
    };
    store.versions().unwrap().into_iter().map(stripped).collect()
}

pub(crate) fn outcomes(session: &mut Session) -> Vec<Outcome> {
    session.wait().unwrap();
    session.take_outcomes()
}

/// Saves four versions, a chain and the key after it, and restores the last; returns the account of
/// those whose values are stored elsewhere.
fn compare(scheme: Scheme, codec: CodecId, n: usize, table: CodecTable) -> Vec<Saved> {
    let dir = tempfile::tempdir().unwrap();
    let [host_dir, device_dir] = ["near", "on_device"].map(|name| dir.path().join(name));
    let open = |dir: &Path, table| session(Arc::new(Hdf5Store::open(dir, "run", Access::Write).unwrap()), n, table);
    let mut near = open(&host_dir, recoup_compress::codec);
    let mut on_device = open(&device_dir, table);
    let place = Arc::new(TestDevice::default());
    let mut owner_on_device = OwnerOnDevice::new(&place, &State::at(0, n));
    for iteration in 1..=4 {
        let owner_on_host = OwnerOnHost(State::at(iteration, n));
        owner_on_device.set(&owner_on_host.0);
        near.checkpoint(plan(scheme, codec), progress(iteration), &[&owner_on_host]).unwrap();
        on_device.checkpoint(plan(scheme, codec), progress(iteration), &[&owner_on_device]).unwrap();
        // What the owner does next, the frozen copy does not see.
        owner_on_device.set(&State::at(99, n));
    }
    for outcome in outcomes(&mut near) {
        assert!(matches!(outcome, Outcome::Saved(_)), "{codec}: {outcome:?}");
    }
    let saved = outcomes(&mut on_device).into_iter().map(|outcome| match outcome {
        Outcome::Saved(saved) => *saved,
        other => panic!("{codec}: {other:?}"),
    });
    let saved: Vec<Saved> = saved.collect();
    let manifests = [&host_dir, &device_dir].map(|dir| manifests(dir));
    assert_eq!(manifests[0], manifests[1], "{codec}, {scheme:?}");
    // Large raw frames lie in a file as they lie in memory, so that they are written directly.
    if n == SHORT {
        assert!(files(&host_dir) == files(&device_dir), "{codec}, {scheme:?}: the files differ");
    }
    let mut owner_on_host = OwnerOnHost(State::at(0, n));
    near.restore_with(&mut [&mut owner_on_host]).unwrap().unwrap();
    owner_on_device.set(&State::at(0, n));
    on_device.restore_with(&mut [&mut owner_on_device]).unwrap().unwrap();
    assert!(owner_on_host.0.bits() == owner_on_device.bits(), "{codec}, {scheme:?}: the bits differ");
    saved
}

#[test]
fn values_that_rest_elsewhere_make_the_files_of_values_that_are_near() {
    for codec in CodecId::ALL.into_iter().filter(|codec| recoup_compress::codec(*codec).is_ok()) {
        compare(Scheme::Exact, codec, SHORT, recoup_compress::codec);
        compare(Scheme::Lossy, codec, SHORT, recoup_compress::codec);
    }
}

#[test]
fn padded_frames_of_values_that_rest_elsewhere_are_those_of_values_that_are_near() {
    compare(Scheme::Exact, CodecId::Raw, PADDED, recoup_compress::codec);
    compare(Scheme::Lossy, CodecId::Qb, PADDED, recoup_compress::codec);
}

/// Each call of the place fails once: in staging, in the worker, in a restore.
#[test]
fn a_call_that_fails_costs_its_version_and_no_other() {
    let [near, there]: [CodecTable; 2] = [recoup_compress::codec, in_place];
    let cases =
        [(Scheme::Exact, CodecId::Raw, near), (Scheme::Lossy, CodecId::Qb, near), (Scheme::Lossy, CodecId::Qb, there)];
    for (scheme, codec, table) in cases {
        let mut call = 1;
        loop {
            let mut session = session(Arc::new(MemoryStore::new()), SHORT, table);
            let place = Arc::new(TestDevice::default());
            let owner = OwnerOnDevice::new(&place, &State::at(1, SHORT));
            let mut save = |iteration| {
                owner.set(&State::at(iteration, SHORT));
                session.checkpoint(plan(scheme, codec), progress(iteration), &[&owner]).unwrap();
                outcomes(&mut session)
            };
            assert!(matches!(save(1)[..], [Outcome::Saved(_)]));
            let before = place.calls();
            place.fail_at(before + call);
            let second = save(2);
            let n_calls = place.calls() - before;
            place.fail_at(0);
            assert!(matches!(save(3)[..], [Outcome::Saved(_)]), "call {call}");
            let whole = n_calls < call;
            match &second[..] {
                // Without room for decoded values they come here.
                [Outcome::Saved(_)] => assert_eq!(place.take_failed().unwrap_or("room"), "room", "call {call}"),
                [Outcome::Failed { version: 2, message, .. }] => assert!(message.contains("made to fail"), "{message}"),
                other => panic!("call {call}: {other:?}"),
            }
            let mut restored = OwnerOnDevice::new(&place, &State::at(0, SHORT));
            assert_eq!(session.restore_with(&mut [&mut restored]).unwrap().unwrap().version, 3);
            assert!(scheme == Scheme::Lossy || restored.bits() == State::at(3, SHORT).bits(), "call {call}");
            if whole {
                assert!(call > 7, "{call} calls");
                break;
            }
            call += 1;
        }
    }
}

#[test]
fn a_restore_without_room_touches_nothing_and_one_that_ends_half_way_says_so() {
    let mut session = session(Arc::new(MemoryStore::new()), SHORT, recoup_compress::codec);
    let place = Arc::new(TestDevice::default());
    let mut owner = OwnerOnDevice::new(&place, &State::at(1, SHORT));
    session.checkpoint(plan(Scheme::Exact, CodecId::Raw), progress(1), &[&owner]).unwrap();
    assert!(matches!(outcomes(&mut session)[..], [Outcome::Saved(_)]));
    let other = State::at(7, SHORT);
    // Room and values for five variables, and then their overwriting.
    for call in 1..=15 {
        owner.set(&other);
        place.fail_at(place.calls() + call);
        let error = session.restore_with(&mut [&mut owner]).unwrap_err();
        if call <= 10 {
            assert!(matches!(error, PipelineError::Device { .. }), "call {call}: {error}");
            assert!(owner.bits() == other.bits(), "call {call}");
        } else {
            assert!(matches!(error, PipelineError::RestoredInPart { .. }), "call {call}: {error}");
        }
    }
    place.fail_at(0);
    session.restore_with(&mut [&mut owner]).unwrap().unwrap();
    assert!(owner.bits() == State::at(1, SHORT).bits());
}

#[test]
fn a_lost_place_is_an_outcome_and_the_versions_before_stay() {
    let mut session = session(Arc::new(MemoryStore::new()), SHORT, recoup_compress::codec);
    let place = Arc::new(TestDevice::default());
    let owner = OwnerOnDevice::new(&place, &State::at(1, SHORT));
    session.checkpoint(plan(Scheme::Exact, CodecId::Zstd), progress(1), &[&owner]).unwrap();
    session.wait().unwrap();
    place.lose();
    session.checkpoint(plan(Scheme::Exact, CodecId::Zstd), progress(2), &[&owner]).unwrap();
    assert!(matches!(outcomes(&mut session)[..], [Outcome::Saved(_), Outcome::Failed { version: 2, .. }]));
    let mut near = OwnerOnHost(State::at(0, SHORT));
    assert_eq!(session.restore_with(&mut [&mut near]).unwrap().unwrap().version, 1);
    assert!(near.0.bits() == State::at(1, SHORT).bits());
}

/// QB that reaches the place of the testkit.
struct InPlace;

fn in_place(id: CodecId) -> CodecResult<Arc<dyn Codec>> {
    if id == CodecId::Qb { Ok(Arc::new(InPlace)) } else { recoup_compress::codec(id) }
}

/// The doubles of a copy in the testkit's place.
fn doubles_there(values: &dyn DeviceSnapshot) -> Vec<f64> {
    let copy = values.as_any().downcast_ref::<TestDeviceCopy>().unwrap();
    copy.bytes().as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect()
}

/// Calls `work` with a frame's context, where the parent's values of the frame are near.
fn with_parent<T>(
    context: &Context,
    parent: Option<DeviceParent<'_>>,
    start: usize,
    work: impl FnOnce(&Context) -> T,
) -> T {
    let len: usize = context.dims.iter().product();
    let values = parent.map(|parent| doubles_there(parent.values));
    let slice = values.as_ref().map(|values| Values::F64(&values[start..start + len]));
    let follow = parent.zip(slice).map(|(parent, values)| Chain::Follow(Parent { values, hash: parent.hash }));
    work(&context.chained(follow.unwrap_or(context.chain)))
}

impl Codec for InPlace {
    fn id(&self) -> CodecId {
        CodecId::Qb
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        Qb::default().encode(source, bound, context, target)
    }

    fn reaches(&self, values: &dyn DeviceSnapshot) -> bool {
        values.as_any().is::<TestDeviceCopy>()
    }

    fn encode_on_device(
        &self,
        source: &DeviceFrame<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<CodecResult> {
        let DeviceFrame { values, start, parent } = *source;
        let len: usize = context.dims.iter().product();
        let values = doubles_there(values);
        let source = Values::F64(&values[start..start + len]);
        Some(with_parent(context, parent, start, |context| self.encode(source, bound, context, target)))
    }

    fn decode_on_device(
        &self,
        source: &[u8],
        bound: Bound,
        context: &Context,
        parent: Option<DeviceParent<'_>>,
        target: &mut dyn DeviceSnapshot,
        start: usize,
    ) -> Option<CodecResult<()>> {
        let mut values = vec![0.0; context.dims.iter().product()];
        let target = target.as_any_mut().downcast_mut::<TestDeviceCopy>()?;
        let decode = |context: &Context| self.decode(source, bound, context, ValuesMut::F64(&mut values));
        let decoded = with_parent(context, parent, start, decode);
        target.set(start, Values::F64(&values));
        Some(decoded)
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        Qb::default().decode(source, bound, context, target)
    }
}

#[test]
fn a_codec_and_a_problem_that_reach_the_place_leave_all_vectors_there_and_make_the_same_files() {
    for n in [SHORT, PADDED] {
        let saved = compare(Scheme::Lossy, CodecId::Qb, n, in_place);
        let frames = n.div_ceil(1 << 20) as u64;
        for version in saved {
            let State { singles, counts, bytes, .. } = State::at(1, n);
            let exact = 4 * singles.len() + 8 * counts.len() + bytes.len();
            assert_eq!(version.on_device.device_frames, 2 * frames, "{n} values, x and p");
            // What is saved exactly is compressed here, in whole frames.
            assert!(version.on_device.fetched_bytes < exact as u64 + 4096, "{n} values: {:?}", version.on_device);
        }
    }
}
