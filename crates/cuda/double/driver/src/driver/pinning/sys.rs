//! Calls about registered memory.

#![expect(unsafe_code, reason = "the names of the driver's functions are exported as they are")]

use super::super::host_memory::HostAddress;
use super::super::interface::driver_calls;

driver_calls! { driver:
    cuMemHostRegister_v2(address: HostAddress, bytes: usize, flags: u32) => driver.register(address, bytes, flags);
    cuMemHostUnregister(address: HostAddress) => driver.unregister(address);
}
