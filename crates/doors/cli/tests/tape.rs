//! `recoup tape bench`, on the simulated machine and on this one, and `recoup tape plan`.

use std::collections::BTreeSet;
use std::path::Path;

use recoup::tape::schedule::{AccessCost, AdjointProblem, CodedState, ReverseNeeds, StateStorage};
use recoup::tape::simulated::{Approach, MachineScenario, NodeRates, SimulatedCodec};
use serde_json::Value;

use crate::support::{each_refused, json, printed};

/// Smallest run of the host.
const HOST: &str = "--on host --uniform 12x64KiB --interval 0s --rounds 2";

/// The rows of a report under a key, by the name that each has.
fn rows<'a>(report: &'a Value, key: &str, name: &str) -> Vec<(&'a str, &'a Value)> {
    report[key].as_array().unwrap().iter().map(|row| (row[name].as_str().unwrap(), row)).collect()
}

fn seconds(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn simulated_seconds_are_those_of_the_library() {
    let dir = tempfile::tempdir().unwrap();
    let codec = "--codec qb --ratio 8 --codec-rate 100G";
    let report =
        json(&format!("tape bench --on simulated:a100 --processes 1..2 --interval 20ms {codec}"), dir.path(), 0);
    let codec = SimulatedCodec { ratio: 8.0, rate: 100e9 };
    let mut expected = Vec::new();
    for n_processes in [1, 2] {
        let scenario = MachineScenario::large_host(NodeRates::a100(), n_processes, 0.02);
        let coded = MachineScenario { rates: scenario.rates.coded(codec), ..scenario.clone() };
        let approaches = [
            ("direct", &scenario, Approach::Direct),
            ("memset", &scenario, Approach::MEMSET),
            ("published", &scenario, Approach::PUBLISHED),
            ("chunked", &scenario, Approach::Chunked),
            ("coded", &coded, Approach::Chunked),
        ];
        let direct = scenario.run(Approach::Direct).unwrap();
        for (name, scenario, approach) in approaches {
            let run = scenario.run(approach).unwrap();
            let gains = [direct.push_seconds / run.push_seconds, direct.total_seconds() / run.total_seconds()];
            expected.push((n_processes, name, [run.push_seconds, run.pop_seconds, gains[0], gains[1]]));
        }
    }
    let found = rows(&report, "approaches", "approach");
    assert_eq!(found.len(), expected.len());
    for ((name, row), (n_processes, approach, figures)) in found.into_iter().zip(expected) {
        assert_eq!((name, row["processes"].as_u64()), (approach, Some(n_processes as u64)));
        let found = ["push_s", "pop_s", "push_gain", "gain"].map(|key| seconds(row, key));
        assert_eq!(found, figures, "{approach}, {n_processes} processes");
    }
}

#[test]
fn columns_of_a_trace_are_the_states_of_the_processes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sizes.csv"), "1000000,3000000\n2000000,500000\n").unwrap();
    let arguments = "--on simulated:a100 --trace sizes.csv --repeat 3 --processes 2 --device 4MB --host 16MB";
    let report = json(&format!("tape bench {arguments}"), dir.path(), 0);
    assert_eq!((&report["n_states"], &report["state_bytes_greatest"]), (&Value::from(6), &Value::from(3_000_000)));
    let states = vec![[1_000_000, 2_000_000].repeat(3), [3_000_000, 500_000].repeat(3)];
    let base = MachineScenario::large_host(NodeRates::a100(), 2, 0.005);
    let scenario = MachineScenario { device_bytes: 4_000_000, host_bytes: 16_000_000, states, ..base };
    let expected = scenario.run(Approach::PUBLISHED).unwrap();
    let rows = rows(&report, "approaches", "approach");
    let published = rows.iter().find(|(name, _)| *name == "published").unwrap().1;
    let found = ["push_s", "pop_s"].map(|key| seconds(published, key));
    assert_eq!(found, [expected.push_seconds, expected.pop_seconds]);
}

#[test]
fn every_way_is_measured_on_the_host_or_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("spilled")).unwrap();
    let codec = "--codec qb --error-bound 1e-4";
    let report = json(&format!("tape bench {HOST} --processes 1,2 --spill spilled {codec}"), dir.path(), 0);
    let found = rows(&report, "ways", "way");
    let names = ["vec", "direct", "small-pages", "huge-pages", "untouched", "spill", "tmpfs", "coded"];
    let both: Vec<(u64, &str)> = [1, 2].into_iter().flat_map(|n| names.map(|name| (n, name))).collect();
    let measured: Vec<(u64, &str)> =
        found.iter().map(|(name, row)| (row["processes"].as_u64().unwrap(), *name)).collect();
    assert_eq!(measured, both);
    for (name, row) in found {
        if row["skipped"].is_string() {
            assert!(["direct", "tmpfs"].contains(&name), "{row}");
            continue;
        }
        assert!(seconds(row, "push_first_s") > 0.0 && seconds(row, "pop_first_s") > 0.0, "{row}");
        for call in ["push", "pop"] {
            let median = seconds(row, &format!("{call}_median_s"));
            assert!(median <= seconds(row, &format!("{call}_greatest_s")), "{row}");
            assert!(seconds(row, &format!("{call}_bytes_per_second")) > 0.0, "{row}");
        }
        // A mean over the processes, of which one had the greatest call.
        let waited = seconds(row, "waited_s");
        assert!(waited >= seconds(row, "before_s"), "{row}");
        assert!(waited >= seconds(row, "push_greatest_s") / seconds(row, "processes"), "{row}");
        let is_coded = row["ratio"].as_f64().is_some_and(|ratio| ratio > 2.0);
        assert_eq!(is_coded, name == "coded", "{row}");
    }
    assert_eq!(std::fs::read_dir(dir.path().join("spilled")).unwrap().count(), 0, "folders of tapes are left");
}

#[test]
fn pages_choose_the_ways_and_tables_fit_100_columns() {
    let dir = tempfile::tempdir().unwrap();
    let text = printed(&format!("tape bench {HOST} --pages small --processes 2,1"), dir.path(), 0);
    assert!(text.contains("2 x small-pages") && text.contains("1 x untouched"), "{text}");
    assert!(!text.contains("huge-pages"), "{text}");
    let all = text + &printed("tape bench --on simulated:a100 --processes 8", dir.path(), 0);
    let longest = all.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= 100, "{longest} columns\n{all}");
}

#[test]
fn wrong_input_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("two.csv", "1000,2000\n3000,4000\n");
    write("ragged.csv", "1000,2000\n3000\n");
    write("words.csv", "1000,2000\n3000,many\n");
    write("empty.csv", "\n");
    let simulated = [
        ("--uniform 12", 2, "expected states and bytes of each, as in 256x128MiB"),
        ("--uniform 12xbig", 2, "expected bytes, at least 1"),
        ("--processes 0", 2, "expected numbers from 1 to 64, as in 4 or 1,2,4,8 or 1..8"),
        ("--interval soon", 2, "expected a duration"),
        ("--trace none.csv", 1, "--trace none.csv: No such file"),
        ("--trace ragged.csv", 2, "ragged.csv, line 2: 2 columns expected, 1 found"),
        ("--trace words.csv --processes 1", 2, "words.csv, line 2, column 2: expected bytes"),
        ("--trace empty.csv", 2, "empty.csv: no sizes are in it"),
        ("--trace two.csv --processes 3", 2, "2 columns, a process each, and 3 processes"),
        ("--processes 1 --host 1GiB", 1, "--host 1.00 GiB for 32.00 GiB of states: name more"),
        ("--spill .", 2, "--spill with --on simulated:a100: the simulated machine has no"),
        ("--codec qb", 2, "state what it reaches there with --ratio R and --codec-rate"),
        ("--ratio 8", 2, "--codec"),
    ];
    let host = [
        ("--device 1GiB", 2, "--device with --on host: no device takes part"),
        ("--codec qb", 2, "--codec qb needs --error-bound E"),
        ("--codec zstd --error-bound 1e-4", 2, "--codec zstd loses nothing"),
        ("--spill nodir", 2, "--spill nodir: there is no such directory"),
    ];
    let others = [
        ("", 2, "--on <ON>"),
        ("--on cray", 2, "simulated:a100, host, cuda"),
        ("--on cuda --ratio 3 --codec zstd", 2, "the ratio is measured"),
        ("--on cuda --pages small", 2, "memory that a device copies to has huge pages"),
        ("--on host --uniform 1000x1TiB", 2, "of memory, "),
    ];
    each_refused("tape bench --on simulated:a100", &simulated, dir.path());
    each_refused(&format!("tape bench {HOST}"), &host, dir.path());
    each_refused("tape bench", &others, dir.path());
}

/// A program of 200 steps, a machine with a disk, and a codec.
const PROGRAM: &str = "--steps 200 --state 1MiB --t-step 2ms --t-reverse 5ms --memory 12MiB";
const DISK_AND_CODEC: &str = "--disk 30MiB --disk-rate 1G --disk-read-rate 2G --ratio 3 --codec-rate 500M";

fn planned(arguments: &str, dir: &Path) -> Value {
    json(&format!("tape plan {arguments}"), dir, 0)
}

#[test]
fn a_plan_is_that_of_the_library() {
    let dir = tempfile::tempdir().unwrap();
    let access =
        |write: f64, read: f64| AccessCost { write_seconds: 1_048_576.0 / write, read_seconds: 1_048_576.0 / read };
    let plain = AdjointProblem {
        steps: 200,
        forward_seconds: 0.002,
        reverse_seconds: 0.005,
        reverse_needs: ReverseNeeds::State,
        state_bytes: 1 << 20,
        coded: None,
        memory: StateStorage { bytes: 12 << 20, access: access(5e9, 5e9) },
        disk: StateStorage::default(),
    };
    let codec_seconds = 1_048_576.0 / 500e6;
    let coded = CodedState { bytes: 349_526, encode_seconds: codec_seconds, decode_seconds: codec_seconds };
    let disk = StateStorage { bytes: 30 << 20, access: access(1e9, 2e9) };
    let full = AdjointProblem { coded: Some(coded), disk, reverse_needs: ReverseNeeds::StepData, ..plain };
    let full_arguments = format!("{PROGRAM} {DISK_AND_CODEC} --reverse-needs step-data");
    for (arguments, problem) in [(PROGRAM, plain), (full_arguments.as_str(), full)] {
        let report = planned(arguments, dir.path());
        let choice = problem.choose().unwrap();
        assert_eq!(report["schedule"], choice.best.kind.name(), "{report}");
        assert_eq!((report["predicted_s"].as_f64(), &report["why"]), (Some(choice.best.seconds), &choice.why().into()));
        let rows = report["candidates"].as_array().unwrap();
        assert_eq!(rows.len(), choice.candidates.len());
        for (row, candidate) in rows.iter().zip(&choice.candidates) {
            assert_eq!(row["reason"], choice.reason(candidate));
            let seconds = candidate.outcome.ok().map(|plan| plan.seconds);
            assert_eq!(row["predicted_s"].as_f64(), seconds, "{row}");
        }
        let text = printed(&format!("tape plan {arguments}"), dir.path(), 0);
        let flowing = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowing.contains(&choice.why()), "{text}");
        for candidate in &choice.candidates {
            let name = format!("{} {}", candidate.kind, candidate.form);
            assert!(flowing.contains(&name), "{name} is neither possible nor refused\n{text}");
        }
    }
}

#[test]
fn numbers_of_a_plan_may_come_from_a_file_and_options_win() {
    let dir = tempfile::tempdir().unwrap();
    let report = planned(&format!("{PROGRAM} {DISK_AND_CODEC}"), dir.path());
    std::fs::write(dir.path().join("costs.json"), report["problem"].to_string()).unwrap();
    let same = planned("--costs costs.json", dir.path());
    for key in ["problem", "candidates", "why"] {
        assert_eq!(same[key], report[key]);
    }
    let other = planned("--costs costs.json --steps 10", dir.path());
    assert_eq!((&other["problem"]["steps"], &other["way"]), (&Value::from(10), &Value::from("store all")));
}

/// Carries the actions out by their words alone.
#[test]
fn actions_of_a_plan_reverse_every_step_within_its_room() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [PROGRAM.to_owned(), format!("{PROGRAM} --disk 30MiB --disk-rate 100G --memory-rate 200G")] {
        let report = planned(&arguments, dir.path());
        let text = printed(&format!("tape plan {arguments} --actions"), dir.path(), 0);
        let mut stored: [BTreeSet<u64>; 2] = Default::default();
        let mut now = Some(0);
        let mut recorded = None;
        let mut left = 200;
        let mut taken = 0;
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |at: usize| words[at].parse::<u64>().unwrap();
            let level = usize::from(words.get(1) == Some(&"disk"));
            match words[0] {
                "advance" => {
                    assert_eq!(now, Some(number(1)), "{line}");
                    now = Some(number(2));
                    taken += number(2) - number(1);
                    recorded = (words.get(3) == Some(&"record")).then(|| number(2) - 1);
                }
                "write" => {
                    assert_eq!(now, Some(number(2)), "{line}");
                    assert!(stored[level].insert(number(2)), "{line}");
                    assert!(stored[0].len() <= 12 && stored[1].len() <= 30, "{line}");
                }
                "read" | "take" => {
                    assert!(stored[level].contains(&number(2)), "{line}");
                    if words[0] == "take" {
                        stored[level].remove(&number(2));
                    }
                    now = Some(number(2));
                }
                "reverse" => {
                    left -= 1;
                    assert_eq!((number(1), recorded.take()), (left, Some(left)), "{line}");
                    now = None;
                }
                "end" => assert!(left == 0 && stored.iter().all(BTreeSet::is_empty)),
                _ => panic!("{line}"),
            }
        }
        assert!(text.ends_with("reverse 0\nend\n"));
        let best = &report["candidates"].as_array().unwrap().iter().find(|row| row["reason"] == "chosen").unwrap();
        // The reverse takes states: steps that only record are left out.
        assert_eq!(best["forward_steps"].as_u64(), Some(taken - 200), "{report}");
    }
}

#[test]
fn numbers_that_make_no_plan_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    file("unknown.json", r#"{"steps": 5, "memory": 3}"#);
    file("negative.json", r#"{"step_s": -1}"#);
    file("zero.json", r#"{"steps": 0}"#);
    file("text.json", "steps = 5");
    let incomplete = [
        ("--steps 5 --memory 1MiB", 2, "missing: --state BYTES, --t-step DURATION"),
        ("--steps 0", 2, "0 is not in 1.."),
        ("--steps 5 --state much", 2, "expected bytes"),
        ("--steps 5 --t-step 0", 2, "expected a duration above 0"),
        (
            "--steps 5 --state 2MiB --t-step 1s --memory 1MiB",
            2,
            "states of 2.00 MiB: a schedule for 5 steps with 0 slots",
        ),
        ("--costs none.json", 1, "--costs none.json: No such file"),
        ("--costs unknown.json", 2, "--costs unknown.json: unknown field `memory`, expected one of `steps`"),
        ("--costs negative.json", 2, "--costs negative.json: step_s is -1: expected a number above 0"),
        ("--costs zero.json", 2, "--costs zero.json: steps is 0"),
        ("--costs text.json", 2, "--costs text.json: expected value at line 1"),
    ];
    let half = [
        ("--disk 1GB", 2, "--disk BYTES without --disk-rate BYTES/S: give both"),
        ("--codec-rate 1G", 2, "--codec-rate BYTES/S without --ratio R"),
        ("--decode-rate 1G", 2, "--decode-rate without --ratio R"),
        ("--disk-read-rate 1G", 2, "--disk-read-rate without --disk BYTES"),
        ("--memory 1000000", 2, "the argument '--memory <BYTES>' cannot be used multiple times"),
    ];
    each_refused("tape plan", &incomplete, dir.path());
    each_refused(&format!("tape plan {PROGRAM}"), &half, dir.path());
}
