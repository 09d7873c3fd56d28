//! Programs killed at random instants, and in the copy to persistent storage with scratch lost
//! after it.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use recoup_testkit::Random;

use crate::support::{Job, Place, Schedule, drive_well, has_mpi, versions};

/// Kills of each job in a usual run of the tests; [`survives_fifty`] makes more.
const KILLS: usize = 4;

/// Longest time a job is let be after it said that it restarted.
const REPRIEVE_MILLISECONDS: usize = 120;

/// Doubles on each rank: enough that a copy takes a while.
const VALUES: &str = "250000";

/// One kind of job.
#[derive(Clone, Copy, Debug)]
struct Kind {
    ranks: Option<usize>,
    /// memory or file
    holds: &'static str,
    /// sync or async
    mode: &'static str,
}

fn persistent(place: &Place, kind: Kind) -> PathBuf {
    if kind.ranks.is_some() { place.persistent() } else { place.persistent().join("single-000000") }
}

/// Whether a copy is under way, or was when the job was killed.
fn has_draft(place: &Place, kind: Kind) -> bool {
    let is_draft = |e: fs::DirEntry| e.file_name().to_string_lossy().starts_with("draft-");
    let entries = fs::read_dir(persistent(place, kind).join("heat"));
    entries.is_ok_and(|entries| entries.filter_map(Result::ok).any(is_draft))
}

/// Waits until a copy is under way, a moment at most.
fn await_copy(place: &Place, kind: Kind) {
    for _ in 0..400 {
        if has_draft(place, kind) {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Kills a job over and over; it always continues from the newest version that is whole. Its own
/// check finds any wrong value.
fn survives(kind: Kind, kills: usize, seed: u64) {
    if kind.ranks.is_some() && !has_mpi() {
        return;
    }
    println!("{kind:?}, seed {seed}");
    let place = Place::new(&format!("mode = {}\nmax_versions = 3\nscratch_versions = 2", kind.mode));
    let config = place.config();
    let arguments = [config.to_str().unwrap(), "2000000000", "3", VALUES, kind.holds];
    let mut dice = Random(seed);
    // What the next restart finds at least, and whether it finds just that.
    let mut least = 0;
    let mut exactly = true;
    let mut in_copy = 0;
    let mut restarts = 0;
    for kill in 0..kills {
        let mut job = Job::start(kind.ranks, &arguments);
        job.await_lines("pid ", kind.ranks.unwrap_or(1));
        if least > 0 {
            job.await_lines("restart ", 1);
            let found = job.numbers("restart ")[0];
            assert!(
                if exactly { found == least } else { found >= least },
                "kill {kill}: {found} found, {least} expected"
            );
            restarts += 1;
        }
        job.await_lines("saved ", 1 + dice.below(3));
        let lose_scratch = dice.below(2) == 0;
        if lose_scratch {
            await_copy(&place, kind);
        } else {
            std::thread::sleep(Duration::from_millis(dice.below(REPRIEVE_MILLISECONDS) as u64));
        }
        job.kill();
        let saved = job.numbers("saved ");
        least = *saved.last().unwrap();
        exactly = false;
        if lose_scratch {
            fs::remove_dir_all(place.scratch()).unwrap();
            in_copy += usize::from(has_draft(&place, kind));
            let there = versions(&persistent(&place, kind)).last().copied().unwrap_or(0);
            // Before a version is begun, the one before has arrived; with sync, before it is said
            // to be saved.
            let arrived = if kind.mode == "sync" { least } else { saved.iter().rev().nth(1).copied().unwrap_or(0) };
            assert!(there >= arrived, "kill {kill}: {arrived} had arrived, {there} is there");
            least = there;
            exactly = true;
        }
    }
    let ended = drive_well_of(&place, kind, least + 200);
    assert!(least == 0 || ended.is_some_and(|found| found >= least));
    println!("{kills} kills, {in_copy} of them in a copy and with scratch lost after it, {restarts} restarts");
}

/// Runs the job to its end; the version it continued from.
fn drive_well_of(place: &Place, kind: Kind, steps: u64) -> Option<u64> {
    let config = place.config();
    let steps = steps.to_string();
    let mut job = Job::start(kind.ranks, &[config.to_str().unwrap(), &steps, "50", VALUES, kind.holds]);
    job.await_lines("done ", 1);
    job.numbers("restart ").first().copied()
}

const SINGLE: Kind = Kind { ranks: None, holds: "memory", mode: "async" };

#[test]
fn process_by_itself_survives_its_kills() {
    survives(SINGLE, 2 * KILLS, 1);
    survives(Kind { holds: "file", mode: "sync", ..SINGLE }, KILLS, 2);
}

#[test]
fn one_rank_survives_its_kills() {
    survives(Kind { ranks: Some(1), holds: "memory", mode: "sync" }, KILLS, 3);
}

#[test]
fn two_ranks_survive_their_kills() {
    survives(Kind { ranks: Some(2), holds: "memory", mode: "async" }, KILLS, 4);
    survives(Kind { ranks: Some(2), holds: "file", mode: "async" }, KILLS, 5);
}

#[test]
fn four_ranks_survive_their_kills() {
    survives(Kind { ranks: Some(4), holds: "memory", mode: "async" }, KILLS, 6);
}

/// Fifty kills of every kind of job on `ranks` ranks.
fn survives_fifty(ranks: Option<usize>) {
    for (holds, mode) in [("memory", "async"), ("file", "sync"), ("memory", "sync"), ("file", "async")] {
        survives(Kind { ranks, holds, mode }, 50, 100 + ranks.unwrap_or(0) as u64);
    }
}

#[test]
#[ignore = "minutes"]
fn fifty_kills_of_a_process_by_itself() {
    survives_fifty(None);
}

#[test]
#[ignore = "minutes"]
fn fifty_kills_of_one_rank() {
    survives_fifty(Some(1));
}

#[test]
#[ignore = "minutes"]
fn fifty_kills_of_two_ranks() {
    survives_fifty(Some(2));
}

#[test]
#[ignore = "minutes"]
fn fifty_kills_of_four_ranks() {
    survives_fifty(Some(4));
}

/// An unmodified program of VELOC's aborted here: it took the torn version for the newest.
#[test]
fn copy_cut_short_by_a_kill_never_counts() {
    let place = Place::new("mode = async\npersistent_interval = 3600");
    drive_well(&place, None, Schedule { steps: 10, every: 10 }, "memory");
    let root = place.persistent().join("single-000000");
    let whole = root.join("heat/v000000000010");
    // What a process killed in the copy of version 20 leaves behind.
    let torn = root.join("heat/draft-000000000020");
    fs::create_dir_all(&torn).unwrap();
    fs::copy(whole.join("rank-000000.h5"), torn.join("rank-000000.h5")).unwrap();
    fs::remove_dir_all(place.scratch()).unwrap();
    assert_eq!(drive_well(&place, None, Schedule { steps: 15, every: 100 }, "memory").restarted(), Some(10));
}
