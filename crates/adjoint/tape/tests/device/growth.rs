//! Memory that grows, that is refused, and that is registered in turn.

use std::time::Duration;

use recoup_cuda_double::Settings;
use recoup_tape::Tape;
use rustix::fs::{FlockOperation, flock};

use super::support::{DeviceProgram, KIB, MIB, double, on_device, pop, push};

const LEN: usize = 16 * KIB;

#[test]
fn a_device_with_less_memory_than_asked_keeps_what_fits_and_the_host_the_rest() {
    let settings = Settings { memory_bytes: 5 * MIB, ..Settings::default() };
    let report = on_device(&settings, |device| {
        let mut tape = Tape::builder().device(64 * MIB).on(device).host(8 * MIB).chunks(2 * MIB).build().unwrap();
        (0..60).for_each(|step| push(&mut tape, step, LEN).unwrap());
        (0..60).rev().for_each(|step| pop(&mut tape, step, LEN).unwrap());
    });
    let Some(report) = report else { return };
    assert_eq!(report.count("cuMemMap"), 2, "{report}");
}

#[test]
fn a_device_that_maps_no_memory_piece_by_piece_is_used_all_at_once() {
    let settings = Settings { has_virtual_memory: false, ..Settings::default() };
    let report = on_device(&settings, |device| {
        let mut tape = Tape::builder().device(2 * MIB).on(device).host(4 * MIB).build().unwrap();
        let mut program = DeviceProgram::start(device, LEN);
        (0..40).for_each(|step| program.push(&mut tape, step).unwrap());
        (0..40).rev().for_each(|step| assert_eq!(program.pop(&mut tape).unwrap(), step));
    });
    let Some(report) = report else { return };
    assert_eq!((report.count("cuMemAddressReserve"), report.count("cuMemMap")), (0, 0), "{report}");
}

/// A tape whose registration waited for the turn of a process that had stopped did not end.
#[test]
fn a_tape_ends_while_another_process_has_the_turn() {
    let dir = tempfile::tempdir().unwrap();
    let turns = dir.path().join("turns");
    let other = std::fs::File::create(&turns).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    let report = on_device(&Settings::default(), |device| {
        let builder = Tape::builder().device(MIB).on(device).host(4 * MIB).chunks(2 * MIB);
        let mut tape = builder.lock_memory(&turns).build().unwrap();
        (0..30).for_each(|step| push(&mut tape, step, LEN).unwrap());
    });
    let Some(report) = report else { return };
    assert_eq!(report.count("cuMemHostRegister_v2"), 0, "{report}");
}

#[test]
fn memory_that_is_prepared_is_there_before_the_first_push() {
    let Some(double) = double() else { return };
    double.reset(&Settings::default());
    let builder = Tape::builder().device(4 * MIB).host(6 * MIB).chunks(2 * MIB).prepared();
    let mut tape = builder.build().unwrap();
    let report = double.report();
    assert_eq!((report.count("cuMemMap"), report.count("cuMemHostRegister_v2")), (2, 3), "{report}");
    (0..60).for_each(|step| push(&mut tape, step, LEN).unwrap());
    (0..60).rev().for_each(|step| pop(&mut tape, step, LEN).unwrap());
    drop(tape);
    let report = double.report();
    assert!(report.is_clean() && report.count("cuMemMap") == 2, "{report}");
}

#[test]
fn no_device_at_all_is_an_error_that_says_so() {
    let Some(double) = double() else { return };
    double.reset(&Settings { devices: 0, ..Settings::default() });
    let refused = Tape::builder().device(MIB).build().unwrap_err().to_string();
    assert_eq!(refused, "device of the tape: no CUDA here: device: the driver finds no device");
}

/// The turn of another process delays registration, and nothing else.
#[test]
fn states_pass_while_another_process_registers() {
    let dir = tempfile::tempdir().unwrap();
    let turns = dir.path().join("turns");
    let other = std::fs::File::create(&turns).unwrap();
    flock(&other, FlockOperation::LockExclusive).unwrap();
    let Some(double) = double() else { return };
    double.reset(&Settings::default());
    let builder = Tape::builder().device(MIB).host(4 * MIB).chunks(2 * MIB).lock_memory(&turns);
    let mut tape = builder.build().unwrap();
    let registered = || double.report().count("cuMemHostRegister_v2");
    (0..30).for_each(|step| push(&mut tape, step, LEN).unwrap());
    (10..30).rev().for_each(|step| pop(&mut tape, step, LEN).unwrap());
    assert_eq!(registered(), 0, "the turn is another's");
    drop(other);
    let mut waits = 0;
    while registered() < 2 {
        waits += 1;
        assert!(waits < 20_000, "the turn was given back, and no memory was registered");
        std::thread::sleep(Duration::from_millis(1));
    }
    (0..10).rev().for_each(|step| pop(&mut tape, step, LEN).unwrap());
    drop(tape);
    assert!(double.report().is_clean(), "{}", double.report());
}
