//! Work of a stream.

use std::sync::Arc;

use super::host_memory::HostAddress;
use crate::ptx;

/// Bytes of the host to copy from.
#[derive(Debug)]
pub(crate) enum HostSource {
    /// Copied when the call was made.
    Copied(Vec<u8>),
    /// Read when the operation runs.
    Pinned {
        /// First byte.
        start: HostAddress,
        /// Length.
        bytes: usize,
    },
}

/// A launch that waits.
#[derive(Debug)]
pub(crate) struct WaitingKernel {
    pub(crate) module: Arc<ptx::Module>,
    pub(crate) name: String,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared_bytes: usize,
    pub(crate) parameters: Vec<u8>,
    pub(crate) globals: Vec<u64>,
}

/// The work of an operation.
#[derive(Debug)]
pub(crate) enum StreamWork {
    /// Copies from the host to the device.
    ToDevice { source: HostSource, target: u64 },
    /// Copies from the device to the host.
    ToHost { source: u64, target: HostAddress, bytes: usize },
    /// Copies within the devices.
    OnDevice { source: u64, target: u64, bytes: u64 },
    /// Repeats a byte.
    Fill { target: u64, value: u8, bytes: u64 },
    /// Runs a kernel.
    Kernel(Box<WaitingKernel>),
    /// Marks a place in a stream.
    Mark,
    /// Marks a place in a stream, for an event.
    Record { event: u64 },
}

impl StreamWork {
    /// Names the action in a report.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::ToDevice { source, target } => {
                let bytes = match source {
                    HostSource::Copied(bytes) => bytes.len(),
                    HostSource::Pinned { bytes, .. } => *bytes,
                };
                format!("copy of {bytes} bytes from the host to {target:#x}")
            }
            Self::ToHost { source, bytes, .. } => format!("copy of {bytes} bytes from {source:#x} to the host"),
            Self::OnDevice { source, target, bytes } => {
                format!("copy of {bytes} bytes from {source:#x} to {target:#x}")
            }
            Self::Fill { target, bytes, .. } => format!("fill of {bytes} bytes at {target:#x}"),
            Self::Kernel(kernel) => format!("kernel {}", kernel.name),
            Self::Mark => "mark".to_owned(),
            Self::Record { .. } => "record of an event".to_owned(),
        }
    }
}
