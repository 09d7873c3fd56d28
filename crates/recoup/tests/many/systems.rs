//! Many systems in one run: an implicit heat equation whose coefficient changes, killed and
//! resumed.

use std::path::Path;
use std::sync::{Arc, Mutex};

use recoup::SystemClock;
use recoup::comm::Solo;
use recoup::core::{Decision, Iteration, Manifest, Observation, Operator, Policy, Scheme, Status, Store};
use recoup::io::{Access, Hdf5Store, MemoryStore};
use recoup::pipeline::{Codecs, Outcome, PipelineError, Reference, Session, SessionConfig, Variables};
use recoup::solvers::{Cg, Csr, Identity, Method, Pool, RightHandSide, Stop, System};

const EDGE: usize = 8;
const STEPS: u64 = 4;
const EVERY: u64 = 3;
const RTOL: f64 = 1e-9;

/// `I + c A`, implicit Euler under a coefficient that changes with the time step.
fn matrix(step: u64) -> Arc<Csr> {
    let poisson = Csr::poisson3d(EDGE);
    let c = 2.0 + step as f64;
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in 0..poisson.n() {
        let (row_columns, row_values) = poisson.row(row);
        let is_diagonal = |column: u32| f64::from(u8::from(column as usize == row));
        values.extend(row_columns.iter().zip(row_values).map(|(&column, a)| is_diagonal(column) + c * a));
        columns.extend_from_slice(row_columns);
        row_starts.push(columns.len());
    }
    Arc::new(Csr::new(row_starts, columns, values).unwrap())
}

fn first_state() -> Vec<f64> {
    RightHandSide::Random { seed: 3 }.build(matrix(0).as_ref()).unwrap()
}

fn open(dir: &Path, scheme: Scheme) -> Session {
    recoup::open(dir).systems().scheme(scheme).tolerance(RTOL).every(EVERY).keep(3).build().unwrap()
}

/// The end of a run, or of one that was killed.
struct LoopEnd {
    state: Vec<f64>,
    /// Iterations that this process did, system by system.
    iterations: Vec<(u64, u64)>,
}

/// Runs the time loop of a program that is killed after `life` iterations.
fn run(dir: &Path, scheme: Scheme, mut life: u64) -> LoopEnd {
    let pool = Pool::new(1);
    let mut session = open(dir, scheme);
    let mut state = first_state();
    let restored = session.restore_with(&mut [&mut Variables::new().dynamic("u", &mut state)]).unwrap();
    let first = restored.and_then(|restored| restored.system).map_or(0, |system| system.index);
    let mut iterations = Vec::new();
    for step in first..STEPS {
        let a = matrix(step);
        let b: Arc<[f64]> = state.clone().into();
        session.begin_system(step, Reference::new(a.clone(), b.clone())).unwrap();
        let system = System { a: a.as_ref(), b: &b, comm: &Solo, pool: &pool };
        let mut cg = Cg::new(system, &Identity, &b, Stop::at(RTOL)).unwrap();
        // Later systems of this process have no version yet.
        let restored = session.restore(&mut cg).unwrap();
        assert!(step == first || restored.is_none());
        let before = cg.progress().iteration;
        while cg.progress().status == Status::Running && life > 0 {
            cg.step().unwrap();
            session.step_with_state(&cg, &[&Variables::new().dynamic("u", &mut state)]).unwrap();
            life -= 1;
        }
        iterations.push((step, cg.progress().iteration - before));
        if cg.progress().status == Status::Running {
            break;
        }
        assert!(cg.progress().is_converged());
        state = cg.iterate().unwrap();
    }
    LoopEnd { state, iterations }
}

fn manifests(dir: &Path) -> Vec<Manifest> {
    let store = Hdf5Store::open(dir, "solve", Access::Read).unwrap();
    store.versions().unwrap().into_iter().map(|version| store.manifest(version).unwrap()).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn an_exact_time_loop_killed_anywhere_ends_with_the_same_bits() {
    let whole = tempfile::tempdir().unwrap();
    let undisturbed = run(whole.path(), Scheme::Exact, u64::MAX);
    let all: u64 = undisturbed.iterations.iter().map(|(_, n)| n).sum();
    assert_eq!(undisturbed.iterations.len() as u64, STEPS);
    // Not a multiple of EVERY: at each distance to the version before.
    for life in (1..all).step_by(7) {
        let dir = tempfile::tempdir().unwrap();
        run(dir.path(), Scheme::Exact, life);
        let resumed = run(dir.path(), Scheme::Exact, u64::MAX);
        assert_eq!(bits(&resumed.state), bits(&undisturbed.state), "killed after {life} iterations");
        let done: u64 = resumed.iterations.iter().map(|(_, n)| n).sum();
        assert!(done + life <= all + 2 * EVERY, "killed after {life} iterations, {done} more");
    }
}

/// A policy that saves at every iteration, and keeps what it has seen: iterations, and those since
/// the checkpoint before.
struct Witness(Arc<Mutex<Vec<(u64, u64)>>>);

impl Policy for Witness {
    fn decide(&mut self, seen: &Observation) -> Decision {
        self.0.lock().unwrap().push((seen.iteration, seen.since_checkpoint_iterations));
        let plan = recoup::open(".").plan_of(Scheme::Exact);
        Decision { save: Some(plan), in_force: plan, why: None, interval_seconds: 0.0, extra_iterations: None }
    }
}

/// Rates of convergence are those of one solve: what a policy learns from the residuals of one
/// system says nothing about the start of the next.
#[test]
fn policy_sees_iterations_of_each_system_and_intervals_that_go_on() {
    let seen = Arc::default();
    let codecs = Codecs::shared(recoup::compress::codec, 1);
    let policy = Box::new(Witness(Arc::clone(&seen)));
    let config =
        SessionConfig::new("solve", Arc::new(MemoryStore::new()), codecs, policy, Arc::new(SystemClock::new()));
    let config = SessionConfig { checks_corruption: true, synchronous: true, tolerance: RTOL, ..config };
    let mut session = Session::open(config, &Solo).unwrap();
    let pool = Pool::new(1);
    let b: Arc<[f64]> = first_state().into();
    for step in 0..2 {
        let a = matrix(step);
        session.begin_system(step, Reference::new(a.clone(), b.clone())).unwrap();
        let system = System { a: a.as_ref(), b: &b, comm: &Solo, pool: &pool };
        let mut cg = Cg::new(system, &Identity, &b, Stop::at(RTOL)).unwrap();
        for _ in 0..3 {
            cg.step().unwrap();
            session.step(&cg).unwrap();
        }
    }
    assert_eq!(*seen.lock().unwrap(), [(1, 1), (2, 1), (3, 1), (1, 1), (2, 1), (3, 1)]);
    assert!(session.take_outcomes().iter().all(|outcome| matches!(outcome, Outcome::Saved(_))));
}

#[test]
fn versions_say_which_system_they_belong_to_and_older_systems_leave() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), Scheme::Exact, u64::MAX);
    let kept = manifests(dir.path());
    assert_eq!(kept.len(), 3);
    assert!(kept.windows(2).all(|pair| pair[0].version < pair[1].version));
    let newest = kept.last().unwrap();
    let system = newest.system.unwrap();
    assert_eq!(system.index, STEPS - 1);
    assert!(system.start < newest.version);
    let prints: Vec<_> = kept.iter().map(|m| (m.system.unwrap().index, m.fingerprint.unwrap())).collect();
    assert!(prints.iter().all(|(step, print)| print.operator == matrix(*step).fingerprint()));
}

#[test]
fn a_lossy_time_loop_resumes_within_the_bound() {
    let whole = tempfile::tempdir().unwrap();
    let undisturbed = run(whole.path(), Scheme::Lossy, u64::MAX);
    let dir = tempfile::tempdir().unwrap();
    let killed = run(dir.path(), Scheme::Lossy, 20);
    let resumed = run(dir.path(), Scheme::Lossy, u64::MAX);
    assert_eq!(killed.iterations.last().unwrap().0, resumed.iterations[0].0);
    // Each step ends with ||b - A x|| <= RTOL ||b|| in both runs, and ||A^-1|| <= 1: the states
    // differ by at most 2 RTOL ||u|| for each step, and no step makes earlier differences larger.
    let difference = resumed.state.iter().zip(&undisturbed.state).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
    let norm = first_state().iter().map(|u| u * u).sum::<f64>().sqrt();
    assert!(difference <= 2.0 * RTOL * STEPS as f64 * norm, "{difference:e}");
}

/// A program that does not ask at which system to continue gets no iterate of another one.
#[test]
fn a_version_of_another_system_is_refused_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    run(dir.path(), Scheme::Exact, u64::MAX);
    let newest = manifests(dir.path()).last().unwrap().version;
    let mut session = open(dir.path(), Scheme::Exact);
    let pool = Pool::new(1);
    let a = matrix(0);
    let b: Arc<[f64]> = first_state().into();
    session.begin_system(0, Reference::new(a.clone(), b.clone())).unwrap();
    let mut cg =
        Cg::new(System { a: a.as_ref(), b: &b, comm: &Solo, pool: &pool }, &Identity, &b, Stop::at(RTOL)).unwrap();
    let error = session.restore(&mut cg).unwrap_err();
    let last = STEPS - 1;
    assert_eq!(
        error.to_string(),
        format!(
            "version {newest} of run solve belongs to system {last}, the run is at system 0: restore before the first \
             system is begun and continue at system {last}, or give another directory or name"
        )
    );
    // The right number with another state is another problem.
    drop(session);
    let mut session = open(dir.path(), Scheme::Exact);
    session.begin_system(last, Reference::new(a.clone(), b.clone())).unwrap();
    assert!(matches!(session.restore(&mut cg), Err(PipelineError::OtherProblem { .. })));
    assert!(matches!(
        session.begin_system(last, Reference::new(a, b)),
        Err(PipelineError::SystemOrder { found, before }) if found == last && before == last
    ));
}

/// A program that opens the directory again for each system (`recoup exec` does) had its versions
/// numbered from 0 each time: they were below those of a system that took longer, so that none was
/// found after a kill.
#[test]
fn versions_of_a_session_that_restored_nothing_follow_those_that_are_there() {
    let dir = tempfile::tempdir().unwrap();
    let pool = Pool::new(1);
    let b: Arc<[f64]> = first_state().into();
    let newest = || manifests(dir.path()).pop().map(|newest| (newest.system.unwrap().index, newest.version));
    let mut before = None;
    for (step, iterations) in [(0, 3 * EVERY), (1, EVERY)] {
        let a = matrix(step);
        let mut session = open(dir.path(), Scheme::Exact);
        session.begin_system(step, Reference::new(a.clone(), b.clone())).unwrap();
        let system = System { a: a.as_ref(), b: &b, comm: &Solo, pool: &pool };
        let mut cg = Cg::new(system, &Identity, &b, Stop::at(RTOL)).unwrap();
        for _ in 0..iterations {
            cg.step().unwrap();
            session.step(&cg).unwrap();
        }
        session.wait().unwrap();
        assert!(session.take_outcomes().iter().all(|outcome| matches!(outcome, Outcome::Saved(_))));
        assert!(newest().is_some_and(|(index, _)| index == step) && newest() > before, "{:?}", newest());
        before = newest();
    }
}

/// The state came back whole from a version whose iterate is damaged: its system starts from the
/// beginning, and the iterate of the system before is not taken.
#[test]
fn a_system_whose_versions_are_damaged_starts_from_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let whole = tempfile::tempdir().unwrap();
    let undisturbed = run(whole.path(), Scheme::Exact, u64::MAX);
    // Killed just after the first version of the second system.
    let first = undisturbed.iterations[0].1;
    run(dir.path(), Scheme::Exact, first + EVERY);
    let kept = manifests(dir.path());
    let newest = kept.last().unwrap();
    assert_eq!(kept.iter().map(|m| m.system.unwrap().index).collect::<Vec<_>>(), [0, 0, 1]);
    let frame = newest.frames.iter().find(|frame| frame.variable == "x").unwrap();
    let place = frame.place.clone().unwrap();
    let file = dir.path().join("solve").join(format!("v{:012}", newest.version)).join(place.file);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[place.offset as usize] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let resumed = run(dir.path(), Scheme::Exact, u64::MAX);
    assert_eq!(resumed.iterations[0], undisturbed.iterations[1]);
    assert_eq!(bits(&resumed.state), bits(&undisturbed.state));
}
