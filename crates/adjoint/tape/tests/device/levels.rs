//! States through device, host and directory.

use std::sync::Arc;

use recoup_compress::Qb;
use recoup_core::{Bound, Values, ValuesMut};
use recoup_cuda_double::Settings;
use recoup_device::{Device, DeviceVec, DeviceVector, Stream};
use recoup_tape::{Eviction, Tape, TapeError};

use super::support::{DeviceProgram, KIB, MIB, double, length, on_device, pop, push};

/// Values of the greatest state.
const MOST: usize = 24 * KIB;
const STATES: u64 = 200;

/// Vectors on the device and slices of the host take turns, in both directions.
#[test]
fn two_hundred_states_come_back_bit_for_bit_through_small_levels() {
    let dir = tempfile::tempdir().unwrap();
    let report = on_device(&Settings::default(), |device| {
        let builder = Tape::builder().device(3 * MIB).on(device).host(5 * MIB).chunks(2 * MIB);
        let turns = dir.path().join("turns");
        let mut tape = builder.spill(dir.path().join("spill")).lock_memory(turns).build().unwrap();
        for step in 0..STATES {
            let len = length(step, MOST);
            match step % 3 {
                0 => push(&mut tape, step, len).unwrap(),
                _ => DeviceProgram::start(device, len).push(&mut tape, step).unwrap(),
            }
        }
        tape.turn().unwrap();
        for step in (0..STATES).rev() {
            let len = length(step, MOST);
            match step % 2 {
                0 => pop(&mut tape, step, len).unwrap(),
                _ => assert_eq!(DeviceProgram::start(device, len).pop(&mut tape).unwrap(), step),
            }
        }
        assert!(matches!(tape.pop(ValuesMut::F64(&mut [])), Err(TapeError::Empty)));
        assert_eq!(tape.report().n_popped, STATES);
    });
    let Some(report) = report else { return };
    // 19 MiB of states pass levels of 8 MiB, whose memory comes by chunks of 2 MiB.
    assert_eq!((report.count("cuMemMap"), report.count("cuMemHostRegister_v2")), (2, 3), "{report}");
}

#[test]
fn a_device_with_a_directory_alone_gives_back_every_state() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let mut tape = Tape::builder().device(MIB).on(device).spill(dir.path()).build().unwrap();
        (0..40).for_each(|step| push(&mut tape, step, length(step, MOST)).unwrap());
        (0..40).rev().for_each(|step| pop(&mut tape, step, length(step, MOST)).unwrap());
    });
}

#[test]
fn states_larger_than_the_device_rest_below_it() {
    on_device(&Settings::default(), |device| {
        let mut tape = Tape::builder().device(64 * KIB as u64).on(device).host(4 * MIB).build().unwrap();
        let mut program = DeviceProgram::start(device, 20 * KIB);
        (0..8).for_each(|step| program.push(&mut tape, step).unwrap());
        push(&mut tape, 8, 100).unwrap();
        pop(&mut tape, 8, 100).unwrap();
        (0..8).rev().for_each(|step| assert_eq!(program.pop(&mut tape).unwrap(), step));
    });
}

#[test]
fn every_element_type_and_no_values_at_all_come_back() {
    on_device(&Settings::default(), |device| {
        let mut tape = Tape::builder().device(MIB).on(device).build().unwrap();
        let stream = Stream::new(device).unwrap();
        let singles = [1.5_f32, f32::NAN, -0.0];
        let bytes = DeviceVector::new(DeviceVec::copy_of(&stream, &[7_u8, 8, 9]).unwrap(), stream.clone());
        let none = DeviceVector::new(DeviceVec::<i64>::new(device, 0).unwrap(), stream);
        tape.push(0, Values::F32(&singles)).unwrap();
        tape.push_device(1, &bytes).unwrap();
        tape.push_device(2, &none).unwrap();
        tape.push(3, Values::I64(&[i64::MIN, 7])).unwrap();
        let mut integers = [0; 2];
        assert_eq!((tape.pop(ValuesMut::I64(&mut integers)).unwrap(), integers), (3, [i64::MIN, 7]));
        tape.pop(ValuesMut::I64(&mut [])).unwrap();
        let mut found = [0; 3];
        assert_eq!((tape.pop(ValuesMut::Bytes(&mut found)).unwrap(), found), (1, [7, 8, 9]));
        let mut found = [0.0; 3];
        tape.pop(ValuesMut::F32(&mut found)).unwrap();
        assert_eq!(found.map(f32::to_bits), singles.map(f32::to_bits));
    });
}

#[test]
fn states_are_peeked_forgotten_and_popped_in_the_order_announced() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let builder = Tape::builder().device(MIB).on(device).host(MIB).spill(dir.path());
        let mut tape = builder.eviction(Eviction::KnownOrder).build().unwrap();
        let mut program = DeviceProgram::start(device, 16 * KIB);
        (0..30).for_each(|step| program.push(&mut tape, step).unwrap());
        for step in [0, 17, 29] {
            tape.peek_device(step, &mut program.vector).unwrap();
            program.check(step);
        }
        tape.forget(17).unwrap();
        tape.announce(&[5, 0, 28]).unwrap();
        for step in [5, 0, 28, 29, 27] {
            assert_eq!(program.pop(&mut tape).unwrap(), step);
        }
        assert_eq!(tape.len(), 24);
    });
}

#[test]
fn a_tape_that_is_dropped_leaves_its_spilled_states_to_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let builder = || Tape::builder().device(MIB).on(device).host(MIB).spill(dir.path());
        let mut tape = builder().build().unwrap();
        let mut program = DeviceProgram::start(device, 8 * KIB);
        (0..40).for_each(|step| program.push(&mut tape, step).unwrap());
        tape.save().unwrap();
        drop(tape);
        let mut tape = builder().reopen().build().unwrap();
        program.push(&mut tape, 40).unwrap();
        (0..=40).rev().for_each(|step| assert_eq!(program.pop(&mut tape).unwrap(), step));
    });
}

/// The values of a program rest on a device, its tape does not.
#[test]
fn a_tape_in_memory_of_the_host_takes_states_of_a_device_raw_and_coded() {
    on_device(&Settings::default(), |device| {
        let codec = Arc::new(Qb::default());
        for builder in [Tape::builder(), Tape::builder().codec(codec, Bound::Lossless).key_every(3)] {
            let mut tape = builder.host(4 * MIB).build().unwrap();
            let mut program = DeviceProgram::start(device, 5000);
            (0..12).for_each(|step| program.push(&mut tape, step).unwrap());
            tape.peek_device(7, &mut program.vector).unwrap();
            program.check(7);
            (0..12).rev().for_each(|step| assert_eq!(program.pop(&mut tape).unwrap(), step));
        }
    });
}

#[test]
fn states_of_another_device_come_by_way_of_the_host() {
    on_device(&Settings { devices: 2, ..Settings::default() }, |device| {
        let Ok(other) = Device::open(1) else { return };
        let mut tape = Tape::builder().device(MIB).on(device).host(MIB).build().unwrap();
        let mut program = DeviceProgram::start(&other, 5000);
        (0..5).for_each(|step| program.push(&mut tape, step).unwrap());
        (0..5).rev().for_each(|step| assert_eq!(program.pop(&mut tape).unwrap(), step));
    });
}

#[test]
fn a_state_of_another_size_is_refused_and_stays() {
    let _double = double();
    let device = Device::open(0).unwrap();
    let mut tape = Tape::builder().device(MIB).on(&device).build().unwrap();
    let mut program = DeviceProgram::start(&device, 100);
    program.push(&mut tape, 3).unwrap();
    let shape = tape.pop(ValuesMut::F64(&mut [0.0; 99])).unwrap_err().to_string();
    assert!(shape.starts_with("step 3: 100 values of type f64 are on the tape, room for 99"), "{shape}");
    assert_eq!(program.pop(&mut tape).unwrap(), 3);
}
