//! The scenario files that come with the program, as a user runs them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn model(arguments: &str, scenario: &str) -> Output {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(scenario);
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.arg("model").args(arguments.split_whitespace()).arg("--scenario").arg(file).output().unwrap()
}

fn json(arguments: &str, scenario: &str) -> Value {
    let output = model(&format!("{arguments} --json"), scenario);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments}: {stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn each_scenario_is_decided() {
    for (scenario, scheme) in
        [("paper.toml", "lossy"), ("local-disk.toml", "traditional"), ("three-levels.toml", "lossy")]
    {
        let found = json("decide", scenario);
        assert_eq!(found["scheme"], scheme, "{scenario}: {found}");
        assert!(found["why"].as_str().unwrap().contains("lossy"), "{found}");
    }
    let levels = json("decide", "three-levels.toml");
    assert_eq!(levels["levels"].as_array().unwrap().last().unwrap()["name"], "parallel file system");
}

#[test]
fn auto_comes_near_the_best_scheme_of_each_simulated_scenario() {
    for scenario in ["paper.toml", "local-disk.toml"] {
        let found = json("simulate --trials 40 --policy auto", scenario);
        let overhead = |of: &Value| of["overhead_fraction"].as_f64().unwrap();
        let schemes = found["schemes"].as_object().unwrap().values();
        let best = schemes.map(overhead).fold(f64::INFINITY, f64::min);
        // 5 % of the whole time, and the noise of 40 runs.
        let allowed = 1.05 * (1.0 + best) - 1.0 + found["auto"]["overhead_half_width"].as_f64().unwrap();
        assert!(overhead(&found["auto"]) <= allowed, "{scenario}: {found}");
        assert!(!found["auto"]["decisions"].as_array().unwrap().is_empty());
    }
}

#[test]
fn several_levels_are_simulated_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let found = json(&format!("simulate --trials 20 --report {}", dir.path().display()), "three-levels.toml");
    let lossy = &found["schemes"]["lossy"];
    assert!(
        lossy["overhead_fraction"].as_f64().unwrap()
            < found["schemes"]["traditional"]["overhead_fraction"].as_f64().unwrap()
    );
    let svg = std::fs::read_to_string(dir.path().join("overhead.svg")).unwrap();
    assert!(svg.contains("lossy") && svg.contains("simulated"));
    let refused = model("simulate --policy auto", "three-levels.toml");
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn unknown_key_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("wrong.toml");
    std::fs::write(&file, "name = \"x\"\nspeed = 1\n").unwrap();
    let refused = model("decide", file.to_str().unwrap());
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("speed"), "{refused:?}");
}
