//! The devices of this machine, and one of them opened.

use std::sync::{Arc, OnceLock};

use crate::ahead::KernelFolder;
use crate::architecture::Capability;
use crate::driver::{CudaDriver, DeviceAttribute, DeviceHandle, MemoryBytes, PrimaryContext};
use crate::{Compiler, CudaVersion, DeviceError};

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Number of the device.
    pub ordinal: usize,
    /// Name of the device.
    pub name: String,
    /// Compute capability of the device.
    pub capability: Capability,
    /// Bytes of its memory.
    pub memory_bytes: usize,
}

/// The devices of this machine; at least one. None of them is opened.
///
/// # Errors
/// [`DeviceError::NotAvailable`] when there is no driver, or it knows no device.
pub fn probe() -> Result<Vec<DeviceInfo>, DeviceError> {
    let driver = CudaDriver::find()?;
    (0..count(&driver)?).map(|ordinal| info(&driver, driver.device(ordinal)?, ordinal)).collect()
}

/// Asks the driver for its version.
///
/// # Errors
/// [`DeviceError::NotAvailable`] when there is no driver, or one older than
/// [`CudaVersion::OLDEST`].
pub fn driver_version() -> Result<CudaVersion, DeviceError> {
    Ok(CudaDriver::find()?.version())
}

/// Number of devices; at least one.
fn count(driver: &CudaDriver) -> Result<usize, DeviceError> {
    match driver.device_count()? {
        0 => Err(DeviceError::NotAvailable { what: "device", why: "the driver finds no device".to_owned() }),
        count => Ok(count),
    }
}

fn info(driver: &CudaDriver, device: DeviceHandle, ordinal: usize) -> Result<DeviceInfo, DeviceError> {
    let attribute = |attribute| driver.attribute(device, attribute);
    let major = attribute(DeviceAttribute::CapabilityMajor)?;
    let minor = attribute(DeviceAttribute::CapabilityMinor)?;
    let memory_bytes = driver.device_bytes(device)?;
    Ok(DeviceInfo { ordinal, name: driver.device_name(device)?, capability: Capability { major, minor }, memory_bytes })
}

/// An open device. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    opened: Arc<Opened>,
}

#[derive(Debug)]
struct Opened {
    context: Arc<PrimaryContext>,
    info: DeviceInfo,
    driver: CudaVersion,
    has_virtual_memory: bool,
    compiler: OnceLock<Compiler>,
}

impl Device {
    /// Opens device number `ordinal`.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] when there is none of that number; [`DeviceError::Driver`]
    /// when it refuses.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        let driver = CudaDriver::find()?;
        let count = count(&driver)?;
        if ordinal >= count {
            let why = format!("number {ordinal} asked for, {count} found, counted from 0");
            return Err(DeviceError::NotAvailable { what: "device", why });
        }
        let device = driver.device(ordinal)?;
        let info = info(&driver, device, ordinal)?;
        let has_virtual_memory = driver.attribute(device, DeviceAttribute::VirtualMemory)? != 0;
        let context = Arc::new(PrimaryContext::retain(driver, device)?);
        let driver = driver.version();
        let opened = Opened { context, info, driver, has_virtual_memory, compiler: OnceLock::new() };
        Ok(Self { opened: Arc::new(opened) })
    }

    /// Returns its properties.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.opened.info
    }

    pub(crate) fn context(&self) -> &Arc<PrimaryContext> {
        &self.opened.context
    }

    /// Returns whether memory can be mapped piece by piece.
    pub(crate) fn has_virtual_memory(&self) -> bool {
        self.opened.has_virtual_memory
    }

    /// Returns how much memory it has, and how much is left.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn memory(&self) -> Result<MemoryBytes, DeviceError> {
        self.context().enter()?.memory()
    }

    /// The compiler of its kernels, looked for when first needed.
    ///
    /// # Errors
    /// Those of [`Compiler::find`].
    pub fn compiler(&self) -> Result<&Compiler, DeviceError> {
        if let Some(found) = self.opened.compiler.get() {
            return Ok(found);
        }
        let found = Compiler::find(Some(self.opened.driver))?;
        Ok(self.opened.compiler.get_or_init(|| found))
    }

    /// Checks that kernels can be made for it: a compiler knows it, or they were compiled ahead.
    ///
    /// # Errors
    /// Those of [`Compiler::find`] and [`Compiler::architecture`].
    pub fn check_kernels(&self) -> Result<(), DeviceError> {
        if KernelFolder::named().is_none() {
            self.compiler()?.architecture(self.info().capability)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_device_is_told_so_and_nothing_panics() {
        match probe() {
            Ok(devices) => assert!(!devices.is_empty()),
            Err(error) => {
                assert!(matches!(error, DeviceError::NotAvailable { .. }), "{error}");
                assert_eq!(Device::open(0).err(), Some(error));
            }
        }
    }

    #[test]
    fn a_device_of_no_number_is_not_available() {
        assert!(matches!(Device::open(1 << 20), Err(DeviceError::NotAvailable { .. })));
    }
}
