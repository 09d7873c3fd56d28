//! Errors of devices.

use cudarc::driver::DriverError;

/// An error that a device or its compiler reports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// This machine lacks the driver, a device, or the compiler.
    #[error("no CUDA here: {what}: {why}")]
    NotAvailable {
        /// The missing part.
        what: &'static str,
        /// The part found in its place, or the way to get it.
        why: String,
    },
    /// The source does not compile.
    #[error("{name} does not compile for {architecture}: {log}")]
    Compile {
        /// Name of the source.
        name: String,
        /// The architecture it was compiled for, such as `sm_90`.
        architecture: String,
        /// The compiler's messages.
        log: String,
    },
    /// The driver refused a call.
    #[error("CUDA driver: {message}")]
    Driver {
        /// Name and text of the driver's error.
        message: String,
    },
}

impl From<DriverError> for DeviceError {
    fn from(error: DriverError) -> Self {
        Self::Driver { message: error.to_string() }
    }
}
