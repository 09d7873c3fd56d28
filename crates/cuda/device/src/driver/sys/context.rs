//! The primary context of a device, and calls made in it.

use super::{CudaDriver, DeviceHandle};
use crate::DeviceError;
use crate::error::CallSize;

/// The primary context of a device, which it shares with all libraries of the process; released
/// when dropped.
#[derive(Debug)]
pub(crate) struct PrimaryContext {
    driver: CudaDriver,
    device: DeviceHandle,
    handle: usize,
}

impl PrimaryContext {
    pub(crate) fn retain(driver: CudaDriver, device: DeviceHandle) -> Result<Self, DeviceError> {
        let mut handle = 0;
        // SAFETY: the handle is written to a place that is.
        let code = unsafe { (driver.functions.cuDevicePrimaryCtxRetain)(&raw mut handle, device.0) };
        driver.check("cuDevicePrimaryCtxRetain", CallSize::None, code)?;
        Ok(Self { driver, device, handle })
    }

    pub(crate) fn device(&self) -> DeviceHandle {
        self.device
    }

    /// Makes this the context of the thread while the result lives. What the thread had before
    /// comes back then: the program may use another device, and this context may end.
    pub(crate) fn enter(&self) -> Result<Current<'_>, DeviceError> {
        let mut before = 0;
        // SAFETY: the handle is written to a place that is.
        let code = unsafe { (self.driver.functions.cuCtxGetCurrent)(&raw mut before) };
        self.driver.check("cuCtxGetCurrent", CallSize::None, code)?;
        if before != self.handle {
            self.set(self.handle)?;
        }
        Ok(Current { context: self, before })
    }

    fn set(&self, handle: usize) -> Result<(), DeviceError> {
        // SAFETY: the context is retained, or was the thread's own.
        let code = unsafe { (self.driver.functions.cuCtxSetCurrent)(handle) };
        self.driver.check("cuCtxSetCurrent", CallSize::None, code)
    }

    /// Runs `work` in this context; for drops, which return no error. A call that frees may
    /// report the error of earlier work in place of doing its own, so it is tried twice.
    pub(crate) fn free(&self, work: impl Fn(&Current<'_>) -> Result<(), DeviceError>) {
        let attempt = || self.enter().and_then(|current| work(&current));
        if attempt().is_err() {
            let _ = attempt();
        }
    }

    /// Waits for all work of the context; whether all of it is known to have ended.
    pub(crate) fn settle(&self) -> bool {
        let attempt = || self.enter().and_then(|current| current.synchronize());
        attempt().is_ok() || attempt().is_ok()
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        let release = || {
            // SAFETY: it was retained once, and everything made in it holds it.
            let code = unsafe { (self.driver.functions.cuDevicePrimaryCtxRelease_v2)(self.device.0) };
            self.driver.check("cuDevicePrimaryCtxRelease", CallSize::None, code)
        };
        if release().is_err() {
            let _ = release();
        }
    }
}

/// A context while it is that of this thread.
#[derive(Debug)]
pub(crate) struct Current<'a> {
    context: &'a PrimaryContext,
    before: usize,
}

impl Current<'_> {
    pub(super) fn driver(&self) -> &CudaDriver {
        &self.context.driver
    }

    pub(super) fn check(&self, call: &'static str, size: CallSize, code: i32) -> Result<(), DeviceError> {
        self.context.driver.check(call, size, code)
    }

    /// Waits for all work of the context.
    pub(crate) fn synchronize(&self) -> Result<(), DeviceError> {
        // SAFETY: the call takes nothing.
        let code = unsafe { (self.driver().functions.cuCtxSynchronize)() };
        self.check("cuCtxSynchronize", CallSize::None, code)
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if self.before != self.context.handle && self.context.set(self.before).is_err() {
            let _ = self.context.set(self.before);
        }
    }
}
