//! Errors of devices.

use std::fmt;

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
    /// The system refused memory of the host.
    #[error("{call} of {bytes} bytes of host memory: {error}")]
    Host {
        /// The function called.
        call: &'static str,
        /// Size of the request.
        bytes: usize,
        /// The system's text.
        error: String,
    },
    /// The driver refused a call.
    #[error("CUDA driver: {call}{size}: {name} ({code}): {text}")]
    Driver {
        /// The function called.
        call: &'static str,
        /// Size of the request.
        size: CallSize,
        /// The driver's number of the error.
        code: i32,
        /// The driver's name of it.
        name: String,
        /// The driver's text for it.
        text: String,
    },
}

impl DeviceError {
    /// Returns whether memory was asked for that is not left; the device continues working.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Driver { code: 2, .. } | Self::Host { .. })
    }

    /// Returns whether the device works no more for this process: every later call on it fails, and
    /// nothing in its memory can be read.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        // No such device, invalid or destroyed context, device unavailable, uncorrectable memory
        // error, and faults of a kernel, which end the context.
        const LOST: [i32; 15] = [46, 100, 101, 201, 214, 220, 700, 702, 709, 714, 715, 716, 717, 718, 719];
        matches!(self, Self::Driver { code, .. } if LOST.contains(code))
    }
}

/// Size of a request to the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallSize {
    /// The call has no size.
    None,
    /// Bytes of memory.
    Bytes(usize),
    /// A device.
    Ordinal(usize),
    /// Blocks and threads of a kernel.
    Launch {
        /// The kernel's name.
        kernel: String,
        /// Thread blocks.
        blocks: u32,
        /// Threads of each.
        threads: u32,
    },
    /// Something that has a name.
    Named(String),
}

impl fmt::Display for CallSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Bytes(bytes) => write!(f, " of {bytes} bytes"),
            Self::Ordinal(ordinal) => write!(f, " of device {ordinal}"),
            Self::Launch { kernel, blocks, threads } => {
                write!(f, " of {kernel}, {blocks} blocks of {threads} threads")
            }
            Self::Named(name) => write!(f, " of {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: i32, size: CallSize) -> DeviceError {
        let name = "CUDA_ERROR_OUT_OF_MEMORY".to_owned();
        DeviceError::Driver { call: "cuMemAlloc", size, code, name, text: "out of memory".to_owned() }
    }

    #[test]
    fn a_refused_call_is_named_with_its_size() {
        let text = refused(2, CallSize::Bytes(4096)).to_string();
        assert_eq!(text, "CUDA driver: cuMemAlloc of 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
        let launch = CallSize::Launch { kernel: "axpy".to_owned(), blocks: 3, threads: 128 };
        assert!(refused(1, launch).to_string().contains("of axpy, 3 blocks of 128 threads:"));
        assert!(refused(1, CallSize::Ordinal(2)).to_string().contains("cuMemAlloc of device 2:"));
    }

    #[test]
    fn a_lost_device_is_told_from_one_without_memory() {
        assert!(refused(2, CallSize::None).is_out_of_memory() && !refused(2, CallSize::None).is_lost());
        assert!(refused(700, CallSize::None).is_lost() && !refused(700, CallSize::None).is_out_of_memory());
        let missing = DeviceError::NotAvailable { what: "driver", why: String::new() };
        assert!(!missing.is_lost() && !missing.is_out_of_memory());
    }
}
