//! Does a flipped bit or a truncation of a committed version ever reach a solver? The store names
//! every one of them (`io/src/hdf5/tests.rs` and `io/src/envelope.rs`).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use recoup::core::{Damage, Registered, Scheme, Store};
use recoup::io::{Access, Hdf5Store};
use recoup::model::failures::AtIterations;
use recoup::pipeline::EventKind;

use recoup_testkit::doubles;
use recoup_testkit::folders::contents;

use crate::support::{Problem, plan};

/// Two small committed versions, 5 and 10, and the iterates they hold.
struct Fixture {
    problem: Problem,
    dir: tempfile::TempDir,
    iterates: BTreeMap<u64, Vec<u64>>,
}

impl Fixture {
    fn new(scheme: Scheme) -> Self {
        let problem = Problem::poisson(4);
        let dir = tempfile::tempdir().unwrap();
        let mut iterates = BTreeMap::new();
        let mut session = problem.builder(dir.path(), plan(scheme), 5).build().unwrap();
        let mut solver = problem.solver("jacobi").unwrap();
        for iteration in 1..=10 {
            solver.step().unwrap();
            session.step(solver.as_ref()).unwrap();
            iterates.insert(iteration, bits(solver.as_ref()));
        }
        drop((session, solver));
        Self { problem, dir, iterates }
    }

    fn version_dir(&self, version: u64) -> PathBuf {
        self.dir.path().join("solve").join(format!("v{version:012}"))
    }

    /// What a fresh solver gets back: the version and the bits of its iterate.
    fn restore(&self) -> (u64, Vec<u64>, Vec<String>) {
        let mut session = self.problem.builder(self.dir.path(), plan(Scheme::Exact), 5).build().unwrap();
        let mut solver = self.problem.solver("jacobi").unwrap();
        let restored = session.restore(solver.as_mut()).unwrap().unwrap();
        let damage = restored.skipped.into_iter().flat_map(|s| s.damage).collect();
        (restored.version, bits(solver.as_ref()), damage)
    }

    /// Undoes what a restore does to a damaged version.
    fn bring_back(&self, contents: &BTreeMap<PathBuf, Vec<u8>>) {
        let dir = self.version_dir(10);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        contents.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    }
}

fn bits(owner: &dyn Registered) -> Vec<u64> {
    doubles(owner.variables()[0].values).into_iter().map(f64::to_bits).collect()
}

/// The right values of version 10, or those of version 5 and a name.
#[test]
fn restore_gives_right_values_or_falls_back_by_name() {
    for scheme in [Scheme::Exact, Scheme::Lossless] {
        let fixture = Fixture::new(scheme);
        let whole = contents(&fixture.version_dir(10));
        for (path, bytes) in &whole {
            for bit in (0..bytes.len() * 8).step_by(1 + bytes.len() / 4) {
                let mut flipped = bytes.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                check(&fixture, &whole, path, &flipped);
            }
            for len in (0..bytes.len()).step_by(1 + bytes.len() / 16) {
                check(&fixture, &whole, path, &bytes[..len]);
            }
        }
    }
}

fn check(fixture: &Fixture, whole: &BTreeMap<PathBuf, Vec<u8>>, path: &Path, damaged: &[u8]) {
    fs::write(path, damaged).unwrap();
    let (version, restored, damage) = fixture.restore();
    assert_eq!(restored, fixture.iterates[&version], "{}", path.display());
    assert!(version == 10 || (version == 5 && !damage.is_empty()), "{version}: {damage:?}");
    fixture.bring_back(whole);
}

/// A damaged frame is named with its variable, run and rank.
#[test]
fn a_damaged_frame_is_named() {
    let fixture = Fixture::new(Scheme::Exact);
    let store = Hdf5Store::open(fixture.dir.path(), "solve", Access::Read).unwrap();
    let frame = store.manifest(10).unwrap().frames[0].clone();
    let place = frame.place.clone().unwrap();
    let path = fixture.version_dir(10).join(&place.file);
    let mut bytes = fs::read(&path).unwrap();
    bytes[place.offset as usize] ^= 1;
    fs::write(&path, bytes).unwrap();
    let damage = store.inspect_damage(10).unwrap();
    assert!(matches!(&damage[..], [Damage::Frame { frame: named, .. }] if named.variable == "x"), "{damage:?}");
    let (version, _, names) = fixture.restore();
    assert_eq!(version, 5);
    assert!(names.iter().any(|n| n.contains("frame x/0 of rank 0")), "{names:?}");
}

/// If nothing is usable after a failure, the run starts at 0, says why, and still converges.
#[test]
fn a_run_without_a_usable_version_starts_at_0_and_says_so() {
    let fixture = Fixture::new(Scheme::Exact);
    let session = fixture.problem.builder(fixture.dir.path(), plan(Scheme::Exact), 1000).build().unwrap();
    let damage_all = || {
        for version in [5, 10] {
            let path = fixture.version_dir(version).join("manifest.json");
            if path.exists() {
                fs::write(path, b"{}").unwrap();
            }
        }
    };
    let source = DamageOnFailure { failure: AtIterations::new(&[4]), damage: &damage_all };
    let run = fixture.problem.run("jacobi", Some(session), source);
    assert!(run.progress.is_converged());
    let reasons: Vec<_> =
        run.events.iter().filter(|e| matches!(&e.kind, EventKind::StartOver { reason: Some(_) })).collect();
    assert_eq!(reasons.len(), 1, "{:?}", run.events);
}

/// Damages the directory at the moment the failure strikes.
struct DamageOnFailure<'a> {
    failure: AtIterations,
    damage: &'a dyn Fn(),
}

impl recoup::core::FailureSource for DamageOnFailure<'_> {
    fn due(
        &mut self,
        now: std::time::Duration,
        iteration: u64,
        phase: recoup::core::Phase,
    ) -> Option<recoup::core::Failure> {
        let failure = self.failure.due(now, iteration, phase);
        if failure.is_some() {
            (self.damage)();
        }
        failure
    }
}
