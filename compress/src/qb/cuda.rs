//! QB on a CUDA device: the bytes of [`Qb`], which is the oracle.
//!
//! The device codes lines that stand alone; grids and frames coded against a parent go to the
//! host's codec, as do header, table and checksums. `qb.cuh` and what follows it is the same codec
//! once more.
//!
//! Promises: the same bytes as [`Qb`] for every input; memory for two slices, of 64 MiB
//! of doubles each unless told otherwise, whatever the vector.

mod held;
mod lanes;
mod sys;
mod timing;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use recoup_core::{Bound, Codec, CodecError, CodecId, Context, Encoded, HeldFrame, Values, ValuesMut};
use recoup_device::{Device, DeviceError, DeviceView};

use self::lanes::{Element, KernelSetup, Lanes, LineSource};
use self::sys::{Kernels, Parameters};
pub use self::timing::KernelTiming;
use super::choice::{CodingPlan, FrameInput};
use super::frame::{ENTRY, FrameHeader, HEADER, STRIDES};
use super::mode::FrameMode;
use super::run::StoredBlocks;
use super::shape::{BLOCK, FrameShape};
use super::{Qb, bytes, damaged, effective_bound};
use crate::lattice::Lattice;

/// The kernels, as CUDA C; each lattice's are one more line.
const SOURCE: &str = concat!(include_str!("qb.cuh"), include_str!("qb_encode.cuh"), include_str!("qb_decode.cuh"));

/// LineSource of the kernels of a lattice (`Absolute`, `Relative`, `Exact`) for values of a type
/// (`F64`, `F32`).
#[must_use]
pub fn source(lattice: &str, element: &str) -> String {
    format!("{SOURCE}\nQB_KERNELS({element}, {lattice})\n")
}

/// QB on a device.
pub struct QbCuda {
    host: Qb,
    device: Device,
    state: Mutex<DeviceState>,
}

/// Kernels and memory of the device, made when first needed.
struct DeviceState {
    /// By lattice and type of values.
    kernels: BTreeMap<(&'static str, &'static str), Kernels>,
    lanes: Lanes,
}

impl fmt::Debug for QbCuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QbCuda").field("device", &self.device).finish_non_exhaustive()
    }
}

impl QbCuda {
    /// QB on device number `ordinal`. Kernels are compiled when first needed, a second or two each.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] when there is no such device, or no compiler for its kernels.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        Self::with_slices(ordinal, lanes::SLICE_BLOCKS)
    }

    /// Opens the device as [`QbCuda::open`] does, with slices of `blocks` blocks of 4096 values, at
    /// least one, in place of 2048: less memory, and more slices. The bytes are the same.
    ///
    /// # Errors
    /// Those of [`QbCuda::open`].
    pub fn with_slices(ordinal: usize, blocks: usize) -> Result<Self, DeviceError> {
        let device = Device::open(ordinal)?;
        device.compiler()?.architecture(device.info().capability)?;
        let state = DeviceState { kernels: BTreeMap::new(), lanes: Lanes::new(blocks.max(1)) };
        Ok(Self { host: Qb::default(), device, state: Mutex::new(state) })
    }

    /// QB on the first device, the same for all who ask.
    pub(crate) fn shared() -> Result<Arc<Self>, CodecError> {
        static SHARED: OnceLock<Result<Arc<QbCuda>, DeviceError>> = OnceLock::new();
        SHARED.get_or_init(|| Self::open(0).map(Arc::new)).clone().map_err(|error| foreign(&error))
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Encodes doubles that rest in the device's memory, as a line that stands alone: the frame of
    /// [`Qb`], by the line predictor, even where raw values would be smaller. Returns the largest
    /// error.
    ///
    /// The values are there when this is called: work of other streams on them has been waited for.
    /// `bound` is absolute, pointwise or lossless: a range is not looked for on the device.
    ///
    /// # Errors
    /// [`CodecError::Bound`] for another bound, [`CodecError::Foreign`] when the device fails.
    pub fn encode_resident(
        &self,
        values: DeviceView<'_, f64>,
        bound: Bound,
        stride: usize,
        target: &mut Vec<u8>,
    ) -> Result<f64, CodecError> {
        let stride = if (1..=STRIDES).contains(&stride) { stride } else { 1 };
        // The lattice follows from the bound alone.
        let bound = match bound {
            Bound::Range(value) => return Err(CodecError::Bound { value }),
            other => effective_bound(Values::F64(&[]), other)?,
        };
        let context = Context { stride, ..Context::flat(0) };
        let plan = CodingPlan { shape: FrameShape::Line { n: values.len(), stride }, follows: false, is_halved: false };
        self.encode_line(&FrameInput::new(&[], bound, &context), &plan, LineSource::Device(values), target)
    }

    /// Seconds the kernels alone take for doubles that rest in the device's memory, at most one
    /// slice: encoded, then decoded; the second of two runs.
    ///
    /// # Errors
    /// As [`QbCuda::encode_resident`]; [`CodecError::Shape`] for more than a slice.
    pub fn time_kernels(&self, values: DeviceView<'_, f64>, bound: Bound) -> Result<KernelTiming, CodecError> {
        let expected = self.state().lanes.slice_values();
        if values.len() > expected {
            return Err(CodecError::Shape { expected, found: values.len() });
        }
        let bound = effective_bound(Values::F64(&[]), bound)?;
        let plan =
            CodingPlan { shape: FrameShape::Line { n: values.len(), stride: 1 }, follows: false, is_halved: false };
        let mode = plan.mode(&FrameInput::<f64>::new(&[], bound, &Context::flat(0)));
        self.on_device::<f64, _>(mode, 1, |device, lanes, setup| {
            lanes::time(device, lanes, setup, values)?;
            lanes::time(device, lanes, setup, values)
        })
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        // What a panic left half done is overwritten by the next frame.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encode_floats<T: Element>(
        &self,
        input: &FrameInput<'_, T>,
        target: &mut Vec<u8>,
    ) -> Result<Encoded, CodecError> {
        let plan = input.choose(None, self.host.level);
        let is_ours = matches!(plan.shape, FrameShape::Line { .. }) && !plan.follows && !input.values.is_empty();
        let error = match is_ours {
            true => self.encode_line(input, &plan, LineSource::Host(input.values), target)?,
            false => self.host.encode_planned(input, &plan, target),
        };
        Ok(Qb::encoded(input, &plan, error, target))
    }

    /// Fills `target` with a frame; the largest error.
    fn encode_line<T: Element>(
        &self,
        input: &FrameInput<'_, T>,
        plan: &CodingPlan,
        source: LineSource<'_, T>,
        target: &mut Vec<u8>,
    ) -> Result<f64, CodecError> {
        let mode = plan.mode(input);
        let FrameShape::Line { stride, .. } = plan.shape else { return Err(damaged("no line")) };
        target.clear();
        target.resize(HEADER + plan.shape.blocks() * ENTRY, 0);
        let blocks = self.on_device::<T, _>(mode, stride, |device, lanes, setup| {
            lanes::encode(device, lanes, setup, source, target)
        })?;
        let bound = input.bound.value();
        let header = FrameHeader { mode, shape: plan.shape, bound, is_halved: plan.is_halved, parent: None };
        header.write::<T>(&blocks.table, target);
        Ok(blocks.error)
    }

    fn decode_floats<T: Element>(&self, source: &[u8], context: &Context, target: &mut [T]) -> Result<(), CodecError> {
        let (header, table) = FrameHeader::parse::<T>(source)?;
        let fits_slots = |words: u32| words as usize <= sys::raw_words::<T>(BLOCK);
        let stride = match header.shape {
            FrameShape::Line { n, stride } if n == target.len() && header.parent.is_none() => stride,
            _ => return self.host.decode_floats(source, context, target),
        };
        if target.is_empty() || !table.iter().all(|entry| fits_slots(entry.words)) {
            return self.host.decode_floats(source, context, target);
        }
        let stored = StoredBlocks { table: &table, bytes: &source[HEADER + table.len() * ENTRY..] };
        let damaged = self.on_device::<T, _>(header.mode, stride, |device, lanes, setup| {
            lanes::decode(device, lanes, setup, stored, target)
        })?;
        match damaged.is_empty() {
            true => Ok(()),
            false => Err(CodecError::Blocks { codec: CodecId::Qb, blocks: damaged, total: table.len() }),
        }
    }

    /// Runs `work` with the kernels of a mode and the memory of the device.
    fn on_device<T: Element, R>(
        &self,
        mode: FrameMode,
        stride: usize,
        work: impl FnOnce(&Device, &mut Lanes, KernelSetup<'_>) -> Result<R, DeviceError>,
    ) -> Result<R, CodecError> {
        let (name, lattice) = parameters(mode);
        let mut state = self.state();
        let DeviceState { kernels, lanes } = &mut *state;
        let run = || {
            let kernels = match kernels.entry((name, T::NAME)) {
                Entry::Occupied(loaded) => loaded.into_mut(),
                Entry::Vacant(vacant) => vacant.insert(Kernels::load(&self.device, &source(name, T::NAME))?),
            };
            let setup = KernelSetup { kernels, lattice, stride: stride as u32 };
            work(&self.device, lanes, setup)
        };
        run().map_err(|error| foreign(&error))
    }
}

fn foreign(error: &DeviceError) -> CodecError {
    CodecError::Foreign { codec: CodecId::Qb, message: error.to_string() }
}

/// Name of a mode's lattice in the kernels, and what they are told of it.
fn parameters(mode: FrameMode) -> (&'static str, Parameters) {
    let none = Parameters { step: 0.0, inverse: 0.0, bound: 0.0, last: 0 };
    match mode {
        FrameMode::Lossless => ("Exact", none),
        FrameMode::Absolute(lattice) => {
            let bound = Lattice::bound(&lattice);
            ("Absolute", Parameters { step: lattice.step(), inverse: lattice.inverse(), bound, ..none })
        }
        FrameMode::Relative(lattice) => {
            let step = lattice.divisor() as f64;
            ("Relative", Parameters { step, inverse: lattice.inverse(), last: lattice.last(), ..none })
        }
    }
}

impl Codec for QbCuda {
    fn id(&self) -> CodecId {
        CodecId::Qb
    }

    fn is_lossy(&self) -> bool {
        true
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(
        &self,
        source: Values<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Result<Encoded, CodecError> {
        if context.chain.parent().is_some() {
            return self.host.encode(source, bound, context, target);
        }
        let effective = effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        match source {
            Values::F64(values) => self.encode_floats(&FrameInput::new(values, effective, context), target),
            Values::F32(values) => self.encode_floats(&FrameInput::new(values, effective, context), target),
            Values::I64(_) | Values::Bytes(_) => self.host.encode(source, bound, context, target),
        }
    }

    fn encode_held(
        &self,
        source: &HeldFrame<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<Result<Encoded, CodecError>> {
        self.encode_held_line(source, bound, context, target).transpose()
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> Result<(), CodecError> {
        if context.chain.parent().is_some() {
            return self.host.decode(source, bound, context, target);
        }
        bytes::check_shape(context, target.as_values().len())?;
        match target {
            ValuesMut::F64(target) => self.decode_floats(source, context, target),
            ValuesMut::F32(target) => self.decode_floats(source, context, target),
            ValuesMut::I64(_) | ValuesMut::Bytes(_) => self.host.decode(source, bound, context, target),
        }
    }
}
