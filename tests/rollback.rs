//! Does a solve that lost its memory end where the undisturbed one does?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recoup::VirtualClock;
use recoup::comm::Solo;
use recoup::core::{Clock, Failure, FailureKind, FailureSource, Phase, Registered, Scheme, Store};
use recoup::io::{Access, Hdf5Store, MemoryStore};
use recoup::model::failures::{AtIterations, Never};
use recoup::pipeline::{Ended, EventKind, Outcome, RunLimits, Runner, Timing, VirtualCosts};

use recoup_testkit::doubles;

use crate::support::{Problem, plan, steps};

/// Every iteration executed, lost work included, repeats the undisturbed residual to the bit.
#[test]
fn exact_resume_repeats_the_undisturbed_history_bit_for_bit() {
    let problem = Problem::poisson(12);
    for (method, failures) in [("cg", vec![7, 13, 14, 30]), ("gmres", vec![31, 45]), ("jacobi", vec![5, 50, 99])] {
        let undisturbed = problem.run(method, None, Never);
        assert_eq!(undisturbed.ended, Ended::Converged, "{method}");
        let dir = tempfile::tempdir().unwrap();
        let session = problem.builder(dir.path(), plan(Scheme::Exact), 5).synchronous(true).build().unwrap();
        let run = problem.run(method, Some(session), AtIterations::new(&failures));
        assert_eq!(run.ended, Ended::Converged, "{method}");
        assert_eq!(run.failures, failures.len() as u64, "{method}");
        assert!(run.recoveries > 0, "{method}: {:?}", run.events);
        assert_eq!(run.executed, undisturbed.executed + run.lost, "{method}");
        for sample in &run.history {
            let expected = undisturbed.history[sample.iteration as usize - 1];
            let bits = [sample, &expected].map(|sample| sample.relative_residual.to_bits());
            assert_eq!(bits[0], bits[1], "{method}, iteration {}", sample.iteration);
        }
    }
}

/// A lossy recovery starts from a residual within (1 + theta) of the one saved, and the solve ends
/// at its tolerance by the true residual.
#[test]
fn lossy_recovery_keeps_the_residual_and_converges() {
    let problem = Problem::poisson(12);
    for method in ["cg", "gmres", "jacobi"] {
        let dir = tempfile::tempdir().unwrap();
        let session = problem.builder(dir.path(), plan(Scheme::Lossy), 10).synchronous(true).build().unwrap();
        let run = problem.run(method, Some(session), AtIterations::new(&[24, 39, 66]));
        assert_eq!(run.ended, Ended::Converged, "{method}");
        assert!(run.recoveries > 0, "{method}");
        for saved in &run.saved {
            let residual = saved.residual;
            let exact = residual.true_norm.unwrap();
            let verified = residual.verified_norm.unwrap();
            assert!(verified <= 1.5 * exact, "{method} {}: {verified} {exact}", saved.version);
        }
    }
}

/// Fails once, at a moment.
struct Once(Option<Duration>);

impl FailureSource for Once {
    fn due(&mut self, now: Duration, _: u64, _: Phase) -> Option<Failure> {
        let at = self.0.take_if(|at| *at <= now)?;
        Some(Failure { at, kind: FailureKind::FailStop })
    }
}

/// A failure that struck while a process restored its first version ended that span of virtual
/// time, and the report charged all of it: the parts of a run came to more than the run.
#[test]
fn a_first_recovery_that_a_failure_cuts_short_costs_the_time_that_passed() {
    let problem = Problem::poisson(8);
    let store = Arc::new(MemoryStore::new());
    let costs = VirtualCosts {
        iteration_seconds: 1.0,
        product_seconds: 0.0,
        stage_bytes_per_second: f64::INFINITY,
        encode_bytes_per_second: f64::INFINITY,
        decode_bytes_per_second: f64::INFINITY,
        store_bytes_per_second: 8.0 * problem.b.len() as f64,
    };
    let run = |failure, executed| {
        let clock = Arc::new(VirtualClock::new());
        let builder = recoup::open("unused").plan(plan(Scheme::Traditional)).every(5).synchronous(true);
        let builder = builder.clock(clock.clone(), Timing::Virtual(costs));
        let session = builder.build_with(store.clone(), &Solo).unwrap();
        let limits = RunLimits { iterations: 100, executed };
        let runner = Runner::new(Some(session), Box::new(Once(failure)), clock, limits);
        Runner { timing: Timing::Virtual(costs), ..runner }.run(&mut || problem.solver("cg")).unwrap()
    };
    assert_eq!(run(None, 7).saved.len(), 1);
    let undisturbed = run(None, 2);
    let disturbed = run(Some(Duration::from_millis(500)), 2);
    // One vector takes a second, and there is more than one in a version.
    assert!(undisturbed.seconds_recovery > 1.0 && disturbed.seconds_recovery == 0.5, "{disturbed:?}");
    for report in [undisturbed, disturbed] {
        let parts = report.executed as f64 * costs.iteration_seconds + report.seconds_recovery;
        assert_eq!(report.seconds_total, parts + report.seconds_blocking);
    }
}

/// The version restored is the newest that counted before the failure, never a later one.
#[test]
fn rollback_goes_to_the_newest_version_before_the_failure() {
    let problem = Problem::poisson(12);
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan(Scheme::Traditional), 5).synchronous(true).build().unwrap();
    let run = problem.run("cg", Some(session), AtIterations::new(&[7, 13, 30]));
    let recovered: Vec<u64> =
        run.events.iter().filter(|e| matches!(e.kind, EventKind::Recovery(_))).map(|e| e.iteration).collect();
    // The failure at 30 strikes before the checkpoint of iteration 30 is taken.
    assert_eq!(recovered, [5, 10, 25]);
    assert_eq!(run.lost, 2 + 3 + 5);
}

/// A second process, started on the directory the first left behind, continues from its newest
/// version.
#[test]
fn a_new_session_goes_on_from_the_directory_alone() {
    let problem = Problem::poisson(12);
    let dir = tempfile::tempdir().unwrap();
    let mut first = problem.solver("cg").unwrap();
    let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    steps(first.as_mut(), &mut session, 12);
    drop(session);
    let mut second = problem.solver("cg").unwrap();
    let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    let restored = session.restore(second.as_mut()).unwrap().unwrap();
    assert_eq!(restored.version, 10);
    for _ in 10..12 {
        second.step().unwrap();
    }
    assert_eq!(bits(first.as_ref()), bits(second.as_ref()));
    assert!(problem.true_residual(second.as_ref()) < 1.0);
}

/// Lets its sleepers go at once, but its time stands still: a throttled write on it never ends by
/// itself.
#[derive(Default)]
struct Standstill {
    sleeps: AtomicU64,
}

impl Clock for Standstill {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep_until(&self, _instant: Duration) {
        self.sleeps.fetch_add(1, Ordering::AcqRel);
        std::thread::yield_now();
    }
}

/// A failure used to wait for the version on its way: on a slow file system for minutes, in which
/// nothing was computed and which no model of the run accounts for.
#[test]
fn a_failure_does_not_wait_for_a_throttled_write() {
    let problem = Problem::poisson(12);
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(Standstill::default());
    let builder = problem.builder(dir.path(), plan(Scheme::Traditional), 5).bandwidth(1e4);
    let mut session = builder.clock(clock.clone(), Timing::Real).build().unwrap();
    let mut solver = problem.solver("cg").unwrap();
    steps(solver.as_mut(), &mut session, 5);
    while clock.sleeps.load(Ordering::Acquire) == 0 {
        std::thread::yield_now();
    }
    session.lose_memory(Duration::ZERO).unwrap();
    assert_eq!(session.take_outcomes(), [Outcome::Aborted { version: 5 }]);
    drop(session);
    let store = Hdf5Store::open(dir.path(), "solve", Access::Read).unwrap();
    assert_eq!(store.versions().unwrap(), Vec::<u64>::new());
}

fn bits(owner: &dyn Registered) -> Vec<Vec<u64>> {
    let to_bits = |values| doubles(values).into_iter().map(f64::to_bits).collect();
    owner.variables().into_iter().map(|v| to_bits(v.values)).collect()
}
