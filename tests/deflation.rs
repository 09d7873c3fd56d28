//! Does CG continue from a lossy direction as if nothing had happened?

use std::path::PathBuf;
use std::sync::Arc;

use recoup::SystemClock;
use recoup::comm::Solo;
use recoup::core::{CodecId, Decision, Observation, Plan, Policy, Resume, Scheme};
use recoup::io::MemoryStore;
use recoup::model::failures::{AtIterations, Never};
use recoup::model::policy::{AutoPolicy, PolicyConfig};
use recoup::pipeline::{Codecs, Ended, EventKind, Reference, RunReport, Sample, Session, SessionConfig};
use recoup::solvers::{Csr, RightHandSide, read_matrix};

use crate::support::{Problem, plan};

/// Lossy versions that hold the iterate and the direction.
fn deflated() -> Plan {
    Plan { resume: Resume::Deflated, ..plan(Scheme::Lossy) }
}

pub(crate) fn matrix(name: &str) -> Csr {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("data").join(format!("{name}.mtx.gz"));
    read_matrix(&path).unwrap()
}

/// A negative definite matrix turned positive definite.
pub(crate) fn negated(a: &Csr) -> Csr {
    a.mapped(|_, _, value| -value).unwrap()
}

/// A CG solve saved every `every` iterations, through failures after the iterations given.
fn run(problem: &Problem, plan: Plan, every: u64, failures: &[u64]) -> RunReport {
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan, every).synchronous(true).build().unwrap();
    let report = problem.run("cg", Some(session), AtIterations::new(failures));
    assert_eq!((report.ended, &report.failed), (Ended::Converged, &Vec::new()));
    report
}

/// Extra iterations of one recovery at each of nine instants, as fractions of the undisturbed
/// solve.
fn extra(problem: &Problem, plan: Plan) -> Vec<f64> {
    let undisturbed = problem.run("cg", None, Never).progress.iteration;
    let instants = (1..=9).map(|tenth| (undisturbed * tenth / 10).max(1));
    let extra = |at| {
        let report = run(problem, plan, at, &[at + 1]);
        assert_eq!(resumed_as(&report), [plan.resume], "at {at} of {undisturbed}");
        (report.progress.iteration as f64 - undisturbed as f64) / undisturbed as f64
    };
    instants.map(extra).collect()
}

/// What auto chooses on a machine of the published regime, where the solve takes 35 minutes and
/// failures come once an hour, with storage of this bandwidth: saved at one iteration.
struct AutoAt {
    auto: AutoPolicy,
    /// What was in force last, before nothing paid any more.
    last: Option<Plan>,
    at: u64,
    iteration_seconds: f64,
    bytes_per_second: f64,
}

impl AutoAt {
    fn new(at: u64, undisturbed: u64, bytes_per_second: f64) -> Self {
        let auto = AutoPolicy::new(PolicyConfig {
            mtti_seconds: 3600.0,
            lossy_codec: CodecId::Pco,
            theta: Some(0.5),
            varies_bounds: false,
            asynchronous: false,
            ..PolicyConfig::default()
        });
        Self { auto, last: None, at, iteration_seconds: 35.0 * 60.0 / undisturbed as f64, bytes_per_second }
    }
}

impl Policy for AutoAt {
    fn decide(&mut self, seen: &Observation) -> Decision {
        let decision = self.auto.decide(&Observation {
            elapsed_seconds: seen.iteration as f64 * self.iteration_seconds,
            since_checkpoint_seconds: seen.since_checkpoint_iterations as f64 * self.iteration_seconds,
            iteration_seconds: self.iteration_seconds,
            write_bytes_per_second: self.bytes_per_second,
            costs: Vec::new(),
            ..seen.clone()
        });
        if decision.in_force.scheme != Scheme::None {
            self.last = Some(decision.in_force);
        }
        Decision { save: self.last.filter(|_| seen.iteration == self.at), ..decision }
    }
}

/// As [`extra`], of what auto saves, and what that was.
fn extra_of_auto(problem: &Problem, bytes_per_second: f64) -> (Vec<f64>, Vec<Resume>) {
    let undisturbed = problem.run("cg", None, Never).progress.iteration;
    let instants = (1..=9).map(|tenth| (undisturbed * tenth / 10).max(1));
    let run = |at| {
        let session = problem.saving(Box::new(AutoAt::new(at, undisturbed, bytes_per_second)));
        let report = problem.run("cg", Some(session), AtIterations::new(&[at + 1]));
        assert_eq!((report.ended, &report.failed), (Ended::Converged, &Vec::new()));
        let extra = (report.progress.iteration as f64 - undisturbed as f64) / undisturbed as f64;
        (extra, resumed_as(&report)[0])
    };
    instants.map(run).unzip()
}

impl Problem {
    /// A session in memory that follows a policy of the test's own, with a checkpoint waited for.
    fn saving(&self, policy: Box<dyn Policy>) -> Session {
        let codecs = Codecs::shared(recoup::compress::codec, 1);
        let config =
            SessionConfig::new("solve", Arc::new(MemoryStore::new()), codecs, policy, Arc::new(SystemClock::new()));
        let reference = Some(Reference::new(self.a.clone(), self.b.clone()));
        let config = SessionConfig { checks_corruption: true, synchronous: true, tolerance: 1e-8, reference, ..config };
        Session::open(config, &Solo).unwrap()
    }
}

pub(crate) fn resumed_as(report: &RunReport) -> Vec<Resume> {
    let resume = |kind: &EventKind| match kind {
        EventKind::Recovery(restored) => Some(restored.resume),
        _ => None,
    };
    report.events.iter().filter_map(|event| resume(&event.kind)).collect()
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn worst(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn a_deflated_restart_costs_next_to_nothing_where_a_plain_one_costs_a_tenth() {
    let sherman1 = Problem::of(negated(&matrix("sherman1")), RightHandSide::Smooth);
    for (name, problem) in [("40^3", Problem::poisson(40)), ("-sherman1", sherman1)] {
        let plain = extra(&problem, plan(Scheme::Lossy));
        let deflated = extra(&problem, deflated());
        assert!(mean(&plain) > 0.05, "{name}: {plain:?}");
        assert!(mean(&deflated) <= 0.01, "{name}: {deflated:?}");
    }
}

/// add32 is not symmetric, though CG converges on it. With a direction kept A-orthogonal from one
/// side only it did not: six of nine recoveries never came to an end.
#[test]
fn a_direction_is_left_aside_where_the_operator_is_not_symmetric() {
    let problem = Problem::of(matrix("add32"), RightHandSide::Random { seed: 7 });
    let plain = extra(&problem, plan(Scheme::Lossy));
    let deflated = extra(&problem, deflated());
    assert!(mean(&plain) < 0.1 && worst(&deflated) <= worst(&plain).max(0.1), "{plain:?} {deflated:?}");
}

/// What a disk of its own writes, bytes per second.
const DISK: f64 = 1e9;

/// Half of the iterations of a recovery of nos7 from a lossy direction, and all of those from the
/// iterate alone, are more than an exact version of it costs anywhere.
#[test]
fn auto_keeps_small_systems_exact_and_pays_no_extra_iterations() {
    for name in ["nos7", "bcsstk14"] {
        let problem = Problem::of(matrix(name), RightHandSide::Smooth);
        let (extra, resumed) = extra_of_auto(&problem, DISK);
        assert_eq!(resumed, [Resume::Exact; 9], "{name}");
        assert_eq!(worst(&extra), 0.0, "{name}: {extra:?}");
    }
}

/// A restart loses what has been searched: little at first, and more than what a second vector
/// costs later.
#[test]
fn auto_saves_more_than_the_iterate_from_the_middle_of_a_solve_on_where_storage_is_slow() {
    let problem = Problem::poisson(40);
    // A vector takes the 120 s of the published experiments.
    let (extra_of_auto, resumed) = extra_of_auto(&problem, 8.0 * problem.b.len() as f64 / 120.0);
    assert!(resumed[0] == Resume::Restarted && resumed[5..] == [Resume::Deflated; 4], "{resumed:?}");
    let plain = extra(&problem, plan(Scheme::Lossy));
    assert!(mean(&extra_of_auto[5..]) <= 0.01 && mean(&plain[5..]) > 0.05, "{extra_of_auto:?} {plain:?}");
}

#[test]
fn every_recovery_keeps_its_direction() {
    let problem = Problem::poisson(24);
    let undisturbed = problem.run("cg", None, Never).progress.iteration;
    let failures: Vec<u64> = (1..).map(|k| 15 * k + 1).take_while(|it| *it < undisturbed).collect();
    let iterations = |plan| run(&problem, plan, 15, &failures).progress.iteration;
    let plain = iterations(plan(Scheme::Lossy));
    let deflated = iterations(deflated());
    assert!(failures.len() >= 4);
    assert!(plain as f64 > 1.3 * undisturbed as f64, "{plain} after {undisturbed}");
    assert!(deflated as f64 <= 1.05 * undisturbed as f64, "{deflated} after {undisturbed}");
}

/// What was deflated once is deflated in the same bits after an exact resume.
#[test]
fn an_exact_resume_repeats_a_deflated_solve_bit_for_bit() {
    let problem = Problem::poisson(12);
    let dir = tempfile::tempdir().unwrap();
    let saving = |plan, every| problem.builder(dir.path(), plan, every).synchronous(true).build().unwrap();
    problem.run_to(10, Some(saving(deflated(), 10)));
    let exact = saving(plan(Scheme::Exact), 20);
    let undisturbed = problem.run("cg", Some(exact), Never);
    assert_eq!(resumed_as(&undisturbed), [Resume::Deflated]);
    let resumed = problem.run("cg", Some(saving(plan(Scheme::Exact), 1000)), Never);
    assert_eq!(resumed_as(&resumed), [Resume::Exact]);
    let tail = undisturbed.history.len() - resumed.history.len();
    assert!(!resumed.history.is_empty() && tail > 0);
    let values = |history: &[Sample]| -> Vec<(u64, f64)> {
        history.iter().map(|sample| (sample.iteration, sample.relative_residual)).collect()
    };
    assert_eq!(values(&undisturbed.history[tail..]), values(&resumed.history));
}

/// What coarser and finer bounds make of a recovery: `cargo test --release -p recoup-tests grain --
/// --ignored --nocapture`.
#[test]
#[ignore = "minutes: a measurement, behind what the policy expects of coarser bounds"]
fn grain_of_the_bounds_in_extra_iterations() {
    let smooth = |a| Problem::of(a, RightHandSide::Smooth);
    let problems = [
        ("40^3, random", Problem::poisson(40)),
        ("40^3, smooth", Problem::poisson_with(40, RightHandSide::Smooth)),
        ("bcsstk14", smooth(matrix("bcsstk14"))),
        ("-sherman1", smooth(negated(&matrix("sherman1")))),
        ("copter2_lap", smooth(matrix("copter2_lap"))),
        ("wathen_small", smooth(matrix("wathen_small"))),
    ];
    println!(
        "mean extra iterations in %, lossy x+p and lossy x, by theta and delta; one growth of the residual by 2 in %"
    );
    for (name, problem) in problems {
        let undisturbed = problem.run("cg", None, Never).progress.iteration;
        print!("{name:14}");
        for (theta, delta) in [(0.125, 0.025), (0.5, 0.05), (2.0, 0.05), (2.0, 0.1), (8.0, 0.1), (30.0, 0.1)] {
            let [with, alone] = [deflated(), plan(Scheme::Lossy)]
                .map(|plan| 100.0 * mean(&extra(&problem, Plan { theta, delta, ..plan })));
            print!("  {theta}, {delta}: {with:.2} {alone:.2}");
        }
        println!("  {:.2} of {undisturbed}", 100.0 * 2f64.ln() / 1e8f64.ln());
    }
}

/// `cargo test --release -p recoup-tests deflation -- --ignored --nocapture`: minutes.
#[test]
#[ignore = "minutes: every matrix and 64^3"]
fn deflated_restarts_on_every_matrix() {
    let poisson = |rhs| Problem::poisson_with(64, rhs);
    let smooth = |a| Problem::of(a, RightHandSide::Smooth);
    let problems = [
        ("64^3, random", poisson(RightHandSide::Random { seed: 7 })),
        ("64^3, smooth", poisson(RightHandSide::Smooth)),
        ("bcsstk14", smooth(matrix("bcsstk14"))),
        ("-sherman1", smooth(negated(&matrix("sherman1")))),
        ("nos7", smooth(matrix("nos7"))),
        ("copter2_lap", smooth(matrix("copter2_lap"))),
        ("wathen_small", smooth(matrix("wathen_small"))),
    ];
    let mut missed = Vec::new();
    println!("extra iterations of a recovery in %, mean and worst of 9 instants");
    println!("{:14}{:>16}{:>16}{:>16}{:>16}", "", "lossy x", "lossy x+p", "traditional", "auto on a disk");
    for (name, problem) in problems {
        let plans = [plan(Scheme::Lossy), deflated(), plan(Scheme::Traditional)];
        let [plain, ours, traditional] = plans.map(|plan| extra(&problem, plan));
        let cell = |extra: &[f64]| format!("{:.2}, {:.2}", 100.0 * mean(extra), 100.0 * worst(extra));
        let (auto, resumed) = extra_of_auto(&problem, DISK);
        let cells = [&plain, &ours, &traditional, &auto].map(|extra| cell(extra));
        println!("{name:14}{:>16}{:>16}{:>16}{:>16} {resumed:?}", cells[0], cells[1], cells[2], cells[3]);
        // An exact resume costs none.
        assert!(mean(&auto) <= mean(&plain).min(0.0) + 0.02, "{name}: {auto:?}");
        if mean(&ours) > mean(&plain).min(mean(&traditional)) + 0.02 {
            missed.push(name);
        }
    }
    // Condition number about 1e9: there is no error so small that a recovery costs nothing, so auto
    // keeps it exact.
    assert_eq!(missed, ["nos7"], "more than 2 % above the better of a plain restart and a traditional one");
    let problem = Problem::poisson(48);
    let undisturbed = problem.run("cg", None, Never).progress.iteration;
    let failures: Vec<u64> = (1..).map(|k| 25 * k + 1).take_while(|it| *it < undisturbed).collect();
    let [plain, ours] =
        [plan(Scheme::Lossy), deflated()].map(|plan| run(&problem, plan, 25, &failures).progress.iteration);
    println!("48^3, a failure every 25 iterations: undisturbed {undisturbed}, lossy x {plain}, lossy x+p {ours}");
    assert!(ours as f64 <= 1.05 * undisturbed as f64);
}
