//! What a run did from iteration to iteration, as its report draws it.

use recoup::pipeline::{EventKind as Happened, RunReport};

use crate::report::{Curve, Event, EventKind, Sample};

/// Samples of a history that a plot can show.
const SAMPLES_MAX: usize = 2000;

/// A run under a scheme.
pub(crate) fn of(scheme: &str, report: &RunReport) -> Curve {
    let sample = |(sample, executed): (&recoup::pipeline::Sample, u64)| Sample {
        executed,
        seconds: sample.seconds,
        relative_residual: sample.relative_residual,
    };
    let history: Vec<Sample> = report.history.iter().zip(1..).map(sample).collect();
    Curve {
        name: scheme.to_owned(),
        events: report.events.iter().filter_map(|event| of_event(event, &history)).collect(),
        history: thinned(history),
    }
}

/// The undisturbed solve, each iteration of which takes so long.
pub(crate) fn undisturbed(history: &[(u64, f64)], iteration_seconds: f64) -> Curve {
    let samples = history.iter().map(|&(iteration, relative_residual)| Sample {
        executed: iteration,
        seconds: iteration as f64 * iteration_seconds,
        relative_residual,
    });
    Curve { name: "undisturbed".to_owned(), history: thinned(samples.collect()), events: Vec::new() }
}

fn of_event(event: &recoup::pipeline::Event, history: &[Sample]) -> Option<Event> {
    let position = usize::try_from(event.executed).ok()?.checked_sub(1)?;
    let before = history.get(position)?.relative_residual;
    let (kind, relative_residual) = match &event.kind {
        Happened::Checkpoint => (EventKind::Checkpoint, before),
        Happened::Failure(_) | Happened::Flip(_) => (EventKind::Failure, before),
        Happened::Recovery(restored) => {
            let residual = restored.residual;
            let norm = residual.verified_norm.or(residual.true_norm).unwrap_or(residual.norm);
            (EventKind::Recovery, if residual.rhs_norm > 0.0 { norm / residual.rhs_norm } else { norm })
        }
        // What follows from it is an event of its own, but for directions.
        Happened::Corruption(_) | Happened::Stall => return None,
        Happened::StartAnew { .. } => (EventKind::Recovery, 1.0),
    };
    let at = Sample { executed: event.executed, seconds: event.seconds, relative_residual };
    Some(Event { kind, at })
}

/// Every k-th sample, and the last one.
fn thinned(history: Vec<Sample>) -> Vec<Sample> {
    let step = history.len().div_ceil(SAMPLES_MAX).max(1);
    let last = history.last().copied();
    let mut kept: Vec<Sample> = history.into_iter().step_by(step).collect();
    if kept.last().copied() != last {
        kept.extend(last);
    }
    kept
}
