//! Errors of a device, as solvers give them.

use recoup_core::SolveError;
use recoup_device::{DeviceError, device_values_error};

/// Turns an error of a device into one of solvers.
pub(super) fn solve_error(error: DeviceError) -> SolveError {
    SolveError::Device(device_values_error(error))
}
