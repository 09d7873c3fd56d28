//! Arrays in the memory of the process, and the marks of their values.

use std::ops::Range;
use std::sync::Arc;

use crate::dirty::DirtyMap;
use crate::element::ElementKind;
use crate::error::MemoryError;
use crate::version::StructureTable;

/// One array of values in the memory of the process.
pub trait AnyVersionedArray {
    /// Its name where no field names it, which no other array of a commit has.
    fn name(&self) -> &str;

    /// Type of its values.
    fn kind(&self) -> ElementKind;

    /// Its values as bytes.
    fn bytes(&self) -> &[u8];

    /// Marks of the values that were touched since the version that it came from.
    fn tracking(&self) -> &ArrayTracking;

    /// The same, to be changed.
    fn tracking_mut(&mut self) -> &mut ArrayTracking;

    /// Makes room for `len` values that are being restored, and lends its bytes. The array stays as
    /// it is until [`adopt_room`](Self::adopt_room).
    ///
    /// # Errors
    /// [`MemoryError::Length`] if the array cannot have as many values.
    fn make_room(&mut self, len: usize) -> Result<&mut [u8], MemoryError>;

    /// Takes the restored values in the place of its own.
    fn adopt_room(&mut self);

    /// Gives the room back.
    fn drop_room(&mut self);
}

/// Marks of the values of an array that were touched, and the table of all others. Every type with
/// values of its own that implements [`AnyVersionedArray`] has one.
#[derive(Clone, Debug, Default)]
pub struct ArrayTracking {
    pub(crate) dirty: DirtyMap,
    /// Its blocks in the version that it was restored from or last committed to.
    pub(crate) base: Option<Arc<StructureTable>>,
    /// A commit compares the blocks that are not marked, too.
    pub(crate) is_compared: bool,
}

impl ArrayTracking {
    /// Marks bytes of the values that were written, or will be before the next commit.
    pub fn touch(&mut self, bytes: Range<usize>) {
        self.dirty.mark(bytes);
    }

    /// Has each commit compare the values with the version before, in place of marks.
    pub fn compare(&mut self) {
        self.is_compared = true;
    }

    /// Returns whether each commit compares the values.
    #[must_use]
    pub fn is_compared(&self) -> bool {
        self.is_compared
    }

    /// Notes that the array is what a version holds.
    pub(crate) fn adopt(&mut self, table: &Arc<StructureTable>) {
        self.base = Some(Arc::clone(table));
        self.dirty.clear();
    }
}
