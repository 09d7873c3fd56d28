//! NumPy arrays, borrowed for the time of a call.

use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use recoup::core::{Values, ValuesMut};

use crate::refused;

/// Defines an array that is borrowed in one way, and its values.
macro_rules! host_array {
    ($(#[$doc:meta])* $name:ident, $array:ident, $borrow:ident, $(#[$values_doc:meta])* $values:ident($this:ident: $own:ty) -> $result:ident by $slice:ident) => {
        $(#[$doc])*
        pub(crate) enum $name<'py> {
            F64($array<'py, f64>),
            F32($array<'py, f32>),
            I64($array<'py, i64>),
            Bytes($array<'py, u8>),
        }

        impl<'py> $name<'py> {
            /// Borrows an array.
            ///
            /// # Errors
            /// [`crate::Error`] for one of another type than f64, f32, i64 and u8, and when it is
            /// borrowed otherwise, or not to be written.
            pub(crate) fn of(name: &str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
                let busy = |error| refused(format!("array {name}: {error}"));
                if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
                    array.$borrow().map(Self::F64).map_err(busy)
                } else if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
                    array.$borrow().map(Self::F32).map_err(busy)
                } else if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
                    array.$borrow().map(Self::I64).map_err(busy)
                } else if let Ok(array) = array.cast::<PyArrayDyn<u8>>() {
                    array.$borrow().map(Self::Bytes).map_err(busy)
                } else {
                    Err(other_type(name, array))
                }
            }

            $(#[$values_doc])*
            ///
            /// # Errors
            /// [`crate::Error`] when they do not follow each other.
            pub(crate) fn $values($this: $own) -> PyResult<$result<'_>> {
                Ok(match $this {
                    Self::F64(array) => $result::F64(array.$slice().map_err(refused)?),
                    Self::F32(array) => $result::F32(array.$slice().map_err(refused)?),
                    Self::I64(array) => $result::I64(array.$slice().map_err(refused)?),
                    Self::Bytes(array) => $result::Bytes(array.$slice().map_err(refused)?),
                })
            }
        }
    };
}

host_array! {
    /// A NumPy array borrowed to be read.
    HostArray, PyReadonlyArrayDyn, try_readonly,
    /// Returns the values.
    values(self: &Self) -> Values by as_slice
}

host_array! {
    /// A NumPy array borrowed to be written.
    HostArrayMut, PyReadwriteArrayDyn, try_readwrite,
    /// Returns the values, to be overwritten.
    values_mut(self: &mut Self) -> ValuesMut by as_slice_mut
}

fn other_type(name: &str, array: &Bound<'_, PyUntypedArray>) -> PyErr {
    refused(format!("array {name} is of type {}, expected float64, float32, int64 or uint8", array.dtype()))
}

/// Returns the extents of an array in C order, fastest first; more than three count as one.
pub(crate) fn dims(shape: &[usize]) -> [usize; 3] {
    match *shape {
        [x] => [x, 1, 1],
        [y, x] => [x, y, 1],
        [z, y, x] => [x, y, z],
        _ => [shape.iter().product(), 1, 1],
    }
}
