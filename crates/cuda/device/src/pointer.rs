//! Addresses that a program hands over: of the host, or of a device.

use crate::DeviceError;
use crate::driver::{DevicePlace, place};

/// Returns the memory of a device that `address` lies in; `None` for any other address.
///
/// Only a driver that this process has loaded can have given out such an address. Where there is
/// none, nothing of CUDA is looked for.
///
/// # Errors
/// [`DeviceError::Driver`] when the driver refuses, as that of a lost device does.
pub fn device_pointer(address: usize) -> Result<Option<DevicePlace>, DeviceError> {
    place(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_the_host_is_none_of_a_device() {
        let value = 1.0_f64;
        assert_eq!(device_pointer((&raw const value).addr()), Ok(None));
        assert_eq!(device_pointer(0), Ok(None));
    }
}
