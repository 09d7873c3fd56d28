//! Streams that run as late, and in as odd an order, as they may.

use recoup_tape::Tape;

use super::support::{DeviceProgram, KIB, in_every_order, length, pop};

/// The program never waits: it overwrites its vector after each push, and pops to it while copies
/// of the states before are under way. Places are used again and again.
#[test]
fn states_come_back_whatever_the_order_in_which_streams_run() {
    let dir = tempfile::tempdir().unwrap();
    in_every_order(|device, seed| {
        let spill = dir.path().join(seed.to_string());
        let builder = Tape::builder().device(160 * KIB as u64).on(device).host(200 * KIB as u64);
        let mut tape = builder.spill(spill).build().unwrap();
        let mut program = DeviceProgram::start(device, 4 * KIB);
        for step in 0..16 {
            program.push(&mut tape, step).unwrap();
            if step % 4 == 3 {
                tape.peek_device(step - 1, &mut program.vector).unwrap();
                if seed.is_multiple_of(2) {
                    program.check(step - 1);
                }
            }
            if step % 5 == 4 {
                assert_eq!(program.pop(&mut tape).unwrap(), step);
                program.push(&mut tape, step).unwrap();
            }
        }
        for step in (0..16).rev() {
            if (seed + step).is_multiple_of(3) {
                pop(&mut tape, step, 4 * KIB).unwrap();
            } else {
                assert_eq!(program.pop(&mut tape).unwrap(), step);
            }
        }
    });
}

/// Pops are not waited for: the next push takes their places.
#[test]
fn a_place_is_not_used_again_before_its_last_copy_is_done() {
    in_every_order(|device, seed| {
        let mut tape = Tape::builder().device(40 * KIB as u64).on(device).build().unwrap();
        let [mut near, mut far] = [1, 2].map(|_| DeviceProgram::start(device, 4 * KIB));
        for step in 0..20 {
            near.push(&mut tape, step).unwrap();
            assert_eq!(tape.pop_device(&mut far.vector).unwrap(), step);
            if length(step + seed, 4) == 1 {
                far.check(step);
            }
        }
        far.check(19);
    });
}
