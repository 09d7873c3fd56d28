//! The values of a variable at their place: in this process's memory, or where their owner's rest.

use std::ops::Range;

use recoup_core::{AfarError, ElementType, HeldValues, Values, ValuesMut, VariableRecord};

use super::buffer::Buffer;
use super::frames::frame_len;
use crate::error::PipelineError;
use crate::error::afar_error;

/// The values of a variable, padded to whole frames with the last value.
#[derive(Debug)]
pub(crate) enum PlacedValues {
    /// In this process's memory.
    Near(Buffer),
    /// At the place of the owner's values.
    Held(Box<dyn HeldValues>),
}

impl PlacedValues {
    /// None, here.
    pub(crate) fn none(element: ElementType) -> Self {
        Self::Near(Buffer::new(element))
    }

    /// Returns the values if they are here.
    pub(crate) fn near(&self) -> Option<&Buffer> {
        match self {
            Self::Near(values) => Some(values),
            Self::Held(_) => None,
        }
    }

    /// Returns the values if they rest elsewhere.
    pub(crate) fn held(&self) -> Option<&dyn HeldValues> {
        match self {
            Self::Near(_) => None,
            Self::Held(held) => Some(held.as_ref()),
        }
    }

    /// Returns the buffer for values here, which take the place of values elsewhere.
    pub(crate) fn near_mut(&mut self, element: ElementType) -> &mut Buffer {
        if self.near().is_none() {
            *self = Self::none(element);
        }
        match self {
            Self::Near(values) => {
                values.retype(element);
                values
            }
            Self::Held(_) => unreachable!("replaced above"),
        }
    }

    /// Returns whether both are here, or both at the same place elsewhere.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Near(_), Self::Near(_)) => true,
            (Self::Held(own), Self::Held(other)) => own.is_alike(other.as_ref()),
            _ => false,
        }
    }

    /// Becomes room at the place of `other`. Values that are there already stay.
    ///
    /// # Errors
    /// [`AfarError`] when there is none.
    pub(crate) fn make_room_beside(&mut self, other: &dyn HeldValues) -> Result<(), AfarError> {
        if self.held().is_none_or(|held| !held.is_alike(other)) {
            *self = Self::Held(other.room()?);
        }
        Ok(())
    }

    /// Brings the values of a variable to the place of `other`. After an error they are where they
    /// were.
    ///
    /// # Errors
    /// [`AfarError`] when a place fails, or has no room.
    pub(crate) fn bring_beside(&mut self, other: &Self, record: &VariableRecord) -> Result<(), AfarError> {
        if self.is_beside(other) {
            return Ok(());
        }
        let mut fetched = Buffer::new(record.element);
        let values = match &*self {
            Self::Near(values) => values,
            Self::Held(held) => {
                fetched.resize(held.len());
                held.fetch(0, fetched.slice_mut(0, held.len()))?;
                &fetched
            }
        };
        let moved = match other {
            Self::Held(place) => {
                let mut room = place.room()?;
                room.put(0, values.all())?;
                Self::Held(room)
            }
            Self::Near(_) => Self::Near(fetched),
        };
        *self = moved;
        Ok(())
    }

    /// Returns the values of one frame: those here, or fetched.
    ///
    /// # Errors
    /// [`PipelineError::Afar`] when the place fails.
    pub(crate) fn frame<'a>(
        &'a self,
        record: &VariableRecord,
        run: usize,
        fetched: &'a mut FetchedFrame,
    ) -> Result<Values<'a>, PipelineError> {
        let len = frame_len(record);
        match self {
            Self::Near(values) => Ok(values.slice(run * len, len)),
            Self::Held(held) => {
                held.fetch(run * len, fetched.room(record)).map_err(afar_error(record))?;
                fetched.bytes += (len * record.element.size()) as u64;
                Ok(fetched.values.slice(0, len))
            }
        }
    }
}

/// Some runs of a frame, where its values rest.
pub(crate) struct HeldRuns<'a> {
    pub(crate) values: &'a dyn HeldValues,
    /// The first value of the frame.
    pub(crate) start: usize,
    pub(crate) runs: &'a [Range<usize>],
}

/// One frame brought near, in memory that is used again.
#[derive(Debug)]
pub(crate) struct FetchedFrame {
    values: Buffer,
    /// Bytes fetched since this was last set to 0.
    pub(crate) bytes: u64,
}

impl FetchedFrame {
    pub(crate) fn new() -> Self {
        Self { values: Buffer::F64(Vec::new()), bytes: 0 }
    }

    /// Returns room for one frame of a variable.
    pub(crate) fn room(&mut self, record: &VariableRecord) -> ValuesMut<'_> {
        self.values.retype(record.element);
        self.values.resize(frame_len(record));
        self.values.slice_mut(0, frame_len(record))
    }

    /// Fetches some runs of a frame; its other values may be any. Counts the bytes where they come
    /// from elsewhere.
    ///
    /// # Errors
    /// [`PipelineError::Afar`] when the place fails.
    pub(crate) fn fetch_runs(
        &mut self,
        record: &VariableRecord,
        frame: HeldRuns<'_>,
        is_counted: bool,
    ) -> Result<Values<'_>, PipelineError> {
        frame.values.fetch_runs(frame.start, frame.runs, self.room(record)).map_err(afar_error(record))?;
        let fetched: usize = frame.runs.iter().map(Range::len).sum();
        self.bytes += if is_counted { (fetched * record.element.size()) as u64 } else { 0 };
        Ok(self.values())
    }

    /// Returns the values of the frame.
    pub(crate) fn values(&self) -> Values<'_> {
        self.values.all()
    }
}
