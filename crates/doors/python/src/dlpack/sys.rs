//! The structures of DLPack 1.0 and of the versions before, and a tensor taken from a capsule.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::ffi::PyCapsule_SetName;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

const UNVERSIONED: &CStr = c"dltensor";
const UNVERSIONED_TAKEN: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_TAKEN: &CStr = c"used_dltensor_versioned";

/// The major version whose structures are known here.
const MAJOR: u32 = 1;

/// The type of a tensor's values.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct TensorType {
    pub(crate) code: u8,
    pub(crate) bits: u8,
    pub(crate) lanes: u16,
}

#[repr(C)]
struct TensorLayout {
    data: *const c_void,
    device_kind: i32,
    _device: i32,
    n_axes: i32,
    element: TensorType,
    shape: *const i64,
    strides: *const i64,
    byte_offset: u64,
}

#[repr(C)]
struct UnversionedTensor {
    layout: TensorLayout,
    _context: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Self)>,
}

#[repr(C)]
struct VersionedTensor {
    major: u32,
    _minor: u32,
    _context: *mut c_void,
    delete: Option<unsafe extern "C" fn(*mut Self)>,
    flags: u64,
    layout: TensorLayout,
}

/// A tensor as its producer describes it.
pub(crate) struct TensorDescription {
    pub(crate) address: usize,
    pub(crate) device_kind: i32,
    pub(crate) element: TensorType,
    pub(crate) shape: Vec<i64>,
    /// Counted in values; `None` for C order.
    pub(crate) strides: Option<Vec<i64>>,
    pub(crate) flags: u64,
}

/// A tensor that is ours to give back: dropping it calls the producer's deleter.
pub(crate) struct SharedTensor(ManagedTensor);

enum ManagedTensor {
    Unversioned(NonNull<UnversionedTensor>),
    Versioned(NonNull<VersionedTensor>),
}

// SAFETY: the protocol lets any thread read the structure and call its deleter.
unsafe impl Send for SharedTensor {}
// SAFETY: nothing is written through a shared reference.
unsafe impl Sync for SharedTensor {}

impl SharedTensor {
    /// Takes the tensor out of a new capsule, which is marked as used.
    ///
    /// # Errors
    /// Those of Python for a capsule of another kind, and for a used one.
    pub(crate) fn take(capsule: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let is_versioned = capsule.is_valid_checked(Some(VERSIONED));
        let managed = capsule.pointer_checked(Some(if is_versioned { VERSIONED } else { UNVERSIONED }))?;
        let taken = if is_versioned { VERSIONED_TAKEN } else { UNVERSIONED_TAKEN };
        // SAFETY: it is a capsule, and the name is static.
        if unsafe { PyCapsule_SetName(capsule.as_ptr(), taken.as_ptr()) } != 0 {
            return Err(PyErr::fetch(capsule.py()));
        }
        let managed = match is_versioned {
            true => ManagedTensor::Versioned(managed.cast()),
            false => ManagedTensor::Unversioned(managed.cast()),
        };
        Ok(Self(managed))
    }

    /// Describes the tensor; the error is a major version that is not known.
    pub(crate) fn describe(&self) -> Result<TensorDescription, u32> {
        match self.0 {
            ManagedTensor::Unversioned(managed) => {
                // SAFETY: the producer keeps the structure until the deleter is called, in `drop`.
                Ok(unsafe { describe(&managed.as_ref().layout, 0) })
            }
            ManagedTensor::Versioned(managed) => {
                // SAFETY: as above. In every version the structure begins with its number.
                let major = unsafe { (*managed.as_ptr()).major };
                if major != MAJOR {
                    return Err(major);
                }
                // SAFETY: as above, in the version that is known.
                Ok(unsafe { describe(&managed.as_ref().layout, managed.as_ref().flags) })
            }
        }
    }
}

/// # Safety
/// Shape and strides have as many values as the tensor has axes.
unsafe fn describe(layout: &TensorLayout, flags: u64) -> TensorDescription {
    // SAFETY: as the caller promises.
    let shape = unsafe { extents(layout.shape, layout.n_axes) }.unwrap_or_default();
    // SAFETY: as the caller promises.
    let strides = unsafe { extents(layout.strides, layout.n_axes) };
    let address = layout.data.addr().wrapping_add(layout.byte_offset as usize);
    let TensorLayout { device_kind, element, .. } = *layout;
    TensorDescription { address, device_kind, element, shape, strides, flags }
}

/// # Safety
/// There are `count` values, unless the pointer is null.
unsafe fn extents(start: *const i64, count: i32) -> Option<Vec<i64>> {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: as the caller promises.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start, count) }.to_vec())
}

impl Drop for SharedTensor {
    fn drop(&mut self) {
        match self.0 {
            ManagedTensor::Unversioned(managed) => {
                // SAFETY: this is the one call of the deleter, and the last use of the structure.
                unsafe { managed.as_ref().delete.map(|delete| delete(managed.as_ptr())) };
            }
            ManagedTensor::Versioned(managed) => {
                // SAFETY: as above. The deleter is at this place in every version.
                unsafe { (*managed.as_ptr()).delete.map(|delete| delete(managed.as_ptr())) };
            }
        }
    }
}
