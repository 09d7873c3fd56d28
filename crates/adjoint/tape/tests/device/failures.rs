//! Every call of the driver that can fail does, in turn: an error or none, no wrong byte, nothing
//! lost. A lost device takes its own states with it, and no others.

use std::path::Path;

use recoup_core::{Bound, Values, ValuesMut};
use recoup_cuda_double::{CudaStatus, Double, DoubleReport, Settings};
use recoup_device::{Device, DeviceError, DeviceVec, DeviceVector, Stream, device_values_error};
use recoup_tape::{Tape, TapeBuilder, TapeError};

use super::counted_qb::CountedQb;
use super::support::{KIB, double, state};

const LEN: usize = 4 * KIB;

/// The states that a program got back.
#[derive(Debug, Default)]
struct Outcome {
    /// Pushes and pops that were errors.
    errors: Vec<String>,
    /// States that came back as they were.
    n_back: u64,
}

fn refused(error: DeviceError) -> TapeError {
    TapeError::Device(device_values_error(error))
}

/// The form of the states below the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Raw,
    Coded,
}

impl Form {
    fn describe(self, device: &Device) -> Result<TapeBuilder, TapeError> {
        let builder = Tape::builder().on(device);
        Ok(match self {
            Self::Raw => builder.device(100 * KIB as u64).host(130 * KIB as u64),
            // Coded states are small: one or two leave the host, too.
            Self::Coded => {
                let codec = CountedQb::try_open().map_err(refused)?;
                let bytes = 8 * self.len() as u64;
                builder.device(2 * bytes + 400).host(bytes + 200).codec(codec, Bound::Lossless)
            }
        })
    }

    /// Number of states. A sweep takes time by its square.
    fn states(self) -> u64 {
        match self {
            Self::Raw => 9,
            Self::Coded => 6,
        }
    }

    /// Values of a state. Those of a codec are fewer: the double interprets its kernels.
    fn len(self) -> usize {
        match self {
            Self::Raw => LEN,
            Self::Coded => LEN / 16,
        }
    }
}

/// Pushes states from host and device through all levels, and pops them to both. An error of a
/// state costs that state at most.
fn scenario(form: Form, spill: &Path) -> Result<Outcome, TapeError> {
    let device = Device::open(0).map_err(refused)?;
    let builder = form.describe(&device)?;
    let mut tape = builder.spill(spill).lock_memory(spill.with_extension("turns")).clear().build()?;
    let len = form.len();
    let stream = Stream::new(&device).map_err(refused)?;
    let mut vector = DeviceVector::new(DeviceVec::zeros(&stream, len).map_err(refused)?, stream);
    let mut outcome = Outcome::default();
    for step in 0..form.states() {
        let values = state(step, len);
        let pushed = if step.is_multiple_of(2) {
            tape.push(step, Values::F64(&values))
        } else {
            vector.upload(&values).map_err(refused)?;
            tape.push_device(step, &vector)
        };
        outcome.errors.extend(pushed.err().map(|error| error.to_string()));
    }
    tape.turn()?;
    for step in tape.steps()?.into_iter().rev() {
        outcome.take(&mut tape, step, &mut vector)?;
    }
    Ok(outcome)
}

impl Outcome {
    /// Pops a state, tries once more after an error, and then does without it.
    fn take(&mut self, tape: &mut Tape, step: u64, vector: &mut DeviceVector<f64>) -> Result<(), TapeError> {
        for _ in 0..2 {
            let mut found = vec![0.0; vector.view().len()];
            let popped = if step.is_multiple_of(3) {
                tape.pop(ValuesMut::F64(&mut found))
            } else {
                let popped = tape.pop_device(vector);
                vector.download(&mut found).map_err(refused)?;
                popped
            };
            match popped {
                Ok(popped) => {
                    assert!(popped == step && found == state(step, found.len()), "step {step}");
                    self.n_back += 1;
                    return Ok(());
                }
                Err(error) => self.errors.push(error.to_string()),
            }
        }
        tape.forget(step)
    }
}

fn run(double: &Double, form: Form, settings: &Settings, spill: &Path) -> (Result<Outcome, TapeError>, DoubleReport) {
    double.reset(settings);
    let result = scenario(form, spill);
    (result, double.report())
}

#[test]
fn every_call_that_fails_is_an_error_or_none_and_loses_no_other_state() {
    fail_every_call(Form::Raw);
}

/// A state that the device cannot encode or decode is coded on the host.
#[test]
fn every_call_that_fails_is_an_error_or_none_where_states_are_coded() {
    fail_every_call(Form::Coded);
}

fn fail_every_call(form: Form) {
    let Some(double) = double() else { return };
    let dir = tempfile::tempdir().unwrap();
    let spill = dir.path().join("spill");
    let (whole, report) = run(&double, form, &Settings::default(), &spill);
    assert_eq!(whole.unwrap().n_back, form.states());
    let calls = report.total_calls();
    assert!(calls > 200, "{report}");
    let mut told = 0;
    for (call, error) in (1..=calls).zip([CudaStatus::OutOfMemory, CudaStatus::Unknown].into_iter().cycle()) {
        let settings = Settings { fail_call: Some(call), error, ..Settings::default() };
        let (result, report) = run(&double, form, &settings, &spill);
        assert!(report.is_clean(), "call {call}: {result:?}\n{report}");
        match result {
            // Calls that give back, copies tried again, and reads from the level below.
            Ok(outcome) => {
                let n_errors = outcome.errors.len();
                assert!(n_errors <= 1 && outcome.n_back + n_errors as u64 >= form.states(), "call {call}: {outcome:?}");
                assert!(outcome.errors.iter().all(|text| text.starts_with("step ")), "call {call}: {outcome:?}");
                told += u64::from(n_errors > 0);
            }
            Err(TapeError::Device(_) | TapeError::DeviceValues { .. }) => told += 1,
            Err(other) => panic!("call {call}: {other}"),
        }
    }
    // The host takes over where the codec fails on the device, and nothing is told.
    let share = if form == Form::Coded { 12 } else { 5 };
    assert!(share * told > calls, "{told} of {calls} calls");
    let (again, report) = run(&double, form, &Settings::default(), &spill);
    assert!(again.unwrap().n_back == form.states() && report.is_clean(), "{report}");
}

#[test]
fn a_device_lost_at_any_call_costs_the_states_on_it_by_name() {
    lose_at_every_call(Form::Raw);
}

#[test]
fn a_device_lost_at_any_call_costs_no_coded_state_below_it() {
    lose_at_every_call(Form::Coded);
}

fn lose_at_every_call(form: Form) {
    let Some(double) = double() else { return };
    let dir = tempfile::tempdir().unwrap();
    let spill = dir.path().join("spill");
    let calls = run(&double, form, &Settings::default(), &spill).1.total_calls();
    let mut told = 0;
    for call in 1..=calls {
        let (result, report) = run(&double, form, &Settings { lost_at: Some(call), ..Settings::default() }, &spill);
        assert!(report.faults.is_empty() && report.races.is_empty(), "call {call}: {report}");
        match result {
            Ok(outcome) => assert!(outcome.errors.iter().all(|text| text.starts_with("step ")), "{outcome:?}"),
            Err(TapeError::Device(_)) => told += 1,
            Err(other) => panic!("call {call}: {other}"),
        }
    }
    assert!(3 * told > calls, "{told} of {calls}");
    let (again, report) = run(&double, form, &Settings::default(), &spill);
    assert!(again.unwrap().n_back == form.states() && report.is_clean(), "{report}");
}

/// All states have reached the directory, some are in memory of the host or of the device as well.
#[test]
fn states_that_are_not_only_on_a_lost_device_are_given_back() {
    let Some(double) = double() else { return };
    let dir = tempfile::tempdir().unwrap();
    for extra_calls in [1, 2, 3, 5, 8, 13, 21, 34] {
        double.reset(&Settings::default());
        let builder = Tape::builder().device(100 * KIB as u64).host(300 * KIB as u64).clear();
        let mut tape = builder.spill(dir.path()).build().unwrap();
        (0..Form::Raw.states()).for_each(|step| tape.push(step, Values::F64(&state(step, LEN))).unwrap());
        tape.save().unwrap();
        let lost_at = Some(double.report().total_calls() + extra_calls);
        double.change(&Settings { lost_at, ..Settings::default() });
        for step in (0..Form::Raw.states()).rev() {
            let mut found = vec![0.0; LEN];
            assert_eq!(tape.pop(ValuesMut::F64(&mut found)).unwrap(), step);
            assert!(found == state(step, LEN), "step {step}");
        }
    }
}

/// The device has room for one state: all before it were copied to the host. The newest one may
/// have been, too.
#[test]
fn states_only_on_a_lost_device_are_named_errors() {
    const N: u64 = 10;
    let Some(double) = double() else { return };
    for seed in 0..10 {
        double.reset(&Settings { seed, ..Settings::default() });
        let mut tape = Tape::builder().device(33 * KIB as u64).host(4 * 1024 * KIB as u64).build().unwrap();
        (0..N).for_each(|step| tape.push(step, Values::F64(&state(step, LEN))).unwrap());
        double.change(&Settings { lost_at: Some(1), ..Settings::default() });
        for step in (0..N).rev() {
            let mut found = vec![0.0; LEN];
            match tape.pop(ValuesMut::F64(&mut found)) {
                Ok(popped) => assert!(popped == step && found == state(step, LEN), "step {step}"),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.starts_with("step 9: CUDA driver: "), "{text}");
                    assert!(text.contains("DEVICE_UNAVAILABLE"), "{text}");
                    tape.forget(step).unwrap();
                }
            }
        }
        assert!(tape.is_empty());
    }
}

/// A device that holds all states takes them with it, and each is named.
#[test]
fn each_state_of_a_lost_device_is_named_and_may_be_forgotten() {
    let Some(double) = double() else { return };
    double.reset(&Settings::default());
    let mut tape = Tape::builder().device(1024 * KIB as u64).build().unwrap();
    (0..4).for_each(|step| tape.push(step, Values::F64(&state(step, LEN))).unwrap());
    double.change(&Settings { lost_at: Some(1), ..Settings::default() });
    for step in (0..4).rev() {
        let text = tape.pop(ValuesMut::F64(&mut [0.0; LEN])).unwrap_err().to_string();
        assert!(text.starts_with(&format!("step {step}: CUDA driver: ")), "{text}");
        tape.forget(step).unwrap();
    }
    let text = tape.push(9, Values::F64(&[0.0; LEN])).unwrap_err().to_string();
    assert!(text.starts_with("step 9: CUDA driver: "), "{text}");
}
