//! Failures and versions at named iterations: whether they can come, and whether they did.

use anyhow::Result;
use recoup::model::Interval;
use recoup::pipeline::RunReport;
use recoup::solvers::Setting;

use crate::exit::Exit;
use crate::method::Setup;
use crate::options::protection::ProtectionArgs;
use crate::options::{FailureChoice, MethodArgs};

/// Refuses a flip in a vector that the method does not have, before anything is solved.
///
/// # Errors
/// Exit 2, with the names there are.
pub(crate) fn check(protection: &ProtectionArgs, setup: &Setup<'_>) -> Result<()> {
    let method = setup.args().method;
    let Some(FailureChoice::FlipAt(flips)) = &protection.failures else { return Ok(()) };
    // What it carries over from cycle to cycle is there only once the first one is done.
    if method.takes(Setting::Harvest) {
        return Ok(());
    }
    for (iteration, name) in flips.iter().filter_map(|(iteration, name)| Some((iteration, name.as_deref()?))) {
        let mut solver = setup.make()?;
        solver.make_room(&[name]);
        let known: Vec<&str> = solver.variables().iter().map(|variable| variable.name).collect();
        if !known.contains(&name) {
            let method = method.name;
            let known = known.join(", ");
            let text = format!("--failures flip:{iteration}:{name}: {method} has no variable {name}: it has {known}");
            return Err(Exit::Usage.because(text));
        }
    }
    Ok(())
}

/// Warns of failures that never came because the solve had ended before.
pub(crate) fn tell_missed(protection: &ProtectionArgs, report: &RunReport) {
    let planned: Vec<u64> = match &protection.failures {
        Some(FailureChoice::At(iterations)) => iterations.clone(),
        Some(FailureChoice::FlipAt(flips)) => flips.iter().map(|(iteration, _)| *iteration).collect(),
        _ => return,
    };
    // A run that resumed from its solution takes no step.
    let reached = report.history.iter().map(|sample| sample.iteration).max().unwrap_or(report.progress.iteration);
    let missed: Vec<String> =
        planned.iter().filter(|&&iteration| iteration > reached).map(ToString::to_string).collect();
    if !missed.is_empty() {
        tracing::warn!("no failure struck at iteration {}: the solve ended at {reached}", missed.join(", "));
    }
}

/// Warns of an interval in iterations after which no version came, because the method is saved at
/// the ends of cycles.
pub(crate) fn tell_unsaved(protection: &ProtectionArgs, method: &MethodArgs, report: &RunReport) {
    let Interval::Iterations(interval) = protection.interval else { return };
    let is_none = report.saved.is_empty() && report.failed.is_empty();
    if is_none && interval <= report.executed && method.method.takes(Setting::Restart) {
        tracing::warn!(
            "no version was saved every {interval} iterations: {} is saved at the end of a cycle of --restart {}, and \
             the solve ended at {}; --scheme exact saves after any iteration",
            method.method.name,
            method.restart,
            report.progress.iteration
        );
    }
}
