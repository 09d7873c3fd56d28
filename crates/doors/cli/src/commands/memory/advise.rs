//! `recoup memory advise`: what each policy of saving leaves for the program.

use anyhow::Result;
use recoup::memory::SavePolicy;
use recoup::model::interval::Checkpointing;
use recoup::model::overhead::CheckpointTiming;
use recoup::model::simulate::SavingSimulation;
use serde::Serialize;

use crate::commands::model::note_no_progress;
use crate::exit::Exit;
use crate::options::duration;
use crate::output::{Output, TextTable, percent, seconds};

/// Text of the help after the options.
pub(super) const EXAMPLES: &str = "Examples:
  recoup memory advise --cost 1s --mtti 1h
  recoup memory advise --cost 10s --mtti 1d --step 2s --json

Efficiency is the time of the steps divided by all time: of commits, of work
that failures cost, and of recoveries. A program asks after each step.";

/// The commits and failures of a program.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Time of one commit.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    cost: f64,
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    mtti: f64,
    /// Time of one recovery [default: that of a commit].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    recover: Option<f64>,
    /// Time of one step of the program [default: a hundredth of a commit].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    step: Option<f64>,
    /// Simulated runs of each policy, of a hundred times the MTTI each.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(2..=100_000))]
    trials: u32,
    /// Seed of the failures; the same seed repeats exactly.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// The efficiency of each policy.
#[derive(Serialize)]
struct SavingAdvice {
    cost_s: f64,
    mtti_s: f64,
    recovery_s: f64,
    step_s: f64,
    trials: u32,
    seed: u64,
    policies: Vec<AdvisedPolicy>,
    why: String,
}

/// The efficiency of one policy.
#[derive(Serialize)]
struct AdvisedPolicy {
    policy: String,
    /// Computing between two versions.
    interval_s: f64,
    /// By formula, for a version at any instant.
    efficiency: f64,
    /// Mean of the simulated runs.
    simulated_efficiency: f64,
    /// Half of its 95 % interval.
    simulated_half_width: f64,
}

/// Simulated time, in MTTIs.
const WORK_MTTIS: f64 = 100.0;

/// Compares the policies.
pub(super) fn run(args: &Args, output: &Output) -> Result<Exit> {
    output.emit(&advice(args), table)?;
    Ok(Exit::Done)
}

fn advice(args: &Args) -> SavingAdvice {
    let recovery_seconds = args.recover.unwrap_or(args.cost);
    let step_seconds = args.step.unwrap_or(args.cost / 100.0);
    let checkpointing = Checkpointing { mtti_seconds: args.mtti, checkpoint_seconds: args.cost };
    let timing = CheckpointTiming { recovery_seconds, ..CheckpointTiming::synchronous(checkpointing) };
    let mtti_seconds = args.mtti;
    let auto = SavePolicy::Auto { mtti_seconds };
    let all = [auto, SavePolicy::Daly { mtti_seconds }, SavePolicy::Young { mtti_seconds }, SavePolicy::Greedy];
    let of_policy = |policy: SavePolicy| {
        let simulated = SavingSimulation {
            policy,
            cost_seconds: args.cost,
            recovery_seconds,
            mtti_seconds,
            step_seconds,
            steps: (WORK_MTTIS * mtti_seconds / step_seconds).ceil() as u64,
            trials: args.trials,
            seed: args.seed,
        };
        let simulated = simulated.efficiency();
        let interval_s = policy.interval_seconds(args.cost);
        AdvisedPolicy {
            policy: policy.to_string(),
            interval_s,
            efficiency: 1.0 / (1.0 + timing.exact_overhead_fraction(interval_s)),
            simulated_efficiency: simulated.mean,
            simulated_half_width: simulated.half_width,
        }
    };
    let best = auto.interval_seconds(args.cost);
    let why = format!(
        "auto saves every {}: sooner, commits of {} take more than they spare; later, a failure every {} costs more \
         work than they would.",
        seconds(best),
        seconds(args.cost),
        seconds(mtti_seconds)
    );
    SavingAdvice {
        cost_s: args.cost,
        mtti_s: mtti_seconds,
        recovery_s: recovery_seconds,
        step_s: step_seconds,
        trials: args.trials,
        seed: args.seed,
        policies: all.into_iter().map(of_policy).collect(),
        why,
    }
}

fn table(advice: &SavingAdvice) -> TextTable {
    let mut table = TextTable::new(&["policy", "interval", "efficiency", "simulated", "+-"]);
    for of in &advice.policies {
        table.row([
            of.policy.clone(),
            seconds(of.interval_s),
            percent(of.efficiency),
            percent(of.simulated_efficiency),
            percent(of.simulated_half_width),
        ]);
    }
    table.note(advice.why.clone());
    note_no_progress(&mut table, advice.policies.iter().map(|of| 1.0 / of.efficiency - 1.0));
    table
}
