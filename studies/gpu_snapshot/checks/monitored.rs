//! The monitor by hand, and its promise: no zone is written before the version has it.

use recoup::model::Rng;

use crate::buffer::BufferCopier;
use crate::device::DeviceRates;
use crate::monitor::{Organisation, SavedZones, ZoneCopier, ZoneWay};
use crate::offload::DriverCopier;
use crate::organisations::{DEVICE, DRIVER, I, NB_F_H, NB_F_H_D, NB_I, NB_I_H, NB_IFG_H_D};
use crate::trace::{KernelWork, Recorder, WriteTrace, ZONE_BYTES};
use crate::zones::ZoneTable;

const RATES: DeviceRates = DeviceRates::PUBLISHED;

/// A program that writes these zones before and behind its version.
fn program(n_zones: u64, before: &[u64], after: &[u64]) -> WriteTrace {
    let mut recorder = Recorder::default();
    recorder.allocate(n_zones * ZONE_BYTES);
    let places = |zones: &[u64]| zones.iter().map(|zone| zone * ZONE_BYTES).collect::<Vec<_>>();
    let work = KernelWork { moved_bytes: 1e6, flops: 0.0 };
    recorder.scatter(work, places(before));
    recorder.take_version();
    recorder.scatter(work, places(after));
    let first_zone = 0..ZONE_BYTES;
    recorder.finish("by hand", String::new(), vec![first_zone])
}

fn full_seconds(trace: &WriteTrace) -> f64 {
    RATES.full_seconds(trace.footprint_bytes)
}

#[test]
fn blocking_increments_cost_their_transfers() {
    // Zones 1 and 2 lie side by side, 5 alone.
    let trace = program(100, &[1, 2, 5], &[0]);
    let found = I.checkpoint(&trace, RATES);
    let expected = (2.0 * RATES.transfer_seconds + 3.0 * ZONE_BYTES as f64 / RATES.link) / full_seconds(&trace);
    assert!((found.delay - expected).abs() < 1e-12, "{found:?} {expected}");
    assert_eq!(found.written, 0.03);
    assert_eq!(found.drain, 0.0);
}

#[test]
fn a_program_that_writes_nothing_loses_the_traffic_of_the_copies_alone() {
    let trace = program(1000, &[], &[]);
    let bytes = trace.footprint_bytes as f64;
    let driver = NB_F_H.checkpoint(&trace, RATES);
    assert!(driver.delay * full_seconds(&trace) <= 1.000_001 * bytes / RATES.memory, "{driver:?}");
    // Smaller transfers than the full one, which has twice as many bytes in each.
    assert!((driver.delay + driver.drain - 1.0).abs() < 0.01, "{driver:?}");
    let device = NB_F_H_D.checkpoint(&trace, RATES);
    assert!(device.delay * full_seconds(&trace) <= 1.000_001 * 3.0 * bytes / RATES.memory, "{device:?}");
}

#[test]
fn a_write_to_the_last_zone_waits_for_a_question_the_transfer_under_way_and_its_own() {
    let trace = program(1000, &[], &[999]);
    let found = NB_F_H.checkpoint(&trace, RATES);
    // The first transfer has begun with the kernel; the question comes behind it.
    let [least, _] = RATES.transfer_bytes;
    let begun = RATES.transfer(least);
    let own = RATES.transfer(ZONE_BYTES);
    let seconds = found.delay * full_seconds(&trace);
    assert!(
        seconds > own && seconds < begun + own + RATES.message_seconds + trace.footprint_bytes as f64 / RATES.memory
    );
}

#[test]
fn hints_save_questions() {
    let all: Vec<u64> = (0..1000).collect();
    let trace = program(1000, &all, &all);
    let without = NB_I.checkpoint(&trace, RATES);
    let with = NB_I_H.checkpoint(&trace, RATES);
    assert!(with.delay <= without.delay, "{with:?} {without:?}");
}

#[test]
fn a_buffer_for_all_dirty_zones_leaves_their_traffic_alone() {
    let all: Vec<u64> = (0..1000).collect();
    let trace = program(1000, &all, &all);
    let dirty = Organisation { zones: SavedZones::Dirty, ..NB_IFG_H_D };
    let large = dirty.checkpoint(&trace, RATES);
    let traffic = 3.0 * trace.footprint_bytes as f64 / RATES.memory / full_seconds(&trace);
    assert!(large.delay <= 1.000_001 * traffic, "{large:?} {traffic}");
    let small = dirty.checkpoint(&trace, DeviceRates { buffer_bytes: 16 << 20, ..RATES });
    assert!(small.delay > 10.0 * large.delay, "{small:?} {large:?}");
}

/// Random writes at random times: a write continues only when its zone is copied, all zones arrive
/// once, and the link is never faster than it is.
#[test]
fn no_zone_is_written_before_the_version_has_it() {
    for seed in 0..50 {
        let mut rng = Rng::new(seed);
        let zones: Vec<u64> = (0..200).filter(|_| rng.uniform() < 0.5).collect();
        let trace = program(200, &zones, &[0]);
        let table = ZoneTable::dirty(&trace, ZONE_BYTES);
        let pending_bytes = table.pending_bytes();
        let rates = DeviceRates { buffer_bytes: 16 * ZONE_BYTES, transfer_bytes: [2 * ZONE_BYTES; 2], ..RATES };
        let mut driver = DriverCopier::new(table.clone(), rates, seed % 2 == 0);
        let mut device = BufferCopier::new(table.clone(), rates);
        let copiers: [&mut dyn ZoneCopier; 2] = [&mut driver, &mut device];
        for copier in copiers {
            let mut now = 0.0;
            let mut moved_bytes = 0.0;
            for _ in 0..300 {
                now += rng.exponential(1e-5);
                moved_bytes += copier.advance(now);
                let piece = (rng.next_u64() % (200 * 16)) as u32;
                let ready_at = copier.write(piece, now);
                assert!(ready_at >= now, "seed {seed}");
                assert!(copier.write(piece, ready_at) <= ready_at, "seed {seed}: free once it was");
                now = ready_at;
            }
            let end = copier.finish();
            moved_bytes += copier.advance(end + 1.0);
            // The device reads and writes a zone, and the link reads it.
            assert!(moved_bytes == pending_bytes as f64 || moved_bytes == 3.0 * pending_bytes as f64, "seed {seed}");
            assert!(end >= pending_bytes as f64 / rates.link, "seed {seed}: {end}");
            assert!(copier.has_freed_all(end + rates.message_seconds), "seed {seed}");
        }
    }
}

#[test]
fn every_organisation_moves_each_zone_once() {
    let trace = program(300, &[3, 4, 7, 200], &[200, 3, 9]);
    for organisation in DRIVER.iter().chain(&DEVICE) {
        let found = organisation.checkpoint(&trace, RATES);
        // Zones of 4 KiB hold the single place that is written.
        let expected = match organisation.zones {
            SavedZones::Full => 1.0,
            SavedZones::Dirty => 4.0 / 300.0,
            SavedZones::DirtyFine => 4.0 / 16.0 / 300.0,
            SavedZones::Named => 0.0,
        };
        assert!((found.written - expected).abs() < 1e-12, "{organisation:?} {found:?}");
        assert!(found.delay >= 0.0 && found.drain >= 0.0, "{organisation:?} {found:?}");
        assert!(organisation.way != ZoneWay::Blocking || found.drain == 0.0);
    }
}
