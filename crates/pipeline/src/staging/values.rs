//! The values of a variable at their place, in this process's memory or where their owner's rest,
//! and their division into frames.

use std::ops::Range;

use recoup_core::{DeviceSnapshot, DeviceValuesError, ElementType, Values, ValuesMut, Variable, VariableRecord};

use super::buffer::Buffer;
use crate::error::{PipelineError, device_values_error};

/// Raw bytes a frame aims at: large enough to encode well, small enough to decode alone.
const FRAME_BYTES_TARGET: usize = 8 << 20;

/// The values of a variable, padded to whole frames with the last value.
#[derive(Debug)]
pub(crate) enum PlacedValues {
    /// In this process's memory.
    Host(Buffer),
    /// At the place of the owner's values.
    Held(Box<dyn DeviceSnapshot>),
}

impl PlacedValues {
    /// None, here.
    pub(crate) fn none(element: ElementType) -> Self {
        Self::Host(Buffer::new(element))
    }

    /// Returns the values if they are here.
    pub(crate) fn host(&self) -> Option<&Buffer> {
        match self {
            Self::Host(values) => Some(values),
            Self::Held(_) => None,
        }
    }

    /// Returns the values if they are stored elsewhere.
    pub(crate) fn held(&self) -> Option<&dyn DeviceSnapshot> {
        match self {
            Self::Host(_) => None,
            Self::Held(held) => Some(held.as_ref()),
        }
    }

    /// Returns the buffer for values here, which take the place of values elsewhere.
    pub(crate) fn host_mut(&mut self, element: ElementType) -> &mut Buffer {
        if self.host().is_none() {
            *self = Self::none(element);
        }
        match self {
            Self::Host(values) => {
                values.retype(element);
                values
            }
            Self::Held(_) => unreachable!("replaced above"),
        }
    }

    /// Returns whether both are here, or both at the same place elsewhere.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Host(_), Self::Host(_)) => true,
            (Self::Held(own), Self::Held(other)) => own.is_alike(other.as_ref()),
            _ => false,
        }
    }

    /// Becomes room at the place of `other`. Values that are there already stay.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is none.
    pub(crate) fn make_room_beside(&mut self, other: &dyn DeviceSnapshot) -> Result<(), DeviceValuesError> {
        if self.held().is_none_or(|held| !held.is_alike(other)) {
            *self = Self::Held(other.alloc()?);
        }
        Ok(())
    }

    /// Brings the values of a variable to the place of `other`. After an error they are where they
    /// were.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when a place fails, or has no room.
    pub(crate) fn bring_beside(&mut self, other: &Self, record: &VariableRecord) -> Result<(), DeviceValuesError> {
        if self.is_beside(other) {
            return Ok(());
        }
        let mut fetched = Buffer::new(record.element);
        let values = match &*self {
            Self::Host(values) => values,
            Self::Held(held) => {
                fetched.resize(held.len());
                held.fetch(0, fetched.slice_mut(0, held.len()))?;
                &fetched
            }
        };
        let moved = match other {
            Self::Held(place) => {
                let mut room = place.alloc()?;
                room.put(0, values.all())?;
                Self::Held(room)
            }
            Self::Host(_) => Self::Host(fetched),
        };
        *self = moved;
        Ok(())
    }

    /// Returns the values of one frame: those here, or fetched.
    ///
    /// # Errors
    /// [`PipelineError::Device`] when the place fails.
    pub(crate) fn frame<'a>(
        &'a self,
        record: &VariableRecord,
        run: usize,
        fetched: &'a mut FetchedFrame,
    ) -> Result<Values<'a>, PipelineError> {
        let len = frame_len(record);
        match self {
            Self::Host(values) => Ok(values.slice(run * len, len)),
            Self::Held(held) => {
                fetched.bytes += (len * record.element.size()) as u64;
                fetched.fetch(record, held.as_ref(), run, None)
            }
        }
    }
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

    /// Fetches a frame, or some runs of it; its other values may be any then. Counts no bytes.
    ///
    /// # Errors
    /// [`PipelineError::Device`] when the place fails.
    pub(crate) fn fetch(
        &mut self,
        record: &VariableRecord,
        held: &dyn DeviceSnapshot,
        run: usize,
        runs: Option<&[Range<usize>]>,
    ) -> Result<Values<'_>, PipelineError> {
        let start = run * frame_len(record);
        let room = self.room(record);
        let fetched = match runs {
            None => held.fetch(start, room),
            Some(runs) => held.fetch_runs(start, runs, room),
        };
        fetched.map_err(device_values_error(record))?;
        Ok(self.values())
    }

    /// Returns the values of the frame.
    pub(crate) fn values(&self) -> Values<'_> {
        self.values.all()
    }
}

/// A vector of the problem as a judge sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VectorView<'a> {
    pub(crate) record: &'a VariableRecord,
    /// Its values here without padding, singles as doubles; none where they are measured elsewhere.
    pub(crate) host: &'a [f64],
    /// Its values elsewhere, where they are measured there.
    pub(crate) device: Option<&'a dyn DeviceSnapshot>,
}

impl<'a> VectorView<'a> {
    /// Returns the values of a vector that was brought here.
    pub(crate) fn doubles(self) -> &'a [f64] {
        assert!(self.device.is_none(), "{} is to be brought near for this measure", self.record.name);
        self.host
    }
}

/// Takes the buffer here that fits best out of memory to be used again: of this type, with room for
/// this many values but for few more. One that fits badly grows.
pub(crate) fn take_host(spare: &mut Vec<PlacedValues>, element: ElementType, padded_len: usize) -> Buffer {
    let misfit = |values: &PlacedValues| {
        let buffer = values.host()?;
        let room = buffer.room();
        let is_other = buffer.all().element() != element;
        Some((is_other, room < padded_len, room.abs_diff(padded_len)))
    };
    let best = (0..spare.len()).filter_map(|index| Some((misfit(&spare[index])?, index))).min();
    match best.map(|(_, index)| spare.swap_remove(index)) {
        Some(PlacedValues::Host(buffer)) => buffer,
        _ => Buffer::new(element),
    }
}

/// Takes a frozen copy out of memory to be used again, of this type and length, or else any.
pub(crate) fn take_held(
    spare: &mut Vec<PlacedValues>,
    element: ElementType,
    padded_len: usize,
) -> Option<Box<dyn DeviceSnapshot>> {
    let misfit = |values: &PlacedValues| {
        let held = values.held()?;
        Some(held.element() != element || held.len() != padded_len)
    };
    let best = (0..spare.len()).filter_map(|index| Some((misfit(&spare[index])?, index))).min();
    match best.map(|(_, index)| spare.swap_remove(index)) {
        Some(PlacedValues::Held(held)) => Some(held),
        _ => None,
    }
}

/// Makes the record of a variable in the manifest, frame extents included.
pub(crate) fn record(variable: &Variable<'_>, rank: usize) -> VariableRecord {
    VariableRecord {
        name: variable.name.to_owned(),
        rank,
        role: variable.role,
        element: variable.values.element(),
        len: variable.values.len() as u64,
        dims: variable.dims,
        stride: variable.stride,
        is_complex: variable.is_complex,
        frame_dims: frame_dims(variable.dims, variable.stride, variable.values.element().size()),
        distribution: variable.distribution,
        column: variable.column,
    }
}

/// Returns the bytes of a variable's values.
pub(crate) fn raw_bytes(record: &VariableRecord) -> u64 {
    record.len * record.element.size() as u64
}

/// Returns the number of values in one frame of a variable.
pub(crate) fn frame_len(record: &VariableRecord) -> usize {
    record.frame_dims.iter().product()
}

/// Returns the number of frames of a variable.
pub(crate) fn frames(record: &VariableRecord) -> usize {
    (record.len as usize).div_ceil(frame_len(record).max(1))
}

/// Returns the number of values of a variable in whole frames.
pub(crate) fn padded_len(record: &VariableRecord) -> usize {
    frames(record) * frame_len(record)
}

/// Cuts the slowest extent into equal pieces of about [`FRAME_BYTES_TARGET`]; pieces differ from
/// an even split by less than one element each, so padding is small.
fn frame_dims(dims: [usize; 3], stride: usize, element_bytes: usize) -> [usize; 3] {
    let slowest = dims.iter().rposition(|&extent| extent > 1).unwrap_or(0);
    let slice_bytes = dims[..slowest].iter().product::<usize>() * element_bytes;
    let total_bytes = slice_bytes * dims[slowest];
    let n_frames = total_bytes.div_ceil(FRAME_BYTES_TARGET).clamp(1, dims[slowest].max(1));
    let mut frame = dims;
    frame[slowest] = dims[slowest].div_ceil(n_frames).max(1);
    if slowest == 0 {
        // A frame begins with the first unknown of a point.
        frame[0] = frame[0].next_multiple_of(stride.max(1)).min(dims[0].max(1));
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cover_every_value_with_little_padding() {
        for dims in [[1, 1, 1], [1000, 1, 1], [1 << 21, 1, 1], [3_000_001, 1, 1], [128, 128, 128], [100, 100, 301]] {
            let frame = frame_dims(dims, 1, 8);
            let len: usize = dims.iter().product();
            let frame_len: usize = frame.iter().product();
            let n_frames = len.div_ceil(frame_len);
            assert!(n_frames * frame_len >= len);
            assert!(frame_len * 8 <= FRAME_BYTES_TARGET.max(dims[0] * dims[1] * 8), "{dims:?}");
            let slice = if dims[2] > 1 { dims[0] * dims[1] } else { 1 };
            assert!(n_frames * frame_len - len < n_frames * slice, "{dims:?}: {frame:?}");
        }
    }

    #[test]
    fn frames_begin_with_the_first_unknown_of_a_point() {
        for stride in [2, 3, 7] {
            for points in [1, 5, 1_000_003] {
                let [len, ..] = frame_dims([stride * points, 1, 1], stride, 8);
                assert!(len.is_multiple_of(stride) && len <= stride * points, "{points} points of {stride}: {len}");
            }
        }
    }

    #[test]
    fn memory_that_fits_best_is_taken_first() {
        let buffers = [Buffer::F64(vec![0.0; 5]), Buffer::F64(vec![0.0; 9]), Buffer::I64(vec![0; 7])];
        let mut spare = buffers.map(PlacedValues::Host).into();
        let mut take = || take_host(&mut spare, ElementType::F64, 7);
        assert_eq!(take(), Buffer::F64(vec![0.0; 9]));
        assert_eq!(take(), Buffer::F64(vec![0.0; 5]), "it grows");
        assert_eq!(take(), Buffer::I64(vec![0; 7]), "it changes its type");
        assert_eq!(take(), Buffer::F64(Vec::new()));
    }
}
