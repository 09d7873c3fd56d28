//! The history of a run: its page, those who watch it, and the metrics for those who scrape.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::support::{command, ended, json, printed, said};

const SOLVE: &str = "--poisson3d 12 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1";
const SAVE: &str = "--scheme lossy --interval 5it --sync --dir d";

/// Starts a run of slow steps that ends only if it is let, and waits for a version of it.
fn started(dir: &Path, pace: &str) -> Child {
    let run = format!("run {SOLVE} {SAVE} --t-iter {pace} --baseline-iterations 30");
    let child = command(&run, dir).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let versions = || std::fs::read_to_string(dir.join("d/solve/history.log")).unwrap_or_default();
    while !versions().contains("\"kind\":\"version\"") {
        std::thread::yield_now();
    }
    child
}

/// The facts of a page by their names.
fn facts(page: &str) -> BTreeMap<String, String> {
    let facts = page.split("<dt>").skip(1).map(|fact| {
        let (name, value) = fact.split_once("</dt><dd>").unwrap();
        (name.to_owned(), value.split('<').next().unwrap().to_owned())
    });
    facts.collect()
}

/// The rows of the table under a heading, cell by cell.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let table = page.split(&format!("<h2>{heading}</h2>")).nth(1).unwrap();
    let body = table.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let cells = |row: &str| row.split("</t").map(|cell| cell.rsplit('>').next().unwrap().to_owned()).collect();
    body.lines().filter(|line| line.starts_with("<tr>")).map(cells).collect()
}

#[test]
fn page_has_the_figures_of_its_run_and_of_one_without_a_history() {
    let dir = tempfile::tempdir().unwrap();
    let clock = "--virtual-time --t-iter 5 --pfs-bandwidth 2000 --codec-rate 1e9";
    for (options, report) in [(SAVE, "kept"), (clock, "virtual"), ("--scheme none", "none")] {
        let run = json(&format!("run {SOLVE} {options} --failures at:12,20 --report {report}"), dir.path(), 0);
        assert_eq!(run["report"], format!("{report}/index.html"));
        let page = std::fs::read_to_string(dir.path().join(report).join("index.html")).unwrap();
        let facts = facts(&page);
        for (name, key) in [
            ("iteration", "iterations"),
            ("iterations executed", "iterations_executed"),
            ("iterations lost", "iterations_lost"),
            ("failures", "failures"),
            ("recoveries", "recoveries"),
            ("ended", "ended"),
        ] {
            let value = run[key].as_str().map_or_else(|| run[key].to_string(), str::to_owned);
            assert_eq!(facts[name], value, "{report}: {name}");
        }
        let events = rows(&page, "Failures and recoveries");
        let count = |kind: &str| events.iter().filter(|row| row[1] == kind).count() as u64;
        assert_eq!(Some(count("failure")), run["failures"].as_u64(), "{report}");
        assert_eq!(Some(count("recovery")), run["recoveries"].as_u64(), "{report}");
        // Names and ids of the namespace apart, nothing leads out of the page.
        let inside = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!inside.contains("http://") && !inside.contains("https://") && !inside.contains("<script"), "{report}");
    }
    let run: Value = serde_json::from_slice(&std::fs::read(dir.path().join("kept/run.json")).unwrap()).unwrap();
    let told = json("report d --to again", dir.path(), 0);
    let costs = ["seconds_total", "seconds_checkpoint_blocking", "seconds_recovery", "seconds_lost_work"];
    for key in ["iterations_executed", "iterations_lost"].into_iter().chain(costs) {
        assert_eq!(told[key], run[key], "{key}");
    }
    // The version of the solution is no part of what protection costs, and is written.
    assert_eq!(told["checkpoints"].as_u64(), run["checkpoints"].as_u64().map(|n| n + 1));
    let plot = printed("report d --plot", dir.path(), 0);
    assert!(plot.starts_with("relative residual\n") && plot.lines().all(|line| line.chars().count() <= 80), "{plot}");
    assert!(!plot.contains('\u{1b}') && plot.contains("iterations executed"), "{plot}");
}

/// The costs of a process that is killed are known from nothing else.
#[test]
fn history_goes_on_after_a_kill_and_who_watches_sees_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut killed = started(dir.path(), "30ms");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut second = started(dir.path(), "30ms");
    let watched = ended("watch d --every 100ms", dir.path(), 0);
    assert_eq!(second.wait().unwrap().code(), Some(0));
    let watched = String::from_utf8(watched.stdout).unwrap();
    let states: Vec<&str> = watched.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let (header, looks) = states.split_first().unwrap();
    assert_eq!((*header, looks.last()), ("state", Some(&"converged")), "{watched}");
    assert!(looks.contains(&"running") && watched.lines().all(|line| line.len() <= 80), "{watched}");
    let story = json("report d", dir.path(), 0);
    assert_eq!([&story["processes"], &story["failures"], &story["recoveries"]], [2, 1, 1]);
    assert_eq!(story["ended"], "converged");
    let [executed, lost, iteration] =
        ["iterations_executed", "iterations_lost", "iteration"].map(|key| story[key].as_u64().unwrap());
    // A lossy version may need more iterations, never fewer than were done once.
    assert!(executed >= iteration && executed - lost <= iteration, "{story}");
    assert_eq!(json("watch d", dir.path(), 0)["state"], "converged");
    // Damage of a line costs what it says, and nothing else.
    let file = dir.path().join("d/solve/history.log");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&file, &bytes).unwrap();
    let damaged = json("report d", dir.path(), 0);
    for key in ["processes", "failures", "recoveries", "iterations_executed", "iterations_lost", "ended"] {
        assert_eq!(damaged[key], story[key], "{key}");
    }
    assert!(printed("report d", dir.path(), 0).contains("damaged lines"));
    std::fs::write(&file, "no line of a history\n").unwrap();
    let refused = said(&ended("report d", dir.path(), 1));
    assert!(refused.contains("d/solve/history.log is damaged: none of its 1 lines is whole"), "{refused}");
    ended(&format!("run {SOLVE} {SAVE} --fresh --max-iterations 7"), dir.path(), 3);
    ended("watch d", dir.path(), 3);
    assert_eq!(json("report d", dir.path(), 0)["processes"], 1);
}

/// A sample of the text exposition format: name, labels, value.
fn sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let (name, others) = line.split_once('{').unwrap();
    let (labels, value) = others.rsplit_once("} ").unwrap();
    let mut found = BTreeMap::new();
    let mut text = labels.chars().peekable();
    while text.peek().is_some() {
        let label: String = text.by_ref().take_while(|&c| c != '=').collect();
        assert_eq!(text.next(), Some('"'), "{line}");
        let mut value = String::new();
        while let Some(c) = text.next().filter(|&c| c != '"') {
            value.push(if c == '\\' { text.next().unwrap() } else { c });
        }
        found.insert(label, value);
        assert!(matches!(text.next(), None | Some(',')), "{line}");
    }
    (name.to_owned(), found, value.parse().unwrap())
}

#[test]
fn metrics_parse_and_are_those_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    // A status may come from anybody.
    let host = "a \"host\" with \\";
    let run = format!("run {SOLVE} {SAVE} --failures at:12");
    ended(&run, dir.path(), 0);
    let file = dir.path().join("d/solve/status.json");
    let mut status: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    status["host"] = host.into();
    std::fs::write(&file, status.to_string()).unwrap();
    let text = printed("status d --prometheus", dir.path(), 0);
    let mut typed = BTreeSet::new();
    let mut values = BTreeMap::new();
    for line in text.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            assert!(words[0] == "HELP" || typed.insert(words[1].to_owned()), "{line} a second time");
            assert!(words[0] == "HELP" || ["counter", "gauge"].contains(&words[2]), "{line}");
            continue;
        }
        let (metric, labels, value) = sample(line);
        assert!(typed.contains(&metric), "{line} has no type above it");
        assert_eq!(labels["run"], "solve");
        assert_eq!(labels.get("host").map(String::as_str), (metric == "recoup_run_info").then_some(host));
        let part = labels.get("phase").or_else(|| labels.get("state")).cloned().unwrap_or_default();
        assert_eq!(values.insert((metric, part), value), None, "{line} a second time");
    }
    let value = |metric: &str, part: &str| values[&(format!("recoup_{metric}"), part.to_owned())];
    let status = json("status d", dir.path(), 0);
    let status = &status["runs"][0];
    assert_eq!(Some(value("iteration", "")), status["iteration"].as_f64());
    assert_eq!(Some(value("relative_residual", "")), status["relative_residual"].as_f64());
    assert_eq!(Some(value("failures_total", "")), status["failures"].as_f64());
    assert_eq!(Some(value("versions_total", "")), status["checkpoints"].as_f64());
    assert_eq!([value("run_state", "converged"), value("run_state", "running")], [1.0, 0.0]);
    let phases =
        ["iterations", "iterations_lost", "checkpoints", "recoveries"].map(|phase| value("phase_seconds", phase));
    let sum = phases.iter().sum::<f64>();
    let total = value("seconds_total", "");
    // Four terms of at most the total, each rounded twice.
    assert!((sum - total).abs() <= 8.0 * f64::EPSILON * total, "{phases:?} {total}");
}
