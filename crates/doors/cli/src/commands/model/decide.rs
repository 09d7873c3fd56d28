//! `recoup model decide`: the scheme, its interval and its levels, with reasons.

use std::collections::BTreeMap;

use anyhow::Result;
use recoup::core::Scheme;
use recoup::model::decide::Question;
use serde::Serialize;

use super::machine::{MachineOrScenario, Subject};
use super::scenario::Scenario;
use crate::exit::Exit;
use crate::options::duration;
use crate::output::{Output, TextTable, percent, seconds};

/// The machine and the job.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    given: MachineOrScenario,
    /// Say what this interval costs beside the best one (one level only).
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    interval: Option<f64>,
}

/// Decides.
pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let found = match args.given.subject()? {
        Subject::Numbers(question) => of_question(&question, None, args.interval)?,
        Subject::File(scenario) => match scenario.question() {
            Some(question) => of_question(&question, Some(scenario.title()), args.interval)?,
            None if args.interval.is_some() => {
                return Err(Exit::Usage.because("--interval: this scenario has several levels, each with its own"));
            }
            None => of_levels(&scenario),
        },
    };
    let groups: Vec<_> =
        found.expected_overhead.iter().map(|(scheme, of)| (scheme.to_string(), vec![100.0 * of])).collect();
    output.emit(&found, table)?;
    args.given.draw(&groups, &["expected"])
}

/// An infinite overhead or interval is `null` in JSON.
#[derive(Debug, Serialize)]
struct Decided {
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<String>,
    scheme: Scheme,
    interval_s: f64,
    /// To the end of the solve, exact for exponential failures.
    expected_overhead: BTreeMap<Scheme, f64>,
    /// The best interval of each; null where no version of it pays.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    intervals_s: BTreeMap<Scheme, f64>,
    /// The formula of first order, of a run without end.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    first_order_overhead: BTreeMap<Scheme, f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    present: Option<PresentInterval>,
    max_extra_iterations: Option<f64>,
    why: String,
    /// Levels that the scheme uses, weakest first, on a machine with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<UsedLevel>,
}

/// An interval that somebody has, and its costs.
#[derive(Debug, Serialize)]
struct PresentInterval {
    interval_s: f64,
    expected_overhead: BTreeMap<Scheme, f64>,
}

#[derive(Debug, Serialize)]
struct UsedLevel {
    name: String,
    interval_s: f64,
    checkpoint_s: f64,
}

fn of_question(question: &Question, scenario: Option<String>, present: Option<f64>) -> Result<Decided> {
    let possible = question.iteration_seconds..=question.remaining_seconds;
    if let Some(interval_s) = present.filter(|interval_s| !possible.contains(interval_s)) {
        let [least, most] = [*possible.start(), *possible.end()].map(seconds);
        let given = seconds(interval_s);
        let message = format!("--interval {given}: expected one iteration to the whole solve, {least} to {most}");
        return Err(Exit::Usage.because(message));
    }
    let answer = question.answer(0.0);
    let schemes = || question.costs.iter().filter(|(scheme, _)| *scheme != Scheme::None);
    Ok(Decided {
        scenario,
        scheme: answer.scheme,
        interval_s: answer.interval_seconds,
        expected_overhead: answer.expected_overhead.iter().copied().collect(),
        intervals_s: answer.intervals.iter().copied().collect(),
        first_order_overhead: schemes()
            .map(|(scheme, cost)| (*scheme, question.timing(cost).overhead_fraction()))
            .collect(),
        present: present.map(|interval_s| {
            let expected_overhead = question.overhead_at(interval_s).into_iter().collect();
            PresentInterval { interval_s, expected_overhead }
        }),
        max_extra_iterations: answer.max_extra_iterations,
        why: question.why_of(&answer, answer.scheme),
        levels: Vec::new(),
    })
}

/// The scheme of least overhead, each at its best pattern of levels.
fn of_levels(scenario: &Scenario) -> Decided {
    let patterns: Vec<_> = scenario.plans().into_iter().map(|(scheme, plan)| (scheme, plan.pattern(), plan)).collect();
    let best = patterns.iter().min_by(|(_, a, _), (_, b, _)| a.overhead_fraction.total_cmp(&b.overhead_fraction));
    let levels = best.map_or_else(Vec::new, |(_, pattern, plan)| {
        let mut interval_s = pattern.base_seconds;
        let used = plan.used.iter().zip(&pattern.every).map(|(used, &every)| {
            interval_s *= every as f64;
            let name = scenario.levels()[used.level].name.clone();
            UsedLevel { name, interval_s, checkpoint_s: used.checkpoint_seconds }
        });
        used.collect()
    });
    let scheme = best.map_or(Scheme::None, |(scheme, _, _)| *scheme);
    let overheads = patterns.iter().map(|(scheme, pattern, _)| (*scheme, pattern.overhead_fraction));
    let expected_overhead: BTreeMap<Scheme, f64> = overheads.collect();
    let each: Vec<String> = expected_overhead.iter().map(|(scheme, of)| format!("{scheme} {}", percent(*of))).collect();
    let used: Vec<String> =
        levels.iter().map(|of: &UsedLevel| format!("{} every {}", of.name, seconds(of.interval_s))).collect();
    Decided {
        scenario: Some(scenario.title()),
        scheme,
        interval_s: best.map_or(f64::INFINITY, |(_, pattern, _)| pattern.base_seconds),
        expected_overhead,
        intervals_s: BTreeMap::new(),
        first_order_overhead: BTreeMap::new(),
        present: None,
        max_extra_iterations: None,
        why: format!("{}; {scheme} with {}", each.join(", "), used.join(", ")),
        levels,
    }
}

fn table(found: &Decided) -> TextTable {
    let mut head = vec!["scheme".to_owned(), "expected overhead".to_owned()];
    if !found.intervals_s.is_empty() {
        head.extend(["every", "endless, first order"].map(str::to_owned));
    }
    head.extend(found.present.iter().map(|present| format!("every {}", seconds(present.interval_s))));
    let mut table = TextTable::new(&head.iter().map(String::as_str).collect::<Vec<_>>());
    let cell = |of: Option<&f64>, write: fn(f64) -> String| {
        of.filter(|value| value.is_finite()).map_or_else(|| "-".to_owned(), |value| write(*value))
    };
    for (scheme, overhead) in &found.expected_overhead {
        let mut row = vec![scheme.to_string(), percent(*overhead)];
        if !found.intervals_s.is_empty() {
            row.push(cell(found.intervals_s.get(scheme), seconds));
            row.push(cell(found.first_order_overhead.get(scheme), percent));
        }
        row.extend(found.present.iter().map(|present| cell(present.expected_overhead.get(scheme), percent)));
        table.row(row);
    }
    table.note("");
    if let Some(title) = &found.scenario {
        table.note(title.as_str());
    }
    table.note(match found.scheme {
        Scheme::None => "save nothing: no version pays before the end".to_owned(),
        scheme => format!("save {scheme}, every {}", seconds(found.interval_s)),
    });
    for level in &found.levels {
        let name = &level.name;
        let checkpoint = seconds(level.checkpoint_s);
        table.note(format!("  {name}: every {}, {checkpoint} each", seconds(level.interval_s)));
    }
    match found.max_extra_iterations {
        Some(most) if most > 0.0 => {
            table.note(format!("lossy beats traditional up to {most:.1} extra iterations per recovery"));
        }
        Some(_) => {
            table.note("lossy does not beat traditional, whatever a recovery costs");
        }
        None => {}
    }
    table.note(format!("why: {}", found.why));
    super::note_no_progress(&mut table, found.expected_overhead.values().copied());
    table
}
