//! What a run did from iteration to iteration, as its report draws it.

use recoup::pipeline::{EventKind as Happened, RunReport};

use crate::report::{Curve, Event, EventKind, Sample};

/// Samples of a history that a plot can show.
const SAMPLES_MAX: usize = 2000;

/// A run under a scheme. In virtual time a restore is charged after it has happened.
pub(crate) fn of(scheme: &str, report: &RunReport, is_virtual: bool) -> Curve {
    let sample = |(sample, executed): (&recoup::pipeline::Sample, u64)| Sample {
        executed,
        seconds: sample.seconds,
        relative_residual: sample.relative_residual,
    };
    let history: Vec<Sample> = report.history.iter().zip(1..).map(sample).collect();
    let mut curve = Curve { name: scheme.to_owned(), history: thinned(&history), events: Vec::new() };
    for event in &report.events {
        let Some(before) = before(event, &history) else { continue };
        let at = Sample { executed: event.executed, seconds: event.seconds, relative_residual: before };
        match &event.kind {
            Happened::Checkpoint => curve.events.push(Event { kind: EventKind::Checkpoint, at }),
            Happened::Failure(_) | Happened::Flip(_) => curve.events.push(Event { kind: EventKind::Failure, at }),
            Happened::Recovery(restored) => {
                let residual = restored.residual;
                let norm = residual.verified_norm.or(residual.true_norm).unwrap_or(residual.norm);
                let relative_residual = if residual.rhs_norm > 0.0 { norm / residual.rhs_norm } else { norm };
                let charged = if is_virtual { restored.seconds } else { 0.0 };
                let end = Sample { seconds: at.seconds + charged, ..at };
                let resumed = Sample { relative_residual, ..end };
                curve.goes_back(end, resumed);
                curve.events.push(Event { kind: EventKind::Recovery, at: resumed });
            }
            Happened::StartOver { .. } => curve.goes_back(at, Sample { relative_residual: 1.0, ..at }),
            // What follows from it is an event of its own, but for directions.
            Happened::Corruption(_) | Happened::Stall => {}
        }
    }
    curve
}

/// The residual before an event; `None` of one before the first iteration.
fn before(event: &recoup::pipeline::Event, history: &[Sample]) -> Option<f64> {
    let position = usize::try_from(event.executed).ok()?.checked_sub(1)?;
    Some(history.get(position)?.relative_residual)
}

impl Curve {
    /// The line is flat until the solver has been set back, and rises then.
    fn goes_back(&mut self, end: Sample, resumed: Sample) {
        let position = self.history.partition_point(|sample| sample.executed <= end.executed);
        self.history.splice(position..position, [end, resumed]);
    }
}

/// The undisturbed solve, each iteration of which takes so long.
pub(crate) fn undisturbed(history: &[(u64, f64)], iteration_seconds: f64) -> Curve {
    let samples = history.iter().map(|&(iteration, relative_residual)| Sample {
        executed: iteration,
        seconds: iteration as f64 * iteration_seconds,
        relative_residual,
    });
    Curve { name: "undisturbed".to_owned(), history: thinned(&samples.collect::<Vec<_>>()), events: Vec::new() }
}

/// Every k-th sample, and the last one.
fn thinned(history: &[Sample]) -> Vec<Sample> {
    let step = history.len().div_ceil(SAMPLES_MAX).max(1);
    let mut kept: Vec<Sample> = history.iter().copied().step_by(step).collect();
    if kept.last() != history.last() {
        kept.extend(history.last());
    }
    kept
}
