//! Frozen values of a vector on a device, without a copy of them there.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use recoup_core::{DeviceSnapshot, DeviceValuesError, ElementType, Values, ValuesMut};

use crate::freezer::{FrozenCopy, VectorFreezer};
use crate::vector_snapshot::{device_values_error, other_place};
use crate::{DeviceElement, HostBuffer, Stream, VectorSnapshot};

/// The values of a vector on a device as they were once. They are fetched from the vector as long
/// as it has them, and are in the memory of the host from then on.
///
/// Codecs of the device do not reach them, since a frame need not be in one place: frames are
/// fetched, and coded on the host.
#[derive(Debug)]
pub struct DeviceFrozen<T> {
    freezer: Arc<VectorFreezer>,
    copy: Arc<FrozenCopy>,
    /// Values of the vector. Those behind repeat the last of them.
    own_len: usize,
    len: usize,
    elements: PhantomData<T>,
}

impl<T: DeviceElement> DeviceFrozen<T> {
    /// Freezes the `own_len` values of a vector, as the next work of its owner's stream. The last
    /// of them is repeated up to `len`. Uses the memory `host` of an earlier version if it fits.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when there is no room on device or host, or the device fails.
    pub(crate) fn freeze(
        freezer: &Arc<VectorFreezer>,
        own_len: usize,
        len: usize,
        stream: &Stream,
        host: Option<Arc<HostBuffer>>,
    ) -> Result<Self, DeviceValuesError> {
        let copy = freezer.freeze(stream, host).map_err(device_values_error)?;
        Ok(Self { freezer: Arc::clone(freezer), copy, own_len, len, elements: PhantomData })
    }

    /// Returns the memory of the host of values that were frozen like this.
    pub(crate) fn host_memory_of(held: &dyn DeviceSnapshot) -> Option<Arc<HostBuffer>> {
        held.as_any().downcast_ref::<Self>().map(|frozen| Arc::clone(&frozen.copy.host))
    }

    /// Copies values from `start` on, which the vector has, a transfer at a time.
    fn download(&self, start: usize, target: &mut [T]) -> Result<(), DeviceValuesError> {
        let size = size_of::<T>();
        self.freezer.fetch(&self.copy, &(start * size..(start + target.len()) * size));
        let mut offset = start * size;
        for piece in target.chunks_mut(self.freezer.ring().settings().slot_bytes.div_ceil(size)) {
            let piece: &mut [u8] = bytemuck::cast_slice_mut(piece);
            piece.copy_from_slice(&self.copy.host.read(offset..offset + piece.len()).map_err(device_values_error)?);
            offset += piece.len();
        }
        // An error that came meanwhile may have cost some of these values.
        self.copy.fault.get().map_or(Ok(()), |fault| Err(fault.clone()))
    }
}

impl<T: DeviceElement> DeviceSnapshot for DeviceFrozen<T> {
    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn len(&self) -> usize {
        self.len
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), DeviceValuesError> {
        let target = T::values_mut(target).ok_or_else(other_place)?;
        let Some(last) = self.own_len.checked_sub(1) else { return Ok(()) };
        let [first, end] = [start.min(self.own_len), (start + target.len()).min(self.own_len)];
        let (values, padding) = target.split_at_mut(end - first);
        self.download(first, values)?;
        if !padding.is_empty() {
            let mut repeated = [T::zeroed()];
            self.download(last, &mut repeated)?;
            padding.fill(repeated[0]);
        }
        Ok(())
    }

    fn put(&mut self, _start: usize, _source: Values<'_>) -> Result<(), DeviceValuesError> {
        Err(other_place())
    }

    fn is_alike(&self, _other: &dyn DeviceSnapshot) -> bool {
        false
    }

    fn alloc(&self) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        Ok(Box::new(VectorSnapshot::<T>::new(self.freezer.ring().device(), self.len)?))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl<T> Drop for DeviceFrozen<T> {
    fn drop(&mut self) {
        self.freezer.end(&self.copy);
    }
}
