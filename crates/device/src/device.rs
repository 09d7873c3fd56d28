//! The devices of this machine, and one of them opened.

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, CudaModule, DeviceRepr, PinnedHostSlice, ValidAsZeroBits};
use cudarc::nvrtc::Ptx;

use crate::architecture::{Architecture, Capability};
use crate::{Compiler, CudaVersion, DeviceError, sys};

/// Page-locked memory of the host, which the device copies to and from at full speed.
pub type Pinned<T> = PinnedHostSlice<T>;

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number.
    pub ordinal: usize,
    /// Its name.
    pub name: String,
    /// Its compute capability.
    pub capability: Capability,
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

/// Asks the driver for its version, before anything else is asked of it.
///
/// # Errors
/// [`DeviceError::NotAvailable`] when there is no driver, or one without calls made here.
pub fn driver_version() -> Result<CudaVersion, DeviceError> {
    let missing = |why: String| DeviceError::NotAvailable { what: "driver", why };
    let Some(found) = sys::driver_version() else {
        return Err(missing("the driver library libcuda is not installed".to_owned()));
    };
    let version = CudaVersion::from_number(found?);
    if version < CudaVersion::OLDEST {
        let oldest = CudaVersion::OLDEST;
        return Err(missing(format!("it is of CUDA {version}, needed is {oldest}; update the driver")));
    }
    Ok(version)
}

/// Number of devices; at least one.
fn count() -> Result<usize, DeviceError> {
    let missing = |why: String| DeviceError::NotAvailable { what: "device", why };
    driver_version()?;
    let count = CudaContext::device_count().map_err(|error| missing(error.to_string()))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(missing("the driver knows none".to_owned())),
    }
}

fn info(context: &CudaContext) -> Result<DeviceInfo, DeviceError> {
    let name = context.name()?;
    let (major, minor) = context.compute_capability()?;
    let capability = Capability { major: major.unsigned_abs(), minor: minor.unsigned_abs() };
    Ok(DeviceInfo { ordinal: context.ordinal(), name, capability, memory_bytes: context.total_mem()? })
}

/// An open device.
#[derive(Clone, Debug)]
pub struct Device {
    context: Arc<CudaContext>,
    info: DeviceInfo,
    driver: CudaVersion,
    compiler: Arc<OnceLock<Compiler>>,
}

impl Device {
    /// Opens device number `ordinal`.
    ///
    /// # Errors
    /// [`DeviceError::NotAvailable`] when there is none of that number; [`DeviceError::Driver`]
    /// when it refuses.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        let driver = driver_version()?;
        let count = count()?;
        if ordinal >= count {
            let why = format!("number {ordinal} asked for, {count} found");
            return Err(DeviceError::NotAvailable { what: "device", why });
        }
        let context = CudaContext::new(ordinal)?;
        let info = info(&context)?;
        Ok(Self { context, info, driver, compiler: Arc::default() })
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

    /// The compiler of its kernels, looked for when first needed.
    ///
    /// # Errors
    /// Those of [`Compiler::find`].
    pub fn compiler(&self) -> Result<&Compiler, DeviceError> {
        if let Some(found) = self.compiler.get() {
            return Ok(found);
        }
        let found = Compiler::find(Some(self.driver))?;
        Ok(self.compiler.get_or_init(|| found))
    }

    /// Compiles `source` for this device and loads it: as its own code, or as PTX where the
    /// compiler does not know the device.
    ///
    /// # Errors
    /// Those of [`Compiler`], and [`DeviceError::Driver`] when the driver refuses the result.
    pub fn load(&self, source: &str, name: &str) -> Result<Arc<CudaModule>, DeviceError> {
        let compiler = self.compiler()?;
        let architecture = compiler.architecture(self.info.capability)?;
        let compiled = compiler.compile(source, name, &architecture.to_string())?;
        let code = match (architecture, compiled.binary) {
            (Architecture::Real(_), Some(binary)) => Ptx::from_binary(binary),
            _ => Ptx::from_src(compiled.ptx),
        };
        Ok(self.context.load_module(code)?)
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
        assert!(matches!(Device::open(1 << 20), Err(DeviceError::NotAvailable { .. })));
    }
}
