//! Frozen copies equal the values at their moment, whatever writers do meanwhile: random writers
//! against a reference copy.
//!
//! `cargo test --release -p recoup-snapshot --test writers -- --ignored` takes 10,000 seeds for
//! each monitor.

mod draw;
mod plan;
mod trial;

use recoup_snapshot::{PageSize, TouchedRegion};

use draw::Draw;
use trial::{Owner, trial};

/// Seeds of each test that a change has to pass.
const SEEDS: u64 = 150;
/// Seeds of a long run.
const SEEDS_LONG: u64 = 10_000;

fn region(len: usize, draw: &mut Draw) -> Box<dyn Owner> {
    let size = if draw.below(2) == 0 { PageSize::Small } else { PageSize::Huge };
    Box::new(TouchedRegion::<f64>::zeros(len, size).expect("addresses"))
}

#[test]
fn frozen_regions_equal_a_reference_copy_under_random_writers() {
    (0..SEEDS).for_each(|seed| trial(seed, region));
}

#[test]
#[ignore = "minutes: 10,000 seeds"]
fn frozen_regions_equal_a_reference_copy_under_random_writers_for_long() {
    (0..SEEDS_LONG).for_each(|seed| trial(seed, region));
}
