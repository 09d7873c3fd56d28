//! Arrays of values with versions.

use std::ops::{Deref, Range};

use crate::any_array::{AnyVersionedArray, ArrayTracking};
use crate::element::{ElementKind, VersionedElement};
use crate::error::MemoryError;
use crate::structure::{ArrayList, Versioned};

/// An array in the memory of the process that knows what was touched since its last version.
///
/// It is read as a slice. Values are written through [`write`](Self::write), which marks them, or
/// through [`values_mut`](Self::values_mut) and [`touch`](Self::touch). An array that is
/// [`compared`](Self::compared) needs no marks.
#[derive(Clone, Debug)]
pub struct VersionedArray<T: VersionedElement> {
    name: String,
    values: Vec<T>,
    /// Values that are being restored.
    room: Vec<T>,
    tracking: ArrayTracking,
}

impl<T: VersionedElement> VersionedArray<T> {
    /// Makes an array of zeros.
    #[must_use]
    pub fn zeros(name: impl Into<String>, len: usize) -> Self {
        Self::new(name, vec![T::zeroed(); len])
    }

    /// Makes an array of these values.
    #[must_use]
    pub fn new(name: impl Into<String>, values: Vec<T>) -> Self {
        Self { name: name.into(), values, room: Vec::new(), tracking: ArrayTracking::default() }
    }

    /// Has each commit compare the values with the version before, in place of marks. That reads
    /// the whole version, and needs no call where values are written.
    #[must_use]
    pub fn compared(mut self) -> Self {
        self.tracking.compare();
        self
    }

    /// Marks values as touched and lends them.
    ///
    /// # Panics
    /// If the range does not lie in the array.
    pub fn write(&mut self, range: Range<usize>) -> &mut [T] {
        self.touch(range.clone());
        &mut self.values[range]
    }

    /// Marks values that were written, or will be before the next commit.
    ///
    /// # Panics
    /// If the range does not lie in the array.
    pub fn touch(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.values.len(), "{range:?} of {}", self.values.len());
        self.tracking.touch(range.start * size_of::<T>()..range.end * size_of::<T>());
    }

    /// Lends all values and marks none: what is written is in the next version for certain only if
    /// it is [touched](Self::touch) too, or if the array is [compared](Self::compared).
    pub fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// Takes other values, and marks those that differ.
    pub fn assign(&mut self, values: &[T]) {
        self.resize(values.len(), T::zeroed());
        let piece = (512 / size_of::<T>()).max(1);
        for (index, other) in values.chunks(piece).enumerate() {
            let range = index * piece..index * piece + other.len();
            // As bytes: -0 is another value than 0, and NaN the same as itself.
            if bytemuck::cast_slice::<T, u8>(&self.values[range.clone()]) != bytemuck::cast_slice::<T, u8>(other) {
                self.write(range).copy_from_slice(other);
            }
        }
    }

    /// Changes the number of values. New ones have this value, and are marked.
    pub fn resize(&mut self, len: usize, value: T) {
        let before = self.values.len();
        self.values.resize(len, value);
        if len > before {
            self.touch(before..len);
        }
    }
}

impl<T: VersionedElement> Default for VersionedArray<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

/// Makes an array without a name, for a field of a state: the field names it.
impl<T: VersionedElement> From<Vec<T>> for VersionedArray<T> {
    fn from(values: Vec<T>) -> Self {
        Self::new("", values)
    }
}

impl<T: VersionedElement> Deref for VersionedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T: VersionedElement> Versioned for VersionedArray<T> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        arrays.array(self);
    }
}

impl<T: VersionedElement> AnyVersionedArray for VersionedArray<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> ElementKind {
        T::KIND
    }

    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.values)
    }

    fn tracking(&self) -> &ArrayTracking {
        &self.tracking
    }

    fn tracking_mut(&mut self) -> &mut ArrayTracking {
        &mut self.tracking
    }

    fn make_room(&mut self, len: usize) -> Result<&mut [u8], MemoryError> {
        self.room = vec![T::zeroed(); len];
        Ok(bytemuck::cast_slice_mut(&mut self.room))
    }

    fn adopt_room(&mut self) {
        self.values = std::mem::take(&mut self.room);
    }

    fn drop_room(&mut self) {
        self.room = Vec::new();
    }
}
