//! Devices: how many, and what they say of themselves.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::state::Driver;
use crate::Refusable;

/// The name of every device.
pub(crate) const NAME: &str = "recoup CUDA double";
/// Shared memory of a block, at most, where no more was asked for.
pub(crate) const SHARED_BYTES: usize = 48 << 10;
/// Registers of a block, at most.
pub(crate) const BLOCK_REGISTERS: u32 = 65_536;

const CAPABILITY_MAJOR: u32 = 75;
const CAPABILITY_MINOR: u32 = 76;
const VIRTUAL_MEMORY: u32 = 102;
/// Memory that is allocated in the order of a stream, which there is none of.
const MEMORY_POOLS: u32 = 115;

impl Driver {
    /// Refuses a number that no device has.
    pub(crate) fn device(&self, number: i32) -> Refusable<u32> {
        let number = u32::try_from(number).map_err(|_| CudaStatus::InvalidDevice)?;
        (number < self.settings.devices).then_some(number).ok_or(CudaStatus::InvalidDevice)
    }

    fn initialise(&mut self) -> Refusable<()> {
        if self.settings.devices == 0 {
            return Err(CudaStatus::NoDevice);
        }
        self.is_initialised = true;
        Ok(())
    }

    /// The version of a driver that has one.
    fn version(&self) -> Refusable<u32> {
        self.settings.driver_version.ok_or(CudaStatus::StubLibrary)
    }

    fn attribute(&mut self, attribute: u32, device: i32) -> Refusable<i32> {
        self.device(device)?;
        let capability = self.settings.capability as i32;
        match attribute {
            CAPABILITY_MAJOR => Ok(capability / 10),
            CAPABILITY_MINOR => Ok(capability % 10),
            VIRTUAL_MEMORY => Ok(self.settings.has_virtual_memory.into()),
            MEMORY_POOLS => Ok(0),
            _ => {
                self.fault(format!("cuDeviceGetAttribute: attribute {attribute} is not known to the double"));
                Err(CudaStatus::InvalidValue)
            }
        }
    }
}
