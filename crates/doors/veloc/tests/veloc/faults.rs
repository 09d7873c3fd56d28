//! What happens to files, and what a restart makes of it: rows of a table of faults that were
//! injected into VELOC, FTI and SCR, where each of them gave wrong values, gave up, or left its
//! ranks at odds.

use std::fs;

use recoup_testkit::Random;
use recoup_testkit::mutation::MutatedFolder;

use crate::support::{Ended, Place, Schedule, drive, drive_well, flip, has_mpi, versions};

/// Two ranks with versions 10, 20 and 30, in scratch and, with `sync`, in persistent storage too.
fn three_versions(keys: &str) -> Option<Place> {
    if !has_mpi() {
        return None;
    }
    let place = Place::new(keys);
    drive_well(&place, Some(2), Schedule { steps: 30, every: 10 }, "memory");
    Some(place)
}

const BOTH: &str = "mode = sync";
const SCRATCH_ONLY: &str = "mode = sync\npersistent_interval = -1";

fn assert_restarts_at(place: &Place, version: u64) -> Ended {
    let ended = drive_well(place, Some(2), Schedule { steps: 35, every: 100 }, "memory");
    assert_eq!(ended.restarted(), Some(version), "{}", ended.errors);
    ended
}

/// VELOC restored it with return code 0.
#[test]
fn flipped_bit_of_the_newest_copy_costs_nothing_while_the_persistent_one_is_whole() {
    let Some(place) = three_versions(BOTH) else { return };
    flip(&place.scratch_file(1, 30));
    assert_restarts_at(&place, 30);
}

#[test]
fn flipped_bit_of_the_only_copy_costs_a_version_on_all_ranks() {
    let Some(place) = three_versions(SCRATCH_ONLY) else { return };
    flip(&place.scratch_file(1, 30));
    let ended = assert_restarts_at(&place, 20);
    assert!(ended.errors.contains("version 30 of heat cannot be restored: rank 1: scratch: "), "{}", ended.errors);
}

#[test]
fn flipped_bits_of_both_copies_cost_a_version() {
    let Some(place) = three_versions(BOTH) else { return };
    flip(&place.scratch_file(0, 30));
    flip(&place.persistent_file(0, 30));
    assert_restarts_at(&place, 20);
}

/// VELOC's rank 1 got -1, its rank 0 got 0, and no rank tried the persistent copy.
#[test]
fn truncated_scratch_copy_is_replaced_by_the_persistent_one_on_all_ranks() {
    let Some(place) = three_versions(BOTH) else { return };
    let file = fs::File::options().write(true).open(place.scratch_file(1, 30)).unwrap();
    file.set_len(1000).unwrap();
    assert_restarts_at(&place, 30);
}

#[test]
fn parts_come_from_wherever_each_is_whole() {
    let Some(place) = three_versions(BOTH) else { return };
    flip(&place.scratch_file(0, 30));
    flip(&place.persistent_file(1, 30));
    assert_restarts_at(&place, 30);
}

/// VELOC took the largest version of any rank and then failed.
#[test]
fn version_on_rank_0_only_is_no_version() {
    let Some(place) = three_versions(SCRATCH_ONLY) else { return };
    fs::remove_dir_all(place.scratch_file(1, 30).parent().unwrap()).unwrap();
    assert_restarts_at(&place, 20);
}

#[test]
fn lost_scratch_costs_nothing_that_reached_persistent_storage() {
    let Some(place) = three_versions(BOTH) else { return };
    fs::remove_dir_all(place.scratch()).unwrap();
    assert_restarts_at(&place, 30);
}

/// VELOC restored silently half of the problem on half of the ranks.
#[test]
fn fewer_and_more_ranks_are_refused_by_name() {
    let Some(place) = three_versions(BOTH) else { return };
    for ranks in [1, 4] {
        let ended = drive(&place, Some(ranks), Schedule { steps: 35, every: 100 }, "memory");
        assert_ne!(ended.code, Some(0), "{ranks} ranks: {}", ended.lines);
        let message = format!("version 30 of heat was written by 2 ranks, and there are {ranks}");
        assert!(ended.errors.contains(&message), "{}", ended.errors);
        assert!(ended.errors.contains("driver: VELOC_Restart_begin"), "{}", ended.errors);
    }
    assert_restarts_at(&place, 30);
}

#[test]
fn file_mode_falls_back_as_memory_mode_does() {
    if !has_mpi() {
        return;
    }
    let place = Place::new(SCRATCH_ONLY);
    drive_well(&place, Some(2), Schedule { steps: 30, every: 10 }, "file");
    flip(&place.scratch_file(0, 30));
    let ended = drive_well(&place, Some(2), Schedule { steps: 45, every: 10 }, "file");
    assert_eq!(ended.restarted(), Some(20), "{}", ended.errors);
    assert_eq!(drive_well(&place, Some(2), Schedule { steps: 45, every: 10 }, "file").restarted(), Some(40));
}

#[test]
fn only_the_newest_versions_are_kept() {
    let place = Place::new("mode = async\nmax_versions = 2\nscratch_versions = 1");
    drive_well(&place, None, Schedule { steps: 50, every: 10 }, "memory");
    assert_eq!(versions(&place.scratch().join("single-000000")), [50]);
    assert_eq!(versions(&place.persistent().join("single-000000")), [40, 50]);
    assert_eq!(drive_well(&place, None, Schedule { steps: 55, every: 100 }, "memory").restarted(), Some(50));
}

/// Changes a file of scratch or of persistent storage in each case. The program checks every value
/// it gets back, and ends with 3 for another one.
fn restart_from_changed_files(cases: u64) {
    let place = Place::new("mode = sync\nmax_versions = 3\nscratch_versions = 2");
    drive_well(&place, None, Schedule { steps: 30, every: 10 }, "memory");
    let folders = [place.scratch(), place.persistent()].map(|folder| MutatedFolder::of(&folder));
    let mut random = Random(48);
    for case in 0..cases {
        let path = folders[case as usize % 2].mutate(|| random.bits());
        // The run continues for a step and saves nothing.
        let ended = drive(&place, None, Schedule { steps: 31, every: 100 }, "memory");
        let is_refused = ended.code == Some(4) && ended.errors.contains("driver: VELOC_Restart");
        let errors = &ended.errors;
        assert!(ended.code == Some(0) || is_refused, "case {case}, {}: {:?}, {errors}", path.display(), ended.code);
        assert!(!errors.contains("panicked"), "case {case}, {}: {errors}", path.display());
        folders.iter().for_each(MutatedFolder::put_back);
    }
    println!("{cases} files of scratch and persistent storage changed at random");
}

#[test]
fn files_changed_at_random_give_no_wrong_value() {
    restart_from_changed_files(20);
}

#[test]
#[ignore = "minutes: 2,000 processes"]
fn two_thousand_files_changed_at_random_give_no_wrong_value() {
    restart_from_changed_files(2000);
}
