//! Does a program whose process is killed continue from memory alone?

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use recoup::Builder;
use recoup::comm::Solo;
use recoup::core::{Note, Scheme, Store};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::Outcome;

use crate::support::{Problem, plan, steps};

/// Names the folder of the child's versions and memory.
const FOLDER: &str = "RECOUP_MEMORY_TIERS_TEST";
/// The iteration the child is killed at.
const KILLED_AT: u64 = 25;

fn builder(problem: &Problem, folder: &Path, tiers: &str) -> Builder {
    let options = recoup::TierOptions {
        memory_dir: folder.join("memory"),
        pfs_every: recoup::PfsEvery::Given(2),
        ..recoup::TierOptions::from(tiers.parse::<recoup::cache::TierList>().unwrap())
    };
    problem.builder(&folder.join("ckpt"), plan(Scheme::Lossless), 10).synchronous(true).tier_options(options)
}

/// The process that is killed: it saves versions 10 and 20, says so, and waits for its end.
#[test]
#[ignore = "the other process of a_killed_process_goes_on_from_memory"]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = PathBuf::from(folder);
    let problem = Problem::poisson(12);
    let tiers = std::fs::read_to_string(folder.join("tiers")).unwrap();
    let mut session = builder(&problem, &folder, &tiers).build().unwrap();
    let mut solver = problem.solver("cg").unwrap();
    steps(solver.as_mut(), &mut session, KILLED_AT);
    println!("\nsaved");
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// Starts the child, and kills it once it has saved.
fn save_and_kill(folder: &Path) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "memory_tiers::child", "--ignored", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let has_saved = lines.by_ref().map_while(Result::ok).any(|line| line == "saved");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(has_saved, "the child ended before it had saved");
}

#[test]
fn a_killed_process_goes_on_from_memory() {
    let problem = Problem::poisson(12);
    let undisturbed = problem.run("cg", None, recoup::model::failures::Never);
    for tiers in ["memory", "memory,pfs"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("memory")).unwrap();
        std::fs::write(folder.path().join("tiers"), tiers).unwrap();
        save_and_kill(folder.path());
        let session = builder(&problem, folder.path(), tiers).build().unwrap();
        let report = problem.run("cg", Some(session), recoup::model::failures::Never);
        // A lossless version holds the whole recurrence: no iteration is done twice.
        assert_eq!(report.executed, undisturbed.executed - 20, "{tiers}");
        assert_eq!(folder.path().join("ckpt").exists(), tiers.ends_with("pfs"), "{tiers}");
        builder(&problem, folder.path(), tiers).forget_memory(&Solo).unwrap();
        let left = std::fs::read_dir(folder.path().join("memory")).unwrap();
        let of_user = left.map(|entry| entry.unwrap().path()).next().unwrap();
        assert_eq!(std::fs::read_dir(of_user).unwrap().count(), 0, "{tiers}: nothing is left in memory");
    }
}

/// A thread moves versions on to the directory while the worker retires older ones there. They
/// took each other's directories: undisturbed runs ended with 59 whole drafts next to two versions,
/// and four of 448 lost the solution.
#[test]
fn the_directory_behind_memory_holds_its_versions_and_nothing_else_at_any_pace() {
    let problem = Problem::poisson(8);
    for seed in 0..8_u64 {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("memory")).unwrap();
        let options = recoup::TierOptions {
            memory_dir: folder.path().join("memory"),
            pfs_every: recoup::PfsEvery::Given(1 + seed % 2),
            drain: Some([recoup::Drain::Skip, recoup::Drain::Wait][seed as usize / 2 % 2]),
            ..recoup::TierOptions::from("memory,pfs".parse::<recoup::cache::TierList>().unwrap())
        };
        let keep = 1 + seed as usize % 3;
        let builder = problem.builder(&folder.path().join("ckpt"), plan(Scheme::Lossless), 1);
        let mut session = builder.keep(keep).bandwidth(4e6).tier_options(options).build().unwrap();
        let mut solver = problem.solver("jacobi").unwrap();
        for step in 0..60 {
            solver.step().unwrap();
            session.step(solver.as_ref()).unwrap();
            let random = (40 * seed + step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            std::thread::sleep(Duration::from_micros(random % 4000));
        }
        let notes = session.finish().unwrap();
        let failed = |note: &&Note| !note.to_string().contains("still on its way");
        assert_eq!(notes.iter().find(failed), None, "seed {seed}");
        for outcome in session.take_outcomes() {
            assert!(matches!(outcome, Outcome::Saved(_)), "seed {seed}: {outcome:?}");
        }
        drop(session);
        let store = Hdf5Store::open(folder.path().join("ckpt"), "solve", Access::Read).unwrap();
        let versions = store.versions().unwrap();
        let names = std::fs::read_dir(folder.path().join("ckpt/solve")).unwrap().count();
        assert_eq!((versions.len(), names), (keep, keep + 1), "seed {seed}: versions, and the lock");
        for version in versions {
            assert_eq!(store.inspect_damage(version).unwrap(), [], "seed {seed}, version {version}");
        }
    }
}

#[test]
fn words_that_are_no_tiers_are_refused_when_the_session_is_built() {
    let problem = Problem::poisson(4);
    let folder = tempfile::tempdir().unwrap();
    let message = |tiers: &str| {
        let built = problem.builder(folder.path(), plan(Scheme::Lossless), 10).tiers(tiers).build();
        built.map(drop).unwrap_err().to_string()
    };
    assert!(message("disk").starts_with("tiers: \"disk\": expected memory"));
    assert!(message("pfs,memory").contains("last"));
    // One rank has no partner.
    assert!(message("memory,partner:ring1").contains("partner"));
}
