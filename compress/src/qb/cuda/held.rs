//! Frames of values that are stored on the device, encoded and decoded there: the payload that the
//! host's codec makes.
//!
//! For a bound relative to the range of the values, and a frame that raw values would be smaller
//! than, the pipeline fetches the values.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::{
    Bound, Chain, CodecError, CodecId, CodecResult, Context, DeviceFrame, DeviceParent, DeviceSnapshot, ElementType,
    Encoded, Values,
};
use recoup_device::{DeviceElement, DeviceView, VectorSnapshot};

use super::lanes::{self, Element, FrameSource, FrameTarget};
use super::samples::DeviceSamples;
use super::sys::{DecodeViews, ValueViews};
use super::{QbCuda, fits_slots, foreign, parameters};
use crate::effective_bound;
use crate::qb::Qb;
use crate::qb::choice::FrameInput;
use crate::qb::frame::{FrameHeader, preface};
use crate::qb::run::StoredBlocks;

impl QbCuda {
    /// Returns QB on the device where values are stored, the same for all who ask; `None` where
    /// they rest on none, or where it has no way to run QB.
    pub(crate) fn beside(values: &dyn DeviceSnapshot) -> Option<Arc<Self>> {
        static OPENED: Mutex<BTreeMap<usize, Option<Arc<QbCuda>>>> = Mutex::new(BTreeMap::new());
        let values = values.as_any();
        let doubles = values.downcast_ref::<VectorSnapshot<f64>>().map(VectorSnapshot::device);
        let device = doubles.or_else(|| values.downcast_ref::<VectorSnapshot<f32>>().map(VectorSnapshot::device))?;
        let ordinal = device.info().ordinal;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.entry(ordinal).or_insert_with(|| Self::open(ordinal).map(Arc::new).ok()).clone()
    }

    /// Encodes a frame where it is stored, as `host` would; `None` where it is to be fetched.
    pub(crate) fn encode_on_device_now(
        &self,
        host: &Qb,
        source: &DeviceFrame<'_>,
        bound: Bound,
        context: &Context<'_>,
        target: &mut Vec<u8>,
    ) -> CodecResult<Option<Encoded>> {
        match source.values.element() {
            ElementType::F64 => self.encode_on_device_as::<f64>(host, source, Values::F64(&[]), bound, context, target),
            ElementType::F32 => self.encode_on_device_as::<f32>(host, source, Values::F32(&[]), bound, context, target),
            ElementType::I64 | ElementType::Bytes => Ok(None),
        }
    }

    /// Encodes values of a type, of which `none` is an empty slice.
    fn encode_on_device_as<T: Element + DeviceElement>(
        &self,
        host: &Qb,
        source: &DeviceFrame<'_>,
        none: Values<'_>,
        bound: Bound,
        context: &Context<'_>,
        target: &mut Vec<u8>,
    ) -> CodecResult<Option<Encoded>> {
        let n = context.dims.iter().product::<usize>();
        let has_near_parent = matches!(context.chain, Chain::Follow(_));
        // A range is not looked for on the device.
        if n == 0 || has_near_parent || matches!(bound, Bound::Range(_)) {
            return Ok(None);
        }
        let input = FrameInput::<T>::held(n, effective_bound(none, bound)?, source.parent.map(|p| p.hash), context);
        let place = source.start..source.start + n;
        let Some(values) = self.frame_of(source.values, &place)? else { return Ok(None) };
        let parent = self.parent_of(source.parent, &place)?;
        if parent.is_none() && source.parent.is_some() {
            return Ok(None);
        }
        let plan = {
            let mut samples = DeviceSamples::new(self, ValueViews { values, parent });
            input.choose(host.arrangement, host.level, &mut samples)?
        };
        let views = ValueViews { values, parent: parent.filter(|_| plan.follows) };
        let error = self.encode_planned(&input, &plan, FrameSource::Device(views), target)?;
        let is_smaller = target.len() <= n * size_of::<T>();
        Ok(is_smaller.then(|| Qb::coded(&input, &plan, error)))
    }

    /// Decodes a payload to where values are stored, from `start` on; `None` where it is to be
    /// decoded on the host.
    pub(crate) fn decode_on_device_now(
        &self,
        source: &[u8],
        context: &Context<'_>,
        parent: Option<DeviceParent<'_>>,
        target: &mut dyn DeviceSnapshot,
        start: usize,
    ) -> CodecResult<Option<()>> {
        let place = start..start + context.dims.iter().product::<usize>();
        match target.element() {
            ElementType::F64 => self.decode_on_device_as::<f64>(source, parent, target, place),
            ElementType::F32 => self.decode_on_device_as::<f32>(source, parent, target, place),
            ElementType::I64 | ElementType::Bytes => Ok(None),
        }
    }

    /// Decodes values of a type to `place`.
    fn decode_on_device_as<T: Element + DeviceElement>(
        &self,
        source: &[u8],
        parent: Option<DeviceParent<'_>>,
        target: &mut dyn DeviceSnapshot,
        place: Range<usize>,
    ) -> CodecResult<Option<()>> {
        // The last work on the values is waited for.
        if place.is_empty() || self.frame_of::<T>(target, &place)?.is_none() {
            return Ok(None);
        }
        let (header, table) = FrameHeader::parse::<T>(source)?;
        let follows = Qb::follows(&header, parent.map(|parent| parent.hash), place.len())?;
        let parent = self.parent_of(parent.filter(|_| follows), &place)?;
        if !fits_slots::<T>(&table) || follows != parent.is_some() {
            return Ok(None);
        }
        let Some(held) = target.as_any_mut().downcast_mut::<VectorSnapshot<T>>() else { return Ok(None) };
        let stored = StoredBlocks { table: &table, bytes: &source[preface(header.shape)..] };
        let views = DecodeViews { values: held.view_mut().into_slice(place), parent };
        let mut damaged = Vec::new();
        let done = self.on_device::<T, _>(parameters(header.mode), header.shape, |device, lanes, setup| {
            damaged = lanes::decode(device, lanes, setup, stored, FrameTarget::Device(views))?;
            lanes::ticket::<T>(device, lanes)
        })?;
        held.wrote(done);
        if damaged.is_empty() {
            return Ok(Some(()));
        }
        Err(CodecError::Blocks { codec: CodecId::Qb, blocks: damaged, total: table.len() })
    }

    /// The values of a parent at the place of a frame; `None` where there is none here.
    fn parent_of<'a, T: DeviceElement>(
        &self,
        parent: Option<DeviceParent<'a>>,
        place: &Range<usize>,
    ) -> Result<Option<DeviceView<'a, T>>, CodecError> {
        parent.map_or(Ok(None), |parent| self.frame_of(parent.values, place))
    }

    /// The values of a frame, once the last work on them is done, as lanes have streams of their
    /// own; `None` where they are of another type or rest elsewhere.
    fn frame_of<'a, T: DeviceElement>(
        &self,
        values: &'a dyn DeviceSnapshot,
        place: &Range<usize>,
    ) -> Result<Option<DeviceView<'a, T>>, CodecError> {
        let ordinal = self.device.info().ordinal;
        let held = values.as_any().downcast_ref::<VectorSnapshot<T>>();
        let Some(held) = held.filter(|held| held.device().info().ordinal == ordinal) else { return Ok(None) };
        let found = values.len().saturating_sub(place.start);
        if found < place.len() {
            return Err(CodecError::Shape { expected: place.len(), found });
        }
        held.ticket().map_or(Ok(()), |ticket| ticket.wait()).map_err(|error| foreign(&error))?;
        Ok(Some(held.view().slice(place.clone())))
    }
}
