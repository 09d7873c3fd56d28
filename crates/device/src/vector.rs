//! Values in the memory of a device.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use crate::driver::PrimaryContext;
use crate::{Device, DeviceError, DeviceView, DeviceViewMut, Stream};

/// Values in the memory of a device. Dropping them waits for the device, which may still use them.
pub struct DeviceVec<T> {
    context: Arc<PrimaryContext>,
    address: u64,
    len: usize,
    elements: PhantomData<T>,
}

impl<T> fmt::Debug for DeviceVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, len, .. } = self;
        write!(f, "DeviceVec({len} values at {address:#x})")
    }
}

impl<T: Pod> DeviceVec<T> {
    /// Room for `len` values, which are whatever the memory holds.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no more.
    pub fn new(device: &Device, len: usize) -> Result<Self, DeviceError> {
        let context = Arc::clone(device.context());
        let address = match len * size_of::<T>() {
            0 => 0,
            bytes => context.enter()?.allocate(bytes)?,
        };
        Ok(Self { context, address, len, elements: PhantomData })
    }

    /// `len` zeros, as later work of `stream` sees them.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no more.
    pub fn zeros(stream: &Stream, len: usize) -> Result<Self, DeviceError> {
        let mut made = Self::new(stream.device(), len)?;
        stream.fill_zero(&mut made.view_mut())?;
        Ok(made)
    }

    /// A copy of `values`; done when this returns.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no more.
    pub fn copy_of(stream: &Stream, values: &[T]) -> Result<Self, DeviceError> {
        let mut made = Self::new(stream.device(), values.len())?;
        stream.upload(values, &mut made.view_mut())?;
        Ok(made)
    }
}

impl<T> DeviceVec<T> {
    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All values, to read.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_, T> {
        DeviceView::at(self.address, self.len)
    }

    /// All values, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, T> {
        DeviceViewMut::at(self.address, self.len)
    }

    /// The values of `range`, to read.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> DeviceView<'_, T> {
        self.view().slice(range)
    }

    /// The values of `range`, to write.
    pub fn slice_mut(&mut self, range: Range<usize>) -> DeviceViewMut<'_, T> {
        self.view_mut().into_slice(range)
    }
}

impl<T> AsRef<Self> for DeviceVec<T> {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl<T> Drop for DeviceVec<T> {
    fn drop(&mut self) {
        if self.address != 0 {
            self.context.settle();
            self.context.free(|current| current.release(self.address));
        }
    }
}
