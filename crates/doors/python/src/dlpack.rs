//! Arrays of other libraries by DLPack, the protocol CuPy, PyTorch and JAX share.
//!
//! A tensor is taken from its capsule once, held while it is protected, and given back once.

#[expect(unsafe_code, reason = "tensors of other libraries are C structures behind a pointer")]
mod sys;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use recoup::core::ElementType;

use crate::refused;
pub(crate) use sys::SharedTensor;
use sys::{TensorDescription, TensorType};

const EXPORT: &str = "__dlpack__";

/// Kinds of memory, by the protocol's numbers: of a CUDA device, and managed by its driver.
const ON_DEVICE: [i32; 2] = [2, 13];
/// Memory of the host: plain, and pinned by CUDA.
const ON_HOST: [i32; 2] = [1, 3];

/// The legacy default stream: what the producer has computed is ordered before it, and each call of
/// a session waits for all streams.
const STREAM: i32 = 1;

/// The newest version of the protocol that is understood.
const VERSION: [u32; 2] = [1, 0];

const IS_READ_ONLY: u64 = 1;
const IS_COPY: u64 = 2;

/// A tensor on a device, and where its values are.
pub(crate) struct DeviceTensor {
    pub(crate) address: usize,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    /// Counted in values; `None` for C order.
    pub(crate) strides: Option<Vec<isize>>,
    /// The tensor, which keeps the memory.
    pub(crate) owner: SharedTensor,
}

/// Returns whether an array can be asked for a tensor.
pub(crate) fn is_exported(array: &Bound<'_, PyAny>) -> PyResult<bool> {
    array.hasattr(EXPORT)
}

impl DeviceTensor {
    /// Takes the tensor of an array.
    ///
    /// # Errors
    /// [`crate::Error`] for one that is not on a CUDA device, or that a session cannot write to;
    /// the errors of the array as they are.
    pub(crate) fn of(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        expect_device(name, array.call_method0("__dlpack_device__")?.get_item(0)?.extract()?)?;
        let exported = export(array)?;
        let taken = exported.cast::<PyCapsule>().ok().and_then(|capsule| SharedTensor::take(capsule).ok());
        let owner = taken.ok_or_else(|| refused(format!("array {name}: {EXPORT} gave no new tensor")))?;
        let described = owner.describe().map_err(|major| {
            let [expected, _] = VERSION;
            refused(format!("array {name}: DLPack of version {expected} expected, version {major} found"))
        })?;
        expect_device(name, described.device_kind)?;
        expect_writable(name, described.flags)?;
        let TensorDescription { address, shape, strides, .. } = described;
        let element = element_of(name, described.element)?;
        let extents: Result<Vec<usize>, _> = shape.iter().map(|extent| usize::try_from(*extent)).collect();
        let shape = extents.map_err(|_| refused(format!("array {name} has the extents {shape:?}")))?;
        let strides = strides.map(|strides| strides.into_iter().map(|stride| stride as isize).collect());
        Ok(Self { address, element, shape, strides, owner })
    }
}

/// Asks an array for a capsule, in the words of version 1 of the protocol or in those before.
fn export<'py>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let words = PyDict::new(array.py());
    words.set_item("stream", STREAM)?;
    let oldest = words.copy()?;
    words.set_item("max_version", (VERSION[0], VERSION[1]))?;
    words.set_item("copy", false)?;
    match array.call_method(EXPORT, (), Some(&words)) {
        Err(error) if error.is_instance_of::<PyTypeError>(array.py()) => array.call_method(EXPORT, (), Some(&oldest)),
        exported => exported,
    }
}

fn expect_device(name: &str, kind: i32) -> PyResult<()> {
    if ON_DEVICE.contains(&kind) {
        return Ok(());
    }
    Err(refused(if ON_HOST.contains(&kind) {
        format!("array {name} is in memory of the host: protect numpy.from_dlpack of it")
    } else {
        format!("array {name} is on a device of DLPack's kind {kind}, expected CUDA (2): protect a copy on the host")
    }))
}

fn expect_writable(name: &str, flags: u64) -> PyResult<()> {
    if flags & IS_READ_ONLY != 0 {
        return Err(refused(format!("array {name} is read-only: restore could not write to it")));
    }
    if flags & IS_COPY != 0 {
        return Err(refused(format!("array {name} gave a copy of its values: restore could not write to the array")));
    }
    Ok(())
}

fn element_of(name: &str, element: TensorType) -> PyResult<ElementType> {
    let TensorType { code, bits, lanes } = element;
    Ok(match (code, bits, lanes) {
        (2, 64, 1) => ElementType::F64,
        (2, 32, 1) => ElementType::F32,
        (0, 64, 1) => ElementType::I64,
        (1, 8, 1) => ElementType::Bytes,
        _ => {
            let kinds = ["int", "uint", "float", "handle", "bfloat", "complex", "bool"];
            let kind = kinds.get(usize::from(code));
            let found = kind.map_or_else(|| format!("number {code}"), |kind| format!("{kind}{bits}"));
            let lanes = if lanes == 1 { String::new() } else { format!(" in lanes of {lanes}") };
            let expected = "expected float64, float32, int64 or uint8";
            return Err(refused(format!("array {name} is of type {found}{lanes}, {expected}")));
        }
    })
}
