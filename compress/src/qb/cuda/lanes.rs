//! Slices of a vector through the device: memory of bounded size, two slices at a time.

use bytemuck::Pod;
use recoup_device::{Device, DeviceError, DeviceVec, DeviceView, HostBuffer, Stream};

use super::super::frame::BlockEntry;
use super::super::run::{EncodedBlocks, StoredBlocks};
use super::super::shape::BLOCK;
use super::sys::{self, Kernels, Parameters, raw_words};
use super::timing::KernelTiming;
use crate::scalar::Scalar;

/// Blocks of a slice unless told otherwise: 64 MiB of doubles.
pub(super) const SLICE_BLOCKS: usize = 2048;

/// A float type the kernels know.
pub(super) trait Element: Scalar + Pod {
    /// Its name in the kernels.
    const NAME: &'static str;
    /// The lanes for it.
    fn lanes(all: &mut Lanes) -> &mut Vec<Lane<Self>>;
}

impl Element for f64 {
    const NAME: &'static str = "F64";
    fn lanes(all: &mut Lanes) -> &mut Vec<Lane<f64>> {
        &mut all.doubles
    }
}

impl Element for f32 {
    const NAME: &'static str = "F32";
    fn lanes(all: &mut Lanes) -> &mut Vec<Lane<f32>> {
        &mut all.singles
    }
}

/// Lanes already made, used again for the next frame.
#[derive(Debug)]
pub(super) struct Lanes {
    /// Blocks of a slice.
    slice_blocks: usize,
    doubles: Vec<Lane<f64>>,
    singles: Vec<Lane<f32>>,
}

impl Lanes {
    /// None made yet, for slices of `slice_blocks` blocks, at least one.
    pub(super) fn new(slice_blocks: usize) -> Self {
        Self { slice_blocks, doubles: Vec::new(), singles: Vec::new() }
    }

    /// Values of a slice.
    pub(super) fn slice_values(&self) -> usize {
        self.slice_blocks * BLOCK
    }
}

/// Memory for one slice, and the stream its work is done in.
#[derive(Debug)]
pub(super) struct Lane<T> {
    stream: Stream,
    values: DeviceVec<T>,
    encoded: sys::SliceBuffers,
    /// ErrorWords of blocks, on the host.
    payload: HostBuffer,
    /// Blocks of the slice under way; 0 for none.
    blocks: usize,
}

/// The kernels of a frame, and their arguments that are the same for all its slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelSetup<'a> {
    pub(super) kernels: &'a Kernels,
    pub(super) lattice: Parameters,
    pub(super) stride: u32,
}

/// Values to encode.
#[derive(Clone, Copy, Debug)]
pub(super) enum LineSource<'a, T> {
    /// In the memory of the host.
    Host(&'a [T]),
    /// In that of the device.
    Device(DeviceView<'a, T>),
}

impl<T> LineSource<'_, T> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Host(values) => values.len(),
            Self::Device(values) => values.len(),
        }
    }
}

impl<T: Element> Lane<T> {
    fn new(device: &Device, slice_blocks: usize) -> Result<Self, DeviceError> {
        let stream = Stream::new(device)?;
        let words = slice_blocks * raw_words::<T>(BLOCK);
        let encoded = sys::SliceBuffers {
            slots: DeviceVec::zeros(&stream, words)?,
            words: DeviceVec::zeros(&stream, slice_blocks)?,
            errors: DeviceVec::zeros(&stream, slice_blocks)?,
            offsets: DeviceVec::zeros(&stream, slice_blocks + 1)?,
            compacted: DeviceVec::zeros(&stream, words)?,
        };
        let values = DeviceVec::zeros(&stream, slice_blocks * BLOCK)?;
        let payload = HostBuffer::registered(device, words * size_of::<u32>())?;
        Ok(Self { stream, values, encoded, payload, blocks: 0 })
    }

    /// Begins to encode slice number `slice`.
    fn begin(&mut self, setup: KernelSetup<'_>, source: LineSource<'_, T>, slice: usize) -> Result<(), DeviceError> {
        let slice_values = self.values.len();
        let range = slice * slice_values..source.len().min((slice + 1) * slice_values);
        self.blocks = range.len().div_ceil(BLOCK);
        let view = match source {
            LineSource::Host(values) => {
                self.stream.upload(&values[range.clone()], &mut self.values.slice_mut(0..range.len()))?;
                self.values.slice(0..range.len())
            }
            LineSource::Device(values) => values.slice(range),
        };
        sys::encode(&self.stream, setup.kernels, setup.lattice, view, setup.stride, &mut self.encoded)
    }

    /// Appends the blocks of the slice under way to `target`, and adds them to `done`.
    fn finish(&mut self, target: &mut Vec<u8>, done: &mut EncodedBlocks) -> Result<(), DeviceError> {
        let mut words = vec![0u32; self.blocks];
        let mut errors = vec![0u64; self.blocks];
        self.stream.download(self.encoded.words.slice(0..self.blocks), &mut words)?;
        self.stream.download(self.encoded.errors.slice(0..self.blocks), &mut errors)?;
        let total: usize = words.iter().map(|words| *words as usize).sum();
        self.payload.store(&self.stream, self.encoded.compacted.slice(0..total), 0)?;
        let payload = self.payload.read(0..total * size_of::<u32>())?;
        let payload: &[u32] = bytemuck::cast_slice(&payload);
        let mut rest = payload;
        for n_words in words {
            let (block, next) = rest.split_at(n_words as usize);
            rest = next;
            let start = target.len();
            target.extend(block.iter().flat_map(|word| word.to_le_bytes()));
            done.table.push(BlockEntry { words: n_words, crc32c: crc32c::crc32c(&target[start..]) });
        }
        done.error = errors.into_iter().map(f64::from_bits).fold(done.error, f64::max);
        self.blocks = 0;
        Ok(())
    }

    /// Decodes one slice.
    fn decode(
        &mut self,
        setup: KernelSetup<'_>,
        blocks: &SliceBlocks<'_>,
        target: &mut [T],
    ) -> Result<Vec<bool>, DeviceError> {
        let n = blocks.words.len();
        let total = blocks.bytes.len() / 4;
        // A word is stored with its lowest byte first, as the device has it.
        self.payload.write(0..total * 4)?.copy_from_slice(blocks.bytes);
        let sys::SliceBuffers { slots: damaged, words, offsets, compacted, .. } = &mut self.encoded;
        self.payload.load(&self.stream, 0, &mut compacted.slice_mut(0..total))?;
        self.stream.upload(&blocks.words, &mut words.slice_mut(0..n))?;
        self.stream.upload(&blocks.offsets, &mut offsets.slice_mut(0..n))?;
        let device_blocks = sys::Blocks {
            all: compacted.slice(0..total),
            offsets: offsets.slice(0..n),
            words: words.slice(0..n),
            damaged: damaged.slice_mut(0..n),
        };
        let mut values = self.values.slice_mut(0..target.len());
        sys::decode(&self.stream, setup.kernels, setup.lattice, device_blocks, &mut values, setup.stride)?;
        let mut flags = vec![0u32; n];
        self.stream.download(self.encoded.slots.slice(0..n), &mut flags)?;
        self.stream.download(self.values.slice(0..target.len()), target)?;
        Ok(flags.into_iter().map(|flag| flag != 0).collect())
    }
}

/// The blocks of a slice; a block whose checksum does not hold has no words.
struct SliceBlocks<'a> {
    words: Vec<u32>,
    offsets: Vec<u64>,
    bytes: &'a [u8],
}

impl<'a> SliceBlocks<'a> {
    fn new(table: &[BlockEntry], bytes: &'a [u8]) -> Self {
        let mut words = Vec::new();
        let mut offsets = Vec::new();
        let mut start = 0;
        for entry in table {
            let own = &bytes[start..start + entry.words as usize * 4];
            words.push(if crc32c::crc32c(own) == entry.crc32c { entry.words } else { 0 });
            offsets.push(start as u64 / 4);
            start += own.len();
        }
        Self { words, offsets, bytes }
    }
}

/// Makes lanes up to two.
fn ready<'a, T: Element>(device: &Device, all: &'a mut Lanes) -> Result<&'a mut [Lane<T>; 2], DeviceError> {
    let slice_blocks = all.slice_blocks;
    let lanes = T::lanes(all);
    while lanes.len() < 2 {
        lanes.push(Lane::new(device, slice_blocks)?);
    }
    Ok(lanes.first_chunk_mut().expect("two lanes were made"))
}

/// Encodes all slices: while one is fetched, the next is coded. Appends the blocks to `target`.
pub(super) fn encode<T: Element>(
    device: &Device,
    all: &mut Lanes,
    setup: KernelSetup<'_>,
    source: LineSource<'_, T>,
    target: &mut Vec<u8>,
) -> Result<EncodedBlocks, DeviceError> {
    let slices = source.len().div_ceil(all.slice_values());
    let lanes = ready(device, all)?;
    let mut done = EncodedBlocks { table: Vec::with_capacity(source.len().div_ceil(BLOCK)), error: 0.0 };
    let mut each = || {
        for slice in 0..=slices {
            if slice < slices {
                lanes[slice % 2].begin(setup, source, slice)?;
            }
            if slice > 0 {
                lanes[(slice - 1) % 2].finish(target, &mut done)?;
            }
        }
        Ok(())
    };
    let result: Result<(), DeviceError> = each();
    // Nothing may still read the values when the caller has them back.
    for lane in lanes {
        lane.stream.synchronize()?;
    }
    result?;
    Ok(done)
}

/// Encodes one slice of values of the device, decodes what came of it, and says how long the
/// kernels took.
pub(super) fn time(
    device: &Device,
    all: &mut Lanes,
    setup: KernelSetup<'_>,
    values: DeviceView<'_, f64>,
) -> Result<KernelTiming, DeviceError> {
    let [Lane { stream, values: decoded, encoded, .. }, other] = ready::<f64>(device, all)?;
    let blocks = values.len().div_ceil(BLOCK);
    let start = stream.timestamp()?;
    sys::encode(stream, setup.kernels, setup.lattice, values, setup.stride, encoded)?;
    let middle = stream.timestamp()?;
    // The other lane's memory is free: flags are written there.
    let damaged = other.encoded.words.view_mut();
    let sys::SliceBuffers { words, offsets, compacted, .. } = &*encoded;
    let all = compacted.view();
    let offsets = offsets.view();
    let words = words.view();
    let device_blocks = sys::Blocks { all, offsets, words, damaged };
    let mut target = decoded.slice_mut(0..values.len());
    sys::decode(stream, setup.kernels, setup.lattice, device_blocks, &mut target, setup.stride)?;
    let end = stream.timestamp()?;
    let mut total = [0u64];
    stream.download(offsets.slice(blocks..blocks + 1), &mut total)?;
    Ok(KernelTiming {
        encode_seconds: middle.seconds_since(&start)?,
        decode_seconds: end.seconds_since(&middle)?,
        bytes: total[0] as usize * 4,
    })
}

/// Decodes all slices, one after the other; the numbers of damaged blocks. No block has more words
/// than a slot.
pub(super) fn decode<T: Element>(
    device: &Device,
    all: &mut Lanes,
    setup: KernelSetup<'_>,
    stored: StoredBlocks<'_>,
    target: &mut [T],
) -> Result<Vec<usize>, DeviceError> {
    let StoredBlocks { table, mut bytes } = stored;
    let slice_blocks = all.slice_blocks;
    let slice_values = all.slice_values();
    let [lane, _] = ready(device, all)?;
    let mut damaged = Vec::new();
    let slices = table.chunks(slice_blocks).zip(target.chunks_mut(slice_values)).enumerate();
    for (slice, (table, target)) in slices {
        let len = table.iter().map(|entry| entry.words as usize * 4).sum();
        let (own, rest) = bytes.split_at(len);
        bytes = rest;
        let flags = lane.decode(setup, &SliceBlocks::new(table, own), target)?;
        let found = flags.into_iter().enumerate().filter(|(_, is_damaged)| *is_damaged);
        damaged.extend(found.map(|(block, _)| slice * slice_blocks + block));
    }
    Ok(damaged)
}
