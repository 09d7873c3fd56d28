//! Devices: how many, and what they say of themselves.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::state::Driver;
use crate::Refusable;

/// The name of every device.
pub(crate) const NAME: &str = "recoup CUDA double";
/// Threads of a block, at most.
pub(crate) const BLOCK_THREADS: u32 = 1024;
/// Threads of a block along x, y and z, at most.
pub(crate) const BLOCK_MAX: [u32; 3] = [1024, 1024, 64];
/// Blocks along x, y and z, at most.
pub(crate) const GRID_MAX: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// Shared memory of a block that needs no leave.
pub(crate) const SHARED_BYTES: usize = 48 << 10;
/// Shared memory of a block, at most.
pub(crate) const SHARED_BYTES_MAX: usize = 227 << 10;
/// Registers of a block, at most.
pub(crate) const BLOCK_REGISTERS: u32 = 65_536;

/// Attributes that are the same for all devices, by their number in the driver's interface.
const ATTRIBUTES: [(u32, i32); 48] = [
    (1, BLOCK_THREADS as i32),
    (2, BLOCK_MAX[0] as i32),
    (3, BLOCK_MAX[1] as i32),
    (4, BLOCK_MAX[2] as i32),
    (5, GRID_MAX[0] as i32),
    (6, GRID_MAX[1] as i32),
    (7, GRID_MAX[2] as i32),
    (8, SHARED_BYTES as i32),
    // Constant memory, a warp, the pitch of copies.
    (9, 64 << 10),
    (10, 32),
    (11, i32::MAX),
    (12, BLOCK_REGISTERS as i32),
    // Clock in kHz, alignment of textures, overlap, multiprocessors, time limit.
    (13, 1_000_000),
    (14, 512),
    (15, 1),
    (16, 4),
    (17, 0),
    // Shares no memory with the host, maps the host's, any number of contexts.
    (18, 0),
    (19, 1),
    (20, 0),
    // Kernels side by side, no error correction, and where it is plugged in.
    (31, 1),
    (32, 0),
    (33, 0),
    (34, 0),
    (35, 0),
    // Memory clock in kHz, bus width, cache, threads of a multiprocessor, copy engines.
    (36, 1_000_000),
    (37, 4096),
    (38, 4 << 20),
    (39, 2048),
    (40, 2),
    // Host and device share addresses.
    (41, 1),
    (50, 0),
    (78, 1),
    (81, 228 << 10),
    (82, BLOCK_REGISTERS as i32),
    // No managed memory, none that is shared without being asked.
    (83, 0),
    (88, 0),
    (89, 0),
    (90, 1),
    // Registered memory has the same address on the device.
    (91, 1),
    (95, 0),
    (97, SHARED_BYTES_MAX as i32),
    (99, 1),
    (100, 0),
    (101, 0),
    (106, 32),
    // No memory is allocated in the order of a stream.
    (115, 0),
    // The node of the host's memory is not known.
    (134, -1),
];
const CAPABILITY_MAJOR: u32 = 75;
const CAPABILITY_MINOR: u32 = 76;
const VIRTUAL_MEMORY: u32 = 102;

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
            CAPABILITY_MAJOR => return Ok(capability / 10),
            CAPABILITY_MINOR => return Ok(capability % 10),
            VIRTUAL_MEMORY => return Ok(self.settings.has_virtual_memory.into()),
            _ => (),
        }
        if let Some((_, value)) = ATTRIBUTES.iter().find(|(number, _)| *number == attribute) {
            return Ok(*value);
        }
        self.fault(format!("cuDeviceGetAttribute: attribute {attribute} is not known to the double"));
        Err(CudaStatus::InvalidValue)
    }
}
