//! Frozen copies equal the values at their moment, whatever writers do meanwhile: random writers
//! against a reference copy, with each monitor.
//!
//! `cargo test --release -p recoup-snapshot --test main -- --ignored writers::` takes 10,000 seeds.

mod heap;
mod owners;
mod plan;
mod trial;

use recoup_snapshot::{Monitors, NoMonitor, PageSize, TouchedRegion, TrackedRegion};
use recoup_testkit::Random;

use heap::Heap;
use trial::{Owner, trial};

/// Seeds of each monitor that a change has to pass.
const SEEDS: u64 = 150;
/// Seeds of each monitor in a long run: 10,000 in all.
const SEEDS_LONG: u64 = 2500;

fn page_size(draw: &mut Random) -> PageSize {
    if draw.below(2) == 0 { PageSize::Small } else { PageSize::Huge }
}

fn touched(seeds: u64) {
    let make = |len: usize, draw: &mut Random| -> Box<dyn Owner> {
        Box::new(TouchedRegion::zeros(len, page_size(draw)).expect("addresses"))
    };
    (0..seeds).for_each(|seed| trial(seed, make));
}

fn attached(seeds: u64) {
    let make = |len: usize, draw: &mut Random| -> Box<dyn Owner> { Box::new(Heap::zeros(len, 8 << draw.below(14))) };
    (0..seeds).for_each(|seed| trial(seed, make));
}

fn tracked(seeds: u64) {
    match Monitors::probe().track {
        Ok(()) => {}
        Err(reason @ (NoMonitor::Unnoticed | NoMonitor::System { .. })) => panic!("{reason}"),
        Err(reason) => return println!("SKIPPED: {reason}"),
    }
    let make = |len: usize, draw: &mut Random| -> Box<dyn Owner> {
        Box::new(TrackedRegion::zeros(len, page_size(draw)).expect("the notes work"))
    };
    (0..seeds).for_each(|seed| trial(seed, make));
}

#[test]
fn touched_regions_freeze_and_list_what_random_writers_do() {
    touched(SEEDS);
}

#[test]
fn attached_memory_freezes_and_lists_what_random_writers_do() {
    attached(SEEDS);
}

#[test]
fn tracked_regions_list_what_random_writers_do() {
    tracked(SEEDS);
}

#[test]
#[ignore = "minutes: 10,000 seeds"]
fn monitors_see_all_that_random_writers_do_for_long() {
    [touched, attached, tracked].into_iter().for_each(|monitor| monitor(SEEDS_LONG));
}
