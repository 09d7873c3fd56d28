//! Does a process that dies at any operation of its store lose anything but time?

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{Scheme, Store};
use recoup::io::{Access, Hdf5Store, MemoryStore};
use recoup::model::failures::Never;
use recoup_testkit::crashing_store::{Crash, CrashingStore};

use crate::support::{Problem, plan};

/// Iterations between checkpoints.
const EVERY: u64 = 4;

/// What one process did before it ended.
#[derive(Default)]
struct Life {
    restored: Option<u64>,
    /// Iteration and bits of the relative residual.
    history: Vec<(u64, u64)>,
    converged: bool,
    operations: u64,
}

/// A process that continues from what it finds, until it is done, stands at iteration `until`, is
/// refused by its store, or, under [`Crash::From`], is gone with it.
fn live<S: Store + 'static>(problem: &Problem, store: S, crash: Crash, until: u64) -> Life {
    let store = Arc::new(CrashingStore::new(store, crash));
    let is_gone = || matches!(crash, Crash::From(n) if store.operations() > n);
    let mut life = Life::default();
    let builder = problem.builder(Path::new("unused"), plan(Scheme::Exact), EVERY).synchronous(true);
    let Ok(mut session) = builder.build_with(store.clone(), &Solo) else { return life };
    let mut solver = problem.solver("cg").unwrap();
    match session.restore(solver.as_mut()) {
        Ok(restored) => life.restored = restored.map(|r| r.version),
        Err(_) => return life,
    }
    while !is_gone() && !life.converged && solver.progress().iteration < until {
        let progress = solver.step().unwrap();
        life.history.push((progress.iteration, progress.relative_residual().to_bits()));
        life.converged = progress.is_converged();
        session.step(solver.as_ref()).unwrap();
    }
    life.operations = store.operations();
    life
}

/// A first process saves two versions; a second continues from them and crashes; a third must end
/// the solve. Every iteration any of them executes is one of the undisturbed solve, to the bit, and
/// the third begins at the newest version the second left. Returns how many crashes were tried.
fn survives<S: Store + 'static>(open: impl Fn(&Path) -> S) -> u64 {
    let problem = Problem::poisson(6);
    let undisturbed: BTreeMap<u64, u64> =
        problem.run("cg", None, Never).history.iter().map(|s| (s.iteration, s.relative_residual.to_bits())).collect();
    let last = *undisturbed.keys().last().unwrap();
    assert!(last > 4 * EVERY, "the second process saves something: {last} iterations");
    let begin = || {
        let dir = tempfile::tempdir().unwrap();
        live(&problem, open(dir.path()), Crash::Never, 2 * EVERY + 1);
        dir
    };
    let operations = live(&problem, open(begin().path()), Crash::Never, last).operations;
    for n in 0..operations {
        for crash in [Crash::From(n), Crash::At(n), Crash::FullFrom(n)] {
            let dir = begin();
            let second = live(&problem, open(dir.path()), crash, last);
            let versions = whole_versions(&open(dir.path()));
            let third = live(&problem, open(dir.path()), Crash::Never, u64::MAX);
            assert!(third.converged, "{crash:?}");
            assert_eq!(third.restored.as_ref(), versions.last(), "{crash:?}");
            // One read that fails in a store that lives on looks like damage: an older version
            // takes over.
            let least = if matches!(crash, Crash::At(_)) { EVERY } else { 2 * EVERY };
            assert!(third.restored >= Some(least), "{crash:?}: what the first process saved is lost");
            for (iteration, residual) in second.history.iter().chain(&third.history) {
                assert_eq!(undisturbed.get(iteration), Some(residual), "{crash:?}, iteration {iteration}");
            }
            whole_versions(&open(dir.path()));
        }
    }
    operations
}

/// The versions, each of them whole.
fn whole_versions(store: &dyn Store) -> Vec<u64> {
    let versions = store.versions().unwrap();
    versions.iter().for_each(|&version| assert_eq!(store.inspect_damage(version).unwrap(), [], "version {version}"));
    versions
}

/// A version takes begin, four writes, seal, publish and what retention needs, so a few dozen
/// crashes are tried.
#[test]
fn a_directory_survives_a_crash_at_every_operation() {
    assert!(survives(|dir| Hdf5Store::open(dir, "solve", Access::Write).unwrap()) > 20);
}

#[test]
fn memory_survives_a_crash_at_every_operation() {
    let kept = std::cell::RefCell::new(BTreeMap::new());
    let open = |dir: &Path| kept.borrow_mut().entry(dir.to_owned()).or_insert_with(MemoryStore::new).clone();
    assert!(survives(open) > 20);
}
