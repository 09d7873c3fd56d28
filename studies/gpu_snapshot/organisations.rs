//! The published organisations, by their names in Figures 10 and 11, and one of ours.

use crate::Failed;
use crate::device::DeviceRates;
use crate::lab::Lab;
use crate::machine::DeviceCheckpoint;
use crate::monitor::{Organisation, SavedZones, ZoneWay};
use crate::sheet::{Sheet, percent};
use crate::trace::WriteTrace;

/// Incremental and blocking.
pub(crate) const I: Organisation = of("I", SavedZones::Dirty, ZoneWay::Blocking);
/// Incremental, copied behind the program.
pub(crate) const NB_I: Organisation = of("NB+I", SavedZones::Dirty, ZoneWay::Offloaded);
/// Full, copied behind the program with hints.
pub(crate) const NB_F_H: Organisation = of("NB+F+H", SavedZones::Full, ZoneWay::Hinted);
/// Incremental, copied behind the program with hints.
pub(crate) const NB_I_H: Organisation = of("NB+I+H", SavedZones::Dirty, ZoneWay::Hinted);
/// The same by small zones.
pub(crate) const NB_IFG_H: Organisation = of("NB+I-FG+H", SavedZones::DirtyFine, ZoneWay::Hinted);
/// Full, through a buffer of the device.
pub(crate) const NB_F_H_D: Organisation = of("NB+F+H+D", SavedZones::Full, ZoneWay::Buffered);
/// Incremental by small zones, through a buffer of the device.
pub(crate) const NB_IFG_H_D: Organisation = of("NB+I-FG+H+D", SavedZones::DirtyFine, ZoneWay::Buffered);
/// Not published: the same for the variables that the program names.
pub(crate) const NAMED_D: Organisation = of("named+D", SavedZones::Named, ZoneWay::Buffered);

/// The organisations of Figure 10, by the driver alone.
pub(crate) const DRIVER: [Organisation; 4] = [I, NB_I, NB_F_H, NB_I_H];
/// The organisations of Figure 11, and ours.
pub(crate) const DEVICE: [Organisation; 5] = [NB_I_H, NB_IFG_H, NB_F_H_D, NB_IFG_H_D, NAMED_D];

const fn of(name: &'static str, zones: SavedZones, way: ZoneWay) -> Organisation {
    Organisation { name, zones, way }
}

/// Checkpoints of every program by every organisation, one row for each program, with the rates for
/// the bytes of its memory.
pub(crate) fn checkpoints(
    traces: &[WriteTrace],
    organisations: &[Organisation],
    rates: impl Fn(u64) -> DeviceRates,
) -> Vec<Vec<DeviceCheckpoint>> {
    let of_trace = |trace: &WriteTrace| {
        let rates = rates(trace.footprint_bytes);
        organisations.iter().map(|one| one.checkpoint(trace, rates)).collect()
    };
    traces.iter().map(of_trace).collect()
}

/// Full blocking time over the delay: the gain in words.
pub(crate) fn gain(checkpoint: &DeviceCheckpoint) -> String {
    format!("{:.1}x", 1.0 / checkpoint.delay)
}

/// Adds the programs to a sheet: what they are, and how much of their memory is dirty.
pub(crate) fn describe(sheet: &mut Sheet, lab: &Lab) -> Result<(), Failed> {
    let row = |trace: &WriteTrace| {
        let written =
            |organisation: Organisation| percent(organisation.checkpoint(trace, DeviceRates::PUBLISHED).written);
        let size = format!("{} MiB", trace.footprint_bytes >> 20);
        vec![trace.name.to_owned(), trace.what.clone(), size, written(I), written(NB_IFG_H_D), written(NAMED_D)]
    };
    let rows: Vec<Vec<String>> = lab.traces()?.iter().map(row).collect();
    sheet.table(&["program", "problem", "memory", "dirty, 64 KiB", "dirty, 4 KiB", "named"], &rows);
    Ok(())
}
