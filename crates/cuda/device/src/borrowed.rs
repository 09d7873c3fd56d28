//! Memory of a device that the program owns, lent to a session for the time of a call.
//!
//! The program's streams are not known here. Each call therefore waits for all work of the device's
//! primary context first, and for its own copy at the end: what the program did before the call is
//! in the copy, and what it does later is not. The price is that work in other streams of the
//! program does not overlap with the call.

use std::sync::Arc;

use recoup_core::{
    DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind, ElementType, SnapshotAllocator,
};

use crate::element::with_type;
use crate::vector_snapshot::other_place;
use crate::{
    Device, DeviceError, DeviceView, DeviceViewMut, Stream, VectorSnapshot, device_pointer, device_values_error,
};

/// Values of the program in the memory of a device.
#[derive(Debug)]
pub struct BorrowedMemory {
    stream: Stream,
    address: usize,
    element: ElementType,
    len: usize,
}

impl BorrowedMemory {
    /// Borrows `len` values at `address` if it lies in the memory of a device. `None` for memory of
    /// the host. The program keeps the memory while it is borrowed.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the allocation is shorter, or the device refuses.
    pub fn find(address: usize, element: ElementType, len: usize) -> Result<Option<Self>, DeviceValuesError> {
        let Some(place) = device_pointer(address).map_err(device_values_error)? else { return Ok(None) };
        let bytes = len * element.size();
        let left = place.bytes.saturating_sub(address - place.start);
        if bytes > left {
            let message = format!("{bytes} bytes expected at {address:#x} of device {}, {left} found", place.ordinal);
            return Err(DeviceValuesError { message, kind: DeviceValuesErrorKind::Failed });
        }
        let device = Device::open(place.ordinal).map_err(device_values_error)?;
        let stream = Stream::new(&device).map_err(device_values_error)?;
        Ok(Some(Self { stream, address, element, len }))
    }

    fn bytes(&self) -> usize {
        self.len * self.element.size()
    }

    /// Waits for the program's work.
    fn settle(&self) -> Result<(), DeviceError> {
        self.stream.context().enter()?.synchronize()
    }

    /// Returns the values, as `T` of their size or as bytes.
    fn values<T>(&self) -> DeviceView<'_, T> {
        DeviceView::at(self.address as u64, self.bytes() / size_of::<T>())
    }

    fn values_mut<T>(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut::at(self.address as u64, self.bytes() / size_of::<T>())
    }

    /// Copies all values to the host, as bytes, once the program's work is done.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the device is lost.
    pub fn read_bytes(&self, target: &mut [u8]) -> Result<(), DeviceValuesError> {
        self.settle().and_then(|()| self.stream.download(self.values(), target)).map_err(device_values_error)
    }

    /// Overwrites all values with bytes of the host, once the program's work is done.
    ///
    /// # Errors
    /// [`DeviceValuesError`] when the device is lost.
    pub fn write_bytes(&mut self, source: &[u8]) -> Result<(), DeviceValuesError> {
        let stream = self.stream.clone();
        self.settle().and_then(|()| stream.upload(source, &mut self.values_mut())).map_err(device_values_error)
    }
}

impl DeviceValues for BorrowedMemory {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.len
    }

    fn snapshot(
        &self,
        padded_len: usize,
        earlier: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.settle().map_err(device_values_error)?;
        let held = with_type!(self.element, T => {
            VectorSnapshot::<T>::frozen(self.values::<T>(), padded_len, &self.stream, earlier)?
        });
        self.stream.synchronize().map_err(device_values_error)?;
        Ok(held)
    }

    fn alloc(&self, padded_len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.stream.device().alloc(self.element, padded_len)
    }

    fn allocator(&self) -> Option<Arc<dyn SnapshotAllocator>> {
        Some(Arc::new(self.stream.device().clone()))
    }

    fn overwrite(&mut self, held: &dyn DeviceSnapshot) -> Result<(), DeviceValuesError> {
        self.settle().map_err(device_values_error)?;
        let stream = self.stream.clone();
        with_type!(self.element, T => {
            let held: &VectorSnapshot<T> = held.as_any().downcast_ref().ok_or_else(other_place)?;
            held.copy_to(&mut self.values_mut::<T>(), &stream)?;
        });
        stream.synchronize().map_err(device_values_error)
    }
}
