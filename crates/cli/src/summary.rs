//! What a comparison tells its report: histories, events and overheads of runs, in the report's words.

use recoup::pipeline::{EventKind as Happened, RunReport};

use crate::account::RunJson;
use crate::options::ProblemArgs;
use crate::output::{bytes, seconds};
use crate::protection::ProtectionArgs;
use crate::report::{Event, EventKind, Parts, RunSummary, Sample};
use crate::solved::SolveReport;

/// Samples of a history that a plot can show.
const SAMPLES_MAX: usize = 2000;

/// One run.
pub(crate) fn of(json: &RunJson, report: &RunReport) -> RunSummary {
    let history: Vec<Sample> = report.history.iter().zip(1..).map(sample).collect();
    RunSummary {
        name: json.scheme.clone(),
        events: report.events.iter().filter_map(|event| of_event(event, &history)).collect(),
        history: thinned(history),
        measured: json.measured,
        expected: json.expected,
        raw_bytes: per_version(report, |saved| saved.raw_bytes),
        encoded_bytes: per_version(report, |saved| saved.payload_bytes),
        iterations: json.solve.iterations,
        iterations_executed: json.iterations_executed,
        extra_iterations_mean: json.extra_iterations_mean,
        seconds_total: json.seconds_total,
        converged: json.solve.converged,
    }
}

/// The undisturbed solve.
pub(crate) fn undisturbed(report: &SolveReport, history: &[(u64, f64)]) -> RunSummary {
    let samples = history.iter().map(|&(iteration, relative_residual)| Sample {
        executed: iteration,
        iteration,
        relative_residual,
    });
    RunSummary {
        name: "undisturbed".to_owned(),
        history: thinned(samples.collect()),
        iterations: report.iterations,
        iterations_executed: report.iterations,
        seconds_total: report.seconds_solve,
        converged: report.converged,
        ..RunSummary::default()
    }
}

/// The first trial's curve with the numbers of all trials.
pub(crate) fn mean<'a>(first: RunSummary, rest: impl Iterator<Item = &'a RunSummary>) -> RunSummary {
    let (mut all, mut drawn) = (vec![first.clone()], first);
    all.extend(rest.cloned());
    let n = all.len() as f64;
    let average = |value: fn(&RunSummary) -> f64| all.iter().map(value).sum::<f64>() / n;
    drawn.raw_bytes = average(|run| run.raw_bytes);
    drawn.encoded_bytes = average(|run| run.encoded_bytes);
    drawn.seconds_total = average(|run| run.seconds_total);
    drawn.iterations_executed = average(|run| run.iterations_executed as f64).round() as u64;
    drawn.converged = all.iter().all(|run| run.converged);
    drawn.measured = mean_parts(all.iter().map(|run| run.measured));
    drawn.expected = mean_parts(all.iter().map(|run| run.expected));
    let extra: Vec<f64> = all.iter().filter_map(|run| run.extra_iterations_mean).collect();
    drawn.extra_iterations_mean = (!extra.is_empty()).then(|| extra.iter().sum::<f64>() / extra.len() as f64);
    drawn
}

/// The mean of those there are.
fn mean_parts(all: impl Iterator<Item = Option<Parts>>) -> Option<Parts> {
    let known: Vec<Parts> = all.flatten().collect();
    let average = |part: fn(&Parts) -> f64| known.iter().map(part).sum::<f64>() / known.len() as f64;
    (!known.is_empty()).then(|| Parts {
        checkpoint: average(|parts| parts.checkpoint),
        lost_work: average(|parts| parts.lost_work),
        recovery: average(|parts| parts.recovery),
        extra_iterations: average(|parts| parts.extra_iterations),
    })
}

/// The headline.
pub(crate) fn title(problem: &ProblemArgs, solve: &SolveReport) -> String {
    let what = match (&problem.poisson3d, &problem.matrix) {
        (Some(n), _) => format!("3D Poisson {n}^3"),
        (None, Some(path)) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.trim_end_matches(".gz").trim_end_matches(".mtx").to_owned()
        }
        (None, None) => String::new(),
    };
    format!("{}, {what}", solve.method)
}

/// What was solved, where and how.
pub(crate) fn facts(protection: &ProtectionArgs, solve: &SolveReport, trials: u32) -> Vec<(String, String)> {
    let mut facts = vec![
        ("unknowns", solve.n.to_string()),
        ("nonzeros", solve.nnz.to_string()),
        ("preconditioner", solve.pc.clone()),
        ("tolerance", format!("{:e}", solve.rtol)),
        ("undisturbed solve", format!("{} iterations, {}", solve.iterations, seconds(solve.seconds_solve))),
        ("bound of lossy versions", protection.bound.to_string()),
        ("interval", protection.interval.to_string()),
        ("time", if protection.is_virtual() { "virtual" } else { "real" }.to_owned()),
        ("trials", trials.to_string()),
        ("first seed", protection.seed.to_string()),
    ];
    if let Some(mtti) = protection.mtti_seconds() {
        facts.push(("mean time to interrupt", seconds(mtti)));
    }
    if let Some(bandwidth) = protection.pfs_bandwidth {
        facts.push(("storage bandwidth", format!("{}/s", bytes(bandwidth))));
    }
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The command line, as it was given.
pub(crate) fn command() -> String {
    let arguments = std::env::args().skip(1).map(|argument| {
        let is_plain = argument.chars().all(|c| c.is_ascii_alphanumeric() || "-_.,:/+=".contains(c));
        if is_plain { argument } else { format!("'{argument}'") }
    });
    std::iter::once("recoup".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn sample((&(iteration, relative_residual), executed): (&(u64, f64), u64)) -> Sample {
    Sample { executed, iteration, relative_residual }
}

fn of_event(event: &recoup::pipeline::Event, history: &[Sample]) -> Option<Event> {
    let position = usize::try_from(event.executed).ok()?.checked_sub(1)?;
    let before = *history.get(position)?;
    let (kind, relative_residual) = match &event.kind {
        Happened::Checkpoint => (EventKind::Checkpoint, before.relative_residual),
        Happened::Failure(_) | Happened::Flip(_) => (EventKind::Failure, before.relative_residual),
        Happened::Recovery(restored) => {
            let residual = restored.residual;
            let norm = residual.verified_norm.or(residual.true_norm).unwrap_or(residual.norm);
            (EventKind::Recovery, if residual.rhs_norm > 0.0 { norm / residual.rhs_norm } else { norm })
        }
        // What follows from it is an event of its own, but for directions.
        Happened::Corruption(_) | Happened::Stall => return None,
        Happened::StartAnew { .. } => (EventKind::Recovery, 1.0),
    };
    Some(Event { kind, at: Sample { executed: event.executed, iteration: event.iteration, relative_residual } })
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

fn per_version(report: &RunReport, bytes: fn(&recoup::pipeline::Saved) -> u64) -> f64 {
    report.saved.iter().map(bytes).sum::<u64>() as f64 / report.saved.len().max(1) as f64
}
