//! A comparison with failures, as the tests draw it.

use recoup::pipeline::Ended;

use super::{Comparison, Curve, CurvePoint, Fact, Moment, MomentKind};
use crate::account::{Baseline, RunConditions, RunCosts, RunJson};
use crate::decision::DecisionJson;
use crate::options::protection::SchemeChoice;
use crate::report::figures::{SchemeFigures, verdict};
use crate::solved::SolveReport;

/// Iterations of the undisturbed solve, each of which takes a second.
const BASELINE: u64 = 100;

/// Two trials of three schemes, the second 10 % longer; lossy's took fewer iterations than the
/// undisturbed solve.
pub(crate) fn comparison() -> Comparison {
    let schemes = [(SchemeChoice::None, 160.0), (SchemeChoice::Traditional, 130.0), (SchemeChoice::Lossy, 115.0)];
    let figures =
        schemes.iter().map(|&(scheme, took)| SchemeFigures::of(vec![run(scheme, took, 1), run(scheme, 1.1 * took, 2)]));
    let schemes: Vec<SchemeFigures> = figures.flatten().collect();
    let mut curves = vec![curve("undisturbed", &[])];
    curves.extend(schemes.iter().map(|scheme| curve(&scheme.scheme, &[40, 75])));
    Comparison {
        title: "CG, 3D Poisson <64^3>".to_owned(),
        verdict: verdict(&schemes),
        facts: vec![Fact::new("unknowns", "262144"), Fact::new("MTTI", "1 h").meaning("mean time to interrupt")],
        baseline_iterations: BASELINE,
        baseline_seconds: BASELINE as f64,
        schemes,
        curves,
        decisions: vec![DecisionJson { iteration: 4, scheme: "lossy".to_owned(), ..DecisionJson::default() }],
        first_seed: 1,
        command: "recoup compare --poisson3d 64 --method cg".to_owned(),
    }
}

/// Makes a run that takes these seconds.
pub(crate) fn run(scheme: SchemeChoice, seconds_total: f64, seed: u64) -> RunJson {
    let solve = SolveReport { converged: true, iterations: BASELINE, ..SolveReport::default() };
    let is_protected = scheme != SchemeChoice::None;
    let account = RunCosts {
        executed: BASELINE + 12 - if scheme == SchemeChoice::Lossy { 4 } else { 0 },
        lost: 12,
        failures: 2,
        recoveries: if is_protected { 2 } else { 0 },
        checkpoints: if is_protected { 5 } else { 0 },
        raw_bytes: if is_protected { 5_000_000 } else { 0 },
        payload_bytes: if is_protected { 1_250_000 } else { 0 },
        seconds_total,
        seconds_blocking: if is_protected { 0.4 * (seconds_total - 100.0) } else { 0.0 },
        seconds_lost_work: 12.0,
        interval_seconds: is_protected.then_some(20.0),
        ..RunCosts::default()
    };
    let terms = RunConditions {
        scheme,
        baseline: Baseline { iterations: Some(BASELINE), iteration_seconds: Some(1.0) },
        mtti_seconds: Some(60.0),
        has_arrivals: true,
        synchronous: true,
        seed,
        rates: None,
        ended: Ended::Converged,
    };
    RunJson::new(solve, account, &terms)
}

fn curve(name: &str, failures: &[u64]) -> Curve {
    let sample = |executed: u64, iteration: u64| CurvePoint {
        executed,
        seconds: 6.0 * executed as f64,
        relative_residual: 10f64.powf(-(iteration as f64) / 14.0),
    };
    let mut curve = Curve { name: name.to_owned(), ..Curve::default() };
    let mut executed = 0;
    let mut iteration = 0;
    let mut saved = 0;
    let mut happen = |kind, at| curve.events.push(Moment { kind, at });
    while iteration < BASELINE {
        curve.history.push(sample(executed, iteration));
        if !failures.is_empty() && iteration % 15 == 0 {
            saved = iteration;
            happen(MomentKind::Checkpoint, sample(executed, iteration));
        }
        if failures.contains(&executed) {
            happen(MomentKind::Failure, sample(executed, iteration));
            iteration = saved;
            happen(MomentKind::Recovery, sample(executed, iteration));
        }
        executed += 1;
        iteration += 1;
    }
    curve
}
