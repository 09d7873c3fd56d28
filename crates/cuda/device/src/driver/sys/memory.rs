//! Memory of the device, copies, and host memory that is registered.

use std::ffi::c_void;

use super::context::Current;
use super::stream::StreamHandle;
use crate::DeviceError;
use crate::error::CallSize;

/// Bytes of a device's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBytes {
    /// All of it.
    pub total: usize,
    /// Bytes not yet used.
    pub free: usize,
}

impl Current<'_> {
    pub(crate) fn memory(&self) -> Result<MemoryBytes, DeviceError> {
        let mut found = MemoryBytes { total: 0, free: 0 };
        // SAFETY: both numbers are written to places that are.
        let code = unsafe { (self.driver().functions.cuMemGetInfo_v2)(&raw mut found.free, &raw mut found.total) };
        self.check("cuMemGetInfo", CallSize::None, code)?;
        Ok(found)
    }

    /// Returns the address of `bytes` bytes, at least one.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let mut address = 0;
        // SAFETY: the address is written to a place that is.
        let code = unsafe { (self.driver().functions.cuMemAlloc_v2)(&raw mut address, bytes) };
        self.check("cuMemAlloc", CallSize::Bytes(bytes), code)?;
        Ok(address)
    }

    pub(crate) fn release(&self, address: u64) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the address up; no memory of the host is concerned.
        let code = unsafe { (self.driver().functions.cuMemFree_v2)(address) };
        self.check("cuMemFree", CallSize::None, code)
    }

    pub(crate) fn fill(&self, address: u64, byte: u8, bytes: usize, stream: StreamHandle) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the address up; no memory of the host is concerned.
        let code = unsafe { (self.driver().functions.cuMemsetD8Async)(address, byte, bytes, stream.0) };
        self.check("cuMemsetD8Async", CallSize::Bytes(bytes), code)
    }

    /// Copies within the device's memory, as the next work of `stream`.
    pub(crate) fn copy(&self, source: u64, target: u64, bytes: usize, stream: StreamHandle) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the addresses up; no memory of the host is concerned.
        let code = unsafe { (self.driver().functions.cuMemcpyDtoDAsync_v2)(target, source, bytes, stream.0) };
        self.check("cuMemcpyDtoDAsync", CallSize::Bytes(bytes), code)
    }

    /// Copies from the host, as the next work of `stream`.
    ///
    /// # Safety
    /// `source` holds `bytes` bytes, which nothing changes or frees before the stream has come past
    /// this.
    pub(crate) unsafe fn upload(
        &self,
        source: *const u8,
        target: u64,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<(), DeviceError> {
        let source: *const c_void = source.cast();
        // SAFETY: the caller keeps the memory until the copy is done.
        let code = unsafe { (self.driver().functions.cuMemcpyHtoDAsync_v2)(target, source, bytes, stream.0) };
        self.check("cuMemcpyHtoDAsync", CallSize::Bytes(bytes), code)
    }

    /// Copies to the host, as the next work of `stream`.
    ///
    /// # Safety
    /// `target` has room for `bytes` bytes, which nothing reads, changes or frees before the stream
    /// has come past this.
    pub(crate) unsafe fn download(
        &self,
        source: u64,
        target: *mut u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the memory until the copy is done.
        let code = unsafe { (self.driver().functions.cuMemcpyDtoHAsync_v2)(target.cast(), source, bytes, stream.0) };
        self.check("cuMemcpyDtoHAsync", CallSize::Bytes(bytes), code)
    }

    /// Locks pages of the host in memory and makes them known to the device.
    ///
    /// # Safety
    /// The pages stay mapped until they are unregistered.
    pub(crate) unsafe fn register(&self, pointer: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller keeps the pages.
        let code = unsafe { (self.driver().functions.cuMemHostRegister_v2)(pointer.cast(), bytes, 0) };
        self.check("cuMemHostRegister", CallSize::Bytes(bytes), code)
    }

    /// Undoes [`Current::register`]; no copy of these pages is under way.
    pub(crate) fn unregister(&self, pointer: *mut u8) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the address up; the pages stay mapped.
        let code = unsafe { (self.driver().functions.cuMemHostUnregister)(pointer.cast()) };
        self.check("cuMemHostUnregister", CallSize::None, code)
    }
}
