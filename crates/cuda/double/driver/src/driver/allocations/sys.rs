//! Calls about the memory of a device.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use recoup_cuda_double::CudaStatus;

use super::super::host_memory::HostAddress;
use super::super::interface::{ResultPlace, driver_calls, give};

driver_calls! { driver:
    cuMemAlloc_v2(address: ResultPlace<'_, u64>, bytes: usize) => give(address, driver.allocate(bytes)?);
    cuMemFree_v2(address: u64) => driver.free(address);
    cuMemGetInfo_v2(free: ResultPlace<'_, usize>, total: ResultPlace<'_, usize>) => {
        let (left, all) = driver.room()?;
        give(free, left)?;
        give(total, all)
    };
    cuPointerGetAttribute(target: HostAddress, attribute: u32, address: u64) => match target.number() {
        0 => Err(CudaStatus::InvalidValue),
        _ => driver.pointer_attribute(attribute, address, target),
    };
    /// Unlike the call for one attribute, it leaves zeros for an address that is not known.
    cuPointerGetAttributes(n: u32, attributes: HostAddress, targets: HostAddress, address: u64) => {
        if attributes.number() == 0 || targets.number() == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        for index in 0..n as usize {
            let mut attribute = [0; 4];
            attributes.later(index * size_of::<u32>()).read(&mut attribute);
            let attribute = u32::from_ne_bytes(attribute);
            let target = targets.later(index * size_of::<usize>()).read_address();
            if driver.pointer_attribute(attribute, address, target).is_err() {
                // The types of four bytes, and those of eight.
                let bytes = if [2, 6, 8, 9, 13].contains(&attribute) { 4 } else { 8 };
                target.write(&[0; 8][..bytes]);
            }
        }
        Ok(())
    };
}
