//! An array on a CUDA device, as the CUDA array interface or DLPack describes it.

use numpy::PyUntypedArray;
use pyo3::prelude::*;
use recoup::core::{DeviceValues, ElementType};

use crate::dlpack::{DeviceTensor, is_exported};
use crate::refused;

/// The attribute of arrays on a CUDA device: CuPy's, PyTorch's, Numba's.
const INTERFACE: &str = "__cuda_array_interface__";

/// An array on a device.
pub(crate) struct DeviceArray {
    /// The array, or the tensor it gave: keeps the memory while the array is protected.
    _owner: Box<dyn Send + Sync>,
    address: usize,
    pub(crate) element: ElementType,
    pub(crate) shape: Vec<usize>,
    n_values: usize,
}

impl DeviceArray {
    /// Takes an array that says it is on a device. `None` for NumPy's, and for what is no array.
    ///
    /// # Errors
    /// [`crate::Error`] for an array that cannot be saved from its place and restored to it, and
    /// the errors of the array itself.
    pub(crate) fn of(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let is_numpy = array.is_instance_of::<PyUntypedArray>();
        if let Some(interface) = array.getattr_opt(INTERFACE)? {
            Self::by_interface(name, array, &interface).map(Some)
        } else if !is_numpy && is_exported(array)? {
            Self::by_tensor(name, array).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Takes an array as its interface describes it.
    fn by_interface(name: &str, array: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> PyResult<Self> {
        let typestr: String = interface.get_item("typestr")?.extract()?;
        let shape: Vec<usize> = interface.get_item("shape")?.extract()?;
        let (address, is_read_only): (usize, bool) = interface.get_item("data")?.extract()?;
        let element = match typestr.trim_start_matches(['<', '|', '=']) {
            "f8" => ElementType::F64,
            "f4" => ElementType::F32,
            "i8" => ElementType::I64,
            "u1" => ElementType::Bytes,
            other => {
                let expected = "expected float64, float32, int64 or uint8";
                return Err(refused(format!("array {name} is of type {other}, {expected}")));
            }
        };
        if is_read_only {
            return Err(refused(format!("array {name} is read-only: restore could not write to it")));
        }
        let strides: Option<Vec<isize>> = interface.call_method1("get", ("strides",))?.extract()?;
        let n_values = n_values_in_order(name, &shape, strides.as_deref(), element.size())?;
        Self { _owner: Box::new(array.clone().unbind()), address, element, shape, n_values }.found(name)
    }

    /// Takes an array as its tensor describes it.
    fn by_tensor(name: &str, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let DeviceTensor { address, element, shape, strides, owner } = DeviceTensor::of(name, array)?;
        let n_values = n_values_in_order(name, &shape, strides.as_deref(), 1)?;
        Self { _owner: Box::new(owner), address, element, shape, n_values }.found(name)
    }

    /// Checks that the memory can be borrowed.
    fn found(self, name: &str) -> PyResult<Self> {
        self.borrow(name)?;
        Ok(self)
    }

    /// Borrows the memory, once the program's work on the device is done.
    pub(crate) fn borrow(&self, name: &str) -> PyResult<Box<dyn DeviceValues>> {
        let found = recoup::device_memory(self.address, self.element, self.n_values);
        let found = found.map_err(|error| refused(format!("array {name}: {error}")))?;
        found.ok_or_else(|| {
            let what = "is on a device, it says, but no CUDA driver of this process knows its memory";
            refused(format!("array {name} {what}"))
        })
    }
}

/// Returns the number of values of an array in C order; strides are in units of which a value has
/// `size`, `None` for C order.
///
/// # Errors
/// [`crate::Error`] for values that do not follow each other in C order, and for more of them than
/// memory can have.
fn n_values_in_order(name: &str, shape: &[usize], strides: Option<&[isize]>, size: usize) -> PyResult<usize> {
    let bytes = shape.iter().try_fold(size_of::<f64>(), |bytes, extent| bytes.checked_mul(*extent));
    let bytes =
        bytes.ok_or_else(|| refused(format!("array {name} has the extents {shape:?}, more than memory has")))?;
    if strides.is_some_and(|strides| !is_contiguous(shape, strides, size)) {
        return Err(refused(format!("array {name} is not contiguous in C order: protect a copy of it")));
    }
    Ok(bytes / size_of::<f64>())
}

fn is_contiguous(shape: &[usize], strides: &[isize], size: usize) -> bool {
    let mut expected = size;
    shape.len() == strides.len()
        && shape.iter().zip(strides).rev().all(|(extent, stride)| {
            let is_next = *extent == 1 || usize::try_from(*stride) == Ok(expected);
            expected *= extent;
            is_next
        })
}
