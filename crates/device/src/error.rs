//! What can go wrong with a device.

use cudarc::driver::DriverError;

/// What a device or its compiler reports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// This machine lacks the driver, a device, or the compiler.
    #[error("no CUDA here: {what}: {why}")]
    NotAvailable {
        /// What is missing.
        what: &'static str,
        /// What was found in its place, or how to get it.
        why: String,
    },
    /// The source does not compile.
    #[error("{name} does not compile for {architecture}: {log}")]
    Compile {
        /// Name of the source.
        name: String,
        /// What it was compiled for, such as `sm_90`.
        architecture: String,
        /// What the compiler said.
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
