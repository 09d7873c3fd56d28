//! Does a directory ever hold more versions than it should, whatever is saved and however often the
//! run fails?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup::cache::{Tiers, WhenBusy};
use recoup::comm::{Solo, Threads};
use recoup::core::{CodecId, Comm, Distribution, Iteration, Plan, Resume, Role, Scheme, Store, Tier, ValuesMut};
use recoup::io::MemoryStore;
use recoup::model::Rng;
use recoup::model::failures::AtIterations;
use recoup::pipeline::{Outcome, RunLimits, Runner, Session, Variables};
use recoup::solvers::{METHODS, MethodInputs, NamedMethod, Stop};
use recoup_testkit::crashing_store::{Crash, CrashingStore};
use recoup_testkit::progress;

use crate::support::{Problem, built_codecs, fixed, plan, runner};

/// Numbers of versions that a store keeps.
#[derive(Clone, Copy, Debug)]
struct Kept {
    keep: usize,
    key_every: usize,
}

/// Solves, saving as often as the method allows, and counts the versions after every iteration.
/// Returns the number of recoveries.
fn count_versions(problem: &Problem, method: &NamedMethod, plan: Plan, kept: Kept) -> u64 {
    let Kept { keep, key_every } = kept;
    // The relaxation suits Jacobi, too, which diverges far above 1.
    let inputs = MethodInputs { omega: 0.9, restart: 6, harvest: 2, ..problem.inputs(Stop::at(1e-10)) };
    let store = MemoryStore::new();
    let builder = problem.builder(Path::new("unused"), plan, 1).keep(keep).key_every(key_every).synchronous(true);
    let counted = store.clone();
    let name = method.name;
    let count = move || {
        let there = counted.versions().unwrap();
        let limit = keep + key_every;
        assert!(there.len() <= limit, "{name}, {plan:?}: at most {limit} versions expected, {there:?} found");
    };
    let counts = count.clone();
    let mut runner = Runner {
        watch: Box::new(move |_, _| counts()),
        ..runner(
            Some(builder.build_with(Arc::new(store), &Solo).unwrap()),
            AtIterations::new(&[4, 6, 9, 11, 12, 14, 15, 17]),
            RunLimits { iterations: 40, executed: 400 },
        )
    };
    let make = || (method.make)(&inputs).map(|solver| solver as Box<dyn Iteration>);
    let report = runner.run(&mut { make }).unwrap();
    count();
    report.recoveries
}

/// One failure used to be enough for a store to keep every version to the end of the solve: the
/// direction that a recovery adds was keyed at another time than the iterate, so some variable
/// followed in every version.
#[test]
fn versions_are_bounded_for_every_method_state_and_codec_through_eight_recoveries() {
    let small = Problem::poisson(6);
    let codecs = built_codecs();
    for (method, &codec) in METHODS.iter().flat_map(|method| codecs.iter().map(move |codec| (method, codec))) {
        let lossy = Plan { codec, ..plan(Scheme::Lossy) };
        for state in [lossy, Plan { resume: Resume::Deflated, ..lossy }, Plan { codec, ..plan(Scheme::Exact) }] {
            let recoveries = count_versions(&small, method, state, Kept { keep: 2, key_every: 4 });
            // A breakdown on the way is gone back from, too. A solve that converges within the
            // failures, in cycles of few safe points, sees fewer of them.
            let has_cycles = (method.make)(&small.inputs(Stop::at(1e-10))).unwrap().cycle_length() > 1;
            assert!(recoveries >= 8 || has_cycles, "{}, {state:?}: {recoveries} recoveries", method.name);
        }
    }
    for method in METHODS {
        let deflated = Plan { resume: Resume::Deflated, ..fixed(CodecId::Qb, 1e-9) };
        count_versions(&small, method, deflated, Kept { keep: 1, key_every: 2 });
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
    slower: Option<SlowerTier>,
    is_behind: bool,
}

/// A second tier.
#[derive(Clone, Copy, Debug)]
struct SlowerTier {
    /// Versions from one that it takes to the next.
    every: u64,
    /// Versions that it keeps.
    keep: usize,
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
            Some(SlowerTier { every, keep: slower_keep }) => {
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
        let slower = slower.map(|tier| (&self.slower, tier.keep));
        for (store, keep) in [(&self.memory, keep)].into_iter().chain(slower) {
            let there = store.versions().unwrap();
            let limit = keep + key_every;
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

/// One rank of a process: it resumes from the version it finds, saves, and falls back now and then.
/// All choices but the values are the same on all ranks.
fn live(places: &Places, comm: &dyn Comm, seed: u64, life: u64, crash: Crash) {
    let mut rng = Rng::new(seed.wrapping_mul(31) + life);
    let Some(mut session) = places.session(comm, crash) else { return };
    let codecs = built_codecs();
    let mut at = 0;
    let mut names = 1;
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
        let codec = codecs[rng.next_u64() as usize % codecs.len()];
        let plan = match rng.next_u64() % 12 {
            0 => Plan { codec: CodecId::Zstd, ..plan(Scheme::Lossless) },
            1..=3 => fixed(codec, 1e-6),
            _ => fixed(CodecId::Qb, 1e-6),
        };
        let mut variables: Vec<_> = (0..names).map(|name| values(seed, comm.rank(), name, at)).collect();
        let progress = progress(at);
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
    let slower = (below(2) == 0).then(|| SlowerTier { every: 1 + below(3), keep: 1 + below(2) as usize });
    let keep = 1 + below(3) as usize;
    let key_every = 1 + below(5) as usize;
    let places = Places::new(Protection { keep, key_every, slower, is_behind: below(2) == 0 });
    let usual = 1 + below(3) as usize;
    for life in 0..8 {
        let ranks = if below(4) == 0 { 1 + below(3) as usize } else { usual };
        let crash = match below(3) {
            0 if ranks == 1 => Crash::From(below(150)),
            1 if ranks == 1 => Crash::At(below(150)),
            _ => Crash::Never,
        };
        Threads::launch(ranks, |comm| live(&places, &comm, seed, life, crash));
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

/// Saves versions 1 to 30 of a slow state and looks at the bytes after each. Returns the versions
/// that were dropped.
fn save_within(max_bytes: u64, kept: Kept) -> (MemoryStore, Vec<u64>) {
    let Kept { keep, key_every } = kept;
    let store = MemoryStore::new();
    let builder = recoup::open("unused").plan(fixed(CodecId::Qb, 1e-6)).keep(keep).key_every(key_every);
    let mut session = builder.max_bytes(max_bytes).build_with(Arc::new(store.clone()), &Solo).unwrap();
    let mut dropped = Vec::new();
    for at in 1..=30 {
        let mut rough = Rng::new(5);
        let slow = |i: usize| 1e-4 * (i as f64 * 0.01 + at as f64 * 0.1).sin();
        let mut variables = vec![(0..10 * N).map(|i| rough.uniform() + slow(i)).collect::<Vec<f64>>()];
        let owner = NAMES.iter().zip(&mut variables).fold(Variables::new(), |owner, (name, x)| owner.iterate(name, x));
        let progress = progress(at);
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
    let (whole, dropped) = save_within(u64::MAX, Kept { keep: 30, key_every: 10 });
    assert!(dropped.is_empty() && whole.versions().unwrap().len() == 30);
    let key = bytes(&whole, 1);
    let follower = bytes(&whole, 2);
    assert!(2 * follower < key, "a version that follows is smaller: {follower} {key}");
    for max_bytes in [1, key / 2, key, key + follower, 2 * key, 3 * key, 5 * key, 7 * key] {
        for (keep, key_every) in [(1, 10), (2, 10), (30, 10), (30, 3), (5, 1)] {
            let (store, dropped) = save_within(max_bytes, Kept { keep, key_every });
            let there = store.versions().unwrap();
            assert!(dropped.iter().all(|version| !there.contains(version)), "{dropped:?} {there:?}");
            let is_tight = keep > 1 && max_bytes < keep as u64 * follower;
            assert!(!is_tight || !dropped.is_empty(), "{max_bytes} bytes, keep {keep}: {there:?}");
        }
    }
    // Where two keys fit, versions follow each other still.
    let (store, _) = save_within(3 * key, Kept { keep: 1, key_every: 10 });
    let follows = |&version: &u64| !store.manifest(version).unwrap().parents().is_empty();
    assert!(store.versions().unwrap().iter().any(follows));
}
