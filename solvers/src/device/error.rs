//! Errors of a device, as solvers and the pipeline give them.

use recoup_core::{AfarError, AfarErrorKind, SolveError};
use recoup_device::DeviceError;

/// Turns an error of a device into one of a place, by what can be done about it.
#[must_use]
pub fn afar_error(error: &DeviceError) -> AfarError {
    let kind = if error.is_lost() {
        AfarErrorKind::Lost
    } else if error.is_out_of_memory() {
        AfarErrorKind::NoRoom
    } else {
        AfarErrorKind::Failed
    };
    AfarError { message: error.to_string(), kind }
}

/// Turns an error of a device into one of solvers.
pub(super) fn solve_error(error: DeviceError) -> SolveError {
    SolveError::Afar(afar_error(&error))
}
