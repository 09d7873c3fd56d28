//! NumPy arrays as structures of a versioned memory.

use numpy::{PyArrayDyn, PyArrayMethods, PyReadwriteArrayDyn, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use recoup::memory::{AnyVersionedArray, ArrayList, ArrayTracking, ElementKind, MemoryError, Versioned};

use crate::refused;

/// Makes the enum of borrowed arrays, and what depends on their type.
macro_rules! borrowed_arrays {
    ($($kind:ident $type:ty),*) => {
        /// A NumPy array borrowed to be written, of any type that a memory keeps.
        pub(crate) enum MemoryArray<'py> {
            $($kind(PyReadwriteArrayDyn<'py, $type>)),*
        }

        impl<'py> MemoryArray<'py> {
            /// Borrows an array.
            ///
            /// # Errors
            /// [`crate::Error`] for one of another type, and when it is borrowed otherwise, or not
            /// to be written.
            pub(crate) fn of(name: &str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
                let busy = |error| refused(format!("array {name}: {error}"));
                $(if let Ok(array) = array.cast::<PyArrayDyn<$type>>() {
                    return array.try_readwrite().map(Self::$kind).map_err(busy);
                })*
                let found = array.dtype();
                let expected = "float64, float32, int64, int32, uint64, uint32 or uint8";
                Err(refused(format!("array {name} is of type {found}, expected {expected}")))
            }

            /// Returns the type of the values.
            pub(crate) fn kind(&self) -> ElementKind {
                match self {
                    $(Self::$kind(_) => ElementKind::$kind),*
                }
            }

            /// Returns the values as bytes.
            ///
            /// # Errors
            /// [`crate::Error`] when they do not follow each other.
            pub(crate) fn bytes_mut(&mut self) -> PyResult<&mut [u8]> {
                Ok(match self {
                    $(Self::$kind(array) => bytemuck::cast_slice_mut(array.as_slice_mut().map_err(refused)?)),*
                })
            }
        }
    };
}

borrowed_arrays!(F64 f64, F32 f32, I64 i64, I32 i32, U64 u64, U32 u32, U8 u8);

/// Returns the NumPy type of a kind.
pub(crate) fn dtype(kind: ElementKind) -> &'static str {
    match kind {
        ElementKind::F64 => "float64",
        ElementKind::F32 => "float32",
        ElementKind::I64 => "int64",
        ElementKind::I32 => "int32",
        ElementKind::U64 => "uint64",
        ElementKind::U32 => "uint32",
        ElementKind::U8 => "uint8",
    }
}

/// Returns the type string of a kind in NumPy's array interface.
pub(crate) fn type_string(kind: ElementKind) -> &'static str {
    match kind {
        ElementKind::F64 => "<f8",
        ElementKind::F32 => "<f4",
        ElementKind::I64 => "<i8",
        ElementKind::I32 => "<i4",
        ElementKind::U64 => "<u8",
        ElementKind::U32 => "<u4",
        ElementKind::U8 => "|u1",
    }
}

/// An array that is lent to a memory for the time of a call. Its length stays: the caller has
/// compared it with that of the version before a restore.
pub(crate) struct LentStructure<'a> {
    name: &'a str,
    kind: ElementKind,
    bytes: &'a mut [u8],
    tracking: ArrayTracking,
    /// Values that are being restored.
    room: Vec<u8>,
}

impl<'a> LentStructure<'a> {
    /// Lends the bytes of an array with its marks.
    pub(crate) fn new(name: &'a str, kind: ElementKind, bytes: &'a mut [u8], tracking: ArrayTracking) -> Self {
        Self { name, kind, bytes, tracking, room: Vec::new() }
    }

    /// Returns the name, and the marks as the call has left them.
    pub(crate) fn into_marks(self) -> (String, ArrayTracking) {
        (self.name.to_owned(), self.tracking)
    }
}

impl Versioned for LentStructure<'_> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.array(self);
    }
}

impl AnyVersionedArray for LentStructure<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> ElementKind {
        self.kind
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
    }

    fn tracking(&self) -> &ArrayTracking {
        &self.tracking
    }

    fn tracking_mut(&mut self) -> &mut ArrayTracking {
        &mut self.tracking
    }

    fn make_room(&mut self, len: usize) -> Result<&mut [u8], MemoryError> {
        let expected = self.bytes.len() / self.kind.bytes();
        if len != expected {
            return Err(MemoryError::Length { name: self.name.to_owned(), expected, found: len });
        }
        self.room = vec![0; len * self.kind.bytes()];
        Ok(&mut self.room)
    }

    fn adopt_room(&mut self) {
        self.bytes.copy_from_slice(&self.room);
        self.drop_room();
    }

    fn drop_room(&mut self) {
        self.room = Vec::new();
    }
}
