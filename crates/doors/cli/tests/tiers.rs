//! `--tiers`: memory that outlives the killed process, and the directory behind it.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::support;

const SOLVE: &str = "run --poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --memory-dir m --dir d";
const SAVED: &str = "run --poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --memory-dir m --dir d \
                     --tiers memory,pfs --scheme exact --interval 5it --sync";

/// The report of a run of [`SAVED`].
fn saved(more: &str, dir: &Path) -> Value {
    json(&recoup(&format!("{SAVED} {more} --json"), dir))
}

fn recoup(arguments: &str, dir: &Path) -> Output {
    std::fs::create_dir_all(dir.join("m")).unwrap();
    support::recoup(arguments, dir)
}

fn json(output: &Output) -> Value {
    assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The only node's memory of the only run.
fn node(dir: &Path) -> PathBuf {
    let only = |path: &Path| std::fs::read_dir(path).unwrap().next().unwrap().unwrap().path();
    only(&only(&only(&dir.join("m"))))
}

/// The file that holds the payloads of a version in memory: its largest.
fn payloads(version: &Path) -> PathBuf {
    let files = std::fs::read_dir(version).unwrap().map(|entry| entry.unwrap().path());
    files.max_by_key(|file| file.metadata().unwrap().len()).unwrap()
}

/// Flips bits of one byte of a file.
fn flip(file: &Path, position: usize, bits: u8) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[position] ^= bits;
    std::fs::write(file, bytes).unwrap();
}

/// Versions and where they are: (version, tiers).
fn inspect(dir: &Path) -> Vec<(u64, Vec<String>)> {
    let report = json(&recoup("inspect d --memory-dir m --json", dir));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let version = |v: &Value| {
        let tiers = v["tiers"].as_array().unwrap().iter().map(|place| text(&place["tier"])).collect();
        (v["version"].as_u64().unwrap(), tiers)
    };
    report["runs"][0]["versions"].as_array().unwrap().iter().map(version).collect()
}

#[test]
fn killed_runs_go_on_from_memory_and_leave_none_behind() {
    for (tiers, failures) in [("memory,pfs", "kill"), ("memory", "kill"), ("memory,pfs", "kill:node")] {
        let dir = tempfile::tempdir().unwrap();
        let more = format!(
            "--tiers {tiers} --pfs-every 3 --scheme exact --interval 5it --failures {failures} --mtti 0.02 --seed 5"
        );
        let output = recoup(&format!("{SOLVE} {more} --json"), dir.path());
        let run = json(&output);
        assert_eq!(run["converged"], true, "{tiers}, {failures}: {run}");
        assert_eq!(
            run["iterations"], run["baseline_iterations"],
            "an exact resume ends where the undisturbed run does"
        );
        let left: Vec<_> = std::fs::read_dir(dir.path().join("m")).unwrap().flatten().collect();
        assert!(left.iter().all(|user| std::fs::read_dir(user.path()).unwrap().next().is_none()), "{left:?}");
    }
}

#[test]
fn versions_lie_where_they_are_said_to_and_come_back_from_the_fastest_that_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let run = |more: &str| saved(&format!("--pfs-every 3 --keep 2 {more}"), dir.path());
    run("--no-save-last --max-iterations 27");
    let both = vec!["memory".to_owned(), "pfs".to_owned()];
    let [pfs, memory] = [1, 0].map(|one| vec![both[one].clone()]);
    // 5, 20 are the first and the fourth; memory keeps two.
    assert_eq!(inspect(dir.path()), [(5, pfs), (20, both.clone()), (25, memory)]);
    assert_eq!(run("--no-save-last --max-iterations 27")["resumed_from"], 25);
    // The node is lost, and with it what memory alone had.
    std::fs::remove_dir_all(node(dir.path())).unwrap();
    assert_eq!(run("--no-save-last --max-iterations 24")["resumed_from"], 20);
    let done = run("");
    assert_eq!(done["converged"], true);
    let verified = recoup("verify d", dir.path());
    assert_eq!(verified.status.code(), Some(0));
}

#[test]
fn a_flipped_bit_in_memory_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let run = || saved("--pfs-every 1 --no-save-last --max-iterations 12", dir.path());
    run();
    flip(&payloads(&node(dir.path()).join("rank-000000/v000000000010")), 100, 1);
    assert_eq!(run()["resumed_from"], 10, "the directory has the same version whole");
}

#[test]
fn tiers_that_one_rank_cannot_keep_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for (tiers, named) in [("memory,partner:ring1,pfs", "partner copies"), ("rs:4+1", "erasure set 4+1")] {
        let output = recoup(&format!("{SOLVE} --tiers {tiers} --failures kill --mtti 1"), dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(named), "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
    }
}

/// The directory is so slow that the first version is on its way there until the process is killed.
#[test]
fn killed_in_the_middle_of_a_drain_the_newest_is_in_memory_and_the_last_whole_one_in_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let run = |most: u64| saved(&format!("--pfs-every 1 --no-save-last --max-iterations {most}"), dir.path());
    run(12);
    let both = vec!["memory".to_owned(), "pfs".to_owned()];
    assert_eq!(inspect(dir.path()), [(5, both.clone()), (10, both.clone())]);
    // Three vectors of 64 KB that hardly shrink.
    let slow = "--tiers memory,pfs --pfs-every 1 --scheme exact --interval 5it --pfs-bandwidth 10e3 --no-save-last";
    let mut child = support::command(&format!("{SOLVE} {slow} --max-iterations 28"), dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let draft = dir.path().join("d/solve/draft-000000000015");
    let newest = node(dir.path()).join("rank-000000/v000000000025/commit");
    let looks = (0..600).find(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        draft.is_dir() && newest.is_file()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(looks.is_some(), "the solver continued to 25 while 15 was on its way");
    assert_eq!(run(27)["resumed_from"], 25);
    std::fs::remove_dir_all(node(dir.path())).unwrap();
    assert_eq!(run(14)["resumed_from"], 10);
    assert_eq!(recoup("verify d", dir.path()).status.code(), Some(0));
}

/// Everything that memory holds of any run.
fn in_memory(dir: &Path) -> Vec<PathBuf> {
    below(&dir.join("m")).into_iter().filter(|path| path.is_file()).collect()
}

/// The next start called the version in memory the solution, freed memory, and the directory had an
/// older one.
#[test]
fn killed_in_the_last_drain_the_solution_is_drained_by_the_next_start_before_memory_is_freed() {
    let dir = tempfile::tempdir().unwrap();
    let command = format!("{SOLVE} --tiers memory,pfs --pfs-every 1 --scheme lossless --interval 10it");
    let solved =
        json(&recoup("solve --poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --json", dir.path()));
    let last = solved["iterations"].as_u64().unwrap();
    // 10 is on its way to the directory for seconds.
    let mut child = support::command(&format!("{command} --pfs-bandwidth 10e3"), dir.path()).spawn().unwrap();
    let is_last = |path: &PathBuf| path.ends_with(format!("v{last:012}/commit"));
    let saved = (0..600).find(|_| {
        std::thread::sleep(Duration::from_millis(20));
        in_memory(dir.path()).iter().any(is_last)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(saved.is_some(), "the solution was in memory while an older version was on its way");
    assert!(inspect(dir.path()).contains(&(last, vec!["memory".to_owned()])));
    let again = json(&recoup(&format!("{command} --json"), dir.path()));
    assert_eq!((&again["iterations_executed"], &again["solution_version"]), (&Value::from(0), &Value::from(last)));
    assert_eq!(in_memory(dir.path()), Vec::<PathBuf>::new());
    assert_eq!(recoup("export d --solution --to x.npy", dir.path()).status.code(), Some(0));
    assert_eq!(recoup("verify d", dir.path()).status.code(), Some(0));
}

/// Starts a run that may write the iterate alone to a file in memory, and no file of the directory,
/// which has more than its values in it.
fn cramped(arguments: &str, dir: &Path) -> Output {
    std::fs::create_dir_all(dir.join("m")).unwrap();
    let script = "trap '' XFSZ; ulimit -f 126; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_recoup")]).args(arguments.split_whitespace());
    command.current_dir(dir).output().unwrap()
}

/// Memory was freed, the exit code was 0, and the solution was nowhere.
#[test]
fn solution_that_finds_no_room_in_the_directory_stays_in_memory_and_the_run_fails() {
    let dir = tempfile::tempdir().unwrap();
    let command = format!("{SOLVE} --tiers memory,pfs --pfs-every 1 --scheme traditional --interval 10it --json");
    let output = cramped(&command, dir.path());
    let run = json(&output);
    assert_eq!((output.status.code(), &run["converged"]), (Some(1), &Value::from(true)));
    let last = run["iterations"].as_u64().unwrap();
    assert_eq!(run["solution_version"], Value::Null, "{run}");
    let why = run["unwritten"][0].as_str().unwrap();
    assert!(why.contains(&format!("version {last} is in memory alone; pfs: ")) && why.contains("stays in m"), "{why}");
    assert_eq!(inspect(dir.path()), [(last, vec!["memory".to_owned()])]);
    let again = recoup(&command, dir.path());
    assert_eq!((again.status.code(), &json(&again)["solution_version"]), (Some(0), &Value::from(last)));
    assert_eq!(inspect(dir.path()), [(last, vec!["pfs".to_owned()])]);
    assert_eq!(in_memory(dir.path()), Vec::<PathBuf>::new());
}

/// A version that memory alone had was called whole in the directory.
#[test]
fn run_that_is_stopped_says_that_memory_alone_has_its_version() {
    let dir = tempfile::tempdir().unwrap();
    // One vector, as the solution has it.
    let run =
        "run --poisson3d 20 --method jacobi --rtol 1e-8 --memory-dir m --dir d --tiers memory,pfs --scheme traditional";
    for (end, code) in [("--time-limit 0s --stop-before 0s", 75), ("--max-iterations 3", 3)] {
        let output = cramped(&format!("{run} --fresh {end}"), dir.path());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains("is in memory alone; pfs: rank 0: d/solve/"), "{said}");
        assert!(said.contains("m keeps it until this machine ends: the same command continues from it"), "{said}");
        assert!(!said.contains("is whole"), "{said}");
    }
    assert_eq!(json(&recoup(&format!("{run} --json"), dir.path()))["resumed_from"], 3);
}

/// Without a directory the solution is the program's to keep, and no word said so.
#[test]
fn run_in_memory_alone_says_that_no_version_holds_its_solution() {
    let dir = tempfile::tempdir().unwrap();
    let run = "run --poisson3d 8 --method cg --memory-dir m --tiers memory --scheme lossless --failures kill --mtti 1h";
    let child = |more: &str| String::from_utf8_lossy(&recoup(&format!("{run} {more}"), dir.path()).stderr).into_owned();
    assert!(child("").contains("the run has converged, and memory is freed: no version holds the solution"));
    assert!(!child("--solution x.npy").contains("no version holds the solution"));
}

/// Memory was a place that only `inspect` knew.
#[test]
fn versions_in_memory_are_verified_and_exported_without_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    recoup(&format!("{SAVED} --pfs-every 9 --no-save-last --max-iterations 12"), dir.path());
    std::fs::remove_dir_all(dir.path().join("d")).unwrap();
    let verified = json(&recoup("verify d --memory --memory-dir m --json", dir.path()));
    assert_eq!(verified["whole"], true, "{verified}");
    let versions = verified["versions"].as_array().unwrap();
    let numbers: Vec<u64> = versions.iter().map(|version| version["version"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [5, 10]);
    let export = |more: &str| recoup(&format!("export d --memory --memory-dir m --to x.npy {more}"), dir.path());
    assert!(export("").status.success());
    assert_eq!(std::fs::read(dir.path().join("x.npy")).unwrap().len(), 128 + 8 * 20_usize.pow(3));
    // A flipped bit is named, and not exported.
    flip(&payloads(&node(dir.path()).join("rank-000000/v000000000010")), 1000, 4);
    let damaged = recoup("verify d --memory --memory-dir m", dir.path());
    assert_eq!(damaged.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&damaged.stdout).contains("solve/10: frame"));
    assert_eq!(export("").status.code(), Some(4));
    assert!(export("--version 5").status.success());
    assert_eq!(recoup("verify other --memory --memory-dir m", dir.path()).status.code(), Some(4));
}

/// `status` and `prune` knew directories only.
#[test]
fn versions_in_memory_are_found_by_status_and_pruned() {
    let dir = tempfile::tempdir().unwrap();
    recoup(&format!("{SAVED} --pfs-every 9 --no-save-last --max-iterations 12"), dir.path());
    let status = |place: &str| json(&recoup(&format!("status d {place} --json"), dir.path()))["runs"][0].clone();
    let memory = "--memory --memory-dir m";
    let both = ["memory", "pfs"].map(str::to_owned);
    for place in ["", memory] {
        let run = status(place);
        assert_eq!((&run["state"], &run["newest_version"]), (&Value::from("not-converged"), &Value::from(10)), "{run}");
        assert_eq!(run["is_in_memory_only"], true, "{run}");
        assert!(run["version_age_seconds"].as_f64().is_some_and(|age| age < 3600.0), "{run}");
    }
    let pruned = json(&recoup(&format!("prune d {memory} --keep 1 --json"), dir.path()));
    assert_eq!(pruned["runs"][0]["removed"], Value::from(vec![5]), "{pruned}");
    assert_eq!(inspect(dir.path()), [(5, both[1..].to_vec()), (10, both[..1].to_vec())]);
    json(&recoup(&format!("prune d {memory} --keep 0 --json"), dir.path()));
    assert_eq!(inspect(dir.path()), [(5, both[1..].to_vec())]);
    assert_eq!(status(memory)["newest_version"], Value::Null);
    assert_eq!(recoup(&format!("status other {memory}"), dir.path()).status.code(), Some(4));
}

/// Starts a run that takes ten seconds, and waits until `status` shows a version of it.
fn started(tiers: &str, dir: &Path) -> Child {
    std::fs::create_dir_all(dir.join("m")).unwrap();
    let run = format!("{SOLVE} --tiers {tiers} --scheme exact --interval 5it --t-iter 200ms");
    let mut child = support::command(&run, dir).spawn().unwrap();
    let has_version = |_: &u32| {
        std::thread::sleep(Duration::from_millis(100));
        let output = recoup("status d --json", dir);
        output.status.success() && json(&output)["runs"][0]["newest_version"].is_u64()
    };
    if (0..300).find(has_version).is_none() {
        child.kill().unwrap();
        panic!("no version within 30 s");
    }
    child
}

/// A run in memory alone left no trace that `status` could find.
#[test]
fn run_in_memory_alone_has_a_status_until_its_process_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started("memory", dir.path());
    let status = || json(&recoup("status d --json", dir.path()))["runs"][0].clone();
    let running = status();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((&running["state"], &running["is_in_memory_only"]), (&Value::from("running"), &Value::from(true)));
    let dead = status();
    assert_eq!((&dead["state"], &dead["newest_version"]), (&Value::from("dead"), &Value::Null), "{dead}");
    // The same directory serves a run that writes to it.
    let next = json(&recoup(&format!("{SOLVE} --scheme exact --interval 5it --json"), dir.path()));
    assert_eq!(next["converged"], true, "{next}");
}

#[test]
fn memory_of_a_run_that_goes_on_is_not_pruned() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = started("memory,pfs", dir.path());
    let prune = || recoup("prune d --memory --memory-dir m --keep 1", dir.path());
    let refused = prune();
    child.kill().unwrap();
    child.wait().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("run solve is continuing as process"), "{said}");
    assert!(prune().status.success());
}

#[test]
fn versions_the_directory_was_too_busy_for_are_named_in_the_report() {
    let dir = tempfile::tempdir().unwrap();
    let slow = "--tiers memory,pfs --pfs-every 1 --scheme exact --interval 5it --pfs-bandwidth 100e3 --no-save-last --max-iterations 17";
    let report = json(&recoup(&format!("{SOLVE} {slow} --json"), dir.path()));
    assert_eq!(report["checkpoints"], 3);
    let notes: Vec<&str> = report["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    let skipped = |version| format!("version {version} not written to pfs: the one before is still on its way there");
    assert_eq!(notes, [skipped(10), skipped(15)]);
    let both = ["memory".to_owned(), "pfs".to_owned()];
    assert_eq!(inspect(dir.path()), [(5, both[1..].to_vec()), (10, both[..1].to_vec()), (15, both[..1].to_vec())]);
}

#[test]
fn decisions_name_the_levels() {
    let dir = tempfile::tempdir().unwrap();
    let why = |more: &str| {
        let fixed =
            "--tiers memory,pfs --scheme exact --interval 5it --fresh --json --no-save-last --max-iterations 12";
        let report = json(&recoup(&format!("{SOLVE} {fixed} {more}"), dir.path()));
        report["decisions"][0]["why"].as_str().unwrap().to_owned()
    };
    assert!(why("--pfs-every 3").ends_with("; levels: memory every version, pfs one of 3"));
    // Where hardly anything takes the memory with it, a slow file system is hardly ever needed;
    // where everything does, always.
    let rare = why("--pfs-bandwidth 1e5 --failure-shares process:0.999,job:0.001");
    let every: u64 = rare.rsplit_once("pfs one of ").unwrap().1.parse().unwrap();
    assert!(every >= 10, "{rare}");
    assert!(why("--pfs-bandwidth 1e9 --failure-shares job:1").ends_with("pfs every version"));
}

/// Everything below a directory, without following links.
fn below(dir: &Path) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    let deeper: Vec<PathBuf> = paths.iter().filter(|path| path.is_dir()).flat_map(|path| below(path)).collect();
    [paths, deeper].concat()
}

#[test]
fn memory_is_closed_to_others_whatever_the_umask() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("m")).unwrap();
    let run = format!("{SOLVE} --tiers memory,pfs --scheme exact --interval 5it --no-save-last --max-iterations 12");
    let command = format!("umask 0; exec {} {run}", env!("CARGO_BIN_EXE_recoup"));
    let output = Command::new("sh").args(["-c", &command]).current_dir(dir.path()).output().unwrap();
    let paths = below(&dir.path().join("m"));
    let has_version = paths.iter().any(|path| path.ends_with("rank-000000/v000000000010/commit"));
    assert!(has_version, "{}", String::from_utf8_lossy(&output.stderr));
    for path in paths {
        let found = std::fs::symlink_metadata(&path).unwrap();
        let expected = if found.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(found.mode() & 0o7777, expected, "{}", path.display());
    }
}

/// What a run says of a directory, and how another user who guessed its name made it so.
type Exchange = (&'static str, fn(&Path));

const EXCHANGES: [Exchange; 4] = [
    ("is a link", |path| {
        let theirs = path.with_extension("theirs");
        std::fs::create_dir(&theirs).unwrap();
        std::fs::set_permissions(&theirs, std::fs::Permissions::from_mode(0o700)).unwrap();
        symlink(theirs, path).unwrap();
    }),
    ("is not a directory", |path| std::fs::write(path, "").unwrap()),
    ("is open to other users (mode 0777, expected 0700)", |path| {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }),
    ("belongs to user 65533", |path| {
        std::fs::create_dir(path).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
        chown(path, Some(65_533), None).unwrap();
    }),
];

/// A link to another user's directory, or a directory of his with our name, was taken without a
/// word.
#[test]
fn memory_that_another_user_may_reach_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let can_give_away = chown(tempfile::tempdir().unwrap().path(), Some(65_533), None).is_ok();
    let solve = format!("{SOLVE} --tiers memory,pfs --pfs-every 3 --scheme exact --interval 5it");
    let run = format!("{solve} --no-save-last --max-iterations 12");
    recoup(&run, dir.path());
    let node = node(dir.path());
    // The user's, the run's, the node's, the rank's and the version's.
    let folders = [2, 1, 0].map(|up| node.ancestors().nth(up).unwrap().to_owned());
    let folders = [&folders[..], &[node.join("rank-000000"), node.join("rank-000000/v000000000010")]].concat();
    for (folder, (what, exchange)) in folders.iter().flat_map(|folder| EXCHANGES.map(|exchange| (folder, exchange))) {
        if what.contains("user 65533") && !can_give_away {
            eprintln!("SKIPPED: giving a directory to another user needs root");
            continue;
        }
        let aside = dir.path().join("aside");
        assert!(Command::new("mv").args([folder, &aside]).status().unwrap().success());
        exchange(folder);
        let before = below(&dir.path().join("m"));
        let named = format!("{} {what}", folder.strip_prefix(dir.path()).unwrap().display());
        for command in [&run, &format!("{solve} --failures kill --mtti 10"), "inspect d --memory-dir m"] {
            let output = recoup(command, dir.path());
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(&named), "{command}: {said}");
            assert_eq!(output.status.code(), Some(1), "{command}: {said}");
        }
        assert_eq!(below(&dir.path().join("m")), before, "{named}");
        let restore = format!("rm -rf '{0}' '{0}.theirs' && mv '{1}' '{0}'", folder.display(), aside.display());
        assert!(Command::new("sh").args(["-c", &restore]).status().unwrap().success());
    }
    assert_eq!(json(&recoup(&format!("{run} --json"), dir.path()))["resumed_from"], 10);
}
