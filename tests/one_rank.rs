//! Does a failure of one rank, at any call, end in the same verdict on all ranks, and never in a
//! wait without end?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recoup::cache::{NodeStore, RunPlace, TierList, Tiers, WhenBusy};
use recoup::comm::Threads;
use recoup::core::{
    BoundRule, CodecId, Comm, CommError, Distribution, Operator, Plan, Progress, Resume, Role, Scheme, Store, Tier,
    ValuesMut,
};
use recoup::io::{Access, Hdf5Store, MemoryStore};
use recoup::pipeline::{KnownNorms, Outcome, PipelineError, Reference, Session, Variables};
use recoup::{TierCosts, TierOptions};
use recoup_testkit::crashing_store::{Crash, CrashingStore};

use crate::support::{fixed, plan};

const RANKS: usize = 3;
const N: usize = 300;
/// Runs `run` on all ranks.
fn watched<T: Send + 'static>(what: &str, run: impl Fn(&Threads) -> T + Send + Sync + 'static) -> Vec<T> {
    recoup_testkit::watched(what, RANKS, run)
}

/// What a rank has seen, in words all ranks have to agree on.
fn tell(verdicts: &mut Vec<String>, call: &str, result: Result<String, PipelineError>) -> bool {
    let is_ok = result.is_ok();
    verdicts.push(format!("{call}: {}", result.unwrap_or_else(|_| "refused".to_owned())));
    is_ok
}

fn outcomes(session: &mut Session) -> String {
    let of = |outcome: Outcome| match outcome {
        Outcome::Saved(saved) => format!("{} saved", saved.version),
        Outcome::Failed { version, .. } => format!("{version} failed"),
        Outcome::Aborted { version } => format!("{version} aborted"),
        Outcome::Suspicious(suspicion) => format!("{} suspicious", suspicion.version),
    };
    session.take_outcomes().into_iter().map(of).collect::<Vec<_>>().join(", ")
}

/// A life of one rank: it continues from what is there, saves three versions, loses its memory and
/// comes back.
fn live(session: Result<Session, recoup::Error>, comm: &dyn Comm, is_faulty: bool) -> Vec<String> {
    let mut verdicts = Vec::new();
    let mut session = match session {
        Ok(session) => session,
        Err(_) => return vec!["open: refused".to_owned()],
    };
    let rows = Distribution::Rows { first: (comm.rank() * N) as u64, global: (RANKS * N) as u64 };
    for round in 0..2 {
        let mut x = vec![0.0; N];
        let mut owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
        let restored = session.restore_with(&mut [&mut owner]);
        let version = restored.map(|restored| restored.map_or(0, |restored| restored.version));
        let at = *version.as_ref().unwrap_or(&0);
        if !tell(&mut verdicts, "restore", version.map(|version| version.to_string())) {
            return verdicts;
        }
        for iteration in at + 1..=at + 3 {
            let mut x: Vec<f64> = (0..N).map(|i| (i as f64 * 0.1 + iteration as f64 * 0.01).sin()).collect();
            // The faulty rank registers a name twice in its last round.
            let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
            let doubled = Variables::new().counter("x", &mut []);
            let owners: &[&dyn recoup::core::Registered] =
                if is_faulty && round == 1 { &[&owner, &doubled] } else { &[&owner] };
            let taken = session.step_with(Progress::running(iteration, 1.0, 1.0), owners).and_then(|_| session.wait());
            if !tell(&mut verdicts, "step", taken.map(|()| outcomes(&mut session))) {
                return verdicts;
            }
        }
        let lost = session.lose_memory(Duration::ZERO);
        if !tell(&mut verdicts, "lose", lost.map(|()| String::new())) {
            return verdicts;
        }
    }
    let finished = session.finish();
    tell(&mut verdicts, "finish", finished.map(|_| String::new()));
    verdicts
}

fn assert_agreed(what: &str, verdicts: &[Vec<String>]) {
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]), "{what}: {verdicts:#?}");
}

/// Where the versions of one rank go.
type Open = dyn Fn(&Threads, Crash) -> (Arc<dyn Store>, Vec<Arc<dyn Counted>>) + Send + Sync;

/// A store that counts its operations.
trait Counted: Send + Sync {
    fn operations(&self) -> u64;
}

impl<S: Store> Counted for CrashingStore<S> {
    fn operations(&self) -> u64 {
        Self::operations(self)
    }
}

fn run_with(open: &Open, comm: &Threads, crash: Crash, is_faulty: bool) -> (Vec<String>, u64) {
    let (store, counted) = open(comm, crash);
    let builder = recoup::open("unused").plan(fixed(CodecId::Qb, 1e-6)).every(1).keep(2).key_every(2);
    let verdicts = live(builder.build_with(store, comm), comm, is_faulty);
    (verdicts, counted.iter().map(|store| store.operations()).sum())
}

/// Each operation of each store of one rank fails in turn, once or from then on.
fn strike_everywhere(what: &str, make: impl Fn() -> Box<Open>) {
    let open = make();
    let undisturbed = watched(what, move |comm| run_with(&*open, comm, Crash::Never, false));
    assert!(undisturbed.iter().all(|(verdicts, _)| verdicts.last().is_some_and(|last| last == "finish: ")));
    for (victim, (_, operations)) in undisturbed.iter().enumerate().take(2) {
        assert!(*operations > 10, "{what}: rank {victim} uses its store {operations} times");
        for n in 0..*operations {
            for crash in [Crash::At(n), Crash::From(n)] {
                let what = format!("{what}, rank {victim}, {crash:?}");
                let open = make();
                let of = move |rank: usize| if rank == victim { crash } else { Crash::Never };
                let ended = watched(&what, move |comm| run_with(&*open, comm, of(comm.rank()), false).0);
                assert_agreed(&what, &ended);
            }
        }
    }
}

/// Rank 0 used to return from a restore whose list of versions it could not read; the others waited
/// for that list.
#[test]
fn a_store_that_fails_one_rank_fails_all_ranks_alike() {
    strike_everywhere("memory", || {
        let memory = MemoryStore::new();
        Box::new(move |_, crash| {
            let store = Arc::new(CrashingStore::new(memory.clone(), crash));
            (store.clone(), vec![store as Arc<dyn Counted>])
        })
    });
}

#[test]
fn a_directory_that_fails_one_rank_fails_all_ranks_alike() {
    strike_everywhere("directory", || {
        let dir = tempfile::tempdir().unwrap();
        Box::new(move |comm, crash| {
            let open = |access| Hdf5Store::open(dir.path(), "solve", access).unwrap();
            let first = (comm.rank() == 0).then(|| open(Access::Write));
            comm.barrier().unwrap();
            let store = Arc::new(CrashingStore::new(first.unwrap_or_else(|| open(Access::Join)), crash));
            (store.clone(), vec![store as Arc<dyn Counted>])
        })
    });
}

#[test]
fn tiers_that_fail_one_rank_fail_all_ranks_alike() {
    for is_behind in [false, true] {
        strike_everywhere(if is_behind { "tiers behind" } else { "tiers" }, move || {
            let dir = tempfile::tempdir().unwrap();
            let slower = MemoryStore::new();
            Box::new(move |comm, crash| {
                let node = dir.path().join(format!("node-{}", comm.rank()));
                let memory = Arc::new(CrashingStore::new(NodeStore::new(node, comm.rank()), crash));
                let slower = Arc::new(CrashingStore::new(slower.clone(), crash));
                let counted: Vec<Arc<dyn Counted>> = vec![memory.clone(), slower.clone()];
                let tier =
                    |name: &str, store, every| Tier { name: name.to_owned(), store, every, keep: 2, max_bytes: None };
                let tiers = Tiers::new(vec![tier("memory", memory, 1), tier("slower", slower, 2)], comm.rank());
                (Arc::new(if is_behind { tiers.behind(WhenBusy::Wait) } else { tiers }), counted)
            })
        });
    }
}

/// A name that is registered twice is found out on one rank alone: on rank 0 while it decides,
/// elsewhere while it stages.
#[test]
fn variables_that_one_rank_cannot_register_stop_all_ranks() {
    for victim in 0..RANKS {
        let what = format!("rank {victim}");
        let memory = MemoryStore::new();
        let ended = watched(&what, move |comm| {
            let memory = memory.clone();
            let open = move |_: &Threads, _| (Arc::new(memory.clone()) as Arc<dyn Store>, Vec::new());
            run_with(&open, comm, Crash::Never, comm.rank() == victim).0
        });
        assert_agreed(&what, &ended);
        assert_eq!(ended[0].last().map(String::as_str), Some("step: refused"), "{what}");
    }
}

/// A rank whose staged values were refused left the others in the gather that follows, and lost a
/// staging buffer: the third such call waited without end for a free one.
#[test]
fn checkpoints_that_one_rank_cannot_stage_are_refused_on_all_and_cost_no_memory() {
    // One norm too many, and an iterate that is shorter than A has rows.
    for (norms, len) in [(vec![1.0; 2], N), (Vec::new(), N - 1)] {
        let ended = watched(&format!("{norms:?}, {len} values"), move |comm| {
            let mut session = session_of(comm, Arc::new(Doubling::new(comm, u64::MAX))).unwrap();
            let is_odd_one = comm.rank() == 1;
            let mut save = |iteration: u64, is_wrong: bool| {
                let mut x = vec![0.5; if is_wrong { len } else { N }];
                let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows_of(comm));
                let column_norms = if is_wrong { norms.clone() } else { Vec::new() };
                let known = KnownNorms { column_norms, ..KnownNorms::default() };
                session.checkpoint_with_norms(lossy(), at(iteration), &[&owner], known).map(|_| session.wait().is_ok())
            };
            let verdicts: Vec<bool> = (1..=3).map(|iteration| save(iteration, is_odd_one).is_ok()).collect();
            (verdicts, save(4, false).unwrap())
        });
        assert!(ended.iter().all(|verdicts| *verdicts == (vec![false; 3], true)), "{len} values: {ended:?}");
    }
}

/// A rank that was refused a system left the others in the sums of its norms.
#[test]
fn system_that_one_rank_begins_out_of_order_is_begun_on_none() {
    let ended = watched("systems", |comm| {
        let operator = Arc::new(Doubling::new(comm, u64::MAX));
        let builder = recoup::open("unused").systems().plan(lossy()).every(1);
        let mut session = builder.build_with(Arc::new(MemoryStore::new()), comm).unwrap();
        let mut begin = |index| {
            let problem = Reference::new(operator.clone(), vec![1.0; N].into());
            session.begin_system(index, problem).is_ok()
        };
        [begin(5), begin(if comm.rank() == 1 { 4 } else { 6 }), begin(7)]
    });
    assert_eq!(ended, [[true, false, true]; RANKS]);
}

/// A memory directory that one machine lacks, or where something else lies.
#[test]
fn tiers_that_one_rank_cannot_open_or_clear_are_refused_on_all() {
    for victim in 0..RANKS {
        let [opened, cleared, healed] = watched(&format!("rank {victim}"), move |comm| {
            let dir = tempfile::tempdir().unwrap();
            let memory_dir = dir.path().join("memory");
            let list = TierList { memory: true, ..TierList::default() };
            let tiers = TierOptions { memory_dir: memory_dir.clone(), ..TierOptions::from(list) };
            let place = RunPlace { dir: None, name: "solve" };
            let costs = TierCosts {
                mtti_seconds: 3600.0,
                bytes: None,
                pfs_bytes_per_second: None,
                keep: 2,
                max_bytes: None,
                synchronous: true,
            };
            if comm.rank() != victim {
                std::fs::create_dir(&memory_dir).unwrap();
            }
            let opened = tiers.open(None, place, costs, comm).is_ok();
            std::fs::create_dir_all(&memory_dir).unwrap();
            let healed = tiers.open(None, place, costs, comm).is_ok();
            if comm.rank() == victim {
                std::fs::remove_dir_all(&memory_dir).unwrap();
                std::fs::write(&memory_dir, "no directory").unwrap();
            }
            [opened, tiers.clear(place, &recoup::cache::Dispensable::given_up(), comm).is_ok(), healed]
        })
        .into_iter()
        .reduce(|first, other| {
            assert_eq!(first, other, "rank {victim}");
            first
        })
        .unwrap();
        assert!(!opened && healed && !cleared, "rank {victim}: {opened}, {healed}, {cleared}");
    }
}

/// Twice the identity, whose n-th product fails on one rank: a callback of the program, say.
struct Doubling {
    first_row: u64,
    left: AtomicU64,
}

impl Doubling {
    /// The rows of one rank, the last of whose products fails.
    fn new(comm: &Threads, products: u64) -> Self {
        Self { first_row: (comm.rank() * N) as u64, left: AtomicU64::new(products) }
    }
}

impl Operator for Doubling {
    fn rows(&self) -> usize {
        N
    }

    fn first_row(&self) -> u64 {
        self.first_row
    }

    fn global_rows(&self) -> u64 {
        (RANKS * N) as u64
    }

    fn nonzeros(&self) -> u64 {
        N as u64
    }

    fn bytes(&self) -> u64 {
        8 * N as u64
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            return Err(CommError::Callback { what: "operator", code: 7 });
        }
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        Ok(())
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(vec![2.0; N])
    }

    fn abs_apply(&self, x: &[f64], y: &mut [f64]) -> Option<Result<(), CommError>> {
        Some(self.apply(x, y))
    }

    fn fingerprint(&self) -> u64 {
        1
    }
}

fn lossy() -> Plan {
    Plan { codec: CodecId::Qb, rule: BoundRule::Verified, resume: Resume::Deflated, ..plan(Scheme::Lossy) }
}

fn rows_of(comm: &Threads) -> Distribution {
    Distribution::Rows { first: (comm.rank() * N) as u64, global: (RANKS * N) as u64 }
}

fn at(iteration: u64) -> Progress {
    Progress::running(iteration, 1e-2, 1.0)
}

/// A session that measures what it saves.
fn session_of(comm: &Threads, operator: Arc<Doubling>) -> Result<Session, recoup::Error> {
    let builder = recoup::open("unused").system(operator, vec![1.0; N].into()).plan(lossy()).every(1);
    builder.build_with(Arc::new(MemoryStore::new()), comm)
}

/// Opens a session that measures what it saves, and saves. Returns the verdicts, and the number of
/// products that are left.
fn measured(comm: &Threads, rule: BoundRule, products: u64) -> (Vec<String>, u64) {
    let operator = Arc::new(Doubling::new(comm, products));
    let rhs: Arc<[f64]> = vec![1.0; N].into();
    let builder = recoup::open("unused").system(operator.clone(), rhs).plan(Plan { rule, ..lossy() }).every(1);
    let Ok(mut session) = builder.build_with(Arc::new(MemoryStore::new()), comm) else {
        return (vec!["open: refused".to_owned()], 0);
    };
    let mut verdicts = Vec::new();
    let rows = rows_of(comm);
    for iteration in 1..=2 {
        let mut x: Vec<f64> = (0..N).map(|i| 0.5 + 1e-3 * (i as f64 + iteration as f64).sin()).collect();
        let mut p: Vec<f64> = x.iter().map(|x| x - 0.5).collect();
        let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
        let owner = owner.with("p", Role::Direction, ValuesMut::F64(&mut p), rows);
        let taken = session.step_with(at(iteration), &[&owner]).and_then(|_| session.wait());
        tell(&mut verdicts, "step", taken.map(|()| outcomes(&mut session)));
    }
    (verdicts, operator.left.load(Ordering::Acquire))
}

/// The other ranks used to wait for this rank's share of a sum.
#[test]
fn a_product_that_fails_on_one_rank_fails_on_all() {
    const PLENTY: u64 = 1000;
    for rule in [BoundRule::Verified, BoundRule::Corrected] {
        let undisturbed = watched("undisturbed", move |comm| measured(comm, rule, PLENTY));
        let products = PLENTY - undisturbed[0].1;
        assert!(products > 5 && undisturbed[0].0.iter().all(|verdict| verdict.ends_with("saved")), "{undisturbed:?}");
        for (victim, nth) in (0..RANKS).flat_map(|victim| (1..=products).map(move |nth| (victim, nth))) {
            let what = format!("{rule}, product {nth} of rank {victim}");
            let of = move |rank: usize| if rank == victim { nth } else { PLENTY };
            let ended = watched(&what, move |comm| measured(comm, rule, of(comm.rank())).0);
            assert_agreed(&what, &ended);
            assert!(ended[0].iter().any(|verdict| !verdict.ends_with("saved")), "{what}: {ended:?}");
        }
    }
}
