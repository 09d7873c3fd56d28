//! States that are coded when they leave the device.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use recoup_compress::Qb;
use recoup_core::{Bound, Values, ValuesMut, mix};
use recoup_cuda_double::Settings;
use recoup_device::{Device, DeviceElement, DeviceVec, DeviceVector, Stream};
use recoup_tape::{Tape, TapeBuilder, TapeError};

use super::counted_qb::CountedQb;
use super::support::{DeviceProgram, KIB, MIB, in_every_order, length, on_device, pop, push};

const LEN: usize = 4 * KIB;
const ABSOLUTE: f64 = 1e-4;

/// A smooth field that no other step has.
fn field(step: u64, len: usize) -> Vec<f64> {
    (0..len).map(|i| (0.01 * i as f64 + step as f64).sin() + 1e-3 * (i as f64 * 0.7).cos()).collect()
}

fn rest<T: DeviceElement>(device: &Device, values: &[T]) -> DeviceVector<T> {
    let stream = Stream::new(device).unwrap();
    DeviceVector::new(DeviceVec::copy_of(&stream, values).unwrap(), stream)
}

/// Pops a state, to the device for every other step, and compares it under the bound.
fn pop_within(tape: &mut Tape, device: &Device, step: u64, len: usize) {
    let mut found = vec![0.0; len];
    let popped = if step.is_multiple_of(2) {
        tape.pop(ValuesMut::F64(&mut found)).unwrap()
    } else {
        let mut target = rest(device, &found);
        let popped = tape.pop_device(&mut target).unwrap();
        target.download(&mut found).unwrap();
        popped
    };
    assert_eq!(popped, step);
    let expected = field(step, len);
    assert!(expected.iter().zip(&found).all(|(x, y)| (x - y).abs() <= ABSOLUTE), "step {step}");
}

/// The files of a directory, by their names.
fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())).collect()
}

/// Pushes states of every type, from the device where `device` is one, and saves them.
fn save_all(builder: TapeBuilder, device: Option<&Device>) {
    let mut tape = builder.build().unwrap();
    for step in 0..6 {
        let doubles = field(step, 1000 * (step as usize + 1));
        let singles: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
        let noise: Vec<f64> = (0..100).map(|i| f64::from_bits(mix(100 * step + i + 1))).collect();
        let integers: Vec<i64> = (0..50).collect();
        match device {
            Some(device) => {
                tape.push_device(4 * step, &rest(device, &doubles)).unwrap();
                tape.push_device(4 * step + 1, &rest(device, &singles)).unwrap();
                tape.push_device(4 * step + 2, &rest(device, &noise)).unwrap();
                tape.push_device(4 * step + 3, &rest(device, &integers)).unwrap();
            }
            None => {
                tape.push(4 * step, Values::F64(&doubles)).unwrap();
                tape.push(4 * step + 1, Values::F32(&singles)).unwrap();
                tape.push(4 * step + 2, Values::F64(&noise)).unwrap();
                tape.push(4 * step + 3, Values::I64(&integers)).unwrap();
            }
        }
    }
    tape.save().unwrap();
}

/// Doubles, singles, values that no codec makes smaller and integers; under every kind of bound.
#[test]
fn files_of_states_that_left_a_device_are_those_of_the_host_byte_for_byte() {
    for bound in [Bound::Lossless, Bound::Absolute(1e-4), Bound::Pointwise(1e-3), Bound::Range(1e-5)] {
        let [here, there] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let host = Tape::builder().host(MIB).spill(here.path()).codec(Arc::new(Qb::default()), bound);
        save_all(host, None);
        let expected = files(here.path());
        on_device(&Settings::default(), |device| {
            let builder = Tape::builder().device(MIB).on(device).host(MIB).spill(there.path());
            let codec = CountedQb::open();
            save_all(builder.codec(codec.clone(), bound), Some(device));
            let [n_host, n_held] = codec.counts();
            assert_eq!(n_host + n_held, 24, "{bound:?}");
            // A range is found here. Integers, and values that would be larger, are taken here too.
            let expected = if matches!(bound, Bound::Range(_)) { 0..=0 } else { 12..=18 };
            assert!(expected.contains(&n_held), "{bound:?}: {n_held}");
        });
        let found = files(there.path());
        assert_eq!(found.len(), 24);
        assert!(found == expected, "{bound:?}: other bytes");
    }
}

/// The host has room for four raw states; 40 coded ones rest there.
#[test]
fn payloads_rest_below_the_device_and_come_back_within_their_bound() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        for spill in [None, Some(dir.path())] {
            let builder = Tape::builder().device(100 * KIB as u64).on(device).host(140 * KIB as u64);
            let builder = builder.codec(CountedQb::open(), Bound::Absolute(ABSOLUTE));
            let mut tape = spill.into_iter().fold(builder, TapeBuilder::spill).build().unwrap();
            for step in 0..40 {
                let values = field(step, LEN);
                match step % 3 {
                    0 => tape.push(step, Values::F64(&values)).unwrap(),
                    _ => tape.push_device(step, &rest(device, &values)).unwrap(),
                }
            }
            let mut target = rest(device, &[0.0; LEN]);
            tape.peek_device(3, &mut target).unwrap();
            let report = tape.report();
            assert!(4 * report.stored_bytes < report.raw_bytes, "{report:?}");
            tape.turn().unwrap();
            (0..40).rev().for_each(|step| pop_within(&mut tape, device, step, LEN));
            assert_eq!(tape.report().stored_bytes, 0);
        }
    });
}

#[test]
fn states_larger_than_the_device_are_coded_as_they_are_pushed() {
    on_device(&Settings::default(), |device| {
        let builder = Tape::builder().device(16 * KIB as u64).on(device).host(64 * KIB as u64);
        let mut tape = builder.codec(CountedQb::open(), Bound::Absolute(ABSOLUTE)).build().unwrap();
        for step in 0..12 {
            let values = field(step, LEN);
            match step % 4 {
                0 | 1 => tape.push(step, Values::F64(&values)).unwrap(),
                _ => tape.push_device(step, &rest(device, &values)).unwrap(),
            }
        }
        assert!(4 * tape.report().stored_bytes < tape.report().raw_bytes);
        (0..12).rev().for_each(|step| pop_within(&mut tape, device, step, LEN));
    });
}

/// The program overwrites its vector after each push, and pops to it while copies are under way.
#[test]
fn coded_states_come_back_whatever_the_order_in_which_streams_run() {
    let dir = tempfile::tempdir().unwrap();
    in_every_order(|device, seed| {
        let spill = dir.path().join(seed.to_string());
        let builder = Tape::builder().device(6400).on(device).host(5600).spill(spill);
        let mut tape = builder.codec(CountedQb::open(), Bound::Lossless).build().unwrap();
        let mut program = DeviceProgram::start(device, LEN / 16);
        for step in 0..10 {
            program.push(&mut tape, step).unwrap();
            if step % 4 == 3 {
                tape.peek_device(step - 3, &mut program.vector).unwrap();
            }
        }
        for step in (0..10).rev() {
            if (seed + step).is_multiple_of(3) {
                pop(&mut tape, step, LEN / 16).unwrap();
            } else {
                assert_eq!(program.pop(&mut tape).unwrap(), step);
            }
        }
    });
}

#[test]
fn states_of_every_size_and_of_none_come_back_bit_for_bit() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let builder = Tape::builder().device(64 * KIB as u64).on(device).host(80 * KIB as u64).spill(dir.path());
        let mut tape = builder.codec(CountedQb::open(), Bound::Lossless).build().unwrap();
        let size = |step| if step % 7 == 0 { 0 } else { length(step, 7 * KIB) };
        for step in 0..40 {
            match step % 3 {
                0 => push(&mut tape, step, size(step)).unwrap(),
                _ => DeviceProgram::start(device, size(step)).push(&mut tape, step).unwrap(),
            }
        }
        for step in (0..40).rev() {
            match step % 2 {
                0 => pop(&mut tape, step, size(step)).unwrap(),
                _ => assert_eq!(DeviceProgram::start(device, size(step)).pop(&mut tape).unwrap(), step),
            }
        }
    });
}

/// States that a tape of a device has spilled are read by one of the host, and the other way round.
#[test]
fn spilled_states_go_on_with_and_without_a_device() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let there = || {
            let builder = Tape::builder().device(64 * KIB as u64).on(device).host(MIB).spill(dir.path()).reopen();
            builder.codec(CountedQb::open(), Bound::Absolute(ABSOLUTE)).build().unwrap()
        };
        let here = || {
            let builder = Tape::builder().host(MIB).spill(dir.path()).reopen();
            builder.codec(Arc::new(Qb::default()), Bound::Absolute(ABSOLUTE)).build().unwrap()
        };
        let mut tape = there();
        (0..6).for_each(|step| tape.push_device(step, &rest(device, &field(step, LEN))).unwrap());
        tape.save().unwrap();
        drop(tape);
        let mut tape = here();
        assert_eq!((tape.steps().unwrap(), tape.damaged()), ((0..6).collect(), &[][..]));
        (4..6).rev().for_each(|step| pop_within(&mut tape, device, step, LEN));
        (4..9).for_each(|step| tape.push(step, Values::F64(&field(step, LEN))).unwrap());
        tape.save().unwrap();
        drop(tape);
        let mut tape = there();
        (9..12).for_each(|step| tape.push_device(step, &rest(device, &field(step, LEN))).unwrap());
        (0..12).rev().for_each(|step| pop_within(&mut tape, device, step, LEN));
    });
}

/// One bit of each file is flipped: each is an error that names its step, and costs no other state.
#[test]
fn damaged_payloads_are_named_and_cost_their_own_state() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let builder = || {
            let builder = Tape::builder().device(64 * KIB as u64).on(device).spill(dir.path()).reopen();
            builder.codec(CountedQb::open(), Bound::Absolute(ABSOLUTE)).build().unwrap()
        };
        let mut tape = builder();
        (0..6).for_each(|step| tape.push_device(step, &rest(device, &field(step, LEN))).unwrap());
        tape.save().unwrap();
        drop(tape);
        for (name, mut bytes) in files(dir.path()).into_iter().step_by(2) {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let mut tape = builder();
        for step in (0..6).rev() {
            if step % 2 == 1 {
                pop_within(&mut tape, device, step, LEN);
                continue;
            }
            let error = tape.pop_device(&mut rest(device, &[0.0; LEN])).unwrap_err().to_string();
            assert!(error.starts_with(&format!("step {step}: ")) && error.contains("checksum"), "{error}");
            tape.forget(step).unwrap();
        }
    });
}

#[test]
fn refusals_of_a_codec_on_a_device_say_why() {
    let dir = tempfile::tempdir().unwrap();
    on_device(&Settings::default(), |device| {
        let builder = || Tape::builder().device(MIB).on(device);
        let alone = builder().codec(CountedQb::open(), Bound::Lossless).build().unwrap_err();
        assert!(matches!(alone, TapeError::CodedDevice) && alone.to_string().contains("memory of the host"), "{alone}");
        let chained = builder().host(MIB).codec(CountedQb::open(), Bound::Lossless).key_every(4).build().unwrap_err();
        assert!(chained.to_string().contains("code each alone"), "{chained}");
        let mut tape = builder().host(MIB).codec(CountedQb::open(), Bound::Absolute(-1.0)).build().unwrap();
        let bound = push(&mut tape, 4, 10).unwrap_err();
        assert!(matches!(bound, TapeError::Codec { step: 4, .. }), "{bound}");
        drop(tape);
        // Chains that a tape of the host has spilled.
        let host =
            Tape::builder().host(MIB).spill(dir.path()).codec(Arc::new(Qb::default()), Bound::Absolute(ABSOLUTE));
        let mut tape = host.key_every(3).build().unwrap();
        (0..3).for_each(|step| tape.push(step, Values::F64(&field(0, LEN))).unwrap());
        tape.save().unwrap();
        drop(tape);
        let builder = builder().spill(dir.path()).reopen().codec(CountedQb::open(), Bound::Absolute(ABSOLUTE));
        let mut tape = builder.build().unwrap();
        tape.turn().unwrap();
        for step in [2, 1] {
            let error = tape.pop(ValuesMut::F64(&mut [0.0; LEN])).unwrap_err();
            assert!(matches!(error, TapeError::ChainedDevice), "step {step}: {error}");
            tape.forget(step).unwrap();
        }
        let mut found = vec![0.0; LEN];
        assert_eq!(tape.pop(ValuesMut::F64(&mut found)).unwrap(), 0, "the first of a chain is coded alone");
    });
}
