//! Everything a change must pass, in the order in which it fails fastest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::SystemTime;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{cargo, header, succeed, tidy};

/// Features that compile a large foreign library.
const LONG_FEATURES: [&str; 2] = ["lmdb", "sz3"];

pub(crate) fn run(root: &Path, long: bool) -> Result<()> {
    step("format");
    succeed(cargo(root).args(["fmt", "--all", "--check"]))?;
    step("tidy");
    tidy::run(root)?;
    step("C header");
    header::check(root)?;
    fuzz_lock(root)?;
    step("clippy");
    succeed(cargo(root).args(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    step("documentation");
    documentation(root)?;
    double(root)?;
    step("unit, integration and documentation tests");
    succeed(cargo(root).args(["test", "--locked", "--workspace"]))?;
    let device_tests = device_tests(root)?;
    python(root)?;
    examples(root)?;
    if cfg!(target_os = "linux") {
        step("programs on disks that fail");
        succeed(Command::new(std::env::current_exe()?).args(["faults", "--short"]).current_dir(root))?;
    }
    features(root, long)?;
    licences(root)?;
    oldest_compiler(root)?;
    let DeviceTests { run, long } = device_tests;
    println!("\ndevice tests on the double: {run}, none skipped; {long} long ones are left to make soak");
    Ok(())
}

/// Tests that run on the double of the driver.
struct DeviceTests {
    run: usize,
    /// Tests left to `make soak`.
    long: usize,
}

/// Counts the device tests of the workspace. None of them skips itself.
fn device_tests(root: &Path) -> Result<DeviceTests> {
    let all = listed_tests(root, &[])?;
    let long = listed_tests(root, &["--ignored"])?;
    anyhow::ensure!(all > long, "no device test runs");
    Ok(DeviceTests { run: all - long, long })
}

/// Number of the device tests that `choice` selects; built as for the tests of the workspace.
fn listed_tests(root: &Path, choice: &[&str]) -> Result<usize> {
    let binaries = ["cuda", "device", "device_runs", "double"].map(|name| ["--test", name]);
    let mut list = cargo(root);
    list.args(["test", "--quiet", "--locked", "--workspace"]).args(binaries.as_flattened());
    let output = list.args(["--", "--list", "--format", "terse"]).args(choice).stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(output.status.success(), "the device tests cannot be listed");
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.ends_with(": test")).count())
}

/// Names what comes, and says how long all before has taken, on the clock and of the processors.
fn step(name: &str) {
    static BEGUN: OnceLock<SystemTime> = OnceLock::new();
    let seconds = BEGUN.get_or_init(SystemTime::now).elapsed().map_or(0, |elapsed| elapsed.as_secs());
    let minutes = |seconds: u64| format!("{} min {:02} s", seconds / 60, seconds % 60);
    let cpu = cpu_seconds().map_or_else(String::new, |cpu| format!(", {} of CPU", minutes(cpu)));
    println!("\n== {name} (after {}{cpu})", minutes(seconds));
}

/// CPU time of the steps so far, of all their processes; `None` where there is no /proc.
fn cpu_seconds() -> Option<u64> {
    /// Ticks of the clock of these times: `getconf CLK_TCK`, the same on all of Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold spaces. The times of ended children are fields 16 and 17,
    // the name is field 2.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: Vec<u64> = fields.split(' ').skip(13).take(2).map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 2).then(|| ticks.iter().sum::<u64>() / TICKS_PER_SECOND)
}

/// Documents all but the program, then the program: the library has its name, and at once they
/// would write the same files.
fn documentation(root: &Path) -> Result<()> {
    for selected in ["--workspace", "--bin=recoup"] {
        let doc = ["doc", "--locked", "--no-deps", "--document-private-items", selected];
        succeed(cargo(root).args(doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// The fuzz targets are a workspace of their own, which nothing here builds: their lock file must
/// still fit ours.
fn fuzz_lock(root: &Path) -> Result<()> {
    step("lock file of the fuzz targets");
    let resolve = ["metadata", "--locked", "--format-version", "1", "--manifest-path", "crates/fuzz/Cargo.toml"];
    succeed(cargo(root).args(resolve).stdout(Stdio::null()))
}

/// The double of the driver is a workspace of its own: its format, its lints and its tests, among
/// them whole programs that find it.
fn double(root: &Path) -> Result<()> {
    step("the double of the driver");
    let manifest = ["--manifest-path", "crates/cuda/double/driver/Cargo.toml"];
    succeed(cargo(root).arg("fmt").args(manifest).arg("--check"))?;
    let target = ["--locked", "--target-dir", "target/cuda-double"];
    let lints = ["--all-targets", "--", "-D", "warnings"];
    succeed(cargo(root).arg("clippy").args(manifest).args(target).args(lints))?;
    succeed(cargo(root).arg("test").args(manifest).args(target))
}

/// Installs the Python package as users do, but with the profile all else is built with, and runs
/// its tests.
fn python(root: &Path) -> Result<()> {
    let Some(python) = std::env::var_os("RECOUP_PYTHON") else {
        step("Python package: SKIPPED, `scripts/bootstrap.sh test` makes the environment it needs");
        return Ok(());
    };
    step("Python package");
    let metadata = metadata(root)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    // The program of the workspace's tests: the wheel has it among its scripts, and the package's
    // tests run it.
    let program = Path::new(target).join("debug").join("recoup");
    let package = ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--force-reinstall", "."];
    let mut install = Command::new(&python);
    install.args(package).env("MATURIN_PEP517_ARGS", "--profile dev").env("RECOUP_PROGRAM", &program);
    succeed(install.current_dir(root))?;
    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    succeed(Command::new(&python).args(tests).env("RECOUP_PROGRAM", program).current_dir(root))
}

/// Runs every example to its end; each is small enough for that and fails when it does not
/// converge. They are built with the whole workspace, as its tests are: alone each would be built
/// again with other features of its dependencies.
fn examples(root: &Path) -> Result<()> {
    step("examples");
    succeed(cargo(root).args(["build", "--quiet", "--locked", "--workspace", "--examples"]))?;
    let metadata = metadata(root)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    for example in example_names(&metadata) {
        step(&format!("example {example}"));
        succeed(Command::new(Path::new(target).join("debug/examples").join(example)).current_dir(root))?;
    }
    Ok(())
}

/// Checks each crate without its default features, and with each feature alone. Of features that
/// the workspace's tests do not have, the tests are run that need them. Those of a program that
/// hands the feature on are built with the whole workspace: alone, all it is made of would be built
/// again with other features.
fn features(root: &Path, long: bool) -> Result<()> {
    step("no default features");
    succeed(cargo(root).args(["check", "--quiet", "--locked", "--workspace", "--no-default-features"]))?;
    let metadata = metadata(root)?;
    for (feature, packages) in feature_owners(&metadata) {
        if !long && LONG_FEATURES.contains(&feature.as_str()) {
            step(&format!("feature {feature}: SKIPPED, run `cargo xtask ci --long`"));
            continue;
        }
        let tests = |package: &String| tests_of(&metadata, package, &feature);
        let is_apart = |package: &String| !hands_on(&metadata, package, &feature);
        for package in packages.iter().filter(|package| !is_whole_default(&metadata, package, &feature)) {
            step(&format!("feature {feature} of {package} alone"));
            let alone = ["--quiet", "--locked", "--package", package, "--no-default-features", "--features", &feature];
            match tests(package).filter(|_| is_apart(package)) {
                Some(tests) => succeed(cargo(root).arg("test").args(alone).args(tests))?,
                None => succeed(cargo(root).args(["check", "--all-targets"]).args(alone))?,
            }
        }
        let together: Vec<&String> = packages.iter().filter(|package| !is_apart(package)).collect();
        let selected: Vec<String> = together.iter().filter_map(|package| tests(package)).flatten().collect();
        if !selected.is_empty() {
            step(&format!("feature {feature}, tests of the packages that hand it on"));
            let on: Vec<String> = together.iter().map(|package| format!("{package}/{feature}")).collect();
            let with_all = ["test", "--quiet", "--locked", "--workspace", "--features", &on.join(",")];
            succeed(cargo(root).args(with_all).args(selected))?;
        }
    }
    Ok(())
}

fn licences(root: &Path) -> Result<()> {
    if is_there(Command::new("cargo-deny").arg("--version")) {
        step("licences and sources");
        return succeed(cargo(root).args(["deny", "--locked", "check", "licenses", "bans", "sources"]));
    }
    step("licences and sources: SKIPPED, cargo-deny is not installed");
    Ok(())
}

/// Checks with the oldest supported compiler where rustup has it.
fn oldest_compiler(root: &Path) -> Result<()> {
    let metadata = metadata(root)?;
    let oldest = rust_version(&metadata).context("no rust-version in the workspace")?;
    if is_there(Command::new("rustup").args(["run", oldest, "cargo", "--version"])) {
        step(&format!("oldest supported compiler, {oldest}"));
        let check = ["run", oldest, "cargo", "check", "--locked", "--workspace", "--target-dir", "target/oldest"];
        return succeed(Command::new("rustup").args(check).current_dir(root));
    }
    step(&format!("oldest supported compiler: SKIPPED, `rustup toolchain install {oldest}` adds it"));
    Ok(())
}

fn is_there(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The packages of the workspace, as cargo describes them.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let output = cargo(root).args(["metadata", "--locked", "--no-deps", "--format-version", "1"]).output()?;
    serde_json::from_slice(&output.stdout).context("cargo metadata")
}

fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

fn rust_version(metadata: &Value) -> Option<&str> {
    packages(metadata).find_map(|package| package["rust_version"].as_str())
}

/// Names of the workspace's examples.
fn example_names(metadata: &Value) -> Vec<String> {
    let targets = packages(metadata).flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let is_example = |target: &&Value| target["kind"].as_array().is_some_and(|kinds| kinds.contains(&"example".into()));
    targets.filter(is_example).filter_map(|target| target["name"].as_str().map(str::to_owned)).collect()
}

/// Every feature but the default set, and the packages that have it.
fn feature_owners(metadata: &Value) -> BTreeMap<String, Vec<String>> {
    let mut owners = BTreeMap::<String, Vec<String>>::new();
    for package in packages(metadata) {
        let name = package["name"].as_str().unwrap_or_default();
        for feature in package["features"].as_object().into_iter().flat_map(|features| features.keys()) {
            if feature != "default" {
                owners.entry(feature.clone()).or_default().push(name.to_owned());
            }
        }
    }
    owners
}

/// Returns whether a feature of a package does nothing but switch on features of others.
fn hands_on(metadata: &Value, package: &str, feature: &str) -> bool {
    let own = packages(metadata).find(|other| other["name"] == package);
    own.is_some_and(|own| listed(&own["features"][feature]).iter().all(|name| name.contains('/')))
}

/// Returns the texts of a list.
fn listed(value: &Value) -> Vec<String> {
    let names = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.map(str::to_owned).collect()
}

/// Returns whether a feature is all of its package's default set: then the package is built with it
/// alone wherever it is built by itself, and tested so with the workspace.
fn is_whole_default(metadata: &Value, package: &str, feature: &str) -> bool {
    let own = packages(metadata).find(|other| other["name"] == package);
    own.is_some_and(|own| listed(&own["features"]["default"]) == [feature])
}

/// Returns whether the tests of the workspace have a feature of a package: it is in a default set,
/// or a feature that is switches it on.
fn is_on(metadata: &Value, package: &str, feature: &str) -> bool {
    let mut waiting: Vec<[String; 2]> = Vec::new();
    for own in packages(metadata) {
        let name = own["name"].as_str().unwrap_or_default();
        waiting.push([name.to_owned(), "default".to_owned()]);
        for dependency in own["dependencies"].as_array().into_iter().flatten() {
            let used = dependency["name"].as_str().unwrap_or_default();
            waiting.extend(listed(&dependency["features"]).into_iter().map(|feature| [used.to_owned(), feature]));
        }
    }
    let mut seen = BTreeSet::new();
    while let Some([owner, name]) = waiting.pop() {
        let own = packages(metadata).find(|other| other["name"] == owner.as_str());
        for other in own.map(|own| listed(&own["features"][&name])).unwrap_or_default() {
            waiting.push(match other.split_once('/') {
                Some((dependency, feature)) => [dependency.trim_end_matches('?').to_owned(), feature.to_owned()],
                None => [owner.clone(), other],
            });
        }
        waiting.retain(|found| !seen.contains(found));
        seen.insert([owner, name]);
    }
    seen.contains(&[package.to_owned(), feature.to_owned()])
}

/// Returns the targets of a package to test with a feature, as cargo's options; `None` where
/// checking is enough: all that it adds is tested with the workspace, or with another package that
/// has it.
fn tests_of(metadata: &Value, package: &str, feature: &str) -> Option<Vec<String>> {
    if is_on(metadata, package, feature) {
        return None;
    }
    let own = packages(metadata).find(|other| other["name"] == package)?;
    let targets = own["targets"].as_array()?;
    let needs = |target: &&Value| listed(&target["required-features"]).iter().any(|name| name == feature);
    let named = targets.iter().filter(needs).filter(|target| listed(&target["kind"]) == ["test"]);
    let mut tests: Vec<String> =
        named.filter_map(|target| Some(format!("--test={}", target["name"].as_str()?))).collect();
    if hands_on(metadata, package, feature) {
        // What its unit tests see is code of others, which is tested there.
        return (!tests.is_empty()).then_some(tests);
    }
    let has = |kind: &str| targets.iter().any(|target| listed(&target["kind"]).iter().any(|found| found == kind));
    let units = [("lib", "--lib"), ("bin", "--bins")];
    tests.extend(units.iter().filter(|(kind, _)| has(kind)).map(|(_, option)| (*option).to_owned()));
    Some(tests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sample() -> Value {
        json!({"packages": [
            {"name": "a", "rust_version": "1.89", "features": {"default": ["x"], "x": []}, "targets": [
                {"name": "cg", "kind": ["example"]}, {"name": "a", "kind": ["lib"]}]},
            {"name": "b", "features": {"x": [], "y": []}, "targets": []},
        ]})
    }

    #[test]
    fn each_feature_is_listed_with_its_owners() {
        let owners = feature_owners(&sample());
        assert_eq!(owners["x"], ["a", "b"]);
        assert_eq!(owners["y"], ["b"]);
        assert!(!owners.contains_key("default"));
    }

    /// A library with a feature in its default set and two that are not, and programs that hand
    /// them on.
    fn handed_on() -> Value {
        json!({"packages": [
            {"name": "engine", "features": {"default": ["fast"], "fast": ["dep:simd"], "mpi": ["dep:mpi"], "gpu": []},
             "targets": [
                {"name": "engine", "kind": ["lib"]}, {"name": "ranks", "kind": ["test"], "required-features": ["mpi"]},
                {"name": "device", "kind": ["test"], "required-features": ["gpu"]}, {"name": "other", "kind": ["test"]}]},
            {"name": "program", "features": {"default": ["gpu"], "gpu": ["engine?/gpu"], "mpi": ["engine/mpi"]},
             "targets": [
                {"name": "program", "kind": ["bin"]}, {"name": "jobs", "kind": ["test"], "required-features": ["mpi"]},
                {"name": "double", "kind": ["test"], "required-features": ["gpu"]}]},
            {"name": "facade", "features": {"mpi": ["engine/mpi"]}, "targets": [{"name": "facade", "kind": ["lib"]}]},
        ]})
    }

    #[test]
    fn features_are_tested_where_the_workspace_does_not() {
        let metadata = handed_on();
        let tests = |package, feature| tests_of(&metadata, package, feature);
        assert_eq!(tests("engine", "mpi").unwrap(), ["--test=ranks", "--lib"]);
        assert_eq!(tests("engine", "fast"), None);
        assert_eq!(tests("program", "mpi").unwrap(), ["--test=jobs"]);
        assert_eq!(tests("facade", "mpi"), None);
        // In the default set of the program, which hands it on.
        assert_eq!(tests("engine", "gpu"), None);
        assert_eq!(tests("program", "gpu"), None);
    }

    #[test]
    fn a_feature_that_is_all_of_a_default_set_needs_nothing_of_its_own() {
        let metadata = handed_on();
        let is_whole = |package, feature| is_whole_default(&metadata, package, feature);
        assert!(is_whole("engine", "fast") && is_whole("program", "gpu"));
        assert!(!is_whole("engine", "gpu") && !is_whole("engine", "mpi") && !is_whole("facade", "mpi"));
    }

    #[test]
    fn the_workspace_tests_devices_and_leaves_jobs_of_mpi_out() {
        let metadata = metadata(&crate::root()).unwrap();
        let owners = feature_owners(&metadata);
        let tested = |feature: &str| -> Vec<&String> {
            owners[feature].iter().filter(|package| tests_of(&metadata, package, feature).is_some()).collect()
        };
        assert!(tested("cuda").is_empty(), "{:?}", tested("cuda"));
        assert_eq!(tested("mpi"), ["recoup-comm", "recoup-cli"]);
    }

    #[test]
    fn only_examples_are_run() {
        assert_eq!(example_names(&sample()), ["cg"]);
        assert_eq!(rust_version(&sample()), Some("1.89"));
    }

    #[test]
    fn long_features_exist() {
        let owners = metadata(&crate::root()).map(|metadata| feature_owners(&metadata)).unwrap();
        assert!(LONG_FEATURES.iter().all(|feature| owners.contains_key(*feature)));
    }
}
