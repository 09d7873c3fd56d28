//! Does a version that is coded against the one before come back as surely as one that stands
//! alone?

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::VirtualClock;
use recoup::comm::{Solo, Threads};
use recoup::core::{
    CodecId, Comm, Distribution, FrameRecord, Manifest, Operator, Plan, Role, Scheme, Store, ValuesMut,
};
use recoup::io::{Access, Hdf5Store, MemoryStore};
use recoup::model::failures::AtIterations;
use recoup::pipeline::{
    ChainReader, Codecs, Ended, EventKind, Outcome, PipelineError, Session, Timing, Variables, VirtualCosts,
};
use recoup_testkit::crashing_store::{Crash, CrashingStore};
use recoup_testkit::folders::copy_tree;
use recoup_testkit::progress;

use crate::support::{Problem, fixed, following_codecs, plan};

/// The absolute bound of every version here.
const E: f64 = 1e-6;
const N: usize = 5000;

/// Rough in space, so that it takes many bytes alone, and slow in time, so that it takes few beside
/// the state before.
fn state(rank: usize, iteration: u64) -> Vec<f64> {
    let rough = |i: usize| (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / u64::MAX as f64;
    let slow = |i: usize| 1e-4 * (i as f64 * 0.01 + iteration as f64 * 0.1).sin();
    (0..N).map(|i| rough(i + rank * N) + slow(i)).collect()
}

/// Saves every iteration in `iterations`, waiting for each; the outcomes.
fn save(session: &mut Session, iterations: impl IntoIterator<Item = u64>) -> Vec<Outcome> {
    for iteration in iterations {
        let mut x = state(0, iteration);
        let owner = Variables::new().iterate("x", &mut x);
        session.checkpoint(fixed_plan(CodecId::Qb), progress(iteration), &[&owner]).unwrap();
    }
    session.wait().unwrap();
    session.take_outcomes()
}

fn fixed_plan(codec: CodecId) -> Plan {
    fixed(codec, E)
}

/// Version and values a fresh session restores, and the damage it passed over.
fn restore(session: &mut Session) -> Result<(u64, Vec<f64>, Vec<String>), PipelineError> {
    let mut x = vec![0.0; N];
    let restored = session.restore_with(&mut [&mut Variables::new().iterate("x", &mut x)])?.unwrap();
    let damage = restored.skipped.into_iter().flat_map(|s| s.damage).collect();
    Ok((restored.version, x, damage))
}

fn assert_within_bound(x: &[f64], version: u64, rank: usize) {
    let worst = x.iter().zip(state(rank, version)).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
    assert!(worst <= E, "version {version}: {worst}");
}

/// A session on a directory, all versions kept, keys as far apart as asked.
fn open(dir: &Path, key_every: usize) -> Session {
    recoup::open(dir).plan(fixed_plan(CodecId::Qb)).key_every(key_every).keep(100).build().unwrap()
}

fn manifests(store: &dyn Store) -> Vec<Manifest> {
    store.versions().unwrap().into_iter().map(|version| store.manifest(version).unwrap()).collect()
}

fn parents(store: &dyn Store) -> Vec<(u64, Vec<u64>)> {
    manifests(store).into_iter().map(|m| (m.version, m.parents().into_iter().collect())).collect()
}

fn reading(dir: &Path) -> Hdf5Store {
    Hdf5Store::open(dir, "solve", Access::Read).unwrap()
}

fn version_dir(dir: &Path, version: u64) -> PathBuf {
    dir.join("solve").join(format!("v{version:012}"))
}

fn rank_file(dir: &Path, version: u64, rank: usize) -> PathBuf {
    version_dir(dir, version).join(format!("rank-{rank:06}.h5"))
}

/// Every version, the newest removed after each restore; with a key every four versions and never
/// again.
#[test]
fn every_version_of_a_chain_comes_back_within_its_bound() {
    for codec in following_codecs() {
        for key_every in [4, 100] {
            let dir = tempfile::tempdir().unwrap();
            let builder = || recoup::open(dir.path()).plan(fixed_plan(codec)).key_every(key_every).keep(100);
            let mut session = builder().build().unwrap();
            for iteration in 1..=10 {
                let mut x = state(0, iteration);
                let owner = Variables::new().iterate("x", &mut x);
                session.checkpoint(fixed_plan(codec), progress(iteration), &[&owner]).unwrap();
            }
            drop(session);
            for (version, parents) in parents(&reading(dir.path())) {
                let is_key = (version - 1).is_multiple_of(key_every as u64);
                assert_eq!(parents, if is_key { vec![] } else { vec![version - 1] }, "{codec}, version {version}");
            }
            for version in (1..=10).rev() {
                let (restored, x, _) = restore(&mut builder().build().unwrap()).unwrap();
                assert_eq!(restored, version, "{codec}");
                assert_within_bound(&x, version, 0);
                fs::remove_dir_all(version_dir(dir.path(), version)).unwrap();
            }
        }
    }
}

/// Any link of a chain damaged in any way: the last version before it comes back, and whatever
/// hangs on the link is passed over with the version named that is to blame.
#[test]
fn a_damaged_link_costs_what_hangs_on_it_and_is_named() {
    let whole = tempfile::tempdir().unwrap();
    save(&mut open(whole.path(), 100), [5, 10, 15, 20]);
    type Spoil = fn(&Path, u64);
    let damages: [(&str, Spoil); 5] = [
        ("flipped bit", |dir, version| {
            let manifest = reading(dir).manifest(version).unwrap();
            let place = manifest.frames[0].place.clone().unwrap();
            let path = version_dir(dir, version).join(&place.file);
            let mut bytes = fs::read(&path).unwrap();
            bytes[place.offset as usize + 100] ^= 16;
            fs::write(path, bytes).unwrap();
        }),
        ("short file", |dir, version| {
            let bytes = fs::read(rank_file(dir, version, 0)).unwrap();
            fs::write(rank_file(dir, version, 0), &bytes[..60]).unwrap();
        }),
        ("no file", |dir, version| fs::remove_file(rank_file(dir, version, 0)).unwrap()),
        ("no manifest", |dir, version| fs::remove_file(version_dir(dir, version).join("manifest.json")).unwrap()),
        ("no version", |dir, version| fs::remove_dir_all(version_dir(dir, version)).unwrap()),
    ];
    for (what, damage) in damages {
        for link in [5, 10, 15, 20] {
            let dir = tempfile::tempdir().unwrap();
            copy_tree(whole.path(), dir.path());
            damage(dir.path(), link);
            let is_there = version_dir(dir.path(), link).exists();
            let passed_over = (20 - link) as usize / 5 + usize::from(is_there);
            let blamed = match restore(&mut open(dir.path(), 100)) {
                Ok((version, x, blamed)) => {
                    assert_eq!(version, link - 5, "{what} in {link}");
                    assert_within_bound(&x, version, 0);
                    blamed
                }
                Err(PipelineError::NoUsable { versions }) if link == 5 => {
                    versions.into_iter().flat_map(|skipped| skipped.damage).collect()
                }
                Err(error) => panic!("{what} in {link}: {error}"),
            };
            assert_eq!(blamed.len(), passed_over, "{what} in {link}: {blamed:?}");
            let names_it = |line: &String| line.contains(&format!("version {link}"));
            assert!(blamed.iter().all(names_it), "{what} in {link}: {blamed:?}");
        }
    }
}

/// Somebody removed an older version under a running job: up to eight later ones were reported as
/// saved that nothing could decode, and the job could not continue from any of them.
#[test]
fn versions_are_saved_whole_after_any_link_of_their_chain_was_removed() {
    for ranks in [1, 2] {
        for link in [2, 3, 4] {
            let dir = tempfile::tempdir().unwrap();
            let manifests = Threads::launch(ranks, |comm| {
                let builder = recoup::open(dir.path()).plan(fixed_plan(CodecId::Qb)).key_every(100).keep(100);
                let mut session = builder.build_on(&comm).unwrap();
                let mut save = |versions: std::ops::RangeInclusive<u64>| {
                    for version in versions {
                        let mut x = state(comm.rank(), version);
                        let rows = Distribution::Rows { first: (comm.rank() * N) as u64, global: (ranks * N) as u64 };
                        let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
                        session.checkpoint(fixed_plan(CodecId::Qb), progress(version), &[&owner]).unwrap();
                    }
                    session.wait().unwrap();
                    session.take_outcomes().iter().for_each(|o| assert!(matches!(o, Outcome::Saved(_)), "{o:?}"));
                };
                save(1..=4);
                comm.barrier().unwrap();
                if comm.rank() == 0 {
                    fs::remove_dir_all(version_dir(dir.path(), link)).unwrap();
                }
                comm.barrier().unwrap();
                save(5..=6);
                drop(session);
                parents(&reading(dir.path()))
            });
            assert_eq!(manifests[0][3..], [(5, vec![]), (6, vec![5])], "{link} removed");
        }
    }
}

/// Payloads of a chain of versions that were waited for, and the values of the last, on `threads`
/// threads.
fn made_on(threads: usize) -> (Vec<Vec<u8>>, Vec<f64>) {
    let store = Arc::new(MemoryStore::new());
    let n = 60 * N;
    let builder = recoup::open("unused").plan(fixed_plan(CodecId::Qb)).key_every(3).keep(100).threads(threads);
    let mut session = builder.synchronous(true).build_with(store.clone(), &Solo).unwrap();
    for version in 1..=5 {
        let mut x: Vec<f64> = state(0, version).into_iter().cycle().take(n).collect();
        let owner = Variables::new().iterate("x", &mut x);
        session.checkpoint(fixed_plan(CodecId::Qb), progress(version), &[&owner]).unwrap();
    }
    session.wait().unwrap();
    let mut x = vec![0.0; n];
    session.restore_with(&mut [&mut Variables::new().iterate("x", &mut x)]).unwrap().unwrap();
    let payload = |(version, frame): (u64, FrameRecord)| {
        let mut payload = Vec::new();
        store.read(version, &frame, &mut payload).unwrap();
        payload
    };
    let frames = manifests(&*store).into_iter().flat_map(|m| m.frames.into_iter().map(move |frame| (m.version, frame)));
    (frames.map(payload).collect(), x)
}

#[test]
fn versions_and_what_comes_back_do_not_depend_on_threads() {
    let alone = made_on(1);
    assert_eq!(alone.0.len(), 5);
    for threads in [2, 3, 5, usize::MAX] {
        assert!(made_on(threads) == alone, "{threads} threads");
    }
}

/// Whatever is kept, what it needs is kept with it, and nothing else.
#[test]
fn retention_keeps_chains_whole_and_nothing_more() {
    for keep in 1..=5 {
        for key_every in 1..=6 {
            let store = Arc::new(MemoryStore::new());
            let builder = recoup::open("unused").plan(fixed_plan(CodecId::Qb)).key_every(key_every).keep(keep);
            let mut session = builder.build_with(store.clone(), &Solo).unwrap();
            for newest in 1..=14 {
                save(&mut session, [newest]);
                let there: BTreeSet<u64> = store.versions().unwrap().into_iter().collect();
                let mut needed: BTreeSet<u64> = (1..=newest).rev().take(keep).collect();
                for version in (1..=newest).rev() {
                    if needed.contains(&version) {
                        needed.extend(store.manifest(version).unwrap().parents());
                    }
                }
                assert_eq!(there, needed, "keep {keep}, a key every {key_every}, at {newest}");
                assert!(there.len() < keep + key_every, "keep {keep}, a key every {key_every}, at {newest}");
            }
            let (version, x, _) = restore(&mut session).unwrap();
            assert_eq!(version, 14);
            assert_within_bound(&x, version, 0);
        }
    }
}

/// All versions of a store are whole, and so is every chain: each value within its bound.
fn assert_chains_whole(store: &dyn Store, what: &str) -> Vec<u64> {
    let mut reader = ChainReader::new(store, Codecs::shared(recoup::compress::codec, 1));
    for manifest in manifests(store) {
        assert_eq!(store.inspect_damage(manifest.version).unwrap(), [], "{what}");
        let variable = &manifest.variables[0];
        let frame = &manifest.frames[0];
        let mut x = vec![0.0; variable.frame_dims.iter().product()];
        let read = reader.frame(manifest.version, variable, frame, ValuesMut::F64(&mut x));
        read.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_within_bound(&x[..N], manifest.version, 0);
    }
    store.versions().unwrap()
}

/// A process continues from what it finds and saves up to version 12. Returns the operations its
/// store was asked for.
fn live<S: Store + 'static>(store: S, crash: Crash) -> u64 {
    let store = Arc::new(CrashingStore::new(store, crash));
    let builder = recoup::open("unused").plan(fixed_plan(CodecId::Qb)).key_every(4).keep(2);
    if let Ok(mut session) = builder.build_with(store.clone(), &Solo) {
        let mut x = vec![0.0; N];
        let restored = session.restore_with(&mut [&mut Variables::new().iterate("x", &mut x)]);
        let Ok(restored) = restored else { return store.operations() };
        if let Some(restored) = &restored {
            assert_within_bound(&x, restored.version, 0);
        }
        save(&mut session, restored.map_or(0, |r| r.version) + 1..=12);
    }
    store.operations()
}

/// A first process saves five versions, of which retention has removed some; a second continues and
/// loses its store at any operation. What is there then is whole, chains included, and a third goes
/// on to the end.
fn survives<S: Store + 'static>(store: impl Fn(&Path) -> S) -> u64 {
    let begin = || {
        let dir = tempfile::tempdir().unwrap();
        let builder = recoup::open("unused").plan(fixed_plan(CodecId::Qb)).key_every(4).keep(2);
        let mut session = builder.build_with(Arc::new(store(dir.path())), &Solo).unwrap();
        save(&mut session, 1..=6);
        dir
    };
    let operations = live(store(begin().path()), Crash::Never);
    for n in 0..operations {
        for crash in [Crash::From(n), Crash::At(n), Crash::FullFrom(n)] {
            let dir = begin();
            live(store(dir.path()), crash);
            let left = assert_chains_whole(&store(dir.path()), &format!("{crash:?}"));
            assert!(left.last() >= Some(&5), "{crash:?}: {left:?}");
            live(store(dir.path()), Crash::Never);
            let left = assert_chains_whole(&store(dir.path()), &format!("after {crash:?}"));
            assert_eq!(left.last(), Some(&12), "{crash:?}");
        }
    }
    operations
}

/// Six versions of begin, write, seal, publish and what retention needs: more than a score of
/// operations.
#[test]
fn a_directory_of_chains_survives_a_crash_at_every_operation() {
    assert!(survives(|dir| Hdf5Store::open(dir, "solve", Access::Write).unwrap()) > 20);
}

#[test]
fn chains_in_memory_survive_a_crash_at_every_operation() {
    let kept = std::cell::RefCell::new(std::collections::BTreeMap::new());
    assert!(survives(|dir| kept.borrow_mut().entry(dir.to_owned()).or_insert_with(MemoryStore::new).clone()) > 20);
}

/// After a rollback the next version follows the one restored, never one that was set aside; its
/// number may be one that was set aside.
#[test]
fn after_a_rollback_versions_follow_the_one_restored() {
    let dir = tempfile::tempdir().unwrap();
    save(&mut open(dir.path(), 100), [5, 10, 15, 20]);
    fs::remove_file(rank_file(dir.path(), 15, 0)).unwrap();
    let mut session = open(dir.path(), 100);
    assert_eq!(restore(&mut session).unwrap().0, 10);
    save(&mut session, [15, 30]);
    assert_eq!(parents(&reading(dir.path())), [(5, vec![]), (10, vec![5]), (15, vec![10]), (30, vec![15])]);
    session.lose_memory(std::time::Duration::ZERO).unwrap();
    let (version, x, _) = restore(&mut session).unwrap();
    assert_within_bound(&x, version, 0);
    save(&mut session, [40]);
    session.start_over().unwrap();
    save(&mut session, [5]);
    assert_eq!(parents(&reading(dir.path())), [(5, vec![])]);
    assert_eq!(restore(&mut session).unwrap().0, 5);
}

/// A version that never counted used to be as good a parent as any, to an encoder that only looks
/// at its memory.
#[test]
fn a_version_that_does_not_count_is_never_a_parent() {
    let store = MemoryStore::new();
    let operations = |crash| {
        let crashing = Arc::new(CrashingStore::new(store.clone(), crash));
        let builder = recoup::open("unused").plan(fixed_plan(CodecId::Qb)).keep(100);
        let mut session = builder.build_with(crashing.clone(), &Solo).unwrap();
        session.start_over().unwrap();
        save(&mut session, [1, 2]);
        let before = crashing.operations();
        let outcomes = save(&mut session, [3]);
        let after = crashing.operations();
        save(&mut session, [4]);
        (before, after, matches!(outcomes[..], [Outcome::Failed { version: 3, .. }]))
    };
    let (before, after, _) = operations(Crash::Never);
    for n in before..after {
        let (.., failed) = operations(Crash::At(n));
        let expected = if failed { (4, vec![2]) } else { (4, vec![3]) };
        assert_eq!(parents(&store).last(), Some(&expected), "operation {n}");
        assert_chains_whole(&store, &format!("operation {n}"));
    }
}

/// In virtual time a recovery costs the reading and decoding of the whole chain, not of its end.
#[test]
fn a_declared_recovery_pays_for_every_link() {
    const BYTES_PER_SECOND: f64 = 1e6;
    let store = Arc::new(MemoryStore::new());
    let costs = VirtualCosts {
        iteration_seconds: 1.0,
        product_seconds: 0.0,
        stage_bytes_per_second: f64::INFINITY,
        encode_bytes_per_second: f64::INFINITY,
        decode_bytes_per_second: BYTES_PER_SECOND,
        store_bytes_per_second: BYTES_PER_SECOND,
    };
    let builder = recoup::open("unused").plan(fixed_plan(CodecId::Qb)).keep(100);
    let builder = builder.clock(Arc::new(VirtualClock::new()), Timing::Virtual(costs));
    let mut session = builder.build_with(store.clone(), &Solo).unwrap();
    save(&mut session, 1..=4);
    let mut x = vec![0.0; N];
    let restored = session.restore_with(&mut [&mut Variables::new().iterate("x", &mut x)]).unwrap().unwrap();
    let payloads: u64 = manifests(store.as_ref()).iter().map(Manifest::payload_bytes).sum();
    let expected = (payloads as f64 + 4.0 * 8.0 * N as f64) / BYTES_PER_SECOND;
    // A handful of sums and quotients, each rounded once.
    assert!((restored.seconds - expected).abs() <= 16.0 * f64::EPSILON * expected, "{} {expected}", restored.seconds);
}

/// Each rank follows its own part; a link damaged on one rank is a link damaged on all.
#[test]
fn ranks_walk_their_chains_together() {
    const RANKS: usize = 3;
    fn owner(rank: usize, x: &mut [f64]) -> Variables<'_> {
        let rows = Distribution::Rows { first: (rank * N) as u64, global: (RANKS * N) as u64 };
        Variables::new().with("x", Role::Iterate, ValuesMut::F64(x), rows)
    }
    let dir = tempfile::tempdir().unwrap();
    let session =
        |comm: &dyn Comm| recoup::open(dir.path()).plan(fixed_plan(CodecId::Qb)).keep(100).build_on(comm).unwrap();
    Threads::launch(RANKS, |comm| {
        let mut session = session(&comm);
        for iteration in [5, 10, 15, 20] {
            let mut x = state(comm.rank(), iteration);
            let plan = fixed_plan(CodecId::Qb);
            session.checkpoint(plan, progress(iteration), &[&owner(comm.rank(), &mut x)]).unwrap();
        }
        session.wait().unwrap();
    });
    let followers = |m: &Manifest| m.frames.iter().filter(|f| f.parent() == Some(m.version - 5)).count();
    let follow: Vec<usize> = manifests(&reading(dir.path())).iter().map(followers).collect();
    assert_eq!(follow, [0, RANKS, RANKS, RANKS]);
    let restore = || {
        Threads::launch(RANKS, |comm| {
            let mut session = session(&comm);
            let mut x = vec![0.0; N];
            let restored = session.restore_with(&mut [&mut owner(comm.rank(), &mut x)]).unwrap().unwrap();
            assert_within_bound(&x, restored.version, comm.rank());
            restored.version
        })
    };
    assert_eq!(restore(), [20; RANKS]);
    fs::remove_file(rank_file(dir.path(), 15, 1)).unwrap();
    assert_eq!(restore(), [10; RANKS]);
}

/// Of two frames one changes beyond recognition and one hardly: each is coded as pays for it, and
/// comes back.
#[test]
fn frames_of_one_variable_follow_one_by_one() {
    const LEN: usize = 1 << 21;
    let state = |iteration: u64| -> Vec<f64> {
        let rough = |i: u64| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) as f64 / u64::MAX as f64;
        (0..LEN as u64).map(|i| rough(if i < LEN as u64 / 2 { i * i + iteration * 7919 } else { i })).collect()
    };
    let store = Arc::new(MemoryStore::new());
    let builder = || recoup::open("unused").plan(fixed_plan(CodecId::Qb)).keep(100);
    let mut session = builder().build_with(store.clone(), &Solo).unwrap();
    for iteration in 1..=3 {
        let mut x = state(iteration);
        let owner = Variables::new().iterate("x", &mut x);
        session.checkpoint(fixed_plan(CodecId::Qb), progress(iteration), &[&owner]).unwrap();
    }
    session.wait().unwrap();
    let newest = store.manifest(3).unwrap();
    let follow: Vec<Option<u64>> = newest.frames.iter().map(|f| f.parent()).collect();
    assert_eq!(follow, [None, Some(2)]);
    let mut x = vec![0.0; LEN];
    let mut session = builder().build_with(store, &Solo).unwrap();
    session.restore_with(&mut [&mut Variables::new().iterate("x", &mut x)]).unwrap();
    assert!(x.iter().zip(state(3)).all(|(x, y)| (x - y).abs() <= E));
}

/// The loop is closed: over a whole solve of verified versions no error adds up, and what was
/// measured before a version counted is what a restore through its chain gives, up to the rounding
/// of one residual.
#[test]
fn a_chain_of_verified_versions_gives_the_residuals_that_were_measured() {
    let problem = Problem::poisson(16);
    for codec in following_codecs() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { codec, ..plan(Scheme::Lossy) };
        let session = problem.builder(dir.path(), plan, 4).keep(100).build().unwrap();
        let run = problem.run("cg", Some(session), AtIterations::new(&[18, 31]));
        assert_eq!(run.ended, Ended::Converged, "{codec}");
        let recoveries = run.events.iter().filter(|e| matches!(e.kind, EventKind::Recovery(_))).count();
        assert_eq!(recoveries, 2, "{codec}");
        let store = reading(dir.path());
        let manifests = manifests(&store);
        assert!(manifests.iter().filter(|m| !m.parents().is_empty()).count() >= manifests.len() / 2, "{codec}");
        let mut reader = ChainReader::new(&store, Codecs::shared(recoup::compress::codec, 1));
        let norm_b = problem.b.iter().map(|b| b * b).sum::<f64>().sqrt();
        for manifest in manifests {
            let variable = &manifest.variables[0];
            let frame = &manifest.frames[0];
            let residual = manifest.residual;
            let mut x = vec![0.0; problem.b.len()];
            let mut r = vec![0.0; problem.b.len()];
            reader.frame(manifest.version, variable, frame, ValuesMut::F64(&mut x)).unwrap();
            let measured = problem.a.residual(&problem.b, &x, &mut r).unwrap().sqrt();
            let verified = residual.verified_norm.unwrap();
            let exact = residual.true_norm.unwrap();
            assert!((measured - verified).abs() <= 1e3 * f64::EPSILON * norm_b, "{codec}: {measured} {verified}");
            assert!(verified <= 1.5 * exact, "{codec}: {verified} {exact}");
        }
    }
}
