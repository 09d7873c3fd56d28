//! How values are cut into blocks and runs of blocks.

use super::fitted::Weights;
use super::kernels::GROUP;
use super::simd::fetch;
use super::tile::{EDGE, TILE};

/// Values in a block.
pub(super) const BLOCK: usize = 4096;
/// Blocks of a line coded as one piece of work: half a megabyte, so that threads that began at different times end at nearly the same.
const RUN_BLOCKS: usize = 16;

/// The arrangement blocks are cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Values in a row, predicted from those `stride` and `2 stride` before.
    Line { n: usize, stride: usize },
    /// A grid in tiles of 16^3, predicted along all axes, or by these weights; extents fastest first.
    Tiles { dims: [usize; 3], fitted: Option<Weights> },
}

impl Shape {
    pub(super) fn values(self) -> usize {
        match self {
            Self::Line { n, .. } => n,
            Self::Tiles { dims, .. } => dims.iter().product(),
        }
    }

    pub(super) fn blocks(self) -> usize {
        match self {
            Self::Line { n, .. } => n.div_ceil(BLOCK),
            Self::Tiles { dims, .. } => dims.iter().map(|extent| extent.div_ceil(EDGE)).product(),
        }
    }

    /// Values of one run: a contiguous part that whole blocks make up; the last run may be shorter.
    pub(super) fn run_values(self) -> usize {
        match self {
            Self::Line { .. } => RUN_BLOCKS * BLOCK,
            Self::Tiles { dims, .. } => (dims[0] * dims[1] * EDGE).max(1),
        }
    }

    /// Blocks of one run.
    pub(super) fn run_blocks(self) -> usize {
        self.run(self.run_values().min(self.values())).blocks()
    }

    /// The shape of a run of `values` values.
    pub(super) fn run(self, values: usize) -> Self {
        match self {
            Self::Line { stride, .. } => Self::Line { n: values, stride },
            Self::Tiles { dims: [x, y, _], fitted } => Self::Tiles { dims: [x, y, values / (x * y).max(1)], fitted },
        }
    }

    /// Values of a block, without what pads it.
    pub(super) fn block_values(self, block: usize) -> usize {
        match self {
            Self::Line { n, .. } => BLOCK.min(n - block * BLOCK),
            Self::Tiles { dims, .. } => corner(dims, block).iter().zip(dims).map(|(at, n)| EDGE.min(n - at)).product(),
        }
    }

    /// Groups of a block.
    pub(super) fn groups(self, block: usize) -> usize {
        match self {
            Self::Line { .. } => self.block_values(block).div_ceil(GROUP),
            Self::Tiles { .. } => TILE / GROUP,
        }
    }

    /// The values of a block, padded to whole groups with the nearest ones: lent from `values` where they
    /// stand in a row, else copied into `room`.
    pub(super) fn gather<'a, T: Copy>(self, block: usize, values: &'a [T], room: &'a mut [T; BLOCK]) -> &'a [T] {
        let padded = self.groups(block) * GROUP;
        match self {
            Self::Line { .. } => {
                let own = &values[block * BLOCK..][..self.block_values(block)];
                if own.len() == padded {
                    return own;
                }
                room[..own.len()].copy_from_slice(own);
                room[own.len()..padded].fill(own[own.len() - 1]);
            }
            Self::Tiles { dims, .. } => each_row(dims, block, |row, start, inside| {
                let target = &mut room[row * EDGE..][..EDGE];
                copy(&values[start..start + inside], &mut target[..inside]);
                let last = target[inside - 1];
                target[inside..].fill(last);
            }),
        }
        &room[..padded]
    }

    /// Asks for the values of a group of a tile, if there is such a tile: its rows lie too far apart for a processor to foresee
    /// them, as it does a line.
    pub(super) fn fetch<T>(self, (block, group): (usize, usize), values: &[T]) {
        let Self::Tiles { dims, .. } = self else { return };
        if block < self.blocks() {
            let [x, y, z] = corner(dims, block);
            for row in 0..EDGE {
                let start = ((z + group) * dims[1] + y + row) * dims[0] + x;
                fetch(values.get(start..start + EDGE).unwrap_or_default());
            }
        }
    }

    /// Calls `each` with the parts of a block that are rows of the values too: place in the block, place among
    /// the values, length.
    pub(super) fn each_part(self, block: usize, mut each: impl FnMut(usize, usize, usize)) {
        match self {
            Self::Line { .. } => each(0, block * BLOCK, self.block_values(block)),
            Self::Tiles { dims, .. } => {
                let [_, at_y, at_z] = corner(dims, block);
                each_row(dims, block, |row, start, inside| {
                    if at_y + row % EDGE < dims[1] && at_z + row / EDGE < dims[2] {
                        each(row * EDGE, start, inside);
                    }
                });
            }
        }
    }
}

/// Copies values; rows of a tile without a call.
pub(super) fn copy<T: Copy>(source: &[T], target: &mut [T]) {
    if source.len() != EDGE || target.len() != EDGE {
        return target.copy_from_slice(source);
    }
    for (source, target) in source.as_chunks::<4>().0.iter().zip(target.as_chunks_mut::<4>().0) {
        *target = *source;
    }
}

/// First value of a tile along each axis.
fn corner(dims: [usize; 3], block: usize) -> [usize; 3] {
    let [across, down, _] = dims.map(|extent| extent.div_ceil(EDGE));
    [block % across * EDGE, block / across % down * EDGE, block / (across * down) * EDGE]
}

/// Calls `each` with every row of a tile: its number in the tile, where the nearest row of the grid starts,
/// and how many of its values lie inside.
fn each_row(dims: [usize; 3], block: usize, mut each: impl FnMut(usize, usize, usize)) {
    let [at_x, at_y, at_z] = corner(dims, block);
    let inside = EDGE.min(dims[0] - at_x);
    for row in 0..EDGE * EDGE {
        let y = (at_y + row % EDGE).min(dims[1] - 1);
        let z = (at_z + row / EDGE).min(dims[2] - 1);
        each(row, (z * dims[1] + y) * dims[0] + at_x, inside);
    }
}
