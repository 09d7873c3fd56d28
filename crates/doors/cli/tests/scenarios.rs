//! The scenario files that come with the program, as a user runs them.

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
    let plot = dir.path().join("mine.svg");
    let drawn = format!("--report {} --plot {}", dir.path().display(), plot.display());
    let found = json(&format!("simulate --trials 20 {drawn}"), "three-levels.toml");
    let lossy = &found["schemes"]["lossy"];
    assert!(
        lossy["overhead_fraction"].as_f64().unwrap()
            < found["schemes"]["traditional"]["overhead_fraction"].as_f64().unwrap()
    );
    let svg = std::fs::read_to_string(dir.path().join("overhead.svg")).unwrap();
    assert!(svg.contains("lossy") && svg.contains("simulated"));
    assert_eq!(std::fs::read_to_string(plot).unwrap(), svg);
    assert_eq!(model("decide --plot mine.png", "three-levels.toml").status.code(), Some(2));
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

/// Runs `recoup model system` on a description; returns the exit code, stdout and stderr.
fn system(arguments: &str, description: &str) -> (Option<i32>, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine.toml");
    std::fs::write(&file, description).unwrap();
    let output = model(&format!("system --trials 2 {arguments}"), file.to_str().unwrap());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn template() -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_recoup")).args(["model", "system", "--template"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// As computed once by another program, within half a point; 84.9 % are published for the last.
#[test]
fn the_template_is_the_published_machine() {
    let (code, stdout, stderr) = system("--gpus-per-cpu 8,16 --gpu-failures 0.1,1 --json", &template());
    assert_eq!(code, Some(0), "{stderr}");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    let machine = |index: usize| found["machines"][index]["efficiency"].as_f64().unwrap();
    let expected = [0.909, 0.868, 0.901, 0.843];
    for (index, expected) in expected.into_iter().enumerate() {
        assert!((machine(index) - expected).abs() < 0.005, "{index}: {} {expected}", machine(index));
    }
    assert_eq!(found["machines"][3]["tiers"].as_array().unwrap().len(), 3);
}

#[test]
fn a_share_that_drains_is_told_from_one_that_programs_wait_for() {
    let draining = template().replace("# waited_share = 0.05 ", "waited_share = 0.05 ");
    let (code, stdout, stderr) = system("--json", &draining);
    assert_eq!(code, Some(0), "{stderr}");
    let found: Value = serde_json::from_str(&stdout).unwrap();
    let tier = &found["machines"][0]["tiers"][0];
    let of = |key: &str| tier[key].as_f64().unwrap();
    // 16 GPUs of 32 GB at the 64 GB/s of their CPU: 8 s, of which programs wait for a twentieth.
    for (key, expected) in [("checkpoint_s", 0.4), ("drain_s", 7.6), ("recovery_s", 8.0)] {
        assert!((of(key) - expected).abs() < 1e-9, "{key}: {tier}");
    }
}

#[test]
fn errors_of_a_system_name_line_key_and_what_is_expected() {
    let cases = [
        ("nodes = 14400", "nodes = 0", "line 9: machine.nodes is 0: expected a number above 0"),
        (
            "# waited_share = 0.05 ",
            "waited_share = 1.5 ",
            "line 20: tier \"host memory\": waited_share is 1.5: expected",
        ),
        (
            "{ node = 2.15e9 }",
            "{}",
            "line 25: tier \"local disk\": bytes_per_second states no rate: expected one of gpu",
        ),
        ("node = 1.444e-10", "node = -1.0", "line 26: tier \"local disk\": failures_per_second is -1: expected a rate"),
        ("nodes = 14400", "nodes = \"many\"", "line 9"),
        ("nodes = 14400", "knots = 14400", "expected one of `nodes`"),
    ];
    for (written, wrong, expected) in cases {
        let description = template().replacen(written, wrong, 1);
        assert_ne!(description, template(), "{written}");
        let (code, _, stderr) = system("", &description);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
    let (code, _, stderr) = system(
        "",
        "name = \"none\"\ntier = []\n[machine]\nnodes = 1\ncpus_per_node = 1\n\
                                        gpus_per_cpu = 1\nsaved_bytes_per_gpu = 1\n",
    );
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("line 2: no [[tier]] is described: expected at least one"), "{stderr}");
}
