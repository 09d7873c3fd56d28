//! Launches of the kernels: what they are passed is typed here, and nowhere else.

#![expect(unsafe_code, reason = "a launch trusts its arguments, and the device may write what it is passed")]

use bytemuck::{Pod, Zeroable};
use recoup_device::{
    Argument, Device, DeviceError, DeviceKernel, DeviceModule, DeviceVec, DeviceView, DeviceViewMut, Grid, Stream,
};

use super::super::fitted::Weights;
use super::super::kernels::GROUP;
use super::super::shape::{BLOCK, FrameShape};
use super::super::tile::EDGE;
use super::slices::Slice;
use crate::neighbours::COEFFICIENTS;

/// Threads of a thread block: a warp for each group of a block.
const THREADS: u32 = (BLOCK / GROUP * 32) as u32;

/// ErrorWords of `values` values stored as they are, with the word before them.
pub(super) fn raw_words<T>(values: usize) -> usize {
    (4 + values * size_of::<T>()).div_ceil(4)
}

/// The numbers of a lattice, as kernels take them; `Parameters` in qb.cuh.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct Parameters {
    pub(super) step: f64,
    pub(super) inverse: f64,
    pub(super) bound: f64,
    pub(super) last: i64,
    /// The error up to which a parent's code is kept; negative for none.
    pub(super) dead_band: f64,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for Parameters {}

// SAFETY: five 8-byte numbers, any bytes of which are numbers, with nothing between them: in the
// order, and with the alignment, that C gives them on the device.
unsafe impl Pod for Parameters {}

/// The values of a launch, as kernels take them; `Window` in qb_cut.cuh.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct Window {
    /// Number of values.
    n: u64,
    /// Distance of rows and of planes.
    row: u64,
    plane: u64,
    extents: [u32; 3],
    stride: u32,
    /// The weights, and a zero.
    weights: [i16; COEFFICIENTS + 1],
    is_fitted: u32,
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for Window {}

// SAFETY: numbers of 8, 4 and 2 bytes, any bytes of which are numbers, with nothing between them:
// 24 bytes, 16, 36 and 4 are 80. The order and the alignment are those that C gives them.
unsafe impl Pod for Window {}

impl Window {
    /// The values of a slice; `pitches` are the extents of the box they lie in.
    pub(super) fn new(shape: FrameShape, slice: &Slice, pitches: [usize; 3]) -> Self {
        let [row, column, _] = pitches;
        let (stride, fitted) = match shape {
            FrameShape::Line { stride, .. } => (stride, None),
            FrameShape::Tiles { fitted, .. } => (1, fitted),
        };
        Self {
            n: slice.values() as u64,
            row: row as u64,
            plane: (row * column) as u64,
            // A line may be longer; its kernels read `n`.
            extents: slice.extents.map(|extent| extent as u32),
            stride: stride as u32,
            weights: fitted.map_or([0; COEFFICIENTS + 1], Weights::to_device),
            is_fitted: fitted.is_some().into(),
        }
    }

    /// Values from the first to the last, with those between rows.
    fn reach(&self) -> usize {
        let [x, y, z] = self.extents.map(u64::from);
        if y * z == 1 { self.n as usize } else { ((z - 1) * self.plane + (y - 1) * self.row + x) as usize }
    }

    /// Number of blocks.
    fn blocks(&self, is_tiled: bool) -> usize {
        match is_tiled {
            true => self.extents.iter().map(|extent| extent.div_ceil(EDGE as u32) as usize).product(),
            false => (self.n as usize).div_ceil(BLOCK),
        }
    }
}

/// The kernels of one lattice, one type of values and one kind of cut.
#[derive(Clone, Debug)]
pub(super) struct Kernels {
    encode: DeviceKernel,
    decode: DeviceKernel,
    scan: DeviceKernel,
    compact: DeviceKernel,
    is_tiled: bool,
}

impl Kernels {
    /// Compiles and loads the kernels of `source`, for tiles or for lines, for `device`.
    pub(super) fn load(device: &Device, source: &str, is_tiled: bool) -> Result<Self, DeviceError> {
        let module = DeviceModule::load(device, source, "qb.cuh")?;
        Ok(Self {
            encode: module.kernel("qb_encode")?,
            decode: module.kernel("qb_decode")?,
            scan: module.kernel("qb_scan")?,
            compact: module.kernel("qb_compact")?,
            is_tiled,
        })
    }
}

/// Device memory of a slice: each block is encoded into a slot of its own, then all are compacted.
#[derive(Debug)]
pub(super) struct SliceBuffers {
    pub(super) slots: DeviceVec<u32>,
    pub(super) words: DeviceVec<u32>,
    pub(super) errors: DeviceVec<u64>,
    /// The first word of each block, and the end of the last.
    pub(super) offsets: DeviceVec<u64>,
    pub(super) compacted: DeviceVec<u32>,
}

fn grid(blocks: u32, threads: u32) -> Grid {
    Grid { blocks, threads, shared_bytes: 0 }
}

/// Values in the memory of the device, and those of the parent at the same places.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueViews<'a, T> {
    pub(super) values: DeviceView<'a, T>,
    pub(super) parent: Option<DeviceView<'a, T>>,
}

/// A parent as kernels take it: null for none.
fn parent_argument<'a, T>(parent: Option<&'a DeviceView<'_, T>>) -> &'a dyn Argument {
    const NULL: &u64 = &0;
    parent.map_or(NULL, |parent| parent as &dyn Argument)
}

/// Encodes the values of `window`, at least one, into `target`; they may be read until the stream
/// has come past this.
pub(super) fn encode<T>(
    stream: &Stream,
    kernels: &Kernels,
    lattice: Parameters,
    window: Window,
    source: ValueViews<'_, T>,
    target: &mut SliceBuffers,
) -> Result<(), DeviceError> {
    let slot_words = raw_words::<T>(BLOCK);
    let blocks = window.blocks(kernels.is_tiled);
    let ValueViews { values, parent } = source;
    assert!(window.reach() <= values.len() && parent.is_none_or(|parent| window.reach() <= parent.len()));
    assert!(blocks <= target.words.len() && blocks <= target.errors.len() && blocks < target.offsets.len());
    assert!(blocks * slot_words <= target.slots.len() && blocks * slot_words <= target.compacted.len());
    let blocks = blocks as u32;
    let slot_words = slot_words as u32;
    let SliceBuffers { slots, words, errors, offsets, compacted } = target;
    let slots = slots.view_mut();
    let words = words.view_mut();
    let errors = errors.view_mut();
    let offsets = offsets.view_mut();
    let compacted = compacted.view_mut();
    let parent = parent_argument(parent.as_ref());
    // SAFETY: as qb_encode is declared; a block reads its own values and those of the parent within
    // the window, which both reach to, and writes one slot, one word count and one error, for which
    // there is room, as asserted.
    unsafe {
        let arguments: [&dyn Argument; 7] = [&lattice, &window, &values, parent, &slots, &words, &errors];
        kernels.encode.launch(stream, grid(blocks, THREADS), &arguments)?;
    }
    // SAFETY: as qb_scan is declared; it reads a word count for each block and writes one offset
    // more.
    unsafe { kernels.scan.launch(stream, grid(1, THREADS), &[&words, &blocks, &offsets]) }?;
    // SAFETY: as qb_compact is declared; no block has more words than a slot, so all fit where all
    // slots do.
    unsafe {
        let arguments: [&dyn Argument; 5] = [&slots, &slot_words, &words, &offsets, &compacted];
        kernels.compact.launch(stream, grid(blocks, GROUP as u32), &arguments)
    }
}

/// Copies the values of some blocks of `window` to `target`, [`BLOCK`] places each. `blocks` are
/// numbers of blocks of the window, by the kernel's cut: the caller sees to that.
pub(super) fn gather<T>(
    stream: &Stream,
    kernel: &DeviceKernel,
    window: Window,
    values: DeviceView<'_, T>,
    blocks: DeviceView<'_, u32>,
    target: &DeviceViewMut<'_, T>,
) -> Result<(), DeviceError> {
    assert!(window.reach() <= values.len() && blocks.len() * BLOCK <= target.len());
    // SAFETY: as qb_gather is declared; a block of the window is read within its reach, and no
    // block has more values than its places.
    unsafe { kernel.launch(stream, grid(blocks.len() as u32, THREADS), &[&window, &values, &blocks, target]) }
}

/// Blocks on the device: all words, the first word of each block, its number of words, and a flag
/// for each that was found damaged.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    pub(super) all: DeviceView<'a, u32>,
    pub(super) offsets: DeviceView<'a, u64>,
    pub(super) words: DeviceView<'a, u32>,
    pub(super) damaged: DeviceViewMut<'a, u32>,
}

/// The place of decoded values, and the values of the parent at the same places.
#[derive(Debug)]
pub(super) struct DecodeViews<'a, T> {
    pub(super) values: DeviceViewMut<'a, T>,
    pub(super) parent: Option<DeviceView<'a, T>>,
}

impl<T> DecodeViews<'_, T> {
    /// The same without the first `start` values.
    pub(super) fn after(&mut self, start: usize) -> DecodeViews<'_, T> {
        let parent = self.parent.map(|parent| parent.slice(start..parent.len()));
        let end = self.values.len();
        DecodeViews { values: self.values.slice(start..end), parent }
    }
}

/// Decodes blocks into the values of `window`, at least one. Each block's words lie within all
/// words: the caller sees to that.
pub(super) fn decode<T>(
    stream: &Stream,
    kernels: &Kernels,
    lattice: Parameters,
    window: Window,
    blocks: Blocks<'_>,
    target: DecodeViews<'_, T>,
) -> Result<(), DeviceError> {
    let n_blocks = window.blocks(kernels.is_tiled);
    let Blocks { all, offsets, words, damaged } = blocks;
    let DecodeViews { values, parent } = target;
    assert!(window.reach() <= values.len() && parent.is_none_or(|parent| window.reach() <= parent.len()));
    assert!(n_blocks <= offsets.len() && n_blocks <= words.len() && n_blocks <= damaged.len());
    let parent = parent_argument(parent.as_ref());
    let arguments: [&dyn Argument; 8] = [&lattice, &window, &all, &offsets, &words, parent, &values, &damaged];
    // SAFETY: as qb_decode is declared; a block reads its own words only, whatever they hold, and
    // the parent's values within the window, and writes its own values there and one flag.
    unsafe { kernels.decode.launch(stream, grid(n_blocks as u32, THREADS), &arguments) }
}
