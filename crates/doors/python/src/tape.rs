//! A tape of NumPy arrays.
//!
//! Each call that waits or works lets the interpreter go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::MutexGuard;

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use recoup::core::{DeviceValues, ElementType};
use recoup::tape::{Tape, TapeError};

use crate::device_array::DeviceArray;
use crate::host_array::{HostArray, HostArrayMut, dims};
use crate::own_state::OwnState;
use crate::tape_arguments::TapeArguments;
use crate::{failed, not_held, refused};

/// The tape that `Tape` of the Python half wraps.
#[pyclass(frozen, name = "Tape", module = "recoup._native")]
pub(crate) struct PyTape {
    /// `None` once it is closed.
    tape: OwnState<Option<Tape>>,
}

/// The tape for the time of a call.
struct LockedTape<'a>(MutexGuard<'a, Option<Tape>>);

impl LockedTape<'_> {
    /// Calls `work` without the interpreter.
    fn detached<T: Send>(
        &mut self,
        py: Python<'_>,
        work: impl FnOnce(&mut Tape) -> Result<T, TapeError> + Send,
    ) -> PyResult<T> {
        let tape = self.0.as_mut().ok_or_else(|| refused("the tape is closed"))?;
        py.detach(|| work(tape)).map_err(|error| match error {
            TapeError::Unknown { .. } => not_held(error),
            error => failed(error),
        })
    }
}

impl PyTape {
    fn locked(&self) -> PyResult<LockedTape<'_>> {
        self.tape.locked("tape", "made", "make one of its own").map(LockedTape)
    }

    /// Calls `ask`, which does not wait.
    fn asked<T>(&self, ask: impl FnOnce(&Tape) -> T) -> PyResult<T> {
        self.locked()?.0.as_ref().map(ask).ok_or_else(|| refused("the tape is closed"))
    }
}

#[pymethods]
impl PyTape {
    #[new]
    fn new(py: Python<'_>, options: TapeArguments) -> PyResult<Self> {
        let builder = options.builder()?;
        let tape = py.detach(|| builder.build()).map_err(failed)?;
        Ok(Self { tape: OwnState::new(Some(tape)) })
    }

    /// Pushes the values of a contiguous array; extents of its grid, the fastest first.
    fn push(&self, py: Python<'_>, step: u64, array: &Bound<'_, PyUntypedArray>, dims: [usize; 3]) -> PyResult<()> {
        let array = HostArray::of("state", array)?;
        let values = array.values()?;
        self.locked()?.detached(py, |tape| tape.push_shaped(step, values, dims))
    }

    /// Pops the next state into a contiguous array. Returns its step.
    fn pop(&self, py: Python<'_>, out: &Bound<'_, PyUntypedArray>) -> PyResult<u64> {
        let mut out = HostArrayMut::of("out", out)?;
        let target = out.values_mut()?;
        self.locked()?.detached(py, |tape| tape.pop(target))
    }

    /// Reads a state into a contiguous array.
    fn peek(&self, py: Python<'_>, step: u64, out: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
        let mut out = HostArrayMut::of("out", out)?;
        let target = out.values_mut()?;
        self.locked()?.detached(py, |tape| tape.peek(step, target))
    }

    /// Pushes the values of an array on a device. Returns its shape.
    fn push_device(
        &self,
        py: Python<'_>,
        step: u64,
        array: &Bound<'_, PyAny>,
        grid: Option<[usize; 3]>,
    ) -> PyResult<Vec<usize>> {
        let array = DeviceArray::of("state", array)?.ok_or_else(|| refused("array state is on no device"))?;
        let values = array.borrow("state")?;
        let extents = grid.unwrap_or_else(|| dims(&array.shape));
        self.locked()?.detached(py, |tape| tape.push_device_shaped(step, &*values, extents))?;
        Ok(array.shape)
    }

    /// Pops the next state into an array on a device. Returns its step.
    fn pop_device(&self, py: Python<'_>, out: &Bound<'_, PyAny>) -> PyResult<u64> {
        let mut target = device_target(out)?;
        self.locked()?.detached(py, |tape| tape.pop_device(&mut *target))
    }

    /// Reads a state into an array on a device.
    fn peek_device(&self, py: Python<'_>, step: u64, out: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut target = device_target(out)?;
        self.locked()?.detached(py, |tape| tape.peek_device(step, &mut *target))
    }

    /// Returns the step that is popped next.
    fn next_step(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        self.locked()?.detached(py, |tape| tape.next_step())
    }

    /// Returns the NumPy type and the extents of a state, the fastest first.
    fn shape(&self, py: Python<'_>, step: u64) -> PyResult<(&'static str, [usize; 3])> {
        let shape = self.locked()?.detached(py, |tape| tape.shape(step))?;
        let dtype = match shape.element {
            ElementType::F64 => "float64",
            ElementType::F32 => "float32",
            ElementType::I64 => "int64",
            ElementType::Bytes => "uint8",
        };
        Ok((dtype, shape.dims))
    }

    /// Drops a state.
    fn forget(&self, py: Python<'_>, step: u64) -> PyResult<()> {
        self.locked()?.detached(py, |tape| tape.forget(step))
    }

    /// Announces the next pops.
    fn announce(&self, py: Python<'_>, steps: Vec<u64>) -> PyResult<()> {
        self.locked()?.detached(py, |tape| tape.announce(&steps))
    }

    /// Begins to fetch the states that are popped next.
    fn turn(&self, py: Python<'_>) -> PyResult<()> {
        self.locked()?.detached(py, Tape::turn)
    }

    /// Waits until all states are durable in the spill directory.
    fn save(&self, py: Python<'_>) -> PyResult<()> {
        self.locked()?.detached(py, Tape::save)
    }

    /// Returns the steps on the tape, in the order of their pushes.
    fn steps(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.locked()?.detached(py, |tape| tape.steps())
    }

    /// Returns the number of states on the tape.
    fn len(&self) -> PyResult<usize> {
        self.asked(Tape::len)
    }

    /// Returns whether a state is on the tape.
    fn contains(&self, step: u64) -> PyResult<bool> {
        self.asked(|tape| tape.contains(step))
    }

    /// Returns the files that were found damaged, each with the finding.
    fn damaged(&self) -> PyResult<Vec<(PathBuf, String)>> {
        self.asked(|tape| tape.damaged().iter().map(|state| (state.path.clone(), state.reason.clone())).collect())
    }

    /// Returns the counts of the account.
    fn counts(&self, py: Python<'_>) -> PyResult<BTreeMap<&'static str, u64>> {
        let report = self.locked()?.detached(py, |tape| Ok(tape.report()))?;
        Ok(BTreeMap::from([
            ("n_pushed", report.n_pushed),
            ("n_popped", report.n_popped),
            ("raw_bytes", report.raw_bytes),
            ("stored_bytes", report.stored_bytes),
        ]))
    }

    /// Returns the seconds that the program waited in pushes, and in pops and peeks.
    fn waited(&self, py: Python<'_>) -> PyResult<(f64, f64)> {
        let report = self.locked()?.detached(py, |tape| Ok(tape.report()))?;
        Ok((report.push_time.as_secs_f64(), report.pop_time.as_secs_f64()))
    }

    /// Ends the tape. States that are stored in the spill directory stay there.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let tape = self.locked()?.0.take();
        py.detach(|| tape.map_or(Ok(()), Tape::close)).map_err(failed)
    }
}

/// Borrows the memory of an array on a device, which the caller keeps.
fn device_target(out: &Bound<'_, PyAny>) -> PyResult<Box<dyn DeviceValues>> {
    DeviceArray::of("out", out)?.ok_or_else(|| refused("array out is on no device"))?.borrow("out")
}

impl Drop for PyTape {
    fn drop(&mut self) {
        self.tape.end(Option::take);
    }
}
