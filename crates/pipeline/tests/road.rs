//! The road of one value: which files it passes on its way from a solver to a store, saved as it is
//! or under a verified bound, and how often the session looks at the variables.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::error::Error;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use recoup_comm::Solo;
use recoup_core::{
    Bound, Clock, Codec, CodecError, CodecId, CodecResult, CommError, Context, Distribution, Draft, ExactSum, Frame,
    Iteration, NextCall, Operator, Plan, Registered, Resume, Role, Scheme, Sealed, Store, StoreDecorator, StoreError,
    Values, ValuesMut, Variable, VariableMut, VariableRecord,
};
use recoup_io::{Access, Hdf5Store, MemoryStore, SystemClock};
use recoup_pipeline::{CodecTable, Codecs, Outcome, Reference, Session, SessionConfig, Variables};
use recoup_solvers::{Cg, Identity, Pool, Stop, System};
use recoup_testkit::stack::files_on_stack;
use recoup_testkit::{SavesAt, progress};

/// Values of a vector: several megabytes, which go past the page cache.
const LEN: usize = 400_000;
/// The files whose code touches a value on its way down or decides about it, besides those of the
/// store.
const FILES: [&str; 7] = [
    "crates/pipeline/src/session/step.rs",
    "crates/pipeline/src/staging.rs",
    "crates/pipeline/src/encode/encode_variable.rs",
    "crates/pipeline/src/encode.rs",
    "solvers/src/methods/cg.rs",
    "solvers/src/methods/variables.rs",
    "solvers/src/space/host.rs",
];

/// Starts the thread of the worker, and touches no value.
const THREAD: &str = "crates/pipeline/src/session/link.rs";

const PLAN: Plan = Plan::new(Scheme::Exact, CodecId::Raw, Resume::Exact);

fn config(store: Arc<dyn Store>, clock: Arc<dyn Clock>, policy: SavesAt) -> SessionConfig {
    let codecs = Codecs { table: |codec| Err(CodecError::NotBuilt { codec, feature: "any" }), threads: 1 };
    SessionConfig { synchronous: true, ..SessionConfig::new("run", store, codecs, Box::new(policy), clock) }
}

/// The stacks under which a value was met, each as the files of this workspace, outermost first.
#[derive(Default)]
struct Road {
    /// The thread that has a draft open.
    writer: Mutex<Option<ThreadId>>,
    is_watched: AtomicBool,
    stacks: Mutex<Vec<Vec<String>>>,
}

impl Road {
    fn watch(&self, is_watched: bool) {
        self.is_watched.store(is_watched, Ordering::Release);
    }

    /// Takes note of the stack here, if a version is being made.
    fn meet(&self) {
        if self.is_watched.load(Ordering::Acquire) {
            locked(&self.stacks).push(files_on_stack());
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `A = tridiag(-1, 2.5, -1)`, met by all who apply it or ask for its rows.
struct Watched(Arc<Road>);

impl Operator for Watched {
    fn rows(&self) -> usize {
        LEN
    }

    fn first_row(&self) -> u64 {
        self.0.meet();
        0
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        self.0.meet();
        let at = |row: usize| x.get(row).copied().unwrap_or_default();
        y.iter_mut().enumerate().for_each(|(i, y)| *y = 2.5 * x[i] - at(i.wrapping_sub(1)) - at(i + 1));
        Ok(())
    }

    fn apply_dot(&self, x: &[f64], y: &mut [f64]) -> Result<ExactSum, CommError> {
        self.apply(x, y)?;
        Ok(x.iter().zip(&*y).map(|(x, y)| x * y).collect())
    }

    /// As operators have it: the default of the trait is a file of `core`.
    fn residual(&self, b: &[f64], x: &[f64], r: &mut [f64]) -> Result<ExactSum, CommError> {
        self.apply(x, r)?;
        r.iter_mut().zip(b).for_each(|(r, b)| *r = b - *r);
        Ok(r.iter().map(|r| r * r).collect())
    }
}

/// A clock that is asked between a draft's begin and its seal, by whatever makes its frames.
struct WatchedClock {
    clock: SystemClock,
    road: Arc<Road>,
}

impl Clock for WatchedClock {
    fn now(&self) -> Duration {
        if *locked(&self.road.writer) == Some(thread::current().id()) {
            self.road.meet();
        }
        self.clock.now()
    }

    fn sleep_until(&self, instant: Duration) {
        self.clock.sleep_until(instant);
    }
}

struct WatchedStore {
    store: Hdf5Store,
    road: Arc<Road>,
}

impl StoreDecorator for WatchedStore {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    fn begin_draft(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        let draft = self.store.begin(version, rank)?;
        *locked(&self.road.writer) = Some(thread::current().id());
        Ok(Box::new(WatchedDraft { draft, road: self.road.clone() }))
    }
}

struct WatchedDraft {
    draft: Box<dyn Draft>,
    road: Arc<Road>,
}

impl Draft for WatchedDraft {
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        self.road.meet();
        let is_raw = |frame: &Frame| frame.record.codec == CodecId::Raw;
        let is_lent = frames.iter().all(|frame| !is_raw(frame) || matches!(frame.payload, Cow::Borrowed(_)));
        assert!(is_lent, "{}: raw values are copied once, when they are staged", variable.name);
        self.draft.write(variable, frames, next)
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        *locked(&self.road.writer) = None;
        self.draft.seal()
    }
}

/// The road that [`WatchedCodec`] is met on: a table of codecs is a plain function.
static CODEC_ROAD: OnceLock<Arc<Road>> = OnceLock::new();

/// QB, met by all who encode or decode.
struct WatchedCodec(Arc<dyn Codec>);

impl WatchedCodec {
    fn find(id: CodecId) -> CodecResult<Arc<dyn Codec>> {
        Ok(Arc::new(Self(recoup_compress::codec(id)?)))
    }

    fn meet() {
        CODEC_ROAD.get_or_init(Arc::default).meet();
    }
}

impl Codec for WatchedCodec {
    fn id(&self) -> CodecId {
        self.0.id()
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> EncodeResult {
        Self::meet();
        self.0.encode(source, bound, context, target)
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        Self::meet();
        self.0.decode(source, bound, context, target)
    }
}

type EncodeResult = CodecResult;

/// Saves the second iterate of a CG solve by a plan. Returns the files that were met on the stacks,
/// none of them twice on any.
fn files_of_a_save(road: &Arc<Road>, plan: Plan, codecs: CodecTable) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let store = Hdf5Store::open(dir.path(), "run", Access::Write)?;
    let store = Arc::new(WatchedStore { store, road: road.clone() });
    let clock = Arc::new(WatchedClock { clock: SystemClock::new(), road: road.clone() });
    let operator = Watched(road.clone());
    let b = vec![1.0; LEN];
    let is_lossy = plan.scheme == Scheme::Lossy;
    let reference = is_lossy.then(|| Reference::new(Arc::new(Watched(road.clone())), b.clone().into()));
    let config = config(store, clock, SavesAt(plan, |iteration| iteration == 2));
    let codecs = Codecs { table: codecs, ..config.codecs };
    let mut session = Session::open(SessionConfig { codecs, reference, ..config }, &Solo)?;
    let pool = Pool::new(1);
    let system = System { a: &operator, b: &b, comm: &Solo, pool: &pool };
    let mut cg = Cg::new(system, &Identity, &vec![0.0; LEN], Stop::at(1e-10))?;
    cg.step()?;
    assert_eq!(session.step(&cg)?, None);
    road.watch(true);
    cg.step()?;
    assert!(session.step(&cg)?.is_some());
    road.watch(false);
    let outcomes = session.take_outcomes();
    assert!(matches!(outcomes[..], [Outcome::Saved(_)]), "{outcomes:?}");
    let stacks = std::mem::take(&mut *locked(&road.stacks));
    for stack in &stacks {
        assert_eq!(stack.iter().collect::<BTreeSet<_>>().len(), stack.len(), "a file is passed twice: {stack:?}");
    }
    Ok(stacks.into_iter().flatten().filter(|file| file != THREAD).collect())
}

/// Ten files in all, with those of the store, which
/// `payload_passes_each_file_of_the_store_once` in `io` counts. Once it was 16, some of them twice,
/// and nine before methods learned of more than one place for their vectors: the host's is a file.
#[test]
fn one_value_passes_seven_files_down_to_the_store_and_none_twice() {
    let no_codec = |codec| Err(CodecError::NotBuilt { codec, feature: "any" });
    let files = files_of_a_save(&Arc::new(Road::default()), PLAN, no_codec).unwrap();
    assert_eq!(files, FILES.map(str::to_owned).into());
}

/// Files that a page lists as `- `path`: what it does`, below a line with these words.
fn listed_files(page: &str, below: &str) -> BTreeSet<String> {
    let lines = page.lines().skip_while(|line| !line.contains(below)).skip_while(|line| !line.starts_with("- `"));
    let file = |line: &str| Some(line.strip_prefix("- `")?.split_once('`')?.0.to_owned());
    lines.take_while(|line| !line.is_empty()).filter_map(file).collect()
}

/// The road of most versions stood on no page, and a measure went back to the loop that had asked
/// for it: its files could not be read from top to bottom.
#[test]
fn one_lossy_value_passes_the_files_that_architecture_lists_and_none_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|dir| dir.join("ARCHITECTURE.md").exists());
    let page = std::fs::read_to_string(root.unwrap().join("ARCHITECTURE.md")).unwrap();
    let road = CODEC_ROAD.get_or_init(Arc::default);
    let plan = Plan { scheme: Scheme::Lossy, codec: CodecId::Qb, resume: Resume::Restarted, ..PLAN };
    let files = files_of_a_save(road, plan, WatchedCodec::find).unwrap();
    assert_eq!(files, listed_files(&page, "A lossy value that is verified"));
}

/// An owner that counts how often its variables are asked for.
struct Counting {
    values: Vec<f64>,
    calls: Cell<u64>,
}

impl Registered for Counting {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.calls.set(self.calls.get() + 1);
        let values = Values::F64(&self.values);
        vec![Variable::new("x", Role::Iterate, values, Distribution::RankLocal)]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        Vec::new()
    }

    fn revision(&self) -> u64 {
        self.values.len() as u64
    }
}

/// Lending was once done twice at every safe point: for a solver on a device, two copies of all its
/// vectors to the host in every iteration.
#[test]
fn variables_are_asked_for_at_the_first_decision_and_for_each_version() {
    let store = Arc::new(MemoryStore::new());
    let policy = SavesAt(PLAN, |iteration| matches!(iteration, 4 | 8));
    let mut session = Session::open(config(store, Arc::new(SystemClock::new()), policy), &Solo).unwrap();
    let mut owner = Counting { values: vec![0.0; 10], calls: Cell::new(0) };
    let calls = |session: &mut Session, owner: &Counting, iteration| {
        session.step_with(progress(iteration), &[owner]).unwrap();
        owner.calls.get()
    };
    let counted: Vec<u64> = (1..=9).map(|iteration| calls(&mut session, &owner, iteration)).collect();
    assert_eq!(counted, [1, 1, 1, 2, 2, 2, 2, 3, 3]);
    owner.values.push(0.0);
    let counted: Vec<u64> = (10..=11).map(|iteration| calls(&mut session, &owner, iteration)).collect();
    assert_eq!(counted, [4, 4], "the set has changed once");
    let mut y = [0.0; 3];
    let other = Variables::new().dynamic("y", &mut y);
    session.step_with(progress(12), &[&owner, &other]).unwrap();
    assert_eq!(owner.calls.get(), 5, "another owner has come");
}
