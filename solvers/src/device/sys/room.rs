//! Room for the sums of a pass, on the device and on the host.

use recoup_device::{Device, DeviceError, DeviceVec, HostBuffer};

/// Bytes of host memory that are registered at least: room for a thousand sums.
const HOST_BYTES: usize = 2 << 20;

/// Room for the sums of one pass at a time.
pub(super) struct SumRoom {
    /// For each sum, one value for each block of rows.
    pub(super) blocks: DeviceVec<f64>,
    /// For each sum, one value for each chunk of blocks.
    pub(super) chunks: DeviceVec<f64>,
    /// The memory of the host that the device copies these to.
    pub(super) host: HostBuffer,
}

impl SumRoom {
    /// No room on the device yet.
    pub(super) fn new(device: &Device) -> Result<Self, DeviceError> {
        let blocks = DeviceVec::new(device, 0)?;
        let chunks = DeviceVec::new(device, 0)?;
        Ok(Self { blocks, chunks, host: HostBuffer::registered(device, HOST_BYTES)? })
    }

    /// Makes room for as many values of blocks and of chunks.
    pub(super) fn reserve(&mut self, blocks: usize, chunks: usize) -> Result<(), DeviceError> {
        let device = self.host.device().clone();
        if self.blocks.len() < blocks {
            self.blocks = DeviceVec::new(&device, blocks)?;
        }
        if self.chunks.len() < chunks {
            self.chunks = DeviceVec::new(&device, chunks)?;
        }
        let bytes = chunks * size_of::<f64>();
        if self.host.bytes() < bytes {
            self.host = HostBuffer::registered(&device, bytes)?;
        }
        Ok(())
    }
}
