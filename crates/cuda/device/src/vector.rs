//! Values in the memory of a device.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use crate::driver::PrimaryContext;
use crate::{Device, DeviceError, DeviceView, DeviceViewMut, Mapped, Stream};

/// Values in the memory of a device. Dropping them waits for the device, which may still use them.
pub struct DeviceVec<T> {
    memory: VectorMemory,
    address: u64,
    len: usize,
    elements: PhantomData<T>,
}

/// The owner of the memory of values.
enum VectorMemory {
    /// The values, which free it when dropped.
    Own(Arc<PrimaryContext>),
    /// Memory that grows: they have a part of it, and go without a trace.
    Part { _of: Arc<Mapped> },
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
        Ok(Self { memory: VectorMemory::Own(context), address, len, elements: PhantomData })
    }

    /// Takes `len` values from byte `offset` of memory that grows. The order of work on them is the
    /// caller's.
    pub(crate) fn part_of(mapped: &Arc<Mapped>, offset: usize, len: usize) -> Self {
        let address = *mapped.view::<T>(offset, len).address();
        Self { memory: VectorMemory::Part { _of: Arc::clone(mapped) }, address, len, elements: PhantomData }
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
        if let VectorMemory::Own(context) = &self.memory
            && self.address != 0
        {
            context.settle();
            context.free(|current| current.release(self.address));
        }
    }
}
