//! The cutting of values into blocks, and of blocks into pieces of work.

use std::ops::Range;

use super::fitted::Weights;
use super::kernels::GROUP;
use super::simd::fetch;
use super::tile::{EDGE, TILE};

/// Values in a block.
pub(super) const BLOCK: usize = 4096;
/// Blocks coded as one piece of work: half a megabyte, and fewer in the last of [`PARTS`] parts of
/// a frame, so that threads that began at different times end at nearly the same.
const PIECE_BLOCKS: usize = 16;
const LAST_PIECE_BLOCKS: usize = 4;
const PARTS: usize = 8;

/// Groups of a line that memory is asked for ahead: processors foresee the values of a page, not
/// the next page's.
pub(super) const AHEAD: usize = 4;

/// The arrangement blocks are cut from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameShape {
    /// Values in a row, predicted from those `stride` and `2 stride` before.
    Line { n: usize, stride: usize },
    /// A grid in tiles of 16^3, predicted along all axes, or by these weights; extents fastest
    /// first.
    Tiles { dims: [usize; 3], fitted: Option<Weights> },
}

impl FrameShape {
    pub(super) fn values(self) -> usize {
        match self {
            Self::Line { n, .. } => n,
            Self::Tiles { dims, .. } => dims.iter().product(),
        }
    }

    pub(super) fn blocks(self) -> usize {
        self.blocks_along().iter().product()
    }

    /// Blocks along each axis.
    fn blocks_along(self) -> [usize; 3] {
        match self {
            Self::Line { n, .. } => [1, n.div_ceil(BLOCK), 1],
            Self::Tiles { dims, .. } => dims.map(|extent| extent.div_ceil(EDGE)),
        }
    }

    /// The layer of blocks and the rows of it that every piece of work takes.
    fn runs(self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let [across, down, deep] = self.blocks_along();
        let rows = move |z: usize, y: usize| {
            let is_last = (z * down + y) * PARTS >= (PARTS - 1) * deep * down;
            let blocks = if is_last { LAST_PIECE_BLOCKS } else { PIECE_BLOCKS };
            y..down.min(y + (blocks / across.max(1)).max(1))
        };
        (0..deep).flat_map(move |z| {
            let next = move |y: usize| (y < down).then(|| rows(z, y));
            std::iter::successors(next(0), move |before| next(before.end)).map(move |rows| (z, rows))
        })
    }

    /// The blocks of every piece of work: of a grid, some rows of tiles of one layer.
    pub(super) fn pieces(self) -> Vec<Range<usize>> {
        let [across, down, _] = self.blocks_along();
        self.runs().map(|(z, rows)| (z * down + rows.start) * across..(z * down + rows.end) * across).collect()
    }

    /// The values of every piece, in the same order.
    pub(super) fn parts<T>(self, values: &mut [T]) -> Vec<PieceValues<'_, T>> {
        let (of_row, pitch) = match self {
            Self::Line { n, .. } => (BLOCK, n),
            Self::Tiles { dims: [x, y, _], .. } => (EDGE * x, x * y),
        };
        let part = |(z, rows): &(usize, Range<usize>)| {
            let start = z * EDGE * pitch + rows.start * of_row;
            PieceValues { start, pitch, planes: Vec::with_capacity(EDGE.min(values.len() / pitch.max(1))) }
        };
        let runs: Vec<_> = self.runs().collect();
        let mut parts: Vec<_> = runs.iter().map(part).collect();
        let layers = runs.chunk_by(|(z, _), (next, _)| z == next);
        let mut rest = &mut parts[..];
        for (runs, values) in layers.zip(values.chunks_mut((pitch * EDGE).max(1))) {
            let own;
            (own, rest) = rest.split_at_mut(runs.len());
            for mut plane in values.chunks_mut(pitch) {
                for ((_, rows), part) in runs.iter().zip(&mut *own) {
                    let inside;
                    (inside, plane) = plane.split_at_mut(plane.len().min(rows.len() * of_row));
                    part.planes.push(inside);
                }
            }
        }
        parts
    }

    /// The block of this number.
    pub(super) fn block(self, index: usize) -> BlockRef {
        BlockRef { shape: self, index }
    }
}

/// One block of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRef {
    pub(super) shape: FrameShape,
    /// Number of the block in the frame.
    pub(super) index: usize,
}

impl BlockRef {
    /// Number of its values, without padding.
    pub(super) fn values(self) -> usize {
        match self.shape {
            FrameShape::Line { n, .. } => BLOCK.min(n - self.index * BLOCK),
            FrameShape::Tiles { dims, .. } => extents(dims, self.index).iter().product(),
        }
    }

    /// The block as the only one of a frame, which has its values and no others.
    #[cfg(feature = "cuda")]
    pub(super) fn alone(self) -> Self {
        let shape = match self.shape {
            FrameShape::Line { stride, .. } => FrameShape::Line { n: self.values(), stride },
            FrameShape::Tiles { dims, fitted } => FrameShape::Tiles { dims: extents(dims, self.index), fitted },
        };
        Self { shape, index: 0 }
    }

    /// Number of its groups.
    pub(super) fn groups(self) -> usize {
        match self.shape {
            FrameShape::Line { .. } => self.values().div_ceil(GROUP),
            FrameShape::Tiles { .. } => TILE / GROUP,
        }
    }

    /// Returns the values of the block, padded to whole groups with the nearest ones: lent from
    /// `values` where they are contiguous there, else copied into `buffer`.
    pub(super) fn gather<'a, T: Copy>(self, values: &'a [T], buffer: &'a mut [T; BLOCK]) -> &'a [T] {
        let padded = self.groups() * GROUP;
        match self.shape {
            FrameShape::Line { .. } => {
                let own = &values[self.index * BLOCK..][..self.values()];
                if own.len() == padded {
                    return own;
                }
                buffer[..own.len()].copy_from_slice(own);
                buffer[own.len()..padded].fill(own[own.len() - 1]);
            }
            FrameShape::Tiles { dims, .. } => each_row(dims, self.index, |row, start, inside| {
                let target = &mut buffer[row * EDGE..][..EDGE];
                copy(&values[start..start + inside], &mut target[..inside]);
                let last = target[inside - 1];
                target[inside..].fill(last);
            }),
        }
        &buffer[..padded]
    }

    /// Prefetches values that are coded soon after a group: of a line those [`AHEAD`], of a grid
    /// the same group of the next tile, whose rows lie too far apart for a processor to foresee
    /// them.
    pub(super) fn fetch<T>(self, group: usize, values: &[T]) {
        match self.shape {
            FrameShape::Line { .. } => {
                let start = self.index * BLOCK + (group + AHEAD) * GROUP;
                fetch(values.get(start..start + GROUP).unwrap_or_default());
            }
            FrameShape::Tiles { dims, .. } if self.index + 1 < self.shape.blocks() => {
                let [x, y, z] = corner(dims, self.index + 1);
                for row in 0..EDGE {
                    let start = ((z + group) * dims[1] + y + row) * dims[0] + x;
                    fetch(values.get(start..start + EDGE).unwrap_or_default());
                }
            }
            FrameShape::Tiles { .. } => {}
        }
    }

    /// Calls `each` with the parts of the block that are rows of the values too: place in the
    /// block, place among the values, length.
    pub(super) fn each_part(self, mut each: impl FnMut(usize, usize, usize)) {
        match self.shape {
            FrameShape::Line { .. } => each(0, self.index * BLOCK, self.values()),
            FrameShape::Tiles { dims, .. } => {
                let [_, at_y, at_z] = corner(dims, self.index);
                each_row(dims, self.index, |row, start, inside| {
                    if at_y + row % EDGE < dims[1] && at_z + row / EDGE < dims[2] {
                        each(row * EDGE, start, inside);
                    }
                });
            }
        }
    }
}

/// The values of a piece of work: in a row, in every plane of a grid.
#[derive(Debug)]
pub(super) struct PieceValues<'a, T> {
    /// Place of its first value among all.
    start: usize,
    /// Values of a plane.
    pitch: usize,
    planes: Vec<&'a mut [T]>,
}

impl<T> PieceValues<'_, T> {
    /// The value at a place among all, and those behind it in the same plane.
    pub(super) fn from(&mut self, place: usize) -> &mut [T] {
        let place = place - self.start;
        &mut self.planes[place / self.pitch][place % self.pitch..]
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

/// Values of a tile along each axis, without padding.
fn extents(dims: [usize; 3], block: usize) -> [usize; 3] {
    let corner = corner(dims, block);
    std::array::from_fn(|axis| EDGE.min(dims[axis] - corner[axis]))
}

/// Calls `each` with every row of a tile: its number in the tile, where the nearest row of the grid
/// starts, and how many of its values lie inside.
fn each_row(dims: [usize; 3], block: usize, mut each: impl FnMut(usize, usize, usize)) {
    let [at_x, at_y, at_z] = corner(dims, block);
    let inside = EDGE.min(dims[0] - at_x);
    for row in 0..EDGE * EDGE {
        let y = (at_y + row % EDGE).min(dims[1] - 1);
        let z = (at_z + row / EDGE).min(dims[2] - 1);
        each(row, (z * dims[1] + y) * dims[0] + at_x, inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_finds_its_blocks_in_its_part() {
        let tiles = |dims| FrameShape::Tiles { dims, fitted: None };
        let line = |n| FrameShape::Line { n, stride: 1 };
        let shapes = [line(1), line(200_000), tiles([40, 17, 33]), tiles([300, 100, 20]), tiles([16, 700, 9])];
        for shape in shapes {
            let mut places: Vec<usize> = (0..shape.values()).collect();
            let mut seen = vec![false; shape.values()];
            let pieces = shape.pieces();
            let mut parts = shape.parts(&mut places);
            assert_eq!(pieces.len(), parts.len(), "{shape:?}");
            assert!(pieces.iter().flat_map(Clone::clone).eq(0..shape.blocks()), "{shape:?}");
            for (blocks, part) in pieces.into_iter().zip(&mut parts) {
                for block in blocks {
                    shape.block(block).each_part(|_, start, len| {
                        for (place, seen) in part.from(start)[..len].iter().zip(&mut seen[start..]) {
                            assert!(!std::mem::replace(seen, true), "{shape:?}: {place} twice");
                        }
                        assert_eq!(part.from(start)[0], start, "{shape:?}");
                    });
                }
            }
            assert!(seen.into_iter().all(|seen| seen), "{shape:?}");
        }
    }
}
