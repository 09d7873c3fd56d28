//! The calls recoup_tape_*: states of a forward pass, given back in reverse or as announced.

use std::ffi::{c_char, c_void};
use std::sync::Mutex;

use recoup::core::{Borrowed, BorrowedMut};
use recoup::tape::{PlaceError, StateShape, Tape, TapeError};

use crate::calls::{answer, answer_or, out, text, write_line};
use crate::numbers::Numbered;
use crate::protected::{LentMemory, LentType, RECOUP_I64};
use crate::status::{CallFailure, RECOUP_E_DAMAGED, RECOUP_E_INTERNAL, RECOUP_EMPTY, RECOUP_OK, guarded, write_if};
use crate::tape_options::TapeOptions;

/// A tape: states that a program pushes in its forward pass and pops in its reverse. 0 is none.
/// Tapes are not used again after recoup_tape_close.
pub type RecoupTape = u64;

/// Counts, bytes and seconds of a tape so far.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecoupTapeReport {
    /// States on the tape.
    pub states: u64,
    /// States that were pushed.
    pub pushed: u64,
    /// States that were popped.
    pub popped: u64,
    /// Files that recoup_tape_open found damaged: recoup_tape_damaged names them.
    pub damaged: u64,
    /// Bytes of the values that were pushed.
    pub raw_bytes: u64,
    /// Bytes that the states on the tape take now.
    pub stored_bytes: u64,
    /// Seconds the program waited in recoup_tape_push.
    pub seconds_push: f64,
    /// Seconds the program waited in recoup_tape_pop and recoup_tape_peek.
    pub seconds_pop: f64,
}

/// A tape and its description.
struct OpenTape {
    tape: Tape,
    has_directory: bool,
}

static TAPES: Numbered<Mutex<Option<OpenTape>>> = Numbered::new("tape");

/// Opens a tape, and writes it to `tape`.
///
/// `options` are words as in "host=4GiB spill=states codec=qb bound=absolute:1e-6". Room: device
/// (bytes of the first CUDA device's memory), host (bytes of memory, which come to be while they
/// are used), spill (a directory for what memory does not hold; one tape uses it at a time) and
/// spill-bytes; device, host or spill must be there. States of an earlier run in the directory:
/// reopen=yes continues with them, clear=yes removes them, and without either the tape is refused
/// if there are some. Codec: codec (raw, zstd, qb ..), bound (lossless, which is the default,
/// absolute:V, range:V or pointwise:V), key-every (each state between two keys is coded against the
/// one before), threads, and grid (100x100x50, the fastest extent first; each state then has as
/// many values). With device, states are coded when they leave it, each alone: host or spill must
/// be there, and key-every is refused. pages (huge or small), and lock-memory (a file: memory is
/// locked, in turn with other processes that name the same file).
///
/// RECOUP_E_ARGUMENT, RECOUP_E_OPTIONS, RECOUP_E_STORE, RECOUP_E_FULL.
///
/// # Safety
/// `options` is NULL or a C string, `tape` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_open(options: *const c_char, tape: *mut RecoupTape) -> i32 {
    let open = || {
        // SAFETY: as the caller promises.
        let options: TapeOptions = unsafe { text("options", options) }?.parse()?;
        let open = OpenTape { tape: options.build()?, has_directory: options.spill.is_some() };
        Ok(TAPES.insert(Mutex::new(Some(open))))
    };
    // SAFETY: as the caller promises.
    unsafe { answer("tape", tape, open) }
}

/// Pushes the state of a step: `count` values of `type` at `values`, in memory of the host or of a
/// CUDA device, which are copied. Returns when they are; memory, the codec and the directory work
/// behind the program. With a codec, the error of a push may be returned by a later call: then the
/// state that the message names is not on the tape.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_STEP, RECOUP_E_FULL, RECOUP_E_STORE,
/// RECOUP_E_OPTIONS for values that the codec refuses.
///
/// # Safety
/// `values` has `count` values of `type`, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_push(
    tape: RecoupTape,
    step: u64,
    r#type: i32,
    values: *const c_void,
    count: u64,
) -> i32 {
    guarded(|| {
        TAPES.with(tape, |open| {
            let memory = state_memory(step, r#type, values.cast_mut(), count)?;
            match memory.lend() {
                Borrowed::Host(values) => open.tape.push(step, values)?,
                Borrowed::Device(values) => open.tape.push_device(step, values)?,
            }
            Ok(())
        })
    })
}

/// Writes the step that the next recoup_tape_pop gives back: as announced, else the newest one.
///
/// RECOUP_EMPTY when there is none, and nothing is written; RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `step` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_next(tape: RecoupTape, step: *mut u64) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { answer_or("step", step, RECOUP_EMPTY, || TAPES.with(tape, |open| Ok(open.tape.next_step()?))) }
}

/// Writes type and number of the values of a step.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_STEP, RECOUP_E_DAMAGED.
///
/// # Safety
/// `type` and `count` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_shape(tape: RecoupTape, step: u64, r#type: *mut i32, count: *mut u64) -> i32 {
    guarded(|| {
        TAPES.with(tape, |open| {
            let type_target = out("type", r#type)?;
            let count_target = out("count", count)?;
            let shape = open.tape.shape(step).map_err(|error| reading_failure(&open.tape, error));
            let StateShape { element, dims } = shape?;
            let code = LentType::code(element);
            let code = code.ok_or_else(|| CallFailure::new(RECOUP_E_INTERNAL, format!("no code for {element}")))?;
            // SAFETY: neither is NULL, and both are the caller's to be written.
            unsafe {
                type_target.write(code);
                count_target.write(dims.iter().product::<usize>() as u64);
            }
            Ok(RECOUP_OK)
        })
    })
}

/// Pops the state that recoup_tape_next names: writes its values to `into`, which has room for
/// `capacity` values of `type` in memory of the host or of a CUDA device, and its step to `step`,
/// which may be NULL. A state that cannot be given out whole stays on the tape; recoup_tape_forget
/// drops it.
///
/// RECOUP_EMPTY when all states were popped, and nothing is written; RECOUP_E_HANDLE,
/// RECOUP_E_ARGUMENT, RECOUP_E_MISMATCH for another type or too little room, RECOUP_E_DAMAGED,
/// RECOUP_E_OPTIONS for a state that another codec has coded.
///
/// # Safety
/// `into` has room for `capacity` values of `type`, unless it is NULL; `step` is NULL or can be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_pop(
    tape: RecoupTape,
    r#type: i32,
    into: *mut c_void,
    capacity: u64,
    step: *mut u64,
) -> i32 {
    guarded(|| {
        TAPES.with(tape, |OpenTape { tape, .. }| {
            let target = if step.is_null() { None } else { Some(out("step", step)?) };
            let Some(next) = tape.next_step()? else { return Ok(RECOUP_EMPTY) };
            let mut memory = room(tape, next, r#type, into, capacity)?;
            let popped = match memory.lend_mut() {
                BorrowedMut::Host(values) => tape.pop(values),
                BorrowedMut::Device(values) => tape.pop_device(values),
            };
            let popped = popped.map_err(|error| reading_failure(tape, error))?;
            // SAFETY: the caller\'s to be written.
            unsafe { write_if(target, popped) };
            Ok(RECOUP_OK)
        })
    })
}

/// Reads the state of a step as recoup_tape_pop does. It stays on the tape.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_STEP, RECOUP_E_MISMATCH, RECOUP_E_DAMAGED,
/// RECOUP_E_OPTIONS.
///
/// # Safety
/// `into` has room for `capacity` values of `type`, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_peek(
    tape: RecoupTape,
    step: u64,
    r#type: i32,
    into: *mut c_void,
    capacity: u64,
) -> i32 {
    guarded(|| {
        TAPES.with(tape, |OpenTape { tape, .. }| {
            let mut memory = room(tape, step, r#type, into, capacity)?;
            let read = match memory.lend_mut() {
                BorrowedMut::Host(values) => tape.peek(step, values),
                BorrowedMut::Device(values) => tape.peek_device(step, values),
            };
            read.map_err(|error| reading_failure(tape, error))
        })
    })
}

/// Drops the state of a step.
///
/// RECOUP_E_HANDLE, RECOUP_E_STEP, RECOUP_E_ORDER if another state was coded against it.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_tape_forget(tape: RecoupTape, step: u64) -> i32 {
    guarded(|| TAPES.with(tape, |open| Ok(open.tape.forget(step)?)))
}

/// Announces the steps of the next pops, in their order; states that are not named follow in
/// reverse.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_STEP, RECOUP_E_ORDER where states are coded against
/// each other.
///
/// # Safety
/// `steps` has `count` steps, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_announce(tape: RecoupTape, steps: *const u64, count: u64) -> i32 {
    guarded(|| {
        TAPES.with(tape, |open| {
            steps_memory(steps.cast_mut(), count)?;
            // SAFETY: as the caller promises; an empty slice needs no memory.
            let steps = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(steps, count as usize) } };
            Ok(open.tape.announce(steps)?)
        })
    })
}

/// Begins to fetch the states that are popped next, before the first pop.
///
/// RECOUP_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_tape_turn(tape: RecoupTape) -> i32 {
    guarded(|| TAPES.with(tape, |open| Ok(open.tape.turn()?)))
}

/// Waits until the spill directory has all states, and makes them durable: they outlive the process
/// and a loss of power. The tape continues.
///
/// RECOUP_E_HANDLE, RECOUP_E_STORE, also without a directory.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_tape_save(tape: RecoupTape) -> i32 {
    guarded(|| TAPES.with(tape, |open| Ok(open.tape.save()?)))
}

/// Writes the number of states on the tape, with those that wait for the codec.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `count` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_count(tape: RecoupTape, count: *mut u64) -> i32 {
    // SAFETY: as the caller promises.
    unsafe { answer("count", count, || TAPES.with(tape, |open| Ok(open.tape.len() as u64))) }
}

/// Writes the steps on the tape to `steps`, which has room for `capacity`, in the order of their
/// pushes, and their number to `count`.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT if there are more than `capacity`.
///
/// # Safety
/// `steps` has room for `capacity` steps, unless it is NULL; `count` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_steps(tape: RecoupTape, steps: *mut u64, capacity: u64, count: *mut u64) -> i32 {
    guarded(|| {
        TAPES.with(tape, |open| {
            let target = out("count", count)?;
            steps_memory(steps, capacity)?;
            let found = open.tape.steps()?;
            if found.len() as u64 > capacity {
                let what = format!("{} steps are on the tape, room for {capacity} was given", found.len());
                return Err(CallFailure::argument(what));
            }
            // SAFETY: there is room for as many, and `count` is the caller's to be written.
            unsafe {
                if !found.is_empty() {
                    steps.copy_from_nonoverlapping(found.as_ptr(), found.len());
                }
                target.write(found.len() as u64);
            }
            Ok(RECOUP_OK)
        })
    })
}

/// Writes the counts, bytes and seconds of a tape so far.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `report` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_report(tape: RecoupTape, report: *mut RecoupTapeReport) -> i32 {
    let found = || {
        TAPES.with(tape, |open| {
            let found = open.tape.report();
            Ok(RecoupTapeReport {
                states: open.tape.len() as u64,
                pushed: found.n_pushed,
                popped: found.n_popped,
                damaged: open.tape.damaged().len() as u64,
                raw_bytes: found.raw_bytes,
                stored_bytes: found.stored_bytes,
                seconds_push: found.push_time.as_secs_f64(),
                seconds_pop: found.pop_time.as_secs_f64(),
            })
        })
    };
    // SAFETY: as the caller promises.
    unsafe { answer("report", report, found) }
}

/// Writes the name of a damaged file that recoup_tape_open found, and what is wrong with it, to
/// `line`, which has room for `capacity` characters with the zero at its end. A longer line is cut.
/// `index` counts from 0. Such files stay where they are.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT.
///
/// # Safety
/// `line` has room for `capacity` characters, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_tape_damaged(tape: RecoupTape, index: u64, line: *mut c_char, capacity: u64) -> i32 {
    guarded(|| {
        TAPES.with(tape, |open| {
            let damaged = open.tape.damaged();
            let found = usize::try_from(index).ok().and_then(|index| damaged.get(index));
            let found = found.ok_or_else(|| {
                CallFailure::argument(format!("file {index}: {} were found damaged, counted from 0", damaged.len()))
            })?;
            // SAFETY: as the caller promises.
            unsafe { write_line(&format!("{}: {}", found.path.display(), found.reason), line, capacity) }
        })
    })
}

/// Closes a tape, whatever the code. Its number is never used again. States that are still on it
/// are saved first if it has a directory, as recoup_tape_save does; without one they are gone.
///
/// RECOUP_E_HANDLE, RECOUP_E_STORE.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_tape_close(tape: RecoupTape) -> i32 {
    guarded(|| match TAPES.close(tape)? {
        Some(mut open) if open.has_directory => Ok(open.tape.save()?),
        _ => Ok(()),
    })
}

/// The values of a state, in memory of the host or of a device.
fn state_memory(step: u64, code: i32, start: *mut c_void, count: u64) -> Result<LentMemory, CallFailure> {
    LentMemory::of(code, start, count).map_err(|what| CallFailure::argument(format!("step {step}: {what}")))
}

/// The room for the state of a step: as many values as it has, if there are as many.
fn room(tape: &Tape, step: u64, code: i32, start: *mut c_void, capacity: u64) -> Result<LentMemory, CallFailure> {
    let memory = state_memory(step, code, start, capacity)?;
    let n_values = tape.shape(step).map_err(|error| reading_failure(tape, error))?.dims.iter().product();
    memory.first(n_values).map_err(|what| CallFailure::argument(format!("step {step}: {what}")))
}

/// Refuses an address and a count that cannot be steps.
fn steps_memory(steps: *mut u64, count: u64) -> Result<(), CallFailure> {
    LentMemory::of(RECOUP_I64, steps.cast(), count)
        .map(|_| ())
        .map_err(|_| CallFailure::argument(format!("no {count} steps can be at {steps:p}")))
}

/// Tells a state that cannot be read from one that an earlier push could not write.
fn reading_failure(tape: &Tape, error: TapeError) -> CallFailure {
    let is_damaged = match &error {
        TapeError::Place { step, source: PlaceError::Copy { .. } } => tape.contains(*step),
        _ => false,
    };
    let failure = CallFailure::from(error);
    if is_damaged { CallFailure { code: RECOUP_E_DAMAGED, ..failure } } else { failure }
}
