//! Runs one operation on the memory of host and device.

use recoup_cuda_double::CudaStatus;

use super::address_space::AddressSpace;
use super::host_memory::{HostAddress, HostMemory};
use super::operation::{HostSource, StreamWork, WaitingKernel};
use super::ranges::{Bitmap, Ranges};
use crate::ptx::{self, DeviceFault};

/// Bytes that a copy moves at a time.
const PIECE: u64 = 1 << 20;

/// Bytes that an operation touched.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) reads: Ranges,
    pub(crate) writes: Ranges,
}

/// A fault, as the context keeps it and as a report tells it.
#[derive(Debug)]
pub(crate) struct WorkFault {
    pub(crate) status: CudaStatus,
    pub(crate) message: String,
}

impl From<DeviceFault> for WorkFault {
    fn from(fault: DeviceFault) -> Self {
        Self { status: status(&fault), message: fault.to_string() }
    }
}

/// The error a device gives for a fault.
fn status(fault: &DeviceFault) -> CudaStatus {
    match fault {
        DeviceFault::Address { .. } | DeviceFault::Outside { .. } => CudaStatus::IllegalAddress,
        DeviceFault::Misaligned { .. } => CudaStatus::MisalignedAddress,
        // A device would continue with whatever it has, or hang.
        _ => CudaStatus::LaunchFailed,
    }
}

/// All memory that an operation can reach.
pub(crate) struct Reach<'a> {
    pub(crate) device: &'a mut AddressSpace,
    pub(crate) host: &'a HostMemory,
    /// Draws the order of a kernel's threads.
    pub(crate) seed: u64,
}

/// Runs an action; what concerns the driver's own tables is left to the caller.
pub(crate) fn execute(action: &StreamWork, reach: &mut Reach<'_>) -> Result<Touched, WorkFault> {
    match action {
        StreamWork::ToDevice { source, target } => to_device(source, *target, reach),
        StreamWork::ToHost { source, target, bytes } => to_host(*source, *target, *bytes, reach),
        StreamWork::OnDevice { source, target, bytes } => on_device(*source, *target, *bytes, reach),
        StreamWork::Fill { target, value, bytes } => fill(*target, *value, *bytes, reach),
        StreamWork::Kernel(kernel) => run_kernel(kernel, reach),
        StreamWork::Mark | StreamWork::Record { .. } => Ok(Touched::default()),
    }
}

fn host_range(start: HostAddress, bytes: usize) -> Ranges {
    let start = start.number() as u64;
    Ranges::of(std::iter::once(start..start + bytes as u64))
}

fn to_device(source: &HostSource, target: u64, reach: &mut Reach<'_>) -> Result<Touched, WorkFault> {
    let (bytes, reads) = match source {
        HostSource::Copied(bytes) => (bytes.clone(), Ranges::default()),
        HostSource::Pinned { start, bytes } => {
            let mut copy = vec![0; *bytes];
            start.read(&mut copy);
            (copy, host_range(*start, *bytes))
        }
    };
    reach.device.write(target, &bytes)?;
    Ok(Touched { reads, writes: reach.device.physical_ranges(target, bytes.len() as u64) })
}

fn to_host(source: u64, target: HostAddress, bytes: usize, reach: &mut Reach<'_>) -> Result<Touched, WorkFault> {
    let mut copy = vec![0; bytes];
    reach.device.read(source, &mut copy)?;
    target.write(&copy);
    Ok(Touched { reads: reach.device.physical_ranges(source, bytes as u64), writes: host_range(target, bytes) })
}

fn on_device(source: u64, target: u64, bytes: u64, reach: &mut Reach<'_>) -> Result<Touched, WorkFault> {
    for done in (0..bytes).step_by(PIECE as usize) {
        let mut piece = vec![0; PIECE.min(bytes - done) as usize];
        reach.device.read(source + done, &mut piece)?;
        reach.device.write(target + done, &piece)?;
    }
    let reads = reach.device.physical_ranges(source, bytes);
    Ok(Touched { reads, writes: reach.device.physical_ranges(target, bytes) })
}

fn fill(target: u64, value: u8, bytes: u64, reach: &mut Reach<'_>) -> Result<Touched, WorkFault> {
    let piece = vec![value; PIECE.min(bytes) as usize];
    for done in (0..bytes).step_by(PIECE as usize) {
        let n = PIECE.min(bytes - done) as usize;
        reach.device.write(target + done, &piece[..n])?;
    }
    Ok(Touched { writes: reach.device.physical_ranges(target, bytes), ..Touched::default() })
}

fn run_kernel(waiting: &WaitingKernel, reach: &mut Reach<'_>) -> Result<Touched, WorkFault> {
    let Some(kernel) = waiting.module.kernel(&waiting.name) else {
        return Err(WorkFault { status: CudaStatus::LaunchFailed, message: format!("no kernel {}", waiting.name) });
    };
    let launch = ptx::Launch {
        kernel,
        grid: waiting.grid,
        block: waiting.block,
        dynamic_shared_bytes: waiting.dynamic_shared_bytes,
        parameters: &waiting.parameters,
        globals: &waiting.globals,
        seed: reach.seed,
        instructions_max: ptx::INSTRUCTIONS_MAX,
    };
    let mut memory =
        KernelMemory { device: reach.device, host: reach.host, reads: Bitmap::default(), writes: Bitmap::default() };
    let result = ptx::run(&launch, &mut memory);
    let touched = Touched { reads: memory.reads.into_ranges(), writes: memory.writes.into_ranges() };
    match result {
        Ok(_) => Ok(touched),
        Err(fault) => Err(WorkFault { status: status(&fault.fault), message: fault.to_string() }),
    }
}

/// The memory a kernel sees, with the bytes it has touched.
struct KernelMemory<'a> {
    device: &'a mut AddressSpace,
    host: &'a HostMemory,
    reads: Bitmap,
    writes: Bitmap,
}

impl KernelMemory<'_> {
    /// The place of page-locked memory at an address.
    fn pinned(&self, address: u64, bytes: usize) -> Option<HostAddress> {
        let address = address as usize;
        let piece = self.host.piece_at(address)?;
        let offset = address - piece.start.number();
        (bytes <= piece.bytes - offset).then(|| piece.start.later(offset))
    }
}

impl ptx::DeviceMemory for KernelMemory<'_> {
    fn load(&mut self, address: u64, target: &mut [u8]) -> Result<(), DeviceFault> {
        if let Some(physical) = self.device.physical(address) {
            self.reads.add(physical, target.len() as u64);
            return self.device.read(address, target);
        }
        let refused = DeviceFault::Address { address, bytes: target.len() };
        let place = self.pinned(address, target.len()).ok_or(refused)?;
        self.reads.add(address, target.len() as u64);
        place.read(target);
        Ok(())
    }

    fn store(&mut self, address: u64, source: &[u8]) -> Result<(), DeviceFault> {
        if let Some(physical) = self.device.physical(address) {
            self.writes.add(physical, source.len() as u64);
            return self.device.write(address, source);
        }
        let refused = DeviceFault::Address { address, bytes: source.len() };
        let place = self.pinned(address, source.len()).ok_or(refused)?;
        self.writes.add(address, source.len() as u64);
        place.write(source);
        Ok(())
    }
}
