//! Curves of a run for its report: the residual over iterations, and events.

use recoup::pipeline::{EventKind, RunReport};

use crate::report::{Curve, CurvePoint, Moment, MomentKind};

/// Samples of a history that a plot can show.
const SAMPLES_MAX: usize = 2000;

/// Returns the curve of a run. In virtual time a restore is charged after it has happened.
pub(crate) fn of(scheme: &str, report: &RunReport, is_virtual: bool) -> Curve {
    let sample = |(sample, executed): (&recoup::pipeline::Sample, u64)| CurvePoint {
        executed,
        seconds: sample.seconds,
        relative_residual: sample.relative_residual,
    };
    let history: Vec<CurvePoint> = report.history.iter().zip(1..).map(sample).collect();
    let mut curve = Curve { name: scheme.to_owned(), history: thinned(&history), events: Vec::new() };
    for event in &report.events {
        let Some(before) = before(event, &history) else { continue };
        let at = CurvePoint { executed: event.executed, seconds: event.seconds, relative_residual: before };
        match &event.kind {
            EventKind::Checkpoint => curve.events.push(Moment { kind: MomentKind::Checkpoint, at }),
            EventKind::Failure(_) | EventKind::PlaceLost { .. } | EventKind::Flip(_) => {
                curve.events.push(Moment { kind: MomentKind::Failure, at })
            }
            EventKind::Recovery(restored) => {
                let residual = restored.residual;
                let norm = residual.verified_norm.or(residual.true_norm).unwrap_or(residual.norm);
                let relative_residual = if residual.rhs_norm > 0.0 { norm / residual.rhs_norm } else { norm };
                let charged = if is_virtual { restored.seconds } else { 0.0 };
                let end = CurvePoint { seconds: at.seconds + charged, ..at };
                let resumed = CurvePoint { relative_residual, ..end };
                curve.goes_back(end, resumed);
                curve.events.push(Moment { kind: MomentKind::Recovery, at: resumed });
            }
            EventKind::StartOver { .. } => curve.goes_back(at, CurvePoint { relative_residual: 1.0, ..at }),
            // What follows from it is an event of its own, but for directions.
            EventKind::Corruption(_) | EventKind::Stall | EventKind::FailuresPutOff { .. } => {}
        }
    }
    curve
}

/// Returns the residual before an event; `None` before the first iteration.
fn before(event: &recoup::pipeline::Event, history: &[CurvePoint]) -> Option<f64> {
    let position = usize::try_from(event.executed).ok()?.checked_sub(1)?;
    Some(history.get(position)?.relative_residual)
}

impl Curve {
    /// The line is flat until the solver has been set back, and rises then.
    fn goes_back(&mut self, end: CurvePoint, resumed: CurvePoint) {
        let position = self.history.partition_point(|sample| sample.executed <= end.executed);
        self.history.splice(position..position, [end, resumed]);
    }
}

/// Returns the curve of the undisturbed solve, whose iterations take equal time.
pub(crate) fn undisturbed(history: &[(u64, f64)], iteration_seconds: f64) -> Curve {
    let samples = history.iter().map(|&(iteration, relative_residual)| CurvePoint {
        executed: iteration,
        seconds: iteration as f64 * iteration_seconds,
        relative_residual,
    });
    Curve { name: "undisturbed".to_owned(), history: thinned(&samples.collect::<Vec<_>>()), events: Vec::new() }
}

/// Every k-th sample, and the last one.
fn thinned(history: &[CurvePoint]) -> Vec<CurvePoint> {
    let step = history.len().div_ceil(SAMPLES_MAX).max(1);
    let mut kept: Vec<CurvePoint> = history.iter().copied().step_by(step).collect();
    if kept.last() != history.last() {
        kept.extend(history.last());
    }
    kept
}
