//! Addresses of the device that are reserved first and given memory piece by piece.

use super::DeviceHandle;
use super::context::Current;
use super::layouts::{AccessDescription, AllocationProperties};
use crate::DeviceError;
use crate::error::CallSize;

/// Addresses of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressRange {
    pub(crate) start: u64,
    pub(crate) bytes: usize,
}

impl Current<'_> {
    /// Returns the bytes of which every piece is a multiple.
    pub(crate) fn granularity(&self, device: DeviceHandle) -> Result<usize, DeviceError> {
        let mut bytes = 0;
        let properties = AllocationProperties::of(device.0);
        // SAFETY: the properties are read before the call returns, and the number is written to a
        // place that is. The flag asks for the least granularity.
        let code = unsafe {
            (self.driver().functions.cuMemGetAllocationGranularity)(&raw mut bytes, &raw const properties, 0)
        };
        self.check("cuMemGetAllocationGranularity", CallSize::None, code)?;
        Ok(bytes)
    }

    pub(crate) fn reserve(&self, bytes: usize) -> Result<AddressRange, DeviceError> {
        let mut start = 0;
        // SAFETY: the address is written to a place that is.
        let code = unsafe { (self.driver().functions.cuMemAddressReserve)(&raw mut start, bytes, 0, 0, 0) };
        self.check("cuMemAddressReserve", CallSize::Bytes(bytes), code)?;
        Ok(AddressRange { start, bytes })
    }

    pub(crate) fn give_up(&self, range: AddressRange) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the range up; no memory of the host is concerned.
        let code = unsafe { (self.driver().functions.cuMemAddressFree)(range.start, range.bytes) };
        self.check("cuMemAddressFree", CallSize::Bytes(range.bytes), code)
    }

    /// Returns memory that has no address yet.
    pub(crate) fn create(&self, device: DeviceHandle, bytes: usize) -> Result<u64, DeviceError> {
        let mut memory = 0;
        let properties = AllocationProperties::of(device.0);
        // SAFETY: the properties are read before the call returns, and the handle is written to a
        // place that is.
        let code = unsafe { (self.driver().functions.cuMemCreate)(&raw mut memory, bytes, &raw const properties, 0) };
        self.check("cuMemCreate", CallSize::Bytes(bytes), code)?;
        Ok(memory)
    }

    /// Gives memory back; it lasts until it is unmapped.
    pub(crate) fn drop_memory(&self, memory: u64) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the handle up.
        let code = unsafe { (self.driver().functions.cuMemRelease)(memory) };
        self.check("cuMemRelease", CallSize::None, code)
    }

    pub(crate) fn map(&self, range: AddressRange, memory: u64) -> Result<(), DeviceError> {
        // SAFETY: the driver looks range and handle up.
        let code = unsafe { (self.driver().functions.cuMemMap)(range.start, range.bytes, 0, memory, 0) };
        self.check("cuMemMap", CallSize::Bytes(range.bytes), code)
    }

    pub(crate) fn unmap(&self, range: AddressRange) -> Result<(), DeviceError> {
        // SAFETY: the driver looks the range up.
        let code = unsafe { (self.driver().functions.cuMemUnmap)(range.start, range.bytes) };
        self.check("cuMemUnmap", CallSize::Bytes(range.bytes), code)
    }

    /// Lets the device read and write memory that was mapped.
    pub(crate) fn allow(&self, range: AddressRange, device: DeviceHandle) -> Result<(), DeviceError> {
        let access = AccessDescription::of(device.0);
        // SAFETY: one description is told, and it is read before the call returns.
        let code = unsafe { (self.driver().functions.cuMemSetAccess)(range.start, range.bytes, &raw const access, 1) };
        self.check("cuMemSetAccess", CallSize::Bytes(range.bytes), code)
    }
}
