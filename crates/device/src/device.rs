//! The devices of this machine, and one of them opened.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaModule, DeviceRepr, PinnedHostSlice, ValidAsZeroBits};
use cudarc::nvrtc::Ptx;

use crate::{DeviceError, compile, sys};

/// Page-locked memory of the host, which the device copies to and from at full speed.
pub type Pinned<T> = PinnedHostSlice<T>;

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
    /// Bytes of its memory.
    pub memory_bytes: usize,
}

/// The devices of this machine; at least one.
///
/// # Errors
/// [`DeviceError::NotAvailable`] when there is no driver, or it knows no device.
pub fn probe() -> Result<Vec<DeviceInfo>, DeviceError> {
    let count = count()?;
    (0..count).map(|ordinal| info(&*CudaContext::new(ordinal)?)).collect()
}

/// Number of devices; at least one.
fn count() -> Result<usize, DeviceError> {
    let missing = |why: String| DeviceError::NotAvailable { what: "device", why };
    if !sys::is_driver_present() {
        return Err(missing("the driver library libcuda is not installed".to_owned()));
    }
    let count = CudaContext::device_count().map_err(|error| missing(error.to_string()))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(missing("the driver knows none".to_owned())),
    }
}

fn info(context: &CudaContext) -> Result<DeviceInfo, DeviceError> {
    let name = context.name()?;
    let capability = context.compute_capability()?;
    Ok(DeviceInfo { ordinal: context.ordinal(), name, capability, memory_bytes: context.total_mem()? })
}

/// An open device.
#[derive(Clone, Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    info: DeviceInfo,
}

impl Device {
    /// Opens device number `ordinal`.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] when there is none of that number; [`DeviceError::Driver`]
    /// when it refuses.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        let count = count()?;
        if ordinal >= count {
            let why = format!("number {ordinal} asked for, {count} found");
            return Err(DeviceError::NotAvailable { what: "device", why });
        }
        let context = CudaContext::new(ordinal)?;
        let info = info(&context)?;
        Ok(Self { context, info })
    }

    /// Returns its properties.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Its primary context: streams and memory come from there.
    #[must_use]
    pub fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// Compiles `source` for this device and loads it.
    ///
    /// # Errors
    /// Those of [`compile`], and [`DeviceError::Driver`] when the driver refuses the result.
    pub fn load(&self, source: &str, name: &str) -> Result<Arc<CudaModule>, DeviceError> {
        let (major, minor) = self.info.capability;
        let compiled = compile(source, name, &format!("sm_{major}{minor}"))?;
        Ok(self.context.load_module(Ptx::from_binary(compiled.binary))?)
    }
}

/// `len` zeros in page-locked memory.
///
/// # Errors
/// [`DeviceError::Driver`] when the system grants no more.
pub fn pinned<T: DeviceRepr + ValidAsZeroBits>(device: &Device, len: usize) -> Result<Pinned<T>, DeviceError> {
    Ok(sys::pinned(device.context(), len)?)
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
        assert!(matches!(Device::open(1 << 20), Err(DeviceError::NotAvailable { what: "device", .. })));
    }
}
