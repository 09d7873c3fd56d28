//! What `--scheme auto` costs beside every fixed choice, in runs of this program. By hand, minutes
//! each: `cargo test --release -p recoup-cli --test main -- --ignored --nocapture auto::`.
//!
//! The numerics are real in both; the time is declared in one, so that a seed repeats, and the wall
//! clock's in the other, where a SIGKILL ends a process at random instants.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use recoup::model::simulate::Estimate;

use crate::support::json;

/// A fixed choice, or auto: its name and the options that ask for it.
type Choice = (String, String);

/// A problem and a machine; the options of a run, and the intervals tried, in iterations.
struct Scenario {
    name: &'static str,
    options: &'static str,
    intervals: &'static [u64],
}

/// Undisturbed solves of two hours (cg) and an hour and a half (gmres), failures once an hour.
/// Storage takes two minutes for a vector, as in the published experiments, or half a second.
const VIRTUAL: [Scenario; 4] = [
    Scenario {
        name: "cg, slow store",
        options: "--method cg --t-iter 60 --pfs-bandwidth 4267 --codec-rate 2M",
        intervals: &[8, 14],
    },
    Scenario {
        name: "cg, fast store",
        options: "--method cg --t-iter 60 --pfs-bandwidth 1M --codec-rate 2M",
        intervals: &[1, 3],
    },
    Scenario {
        name: "gmres, slow store",
        options: "--method gmres --t-iter 40 --pfs-bandwidth 4267 --codec-rate 2M",
        intervals: &[12, 20],
    },
    Scenario {
        name: "gmres, fast store",
        options: "--method gmres --t-iter 40 --pfs-bandwidth 1M --codec-rate 2M",
        intervals: &[2, 4],
    },
];

/// Solves of four to eight seconds in steps of 25 ms, most of which they sleep, so that what else
/// the machine does matters little; killed every three seconds on average. A vector takes half a
/// second on the slow store.
const KILLED: [Scenario; 4] = [
    Scenario { name: "cg, slow store", options: "--method cg --pfs-bandwidth 1.8M", intervals: &[] },
    Scenario { name: "cg, fast store", options: "--method cg --pfs-bandwidth 1G", intervals: &[] },
    Scenario { name: "gmres, slow store", options: "--method gmres --pfs-bandwidth 1.8M", intervals: &[] },
    Scenario { name: "gmres, fast store", options: "--method gmres --pfs-bandwidth 1G", intervals: &[] },
];

const VIRTUAL_PROBLEM: &str = "--poisson3d 40 --rhs-kind random --pc jacobi --rtol 1e-8 --threads 1";
const KILLED_PROBLEM: &str = "--poisson3d 48 --rhs-kind random --pc jacobi --rtol 1e-8 --threads 1";
const TRIALS: u64 = 12;
const KILLED_TRIALS: u64 = 10;
const KILLS: &str = "--failures kill --mtti 3 --t-iter 0.025";

/// Every scheme, and of cg's lossy versions the iterate alone too, at the optimal interval for its
/// measured costs and at those of the scenario.
fn choices(scenario: &Scenario) -> Vec<Choice> {
    let has_direction = scenario.options.contains("--method cg");
    let mut schemes = vec![("traditional", ""), ("lossless", ""), ("exact", ""), ("lossy", "")];
    if has_direction {
        schemes.push(("lossy", " --state x"));
    }
    let mut all = vec![("auto".to_owned(), "auto".to_owned())];
    for (scheme, state) in schemes {
        all.push((format!("{scheme}{state}"), format!("{scheme}{state}")));
        let every = |interval| {
            (format!("{scheme}{state} every {interval}"), format!("{scheme}{state} --interval {interval}it"))
        };
        all.extend(scenario.intervals.iter().map(every));
    }
    all
}

/// Prints auto beside the others, and returns auto's mean time over that of the best of them.
fn judge(scenario: &Scenario, seconds: &BTreeMap<String, Vec<f64>>) -> Estimate {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let fixed = seconds.iter().filter(|(name, _)| *name != "auto");
    let (best, theirs) = fixed.min_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b))).unwrap();
    let ours = &seconds["auto"];
    let ratio = mean(ours) / mean(theirs);
    // The ratio of two means over the same seeds, linearised.
    let deviations: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| ratio + (a - ratio * b) / mean(theirs)).collect();
    let ratio = Estimate { mean: ratio, ..Estimate::of(&deviations) };
    println!("{}:", scenario.name);
    for (name, all) in seconds {
        let longest = all.iter().copied().fold(0.0, f64::max);
        println!("    {name:28} {:9.2} +- {:.2} s, {longest:.2} at most", mean(all), Estimate::of(all).half_width);
    }
    println!("    auto over {best}: {:.3} +- {:.3}", ratio.mean, ratio.half_width);
    ratio
}

/// At most 5 % above the best of all fixed choices and intervals, by the lower end of the
/// confidence interval.
#[test]
#[ignore = "minutes: some 800 solves"]
fn auto_in_virtual_time_is_near_the_best_fixed_choice() {
    let dir = tempfile::tempdir().unwrap();
    for scenario in &VIRTUAL {
        let mut seconds = BTreeMap::new();
        for (name, scheme) in choices(scenario) {
            let options = scenario.options;
            let machine = format!("--virtual-time --failures inject --mtti 3600 --trials {TRIALS}");
            let arguments = format!("compare {VIRTUAL_PROBLEM} {options} {machine} --schemes {scheme}");
            let report = json(&arguments, dir.path(), 0);
            let each = report["runs"][0]["seconds_total_each"].as_array().unwrap();
            seconds.insert(name, each.iter().map(|value| value.as_f64().unwrap()).collect());
        }
        let ratio = judge(scenario, &seconds);
        assert!(ratio.mean - ratio.half_width <= 1.05, "{}: {ratio:?}", scenario.name);
    }
}

/// Real processes and real SIGKILLs, on real time: who is how fast is said, and that all of them
/// end is asserted.
#[test]
#[ignore = "half an hour of kills on the wall clock"]
fn auto_under_kills_beside_every_fixed_choice() {
    // They sleep most of the time, so all scenarios continue at once.
    let judged = std::thread::scope(|scope| {
        let run = |scenario| killed(scenario, &choices(scenario), 1..=KILLED_TRIALS);
        let runs: Vec<_> = KILLED.iter().map(|scenario| scope.spawn(move || run(scenario))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    for (scenario, seconds) in KILLED.iter().zip(&judged) {
        judge(scenario, seconds);
    }
}

/// Where kills cost most and ten seeds settle nothing: the two best choices of those, on sixty
/// other seeds.
#[test]
#[ignore = "ten minutes of kills on the wall clock"]
fn auto_under_many_kills_is_near_the_best_on_a_slow_store() {
    let scenario = &KILLED[0];
    let candidates = ["auto", "lossy", "lossy --state x"].map(|choice| (choice.to_owned(), choice.to_owned()));
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let parts = std::thread::scope(|scope| {
        let first = (1..=3).map(|part| KILLED_TRIALS + 20 * (part - 1) + 1);
        let run = |first| killed(scenario, &candidates, first..=first + 19);
        let runs: Vec<_> = first.map(|first| scope.spawn(move || run(first))).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect::<Vec<_>>()
    });
    for (name, part) in parts.into_iter().flatten() {
        seconds.entry(name).or_default().extend(part);
    }
    let ratio = judge(scenario, &seconds);
    assert!(ratio.mean <= 1.03, "{ratio:?}");
}

/// Seconds of every choice, seed by seed, one after the other, so that what else the machine does
/// strikes all of them.
fn killed(scenario: &Scenario, choices: &[Choice], seeds: RangeInclusive<u64>) -> BTreeMap<String, Vec<f64>> {
    let dir = tempfile::tempdir().unwrap();
    let undisturbed = json(&format!("solve {KILLED_PROBLEM} {}", method(scenario)), dir.path(), 0);
    println!("{}: undisturbed {} iterations", scenario.name, undisturbed["iterations"]);
    let mut seconds: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for seed in seeds {
        for (name, scheme) in choices {
            let options = format!("{} --baseline-iterations {}", scenario.options, undisturbed["iterations"]);
            let kills = format!("{KILLS} --seed {seed} --dir {}", fresh(dir.path()));
            let run = json(&format!("run {KILLED_PROBLEM} {options} {kills} --scheme {scheme}"), dir.path(), 0);
            assert_eq!(run["converged"], true, "{name}: {run}");
            seconds.entry(name.clone()).or_default().push(run["seconds_total"].as_f64().unwrap());
        }
    }
    seconds
}

/// An empty place for the versions of one run.
fn fresh(dir: &Path) -> &'static str {
    let _ = std::fs::remove_dir_all(dir.join("versions"));
    "versions"
}

fn method(scenario: &Scenario) -> &str {
    if scenario.options.contains("--method cg") { "--method cg" } else { "--method gmres" }
}
