//! Code loaded into a device.

mod loaded;
mod sys;

use std::sync::Arc;

use self::loaded::LoadedCode;
pub use self::sys::{Argument, DeviceKernel};
use crate::ahead::KernelFolder;
use crate::{Compiled, Device, DeviceError, kept};

/// Code loaded into a device; unloaded when it and all its kernels are dropped.
#[derive(Clone, Debug)]
pub struct DeviceModule {
    code: Arc<LoadedCode>,
}

impl DeviceModule {
    /// Compiles `source` for `device` and loads it: as the device's own code, or as PTX where the
    /// compiler does not know the device. The same source is compiled once in a process. Where
    /// `RECOUP_KERNELS` names a [`KernelFolder`], nothing is compiled: the folder has the PTX.
    ///
    /// # Errors
    /// Those of [`Compiler`](crate::Compiler), [`DeviceError::NotAvailable`] for a source that the
    /// folder lacks, and [`DeviceError::Driver`] when the driver refuses the result.
    pub fn load(device: &Device, source: &str, name: &str) -> Result<Self, DeviceError> {
        if let Some(folder) = KernelFolder::named() {
            return Self::of(device, &folder.find(source, name, device.info().capability)?);
        }
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
