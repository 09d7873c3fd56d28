//! Launches of the kernels: what they are passed is typed here, and nowhere else.

#![expect(unsafe_code, reason = "a launch trusts its arguments, and the device may write what it is passed")]

use bytemuck::{Pod, Zeroable};
use recoup_device::{
    Argument, Device, DeviceError, DeviceKernel, DeviceModule, DeviceVec, DeviceView, DeviceViewMut, Grid, Stream,
};

use super::super::kernels::GROUP;
use super::super::shape::BLOCK;

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
}

// SAFETY: zeros are numbers.
unsafe impl Zeroable for Parameters {}

// SAFETY: four 8-byte numbers, any bytes of which are numbers, with nothing between them: in the
// order, and with the alignment, that C gives them on the device.
unsafe impl Pod for Parameters {}

/// The kernels of one lattice and one type of values.
#[derive(Clone, Debug)]
pub(super) struct Kernels {
    encode: DeviceKernel,
    decode: DeviceKernel,
    scan: DeviceKernel,
    compact: DeviceKernel,
}

impl Kernels {
    /// Compiles and loads the kernels of `source` for `device`.
    pub(super) fn load(device: &Device, source: &str) -> Result<Self, DeviceError> {
        let module = DeviceModule::load(device, source, "qb.cuh")?;
        Ok(Self {
            encode: module.kernel("qb_encode")?,
            decode: module.kernel("qb_decode")?,
            scan: module.kernel("qb_scan")?,
            compact: module.kernel("qb_compact")?,
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

/// Encodes `values`, at least one, into `target`; they may be read until the stream has come past
/// this.
pub(super) fn encode<T>(
    stream: &Stream,
    kernels: &Kernels,
    lattice: Parameters,
    values: DeviceView<'_, T>,
    stride: u32,
    target: &mut SliceBuffers,
) -> Result<(), DeviceError> {
    let n = values.len() as u64;
    let slot_words = raw_words::<T>(BLOCK);
    let blocks = values.len().div_ceil(BLOCK);
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
    // SAFETY: as qb_encode is declared; a block reads its own values below n, and writes one slot,
    // one word count and one error, for which there is room, as asserted.
    unsafe {
        let arguments: [&dyn Argument; 7] = [&lattice, &values, &n, &stride, &slots, &words, &errors];
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

/// Blocks on the device: all words, the first word of each block, its number of words, and a flag
/// for each that was found damaged.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    pub(super) all: DeviceView<'a, u32>,
    pub(super) offsets: DeviceView<'a, u64>,
    pub(super) words: DeviceView<'a, u32>,
    pub(super) damaged: DeviceViewMut<'a, u32>,
}

/// Decodes blocks into `values`, at least one. Each block's words lie within all words: the caller
/// sees to that.
pub(super) fn decode<T>(
    stream: &Stream,
    kernels: &Kernels,
    lattice: Parameters,
    blocks: Blocks<'_>,
    values: &mut DeviceViewMut<'_, T>,
    stride: u32,
) -> Result<(), DeviceError> {
    let n = values.len() as u64;
    let n_blocks = values.len().div_ceil(BLOCK);
    let Blocks { all, offsets, words, damaged } = blocks;
    assert!(n_blocks <= offsets.len() && n_blocks <= words.len() && n_blocks <= damaged.len());
    let arguments: [&dyn Argument; 8] = [&lattice, &all, &offsets, &words, &n, &stride, &*values, &damaged];
    // SAFETY: as qb_decode is declared; a block reads its own words only, whatever they hold, and
    // writes its own values below n and one flag.
    unsafe { kernels.decode.launch(stream, grid(n_blocks as u32, THREADS), &arguments) }
}
