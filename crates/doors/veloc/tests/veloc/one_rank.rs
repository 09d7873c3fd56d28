//! What one rank alone cannot do: all ranks are told, and none waits for it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use recoup_comm::Threads;
use recoup_core::Comm;
use recoup_testkit::watched;
use recoup_veloc::{Client, Config, MemoryRegion, Selection};

use crate::support::{Place, versions};

const RANKS: usize = 2;

fn scratch_of(place: &Place, rank: usize) -> PathBuf {
    place.scratch().join(format!("rank-{rank:06}"))
}

/// Runs `run` on both ranks, with versions 1 and 2 of `x`, which holds the number of the version.
fn with_two_versions<T: Send + 'static>(
    what: &str,
    place: &Arc<Place>,
    run: impl Fn(&mut Client, &mut Vec<f64>, &dyn Comm) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let place = Arc::clone(place);
    watched(what, RANKS, move |comm: &Threads| {
        let config = Config::read(&place.config()).unwrap().config;
        let mut client = Client::of_ranks(comm.dup().unwrap(), Ok(config)).unwrap();
        let mut x = vec![0.0; 10];
        let region = MemoryRegion::new(x.as_mut_ptr().cast(), x.len(), 8).unwrap();
        client.protect(None, 0, region).unwrap();
        for version in 1..=2 {
            x.fill(f64::from(version));
            assert!(save(&mut client, version));
        }
        comm.barrier().unwrap();
        run(&mut client, &mut x, comm)
    })
}

fn save(client: &mut Client, version: i32) -> bool {
    client.checkpoint_begin("heat", version).is_ok() && {
        take(client);
        client.checkpoint_end(true).is_ok()
    }
}

fn take(client: &mut Client) -> bool {
    // SAFETY: the vector protected lives in the test, which does not touch it meanwhile.
    unsafe { client.checkpoint_take(Selection::All) }.is_ok()
}

fn restore(client: &mut Client, version: i32) -> bool {
    client.restart_begin("heat", version).is_ok() && {
        // SAFETY: as in `take`.
        let recovered = unsafe { client.recover(Selection::All) };
        client.restart_end(recovered.is_ok()).is_ok()
    }
}

/// `VELOC_Restart_test` returned -1 on the rank whose scratch folder was gone, and the other waited
/// without end. No later checkpoint was taken.
#[test]
fn scratch_that_vanishes_is_made_again_and_its_versions_come_from_persistent_storage() {
    let gone: [fn(&Place, usize) -> PathBuf; 3] =
        [scratch_of, |place, rank| scratch_of(place, rank).join("heat"), |place, _| place.scratch()];
    for (victim, gone) in (0..RANKS).flat_map(|victim| gone.map(|gone| (victim, gone))) {
        let place = Arc::new(Place::new("mode = sync"));
        let removed = gone(&place, victim);
        let what = format!("rank {victim} without {}", removed.display());
        let seen = with_two_versions(&what, &place, move |client, x, comm| {
            if comm.rank() == victim {
                fs::remove_dir_all(&removed).unwrap();
            }
            comm.barrier().unwrap();
            x.fill(0.0);
            let found = client.restart_test("heat", 0).unwrap();
            (found, restore(client, 2), x[9], save(client, 3), client.restart_test("heat", 0).unwrap())
        });
        assert_eq!(seen, [(Some(2), true, 2.0, true, Some(3)); RANKS], "{what}");
        assert_eq!(versions(&scratch_of(&place, victim)), [3], "{what}");
    }
}

/// Each copy after the folder went was refused, for the rest of the run.
#[test]
fn persistent_storage_that_vanishes_is_made_again() {
    let place = Arc::new(Place::new("mode = sync"));
    let removed = place.persistent();
    let saved = with_two_versions("persistent storage", &place, move |client, _, comm| {
        if comm.rank() == 1 {
            fs::remove_dir_all(&removed).unwrap();
        }
        comm.barrier().unwrap();
        (save(client, 3), client.restart_test("heat", 0).unwrap())
    });
    assert_eq!(saved, [(true, Some(3)); RANKS]);
    assert_eq!(versions(&place.persistent()), [3]);
}

/// Puts a file where a directory was.
fn occupy(path: &Path) {
    fs::remove_dir_all(path).ok();
    fs::write(path, "no directory").unwrap();
}

/// What is done to one rank, and a call that all make then.
struct Fault {
    what: &'static str,
    strike: fn(&mut Client, &Path),
    call: fn(&mut Client) -> bool,
}

/// Damage before a collective call, whose own part one rank then cannot do.
const BEFORE: [Fault; 5] = [
    Fault { what: "test", strike: |_, rank| occupy(&rank.join("heat")), call: |c| c.restart_test("heat", 0).is_ok() },
    Fault { what: "restart", strike: |_, rank| occupy(&rank.join("heat")), call: |client| restore(client, 2) },
    Fault { what: "checkpoint", strike: |_, rank| occupy(&rank.join("heat")), call: |client| save(client, 3) },
    Fault { what: "files read", strike: |_, rank| occupy(&rank.join("files-heat")), call: |client| restore(client, 2) },
    Fault { what: "files", strike: |_, rank| occupy(&rank.join("files-heat")), call: |client| save(client, 3) },
];

/// Damage between the begin of a checkpoint and its end.
const WITHIN: [Fault; 3] = [
    Fault { what: "draft", strike: |_, rank| occupy(&rank.join("heat")), call: |c| c.checkpoint_end(true).is_ok() },
    Fault {
        what: "routed file",
        strike: |client, _| drop(client.route("never.written").unwrap()),
        call: |client| client.checkpoint_end(true).is_ok(),
    },
    Fault {
        what: "region",
        strike: |client, _| {
            // A region of four bytes cannot have a bound of doubles.
            let mut word = 0_u32;
            let region = MemoryRegion::new((&raw mut word).cast(), 1, 4).unwrap();
            client.protect(None, 1, region).unwrap();
            client.allow_error(1, 1e-3).unwrap();
            assert!(!take(client));
            client.unprotect(None, 1).unwrap();
        },
        call: |client| client.checkpoint_end(true).is_ok(),
    },
];

#[test]
fn what_one_rank_cannot_do_fails_on_all_and_none_waits() {
    let faults = BEFORE.iter().map(|fault| (fault, false)).chain(WITHIN.iter().map(|fault| (fault, true)));
    for ((fault, has_begun), victim) in faults.flat_map(|fault| (0..RANKS).map(move |victim| (fault, victim))) {
        let place = Arc::new(Place::new("mode = sync"));
        let what = format!("{} of rank {victim}", fault.what);
        let struck = scratch_of(&place, victim);
        let Fault { strike, call, .. } = *fault;
        let verdicts = with_two_versions(&what, &place, move |client, _, comm| {
            if has_begun {
                client.checkpoint_begin("heat", 3).unwrap();
            }
            comm.barrier().unwrap();
            if comm.rank() == victim {
                strike(client, &struck);
            }
            comm.barrier().unwrap();
            call(client)
        });
        assert_eq!(verdicts, [false; RANKS], "{what}");
    }
}

/// It had dropped what the test had read, and the others began a restart from it.
#[test]
fn rank_that_cleaned_up_after_the_test_restarts_with_the_others() {
    let place = Arc::new(Place::new("mode = sync"));
    let restored = with_two_versions("cleanup", &place, |client, x, comm| {
        assert_eq!(client.restart_test("heat", 0).unwrap(), Some(2));
        if comm.rank() == 1 {
            client.clean_up("heat").unwrap();
        }
        x.fill(0.0);
        (restore(client, 2), x[0])
    });
    assert_eq!(restored, [(true, 2.0); RANKS]);
}

/// Tells the process whose standard error is read from the one that reads it.
const IS_WATCHED: &str = "RECOUP_TEST_WATCHED";

/// Files lie where versions that are retired go first.
#[test]
fn versions_that_cannot_be_removed_are_named_by_each_rank_and_cost_no_checkpoint() {
    const NAME: &str = "one_rank::versions_that_cannot_be_removed_are_named_by_each_rank_and_cost_no_checkpoint";
    if std::env::var_os(IS_WATCHED).is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", NAME]).env(IS_WATCHED, "1").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}{errors}", String::from_utf8_lossy(&output.stdout));
        // Rank 0 retires those in persistent storage, too.
        for (rank, n_lines) in [(0, 2), (1, 1)] {
            let line = format!("veloc: rank {rank}: version 2 is left over: ");
            assert_eq!(errors.lines().filter(|text| text.starts_with(&line)).count(), n_lines, "{errors}");
        }
        assert!(errors.lines().all(|line| line.contains("heat/draft-000000000002")), "{errors}");
        return;
    }
    let place = Arc::new(Place::new("mode = sync\nscratch_versions = 1\nmax_versions = 1"));
    let occupied = Arc::clone(&place);
    let saved = with_two_versions("removal", &place, move |client, _, comm| {
        let folders = [Some(scratch_of(&occupied, comm.rank())), (comm.rank() == 0).then(|| occupied.persistent())];
        for folder in folders.into_iter().flatten() {
            for name in ["draft-after-000000000003", "draft-000000000002"] {
                fs::write(folder.join("heat").join(name), "no version").unwrap();
            }
        }
        comm.barrier().unwrap();
        (save(client, 3), client.restart_test("heat", 0).unwrap())
    });
    assert_eq!(saved, [(true, Some(3)); RANKS]);
    assert_eq!(versions(&scratch_of(&place, 1)), [2, 3]);
}
