//! What `auto` costs beside the best fixed choice, on the machine of the published experiments
//! (doi 10.1145/3208040.3208050).
//!
//! The rivals are no versions at all, and every scheme and state at every interval of a sweep. The
//! best of them is chosen by one half of the seeds and judged by the other, and the other way
//! round: a choice that was only lucky is no rival.

use std::collections::HashMap;
use std::fmt::Write as _;

use recoup::core::{Resume, Scheme};
use recoup::model::interval::Interval;
use recoup::pipeline::Ended;

use crate::Options;
use crate::runs::{Bench, Case, Saving};

/// Method, problem and tolerance of each row.
const CASES: [(&str, &str, f64); 22] = [
    ("cg", "poisson3d-14", 1e-8),
    ("cg", "bcsstk14", 1e-8),
    ("cg", "nos7", 1e-8),
    ("cg", "-sherman1", 1e-8),
    ("cg", "ring-1500", 1e-8),
    ("cg", "tying-24", 1e-8),
    ("cg", "scaled-tying-24", 1e-8),
    ("cg", "inclusions-36", 1e-8),
    ("cg", "scaled-inclusions-36", 1e-8),
    ("cg", "anisotropic-36", 1e-8),
    ("cg", "plate-20", 1e-8),
    ("cg", "tree-1500", 1e-8),
    ("cg-restarted", "bcsstk14", 1e-8),
    ("pipecg", "anisotropic-36", 1e-6),
    ("gmres", "sherman5", 1e-8),
    ("gmres", "convection-40", 1e-8),
    ("gmres-dr", "saddle-18", 1e-8),
    ("gmres-dr", "shear-36", 1e-8),
    ("bicgstab", "convection-40", 1e-8),
    ("bicgstab", "saddle-18", 1e-8),
    ("jacobi", "poisson3d-14", 1e-4),
    ("sor", "-sherman1", 1e-4),
];
/// Seeds of each row, unless given.
const SEEDS: u64 = 40;
/// Seconds of the sweep.
const INTERVALS: [f64; 7] = [120.0, 200.0, 330.0, 550.0, 900.0, 1500.0, 2500.0];
/// The rivals that take versions.
const STATES: [Saving; 5] = [
    Saving::Fixed(Scheme::Lossless),
    Saving::Fixed(Scheme::Exact),
    Saving::Lossy(Resume::Restarted),
    Saving::Lossy(Resume::Deflated),
    Saving::Lossy(Resume::Traditional),
];

/// A fixed choice, and the overheads of its seeds.
struct Rival {
    saving: Saving,
    interval_seconds: f64,
    overheads: Vec<f64>,
}

/// Overheads by method, problem, choice and interval, kept in a file while only `auto` changes.
#[derive(Default)]
struct Known(HashMap<String, Vec<f64>>);

impl Known {
    fn read(path: Option<&str>) -> Self {
        let text = path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let row = |line: &str| {
            let (name, values) = line.split_once(": ")?;
            Some((name.to_owned(), values.split(' ').map(|value| value.parse().unwrap()).collect()))
        };
        Self(text.lines().filter_map(row).collect())
    }

    fn write(&self, path: &str) {
        let mut text = String::new();
        for (name, overheads) in &self.0 {
            let values: Vec<String> = overheads.iter().map(f64::to_string).collect();
            writeln!(text, "{name}: {}", values.join(" ")).unwrap();
        }
        std::fs::write(path, text).unwrap();
    }
}

/// Prints the table.
pub(crate) fn print(options: &Options, benches: &[Bench]) {
    let seeds = options.value("--seeds").map_or(SEEDS, |text| text.parse().unwrap());
    let mut known = Known::read(options.value("--known"));
    println!("\nOverhead in percent, means over {seeds} seeds; auto less the best fixed choice, +- 95 %.\n");
    println!(
        "| method | problem | iterations | none | lossless | exact | x | x+p | recurrence | best | auto | auto - best |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut above = Vec::new();
    for (method, problem, rtol) in CASES.into_iter().filter(|(method, ..)| options.wants("--method", method)) {
        let Some(bench) = benches.iter().find(|bench| bench.name == problem) else { continue };
        let case = Case { bench, method, rtol };
        let Some((iterations, _)) = case.undisturbed() else {
            println!("| {method} | {problem} | does not converge |");
            continue;
        };
        let rivals = rivals(&case, &mut known, seeds, iterations);
        let auto = overheads(&case, Saving::Auto, Interval::Auto, seeds, iterations);
        let (difference, half_width) = above_best(&auto, &rivals);
        let best = rivals.iter().min_by(|a, b| mean(&a.overheads).total_cmp(&mean(&b.overheads))).unwrap();
        let states = [Saving::Fixed(Scheme::None)].into_iter().chain(STATES).map(|state| {
            let of_state = rivals.iter().filter(|rival| rival.saving == state);
            let least = of_state.map(|rival| 100.0 * mean(&rival.overheads)).reduce(f64::min);
            least.map_or_else(|| "-".to_owned(), |least| format!("{least:.1}"))
        });
        println!(
            "| {method} | {problem} | {iterations} | {} | {} {:.0} s | {:.1} | {:+.1} +- {:.1} |",
            states.collect::<Vec<_>>().join(" | "),
            best.saving.name(),
            best.interval_seconds,
            100.0 * mean(&auto),
            100.0 * difference,
            100.0 * half_width
        );
        above.push(100.0 * difference);
        options.value("--known").iter().for_each(|path| known.write(path));
    }
    println!("\n{} rows: auto is {:+.2} points above the best fixed choice on average", above.len(), mean(&above));
}

/// Every fixed choice; the intervals are rounded to whole iterations.
fn rivals(case: &Case<'_>, known: &mut Known, seeds: u64, iterations: u64) -> Vec<Rival> {
    let states = STATES.into_iter().flat_map(|state| INTERVALS.map(|seconds| (state, seconds)));
    // Only those with directions resume deflated.
    let has_directions = matches!(case.method, "cg" | "cg-restarted" | "pipecg");
    let states = states.filter(|(state, _)| has_directions || *state != Saving::Lossy(Resume::Deflated));
    let choices = [(Saving::Fixed(Scheme::None), f64::INFINITY)].into_iter().chain(states);
    let rival = |(saving, interval_seconds): (Saving, f64)| {
        let every = (interval_seconds * iterations as f64 / case.productive_seconds()).round().max(1.0) as u64;
        let name =
            format!("{} {} {:e} {} {interval_seconds} {seeds}", case.method, case.bench.name, case.rtol, saving.name());
        let measure = || overheads(case, saving, Interval::Iterations(every), seeds, iterations);
        let overheads = known.0.entry(name).or_insert_with(measure).clone();
        Rival { saving, interval_seconds, overheads }
    };
    choices.map(rival).collect()
}

/// Of each seed; infinite where the run did not converge.
fn overheads(case: &Case<'_>, saving: Saving, interval: Interval, seeds: u64, iterations: u64) -> Vec<f64> {
    let overhead = |seed| {
        let run = case.in_regime(saving, interval, seed, iterations);
        let is_done = run.ended == Ended::Converged;
        if is_done { run.seconds_total / case.productive_seconds() - 1.0 } else { f64::INFINITY }
    };
    (0..seeds).map(overhead).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Mean of the differences to the best rival, seed by seed, and half the width of its 95 %
/// interval.
fn above_best(auto: &[f64], rivals: &[Rival]) -> (f64, f64) {
    let of_half =
        |overheads: &[f64], half: usize| mean(&overheads.iter().copied().skip(half).step_by(2).collect::<Vec<_>>());
    let best_without = [0, 1].map(|half| {
        let by_others = |rival: &&Rival| of_half(&rival.overheads, 1 - half);
        rivals.iter().min_by(|a, b| by_others(a).total_cmp(&by_others(b))).unwrap()
    });
    let difference = |(seed, ours): (usize, &f64)| ours - best_without[seed % 2].overheads[seed];
    let differences: Vec<f64> = auto.iter().enumerate().map(difference).collect();
    let mean = mean(&differences);
    let n = differences.len() as f64;
    let variance = differences.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, 1.96 * (variance / n).sqrt())
}
