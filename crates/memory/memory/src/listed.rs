//! The arrays of a state, as a commit and a restore see them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::any_array::{AnyVersionedArray, ArrayTracking};
use crate::blocks::StructureBlocks;
use crate::element::ElementKind;
use crate::error::MemoryError;
use crate::filed::FiledBytes;

/// An array under the name that it has in a version.
pub(crate) struct ListedArray<'a> {
    pub(crate) name: String,
    pub(crate) source: ListedSource<'a>,
}

/// The place that an array of a list comes from.
pub(crate) enum ListedSource<'a> {
    /// An array of the program, with its marks.
    Kept(&'a mut dyn AnyVersionedArray),
    /// An array that is made for the list, around plain values of the program.
    Plain(Box<dyn AnyVersionedArray + 'a>),
    /// An array that stays in the file.
    Filed(&'a mut FiledBytes),
}

impl fmt::Debug for ListedArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedArray").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ListedArray<'_> {
    /// Type of the values.
    pub(crate) fn kind(&self) -> ElementKind {
        match &self.source {
            ListedSource::Kept(array) => array.kind(),
            ListedSource::Plain(array) => array.kind(),
            ListedSource::Filed(array) => array.kind(),
        }
    }

    /// Bytes of all values.
    pub(crate) fn n_bytes(&self) -> usize {
        match &self.source {
            ListedSource::Kept(array) => array.bytes().len(),
            ListedSource::Plain(array) => array.bytes().len(),
            ListedSource::Filed(array) => array.n_bytes(),
        }
    }

    /// Marks of the values that were touched since the version that the array came from.
    pub(crate) fn tracking(&self) -> &ArrayTracking {
        match &self.source {
            ListedSource::Kept(array) => array.tracking(),
            ListedSource::Plain(array) => array.tracking(),
            ListedSource::Filed(array) => array.tracking(),
        }
    }

    /// Lends some bytes of the values; those that are not in memory are read into `room`.
    pub(crate) fn bytes<'b>(&'b self, range: Range<usize>, room: &'b mut Vec<u8>) -> Result<&'b [u8], MemoryError> {
        match &self.source {
            ListedSource::Kept(array) => Ok(&array.bytes()[range]),
            ListedSource::Plain(array) => Ok(&array.bytes()[range]),
            ListedSource::Filed(array) => {
                room.resize(range.len(), 0);
                array.read(range.start, room)?;
                Ok(room)
            }
        }
    }

    /// Reads what a restore needs, and leaves the array as it is.
    ///
    /// # Errors
    /// [`MemoryError::Kind`], [`MemoryError::Length`], [`MemoryError::Damaged`],
    /// [`MemoryError::Retired`] and [`MemoryError::Io`].
    pub(crate) fn prepare(&mut self, blocks: &StructureBlocks) -> Result<(), MemoryError> {
        blocks.check_kind(self.kind())?;
        let array = match &mut self.source {
            ListedSource::Kept(array) => &mut **array,
            ListedSource::Plain(array) => &mut **array,
            ListedSource::Filed(array) => return array.prepare(blocks),
        };
        let room = array.make_room(blocks.table.len as usize).map_err(|error| error.of_structure(&blocks.name))?;
        blocks.read(0, room)
    }

    /// Takes what was prepared in the place of the values.
    pub(crate) fn complete(&mut self, blocks: StructureBlocks) {
        match &mut self.source {
            ListedSource::Kept(array) => array.adopt_room(),
            ListedSource::Plain(array) => array.adopt_room(),
            ListedSource::Filed(array) => array.adopt_room(&blocks),
        }
        self.adopt(blocks);
    }

    /// Gives back what was prepared.
    pub(crate) fn abandon(&mut self) {
        match &mut self.source {
            ListedSource::Kept(array) => array.drop_room(),
            ListedSource::Plain(array) => array.drop_room(),
            ListedSource::Filed(array) => array.drop_room(),
        }
    }

    /// Notes that the array is what a version holds.
    pub(crate) fn adopt(&mut self, blocks: StructureBlocks) {
        let table = Arc::clone(&blocks.table);
        match &mut self.source {
            ListedSource::Kept(array) => array.tracking_mut().adopt(&table),
            ListedSource::Plain(array) => array.tracking_mut().adopt(&table),
            ListedSource::Filed(array) => array.adopt(blocks),
        }
    }
}
