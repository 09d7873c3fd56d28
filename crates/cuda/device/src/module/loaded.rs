//! A module of the driver.

use std::borrow::Cow;
use std::ffi::CString;
use std::sync::Arc;

use crate::driver::{KernelHandle, ModuleHandle, PrimaryContext};
use crate::{Compiled, DeviceError};

/// A module of the driver; unloaded when dropped.
#[derive(Debug)]
pub(super) struct LoadedCode {
    context: Arc<PrimaryContext>,
    handle: ModuleHandle,
}

impl LoadedCode {
    /// Loads the code of the device, or the PTX where there is none.
    pub(super) fn load(context: &Arc<PrimaryContext>, compiled: &Compiled) -> Result<Self, DeviceError> {
        let image = match &compiled.binary {
            Some(binary) => Cow::from(binary),
            // Text ends with a zero byte.
            None => Cow::from(compiled.ptx.bytes().chain([0]).collect::<Vec<u8>>()),
        };
        let handle = context.enter()?.load_module(&image)?;
        Ok(Self { context: Arc::clone(context), handle })
    }

    pub(super) fn kernel(&self, name: &str) -> Result<KernelHandle, DeviceError> {
        let name = CString::new(name).expect("the name of a kernel has no zero byte");
        self.context.enter()?.kernel(self.handle, &name)
    }
}

impl Drop for LoadedCode {
    fn drop(&mut self) {
        self.context.settle();
        self.context.free(|current| current.unload(self.handle));
    }
}
