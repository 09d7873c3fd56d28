//! Clients as threads: verdicts that ranks share, and what a version holds.

use std::fs;
use std::path::Path;

use recoup_comm::Threads;
use recoup_core::Comm;
use recoup_veloc::{Client, Config, MemoryRegion, Selection};

use crate::support::Place;

const SCRATCH_ONLY: &str = "mode = sync\npersistent_interval = -1";

fn config(place: &Place) -> Config {
    Config::read(&place.config()).unwrap().config
}

fn rank_of(comm: Threads, place: &Place) -> Client {
    Client::of_ranks(Box::new(comm), Ok(config(place))).unwrap()
}

fn single(place: &Place) -> Client {
    Client::single(0, config(place))
}

fn protect(client: &mut Client, name: Option<&str>, id: i32, values: &mut [f64]) {
    let region = MemoryRegion::new(values.as_mut_ptr().cast(), values.len(), 8).unwrap();
    client.protect(name, id, region).unwrap();
}

fn take(client: &mut Client, selection: Selection<'_>) {
    // SAFETY: the vectors protected live in the test, which touches none of them meanwhile.
    unsafe { client.checkpoint_take(selection) }.unwrap();
}

fn save(client: &mut Client, name: &str, version: i32) {
    client.checkpoint_begin(name, version).unwrap();
    take(client, Selection::All);
    client.checkpoint_end(true).unwrap();
}

fn recover(client: &mut Client, selection: Selection<'_>) -> Result<(), recoup_veloc::Error> {
    // SAFETY: as in `take`.
    unsafe { client.recover(selection) }
}

fn restore(client: &mut Client, name: &str, version: i32) {
    client.restart_begin(name, version).unwrap();
    recover(client, Selection::All).unwrap();
    client.restart_end(true).unwrap();
}

fn copy_tree(source: &Path, target: &Path) {
    fs::create_dir_all(target).unwrap();
    for entry in fs::read_dir(source).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
    }
}

#[test]
fn checkpoint_that_one_rank_declines_counts_on_none() {
    let place = Place::new("mode = sync");
    let verdicts = Threads::launch(3, |comm| {
        let rank = comm.rank();
        let mut client = rank_of(comm, &place);
        let mut x = vec![rank as f64; 10];
        protect(&mut client, None, 0, &mut x);
        save(&mut client, "heat", 1);
        client.checkpoint_begin("heat", 2).unwrap();
        take(&mut client, Selection::All);
        let ended = client.checkpoint_end(rank != 1).unwrap_err().to_string();
        assert_eq!(client.restart_test("heat", 0).unwrap(), Some(1));
        client.restart_begin("heat", 1).unwrap();
        let restarted = client.restart_end(rank != 2).unwrap_err().to_string();
        client.finalize(true).unwrap();
        (ended, restarted)
    });
    assert!(verdicts.iter().all(|(ended, _)| ended.ends_with("rank 1 reports that it failed")), "{verdicts:?}");
    assert!(verdicts.iter().all(|(_, ended)| ended.ends_with("rank 2 reports that it failed")), "{verdicts:?}");
    // The draft stayed until the next run, as large as a version.
    for rank in 0..3 {
        let folder = place.scratch_file(rank, 1).parent().unwrap().parent().unwrap().to_owned();
        let names: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(names.iter().all(|name| !name.to_string_lossy().starts_with("draft")), "rank {rank}: {names:?}");
    }
}

/// The simulator's seed 313: each of several runs was killed right after its version counted, and
/// left one that nothing retired.
#[test]
fn first_checkpoint_after_a_restart_retires_what_killed_runs_left() {
    let place = Place::new("mode = sync");
    let client = |keep| Client::single(0, Config { scratch_versions: keep, max_versions: keep, ..config(&place) });
    let mut x = vec![1.0; 10];
    let mut killed = client(None);
    protect(&mut killed, None, 0, &mut x);
    (1..=5).for_each(|version| save(&mut killed, "heat", version));
    drop(killed);
    let mut client = client(Some(2));
    protect(&mut client, None, 0, &mut x);
    restore(&mut client, "heat", 5);
    client.checkpoint_begin("heat", 6).unwrap();
    for directory in [place.scratch().join("single-000000/heat"), place.persistent().join("single-000000/heat")] {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut versions: Vec<String> = names.filter(|name| name.starts_with('v')).collect();
        versions.sort();
        assert_eq!(versions, ["v000000000004", "v000000000005"]);
    }
}

#[test]
fn ranks_that_name_different_versions_are_told_so() {
    let place = Place::new("mode = sync");
    let errors = Threads::launch(2, |comm| {
        let version = comm.rank() as i32 + 1;
        rank_of(comm, &place).checkpoint_begin("heat", version).unwrap_err().to_string()
    });
    assert!(errors.iter().all(|error| error.starts_with("ranks disagree: ")), "{errors:?}");
}

/// A kill between two ranks' renames leaves the new attempt on one and the old one on the other,
/// each whole.
#[test]
fn parts_of_two_attempts_at_a_version_make_none() {
    let place = Place::new(SCRATCH_ONLY);
    let version = place.scratch_file(1, 2).parent().unwrap().to_owned();
    let kept = place.scratch().join("kept");
    let found = Threads::launch(2, |comm| {
        let barrier = comm.dup().unwrap();
        let rank = comm.rank();
        let mut client = rank_of(comm, &place);
        let mut x = vec![1.0; 10];
        protect(&mut client, None, 0, &mut x);
        save(&mut client, "heat", 1);
        save(&mut client, "heat", 2);
        barrier.barrier().unwrap();
        if rank == 1 {
            copy_tree(&version, &kept);
        }
        save(&mut client, "heat", 2);
        let second = client.restart_test("heat", 0).unwrap();
        barrier.barrier().unwrap();
        if rank == 1 {
            fs::remove_dir_all(&version).unwrap();
            copy_tree(&kept, &version);
        }
        barrier.barrier().unwrap();
        (second, client.restart_test("heat", 0).unwrap())
    });
    assert_eq!(found, [(Some(2), Some(1)); 2]);
}

#[test]
fn version_written_again_holds_the_new_values() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    let mut x = vec![1.0; 10];
    protect(&mut client, None, 0, &mut x);
    for value in [2.0, 3.0] {
        x.fill(value);
        save(&mut client, "slot", 0);
    }
    x.fill(0.0);
    restore(&mut client, "slot", 0);
    assert_eq!(x, [3.0; 10]);
    fs::remove_dir_all(place.scratch()).unwrap();
    drop(client);
    let mut client = single(&place);
    x.fill(0.0);
    protect(&mut client, None, 0, &mut x);
    restore(&mut client, "slot", 0);
    assert_eq!(x, [3.0; 10]);
}

#[test]
fn selections_go_in_and_come_out() {
    let place = Place::new("mode = async");
    let mut client = single(&place);
    let [mut a, mut b, mut c] = [vec![1.0; 3], vec![2.0; 4], vec![3.0; 5]];
    protect(&mut client, None, 0, &mut a);
    protect(&mut client, None, 1, &mut b);
    protect(&mut client, None, -7, &mut c);
    client.checkpoint_begin("part", 1).unwrap();
    take(&mut client, Selection::Some(&[0]));
    // What a region held when it was taken is what the version holds.
    a.fill(9.0);
    take(&mut client, Selection::Rest(&[0, 1]));
    client.checkpoint_end(true).unwrap();
    [&mut a, &mut b, &mut c].into_iter().for_each(|v| v.fill(0.0));
    client.restart_begin("part", 1).unwrap();
    assert_eq!(client.recover_size(-7).unwrap(), 40);
    assert!(client.recover_size(1).unwrap_err().to_string().ends_with("it is not in the version"));
    recover(&mut client, Selection::Some(&[-7])).unwrap();
    assert_eq!((a[0], b[0], c[0]), (0.0, 0.0, 3.0));
    assert!(recover(&mut client, Selection::Some(&[1])).is_err());
    recover(&mut client, Selection::Rest(&[-7])).unwrap();
    client.restart_end(true).unwrap();
    assert_eq!((a[2], b[3], c[4]), (1.0, 0.0, 3.0));
}

#[test]
fn regions_of_a_name_are_in_checkpoints_of_that_name_alone() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    let [mut common, mut own] = [vec![1.0; 3], vec![2.0; 4]];
    protect(&mut client, None, 0, &mut common);
    protect(&mut client, Some("own"), 5, &mut own);
    save(&mut client, "own", 1);
    save(&mut client, "main", 1);
    client.restart_begin("own", 1).unwrap();
    assert!(client.recover_size(5).is_ok() && client.recover_size(0).is_err());
    client.restart_end(true).unwrap();
    client.restart_begin("main", 1).unwrap();
    assert!(client.recover_size(0).is_ok() && client.recover_size(5).is_err());
}

#[test]
fn lossy_region_keeps_its_bound_and_others_their_bits() {
    let place = Place::new("mode = sync\nlossy = 2:1e-3");
    let mut client = single(&place);
    let wave = |k: usize| (k as f64 * 0.001).sin();
    let [mut exact, mut called, mut keyed] = [0; 3].map(|_| (0..50_000).map(wave).collect::<Vec<f64>>());
    protect(&mut client, None, 0, &mut exact);
    protect(&mut client, None, 1, &mut called);
    protect(&mut client, None, 2, &mut keyed);
    client.allow_error(1, 1e-6).unwrap();
    save(&mut client, "heat", 1);
    [&mut exact, &mut called, &mut keyed].into_iter().for_each(|v| v.fill(0.0));
    fs::remove_dir_all(place.scratch()).unwrap();
    drop(client);
    let mut client = single(&place);
    protect(&mut client, None, 0, &mut exact);
    protect(&mut client, None, 1, &mut called);
    protect(&mut client, None, 2, &mut keyed);
    restore(&mut client, "heat", 1);
    for k in 0..50_000 {
        assert_eq!(exact[k].to_bits(), wave(k).to_bits());
        assert!((called[k] - wave(k)).abs() <= 1e-6 && (keyed[k] - wave(k)).abs() <= 1e-3, "value {k}");
    }
    let file = place.persistent().join("single-000000/heat/v000000000001/rank-000000.h5");
    let bytes = fs::metadata(file).unwrap().len();
    assert!(bytes < 2 * 400_000, "{bytes} bytes: an exact region alone has 400000, and the others must be smaller");
}

#[test]
fn interval_says_which_versions_reach_persistent_storage() {
    for (key, there) in [("-1", vec![]), ("0", vec![1, 2, 3]), ("3600", vec![1])] {
        let place = Place::new(&format!("mode = async\npersistent_interval = {key}"));
        let mut client = single(&place);
        let mut x = vec![1.0; 10];
        protect(&mut client, None, 0, &mut x);
        (1..=3).for_each(|version| save(&mut client, "heat", version));
        client.finalize(true).unwrap();
        assert_eq!(crate::support::versions(&place.persistent().join("single-000000")), there, "{key}");
        assert_eq!(crate::support::versions(&place.scratch().join("single-000000")), [1, 2, 3]);
    }
}

#[test]
fn bound_of_a_test_is_not_part_of_it() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    [0, 5, 9].into_iter().for_each(|version| save(&mut client, "heat", version));
    let found = [0, 10, 9, 6, 5, 1].map(|bound| client.restart_test("heat", bound).unwrap());
    assert_eq!(found, [Some(9), Some(9), Some(5), Some(5), Some(0), Some(0)]);
    assert_eq!(client.restart_test("other", 0).unwrap(), None);
}

/// Otherwise a later restart would take up the run that was given up, where that had come further.
#[test]
fn checkpoint_after_a_restart_puts_newer_versions_out_of_the_way() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    let mut x = vec![1.0; 10];
    protect(&mut client, None, 0, &mut x);
    (1..=4).for_each(|version| save(&mut client, "heat", version));
    restore(&mut client, "heat", 2);
    // To look at another version changes nothing.
    assert_eq!(client.restart_test("heat", 0).unwrap(), Some(4));
    restore(&mut client, "heat", 1);
    restore(&mut client, "heat", 2);
    save(&mut client, "heat", 3);
    assert_eq!(client.restart_test("heat", 0).unwrap(), Some(3));
    let aside = place.persistent().join("single-000000/heat/damaged");
    assert_eq!(fs::read_dir(aside).unwrap().count(), 2);
}

#[test]
fn cleanup_leaves_persistent_storage_alone() {
    let place = Place::new("mode = async");
    let mut client = single(&place);
    let mut x = vec![4.0; 10];
    protect(&mut client, None, 0, &mut x);
    save(&mut client, "heat", 1);
    client.clean_up("heat").unwrap();
    assert!(crate::support::versions(&place.scratch().join("single-000000")).is_empty());
    x.fill(0.0);
    restore(&mut client, "heat", 1);
    assert_eq!(x, [4.0; 10]);
}

#[test]
fn routed_files_come_back_by_their_names() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    client.checkpoint_begin("files", 1).unwrap();
    for (name, text) in [("out/one.dat", "1"), ("two.dat", "22"), ("empty", "")] {
        let path = client.route(name).unwrap();
        assert_eq!(path, client.route(name).unwrap());
        fs::write(path, text).unwrap();
    }
    client.checkpoint_end(true).unwrap();
    client.restart_begin("files", 1).unwrap();
    for (name, text) in [("out/one.dat", "1"), ("elsewhere/two.dat", "22"), ("empty", "")] {
        let path = client.route(name).unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }
    let error = client.route("three.dat").unwrap_err().to_string();
    assert!(error.contains("empty, out/one.dat, two.dat"), "{error}");
    client.restart_end(true).unwrap();
    assert!(!place.scratch().join("single-000000/files-files").exists());
}

/// VELOC 1.8 derives the path from checkpoint, rank and version alone, and its heatdis_file writes
/// `ckpt_200_0.dat` and asks for `ckpt-200_0.dat`: each of its restarts was refused.
#[test]
fn only_routed_file_of_a_version_comes_back_under_any_name() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    client.checkpoint_begin("heat", 200).unwrap();
    fs::write(client.route("ckpt_200_0.dat").unwrap(), "state").unwrap();
    client.checkpoint_end(true).unwrap();
    client.restart_begin("heat", 200).unwrap();
    for name in ["ckpt-200_0.dat", "elsewhere/other", "ckpt_200_0.dat"] {
        assert_eq!(fs::read_to_string(client.route(name).unwrap()).unwrap(), "state", "{name}");
    }
    client.restart_end(true).unwrap();
}

/// VELOC takes such a name; here each call with it was refused as "not a recoup directory".
#[test]
fn name_that_begins_with_a_dot_is_saved_and_found() {
    let place = Place::new("mode = sync");
    for name in [".hidden", "..x", "hidden"] {
        let mut client = single(&place);
        let mut x = vec![5.0; 10];
        protect(&mut client, None, 0, &mut x);
        assert_eq!(client.restart_test(name, 0).unwrap(), None, "{name}");
        save(&mut client, name, 7);
        fs::remove_dir_all(place.scratch()).unwrap();
        x.fill(0.0);
        assert_eq!(client.restart_test(name, 0).unwrap(), Some(7), "{name}");
        restore(&mut client, name, 7);
        assert_eq!(x, [5.0; 10], "{name}");
    }
    assert!(place.persistent().join("single-000000/dot-hidden/v000000000007").is_dir());
    let mut client = single(&place);
    assert!(client.checkpoint_begin(&format!(".{}", "x".repeat(197)), 1).is_err());
    client.checkpoint_begin(&format!(".{}", "x".repeat(196)), 1).unwrap();
}

/// The end of the checkpoint waited for someone to write into the pipe.
#[test]
fn pipe_in_place_of_a_routed_file_fails_the_checkpoint() {
    let place = Place::new("mode = sync");
    let mut client = single(&place);
    client.checkpoint_begin("files", 1).unwrap();
    let path = client.route("pipe").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let error = client.checkpoint_end(true).unwrap_err().to_string();
    assert!(error.contains("a file expected"), "{error}");
}

/// The scratch copy still counts, and the program is told that the other one does not.
#[test]
fn copy_that_cannot_be_made_fails_on_all_ranks() {
    let place = Place::new("mode = async");
    let codes = Threads::launch(2, |comm| {
        let rank = comm.rank();
        let barrier = comm.dup().unwrap();
        let mut client = rank_of(comm, &place);
        let mut x = vec![rank as f64; 10];
        protect(&mut client, None, 0, &mut x);
        save(&mut client, "heat", 1);
        client.wait().unwrap();
        client.checkpoint_begin("heat", 2).unwrap();
        take(&mut client, Selection::All);
        barrier.barrier().unwrap();
        if rank == 0 {
            fs::remove_dir_all(place.persistent()).unwrap();
            fs::write(place.persistent(), "no directory").unwrap();
        }
        barrier.barrier().unwrap();
        let ended = client.checkpoint_end(true).unwrap_err().to_string();
        assert!(ended.contains("version 2 did not reach persistent storage"), "{ended}");
        client.finalize(true).is_ok()
    });
    assert_eq!(codes, [true, true]);
}
