//! Does a run continue from its last version when the place of its vectors is lost?

use std::cell::Cell;

use recoup::core::{DeviceValuesErrorKind, Scheme};
use recoup::model::failures::Never;
use recoup::pipeline::{Ended, EventKind, PipelineError, RunLimits, RunReport, Session};

use crate::support::{Hooked, Problem, plan, runner};

/// Runs CG in solvers whose place fails at these iterations, one after the other, and then in one
/// whose place stays.
fn run(
    problem: &Problem,
    session: Option<Session>,
    fails: &[u64],
    kind: DeviceValuesErrorKind,
) -> Result<RunReport, PipelineError> {
    let made = Cell::new(0);
    let mut runner = runner(session, Never, RunLimits { iterations: 1000, executed: 10_000 });
    runner.run(&mut || {
        let at = fails.get(made.replace(made.get() + 1)).copied().unwrap_or(u64::MAX);
        Ok(Box::new(Hooked { solver: problem.solver("cg")?, fails: Some((at, kind)), last: None }))
    })
}

#[test]
fn a_run_goes_on_from_its_last_version_where_its_place_is_lost() {
    let problem = Problem::poisson(8);
    let undisturbed = run(&problem, None, &[], DeviceValuesErrorKind::Lost).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    let report = run(&problem, Some(session), &[12, 13], DeviceValuesErrorKind::Lost).unwrap();
    assert_eq!((report.ended, report.places_lost, report.recoveries), (Ended::Converged, 2, 2));
    let lost = EventKind::PlaceLost { message: "device 0 is gone".to_owned() };
    let at: Vec<u64> = report.events.iter().filter(|event| event.kind == lost).map(|event| event.iteration).collect();
    assert_eq!(at, [12, 13]);
    assert_eq!((report.lost, report.executed), (2 + 3, undisturbed.executed + 5));
    for sample in &report.history {
        let expected = undisturbed.history[sample.iteration as usize - 1];
        assert_eq!(sample.relative_residual.to_bits(), expected.relative_residual.to_bits(), "{}", sample.iteration);
    }
}

#[test]
fn a_run_without_versions_starts_over_where_its_place_is_lost() {
    let problem = Problem::poisson(6);
    let report = run(&problem, None, &[4], DeviceValuesErrorKind::Lost).unwrap();
    assert_eq!((report.ended, report.places_lost, report.lost), (Ended::Converged, 1, 4));
}

#[test]
fn a_run_that_only_loses_places_ends_with_the_error() {
    let problem = Problem::poisson(6);
    let error = run(&problem, None, &[3; 100], DeviceValuesErrorKind::Lost).unwrap_err();
    assert_eq!(error.lost_place().map(|lost| lost.message.as_str()), Some("device 0 is gone"));
}

#[test]
fn any_other_failure_of_a_place_ends_the_run() {
    let problem = Problem::poisson(6);
    for kind in [DeviceValuesErrorKind::NoRoom, DeviceValuesErrorKind::Failed] {
        let error = run(&problem, None, &[3], kind).unwrap_err();
        assert!(error.lost_place().is_none() && error.to_string() == "device 0 is gone", "{error}");
    }
}
