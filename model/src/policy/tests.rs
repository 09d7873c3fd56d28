//! Runs of policies against a machine whose costs are known.

use recoup_core::{BoundRule, BoundScale, Choice, CodecId, Cost, Decision, Observation, Plan, Policy, Resume, Scheme};

use super::candidates::candidates;
use super::config::PolicyConfig;
use super::cost::{LOSSLESS_GUESS, LOSSY_GUESS, bandwidth, raw_bytes};
use super::learned::RecoveryHistory;
use super::remaining::ResidualHistory;
use super::*;
use crate::break_even::CodecRates;
use crate::decide::MachineBandwidths;
use crate::interval::Interval;

const BYTES: u64 = 8 * 2_097_152;

pub(super) fn config() -> PolicyConfig {
    PolicyConfig {
        mtti_seconds: 300.0,
        lossy_codec: CodecId::Zfp,
        theta: Some(0.5),
        delta: 0.1,
        varies_bounds: false,
        lossy_resume: Some(Resume::Restarted),
        asynchronous: false,
        extra_fraction: Some(0.0),
        ..PolicyConfig::default()
    }
}

/// A state of a solve that started at residual 1 and loses 5 % per iteration of 0.1 s.
pub(super) fn seen(iteration: u64, since: u64) -> Observation {
    Observation {
        iteration,
        elapsed_seconds: 0.1 * iteration as f64,
        since_checkpoint_seconds: 0.1 * since as f64,
        since_checkpoint_iterations: since,
        iteration_seconds: 0.1,
        relative_residual: 0.999f64.powi(iteration as i32),
        tolerance: 1e-8,
        raw_bytes: vec![(Resume::Restarted, BYTES), (Resume::Traditional, 2 * BYTES), (Resume::Exact, 3 * BYTES)],
        ranks: 1,
        ..Observation::default()
    }
}

/// Returns the schemes saved, with their iterations, of a run on a machine of this bandwidth and
/// lossy codec.
fn run(policy: &mut dyn Policy, bandwidth: f64, lossy: CodecRates) -> (Vec<(u64, Scheme)>, Vec<String>) {
    let (saved, reasons) = run_grains(policy, bandwidth, 0.999, |_| lossy);
    (saved.into_iter().map(|(iteration, plan)| (iteration, plan.scheme)).collect(), reasons)
}

/// The same for the part of the residual that an iteration leaves, and a lossy codec that depends
/// on the bounds.
fn run_grains(
    policy: &mut dyn Policy,
    bandwidth: f64,
    left_per_iteration: f64,
    lossy: impl Fn(BoundScale) -> CodecRates,
) -> (Vec<(u64, Plan)>, Vec<String>) {
    let machine = MachineBandwidths {
        write_bytes_per_second: bandwidth,
        read_bytes_per_second: bandwidth,
        copy_bytes_per_second: 8e9,
        ranks: 1,
    };
    let mut saved = Vec::new();
    let mut reasons = Vec::new();
    let mut costs: Vec<(Choice, Cost)> = Vec::new();
    let mut last = 0;
    for iteration in 1..=5000 {
        let relative_residual = left_per_iteration.powi(iteration as i32);
        let tolerance = left_per_iteration.powi(18_400).max(1e-300);
        let seen = seen(iteration, iteration - last);
        let state = Observation { costs: costs.clone(), relative_residual, tolerance, ..seen };
        let decision = policy.decide(&state);
        reasons.extend(decision.why);
        let Some(plan) = decision.save else { continue };
        saved.push((iteration, plan));
        last = iteration;
        let coding = match plan.scheme {
            Scheme::Traditional => CodecRates::RAW,
            Scheme::Lossy => lossy(plan.grain),
            _ => LOSSLESS_GUESS,
        };
        let cost = Cost { recovery_seconds: 0.0, ..machine.cost(raw_bytes(plan.resume, &state).unwrap(), &coding) };
        costs.retain(|(choice, _)| *choice != plan.choice());
        costs.push((plan.choice(), cost));
    }
    (saved, reasons)
}

#[test]
fn auto_settles_on_lossy_on_slow_storage() {
    let (saved, reasons) = run(&mut AutoPolicy::new(config()), 20e6, LOSSY_GUESS);
    assert!(saved.len() > 10);
    assert_eq!(saved[0].1, Scheme::Traditional);
    assert!(saved[1..].iter().all(|(_, scheme)| *scheme == Scheme::Lossy), "{saved:?}");
    assert!(reasons[0].contains("to measure"), "{reasons:?}");
    assert!(reasons[1].starts_with("lossy costs"), "{reasons:?}");
}

#[test]
fn auto_does_not_choose_lossy_on_a_fast_disk_and_says_why() {
    let slow_codec = CodecRates { encode_bytes_per_second: 0.05e9, ..LOSSY_GUESS };
    let (saved, reasons) = run(&mut AutoPolicy::new(config()), 4e9, slow_codec);
    assert!(saved.len() > 10 && saved.iter().all(|(_, scheme)| *scheme == Scheme::Traditional), "{saved:?}");
    assert!(reasons.iter().any(|why| why.starts_with("traditional costs") && why.contains("lossy ")), "{reasons:?}");
}

#[test]
fn auto_on_a_fast_disk_holds_lossy_back_before_anything_of_it_is_measured() {
    // Raw versions at 1 GB/s: what the encoder takes from the solver is more than it saves.
    let config = PolicyConfig { asynchronous: true, mtti_seconds: 60.0, extra_fraction: Some(0.1), ..config() };
    let (saved, reasons) = run(&mut AutoPolicy::new(config), 1e9, LOSSY_GUESS);
    assert!(saved.len() > 10 && saved.iter().all(|(_, scheme)| *scheme == Scheme::Traditional), "{saved:?}");
    assert!(reasons.iter().any(|why| why.starts_with("traditional costs") && why.contains("lossy ")), "{reasons:?}");
}

#[test]
fn auto_behind_the_solver_still_chooses_lossy_on_slow_storage() {
    let config = PolicyConfig { asynchronous: true, mtti_seconds: 60.0, ..config() };
    let (saved, _) = run(&mut AutoPolicy::new(config), 20e6, LOSSY_GUESS);
    assert!(saved.len() > 10 && saved[1..].iter().all(|(_, scheme)| *scheme == Scheme::Lossy), "{saved:?}");
}

#[test]
fn auto_leaves_a_scheme_that_measures_worse_than_it_was_guessed() {
    let useless = CodecRates { ratio: 1.1, encode_bytes_per_second: 0.02e9, decode_bytes_per_second: 0.02e9 };
    let mut policy = AutoPolicy::new(PolicyConfig { extra_fraction: Some(0.0), ..config() });
    let (saved, _) = run(&mut policy, 100e6, useless);
    assert!(saved.iter().skip(2).all(|(_, scheme)| *scheme != Scheme::Lossy), "{saved:?}");
}

#[test]
fn auto_measures_large_problems_with_their_smallest_version() {
    let large =
        Observation { raw_bytes: vec![(Resume::Restarted, 1 << 40), (Resume::Traditional, 2 << 40)], ..seen(1, 1) };
    let plan = AutoPolicy::new(config()).decide(&large).save.unwrap();
    assert_eq!(plan.scheme, Scheme::Lossy);
}

#[test]
fn auto_finds_a_codec_that_is_better_than_its_guess() {
    // On this storage the guessed lossy codec is a little slower than raw bytes, the real one far
    // faster.
    let real = CodecRates { ratio: 20.0, encode_bytes_per_second: 5e9, decode_bytes_per_second: 5e9 };
    let bandwidth = 235e6;
    let (guessed_worse, _) = run(&mut AutoPolicy::new(config()), bandwidth, LOSSY_GUESS);
    let (found, reasons) = run(&mut AutoPolicy::new(config()), bandwidth, real);
    assert_eq!(found.last().unwrap().1, Scheme::Lossy, "{reasons:#?}");
    let often = |scheme| guessed_worse.iter().filter(|(_, saved)| *saved == scheme).count();
    assert!(often(Scheme::Lossless) <= 1 && guessed_worse.len() > 10, "{guessed_worse:?}");
}

#[test]
fn near_the_end_no_scheme_is_measured_that_is_worth_no_checkpoint_there() {
    // A lossy version is written in the time of four iterations, a raw one in that of 40: at the
    // end no version pays, and all schemes come to the same.
    let lossy = Choice { scheme: Scheme::Lossy, resume: Resume::Restarted, grain: BoundScale::Usual };
    let cost =
        Cost { blocking_seconds: 0.001, drain_seconds: 0.4, recovery_seconds: 4.0, ratio: 10.0, ..Cost::default() };
    for mtti_seconds in [8.0, 16.0, 32.0, 64.0, 128.0] {
        let mut policy = AutoPolicy::new(PolicyConfig { asynchronous: true, mtti_seconds, ..config() });
        let mut last = 0;
        let mut lossy_saved = 0;
        for iteration in 1..=1000 {
            let relative_residual = 0.98f64.powi(iteration as i32);
            let tolerance = 0.98f64.powi(1000);
            let costs = vec![(lossy, cost)];
            let seen = Observation { costs, relative_residual, tolerance, ..seen(iteration, iteration - last) };
            let seen = Observation { write_bytes_per_second: 4e6, ..seen };
            let decision = policy.decide(&seen);
            let Some(plan) = decision.save else { continue };
            assert_eq!(plan.scheme, Scheme::Lossy, "at {iteration}: {:?}", decision.why);
            last = iteration;
            lossy_saved += 1;
        }
        assert!(lossy_saved > 10, "{lossy_saved}");
    }
}

/// A residual that falls so fast that coarser bounds cost little: 0.7 iterations by a tenth of a
/// doubling at this rate.
const FAST: f64 = 0.9;

/// The bounds of the last half of what is saved, all of them and the reasons, where coarse bounds
/// have this ratio and others 8.
fn grains_kept(coarse_ratio: f64) -> (Vec<BoundScale>, Vec<BoundScale>, Vec<String>) {
    let coding =
        |grain| CodecRates { ratio: if grain == BoundScale::Coarse { coarse_ratio } else { 8.0 }, ..LOSSY_GUESS };
    let mut policy = AutoPolicy::new(PolicyConfig { varies_bounds: true, ..config() });
    let (saved, reasons) = run_grains(&mut policy, 20e6, FAST, coding);
    let grains: Vec<BoundScale> =
        saved.iter().filter(|(_, plan)| plan.scheme == Scheme::Lossy).map(|(_, plan)| plan.grain).collect();
    (grains[grains.len() / 2..].to_vec(), grains, reasons)
}

#[test]
fn coarser_bounds_are_tried_once_and_kept_where_they_pay() {
    let (kept, _, reasons) = grains_kept(16.0);
    assert!(kept.len() > 5 && kept.iter().all(|grain| *grain == BoundScale::Coarse), "{kept:?} {reasons:#?}");
    assert!(reasons.iter().any(|why| why.starts_with("lossy at theta 2 once, to measure it")), "{reasons:#?}");
    assert!(reasons.iter().any(|why| why.contains("; theta 2, where 0.5 costs")), "{reasons:#?}");
    let (kept, all, reasons) = grains_kept(8.0);
    assert!(kept.iter().all(|grain| *grain == BoundScale::Usual), "{kept:?} {reasons:#?}");
    assert_eq!(all.iter().filter(|grain| **grain == BoundScale::Coarse).count(), 1, "{reasons:#?}");
}

#[test]
fn bounds_that_were_asked_for_stay() {
    let coding = |grain| CodecRates { ratio: if grain == BoundScale::Coarse { 50.0 } else { 8.0 }, ..LOSSY_GUESS };
    let (saved, _) = run_grains(&mut AutoPolicy::new(config()), 20e6, FAST, coding);
    assert!(saved.iter().all(|(_, plan)| plan.grain == BoundScale::Usual));
    let fixed = PolicyConfig { varies_bounds: true, rule: BoundRule::Theorem3, ..config() };
    let (saved, _) = run_grains(&mut AutoPolicy::new(fixed), 20e6, FAST, coding);
    assert!(saved.iter().all(|(_, plan)| plan.grain == BoundScale::Usual));
}

#[test]
fn without_failures_nothing_is_saved_and_nothing_measured() {
    let calm = PolicyConfig { mtti_seconds: f64::INFINITY, ..config() };
    let (saved, reasons) = run(&mut AutoPolicy::new(calm.clone()), 20e6, LOSSY_GUESS);
    assert!(saved.is_empty() && reasons.len() == 1 && reasons[0].starts_with("none costs 0 %"), "{reasons:?}");
    assert!(run(&mut FixedPolicy::new(Scheme::Lossy, Interval::Auto, calm), 20e6, LOSSY_GUESS).0.is_empty());
}

#[test]
fn costs_of_a_recovery_are_guessed_until_one_was_seen() {
    let config = PolicyConfig { extra_fraction: Some(0.1), ..config() };
    let cost = Cost { blocking_seconds: 1.0, drain_seconds: 2.0, ratio: 4.0, ..Cost::default() };
    let lossy = config.plan(Scheme::Lossy).choice();
    let state = |cost| Observation { costs: vec![(lossy, cost)], ..seen(100, 1) };
    let guessed = config.cost(lossy, &state(cost)).unwrap();
    let recoveries = RecoveryHistory::default();
    let history = ResidualHistory::new();
    let found = candidates(&config, &recoveries, &history, &state(cost)).unwrap();
    assert_eq!(found.iter().find(|candidate| candidate.choice == lossy).unwrap().cost.extra_iterations, 10.0);
    assert!(guessed.recovery_seconds > 0.0);
    let known = Cost { recovery_seconds: 7.0, extra_iterations: 3.0, ..cost };
    assert_eq!(config.cost(lossy, &state(known)), Some(known));
}

#[test]
fn auto_learns_from_synchronous_checkpoints_whose_whole_time_blocks() {
    let cost = Cost { blocking_seconds: 2.0, ratio: 1.0, ..Cost::default() };
    let traditional = config().plan(Scheme::Traditional).choice();
    let state = Observation { costs: vec![(traditional, cost)], ..seen(100, 1) };
    assert_eq!(bandwidth(&state), Some(2.0 * BYTES as f64 / 2.0));
    let decision = AutoPolicy::new(config()).decide(&state);
    assert!(decision.interval_seconds.is_finite() && decision.why.unwrap().starts_with("lossy costs"));
}

#[test]
fn auto_speaks_only_when_something_changed() {
    let (saved, reasons) = run(&mut AutoPolicy::new(config()), 20e6, LOSSY_GUESS);
    assert!(reasons.len() <= 6 && reasons.len() < saved.len(), "{reasons:#?}");
}

#[test]
fn auto_saves_nothing_that_would_cost_more_than_it_protects() {
    let mut policy = AutoPolicy::new(config());
    policy.decide(&Observation { write_bytes_per_second: 20e6, ..seen(0, 0) });
    // Ten iterations, one second, before the end, with nothing at risk.
    let late = Observation { relative_residual: 1.01e-8, write_bytes_per_second: 20e6, ..seen(18_400, 1) };
    let decision = policy.decide(&late);
    assert_eq!((decision.save, decision.interval_seconds), (None, f64::INFINITY));
    assert!(decision.why.as_ref().unwrap().starts_with("none costs"));
    assert_eq!(decision.in_force.scheme, Scheme::None);
    // Rank 0 decides and sends the decision as JSON, which has no infinity.
    let sent = serde_json::to_string(&decision).unwrap();
    assert_eq!(serde_json::from_str::<Decision>(&sent).unwrap(), decision);
}

/// Near the end, with half a minute at risk, a version of a second pays only if a failure without
/// it costs a recovery, too: otherwise a failure before the first version of a process was free.
#[test]
fn a_process_that_continues_counts_the_recovery_from_the_version_it_read() {
    let lossy = config().plan(Scheme::Lossy).choice();
    let cost = Cost { blocking_seconds: 1.0, recovery_seconds: 20.0, ratio: 4.0, ..Cost::default() };
    let in_force = |recovered_from| {
        let state =
            Observation { costs: vec![(lossy, cost)], recovered_from, elapsed_seconds: 40.0, ..seen(18_000, 300) };
        let config = PolicyConfig { mtti_seconds: 600.0, ..config() };
        AutoPolicy::new(config).decide(&state).in_force.scheme
    };
    assert_eq!(in_force(None), Scheme::None);
    assert_eq!(in_force(Some(lossy)), Scheme::Lossy);
}

#[test]
fn auto_repeats_exactly() {
    let go = || run(&mut AutoPolicy::new(config()), 20e6, LOSSY_GUESS);
    assert_eq!(go(), go());
}

#[test]
fn fixed_iterations_and_seconds_save_at_their_safe_points() {
    let at = |interval| run(&mut FixedPolicy::new(Scheme::Exact, interval, config()), 1e9, LOSSY_GUESS);
    let (saved, reasons) = at(Interval::Iterations(15));
    assert!(saved.iter().enumerate().all(|(i, (iteration, _))| *iteration == 15 * (i as u64 + 1)));
    assert_eq!(reasons, ["exact every 15 iterations, as asked"]);
    // 1.04 s are nearer to ten iterations of 0.1 s than to eleven.
    assert_eq!(at(Interval::Seconds(1.04)).0[0].0, 10);
    assert_eq!(at(Interval::Seconds(1.06)).0[0].0, 11);
}

/// Iterations between versions of a method that is safe every 150 s of its iterations of 15 s,
/// where the interval is this long.
fn apart_by_cycles(interval_seconds: f64) -> u64 {
    let mut policy = FixedPolicy::new(Scheme::Traditional, Interval::Seconds(interval_seconds), config());
    let mut saved = Vec::new();
    let mut newest = 0;
    // The process before ended at 500: what lies between is no cycle.
    for iteration in (510..1500).step_by(10) {
        let since = iteration - newest.max(500);
        let state = Observation {
            iteration_seconds: 15.0,
            since_checkpoint_seconds: 15.0 * since as f64,
            ..seen(iteration, since)
        };
        if policy.decide(&state).save.is_some() {
            newest = iteration;
            saved.push(iteration);
        }
    }
    assert!(saved.windows(2).all(|pair| pair[1] - pair[0] == saved[0] - 500), "{saved:?}");
    saved[0] - 500
}

#[test]
fn of_two_safe_points_far_apart_the_cheaper_one_is_taken() {
    // With `T^2 = 2 C M` a version every t seconds costs `C / t + t / (2 M)`, in units of `1 / (2
    // M)`: `T^2 / t + t`.
    let cost = |interval: f64, cycles: u64| interval.powi(2) / (150.0 * cycles as f64) + 150.0 * cycles as f64;
    for interval in [20.0, 160.0, 205.0, 220.0, 360.0, 380.0, 700.0] {
        let cycles = apart_by_cycles(interval) / 10;
        let fewer = cost(interval, cycles.max(2) - 1);
        let more = cost(interval, cycles + 1);
        assert!(cost(interval, cycles) <= fewer.min(more), "{interval}: {cycles}");
    }
}

/// Of GMRES an interval of 15 ms was told, and its cost expected, where a cycle took 0.6 s.
#[test]
fn no_interval_is_told_or_reckoned_with_that_lies_between_two_safe_points() {
    for interval in ["fixed", "auto"] {
        let config = PolicyConfig { mtti_seconds: 3000.0, ..config() };
        let mut policy: Box<dyn Policy> = match interval {
            "fixed" => Box::new(FixedPolicy::new(Scheme::Traditional, Interval::Auto, config)),
            _ => Box::new(AutoPolicy::new(config)),
        };
        let mut told = Vec::new();
        for cycle in 1..20_u64 {
            let state = Observation {
                iteration_seconds: 15.0,
                since_checkpoint_seconds: 150.0,
                write_bytes_per_second: 1e9,
                ..seen(10 * cycle, 10)
            };
            let decision = policy.decide(&state);
            told.push(decision.interval_seconds);
            assert!(cycle < 3 || decision.save.is_some(), "{interval}: every cycle is worth a version: {cycle}");
        }
        assert!(told[2..].iter().all(|seconds| (150.0..160.0).contains(seconds)), "{interval}: {told:?}");
    }
}

#[test]
fn a_first_lossy_version_does_not_wait_for_what_a_guess_would_have_it_cost() {
    let at = |scheme| {
        let mut policy = FixedPolicy::new(scheme, Interval::Auto, config());
        let save = |iteration: &u64| {
            let state = Observation { write_bytes_per_second: 20e6, ..seen(*iteration, *iteration) };
            policy.decide(&state).save.is_some()
        };
        0.1 * (1..).find(save).unwrap() as f64
    };
    let young = |seconds: f64| (2.0 * 300.0 * seconds).sqrt();
    let raw = young(2.0 * BYTES as f64 * (1.0 / 20e6 + 1.0 / 4e9));
    let guess = young(BYTES as f64 * (0.25 / 20e6 + 1.0 / 4e9 + 1.0 / LOSSY_GUESS.encode_bytes_per_second));
    assert!((at(Scheme::Traditional) - raw).abs() <= 0.1, "{} {raw}", at(Scheme::Traditional));
    assert!((at(Scheme::Lossy) - guess / 2.0).abs() <= 0.1, "{} {guess}", at(Scheme::Lossy));
}

#[test]
fn auto_holds_the_interval_it_is_given() {
    for mtti_seconds in [300.0, f64::INFINITY] {
        let config = PolicyConfig { mtti_seconds, ..config() };
        let (saved, reasons) = run(&mut AutoPolicy::new(config).at(Interval::Iterations(50)), 20e6, LOSSY_GUESS);
        let iterations: Vec<u64> = saved.iter().map(|(iteration, _)| *iteration).collect();
        assert!(
            iterations.iter().zip(1..).all(|(found, k)| *found == 50 * k) && iterations.len() > 3,
            "{iterations:?}"
        );
        // Twenty times faster to write, and to read.
        assert_eq!(saved.last().unwrap().1, Scheme::Lossy, "{reasons:#?}");
    }
}

#[test]
fn fixed_auto_interval_measures_once_and_then_follows_young() {
    let mut policy = FixedPolicy::new(Scheme::Traditional, Interval::Auto, config());
    let (saved, reasons) = run(&mut policy, 20e6, LOSSY_GUESS);
    let cost = 2.0 * BYTES as f64 * (1.0 / 20e6 + 1.0 / 8e9);
    let young = (2.0 * 300.0 * cost).sqrt();
    assert_eq!(saved[0].0, 1);
    assert!(((saved[2].0 - saved[1].0) as f64 * 0.1 - young).abs() <= 0.05 + 1e-9, "{saved:?} {young}");
    assert_eq!(reasons.len(), 2);
}

/// A lossy policy that saves at 100 and fails at 150, with a residual that is back after `extra`
/// extra iterations; what it saves at 300, and what it says.
fn lossy_after_a_recovery(extra: u64, vector_bytes: u64) -> (Plan, Vec<String>) {
    let kinds = [Resume::Restarted, Resume::Deflated, Resume::Traditional, Resume::Exact];
    let raw_bytes: Vec<_> = kinds.into_iter().zip([1, 2, 2, 3].map(|vectors| vectors * vector_bytes)).collect();
    let config = PolicyConfig { extra_fraction: Some(0.2), lossy_resume: None, ..config() };
    let mut policy = FixedPolicy::new(Scheme::Lossy, Interval::Iterations(100), config);
    let mut plan = None;
    let mut reasons = Vec::new();
    let path = (1..=150).map(|at| (at, at, 0)).chain((101..=300u64).map(|at| (at, at.saturating_sub(extra), 1)));
    for (iteration, progress, failures) in path {
        let raw_bytes = raw_bytes.clone();
        // Saved at 100, and again at 300.
        let since_checkpoint_iterations = if iteration % 200 == 100 { 100 } else { iteration % 100 };
        let since_checkpoint_iterations = if iteration == 300 { 200 } else { since_checkpoint_iterations };
        let decision = policy.decide(&Observation {
            relative_residual: 0.98f64.powf(progress as f64 - 0.5 * failures as f64),
            since_checkpoint_iterations,
            failures,
            raw_bytes,
            write_bytes_per_second: 1e9,
            ..seen(iteration, 1)
        });
        reasons.extend(decision.why);
        plan = decision.save.or(plan);
    }
    (plan.unwrap(), reasons)
}

#[test]
fn lossy_versions_hold_the_recurrences_where_recoveries_cost_more() {
    let (plan, reasons) = lossy_after_a_recovery(0, BYTES);
    assert_eq!((plan.scheme, plan.resume), (Scheme::Lossy, Resume::Deflated), "{reasons:#?}");
    let (plan, reasons) = lossy_after_a_recovery(60, BYTES);
    assert_eq!((plan.scheme, plan.resume), (Scheme::Lossy, Resume::Traditional), "{reasons:#?}");
    let why = "lossy versions hold what the recurrences need from now on: after 1 recoveries";
    assert!(reasons.iter().any(|reason| reason.starts_with(why)), "{reasons:#?}");
}

#[test]
fn lossy_versions_of_next_to_nothing_hold_the_recurrences_unless_told_what_to_hold() {
    let (plan, reasons) = lossy_after_a_recovery(0, 5832);
    assert_eq!((plan.scheme, plan.resume), (Scheme::Lossy, Resume::Traditional), "{reasons:#?}");
    let told = PolicyConfig { resume: Some(Resume::Deflated), ..config() };
    let mut policy = FixedPolicy::new(Scheme::Lossy, Interval::Iterations(1), told);
    let small = vec![(Resume::Restarted, 8), (Resume::Deflated, 16), (Resume::Traditional, 16), (Resume::Exact, 24)];
    let plan = policy.decide(&Observation { raw_bytes: small, ..seen(1, 1) }).save.unwrap();
    assert_eq!((plan.scheme, plan.resume), (Scheme::Lossy, Resume::Deflated));
}

#[test]
fn none_never_saves() {
    for interval in [Interval::Auto, Interval::Seconds(0.1), Interval::Iterations(1)] {
        assert!(run(&mut FixedPolicy::new(Scheme::None, interval, config()), 1e9, LOSSY_GUESS).0.is_empty());
    }
}

#[test]
fn plan_holds_what_its_scheme_needs_unless_told_otherwise() {
    let plan = config().plan(Scheme::Lossy);
    assert_eq!((plan.codec, plan.resume), (CodecId::Zfp, Resume::Restarted));
    assert_eq!(config().plan(Scheme::Exact).resume, Resume::Exact);
    let told = PolicyConfig { resume: Some(Resume::Exact), ..config() };
    assert_eq!(told.plan(Scheme::Traditional).resume, Resume::Exact);
}
