//! Does a directory ever hold more versions than it should, whatever is saved and however often the
//! run fails?

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use recoup::SystemClock;
use recoup::cache::{Tiers, WhenBusy};
use recoup::comm::{Solo, Threads};
use recoup::core::{
    CodecId, Comm, Distribution, Iteration, Plan, Progress, Resume, Role, Scheme, SolveError, Status, Store, Tier,
    ValuesMut,
};
use recoup::io::MemoryStore;
use recoup::model::Rng;
use recoup::model::failures::AtIterations;
use recoup::pipeline::{Outcome, RunLimits, Runner, Session, Timing, Variables};
use recoup::solvers::{
    Bicgstab, Cg, Csr, GaussSeidel, Gmres, GmresOptions, Jacobi, JacobiPreconditioner, PipelinedCg, Pool, Relaxation,
    RightHandSide, Side, Stop, System,
};
use recoup_testkit::crashing_store::{Crash, CrashingStore};

use crate::support::{fixed, plan};

const METHODS: [&str; 10] =
    ["jacobi", "gauss-seidel", "sor", "ssor", "cg", "cg-restarted", "pipecg", "gmres", "gmres-dr", "bicgstab"];
const CODECS: [CodecId; 4] = [CodecId::Qb, CodecId::Pco, CodecId::Zfp, CodecId::Zstd];

/// A small problem, and every method on it.
struct Small {
    a: Arc<Csr>,
    b: Arc<[f64]>,
    m: JacobiPreconditioner,
    pool: Pool,
    x0: Vec<f64>,
}

impl Small {
    fn new() -> Self {
        let a = Arc::new(Csr::poisson3d(6));
        let b: Arc<[f64]> = RightHandSide::Random { seed: 3 }.build(a.as_ref()).unwrap().into();
        let m = JacobiPreconditioner::new(a.as_ref()).unwrap();
        let x0 = vec![0.0; b.len()];
        Self { a, b, m, pool: Pool::new(1), x0 }
    }

    fn solver(&self, method: &str) -> Result<Box<dyn Iteration + '_>, SolveError> {
        let system = System { a: self.a.as_ref(), b: &self.b, comm: &Solo, pool: &self.pool };
        let (m, x, stop) = (&self.m, &self.x0[..], Stop::at(1e-10));
        let gmres = GmresOptions { restart: 6, side: Side::Left, stop };
        let sweeps = |relaxation| GaussSeidel::new(system, &self.a, relaxation, x, stop);
        Ok(match method {
            "jacobi" => Box::new(Jacobi::new(system, 1.0, x, stop)?),
            "gauss-seidel" => Box::new(sweeps(Relaxation::GaussSeidel)?),
            "sor" => Box::new(sweeps(Relaxation::Sor { omega: 1.2 })?),
            "ssor" => Box::new(sweeps(Relaxation::Ssor { omega: 1.2 })?),
            "cg" => Box::new(Cg::new(system, m, x, stop)?),
            "cg-restarted" => Box::new(Cg::new(system, m, x, stop)?.restarted_every(7)?),
            "pipecg" => Box::new(PipelinedCg::new(system, m, x, stop)?),
            "gmres" => Box::new(Gmres::new(system, m, x, gmres)?),
            "gmres-dr" => Box::new(Gmres::new(system, m, x, gmres)?.deflated(2)?),
            "bicgstab" => Box::new(Bicgstab::new(system, m, x, stop)?),
            other => panic!("no method {other}"),
        })
    }

    /// Solves, saving as often as the method allows, and counts the versions after every iteration;
    /// the recoveries.
    fn count_versions(&self, method: &str, plan: Plan, (keep, key_every): (usize, usize)) -> u64 {
        let store = MemoryStore::new();
        let builder = recoup::open("unused").system(self.a.clone(), self.b.clone()).plan(plan).every(1).keep(keep);
        let builder = builder.key_every(key_every).synchronous(true);
        let counted = store.clone();
        let count = move || {
            let there = counted.versions().unwrap();
            let limit = keep + key_every;
            assert!(there.len() <= limit, "{method}, {plan:?}: at most {limit} versions expected, {there:?} found");
        };
        let counts = count.clone();
        let mut runner = Runner {
            session: Some(builder.build_with(Arc::new(store), &Solo).unwrap()),
            failures: Box::new(AtIterations::new(&[4, 6, 9, 11, 12, 14, 15, 17])),
            clock: Arc::new(SystemClock::new()),
            timing: Timing::Real,
            stop: Arc::new(AtomicBool::new(false)),
            stop_plan: None,
            last_plan: None,
            limits: RunLimits { iterations: 40, executed: 400 },
            watch: Box::new(move |_, _| counts()),
        };
        let report = runner.run(&mut || self.solver(method)).unwrap();
        count();
        report.recoveries
    }
}

/// One failure used to be enough for a store to keep every version to the end of the solve: the
/// direction that a recovery adds was keyed at another time than the iterate, so some variable
/// followed in every version.
#[test]
fn versions_are_bounded_for_every_method_state_and_codec_through_eight_recoveries() {
    let small = Small::new();
    for method in METHODS {
        for codec in CODECS {
            let lossy = Plan { codec, ..plan(Scheme::Lossy) };
            for state in [lossy, Plan { resume: Resume::Deflated, ..lossy }, Plan { codec, ..plan(Scheme::Exact) }] {
                let recoveries = small.count_versions(method, state, (2, 4));
                // A breakdown on the way is gone back from, too.
                assert!(recoveries >= 8 || method.starts_with("gmres"), "{method}, {state:?}: {recoveries} recoveries");
            }
        }
        small.count_versions(method, Plan { resume: Resume::Deflated, ..fixed(CodecId::Qb, 1e-9) }, (1, 2));
    }
}

/// Values of a variable on this rank.
const N: usize = 400;
/// The iterate, the direction, and one direction for each recovery.
const NAMES: [&str; 10] = ["x", "p", "w0", "w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// How a run of several lives is protected.
#[derive(Clone, Copy, Debug)]
struct Protection {
    keep: usize,
    key_every: usize,
    /// Every so many versions go to a second tier, which keeps so many.
    slower: Option<(u64, usize)>,
    is_behind: bool,
}

/// The stores of a run, which outlive its processes.
struct Places {
    protection: Protection,
    memory: MemoryStore,
    slower: MemoryStore,
}

impl Places {
    fn new(protection: Protection) -> Self {
        Self { protection, memory: MemoryStore::new(), slower: MemoryStore::new() }
    }

    fn session(&self, comm: &dyn Comm, crash: Crash) -> Option<Session> {
        let Protection { keep, key_every, slower, is_behind } = self.protection;
        let memory = Arc::new(CrashingStore::new(self.memory.clone(), crash));
        let store: Arc<dyn Store> = match slower {
            None => memory,
            Some((every, slower_keep)) => {
                let tier = |name: &str, store, every, keep| Tier {
                    name: name.to_owned(),
                    store,
                    every,
                    keep,
                    max_bytes: None,
                };
                let slower = tier("slower", Arc::new(self.slower.clone()), every, slower_keep);
                let tiers = Tiers::new(vec![tier("memory", memory, 1, keep), slower], comm.rank());
                Arc::new(if is_behind { tiers.behind(WhenBusy::Wait) } else { tiers })
            }
        };
        let builder = recoup::open("unused").plan(fixed(CodecId::Qb, 1e-6)).keep(keep).key_every(key_every);
        builder.build_with(store, comm).ok()
    }

    fn assert_bounded(&self, what: &str) {
        let Protection { keep, key_every, slower, .. } = self.protection;
        let slower = slower.map(|(_, keep)| (&self.slower, keep));
        for (store, keep) in [(&self.memory, keep)].into_iter().chain(slower) {
            let (there, limit) = (store.versions().unwrap(), keep + key_every);
            assert!(there.len() <= limit, "{what}: at most {limit} versions expected, {there:?} found");
        }
    }

    /// The variables of the newest version.
    fn names(&self) -> usize {
        let newest = |store: &MemoryStore| store.versions().unwrap().last().copied();
        let store = if newest(&self.memory) >= newest(&self.slower) { &self.memory } else { &self.slower };
        let Some(version) = newest(store) else { return 1 };
        let manifest = store.manifest(version).unwrap();
        NAMES.iter().filter(|name| manifest.variables.iter().any(|v| v.name == **name)).count()
    }
}

/// A variable of a rank: the same as before but for little, or, one time in three, altogether
/// another, so that each frame chooses for itself whether it follows.
fn values(seed: u64, rank: usize, name: usize, iteration: u64) -> Vec<f64> {
    let mut rng = Rng::new(seed ^ (rank as u64) << 8 ^ (name as u64) << 16 ^ iteration << 24);
    let base = if rng.next_u64().is_multiple_of(3) { rng.next_u64() } else { seed ^ name as u64 };
    let mut rough = Rng::new(base);
    (0..N).map(|i| rough.uniform() + 1e-4 * (i as f64 * 0.01 + iteration as f64 * 0.1).sin()).collect()
}

fn owners<'a>(comm: &dyn Comm, variables: &'a mut [Vec<f64>]) -> Variables<'a> {
    let rows = Distribution::Rows { first: (comm.rank() * N) as u64, global: (comm.size() * N) as u64 };
    let named = NAMES.iter().zip(variables);
    named.fold(Variables::new(), |owner, (name, x)| owner.with(name, Role::Iterate, ValuesMut::F64(x), rows))
}

/// One process of so many ranks: it goes on from what it finds, saves, and falls back now and then.
/// All choices but the values are the same on all ranks.
fn live(places: &Places, comm: &dyn Comm, (seed, life): (u64, u64), crash: Crash) {
    let mut rng = Rng::new(seed.wrapping_mul(31) + life);
    let Some(mut session) = places.session(comm, crash) else { return };
    let (mut at, mut names) = (0, 1);
    for step in 0..12 {
        if step == 0 || rng.next_u64().is_multiple_of(6) {
            comm.barrier().unwrap();
            names = places.names();
            let mut variables = vec![vec![0.0; N]; names];
            if session.lose_memory(std::time::Duration::ZERO).is_err() {
                return;
            }
            at = match session.restore_with(&mut [&mut owners(comm, &mut variables)]) {
                Ok(restored) => restored.map_or(0, |restored| restored.version),
                Err(_) if session.start_over().is_ok() => 0,
                Err(_) => return,
            };
            names = if rng.next_u64().is_multiple_of(5) { 1 } else { (names + 1).min(NAMES.len()) };
        }
        at += 1 + rng.next_u64() % 3;
        let codec = CODECS[(rng.next_u64() % 4) as usize];
        let plan = match rng.next_u64() % 12 {
            0 => Plan { codec: CodecId::Zstd, ..plan(Scheme::Lossless) },
            1..=3 => fixed(codec, 1e-6),
            _ => fixed(CodecId::Qb, 1e-6),
        };
        let mut variables: Vec<_> = (0..names).map(|name| values(seed, comm.rank(), name, at)).collect();
        let progress =
            Progress { iteration: at, residual_norm: 1.0, rhs_norm: 1.0, status: Status::Running, is_safe_point: true };
        if session.checkpoint(plan, progress, &[&owners(comm, &mut variables)]).is_err() || session.wait().is_err() {
            return;
        }
        if comm.rank() == 0 {
            places.assert_bounded(&format!("seed {seed}, life {life}, version {at}"));
        }
    }
}

/// Lives of one run: the processes end as they like, some by a crash of their store, and come back
/// with other ranks.
fn lives(seed: u64, longest: &AtomicUsize) {
    let mut rng = Rng::new(seed);
    let mut below = |n: u64| rng.next_u64() % n;
    let slower = (below(2) == 0).then(|| (1 + below(3), 1 + below(2) as usize));
    let (keep, key_every) = (1 + below(3) as usize, 1 + below(5) as usize);
    let places = Places::new(Protection { keep, key_every, slower, is_behind: below(2) == 0 });
    let usual = 1 + below(3) as usize;
    for life in 0..8 {
        let ranks = if below(4) == 0 { 1 + below(3) as usize } else { usual };
        let crash = match below(3) {
            0 if ranks == 1 => Crash::From(below(150)),
            1 if ranks == 1 => Crash::At(below(150)),
            _ => Crash::Never,
        };
        Threads::launch(ranks, |comm| live(&places, &comm, (seed, life), crash));
        places.assert_bounded(&format!("seed {seed}, after life {life}"));
        longest.fetch_max(places.memory.versions().unwrap().len().saturating_sub(keep), Ordering::Relaxed);
    }
}

/// Variables come and go, each frame on each rank follows as it likes, codecs change, a slower tier
/// takes every n-th version, processes end, lose their store or come back with other ranks.
#[test]
fn versions_are_bounded_through_restarts_kills_and_tiers() {
    let longest = AtomicUsize::new(0);
    (0..150).for_each(|seed| lives(seed, &longest));
    assert!(longest.into_inner() >= 3, "chains were at work");
}

/// Bytes of a version, as the limit counts them.
fn bytes(store: &MemoryStore, version: u64) -> u64 {
    let manifest = store.manifest(version).unwrap();
    manifest.payload_bytes() + serde_json::to_vec(&manifest).unwrap().len() as u64
}

/// Saves versions 1 to 30 of a slow state and looks at the bytes after each; the versions that were
/// dropped.
fn save_within(max_bytes: u64, (keep, key_every): (usize, usize)) -> (MemoryStore, Vec<u64>) {
    let store = MemoryStore::new();
    let builder = recoup::open("unused").plan(fixed(CodecId::Qb, 1e-6)).keep(keep).key_every(key_every);
    let mut session = builder.max_bytes(max_bytes).build_with(Arc::new(store.clone()), &Solo).unwrap();
    let mut dropped = Vec::new();
    for at in 1..=30 {
        let mut rough = Rng::new(5);
        let slow = |i: usize| 1e-4 * (i as f64 * 0.01 + at as f64 * 0.1).sin();
        let mut variables = vec![(0..10 * N).map(|i| rough.uniform() + slow(i)).collect::<Vec<f64>>()];
        let owner = NAMES.iter().zip(&mut variables).fold(Variables::new(), |owner, (name, x)| owner.iterate(name, x));
        let progress =
            Progress { iteration: at, residual_norm: 1.0, rhs_norm: 1.0, status: Status::Running, is_safe_point: true };
        session.checkpoint(fixed(CodecId::Qb, 1e-6), progress, &[&owner]).unwrap();
        session.wait().unwrap();
        for outcome in session.take_outcomes() {
            let Outcome::Saved(saved) = outcome else { panic!("{outcome:?}") };
            dropped.extend(saved.dropped);
        }
        let there = store.versions().unwrap();
        assert_eq!(there.last(), Some(&at), "the last version is never dropped");
        let taken: u64 = there.iter().map(|&version| bytes(&store, version)).sum();
        assert!(taken <= max_bytes || there.len() == 1, "{taken} bytes of {max_bytes} in {there:?}");
    }
    (store, dropped)
}

/// Whether the limit is below one version or above all of them: what is there fits, unless it is a
/// single version.
#[test]
fn bytes_are_bounded_and_the_last_version_stays() {
    let (whole, dropped) = save_within(u64::MAX, (30, 10));
    assert!(dropped.is_empty() && whole.versions().unwrap().len() == 30);
    let (key, follower) = (bytes(&whole, 1), bytes(&whole, 2));
    assert!(2 * follower < key, "a version that follows is smaller: {follower} {key}");
    for max_bytes in [1, key / 2, key, key + follower, 2 * key, 3 * key, 5 * key, 7 * key] {
        for (keep, key_every) in [(1, 10), (2, 10), (30, 10), (30, 3), (5, 1)] {
            let (store, dropped) = save_within(max_bytes, (keep, key_every));
            let there = store.versions().unwrap();
            assert!(dropped.iter().all(|version| !there.contains(version)), "{dropped:?} {there:?}");
            let is_tight = keep > 1 && max_bytes < keep as u64 * follower;
            assert!(!is_tight || !dropped.is_empty(), "{max_bytes} bytes, keep {keep}: {there:?}");
        }
    }
    // Where two keys fit, versions follow each other still.
    let (store, _) = save_within(3 * key, (1, 10));
    let follows = |&version: &u64| !store.manifest(version).unwrap().parents().is_empty();
    assert!(store.versions().unwrap().iter().any(follows));
}
