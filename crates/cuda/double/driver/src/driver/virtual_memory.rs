//! Memory that is mapped piece by piece: addresses, memory, mappings and access, each by a call of
//! its own.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::address_space::GRANULARITY;
use super::state::Driver;
use crate::Refusable;

/// The only kind of memory: it stays where it is.
const PINNED: i32 = 1;
/// The kind of place that is a device.
const ON_DEVICE: i32 = 1;
/// Access to read and write.
const READ_WRITE: i32 = 3;
/// Handles are this much above the number of their memory.
const FIRST_HANDLE: u64 = 0x6600_0000_0000;

/// A place for memory, as the driver's interface lays it out.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MemoryPlace {
    kind: i32,
    id: i32,
}

/// The properties of memory to be made, as the driver's interface lays them out.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MemoryProperties {
    kind: i32,
    handle_types: i32,
    place: MemoryPlace,
    windows: usize,
    flags: [u8; 8],
}

/// A place and its access, as the driver's interface lays them out.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PlaceAccess {
    place: MemoryPlace,
    flags: i32,
}

impl Driver {
    /// The device that properties name.
    pub(crate) fn device_of_properties(&mut self, properties: Option<&MemoryProperties>) -> Refusable<u32> {
        let own = properties.ok_or(CudaStatus::InvalidValue)?;
        let is_plain = own.kind == PINNED && own.handle_types == 0 && own.windows == 0 && own.flags == [0; 8];
        if own.place.kind != ON_DEVICE || !is_plain {
            self.fault(format!("memory of these properties is not known to the double: {own:?}"));
            return Err(CudaStatus::NotSupported);
        }
        self.device(own.place.id)
    }

    fn create_memory(&mut self, bytes: usize, properties: Option<&MemoryProperties>) -> Refusable<u64> {
        let device = self.device_of_properties(properties)?;
        let bytes = bytes as u64;
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) {
            return Err(CudaStatus::InvalidValue);
        }
        self.make_room(device, bytes)?;
        Ok(FIRST_HANDLE + self.memory.create(device, bytes) as u64)
    }

    fn map_memory(&mut self, address: u64, bytes: usize, handle: u64) -> Refusable<()> {
        let result = index_of(handle).and_then(|index| self.memory.map(address, bytes as u64, index));
        self.told(result, "cuMemMap", address, bytes)
    }

    /// Unmaps at once. Work that uses the memory and has not run yet will find it gone.
    fn unmap_memory(&mut self, address: u64, bytes: usize) -> Refusable<()> {
        let result = self.memory.unmap(address, bytes as u64);
        self.told(result, "cuMemUnmap", address, bytes)
    }

    fn set_access(&mut self, address: u64, bytes: usize, access: &PlaceAccess) -> Refusable<()> {
        let device = self.device(access.place.id)?;
        let is_known = access.place.kind == ON_DEVICE && [0, READ_WRITE].contains(&access.flags);
        if !is_known || device != self.memory.mapping_at(address).map_or(device, |(_, _, own)| own) {
            self.fault(format!("access of this kind is not known to the double: {access:?}"));
            return Err(CudaStatus::NotSupported);
        }
        let result = self.memory.set_access(address, bytes as u64, access.flags == READ_WRITE);
        self.told(result, "cuMemSetAccess", address, bytes)
    }

    fn release_reserved(&mut self, address: u64, bytes: usize) -> Refusable<()> {
        let result = self.memory.release_addresses(address, bytes as u64);
        self.told(result, "cuMemAddressFree", address, bytes)
    }

    /// Notes a refusal, which is always a mistake of the program.
    fn told(&mut self, result: Refusable<()>, name: &str, address: u64, bytes: usize) -> Refusable<()> {
        if result.is_err() {
            self.fault(format!("{name}: {bytes} bytes at {address:#x} are not whole, or not of this kind"));
        }
        result
    }
}

fn index_of(handle: u64) -> Refusable<usize> {
    handle.checked_sub(FIRST_HANDLE).map(|index| index as usize).ok_or(CudaStatus::InvalidValue)
}
