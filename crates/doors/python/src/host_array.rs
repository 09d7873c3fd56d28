//! NumPy arrays, borrowed for the time of a call.

use numpy::{
    PyArrayDyn, PyArrayMethods, PyReadonlyArrayDyn, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use recoup::core::{Values, ValuesMut};

use crate::refused;

/// A NumPy array borrowed to be read.
pub(crate) enum HostArray<'py> {
    F64(PyReadonlyArrayDyn<'py, f64>),
    F32(PyReadonlyArrayDyn<'py, f32>),
    I64(PyReadonlyArrayDyn<'py, i64>),
    Bytes(PyReadonlyArrayDyn<'py, u8>),
}

impl<'py> HostArray<'py> {
    /// Borrows an array.
    ///
    /// # Errors
    /// [`crate::Error`] for one of another type than f64, f32, i64 and u8, and when it is borrowed
    /// to be written.
    pub(crate) fn of(name: &str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let busy = |error| refused(format!("array {name}: {error}"));
        if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
            array.try_readonly().map(Self::F64).map_err(busy)
        } else if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            array.try_readonly().map(Self::F32).map_err(busy)
        } else if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
            array.try_readonly().map(Self::I64).map_err(busy)
        } else if let Ok(array) = array.cast::<PyArrayDyn<u8>>() {
            array.try_readonly().map(Self::Bytes).map_err(busy)
        } else {
            Err(other_type(name, array))
        }
    }

    /// Returns the values.
    ///
    /// # Errors
    /// [`crate::Error`] when they do not follow each other.
    pub(crate) fn values(&self) -> PyResult<Values<'_>> {
        Ok(match self {
            Self::F64(array) => Values::F64(array.as_slice().map_err(refused)?),
            Self::F32(array) => Values::F32(array.as_slice().map_err(refused)?),
            Self::I64(array) => Values::I64(array.as_slice().map_err(refused)?),
            Self::Bytes(array) => Values::Bytes(array.as_slice().map_err(refused)?),
        })
    }
}

/// A NumPy array borrowed to be written.
pub(crate) enum HostArrayMut<'py> {
    F64(PyReadwriteArrayDyn<'py, f64>),
    F32(PyReadwriteArrayDyn<'py, f32>),
    I64(PyReadwriteArrayDyn<'py, i64>),
    Bytes(PyReadwriteArrayDyn<'py, u8>),
}

impl<'py> HostArrayMut<'py> {
    /// Borrows an array.
    ///
    /// # Errors
    /// [`crate::Error`] for one of another type than f64, f32, i64 and u8, and when it is borrowed
    /// otherwise, or not to be written.
    pub(crate) fn of(name: &str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let busy = |error| refused(format!("array {name}: {error}"));
        if let Ok(array) = array.cast::<PyArrayDyn<f64>>() {
            array.try_readwrite().map(Self::F64).map_err(busy)
        } else if let Ok(array) = array.cast::<PyArrayDyn<f32>>() {
            array.try_readwrite().map(Self::F32).map_err(busy)
        } else if let Ok(array) = array.cast::<PyArrayDyn<i64>>() {
            array.try_readwrite().map(Self::I64).map_err(busy)
        } else if let Ok(array) = array.cast::<PyArrayDyn<u8>>() {
            array.try_readwrite().map(Self::Bytes).map_err(busy)
        } else {
            Err(other_type(name, array))
        }
    }

    /// Returns the values, to be overwritten.
    ///
    /// # Errors
    /// [`crate::Error`] when they do not follow each other.
    pub(crate) fn values_mut(&mut self) -> PyResult<ValuesMut<'_>> {
        Ok(match self {
            Self::F64(array) => ValuesMut::F64(array.as_slice_mut().map_err(refused)?),
            Self::F32(array) => ValuesMut::F32(array.as_slice_mut().map_err(refused)?),
            Self::I64(array) => ValuesMut::I64(array.as_slice_mut().map_err(refused)?),
            Self::Bytes(array) => ValuesMut::Bytes(array.as_slice_mut().map_err(refused)?),
        })
    }
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
