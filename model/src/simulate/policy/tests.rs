//! Twelve scenarios: what auto costs beside the best fixed choice.

use recoup_core::{BoundRule, CodecId, MethodProfile};

use super::*;
use crate::break_even::CodecRates;
use crate::decide::MachineBandwidths;
use crate::simulate::Simulation;
use crate::{AutoPolicy, PolicyConfig};

/// One of the twelve.
struct Scenario {
    name: String,
    runs: PolicySimulation,
    config: PolicyConfig,
}

/// Name, vectors of the iterate with directions, those of an exact version, extra iterations of a
/// lossy one and of one with the iterate alone, ratio of the lossy codec; the ratios are those of
/// whole solves under the verified rule.
const METHODS: [(&str, u64, u64, [f64; 2], f64); 3] =
    [("jacobi", 1, 1, [0.0, 0.0], 12.0), ("gmres", 1, 1, [0.0, 0.0], 6.0), ("cg", 2, 3, [0.006, 0.2], 8.0)];

/// The ratio under finer and coarser bounds as a part of that ratio, and the extra iterations that
/// coarser ones add to those of CG.
const FINE_RATIO: f64 = 0.8;
const COARSE_RATIO: f64 = 1.25;
const COARSE_FRACTION: f64 = 0.01;

/// Bytes of one vector on all ranks.
const VECTOR_BYTES: u64 = 40_000_000_000;

fn scenario(method: usize, slow: bool, often: bool, trials: u32) -> Scenario {
    let (name, vectors, exact_vectors, [extra_fraction, restarted_fraction], ratio) = METHODS[method];
    let bandwidth = if slow { 330e6 } else { 100e9 };
    let machine = MachineBandwidths {
        write_bytes_per_second: bandwidth,
        read_bytes_per_second: bandwidth,
        copy_bytes_per_second: 5e9,
        ranks: 512,
    };
    let raw_bytes = |count: u64| (count * VECTOR_BYTES) as f64;
    let lossless = CodecRates { ratio: 1.25, encode_bytes_per_second: 0.3e9, decode_bytes_per_second: 0.6e9 };
    // Two tries of the verified rule.
    let lossy = CodecRates { ratio, encode_bytes_per_second: 0.25e9, decode_bytes_per_second: 0.8e9 };
    let priced = |choice, vectors, coding: &CodecRates| (choice, machine.cost(raw_bytes(vectors), coding));
    let cost = |scheme, resume, vectors, coding: &CodecRates| {
        priced(Choice { scheme, resume, grain: BoundScale::Usual }, vectors, coding)
    };
    let lossy_resume = if name == "cg" { Resume::Deflated } else { Resume::Restarted };
    let mut costs = vec![
        cost(Scheme::Traditional, Resume::Traditional, vectors, &CodecRates::RAW),
        cost(Scheme::Lossless, Resume::Traditional, vectors, &lossless),
        cost(Scheme::Lossy, lossy_resume, vectors, &lossy),
    ];
    if name == "cg" {
        costs.push(cost(Scheme::Exact, Resume::Exact, exact_vectors, &lossless));
        costs.push(cost(Scheme::Lossy, Resume::Restarted, 1, &lossy));
    }
    for (grain, factor) in [(BoundScale::Fine, FINE_RATIO), (BoundScale::Coarse, COARSE_RATIO)] {
        let coding = CodecRates { ratio: factor * lossy.ratio, ..lossy };
        let states = [(lossy_resume, vectors), (Resume::Restarted, 1)];
        let scheme = Scheme::Lossy;
        costs.extend(states.map(|(resume, vectors)| priced(Choice { scheme, resume, grain }, vectors, &coding)));
    }
    let kinds = [
        (Resume::Restarted, 1),
        (Resume::Deflated, vectors),
        (Resume::Traditional, vectors),
        (Resume::Exact, exact_vectors),
    ];
    let mtti_seconds = if often { 3600.0 } else { 8.0 * 3600.0 };
    let method = SimulatedMethod {
        iterations: 1500,
        iteration_seconds: 4.0,
        tolerance: 1e-8,
        extra_fraction,
        restarted_fraction,
        coarse_fraction: if name == "cg" { COARSE_FRACTION } else { 0.0 },
        raw_bytes: kinds.map(|(kind, count)| (kind, count * VECTOR_BYTES / u64::from(machine.ranks))).to_vec(),
    };
    let config = config(name, mtti_seconds, lossy_resume);
    let storage = if slow { "slow" } else { "fast" };
    let rate = if often { "1 h" } else { "8 h" };
    let runs = PolicySimulation {
        method,
        costs,
        write_bytes_per_second: bandwidth / f64::from(machine.ranks),
        ranks: machine.ranks as usize,
        asynchronous: false,
        mtti_seconds,
        trials,
        seed: 1,
    };
    Scenario { name: format!("{name}, {storage} store, MTTI {rate}"), runs, config }
}

/// Returns the configuration of auto for a method.
fn config(name: &str, mtti_seconds: f64, lossy_resume: Resume) -> PolicyConfig {
    PolicyConfig {
        mtti_seconds,
        mtti_is_assumed: false,
        lossy_codec: CodecId::Zfp,
        lossless_codec: CodecId::Zstd,
        rule: BoundRule::Verified,
        theta: Some(0.5),
        delta: 0.05,
        varies_bounds: true,
        lossy_resume: Some(lossy_resume),
        resume: None,
        asynchronous: false,
        extra_fraction: Some(if name == "cg" { 0.2 } else { 0.0 }),
        profile: MethodProfile { is_stationary: name == "jacobi", deflated_fraction: 0.005, ..MethodProfile::UNKNOWN },
    }
}

/// The results of one scenario.
#[derive(Debug)]
struct Found {
    /// The best fixed choice with its interval in iterations, and its overhead.
    best: (Choice, u64, Estimate),
    auto: PolicyOutcome,
    over_best: Estimate,
    over_traditional: Estimate,
}

impl Scenario {
    fn fixed(&self, choice: Choice, iterations: u64) -> PolicyOutcome {
        let plan = Plan { resume: choice.resume, grain: choice.grain, ..self.config.plan(choice.scheme) };
        self.runs.drive(|| Every { plan, iterations })
    }

    /// The best interval by search: the one that divides the run into that number of parts.
    fn search(&self, choice: Choice) -> (Choice, u64, PolicyOutcome) {
        let cost = self.runs.cost(choice);
        let checkpoint = cost.blocking_seconds + cost.drain_seconds;
        let young = (2.0 * checkpoint * self.runs.mtti_seconds).sqrt() / self.runs.method.iteration_seconds;
        let intervals = [0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0].map(|factor| ((factor * young).round() as u64).max(1));
        let tried = intervals
            .into_iter()
            .chain([u64::MAX])
            .map(|iterations| (choice, iterations, self.fixed(choice, iterations)));
        least(tried).unwrap()
    }

    fn find(&self) -> Found {
        let mut all: Vec<_> = self.runs.costs.iter().map(|(choice, _)| self.search(*choice)).collect();
        let auto = self.runs.drive(|| AutoPolicy::new(self.config.clone()));
        let over_traditional = auto.relative_to(&all[0].2);
        let (choice, iterations, outcome) = least(all.drain(..)).unwrap();
        let over_best = auto.relative_to(&outcome);
        Found { best: (choice, iterations, outcome.overhead_fraction), auto, over_best, over_traditional }
    }
}

fn least(tried: impl Iterator<Item = (Choice, u64, PolicyOutcome)>) -> Option<(Choice, u64, PolicyOutcome)> {
    tried.min_by(|(_, _, a), (_, _, b)| a.overhead_fraction.mean.total_cmp(&b.overhead_fraction.mean))
}

fn twelve(trials: u32) -> impl Iterator<Item = Scenario> {
    let choices = |method| {
        [(true, true), (true, false), (false, true), (false, false)].map(move |(slow, often)| (method, slow, often))
    };
    (0..METHODS.len()).flat_map(choices).map(move |(method, slow, often)| scenario(method, slow, often, trials))
}

fn row(scenario: &Scenario, found: &Found) -> String {
    let percent = |of: Estimate| format!("{:6.2} +- {:.2} %", 100.0 * of.mean, 100.0 * of.half_width);
    let above = |of: Estimate| format!("{:+.2} +- {:.2} %", 100.0 * (of.mean - 1.0), 100.0 * of.half_width);
    let (choice, iterations, best) = found.best;
    let interval = if iterations == u64::MAX { "never".to_owned() } else { format!("every {iterations}") };
    format!(
        "| {} | {} ({}) {interval} | {} | {} | {} | {} |",
        scenario.name,
        choice.scheme,
        choice.resume,
        percent(best),
        percent(found.auto.overhead_fraction),
        above(found.over_best),
        above(found.over_traditional)
    )
}

/// At most 5 % above the best fixed choice found by search, which knows every cost, and 2 % above
/// traditional at its best interval; the lower end of the confidence interval is what a failure of
/// this must show.
fn assert_near_the_best(scenario: &Scenario) {
    let found = scenario.find();
    let line = row(scenario, &found);
    assert!(found.over_best.mean - found.over_best.half_width <= 1.05, "{line}\n{:#?}", found.auto.reasons);
    assert!(
        found.over_traditional.mean - found.over_traditional.half_width <= 1.02,
        "{line}\n{:#?}",
        found.auto.reasons
    );
}

#[test]
fn auto_is_near_the_best_fixed_choice_in_twelve_scenarios() {
    twelve(60).for_each(|scenario| assert_near_the_best(&scenario));
}

/// To look for better bounds costs a run at most half a percent of its time; seeds are the same
/// with and without.
#[test]
fn choosing_the_bounds_costs_next_to_nothing() {
    for scenario in twelve(60) {
        let usual = PolicyConfig { varies_bounds: false, ..scenario.config.clone() };
        let [with, without] =
            [&scenario.config, &usual].map(|config| scenario.runs.drive(|| AutoPolicy::new(config.clone())));
        let ratio = with.relative_to(&without);
        println!("{}: {:+.2} +- {:.2} %", scenario.name, 100.0 * (ratio.mean - 1.0), 100.0 * ratio.half_width);
        assert!(ratio.mean - ratio.half_width <= 1.005, "{}: {ratio:?} {:#?}", scenario.name, with.reasons);
    }
}

#[test]
#[ignore = "prints the table of the twelve scenarios over 1000 seeds: a minute"]
fn table_of_the_twelve_scenarios() {
    println!("| scenario | best fixed choice | its overhead | auto | auto over best | auto over traditional |");
    println!("|---|---|---|---|---|---|");
    for scenario in twelve(1000) {
        let found = scenario.find();
        println!("{}", row(&scenario, &found));
        assert!(found.over_best.mean <= 1.05 && found.over_traditional.mean <= 1.02);
    }
}

#[test]
fn fixed_choice_costs_what_the_simulation_of_intervals_finds() {
    let Scenario { runs, config, .. } = scenario(0, true, true, 400);
    let cost = runs.cost(config.plan(Scheme::Traditional).choice());
    let found = runs.drive(|| Every { plan: config.plan(Scheme::Traditional), iterations: 200 });
    let timing = crate::overhead::CheckpointTiming {
        mtti_seconds: runs.mtti_seconds,
        blocking_seconds: cost.blocking_seconds + cost.drain_seconds,
        drain_seconds: 0.0,
        recovery_seconds: cost.recovery_seconds,
        extra_seconds: 0.0,
        safe_point_seconds: 0.0,
    };
    let same = Simulation { timing, interval_seconds: 800.0, work_seconds: 6000.0, trials: 400, seed: 1 }.run();
    // The same seeds fail at the same times; only recoveries before the first version, which are
    // free here, differ.
    let before_the_first = (800.0 + timing.blocking_seconds) / runs.mtti_seconds;
    let allowed = found.overhead_fraction.half_width + 2.0 * before_the_first * cost.recovery_seconds / 6000.0;
    let gap = same.overhead_fraction.mean - found.overhead_fraction.mean;
    assert!(gap.abs() <= allowed, "{gap} {allowed}");
}

#[test]
fn a_seed_repeats_a_driven_run_exactly() {
    let scenario = scenario(2, true, true, 10);
    let go = || scenario.runs.drive(|| AutoPolicy::new(scenario.config.clone()));
    assert_eq!(go(), go());
    assert!(go().reasons.iter().any(|(_, why)| why.contains("remain at the recent rate")), "{:#?}", go().reasons);
}

#[test]
fn auto_saves_behind_the_solver_what_the_storage_takes() {
    let mut scenario = scenario(2, true, true, 30);
    scenario.runs.asynchronous = true;
    scenario.config.asynchronous = true;
    let found = scenario.find();
    assert!(found.over_traditional.mean - found.over_traditional.half_width <= 1.02, "{}", row(&scenario, &found));
}
