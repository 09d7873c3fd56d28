//! Slices of a frame: blocks that follow each other, and fit the memory of a lane.
//!
//! A slice of a grid is a box of tiles: a run of a row of tiles, whole rows, or whole layers. So it
//! has the values of its blocks and no others, in few contiguous parts.

use std::ops::Range;

use super::super::shape::{BLOCK, FrameShape};
use super::super::tile::EDGE;

/// Some blocks of a frame, and the box of its values that they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) blocks: Range<usize>,
    /// Extents of the frame; a line has one.
    pub(super) dims: [usize; 3],
    corner: [usize; 3],
    pub(super) extents: [usize; 3],
}

/// Values that are contiguous in the frame and in the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlicePart {
    frame_start: usize,
    slice_start: usize,
    len: usize,
}

impl SlicePart {
    /// Places of the values in the frame.
    pub(super) fn of_frame(self) -> Range<usize> {
        self.frame_start..self.frame_start + self.len
    }

    /// Places of the values in the slice.
    pub(super) fn of_slice(self) -> Range<usize> {
        self.slice_start..self.slice_start + self.len
    }
}

impl Slice {
    /// Number of the values.
    pub(super) fn values(&self) -> usize {
        self.extents.iter().product()
    }

    /// Place of the first value in the frame.
    pub(super) fn first(&self) -> usize {
        let [x, y, z] = self.corner;
        (z * self.dims[1] + y) * self.dims[0] + x
    }

    /// The values, in as few parts as there can be.
    pub(super) fn parts(&self) -> impl Iterator<Item = SlicePart> {
        let [x, y, z] = self.extents;
        let has_rows = x == self.dims[0];
        let [len, rows, planes] = match has_rows && y == self.dims[1] {
            true => [x * y * z, 1, 1],
            false if has_rows => [x * y, 1, z],
            false => [x, y, z],
        };
        let first = self.first();
        let [row, column, _] = self.dims;
        (0..planes * rows).map(move |part| {
            let frame_start = first + part / rows * row * column + part % rows * row;
            SlicePart { frame_start, slice_start: part * len, len }
        })
    }
}

/// The slices of a frame with values, of at most `most` blocks each, at least one.
pub(super) fn slices(shape: FrameShape, most: usize) -> Vec<Slice> {
    let (dims, unit) = match shape {
        FrameShape::Line { n, .. } => ([n, 1, 1], [BLOCK, 1, 1]),
        FrameShape::Tiles { dims, .. } => (dims, [EDGE; 3]),
    };
    let along: [usize; 3] = std::array::from_fn(|axis| dims[axis].div_ceil(unit[axis]));
    let across = along[0].min(most);
    let down = if across < along[0] { 1 } else { (most / across).min(along[1]) };
    let deep = if down < along[1] { 1 } else { (most / (across * down)).min(along[2]) };
    let steps = [across, down, deep];
    let starts = |axis: usize| (0..along[axis]).step_by(steps[axis]);
    let corners = starts(2).flat_map(|z| starts(1).flat_map(move |y| starts(0).map(move |x| [x, y, z])));
    let slice = |tile: [usize; 3]| {
        let first = (tile[2] * along[1] + tile[1]) * along[0] + tile[0];
        let count: usize = (0..3).map(|axis| steps[axis].min(along[axis] - tile[axis])).product();
        let corner: [usize; 3] = std::array::from_fn(|axis| tile[axis] * unit[axis]);
        let extents = std::array::from_fn(|axis| (steps[axis] * unit[axis]).min(dims[axis] - corner[axis]));
        Slice { blocks: first..first + count, dims, corner, extents }
    };
    corners.map(slice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_have_the_values_of_their_blocks_in_order_and_no_others() {
        let tiles = |dims| FrameShape::Tiles { dims, fitted: None };
        let line = |n| FrameShape::Line { n, stride: 1 };
        for shape in [line(1), line(5 * BLOCK + 7), tiles([40, 17, 33]), tiles([70, 33, 18]), tiles([16, 90, 9])] {
            for most in [1, 2, 3, 4, 6, 9, 100] {
                let all = slices(shape, most);
                assert!(all.iter().flat_map(|slice| slice.blocks.clone()).eq(0..shape.blocks()), "{shape:?}, {most}");
                let mut seen = vec![false; shape.values()];
                for slice in all {
                    assert!(slice.blocks.len() <= most);
                    let own: usize = slice.blocks.clone().map(|block| shape.block(block).values()).sum();
                    assert_eq!(slice.values(), own, "{shape:?}, {slice:?}");
                    let mut next = 0;
                    for part in slice.parts() {
                        assert_eq!(part.of_slice().start, next);
                        next = part.of_slice().end;
                        part.of_frame().for_each(|place| assert!(!std::mem::replace(&mut seen[place], true)));
                    }
                    assert_eq!(next, own);
                    slice.blocks.clone().for_each(|block| {
                        shape.block(block).each_part(|_, start, len| {
                            assert!(slice.parts().any(|part| {
                                part.of_frame().contains(&start) && part.of_frame().end >= start + len
                            }));
                        })
                    });
                }
                assert!(seen.into_iter().all(|seen| seen), "{shape:?}, {most}");
            }
        }
    }
}
