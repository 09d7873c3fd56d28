//! Rates of a device and of its link to the host.

use crate::published::node;
use crate::trace::{Kernel, KernelWork, ZONE_BYTES};

/// A device that shares its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceRates {
    /// Bytes per second of its memory, read and written.
    pub(crate) memory: f64,
    /// Operations on doubles per second.
    pub(crate) flops: f64,
    /// Seconds from one kernel to the next.
    pub(crate) launch_seconds: f64,
    /// Bytes per second to the host: its share of the link.
    pub(crate) link: f64,
    /// Seconds of a transfer beside its bytes.
    pub(crate) transfer_seconds: f64,
    /// Seconds of a question to the driver and its answer.
    pub(crate) message_seconds: f64,
    /// Writes that wait at the same time: one for each channel of the memory. One more stalls the
    /// program.
    pub(crate) waiting_writes: usize,
    /// Bytes of a transfer, at least and at most, as far as there are zones for it.
    pub(crate) transfer_bytes: [u64; 2],
    /// Bytes of the transfer that begins with a zone a write waits for, at most.
    pub(crate) asked_bytes: u64,
    /// Bytes of the buffer in the device's memory.
    pub(crate) buffer_bytes: u64,
    /// Time of a kernel over the time that its work takes at these rates.
    pub(crate) pace: f64,
}

impl DeviceRates {
    /// The device of the published system, a V100 among 16 for each CPU. Not published are its
    /// memory's rate, here that of its data sheet, the time between kernels, and the size of
    /// transfers that a write waits for. A transfer costs 5.1 us beside its bytes: one of 64 KiB
    /// then has the published 62 % of 7.88 GB/s.
    pub(crate) const PUBLISHED: Self = Self {
        memory: 900e9,
        flops: 7.8e12,
        launch_seconds: 5e-6,
        link: 4e9,
        transfer_seconds: 5.1e-6,
        message_seconds: 25e-6,
        waiting_writes: 32,
        transfer_bytes: [2 << 20, 4 << 20],
        asked_bytes: 512 << 10,
        buffer_bytes: 256 << 20,
        pace: 1.0,
    };

    /// The same device for a program that stands for one with more memory: as much as the device
    /// has. Bytes and times that do not grow with the memory shrink by the same factor here; a zone
    /// stays, and so is larger than it would be.
    pub(crate) fn filled_by(self, footprint_bytes: u64) -> Self {
        let scale = footprint_bytes as f64 / node::GPU_BYTES;
        let bytes = |full: u64| ((scale * full as f64) as u64).max(ZONE_BYTES);
        Self {
            launch_seconds: scale * self.launch_seconds,
            transfer_seconds: scale * self.transfer_seconds,
            message_seconds: scale * self.message_seconds,
            waiting_writes: 1,
            transfer_bytes: self.transfer_bytes.map(bytes),
            asked_bytes: bytes(self.asked_bytes),
            // Room for a transfer under way and the two that are ready.
            buffer_bytes: bytes(self.buffer_bytes).max(4 * bytes(self.transfer_bytes[1])),
            ..self
        }
    }

    /// Seconds of a kernel without a checkpoint.
    pub(crate) fn kernel_seconds(&self, kernel: &Kernel) -> f64 {
        let KernelWork { moved_bytes, flops } = kernel.work;
        self.launch_seconds + self.pace * (moved_bytes / self.memory).max(flops / self.flops)
    }

    /// Seconds of a transfer to the host.
    pub(crate) fn transfer(&self, bytes: u64) -> f64 {
        self.transfer_seconds + bytes as f64 / self.link
    }

    /// Seconds of a full blocking checkpoint.
    pub(crate) fn full_seconds(&self, footprint_bytes: u64) -> f64 {
        let [_, most] = self.transfer_bytes;
        let n_transfers = footprint_bytes.div_ceil(most) as f64;
        n_transfers.mul_add(self.transfer_seconds, footprint_bytes as f64 / self.link)
    }
}
