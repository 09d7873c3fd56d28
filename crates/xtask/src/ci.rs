//! Everything a change must pass, in the order in which it fails fastest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{cargo, header, seeds, succeed, tidy};

/// Features that compile a large foreign library.
const LONG_FEATURES: [&str; 2] = ["lmdb", "sz3"];

/// Seeds of a check, of 16 crashes each, beyond those of the simulator's own tests.
const SEEDS: u64 = 1250;
const SEEDS_FROM: u64 = 1000;

/// The share of the checks that a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckExtent {
    /// The road and the main doors: what each change passes at a desk, within minutes.
    Everyday,
    /// All of it.
    Whole,
    /// Also the features that compile a large foreign library.
    Long,
}

/// A step, and the smallest extent that takes it.
struct CheckStep {
    name: &'static str,
    from: CheckExtent,
    run: fn(&Path, CheckExtent) -> Result<()>,
}

const STEPS: [CheckStep; 16] = [
    everyday("format", |root, _| succeed(cargo(root).args(["fmt", "--all", "--check"]))),
    everyday("tidy", |root, _| tidy::run(root)),
    everyday("C header", |root, _| header::check(root)),
    everyday("lock file of the fuzz targets", fuzz_lock),
    everyday("mistakes for the seeds", |root, _| seeds::check_mistakes(root)),
    everyday("clippy", clippy),
    everyday("unit, integration and documentation tests", tests),
    rest("device tests", device_tests),
    rest("the double of the driver", double),
    rest("documentation", documentation),
    rest("Python package", python),
    rest("examples", examples),
    rest("programs on disks that fail", disks_that_fail),
    rest("crashes by seeds", crashes_by_seeds),
    rest("features", features),
    rest("licences, oldest compiler", licences_and_oldest_compiler),
];

const fn everyday(name: &'static str, run: fn(&Path, CheckExtent) -> Result<()>) -> CheckStep {
    CheckStep { name, from: CheckExtent::Everyday, run }
}

const fn rest(name: &'static str, run: fn(&Path, CheckExtent) -> Result<()>) -> CheckStep {
    CheckStep { name, from: CheckExtent::Whole, run }
}

/// The packages of the everyday tests: the road, what stands on it, and the main doors.
const EVERYDAY: [&str; 14] = [
    "recoup-core",
    "recoup-comm",
    "recoup-pipeline",
    "recoup-cache",
    "recoup",
    "recoup-testkit",
    "recoup-solvers",
    "recoup-compress",
    "recoup-model",
    "recoup-io",
    "recoup-tests",
    "recoup-cli",
    "recoup-capi",
    "recoup-seed",
];

/// Targets of those packages that the everyday tests leave out: the double of a device, the pages,
/// and jobs of MPI.
const LEFT_TARGETS: [&str; 6] = ["cuda", "device", "documents", "double", "losses", "mpi"];

/// Names of tests that the everyday tests leave out: they need the double of a device, libraries
/// and compilers of `scripts/bootstrap.sh test-all`, install what they try, or are of other
/// families.
const LEFT_TESTS: [&str; 10] = [
    "device::",
    "on_a_device",
    "json::",
    "annotate::",
    "adapters::",
    "petsc",
    "package::",
    "tutorials::",
    "install::",
    "tape::",
];

/// Tests that took half of the time of all everyday tests: sweeps, next to which shorter ones stay.
const LONG_TESTS: [&str; 18] = [
    "bounded::versions_are_bounded_through_restarts_kills_and_tiers",
    "calls::valgrind_finds_nothing",
    "chains::a_directory_of_chains_survives_a_crash_at_every_operation",
    "deflation::a_deflated_restart_costs_next_to_nothing_where_a_plain_one_costs_a_tenth",
    "deflation::auto_saves_more_than_the_iterate_from_the_middle_of_a_solve_on_where_storage_is_slow",
    "increments::every_version_of_a_sparse_writer_comes_back_bit_for_bit",
    "increments::increments_survive_a_store_that_fails_at_any_operation",
    "kills::twenty_kills_while_frozen_vectors_drain_lose_nothing",
    "one_rank::a_directory_that_fails_one_rank_fails_all_ranks_alike",
    "one_rank::tiers_that_fail_one_rank_fail_all_ranks_alike",
    "qb_bounds::bytes_depend_neither_on_threads_nor_on_vector_instructions",
    "report::pages_fit_phones_and_screens_and_their_text_can_be_read",
    "results::the_last_version_of_a_converged_run_holds_its_solution_for_every_method_and_scheme",
    "simulate::policy::tests::auto_is_near_the_best_fixed_choice_in_twelve_scenarios",
    "simulate::policy::tests::choosing_the_bounds_costs_next_to_nothing",
    "staging::frozen_vectors_end_in_the_files_the_log_and_the_solution_of_copied_ones",
    "symmetric::jacobi_comes_back_on_matrix_and_stencil",
    "symmetric::jacobi_takes_the_iterations_the_spectrum_says",
];

/// Takes the steps of an extent, or those from the one that is named on.
pub(crate) fn run(root: &Path, extent: CheckExtent, first: Option<&str>) -> Result<()> {
    let mut rows = Vec::new();
    let all: Vec<&CheckStep> = STEPS.iter().filter(|step| step.from <= extent).collect();
    let names = || all.iter().map(|step| step.name).collect::<Vec<_>>().join(", ");
    let begin = first.map_or(Some(0), |first| all.iter().position(|step| step.name == first));
    let begin = begin.with_context(|| format!("no step has this name; the steps: {}", names()))?;
    for step in &all[begin..] {
        say(step.name);
        let begun = (SystemTime::now(), cpu_time());
        (step.run)(root, extent)?;
        let cpu = begun.1.zip(cpu_time()).map(|(before, after)| after.saturating_sub(before));
        rows.push((step.name, begun.0.elapsed().unwrap_or_default(), cpu.unwrap_or_default()));
    }
    println!("\n| step | minutes of processor time | minutes on the clock |\n|---|---|---|");
    let sum = |time: fn(&(&str, Duration, Duration)) -> Duration| rows.iter().map(time).sum::<Duration>();
    let total = ("all", sum(|row| row.1), sum(|row| row.2));
    for (name, clock, cpu) in rows.iter().chain([&total]) {
        println!("| {name} | {:.1} | {:.1} |", cpu.as_secs_f64() / 60.0, clock.as_secs_f64() / 60.0);
    }
    if extent == CheckExtent::Everyday {
        let left: Vec<&str> = STEPS.iter().filter(|step| step.from > extent).map(|step| step.name).collect();
        println!("\nleft to `make test-all`: {}; all tests of the other packages,", left.join(", "));
        println!("tests in {}, and tests whose names have {}", LEFT_TARGETS.join(", "), left_tests().join(", "));
    }
    Ok(())
}

/// Clippy of what the extent tests; of all, with their benchmarks and examples.
fn clippy(root: &Path, extent: CheckExtent) -> Result<()> {
    let mut clippy = cargo(root);
    clippy.args(["clippy", "--locked"]);
    match extent {
        CheckExtent::Everyday => clippy.args(selected(&EVERYDAY)).arg("--tests"),
        CheckExtent::Whole | CheckExtent::Long => clippy.args(["--workspace", "--all-targets"]),
    };
    succeed(clippy.args(["--", "-D", "warnings"]))
}

fn selected(packages: &[&str]) -> Vec<String> {
    packages.iter().map(|name| format!("--package={name}")).collect()
}

fn tests(root: &Path, extent: CheckExtent) -> Result<()> {
    if extent > CheckExtent::Everyday {
        return succeed(cargo(root).args(["test", "--locked", "--workspace"]));
    }
    let metadata = metadata(root)?;
    let mut test = cargo(root);
    test.args(["test", "--locked"]).args(selected(&EVERYDAY)).args(["--lib", "--bins"]);
    test.args(everyday_targets(&metadata)).arg("--");
    succeed(test.args(left_tests().iter().flat_map(|name| ["--skip", name])))?;
    // Of all these packages, as the tests above: of fewer, libraries would be built again.
    succeed(cargo(root).args(["test", "--locked", "--doc"]).args(selected(&EVERYDAY)))
}

/// Names of the tests that the everyday tests leave out.
fn left_tests() -> Vec<&'static str> {
    [&LEFT_TESTS[..], &LONG_TESTS].concat()
}

/// The integration tests of the everyday packages, as cargo's options, without those that need a
/// feature.
fn everyday_targets(metadata: &Value) -> BTreeSet<String> {
    let own = packages(metadata).filter(|own| EVERYDAY.iter().any(|name| own["name"] == *name));
    let targets = own.flat_map(|own| own["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| listed(&target["kind"]) == ["test"]);
    let free = tests.filter(|target| listed(&target["required-features"]).is_empty());
    let names = free.filter_map(|target| target["name"].as_str()).filter(|name| !LEFT_TARGETS.contains(name));
    names.map(|name| format!("--test={name}")).collect()
}

/// Returns whether a package has a target of a kind.
fn has_target(metadata: &Value, package: &str, kind: &str) -> bool {
    let own = packages(metadata).find(|own| own["name"] == package);
    let targets = own.into_iter().flat_map(|own| own["targets"].as_array().into_iter().flatten());
    targets.flat_map(|target| listed(&target["kind"])).any(|found| found == kind)
}

fn disks_that_fail(root: &Path, _: CheckExtent) -> Result<()> {
    if cfg!(target_os = "linux") {
        return succeed(Command::new(std::env::current_exe()?).args(["faults", "--short"]).current_dir(root));
    }
    Ok(())
}

/// Sweeps seeds with the program that the tests of the workspace have built.
fn crashes_by_seeds(root: &Path, _: CheckExtent) -> Result<()> {
    if cfg!(not(all(target_os = "linux", target_arch = "x86_64"))) {
        println!("SKIPPED: the simulator is for Linux on x86-64");
        return Ok(());
    }
    let metadata = metadata(root)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    let cores = std::thread::available_parallelism()?;
    let range = [format!("--from={SEEDS_FROM}"), format!("--count={SEEDS}"), format!("--jobs={cores}")];
    succeed(Command::new(Path::new(target).join("debug/recoup-seed")).args(range).arg("--places"))
}

/// Counts the device tests of the workspace, which ran on the double of the driver or in its
/// interpreter. None of them skips itself.
fn device_tests(root: &Path, _: CheckExtent) -> Result<()> {
    let all = listed_tests(root, &[])?;
    let long = listed_tests(root, &["--ignored"])?;
    anyhow::ensure!(all > long, "no device test runs");
    println!("on the double: {}, none skipped; {long} long ones are left to make soak", all - long);
    Ok(())
}

/// Number of the device tests that `choice` selects; built as for the tests of the workspace.
fn listed_tests(root: &Path, choice: &[&str]) -> Result<usize> {
    let binaries = ["cuda", "device", "double"].map(|name| ["--test", name]);
    let mut list = cargo(root);
    list.args(["test", "--quiet", "--locked", "--workspace"]).args(binaries.as_flattened());
    let output = list.args(["--", "--list", "--format", "terse"]).args(choice).stderr(Stdio::inherit()).output()?;
    anyhow::ensure!(output.status.success(), "the device tests cannot be listed");
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.ends_with(": test")).count())
}

fn say(what: &str) {
    println!("\n== {what}");
}

/// CPU time of the steps so far, of all their processes; `None` where there is no /proc.
fn cpu_time() -> Option<Duration> {
    /// Ticks of the clock of these times: `getconf CLK_TCK`, the same on all of Linux.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold spaces. The times of ended children are fields 16 and 17,
    // the name is field 2.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: Vec<u64> = fields.split(' ').skip(13).take(2).map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 2).then(|| Duration::from_millis(ticks.iter().sum::<u64>() * 1000 / TICKS_PER_SECOND))
}

/// Documents all but the program, then the program: the library has its name, and at once they
/// would write the same files.
fn documentation(root: &Path, _: CheckExtent) -> Result<()> {
    for selected in ["--workspace", "--bin=recoup"] {
        let doc = ["doc", "--locked", "--no-deps", "--document-private-items", selected];
        succeed(cargo(root).args(doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// The fuzz targets are a workspace of their own, which nothing here builds: their lock file must
/// still fit ours.
fn fuzz_lock(root: &Path, _: CheckExtent) -> Result<()> {
    let resolve = ["metadata", "--locked", "--format-version", "1", "--manifest-path", "crates/fuzz/Cargo.toml"];
    succeed(cargo(root).args(resolve).stdout(Stdio::null()))
}

/// The double of the driver is a workspace of its own: its format, its lints and its tests, among
/// them whole programs that find it.
fn double(root: &Path, _: CheckExtent) -> Result<()> {
    let manifest = ["--manifest-path", "crates/cuda/double/driver/Cargo.toml"];
    succeed(cargo(root).arg("fmt").args(manifest).arg("--check"))?;
    let target = ["--locked", "--target-dir", "target/cuda-double"];
    let lints = ["--all-targets", "--", "-D", "warnings"];
    succeed(cargo(root).arg("clippy").args(manifest).args(target).args(lints))?;
    succeed(cargo(root).arg("test").args(manifest).args(target))
}

/// Installs the Python package as users do, but with the profile all else is built with, and runs
/// its tests.
fn python(root: &Path, _: CheckExtent) -> Result<()> {
    let Some(python) = std::env::var_os("RECOUP_PYTHON") else {
        println!("SKIPPED: `scripts/bootstrap.sh test-all` makes the environment it needs");
        return Ok(());
    };
    let metadata = metadata(root)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    // The program of the workspace's tests: the wheel has it among its scripts, and the package's
    // tests run it.
    let program = Path::new(target).join("debug").join("recoup");
    let package = ["-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--force-reinstall", "."];
    let mut install = Command::new(&python);
    install.args(package).env("MATURIN_PEP517_ARGS", "--profile dev").env("RECOUP_PROGRAM", &program);
    // Of what the tests above were built of.
    install.env("CARGO", root.join("packaging/wheel/cargo-of-workspace"));
    succeed(install.current_dir(root))?;
    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    succeed(Command::new(&python).args(tests).env("RECOUP_PROGRAM", program).current_dir(root))
}

/// Runs every example to its end; each is small enough for that and fails when it does not
/// converge. They are built with the whole workspace, as its tests are: alone each would be built
/// again with other features of its dependencies.
fn examples(root: &Path, _: CheckExtent) -> Result<()> {
    succeed(cargo(root).args(["build", "--quiet", "--locked", "--workspace", "--examples"]))?;
    let metadata = metadata(root)?;
    let target = metadata["target_directory"].as_str().context("no target directory")?;
    for example in example_names(&metadata) {
        say(&format!("example {example}"));
        succeed(Command::new(Path::new(target).join("debug/examples").join(example)).current_dir(root))?;
    }
    Ok(())
}

/// Checks each crate without its default features, and with each feature alone. Then the tests run
/// that exist only with features which the tests of the workspace lack: those of all features at
/// once, built as the workspace is, and the unit tests of the crate whose code has the feature.
fn features(root: &Path, extent: CheckExtent) -> Result<()> {
    say("no default features");
    succeed(cargo(root).args(["check", "--quiet", "--locked", "--workspace", "--no-default-features"]))?;
    let metadata = metadata(root)?;
    let mut on = Vec::new();
    let mut targets = BTreeSet::new();
    let mut units = Vec::new();
    for (feature, packages) in feature_owners(&metadata) {
        if extent < CheckExtent::Long && LONG_FEATURES.contains(&feature.as_str()) {
            println!("feature {feature}: SKIPPED, run `cargo xtask ci --long`");
            continue;
        }
        for package in packages.iter().filter(|package| !is_whole_default(&metadata, package, &feature)) {
            say(&format!("feature {feature} of {package} alone"));
            let alone = ["--quiet", "--locked", "--package", package, "--no-default-features", "--features", &feature];
            succeed(cargo(root).arg("check").args(alone))?;
        }
        for package in packages.iter().filter(|package| !is_on(&metadata, package, &feature)) {
            let tests = tests_with(&metadata, package, &feature);
            if !tests.is_empty() {
                on.push(format!("{package}/{feature}"));
                targets.extend(tests);
            }
            if !hands_on(&metadata, package, &feature)
                && library_has(&metadata, package, &format!("feature = \"{feature}\""))
            {
                units.push((package.clone(), feature.clone()));
            }
        }
    }
    say("tests that exist only with a feature");
    let with_all = ["test", "--quiet", "--locked", "--workspace", "--features", &on.join(",")];
    succeed(cargo(root).args(with_all).args(targets))?;
    for (package, feature) in units {
        let with_one = ["test", "--quiet", "--locked", "--package", &package, "--features", &feature, "--lib"];
        succeed(cargo(root).args(with_one))?;
    }
    Ok(())
}

/// Checks the licences where cargo-deny is installed, and all with the oldest supported compiler
/// where rustup has it.
fn licences_and_oldest_compiler(root: &Path, _: CheckExtent) -> Result<()> {
    match is_there(Command::new("cargo-deny").arg("--version")) {
        true => succeed(cargo(root).args(["deny", "--locked", "check", "licenses", "bans", "sources"]))?,
        false => println!("licences and sources: SKIPPED, cargo-deny is not installed"),
    }
    let metadata = metadata(root)?;
    let oldest = rust_version(&metadata).context("no rust-version in the workspace")?;
    if is_there(Command::new("rustup").args(["run", oldest, "cargo", "--version"])) {
        say(&format!("oldest supported compiler, {oldest}"));
        let check = ["run", oldest, "cargo", "check", "--locked", "--workspace", "--target-dir", "target/oldest"];
        return succeed(Command::new("rustup").args(check).current_dir(root));
    }
    println!("oldest supported compiler: SKIPPED, `rustup toolchain install {oldest}` adds it");
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

/// The integration tests of a package that need a feature, as cargo's options.
fn tests_with(metadata: &Value, package: &str, feature: &str) -> Vec<String> {
    let own = packages(metadata).find(|other| other["name"] == package);
    let targets = own.into_iter().flat_map(|own| own["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| listed(&target["kind"]) == ["test"]);
    let needing = tests.filter(|target| listed(&target["required-features"]).iter().any(|name| name == feature));
    needing.filter_map(|target| Some(format!("--test={}", target["name"].as_str()?))).collect()
}

/// Returns whether the sources of a library have a text.
fn library_has(metadata: &Value, package: &str, text: &str) -> bool {
    let own = packages(metadata).find(|other| other["name"] == package);
    let manifest = own.and_then(|own| own["manifest_path"].as_str()).unwrap_or_default();
    let mut find = Command::new("grep");
    find.args(["-rqF", text]).arg(Path::new(manifest).with_file_name("src"));
    has_target(metadata, package, "lib") && is_there(&mut find)
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
            {"name": "engine", "features": {"default": ["fast"], "fast": ["dep:simd"], "zfp": ["dep:zfp"], "gpu": []},
             "targets": [
                {"name": "engine", "kind": ["lib"]}, {"name": "codecs", "kind": ["test"], "required-features": ["zfp"]},
                {"name": "device", "kind": ["test"], "required-features": ["gpu"]}, {"name": "other", "kind": ["test"]}]},
            {"name": "program", "features": {"default": ["gpu"], "gpu": ["engine?/gpu"], "zfp": ["engine/zfp"]},
             "targets": [
                {"name": "program", "kind": ["bin"]}, {"name": "runs", "kind": ["test"], "required-features": ["zfp"]},
                {"name": "double", "kind": ["test"], "required-features": ["gpu"]}]},
            {"name": "facade", "features": {"zfp": ["engine/zfp"]}, "targets": [{"name": "facade", "kind": ["lib"]}]},
        ]})
    }

    #[test]
    fn features_are_tested_where_the_workspace_does_not() {
        let metadata = handed_on();
        assert_eq!(tests_with(&metadata, "engine", "zfp"), ["--test=codecs"]);
        assert_eq!(tests_with(&metadata, "program", "zfp"), ["--test=runs"]);
        assert!(
            tests_with(&metadata, "engine", "fast").is_empty() && tests_with(&metadata, "facade", "zfp").is_empty()
        );
        assert!(hands_on(&metadata, "program", "zfp") && !hands_on(&metadata, "engine", "zfp"));
        // In the default set of the program, which hands it on.
        assert!(is_on(&metadata, "engine", "gpu") && is_on(&metadata, "program", "gpu"));
        assert!(!is_on(&metadata, "engine", "zfp") && !is_on(&metadata, "program", "zfp"));
    }

    #[test]
    fn a_feature_that_is_all_of_a_default_set_needs_nothing_of_its_own() {
        let metadata = handed_on();
        let is_whole = |package, feature| is_whole_default(&metadata, package, feature);
        assert!(is_whole("engine", "fast") && is_whole("program", "gpu"));
        assert!(!is_whole("engine", "gpu") && !is_whole("engine", "zfp") && !is_whole("facade", "zfp"));
    }

    #[test]
    fn the_workspace_tests_devices_and_leaves_foreign_codecs_out() {
        let metadata = metadata(&crate::root()).unwrap();
        let owners = feature_owners(&metadata);
        let apart = |feature: &str| -> Vec<&String> {
            owners[feature].iter().filter(|package| !is_on(&metadata, package, feature)).collect()
        };
        assert!(apart("cuda").is_empty(), "{:?}", apart("cuda"));
        let tested = apart("zfp-c").into_iter().filter(|package| !tests_with(&metadata, package, "zfp-c").is_empty());
        assert_eq!(tested.collect::<Vec<_>>(), ["recoup-compress"]);
    }

    #[test]
    fn everyday_packages_and_the_targets_they_leave_out_exist() {
        let metadata = metadata(&crate::root()).unwrap();
        let names: Vec<&str> = packages(&metadata).filter_map(|own| own["name"].as_str()).collect();
        assert!(EVERYDAY.iter().all(|name| names.contains(name)), "{names:?}");
        let targets = everyday_targets(&metadata);
        for name in ["main", "allocation", "questions", "programs"] {
            assert!(targets.contains(&format!("--test={name}")), "{targets:?}");
        }
        assert!(!targets.contains("--test=mpi") && !targets.contains("--test=documents"), "{targets:?}");
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
