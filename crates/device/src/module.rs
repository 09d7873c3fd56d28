//! Code loaded into a device.

mod loaded;
mod sys;

use std::sync::Arc;

use self::loaded::LoadedCode;
pub use self::sys::{Argument, DeviceKernel};
use crate::{Compiled, Device, DeviceError, kept};

/// Code loaded into a device; unloaded when it and all its kernels are dropped.
#[derive(Clone, Debug)]
pub struct DeviceModule {
    code: Arc<LoadedCode>,
}

impl DeviceModule {
    /// Compiles `source` for `device` and loads it: as the device's own code, or as PTX where the
    /// compiler does not know the device. The same source is compiled once in a process.
    ///
    /// # Errors
    /// Those of [`Compiler`](crate::Compiler), and [`DeviceError::Driver`] when the driver refuses
    /// the result.
    pub fn load(device: &Device, source: &str, name: &str) -> Result<Self, DeviceError> {
        let compiler = device.compiler()?;
        let architecture = compiler.architecture(device.info().capability)?;
        Self::of(device, &*kept::compile(compiler, source, name, &architecture.to_string())?)
    }

    /// Loads what was compiled for `device`, or for one like it.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses it.
    pub fn of(device: &Device, compiled: &Compiled) -> Result<Self, DeviceError> {
        Ok(Self { code: Arc::new(LoadedCode::load(device.context(), compiled)?) })
    }

    /// Returns the kernel `name`.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] if there is none of that name.
    pub fn kernel(&self, name: &str) -> Result<DeviceKernel, DeviceError> {
        Ok(DeviceKernel::new(&self.code, self.code.kernel(name)?, name))
    }
}
