//! Launches of the kernels: what they are passed is typed here, and nowhere else.

#![expect(unsafe_code, reason = "a launch trusts its arguments, and the device may write what it is passed")]

use std::sync::Arc;

use recoup_device::driver::{
    CudaFunction, CudaModule, CudaSlice, CudaStream, CudaView, CudaViewMut, DeviceRepr, DriverError, LaunchConfig,
    PushKernelArg,
};
use recoup_device::{Device, DeviceError};

use super::super::kernels::GROUP;
use super::super::shape::BLOCK;

/// Threads of a thread block: a warp for each group of a block.
const THREADS: u32 = (BLOCK / GROUP * 32) as u32;

/// Words of `values` values stored as they are, with the word before them.
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

// SAFETY: four 8-byte numbers in the order, and with the alignment, that C gives them on the
// device.
unsafe impl DeviceRepr for Parameters {}

/// The kernels of one lattice and one type of values.
#[derive(Clone, Debug)]
pub(super) struct Kernels {
    encode: CudaFunction,
    decode: CudaFunction,
    scan: CudaFunction,
    compact: CudaFunction,
}

impl Kernels {
    /// Those of `source`, compiled for `device`.
    pub(super) fn load(device: &Device, source: &str) -> Result<Self, DeviceError> {
        let module: Arc<CudaModule> = device.load(source, "qb.cuh")?;
        let function = |name: &str| module.load_function(name);
        Ok(Self {
            encode: function("qb_encode")?,
            decode: function("qb_decode")?,
            scan: function("qb_scan")?,
            compact: function("qb_compact")?,
        })
    }
}

/// Device memory of a slice: each block is encoded into a slot of its own, then all are compacted.
#[derive(Debug)]
pub(super) struct SliceBuffers {
    pub(super) slots: CudaSlice<u32>,
    pub(super) words: CudaSlice<u32>,
    pub(super) errors: CudaSlice<u64>,
    /// The first word of each block, and the end of the last.
    pub(super) offsets: CudaSlice<u64>,
    pub(super) compacted: CudaSlice<u32>,
}

fn config(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

/// Encodes `values`, at least one, into `target`; they may be read until the stream has come past
/// this.
pub(super) fn encode<T>(
    stream: &Arc<CudaStream>,
    kernels: &Kernels,
    lattice: Parameters,
    values: &CudaView<'_, T>,
    stride: u32,
    target: &mut SliceBuffers,
) -> Result<(), DriverError> {
    let n = values.len() as u64;
    let slot_words = raw_words::<T>(BLOCK);
    let blocks = values.len().div_ceil(BLOCK);
    assert!(blocks <= target.words.len() && blocks <= target.errors.len() && blocks < target.offsets.len());
    assert!(blocks * slot_words <= target.slots.len() && blocks * slot_words <= target.compacted.len());
    let blocks = blocks as u32;
    let slot_words = slot_words as u32;
    let SliceBuffers { slots, words, errors, offsets, compacted } = target;
    let mut launch = stream.launch_builder(&kernels.encode);
    launch.arg(&lattice).arg(values).arg(&n).arg(&stride).arg(&mut *slots).arg(&mut *words).arg(&mut *errors);
    // SAFETY: as qb_encode is declared; a block reads its own values below n, and writes one slot,
    // one word count and one error, for which there is room, as asserted.
    unsafe { launch.launch(config(blocks, THREADS)) }?;
    let mut launch = stream.launch_builder(&kernels.scan);
    launch.arg(&*words).arg(&blocks).arg(&mut *offsets);
    // SAFETY: as qb_scan is declared; it reads a word count for each block and writes one offset
    // more.
    unsafe { launch.launch(config(1, THREADS)) }?;
    let mut launch = stream.launch_builder(&kernels.compact);
    launch.arg(&*slots).arg(&slot_words).arg(&*words).arg(&*offsets).arg(&mut *compacted);
    // SAFETY: as qb_compact is declared; no block has more words than a slot, so all fit where all
    // slots do.
    unsafe { launch.launch(config(blocks, GROUP as u32)) }?;
    Ok(())
}

/// Blocks on the device: all words, the first word of each block, its number of words, and a flag
/// for each that was found damaged.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    pub(super) all: CudaView<'a, u32>,
    pub(super) offsets: &'a CudaSlice<u64>,
    pub(super) words: &'a CudaSlice<u32>,
    pub(super) damaged: &'a mut CudaSlice<u32>,
}

/// Decodes blocks into `values`, at least one. Each block's words lie within all words: the caller
/// sees to that.
pub(super) fn decode<T>(
    stream: &Arc<CudaStream>,
    kernels: &Kernels,
    lattice: Parameters,
    blocks: Blocks<'_>,
    values: &mut CudaViewMut<'_, T>,
    stride: u32,
) -> Result<(), DriverError> {
    let n = values.len() as u64;
    let n_blocks = values.len().div_ceil(BLOCK);
    assert!(n_blocks <= blocks.offsets.len() && n_blocks <= blocks.words.len() && n_blocks <= blocks.damaged.len());
    let mut launch = stream.launch_builder(&kernels.decode);
    launch.arg(&lattice).arg(&blocks.all).arg(blocks.offsets).arg(blocks.words).arg(&n).arg(&stride);
    launch.arg(values).arg(blocks.damaged);
    // SAFETY: as qb_decode is declared; a block reads its own words only, whatever they hold, and
    // writes its own values below n and one flag.
    unsafe { launch.launch(config(n_blocks as u32, THREADS)) }?;
    Ok(())
}
