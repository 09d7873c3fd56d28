//! The division of a variable into frames.

use recoup_core::{Variable, VariableRecord};

/// Raw bytes a frame aims at: large enough to encode well, small enough to decode alone.
const FRAME_BYTES_TARGET: usize = 8 << 20;

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
}
