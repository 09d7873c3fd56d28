//! A device for a test, states to push, and a program that pushes and pops them.

use std::sync::Once;

use recoup_core::{Values, ValuesMut};
use recoup_cuda_double::{Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceVec, DeviceVector, Stream};
use recoup_tape::{Tape, TapeError};

pub(crate) const KIB: usize = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
/// Orders in which the double does its work, drawn from as many seeds.
const SEEDS: u64 = 100;

/// The double, unless the tests are for the machine's own device.
pub(crate) fn double() -> Option<Double> {
    abort_with_tape();
    Double::unless_real()
}

/// A thread of a tape that panics ends the tests: the tape would make an error of it.
fn abort_with_tape() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            if std::thread::current().name() == Some("recoup-tape") {
                std::process::abort();
            }
        }));
    });
}

/// Runs `test` on a device, as [`Double::on_device`] says.
pub(crate) fn on_device(settings: &Settings, test: impl FnOnce(&Device)) -> Option<DoubleReport> {
    abort_with_tape();
    Double::on_device(settings, || test(&Device::open(0).unwrap()))
}

/// Runs `test` in the orders of all seeds; once on the machine's own device.
pub(crate) fn in_every_order(test: impl Fn(&Device, u64)) {
    for seed in 0..SEEDS {
        if on_device(&Settings { seed, ..Settings::default() }, |device| test(device, seed)).is_none() {
            return;
        }
    }
}

/// Values of a state, which no other state has.
pub(crate) fn state(step: u64, len: usize) -> Vec<f64> {
    (0..len).map(|i| (step as f64 + 0.5) * 1e6 + i as f64).collect()
}

/// Number of values of a state: between 1 and `most`, different from step to step.
pub(crate) fn length(step: u64, most: usize) -> usize {
    let mixed = (step + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    1 + mixed as usize % most
}

/// A program whose vector lies on the device.
pub(crate) struct DeviceProgram {
    pub(crate) vector: DeviceVector<f64>,
}

impl DeviceProgram {
    pub(crate) fn start(device: &Device, len: usize) -> Self {
        let stream = Stream::new(device).unwrap();
        Self { vector: DeviceVector::new(DeviceVec::zeros(&stream, len).unwrap(), stream) }
    }

    /// Computes a state, pushes it, and overwrites it at once.
    pub(crate) fn push(&mut self, tape: &mut Tape, step: u64) -> Result<(), TapeError> {
        let len = self.vector.view().len();
        self.vector.upload(&state(step, len)).unwrap();
        let pushed = tape.push_device(step, &self.vector);
        let stream = self.vector.stream().clone();
        stream.fill_zero(&mut self.vector.write().unwrap()).unwrap();
        pushed
    }

    /// Pops a state, and returns its step after a look at its values.
    pub(crate) fn pop(&mut self, tape: &mut Tape) -> Result<u64, TapeError> {
        let step = tape.pop_device(&mut self.vector)?;
        self.check(step);
        Ok(step)
    }

    /// Compares the vector with a state, bit for bit.
    pub(crate) fn check(&self, step: u64) {
        let mut found = vec![0.0; self.vector.view().len()];
        self.vector.download(&mut found).unwrap();
        assert!(found == state(step, found.len()), "step {step}");
    }
}

/// Pushes a state of the host.
pub(crate) fn push(tape: &mut Tape, step: u64, len: usize) -> Result<(), TapeError> {
    tape.push(step, Values::F64(&state(step, len)))
}

/// Pops a state to the host, where its step is known, and compares it bit for bit.
pub(crate) fn pop(tape: &mut Tape, step: u64, len: usize) -> Result<(), TapeError> {
    let mut found = vec![0.0; len];
    assert_eq!(tape.pop(ValuesMut::F64(&mut found))?, step);
    assert!(found == state(step, len), "step {step}");
    Ok(())
}
