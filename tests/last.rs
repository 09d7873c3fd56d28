//! Does a run keep its solution, and does one that is stopped keep a state its method can continue
//! from?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use recoup::core::{Plan, Resume, Scheme, Store};
use recoup::io::{Access, Hdf5Store};
use recoup::model::failures::Never;
use recoup::pipeline::{Ended, RunLimits, RunReport, Runner};
use recoup::solvers::METHODS;

use crate::support::{Problem, plan, runner};

/// The iterate alone, bit for bit.
fn last() -> Plan {
    Plan { resume: Resume::Restarted, ..plan(Scheme::Lossless) }
}

/// A lossy run in `dir` that keeps its solution, and is asked to stop after `stop_after`
/// iterations.
fn run(problem: &Problem, method: &str, dir: &Path, stop_after: u64) -> RunReport {
    let session = problem.builder(dir, plan(Scheme::Lossy), 10).synchronous(true).build().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let raised = stop.clone();
    let limits = RunLimits { iterations: 100_000, executed: 100_000 };
    let mut runner = Runner {
        stop,
        stop_plan: Some(plan(Scheme::Exact)),
        last_plan: Some(last()),
        watch: Box::new(move |_, executed| raised.store(executed >= stop_after, Ordering::Release)),
        ..runner(Some(session), Never, limits)
    };
    runner.run(&mut || problem.solver(method)).unwrap()
}

#[test]
fn a_converged_run_leaves_its_solution_and_needs_no_iteration_the_next_time() {
    let problem = Problem::poisson(12);
    for method in METHODS.iter().map(|method| method.name) {
        let dir = tempfile::tempdir().unwrap();
        let first = run(&problem, method, dir.path(), u64::MAX);
        assert_eq!(first.ended, Ended::Converged, "{method}");
        let last = first.last.as_ref().unwrap().version;
        assert_eq!(last, first.progress.iteration, "{method}");
        assert!(first.saved.iter().all(|saved| saved.version < last), "{method}: it is no checkpoint of the scheme");
        let store = Hdf5Store::open(dir.path(), "solve", Access::Read).unwrap();
        assert_eq!(store.versions().unwrap().last(), Some(&last), "{method}");
        assert!(store.manifest(last).unwrap().residual.is_converged, "{method}");
        let again = run(&problem, method, dir.path(), u64::MAX);
        assert_eq!((again.ended, again.executed), (Ended::Converged, 0), "{method}");
        assert_eq!((again.last, again.failed), (None, Vec::new()), "{method}: it is there already");
    }
}

/// A stop came one step behind a safe point, where GMRES is in the middle of a cycle, and its state
/// was called corrupted.
#[test]
fn a_run_that_is_asked_to_stop_does_so_at_a_safe_point() {
    let problem = Problem::poisson(24);
    for (method, cycle) in [("gmres", 30), ("cg", 1)] {
        let dir = tempfile::tempdir().unwrap();
        let stopped = run(&problem, method, dir.path(), 20);
        assert_eq!((stopped.ended, &stopped.failed), (Ended::Stopped, &Vec::new()), "{method}");
        let iteration = stopped.progress.iteration;
        assert_eq!(stopped.saved.last().unwrap().version, iteration, "{method}");
        assert!(iteration.is_multiple_of(cycle) && (20..20 + cycle).contains(&iteration), "{method}: {iteration}");
        let resumed = run(&problem, method, dir.path(), u64::MAX);
        assert_eq!(resumed.progress.iteration - resumed.executed, iteration, "{method}");
        assert_eq!(resumed.ended, Ended::Converged, "{method}");
    }
}
