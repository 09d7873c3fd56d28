//! QB on a CUDA device: the bytes of [`Qb`], which is the oracle.
//!
//! The device codes lines, tiles and fitted tiles, alone and against a parent. The host chooses the
//! arrangement, on a few blocks, and makes header, table and checksums. `qb.cuh` and the files it
//! is put together with are the same codec once more.
//!
//! Promises: the same bytes as [`Qb`] for every input; memory for two slices, of 64 MiB
//! of doubles each unless told otherwise, and as much for slices of a parent, whatever the vector.

mod held;
mod lanes;
mod samples;
mod slices;
mod sys;
mod timing;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use recoup_core::{
    Bound, Codec, CodecError, CodecId, CodecResult, Context, DeviceFrame, DeviceParent, DeviceSnapshot, Values,
    ValuesMut,
};
use recoup_device::{Device, DeviceError, DeviceKernel, DeviceView, VectorSnapshot};

use self::lanes::{Element, FrameSource, FrameTarget, KernelSetup, Lanes};
use self::sys::{Kernels, Parameters, ValueViews};
pub use self::timing::KernelTiming;
use super::choice::{Arrangement, CodingPlan, FrameInput};
use super::frame::{BlockEntry, FrameHeader, STRIDES, preface};
use super::mode::FrameMode;
use super::run::StoredBlocks;
use super::shape::{BLOCK, FrameShape};
use super::{Qb, bytes, effective_bound};
use crate::lattice::Lattice;

/// The kernels, as CUDA C; those of a lattice, a type and a cut are one more line.
const SOURCE: &str = concat!(
    include_str!("qb.cuh"),
    include_str!("qb_cut.cuh"),
    include_str!("qb_tile.cuh"),
    include_str!("qb_encode.cuh"),
    include_str!("qb_decode.cuh")
);

/// The source of the kernels of a lattice (`Absolute`, `Relative`, `Exact`) for values of a type
/// (`F64`, `F32`), in a line or in tiles (`LineCut`, `TileCut`).
#[must_use]
pub fn source(lattice: &str, element: &str, cut: &str) -> String {
    format!("{SOURCE}\nQB_KERNELS({element}, {lattice}, {cut})\n")
}

/// The sources of all kernels, each compiled by itself.
#[must_use]
pub fn sources() -> Vec<String> {
    let mut all = Vec::new();
    for element in [<f64 as Element>::NAME, <f32 as Element>::NAME] {
        for cut in ["LineCut", "TileCut"] {
            all.extend(["Absolute", "Relative", "Exact"].map(|lattice| source(lattice, element, cut)));
            all.push(samples::source(element, cut));
        }
    }
    all
}

/// QB on a device.
pub struct QbCuda {
    host: Qb,
    device: Device,
    state: Mutex<DeviceState>,
}

/// Kernels and memory of the device, made when first needed.
struct DeviceState {
    /// By lattice, type of values and cut.
    kernels: BTreeMap<[&'static str; 3], Kernels>,
    /// The kernels that gather samples, by type of values and cut.
    gathering: BTreeMap<[&'static str; 2], DeviceKernel>,
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
        device.check_kernels()?;
        let state =
            DeviceState { kernels: BTreeMap::new(), gathering: BTreeMap::new(), lanes: Lanes::new(blocks.max(1)) };
        Ok(Self { host: Qb::default(), device, state: Mutex::new(state) })
    }

    /// Sets the arrangement as [`Qb::with_arrangement`] does.
    #[must_use]
    pub fn with_arrangement(self, arrangement: Arrangement) -> Self {
        Self { host: self.host.with_arrangement(arrangement), ..self }
    }

    /// QB on the first device, the same for all who ask.
    pub(crate) fn shared() -> CodecResult<Arc<Self>> {
        static SHARED: OnceLock<Result<Arc<QbCuda>, DeviceError>> = OnceLock::new();
        SHARED.get_or_init(|| Self::open(0).map(Arc::new)).clone().map_err(|error| foreign(&error))
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Encodes doubles that are stored in the device's memory, as a line that stands alone: the
    /// frame of [`Qb`], by the line predictor, even where raw values would be smaller. Returns the
    /// largest error.
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
    ) -> CodecResult<f64> {
        let stride = if (1..=STRIDES).contains(&stride) { stride } else { 1 };
        // The lattice follows from the bound alone.
        let bound = match bound {
            Bound::Range(value) => return Err(CodecError::Bound { value }),
            other => effective_bound(Values::F64(&[]), other)?,
        };
        let context = Context { stride, ..Context::flat(0) };
        let plan = CodingPlan { shape: FrameShape::Line { n: values.len(), stride }, follows: false, is_halved: false };
        let source = FrameSource::Device(ValueViews { values, parent: None });
        self.encode_planned(&FrameInput::new(&[], bound, &context), &plan, source, target)
    }

    /// Seconds the kernels alone take for doubles, in the arrangement asked for where it is
    /// possible: encoded, then decoded; the second of two runs. `values` are on the host, where
    /// weights are fitted to them, and `there` on the device.
    ///
    /// # Errors
    /// As [`QbCuda::encode_resident`]; [`CodecError::Shape`] for more than a slice.
    pub fn time_kernels(
        &self,
        values: &[f64],
        there: DeviceView<'_, f64>,
        bound: Bound,
        context: &Context<'_>,
    ) -> CodecResult<KernelTiming> {
        let input = FrameInput::new(values, effective_bound(Values::F64(values), bound)?, context);
        let plan = input.choose(self.host.arrangement, self.host.level, &mut input.sampled())?;
        let expected = self.state().lanes.slice_values();
        if plan.shape.blocks() * BLOCK > expected {
            return Err(CodecError::Shape { expected, found: values.len() });
        }
        self.on_device::<f64, _>(parameters(plan.mode(&input)), plan.shape, |device, lanes, setup| {
            lanes::time(device, lanes, setup, there)?;
            lanes::time(device, lanes, setup, there)
        })
    }

    fn state(&self) -> MutexGuard<'_, DeviceState> {
        // What a panic left half done is overwritten by the next frame.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn encode_floats<T: Element>(&self, input: &FrameInput<'_, T>, target: &mut Vec<u8>) -> CodecResult {
        let plan = input.choose(self.host.arrangement, self.host.level, &mut input.sampled())?;
        let error = match input.values.is_empty() {
            true => self.host.encode_planned(input, &plan, target),
            false => self.encode_planned(input, &plan, FrameSource::Host(input.source(&plan)), target)?,
        };
        Ok(Qb::encoded(input, &plan, error, target))
    }

    /// Fills `target` with a frame; the largest error.
    fn encode_planned<T: Element>(
        &self,
        input: &FrameInput<'_, T>,
        plan: &CodingPlan,
        source: FrameSource<'_, T>,
        target: &mut Vec<u8>,
    ) -> CodecResult<f64> {
        let mode = plan.mode(input);
        let NamedLattice { name, parameters } = parameters(mode);
        let dead_band = plan.dead_band(input).unwrap_or(parameters.dead_band);
        let lattice = NamedLattice { name, parameters: Parameters { dead_band, ..parameters } };
        target.clear();
        target.resize(preface(plan.shape), 0);
        let blocks = self.on_device::<T, _>(lattice, plan.shape, |device, lanes, setup| {
            lanes::encode(device, lanes, setup, source, target)
        })?;
        let header = FrameHeader {
            mode,
            shape: plan.shape,
            bound: input.bound.value(),
            is_halved: plan.is_halved,
            parent: input.parent_of(plan).map(|parent| parent.hash),
        };
        header.write::<T>(&blocks.table, target);
        Ok(blocks.error)
    }

    fn decode_floats<T: Element>(&self, source: &[u8], context: &Context, target: &mut [T]) -> CodecResult<()> {
        let (header, table) = FrameHeader::parse::<T>(source)?;
        let parent = Qb::parent_values(&header, context, target.len())?;
        if target.is_empty() || !fits_slots::<T>(&table) {
            return self.host.decode_floats(source, context, target);
        }
        let stored = StoredBlocks { table: &table, bytes: &source[preface(header.shape)..] };
        let damaged = self.on_device::<T, _>(parameters(header.mode), header.shape, |device, lanes, setup| {
            lanes::decode(device, lanes, setup, stored, FrameTarget::Host { values: target, parent })
        })?;
        match damaged.is_empty() {
            true => Ok(()),
            false => Err(CodecError::Blocks { codec: CodecId::Qb, blocks: damaged, total: table.len() }),
        }
    }

    /// Runs `work` with the kernels of a lattice and a shape, and the memory of the device.
    fn on_device<T: Element, R>(
        &self,
        lattice: NamedLattice,
        shape: FrameShape,
        work: impl FnOnce(&Device, &mut Lanes, KernelSetup<'_>) -> Result<R, DeviceError>,
    ) -> CodecResult<R> {
        let NamedLattice { name, parameters } = lattice;
        let cut = cut_of(shape);
        let is_tiled = matches!(shape, FrameShape::Tiles { .. });
        let mut state = self.state();
        let DeviceState { kernels, lanes, .. } = &mut *state;
        let run = || {
            let kernels = match kernels.entry([name, T::NAME, cut]) {
                Entry::Occupied(loaded) => loaded.into_mut(),
                Entry::Vacant(vacant) => {
                    vacant.insert(Kernels::load(&self.device, &source(name, T::NAME, cut), is_tiled)?)
                }
            };
            work(&self.device, lanes, KernelSetup { kernels, lattice: parameters, shape })
        };
        run().map_err(|error| foreign(&error))
    }
}

/// The cut of a shape, as kernels name it.
fn cut_of(shape: FrameShape) -> &'static str {
    match shape {
        FrameShape::Line { .. } => "LineCut",
        FrameShape::Tiles { .. } => "TileCut",
    }
}

/// Returns whether no block has more words than the device has room for: none that an encoder
/// wrote.
fn fits_slots<T>(table: &[BlockEntry]) -> bool {
    table.iter().all(|entry| entry.words as usize <= sys::raw_words::<T>(BLOCK))
}

fn foreign(error: &DeviceError) -> CodecError {
    CodecError::Foreign { codec: CodecId::Qb, message: error.to_string() }
}

/// A lattice of the kernels.
#[derive(Clone, Copy, Debug)]
struct NamedLattice {
    name: &'static str,
    parameters: Parameters,
}

/// The lattice of a mode, without a dead band.
fn parameters(mode: FrameMode) -> NamedLattice {
    let none = Parameters { step: 0.0, inverse: 0.0, bound: 0.0, last: 0, dead_band: -1.0 };
    let (name, parameters) = match mode {
        FrameMode::Lossless => ("Exact", none),
        FrameMode::Absolute(lattice) => {
            let bound = Lattice::bound(&lattice);
            ("Absolute", Parameters { step: lattice.step(), inverse: lattice.inverse(), bound, ..none })
        }
        FrameMode::Relative(lattice) => {
            let step = lattice.divisor() as f64;
            ("Relative", Parameters { step, inverse: lattice.inverse(), last: lattice.last(), ..none })
        }
    };
    NamedLattice { name, parameters }
}

impl Codec for QbCuda {
    fn id(&self) -> CodecId {
        CodecId::Qb
    }

    fn can_follow(&self) -> bool {
        true
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let effective = effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        match source {
            Values::F64(values) => self.encode_floats(&FrameInput::new(values, effective, context), target),
            Values::F32(values) => self.encode_floats(&FrameInput::new(values, effective, context), target),
            Values::I64(_) | Values::Bytes(_) => self.host.encode(source, bound, context, target),
        }
    }

    fn reaches(&self, values: &dyn DeviceSnapshot) -> bool {
        let values = values.as_any();
        let doubles = values.downcast_ref::<VectorSnapshot<f64>>().map(|held| held.is_on(&self.device));
        let singles = || values.downcast_ref::<VectorSnapshot<f32>>().map(|held| held.is_on(&self.device));
        doubles.or_else(singles).unwrap_or_default()
    }

    fn encode_on_device(
        &self,
        source: &DeviceFrame<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Option<CodecResult> {
        self.encode_on_device_now(&self.host, source, bound, context, target).transpose()
    }

    fn decode_on_device(
        &self,
        source: &[u8],
        _: Bound,
        context: &Context,
        parent: Option<DeviceParent<'_>>,
        target: &mut dyn DeviceSnapshot,
        start: usize,
    ) -> Option<CodecResult<()>> {
        self.decode_on_device_now(source, context, parent, target, start).transpose()
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        bytes::check_shape(context, target.as_values().len())?;
        match target {
            ValuesMut::F64(target) => self.decode_floats(source, context, target),
            ValuesMut::F32(target) => self.decode_floats(source, context, target),
            ValuesMut::I64(_) | ValuesMut::Bytes(_) => self.host.decode(source, bound, context, target),
        }
    }
}
