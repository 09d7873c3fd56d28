//! Arrays in memory whose owner sees every write.

use std::fmt;
use std::ops::{Deref, DerefMut};

use recoup_core::{Mark, Zones};

use crate::any_array::{AnyVersionedArray, ArrayTracking};
use crate::element::{ElementKind, VersionedElement};
use crate::error::MemoryError;
use crate::structure::{ArrayList, Versioned};

/// An array in memory that knows what was written to it, so the program marks nothing and a commit
/// compares nothing.
///
/// `R` is memory of any owner that implements [`Zones`] and lends its values as a slice. With
/// `TrackedRegion` of recoup-snapshot, the system takes notes of written pages; with its
/// `TouchedRegion`, each borrow does. The array is written in the ways of `R`. The number of its
/// values stays.
pub struct VersionedRegion<R: Deref> {
    name: String,
    values: R,
    /// Values that are being restored.
    room: Option<Box<R::Target>>,
    /// The moment up to which writes are marked.
    mark: Mark,
    tracking: ArrayTracking,
}

impl<R: Deref> fmt::Debug for VersionedRegion<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VersionedRegion").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<T: VersionedElement, R: Zones + DerefMut<Target = [T]>> VersionedRegion<R> {
    /// Makes an array of memory of an owner.
    #[must_use]
    pub fn new(name: impl Into<String>, values: R) -> Self {
        let mark = values.mark();
        Self { name: name.into(), values, room: None, mark, tracking: ArrayTracking::default() }
    }

    /// Marks what was written since the last call.
    fn note_writes(&mut self) {
        let mark = self.values.mark();
        if mark == self.mark {
            return;
        }
        // An owner that knows nothing may have written everything.
        let written = self.values.written_since(self.mark);
        for range in written.unwrap_or_else(|| std::iter::once(0..self.values.len()).collect()) {
            self.tracking.touch(range.start * size_of::<T>()..range.end * size_of::<T>());
        }
        self.mark = mark;
    }
}

impl<R: Deref> Deref for VersionedRegion<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.values
    }
}

impl<R: Deref> DerefMut for VersionedRegion<R> {
    fn deref_mut(&mut self) -> &mut R {
        &mut self.values
    }
}

impl<T: VersionedElement, R: Zones + DerefMut<Target = [T]>> Versioned for VersionedRegion<R> {
    fn list_arrays<'a>(&'a mut self, arrays: &mut ArrayList<'a>) {
        self.note_writes();
        arrays.array(self);
    }
}

impl<T: VersionedElement, R: Zones + DerefMut<Target = [T]>> AnyVersionedArray for VersionedRegion<R> {
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
        let expected = self.values.len();
        if len != expected {
            return Err(MemoryError::Length { name: self.name.clone(), expected, found: len });
        }
        Ok(bytemuck::cast_slice_mut(self.room.insert(vec![T::zeroed(); len].into_boxed_slice())))
    }

    fn adopt_room(&mut self) {
        if let Some(room) = self.room.take() {
            self.values.copy_from_slice(&room);
        }
        // The restore itself has written these values.
        self.mark = self.values.mark();
    }

    fn drop_room(&mut self) {
        self.room = None;
    }
}
