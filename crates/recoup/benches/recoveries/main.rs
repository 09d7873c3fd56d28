//! What recoveries cost every method: extra iterations, mean and worst of nine instants, by scheme;
//! and what `auto` costs beside the best fixed choice ([`rivals`]).
//!
//! `cargo xtask recoveries` runs both parts, some minutes on one core. Every run is repeatable:
//! failures come at fixed iterations or from a seed, sums have a fixed order. Options: `--part
//! recoveries|auto`, `--method NAME,..`, `--problem NAME,..`; of the first part `--rtol E,..`; of
//! the second `--seeds N`, and `--known FILE` for the overheads of fixed choices, which is made
//! where there is none.

#![expect(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

mod methods;
mod problems;
mod rivals;
mod runs;

use recoup::core::{Resume, Scheme};
use recoup::pipeline::Ended;
use recoup::solvers::METHODS;

use runs::{Bench, Case, Saving, alarms};

/// Tenths of the solve after which failures strike.
const TENTHS: std::ops::RangeInclusive<u64> = 1..=9;
/// What was asked for on the command line.
struct Options(Vec<String>);

impl Options {
    fn value(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    /// Whether a list names `item`, or is not given.
    fn wants(&self, name: &str, item: &str) -> bool {
        self.value(name).is_none_or(|list| list.split(',').any(|word| word == item))
    }

    fn tolerances(&self) -> Vec<f64> {
        self.value("--rtol").unwrap_or("1e-8,1e-12").split(',').map(|text| text.parse().unwrap()).collect()
    }
}

fn main() {
    let options = Options(std::env::args().collect());
    let wanted = |problems: Vec<problems::Problem>| -> Vec<Bench> {
        problems.into_iter().filter(|problem| options.wants("--problem", problem.name)).map(Bench::new).collect()
    };
    let mut benches = wanted(problems::all());
    if options.wants("--part", "recoveries") {
        recoveries(&options, &benches);
    }
    if options.wants("--part", "auto") {
        benches.extend(wanted(problems::slow_starters()));
        rivals::print(&options, &benches);
    }
}

/// Every method on every problem to every tolerance, with the iterations of its undisturbed solve.
fn cases<'a>(options: &'a Options, benches: &'a [Bench]) -> impl Iterator<Item = (Case<'a>, Option<(u64, Resume)>)> {
    let names = METHODS.iter().map(|method| method.name);
    let methods = names.filter(|name| options.wants("--method", name));
    methods.flat_map(move |method| {
        benches.iter().flat_map(move |bench| {
            options.tolerances().into_iter().map(move |rtol| {
                let case = Case { bench, method, rtol };
                (case, case.undisturbed())
            })
        })
    })
}

/// Extra iterations of nine recoveries from one kind of version.
#[derive(Default)]
struct Extra {
    each: Vec<f64>,
    alarms: u64,
    /// Breakdowns and stagnations gone back from.
    breakdowns: u64,
    unconverged: usize,
    /// Lossy versions came to hold what the recurrences need: the state is so small that less saves
    /// nothing, or costs more.
    held_more: bool,
}

impl Extra {
    fn of(case: &Case<'_>, saving: Saving, iterations: u64, usual: Resume) -> Self {
        let mut extra = Self::default();
        for tenths in TENTHS {
            let run = case.struck_at(saving, (iterations * tenths / 10).max(1), iterations);
            extra.alarms += alarms(&run);
            extra.breakdowns += run.breakdown_rollbacks;
            extra.unconverged += usize::from(run.ended != Ended::Converged);
            let is_usual = saving == Saving::Fixed(Scheme::Lossy);
            extra.held_more |= is_usual && run.saved.iter().any(|saved| saved.plan.resume > usual);
            if run.recoveries > 0 && run.ended == Ended::Converged {
                extra.each.push((run.executed - run.lost) as f64 - iterations as f64);
            }
        }
        extra
    }

    fn mean(&self) -> f64 {
        self.each.iter().sum::<f64>() / self.each.len().max(1) as f64
    }

    fn worst(&self) -> f64 {
        self.each.iter().copied().fold(0.0, f64::max)
    }

    fn cell(&self, iterations: u64) -> String {
        let percent = 100.0 * self.mean() / iterations as f64;
        let mut cell = format!("{:.1} {:.0} ({percent:.0} %)", self.mean(), self.worst());
        if self.held_more {
            cell.push_str(" r");
        }
        if self.alarms > 0 {
            cell.push_str(&format!(" {} alarms", self.alarms));
        }
        if self.breakdowns > 0 {
            cell.push_str(&format!(" {} breakdowns", self.breakdowns));
        }
        if self.unconverged > 0 {
            cell.push_str(&format!(" {} not converged", self.unconverged));
        }
        cell
    }
}

/// Means and worst rows of one method.
#[derive(Default)]
struct Summary {
    /// Of each scheme: name, mean and worst of the rows' means, worst recovery, as parts of the
    /// iterations.
    schemes: Vec<(String, Vec<f64>, f64)>,
    runs: usize,
    alarms: u64,
    fails_on: Vec<String>,
}

impl Summary {
    fn add(&mut self, saving: Saving, extra: &Extra, iterations: u64) {
        self.runs += TENTHS.count();
        self.alarms += extra.alarms;
        let part = |extra: f64| extra / iterations as f64;
        let name = saving.name();
        let at = self.schemes.iter().position(|(other, ..)| *other == name).unwrap_or_else(|| {
            self.schemes.push((name, Vec::new(), 0.0));
            self.schemes.len() - 1
        });
        self.schemes[at].1.push(part(extra.mean()));
        self.schemes[at].2 = self.schemes[at].2.max(part(extra.worst()));
    }

    fn print(&self, method: &str) {
        for (name, means, worst) in &self.schemes {
            let mean = means.iter().sum::<f64>() / means.len() as f64;
            let worst_row = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let percent = |part: f64| format!("{:.1} %", 100.0 * part);
            println!(
                "| {method} | {name} | {} | {} | {} | {} |",
                means.len(),
                percent(mean),
                percent(worst_row),
                percent(*worst)
            );
        }
    }
}

/// The first part: a table of all rows, and one of all methods.
fn recoveries(options: &Options, benches: &[Bench]) {
    println!(
        "Extra iterations of a recovery: mean and worst of nine instants, and the mean as a part of all iterations."
    );
    println!(
        "r: lossy versions came to hold what the recurrences need. Left out: what does not converge undisturbed.\n"
    );
    println!(
        "| method | problem | kind | to | iterations | traditional | exact | lossy | lossy x | lossy recurrence |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut summaries: Vec<(&str, Summary)> = Vec::new();
    for (case, undisturbed) in cases(options, benches) {
        if summaries.last().is_none_or(|(method, _)| *method != case.method) {
            summaries.push((case.method, Summary::default()));
        }
        let Some((_, summary)) = summaries.last_mut() else { continue };
        let Some((iterations, usual)) = undisturbed else {
            summary.fails_on.push(format!("{} to {:.0e}", case.bench.name, case.rtol));
            continue;
        };
        let Case { bench, method, rtol } = case;
        print!("| {method} | {} | {} | {rtol:.0e} | {iterations} |", bench.name, bench.kind);
        for saving in Saving::FIXED {
            let extra = Extra::of(&case, saving, iterations, usual);
            print!(" {} |", extra.cell(iterations));
            summary.add(saving, &extra, iterations);
        }
        println!();
    }
    println!("\n| method | scheme | rows | mean | worst row | worst recovery |\n|---|---|---|---|---|---|");
    summaries.iter().for_each(|(method, summary)| summary.print(method));
    let runs: usize = summaries.iter().map(|(_, summary)| summary.runs).sum();
    let alarms: u64 = summaries.iter().map(|(_, summary)| summary.alarms).sum();
    println!("\n{runs} runs without a flipped bit, {alarms} alarms.");
    for (method, summary) in summaries.iter().filter(|(_, summary)| !summary.fails_on.is_empty()) {
        println!("{method} does not converge on {}.", summary.fails_on.join(", "));
    }
}
