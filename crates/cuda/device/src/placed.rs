//! Values frozen in memory that grows, and copied back from there.
//!
//! An owner of values freezes them in memory that fits, where it is offered some. A part of a
//! [`Mapped`] is such memory, so a cache has a state in its place after one copy within the device.

use std::sync::Arc;

use recoup_core::{DeviceSnapshot, DeviceValues, DeviceValuesError, ElementType};

use crate::element::with_type;
use crate::vector_snapshot::other_place;
use crate::{Device, DeviceTicket, Mapped, VectorSnapshot, device_values_error};

/// A frozen copy, by its place.
#[derive(Debug)]
pub enum PlacedCopy {
    /// In the part that was offered, once the ticket is due.
    Here(DeviceTicket),
    /// In memory of its own: the values are stored at another place.
    Elsewhere(Box<dyn DeviceSnapshot>),
}

/// Values in memory that grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedPart {
    /// The first byte.
    pub offset: usize,
    /// Type of the values.
    pub element: ElementType,
    /// Number of them.
    pub len: usize,
}

impl Mapped {
    /// Lends values as a frozen copy to `work`, such as that of a codec, after `before`, the ticket
    /// of earlier work on these bytes. All of it is done when this returns.
    ///
    /// # Errors
    /// [`DeviceValuesError`] of `work`, or of the device.
    ///
    /// # Panics
    /// If the bytes are not mapped.
    pub fn lend<R>(
        self: &Arc<Self>,
        device: &Device,
        part: MappedPart,
        before: DeviceTicket,
        work: impl FnOnce(&mut dyn DeviceSnapshot) -> Result<R, DeviceValuesError>,
    ) -> Result<R, DeviceValuesError> {
        let MappedPart { offset, element, len } = part;
        with_type!(element, T => {
            let mut place = VectorSnapshot::<T>::part_of(device, self, offset, len);
            place.wrote(before);
            let done = work(&mut place);
            let last = place.ticket().map_or(Ok(()), |last| last.wait()).map_err(device_values_error);
            // Work that has failed may be under way in any stream.
            done.and_then(|done| last.map(|()| done)).inspect_err(|_| self.settle())
        })
    }

    /// Freezes values at byte `offset`, as the next work of their owner's stream. Work on these
    /// bytes that was given before is done.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place of the values fails; then nothing is under way.
    ///
    /// # Panics
    /// If the bytes are not mapped.
    pub fn freeze(
        self: &Arc<Self>,
        device: &Device,
        offset: usize,
        source: &dyn DeviceValues,
    ) -> Result<PlacedCopy, DeviceValuesError> {
        let len = source.len();
        with_type!(source.element(), T => {
            let place = VectorSnapshot::<T>::part_of(device, self, offset, len);
            let address = *place.view().address();
            let held = source.snapshot(len, Some(Box::new(place))).inspect_err(|_| self.settle())?;
            let own: Option<&VectorSnapshot<T>> = held.as_any().downcast_ref();
            let own = own.filter(|own| own.is_on(device) && *own.view().address() == address);
            Ok(match own.and_then(VectorSnapshot::ticket) {
                Some(ticket) => PlacedCopy::Here(ticket),
                None => PlacedCopy::Elsewhere(held),
            })
        })
    }

    /// Overwrites values with those at byte `offset`, as the next work of their owner's stream and
    /// after `before`, the ticket of earlier work on these bytes. The ticket returned is due when
    /// they are read.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the place of the values fails, or is another one; then nothing is
    /// under way.
    ///
    /// # Panics
    /// If the bytes are not mapped.
    pub fn thaw(
        self: &Arc<Self>,
        device: &Device,
        offset: usize,
        target: &mut dyn DeviceValues,
        before: DeviceTicket,
    ) -> Result<DeviceTicket, DeviceValuesError> {
        let len = target.len();
        with_type!(target.element(), T => {
            let place = VectorSnapshot::<T>::part_of(device, self, offset, len);
            place.wrote(before);
            target.overwrite(&place).inspect_err(|_| self.settle())?;
            place.ticket().ok_or_else(other_place)
        })
    }
}
