//! Frames of values that rest on the device, encoded there: the payload the host's codec makes.
//!
//! Lines that stand alone are encoded here. For any other frame, and one that raw values would be
//! smaller than, the pipeline fetches the values.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::{Bound, Chain, CodecError, Context, Encoded, HeldFrame, HeldValues, Values};
use recoup_device::{DeviceElement, DeviceHeld};

use super::lanes::{Element, FrameSource};
use super::sys::ValueViews;
use super::{QbCuda, foreign};
use crate::effective_bound;
use crate::qb::Qb;
use crate::qb::choice::{CodingPlan, FrameInput};
use crate::qb::shape::FrameShape;

impl QbCuda {
    /// Returns QB on the device where values rest, the same for all who ask; `None` where they rest
    /// on none, or where it has no way to run QB.
    pub(crate) fn beside(values: &dyn HeldValues) -> Option<Arc<Self>> {
        static OPENED: Mutex<BTreeMap<usize, Option<Arc<QbCuda>>>> = Mutex::new(BTreeMap::new());
        let values = values.as_any();
        let doubles = values.downcast_ref::<DeviceHeld<f64>>().map(DeviceHeld::device);
        let device = doubles.or_else(|| values.downcast_ref::<DeviceHeld<f32>>().map(DeviceHeld::device))?;
        let ordinal = device.info().ordinal;
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        opened.entry(ordinal).or_insert_with(|| Self::open(ordinal).map(Arc::new).ok()).clone()
    }

    /// Encodes a line that stands alone where it rests; `None` for any other frame.
    pub(super) fn encode_held_line(
        &self,
        source: &HeldFrame<'_>,
        bound: Bound,
        context: &Context<'_>,
        target: &mut Vec<u8>,
    ) -> Result<Option<Encoded>, CodecError> {
        let values = source.values.as_any();
        if let Some(held) = values.downcast_ref::<DeviceHeld<f64>>() {
            self.encode_held_values(held, Values::F64(&[]), source, bound, context, target)
        } else if let Some(held) = values.downcast_ref::<DeviceHeld<f32>>() {
            self.encode_held_values(held, Values::F32(&[]), source, bound, context, target)
        } else {
            Ok(None)
        }
    }

    /// Encodes values of a type, of which `none` is an empty slice.
    fn encode_held_values<T: Element + DeviceElement>(
        &self,
        held: &DeviceHeld<T>,
        none: Values<'_>,
        source: &HeldFrame<'_>,
        bound: Bound,
        context: &Context<'_>,
        target: &mut Vec<u8>,
    ) -> Result<Option<Encoded>, CodecError> {
        let is_alone = matches!(context.chain, Chain::Alone | Chain::Start) && source.parent.is_none();
        let is_here = held.device().info().ordinal == self.device.info().ordinal;
        // A range is not looked for on the device.
        if !is_alone || !is_here || matches!(bound, Bound::Range(_)) {
            return Ok(None);
        }
        let n = context.dims.iter().product::<usize>();
        let input = FrameInput::<T>::new(&[], effective_bound(none, bound)?, context);
        if n == 0 || input.may_be_tiles() {
            return Ok(None);
        }
        // The lanes have a stream of their own.
        held.ticket().map_or(Ok(()), |ticket| ticket.wait()).map_err(|error| foreign(&error))?;
        let shape = FrameShape::Line { n, stride: input.stride };
        let plan = CodingPlan { shape, follows: false, is_halved: false };
        let values = held.view().slice(source.start..source.start + n);
        let line = FrameSource::Device(ValueViews { values, parent: None });
        let error = self.encode_planned(&input, &plan, line, target)?;
        let is_smaller = target.len() <= n * size_of::<T>();
        Ok(is_smaller.then(|| Qb::coded(&input, &plan, error)))
    }
}
