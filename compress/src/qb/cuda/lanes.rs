//! Slices of a vector through the device: memory of bounded size, two slices at a time.

use bytemuck::Pod;
use recoup_device::{Device, DeviceError, DeviceKernel, DeviceTicket, DeviceVec, DeviceView, HostBuffer, Stream};

use super::super::frame::BlockEntry;
use super::super::run::{EncodedBlocks, StoredBlocks};
use super::super::shape::{BLOCK, BlockRef, FrameShape};
use super::super::source::SourceValues;
use super::slices::{Slice, slices};
use super::sys::{self, DecodeViews, Kernels, Parameters, ValueViews, Window, raw_words};
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
    /// The parent's values; made for the first frame that has one.
    parent: Option<DeviceVec<T>>,
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
    pub(super) shape: FrameShape,
}

/// The values of a frame to encode, and those of its parent, at the same places.
#[derive(Clone, Copy, Debug)]
pub(super) enum FrameSource<'a, T> {
    /// In the memory of the host.
    Host(SourceValues<'a, T>),
    /// In that of the device.
    Device(ValueViews<'a, T>),
}

/// The place of the values of a frame to decode, and the values of its parent.
pub(super) enum FrameTarget<'a, T> {
    /// In the memory of the host.
    Host { values: &'a mut [T], parent: Option<&'a [T]> },
    /// In that of the device.
    Device(DecodeViews<'a, T>),
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
        Ok(Self { stream, values, parent: None, encoded, payload, blocks: 0 })
    }

    /// Begins to encode a slice.
    fn begin(&mut self, setup: KernelSetup<'_>, source: FrameSource<'_, T>, slice: &Slice) -> Result<(), DeviceError> {
        self.blocks = slice.blocks.len();
        let KernelSetup { kernels, lattice, shape } = setup;
        match source {
            FrameSource::Host(SourceValues { values, parent }) => {
                upload(&self.stream, slice, values, &mut self.values)?;
                self.load_parent(slice, parent)?;
                let views = ValueViews { values: self.values.view(), parent: lent(&self.parent, parent) };
                let window = Window::new(shape, slice, slice.extents);
                sys::encode(&self.stream, kernels, lattice, window, views, &mut self.encoded)
            }
            FrameSource::Device(ValueViews { values, parent }) => {
                let from = slice.first();
                let parent = parent.map(|parent| parent.slice(from..parent.len()));
                let views = ValueViews { values: values.slice(from..values.len()), parent };
                let window = Window::new(shape, slice, slice.dims);
                sys::encode(&self.stream, kernels, lattice, window, views, &mut self.encoded)
            }
        }
    }

    /// Copies the parent's values of a slice to the device, where there is a parent.
    fn load_parent(&mut self, slice: &Slice, parent: Option<&[T]>) -> Result<(), DeviceError> {
        let Some(parent) = parent else { return Ok(()) };
        let own = match &mut self.parent {
            Some(own) => own,
            none => none.insert(DeviceVec::zeros(&self.stream, self.values.len())?),
        };
        upload(&self.stream, slice, parent, own)
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

    /// Decodes one slice; a flag for each block that is damaged.
    fn decode(
        &mut self,
        setup: KernelSetup<'_>,
        slice: &Slice,
        blocks: &SliceBlocks<'_>,
        target: &mut FrameTarget<'_, T>,
    ) -> Result<Vec<bool>, DeviceError> {
        let n = blocks.words.len();
        let total = blocks.bytes.len() / 4;
        if let FrameTarget::Host { parent, .. } = target {
            self.load_parent(slice, *parent)?;
        }
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
        let pitches = if let FrameTarget::Host { .. } = target { slice.extents } else { slice.dims };
        let views = match target {
            FrameTarget::Host { parent, .. } => {
                DecodeViews { values: self.values.view_mut(), parent: lent(&self.parent, *parent) }
            }
            FrameTarget::Device(views) => views.after(slice.first()),
        };
        let window = Window::new(setup.shape, slice, pitches);
        sys::decode(&self.stream, setup.kernels, setup.lattice, window, device_blocks, views)?;
        let mut flags = vec![0u32; n];
        self.stream.download(self.encoded.slots.slice(0..n), &mut flags)?;
        if let FrameTarget::Host { values, .. } = target {
            for part in slice.parts() {
                self.stream.download(self.values.slice(part.of_slice()), &mut values[part.of_frame()])?;
            }
        }
        Ok(flags.into_iter().map(|flag| flag != 0).collect())
    }
}

/// The parent's values on the device, where the frame has a parent.
fn lent<'a, T>(own: &'a Option<DeviceVec<T>>, parent: Option<&[T]>) -> Option<DeviceView<'a, T>> {
    parent.and(own.as_ref()).map(DeviceVec::view)
}

/// Copies the values of a slice to the device.
fn upload<T: Element>(
    stream: &Stream,
    slice: &Slice,
    values: &[T],
    target: &mut DeviceVec<T>,
) -> Result<(), DeviceError> {
    slice.parts().try_for_each(|part| stream.upload(&values[part.of_frame()], &mut target.slice_mut(part.of_slice())))
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
    source: FrameSource<'_, T>,
    target: &mut Vec<u8>,
) -> Result<EncodedBlocks, DeviceError> {
    let slices = slices(setup.shape, all.slice_blocks);
    let lanes = ready(device, all)?;
    let mut done = EncodedBlocks { table: Vec::with_capacity(setup.shape.blocks()), error: 0.0 };
    let mut each = || {
        for number in 0..=slices.len() {
            if let Some(slice) = slices.get(number) {
                lanes[number % 2].begin(setup, source, slice)?;
            }
            if number > 0 {
                lanes[(number - 1) % 2].finish(target, &mut done)?;
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
    let KernelSetup { kernels, lattice, shape } = setup;
    let blocks = shape.blocks();
    let [slice] = &slices(shape, blocks)[..] else { return Ok(KernelTiming::default()) };
    let window = Window::new(shape, slice, slice.extents);
    let start = stream.timestamp()?;
    sys::encode(stream, kernels, lattice, window, ValueViews { values, parent: None }, encoded)?;
    let middle = stream.timestamp()?;
    // The other lane's memory is free: flags are written there.
    let damaged = other.encoded.words.view_mut();
    let sys::SliceBuffers { words, offsets, compacted, .. } = &*encoded;
    let all = compacted.view();
    let offsets = offsets.view();
    let words = words.view();
    let device_blocks = sys::Blocks { all, offsets, words, damaged };
    let target = DecodeViews { values: decoded.view_mut(), parent: None };
    sys::decode(stream, kernels, lattice, window, device_blocks, target)?;
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
    mut target: FrameTarget<'_, T>,
) -> Result<Vec<usize>, DeviceError> {
    let StoredBlocks { table, mut bytes } = stored;
    let slice_blocks = all.slice_blocks;
    let [lane, _] = ready(device, all)?;
    let mut damaged = Vec::new();
    for slice in slices(setup.shape, slice_blocks) {
        let table = &table[slice.blocks.clone()];
        let len = table.iter().map(|entry| entry.words as usize * 4).sum();
        let (own, rest) = bytes.split_at(len);
        bytes = rest;
        let flags = lane.decode(setup, &slice, &SliceBlocks::new(table, own), &mut target);
        if flags.is_err() {
            // Nothing may still write the values when the caller has them back.
            lane.stream.synchronize()?;
        }
        let found = slice.blocks.clone().zip(flags?).filter(|(_, is_damaged)| *is_damaged);
        damaged.extend(found.map(|(block, _)| block));
    }
    Ok(damaged)
}

/// Returns the place after all decoding done so far.
pub(super) fn ticket<T: Element>(device: &Device, all: &mut Lanes) -> Result<DeviceTicket, DeviceError> {
    let [lane, _] = ready::<T>(device, all)?;
    lane.stream.ticket()
}

/// Fetches the values of some blocks of a frame on the device, all of one shape.
pub(super) fn gather<T: Element>(
    device: &Device,
    all: &mut Lanes,
    kernel: &DeviceKernel,
    values: DeviceView<'_, T>,
    blocks: &[BlockRef],
) -> Result<Vec<Vec<T>>, DeviceError> {
    let slice_blocks = all.slice_blocks;
    let [Lane { stream, values: gathered, encoded, .. }, _] = ready(device, all)?;
    let mut near = Vec::with_capacity(blocks.len());
    for blocks in blocks.chunks(slice_blocks) {
        let shape = blocks[0].shape;
        let [whole] = &slices(shape, shape.blocks())[..] else {
            unreachable!("a frame is one slice of all its blocks")
        };
        let window = Window::new(shape, whole, whole.dims);
        let numbers: Vec<u32> = blocks.iter().map(|block| block.index as u32).collect();
        stream.upload(&numbers, &mut encoded.words.slice_mut(0..numbers.len()))?;
        let numbers = encoded.words.slice(0..numbers.len());
        sys::gather(stream, kernel, window, values, numbers, &gathered.view_mut())?;
        let mut all = vec![T::default(); blocks.len() * BLOCK];
        stream.download(gathered.slice(0..all.len()), &mut all)?;
        near.extend(blocks.iter().zip(all.chunks(BLOCK)).map(|(block, places)| places[..block.values()].to_vec()));
    }
    Ok(near)
}
