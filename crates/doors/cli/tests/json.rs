//! docs/json.md names every key that a command prints, and none that no command prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use recoup::memory::{Memory, MemoryOptions, VersionedArray};
use serde_json::Value;

const CG: &str = "--poisson3d 8 --method cg --rtol 1e-8 --threads 1";
const VIRTUAL: &str = "--virtual-time --t-iter 20 --pfs-bandwidth 273 --codec-rate 200M --mtti 900 --failures inject";
/// Objects whose keys are names: any of them is `*`.
const NAMED: [&str; 6] = [
    "expected_overhead",
    "intervals_s",
    "first_order_overhead",
    "present.expected_overhead",
    "schemes",
    "auto.checkpoints_mean",
];

/// All keys of the value, as docs/json.md writes them.
fn keys(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(entries) => {
            for (key, inner) in entries {
                let key = if NAMED.contains(&path) { "*" } else { key };
                let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                keys(inner, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| keys(item, &format!("{path}[]"), found)),
        _ => {}
    }
}

/// The keys that the tables name, by the headings they stand under.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/json.md")).unwrap();
    let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut heading);
        }
        let Some((first, _)) = line.strip_prefix("| `").and_then(|row| row.split_once(" | ")) else { continue };
        let names = first.split(", ").map(|name| name.trim_matches('`').to_owned());
        sections.entry(heading.clone()).or_default().extend(names);
    }
    sections
}

/// The keys of all objects these command lines print.
fn printed(commands: &[String], dir: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for arguments in commands {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
        command.args(arguments.split_whitespace()).arg("--json").current_dir(dir).stdin(Stdio::null());
        if arguments == "device" {
            let link = dir.join("libcuda.so");
            std::os::unix::fs::symlink(recoup_cuda_double::Double::path(), link).unwrap();
            command.env("LD_LIBRARY_PATH", dir);
        }
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let value: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{arguments}: {e}\n{error}"));
        let words = value["command"].as_array().unwrap();
        assert_eq!(words.len(), 2 + arguments.split_whitespace().count(), "{words:?}");
        keys(&value, "", &mut found);
    }
    found
}

/// Each command with the tables it fills, and the lines that print all there is.
fn cases(scenarios: &Path) -> Vec<(&'static str, Vec<String>)> {
    let of = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<String>>();
    let scenario = |name: &str| scenarios.join(name).display().to_string();
    let decide = "--mtti 3600 --t-iter 1 --iterations 100 --ckpt 10 --ckpt-lossy 3";
    let stationary = "model stationary --iterations 3941 --spectral-radius 0.99998 --error-bound 1e-4";
    let paper = scenario("paper.toml");
    let levels = scenario("three-levels.toml");
    let mut cases = vec![
        ("recoup solve", vec![format!("solve {CG} --roofline")]),
        (
            "recoup run",
            vec![
                format!("run {CG} --scheme lossy --interval 3it --dir d --failures at:7"),
                format!("run {CG} --scheme lossy {VIRTUAL}"),
                format!("run {CG} --scheme lossless --interval 3it --dir e"),
            ],
        ),
        ("recoup inspect", of(&["inspect d"])),
        ("recoup verify", of(&["verify d"])),
        ("recoup diff", of(&["diff d d", "diff d e"])),
        ("recoup export", of(&["export d --to x.h5"])),
        ("recoup status", of(&["status d"])),
        ("recoup watch", of(&["watch d"])),
        ("recoup report of a run", of(&["report d"])),
        ("recoup prune", of(&["prune d --keep 1"])),
        ("recoup model interval", of(&["model interval --mtti 3600 --ckpt 10"])),
        ("recoup model overhead", of(&["model overhead --mtti 3600 --ckpt 10"])),
        ("recoup model bound", of(&["model bound --mtti 3600 --ckpt-traditional 120 --ckpt-lossy 25 --t-iter 1"])),
        ("recoup model stationary", of(&[stationary])),
        ("recoup model levels", of(&["model levels --mtti 3600 --ckpt memory:0.2,pfs:40 --trials 2"])),
        ("recoup model scale", of(&["model scale --ranks 100,100000"])),
        (
            "recoup model system",
            of(&[
                "model system --template",
                &format!("model system --config {} --trials 2", scenario("gpu-dense.toml")),
            ]),
        ),
        (
            "recoup model decide",
            vec![format!("model decide {decide} --interval 50"), format!("model decide --scenario {levels}")],
        ),
        (
            "recoup model simulate",
            vec![
                format!("model simulate {decide} --trials 2"),
                format!("model simulate --scenario {paper} --policy auto --trials 2"),
            ],
        ),
    ];
    cases.push((
        "recoup tape bench",
        of(&[
            "tape bench --on simulated:a100 --processes 1 --codec qb --ratio 8 --codec-rate 100G",
            "tape bench --on host --uniform 3x64KiB --interval 0s --rounds 1 --codec qb --error-bound 1e-4",
        ]),
    ));
    let numbers =
        "--steps 20 --state 1MiB --t-step 1ms --memory 4MiB --disk 1GB --disk-rate 1G --ratio 8 --codec-rate 1G";
    cases.push(("recoup tape plan", vec![format!("tape plan {numbers} --actions")]));
    cases.push(("recoup memory list", of(&["memory list m.memory"])));
    cases.push(("recoup memory verify", of(&["memory verify m.memory"])));
    cases.push(("recoup memory advise", of(&["memory advise --cost 1s --mtti 1h --trials 2"])));
    cases.push(("recoup doctor", of(&["doctor ."])));
    // Without the feature there is never a device to list.
    if cfg!(feature = "cuda") {
        cases.push(("recoup device", of(&["device"])));
    }
    cases
}

#[test]
fn keys_of_every_command_are_those_of_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    let mut memory = Memory::open(&dir.path().join("m.memory"), MemoryOptions::default()).unwrap();
    memory.commit(1, &mut [&mut VersionedArray::<f64>::zeros("x", 9)]).unwrap();
    let documented = documented();
    let common = &documented["Every command"];
    for (command, lines) in cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")) {
        let expected: BTreeSet<String> = documented[command].union(common).cloned().collect();
        let found = printed(&lines, dir.path());
        let only = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>();
        assert_eq!(only(&found, &expected), Vec::<String>::new(), "{command} prints what docs/json.md does not name");
        assert_eq!(only(&expected, &found), Vec::<String>::new(), "docs/json.md names what {command} does not print");
    }
}

/// `compare` has a table of its own, for means, and lists what `run` and `solve` print as well.
#[test]
fn keys_of_a_comparison_are_those_of_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    let documented = documented();
    let compare = format!("compare {CG} --paper-regime cg --trials 2 --seed 3 --report reports/cg");
    let found = printed(&[compare], dir.path());
    let of = |command: &str, before: &str| -> BTreeSet<String> {
        documented[command].iter().map(|key| format!("{before}.{key}")).collect()
    };
    let first = of("recoup run", "runs[].first_trial");
    let baseline = of("recoup solve", "baseline");
    let common = &documented["Every command"];
    let known = |key: &String| first.contains(key) || baseline.contains(key) || common.contains(key);
    let own: BTreeSet<String> = found.into_iter().filter(|key| !known(key)).collect();
    let means: BTreeSet<String> = own.iter().map(|key| key.strip_suffix("_ci95").unwrap_or(key).to_owned()).collect();
    let pairs = documented["recoup compare"].iter().map(|key| key.strip_suffix("_ci95").unwrap_or(key).to_owned());
    assert_eq!(means, pairs.collect());
    let index = printed(&["report reports".to_owned()], dir.path());
    assert_eq!(index, documented["recoup report"].union(common).cloned().collect());
}
