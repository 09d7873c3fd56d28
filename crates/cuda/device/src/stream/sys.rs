//! Copies between a device and slices of the host.
//!
//! A copy of memory that some library has registered returns before it is done. Whether a slice is
//! such memory cannot be seen from its type, so these copies are waited for.

#![expect(unsafe_code, reason = "the device reads and writes memory of the host")]

use bytemuck::Pod;

use crate::{DeviceError, DeviceView, DeviceViewMut, Stream};

impl Stream {
    /// Copies values of the host to `target`, of the same length. Waits for them and for the work
    /// before.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of that work.
    pub fn upload<T: Pod>(&self, source: &[T], target: &mut DeviceViewMut<'_, T>) -> Result<(), DeviceError> {
        assert_eq!(source.len(), target.len(), "a copy has the length of its source");
        if source.is_empty() {
            return Ok(());
        }
        let current = self.context().enter()?;
        // SAFETY: the values are as long as told, and borrowed until the copy has been waited for.
        let copied =
            unsafe { current.upload(source.as_ptr().cast(), *target.address(), size_of_val(source), self.handle()) };
        self.settle(copied)
    }

    /// Copies values of the device to `target`, of the same length. Waits for them and for the work
    /// before.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of that work.
    pub fn download<T: Pod>(&self, source: DeviceView<'_, T>, target: &mut [T]) -> Result<(), DeviceError> {
        assert_eq!(source.len(), target.len(), "a copy has the length of its source");
        if source.is_empty() {
            return Ok(());
        }
        let current = self.context().enter()?;
        let bytes = size_of_val(target);
        // SAFETY: the values are as long as told, any bytes are values of them, and they are
        // borrowed until the copy has been waited for.
        let copied = unsafe { current.download(*source.address(), target.as_mut_ptr().cast(), bytes, self.handle()) };
        self.settle(copied)
    }

    /// Waits after a copy of borrowed memory; also after one that failed, which may have begun.
    fn settle(&self, copied: Result<(), DeviceError>) -> Result<(), DeviceError> {
        let result = copied.and_then(|()| self.synchronize());
        if result.is_err() {
            self.context().settle();
        }
        result
    }
}
