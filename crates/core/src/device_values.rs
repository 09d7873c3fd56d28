//! Values that are stored elsewhere than in memory a slice can show: on a device.
//!
//! The pipeline never sees the values of an [`DeviceValues`]. It asks for a frozen copy,
//! [`DeviceSnapshot`], made where the values are stored, and returns to the solver. A codec that
//! knows the place encodes the copy there
//! ([`Codec::encode_on_device`](crate::Codec::encode_on_device)); for any other codec the pipeline
//! fetches the copy frame by frame.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::{ElementType, ErrorKind, Values, ValuesMut};

/// Values that are stored elsewhere.
pub trait DeviceValues: Send + Sync {
    /// Returns the type of the elements.
    fn element(&self) -> ElementType;

    /// Returns the number of elements.
    fn len(&self) -> usize;

    /// Returns whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Freezes the values as they are now, and repeats the last of them until the copy has
    /// `padded_len`, which is not less than their number. What the owner does to them after this
    /// returns does not change the copy; the copying may still continue. `earlier` is a copy that
    /// is not needed any more: its memory is used again where it fits.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is no room for a copy, or the place is lost.
    fn snapshot(
        &self,
        padded_len: usize,
        earlier: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError>;

    /// Makes room for `padded_len` values, where these are stored, to be filled by a restore.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is no room, or the place is lost.
    fn alloc(&self, padded_len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError>;

    /// Returns a maker of room where these values are stored, for threads that do not have them.
    /// `None` if the values alone can make room.
    fn allocator(&self) -> Option<Arc<dyn SnapshotAllocator>> {
        None
    }

    /// Overwrites the values with the first of `held`, which has the same type and not fewer
    /// elements.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place is lost; the values are then undefined.
    fn overwrite(&mut self, held: &dyn DeviceSnapshot) -> Result<(), DeviceValuesError>;
}

impl fmt::Debug for dyn DeviceValues + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceValues({} {})", self.len(), self.element())
    }
}

/// A maker of room for frozen copies at a place: behind the owner of values, before they are
/// frozen.
pub trait SnapshotAllocator: Send + Sync {
    /// Makes room for `len` values of a type.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is no room, or the place is lost.
    fn alloc(&self, element: ElementType, len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError>;
}

impl fmt::Debug for dyn SnapshotAllocator + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SnapshotAllocator")
    }
}

/// A frozen copy of values, where they are stored.
pub trait DeviceSnapshot: Send + Sync {
    /// Returns the type of the elements.
    fn element(&self) -> ElementType;

    /// Returns the number of elements, padding among them.
    fn len(&self) -> usize;

    /// Returns whether there are no elements.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies values from `start` on into `target`, as many as it has room for, once they are
    /// there.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place is lost.
    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), DeviceValuesError>;

    /// Copies some runs of values, ascending and disjoint, once they are there: value `start + i`
    /// becomes value `i` of `target`, and the values between the runs stay as they are.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place is lost.
    fn fetch_runs(
        &self,
        start: usize,
        runs: &[Range<usize>],
        mut target: ValuesMut<'_>,
    ) -> Result<(), DeviceValuesError> {
        runs.iter().try_for_each(|run| self.fetch(start + run.start, target.slice_mut(run.start, run.len())))
    }

    /// Hashes `len` values from `start` on where they are stored, so that zones that did not change
    /// need not be fetched: 128 bits of XXH3 for each `zone_bytes` bytes, as
    /// [`CodecId::Raw`](crate::CodecId::Raw) writes them. The last zone may be shorter. `None`
    /// where the place does not hash: the values are to be fetched then.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place is lost.
    fn zone_hashes(
        &self,
        _start: usize,
        _len: usize,
        _zone_bytes: usize,
    ) -> Result<Option<Vec<u128>>, DeviceValuesError> {
        Ok(None)
    }

    /// Overwrites values from `start` on with `source`.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place is lost.
    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), DeviceValuesError>;

    /// Returns whether `other` has the same type and number of elements, and is stored at the same
    /// place.
    fn is_alike(&self, other: &dyn DeviceSnapshot) -> bool;

    /// Makes room for as many values at the same place.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is no room, or the place is lost.
    fn alloc(&self) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError>;

    /// Shows the copy to a codec or an owner that knows its place.
    fn as_any(&self) -> &dyn Any;

    /// Shows the copy to be overwritten.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl fmt::Debug for dyn DeviceSnapshot + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceSnapshot({} {})", self.len(), self.element())
    }
}

/// The place where values rest failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DeviceValuesError {
    /// The place's own words.
    pub message: String,
    /// The kind of failure, by what can be done about it.
    pub kind: DeviceValuesErrorKind,
}

/// The kinds of [`DeviceValuesError`], by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceValuesErrorKind {
    /// There is no room for a copy now. The values are as they were.
    NoRoom,
    /// The place and all values on it are lost. Another place may continue from a version.
    Lost,
    /// Anything else.
    Failed,
}

impl From<DeviceValuesErrorKind> for ErrorKind {
    fn from(kind: DeviceValuesErrorKind) -> Self {
        match kind {
            DeviceValuesErrorKind::NoRoom => Self::OutOfMemory,
            DeviceValuesErrorKind::Lost => Self::DeviceLost,
            DeviceValuesErrorKind::Failed => Self::DeviceFailed,
        }
    }
}
