//! `recoup model levels`: the levels of checkpoints to use, and the interval of each.

use std::str::FromStr;

use anyhow::Result;
use recoup::model::multilevel::{CheckpointLevel, plan};
use recoup::model::shares::{FailureShares, Loss, Survivor};
use recoup::model::simulate::{Estimate, MultilevelSimulation};
use serde::Serialize;

use crate::exit::Exit;
use crate::options::duration;
use crate::output::{Output, TextTable, percent, seconds};

/// Shown below the help.
pub(super) const EXAMPLES: &str = "\
Levels are named by the worst failure they survive: memory a lost process,
partner or rs (copies and sums on other nodes) a lost node, pfs a lost job.
Examples:
  recoup model levels --mtti 3600 --ckpt memory:0.2,pfs:40
  recoup model levels --mtti 3600 --ckpt memory:0.2,partner:0.6,pfs:40 \\
      --failure-shares process:0.5,node:0.4,job:0.1";

/// The levels available, and the failures they cover.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    mtti: f64,
    /// Time of one checkpoint on each level, weakest first: memory, partner or rs, pfs.
    #[arg(long, value_name = "LEVEL:DURATION,..")]
    ckpt: Costs,
    /// Time of a recovery from each level [default: that of a checkpoint].
    #[arg(long, value_name = "LEVEL:DURATION,..")]
    recover: Option<Costs>,
    /// Shares of failures that take a process, a node with its memory, or the whole job.
    #[arg(long, value_name = "KIND:S,..", default_value_t = FailureShares::default())]
    failure_shares: FailureShares,
    /// Simulated runs, each of 200 times the MTTI.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..))]
    trials: u32,
    /// Seed of the failures; the same seed repeats exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Simulated work, in units of the MTTI.
const SIMULATED_MTTIS: f64 = 200.0;

/// Seconds by level, weakest first.
#[derive(Clone, Debug, PartialEq)]
struct Costs(Vec<(String, f64)>);

impl FromStr for Costs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut costs = Vec::<(String, f64)>::new();
        for part in text.split(',') {
            let (name, cost) = part.split_once(':').ok_or_else(|| format!("{part:?}: expected LEVEL:DURATION"))?;
            let survives = survives(name).ok_or_else(|| format!("{name:?}: expected memory, partner, rs or pfs"))?;
            if costs.last().and_then(|(before, _)| self::survives(before)).is_some_and(|before| before >= survives) {
                return Err(format!("{name} survives no more than the level before it: weakest first"));
            }
            let cost = duration(cost).map_err(|error| error.to_string())?;
            costs.push((name.to_owned(), cost));
        }
        Ok(Self(costs))
    }
}

/// The worst loss a level survives.
fn survives(level: &str) -> Option<Loss> {
    match level {
        "memory" => Some(Loss::Process),
        "partner" | "rs" => Some(Loss::Node),
        "pfs" => Some(Loss::Job),
        _ => None,
    }
}

/// The results of the model; an infinite number is `null` in JSON.
#[derive(Debug, Serialize)]
struct Found {
    mtti_s: f64,
    failure_shares: FailureShares,
    levels: Vec<LevelJson>,
    /// Computing between two checkpoints of the weakest level.
    base_interval_s: f64,
    expected_overhead: f64,
    simulated_overhead: f64,
    /// Half the width of the 95 % confidence interval of it.
    simulated_half_width: f64,
    /// The same failures with the last level alone.
    last_alone_overhead: f64,
}

#[derive(Debug, Serialize)]
struct LevelJson {
    level: String,
    survives: Loss,
    share: f64,
    checkpoint_s: f64,
    recovery_s: f64,
    /// `sqrt(2 C MTTI / share)`, to first order; for a level that is not used, of no use.
    first_order_interval_s: f64,
    used: bool,
    /// Checkpoints of the weakest level to one of this.
    every: u64,
    interval_s: f64,
}

/// Answers.
///
/// # Errors
/// Exit 2 for recoveries of levels there are none of; when stdout cannot be written to.
pub(super) fn run(args: &Args, output: &Output) -> Result<()> {
    let found = find(args)?;
    output.emit(&found, table)
}

fn find(args: &Args) -> Result<Found> {
    let costs = &args.ckpt.0;
    let recoveries = args.recover.as_ref().map_or(&costs[..], |given| &given.0);
    let recovery = |name: &str| recoveries.iter().find(|(level, _)| level == name).map(|(_, seconds)| *seconds);
    if let Some((name, _)) = recoveries.iter().find(|(name, _)| costs.iter().all(|(level, _)| level != name)) {
        return Err(Exit::Usage.because(format!("--recover {name}: --ckpt has no such level")));
    }
    let survivor = |(name, cost): &(String, f64)| Survivor {
        survives: survives(name).unwrap_or(Loss::Job),
        checkpoint_seconds: *cost,
        recovery_seconds: recovery(name).unwrap_or(*cost),
    };
    let survivors: Vec<Survivor> = costs.iter().map(survivor).collect();
    let levels = args.failure_shares.levels(args.mtti, &survivors);
    let nothing = || Exit::Usage.because("--ckpt names no level");
    let plan = plan(&levels).ok_or_else(nothing)?;
    let pattern = plan.pattern();
    let every = plan.cadence(levels.len());
    let simulated = simulate(&levels, args).ok_or_else(nothing)?;
    let json = |(index, (name, _)): (usize, &(String, f64))| LevelJson {
        level: name.clone(),
        survives: survivors[index].survives,
        share: args.mtti / levels[index].mtti_seconds,
        checkpoint_s: survivors[index].checkpoint_seconds,
        recovery_s: survivors[index].recovery_seconds,
        first_order_interval_s: (2.0 * survivors[index].checkpoint_seconds * levels[index].mtti_seconds).sqrt(),
        used: plan.used.iter().any(|used| used.level == index),
        every: every[index],
        interval_s: pattern.base_seconds * every[index] as f64,
    };
    Ok(Found {
        mtti_s: args.mtti,
        failure_shares: args.failure_shares,
        levels: costs.iter().enumerate().map(json).collect(),
        base_interval_s: pattern.base_seconds,
        expected_overhead: pattern.overhead_fraction,
        simulated_overhead: simulated.mean,
        simulated_half_width: simulated.half_width,
        last_alone_overhead: alone(&levels, args.mtti),
    })
}

fn simulate(levels: &[CheckpointLevel], args: &Args) -> Option<Estimate> {
    let plan = plan(levels)?;
    let pattern = plan.pattern();
    let work_seconds = SIMULATED_MTTIS * args.mtti;
    Some(MultilevelSimulation { plan, pattern, work_seconds, trials: args.trials, seed: args.seed }.run())
}

/// The overhead expected when the last level answers for all failures.
fn alone(levels: &[CheckpointLevel], mtti_seconds: f64) -> f64 {
    let last = levels.last().map(|last| CheckpointLevel { mtti_seconds, ..*last });
    plan(last.as_slice()).map_or(f64::INFINITY, |plan| plan.pattern().overhead_fraction)
}

fn table(found: &Found) -> TextTable {
    let mut table = TextTable::new(&["level", "survives a lost", "of failures", "checkpoint", "every", "interval"]);
    for level in &found.levels {
        let every = if level.used { level.every.to_string() } else { "not used".to_owned() };
        table.row([
            level.level.clone(),
            level.survives.to_string(),
            percent(level.share),
            seconds(level.checkpoint_s),
            every,
            seconds(level.interval_s),
        ]);
    }
    let expected = percent(found.expected_overhead);
    let simulated = percent(found.simulated_overhead);
    table.note(format!(
        "overhead expected {expected}, simulated {simulated} +- {}",
        percent(found.simulated_half_width)
    ));
    table.note(format!("with {} alone {}", last(found), percent(found.last_alone_overhead)));
    super::note_no_progress(&mut table, [found.expected_overhead, found.last_alone_overhead]);
    table
}

fn last(found: &Found) -> &str {
    found.levels.last().map_or("the last level", |level| &level.level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_weakest_first_and_nonsense_is_named() {
        let costs: Costs = "memory:0.2,rs:1,pfs:40".parse().unwrap();
        assert_eq!(costs.0.len(), 3);
        for wrong in ["", "memory", "memory:0", "disk:1", "pfs:1,memory:1", "partner:1,rs:1"] {
            assert!(wrong.parse::<Costs>().is_err(), "{wrong}");
        }
    }
}
