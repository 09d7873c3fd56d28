//! `recoup model decide`: the scheme, its interval and its levels, with reasons.

use std::collections::BTreeMap;

use anyhow::Result;
use recoup::core::Scheme;
use recoup::model::decide::Question;
use serde::Serialize;

use super::machine::{MachineOrScenario, Subject};
use super::scenario::Scenario;
use crate::output::{Output, TextTable, percent, seconds};

/// The machine and the job.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    given: MachineOrScenario,
}

/// Decides.
///
/// # Errors
/// When the scenario makes no sense, or the report or stdout cannot be written to.
pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let found = match args.given.subject()? {
        Subject::Numbers(question) => of_question(&question, None),
        Subject::File(scenario) => of_scenario(&scenario),
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
    expected_overhead: BTreeMap<Scheme, f64>,
    max_extra_iterations: Option<f64>,
    why: String,
    /// Levels that the scheme uses, weakest first, on a machine with several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    levels: Vec<UsedLevel>,
}

#[derive(Debug, Serialize)]
struct UsedLevel {
    name: String,
    interval_s: f64,
    checkpoint_s: f64,
}

fn of_question(question: &Question, scenario: Option<String>) -> Decided {
    let answer = question.answer();
    Decided {
        scenario,
        scheme: answer.scheme,
        interval_s: answer.interval_seconds,
        expected_overhead: answer.expected_overhead.iter().copied().collect(),
        max_extra_iterations: answer.max_extra_iterations,
        why: answer.why,
        levels: Vec::new(),
    }
}

fn of_scenario(scenario: &Scenario) -> Decided {
    match scenario.question() {
        Some(question) => of_question(&question, Some(scenario.title())),
        None => of_levels(scenario),
    }
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
        max_extra_iterations: None,
        why: format!("{}; {scheme} with {}", each.join(", "), used.join(", ")),
        levels,
    }
}

fn table(found: &Decided) -> TextTable {
    let mut table = TextTable::new(&["scheme", "expected overhead"]);
    for (scheme, overhead) in &found.expected_overhead {
        table.row([scheme.to_string(), percent(*overhead)]);
    }
    table.note("");
    if let Some(title) = &found.scenario {
        table.note(title.as_str());
    }
    table.note(format!("save {}, every {}", found.scheme, seconds(found.interval_s)));
    for level in &found.levels {
        let name = &level.name;
        let checkpoint = seconds(level.checkpoint_s);
        table.note(format!("  {name}: every {}, {checkpoint} each", seconds(level.interval_s)));
    }
    if let Some(most) = found.max_extra_iterations {
        table.note(format!("lossy beats traditional up to {most:.1} extra iterations per recovery"));
    }
    table.note(format!("why: {}", found.why));
    super::note_no_progress(&mut table, found.expected_overhead.values().copied());
    table
}
