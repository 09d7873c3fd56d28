//! `recoup tape plan`: the schedule of an adjoint program with the least predicted time, from its
//! numbers and those of the machine.

mod actions;
mod numbers;

use std::path::PathBuf;

use anyhow::Result;
use recoup::tape::schedule::{AdjointProblem, ScheduleCandidate, ScheduleChoice, ScheduleKind, StateForm};
use serde::Serialize;

use self::actions::ActionStream;
use self::numbers::PlanNumbers;
use crate::exit::Exit;
use crate::observe::steps::WaitBar;
use crate::output::{Output, TextTable, bytes, seconds};

/// The end of the help.
pub(super) const EXAMPLES: &str = "Examples:
  recoup tape plan --steps 2000 --state 512MiB --t-step 80ms --memory 64GiB
  recoup tape plan --steps 2000 --state 512MiB --t-step 80ms --memory 64GiB \\
      --disk 500GB --disk-rate 2G --ratio 8 --codec-rate 4G
  recoup tape plan --steps 6 --state 1MiB --t-step 1s --memory 2MiB --actions

Three ways are compared:
  store all       raw states; no forward step is taken again
  compress all    the same with states that a codec makes smaller (--ratio R
                  and --codec-rate)
  recompute some  fewer states, raw or coded; some forward steps are taken again
Times add up: no copy runs next to a step. They are too high for a program whose
copies do, as those of a tape.

Lines of --actions, in the order in which the program carries them out:
  advance A B [record]     takes the forward steps A to B - 1; with record it
                           keeps the data of the last one for its reverse
  write memory|disk K      stores the state that step K begins with
  read memory|disk K       gives it back; it stays stored
  take memory|disk K       gives it back; it leaves
  reverse K                takes the reverse of step K
  end                      all steps were reversed

A file of --costs has the numbers as JSON, in bytes and seconds, under the names
that the key problem of --json has. Options win over the file.";

/// Options of `recoup tape plan`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    numbers: PlanNumbers,

    /// Numbers in a JSON file, for options that are not given.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,

    /// Print the actions of the cheapest schedule, one in a line, in place of the table; with
    /// --json, add them.
    #[arg(long)]
    actions: bool,
}

/// The plan, as JSON.
#[derive(Debug, Serialize)]
struct PlanReport {
    problem: PlanNumbers,
    schedule: &'static str,
    states: String,
    way: &'static str,
    predicted_s: f64,
    why: String,
    candidates: Vec<CandidateRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actions: Option<ActionStream>,
}

/// A schedule that was looked at.
#[derive(Debug, Serialize)]
struct CandidateRow {
    schedule: &'static str,
    states: String,
    way: &'static str,
    reason: String,
    #[serde(flatten)]
    work: Option<PredictedWork>,
}

/// The predicted work of a schedule.
#[derive(Debug, Serialize)]
struct PredictedWork {
    predicted_s: f64,
    forward_steps: u64,
    recomputed_steps: u64,
    memory_bytes_max: u64,
    disk_bytes_max: u64,
}

/// Plans.
///
/// # Errors
/// Exit 2 for numbers that are missing or that no program has, and where no schedule fits; when the
/// file of --costs cannot be read, or stdout cannot be written to.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    let given = match &args.costs {
        Some(path) => args.numbers.clone().or(PlanNumbers::read(path)?),
        None => args.numbers.clone(),
    };
    let numbers = given.filled()?;
    let problem = numbers.problem()?;
    let waiting = WaitBar::new("comparing schedules");
    let choice = problem.choose().map_err(|refusal| numbers.refused(&refusal))?;
    drop(waiting);
    let report = report(numbers, problem, &choice, args.actions);
    match &report.actions {
        Some(actions) => output.emit(&report, |_| actions.to_string())?,
        None => output.emit(&report, table)?,
    }
    Ok(Exit::Done)
}

fn report(numbers: PlanNumbers, problem: AdjointProblem, choice: &ScheduleChoice, has_actions: bool) -> PlanReport {
    let best = choice.best;
    PlanReport {
        problem: numbers,
        schedule: best.kind.name(),
        states: best.form.to_string(),
        way: way(best.kind, best.form, best.recomputed_steps),
        predicted_s: best.seconds,
        why: choice.why(),
        candidates: choice.candidates.iter().map(|candidate| row(choice, candidate)).collect(),
        actions: has_actions.then_some(ActionStream { problem, plan: best }),
    }
}

fn row(choice: &ScheduleChoice, candidate: &ScheduleCandidate) -> CandidateRow {
    let work = candidate.outcome.ok().map(|plan| PredictedWork {
        predicted_s: plan.seconds,
        forward_steps: plan.forward_steps,
        recomputed_steps: plan.recomputed_steps,
        memory_bytes_max: plan.memory_bytes_max,
        disk_bytes_max: plan.disk_bytes_max,
    });
    CandidateRow {
        schedule: candidate.kind.name(),
        states: candidate.form.to_string(),
        way: way(candidate.kind, candidate.form, work.as_ref().map_or(1, |work| work.recomputed_steps)),
        reason: choice.reason(candidate),
        work,
    }
}

/// The way of a schedule. With room for all states, those of restarts take no step again either.
fn way(kind: ScheduleKind, form: StateForm, recomputed_steps: u64) -> &'static str {
    match form {
        _ if kind != ScheduleKind::StoreAll && recomputed_steps > 0 => "recompute some",
        StateForm::Raw => "store all",
        StateForm::Coded => "compress all",
    }
}

/// Draws the report for people: the schedules that are possible, the fastest first, and why the
/// others are not.
fn table(report: &PlanReport) -> TextTable {
    let mut table = TextTable::new(&["schedule", "states", "way", "time", "steps again", "memory", "disk"]);
    let mut possible: Vec<(&CandidateRow, &PredictedWork)> =
        report.candidates.iter().filter_map(|row| Some((row, row.work.as_ref()?))).collect();
    // Of equals the simplest stays first.
    possible.sort_by(|a, b| a.1.predicted_s.total_cmp(&b.1.predicted_s));
    for (row, work) in possible {
        table.row([
            row.schedule.to_owned(),
            row.states.clone(),
            row.way.to_owned(),
            seconds(work.predicted_s),
            work.recomputed_steps.to_string(),
            bytes(work.memory_bytes_max as f64),
            bytes(work.disk_bytes_max as f64),
        ]);
    }
    table.note(report.why.as_str());
    for line in refusals(&report.candidates) {
        table.note(line);
    }
    table
}

/// Lists the schedules that are not possible, by reason.
fn refusals(candidates: &[CandidateRow]) -> Vec<String> {
    let mut refused: Vec<(&str, Vec<String>)> = Vec::new();
    for row in candidates.iter().filter(|row| row.work.is_none()) {
        let name = format!("{} {}", row.schedule, row.states);
        match refused.iter_mut().find(|(reason, _)| *reason == row.reason) {
            Some((_, names)) => names.push(name),
            None => refused.push((&row.reason, vec![name])),
        }
    }
    refused.into_iter().map(|(reason, names)| format!("not possible: {}: {reason}", names.join(", "))).collect()
}
