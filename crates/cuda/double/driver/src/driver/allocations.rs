//! Memory of a device: asked for, given back, and asked about.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::execute::Touched;
use super::host_memory::HostAddress;
use super::state::Driver;
use crate::Refusable;

/// Kinds of memory, as an attribute of a pointer tells them.
const ON_HOST: u32 = 1;
const ON_DEVICE: u32 = 2;

impl Driver {
    /// Refuses more memory than the device has left.
    pub(crate) fn make_room(&self, device: u32, bytes: u64) -> Refusable<()> {
        let sum = self.memory.used(device).checked_add(bytes);
        sum.filter(|sum| *sum <= self.settings.memory_bytes).map(|_| ()).ok_or(CudaStatus::OutOfMemory)
    }

    fn allocate(&mut self, bytes: usize) -> Refusable<u64> {
        let context = self.context()?;
        if bytes == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        let device = self.device_of(context)?;
        self.make_room(device, bytes as u64)?;
        Ok(self.memory.allocate(context, device, bytes as u64))
    }

    /// Frees memory. Nothing is waited for: work that uses it and has not run will
    /// find it gone.
    fn free(&mut self, address: u64) -> Refusable<()> {
        self.context()?;
        if address == 0 {
            return Ok(());
        }
        let Some((_, own)) = self.memory.allocation_at(address).filter(|(start, _)| *start == address) else {
            self.fault(format!("{address:#x} is given back, and was not asked for or is gone"));
            return Err(CudaStatus::InvalidValue);
        };
        let bytes = own.bytes;
        let touched = Touched { writes: self.memory.physical_ranges(address, bytes), ..Touched::default() };
        let label = format!("release of {bytes} bytes at {address:#x} by the host");
        let before = self.backlog.host.clone();
        self.backlog.history.compare(&label, &touched, &before);
        self.memory.end(address);
        Ok(())
    }

    /// Bytes free and in all, on the device of the current context.
    fn room(&self) -> Refusable<(usize, usize)> {
        let device = self.device_of(self.context()?)?;
        let total = self.settings.memory_bytes;
        Ok(((total - self.memory.used(device).min(total)) as usize, total as usize))
    }

    /// Writes what an attribute says of an address where the program wants it.
    fn pointer_attribute(&mut self, attribute: u32, address: u64, target: HostAddress) -> Refusable<()> {
        let found = self.about(address).ok_or(CudaStatus::InvalidValue)?;
        match attribute {
            1 => target.write(&found.context.to_ne_bytes()),
            2 => target.write(&if found.is_on_host { ON_HOST } else { ON_DEVICE }.to_ne_bytes()),
            3 => target.write(&address.to_ne_bytes()),
            4 if found.is_on_host => target.write(&address.to_ne_bytes()),
            4 => return Err(CudaStatus::InvalidValue),
            // Copies wait only where they must, and no memory is managed.
            6 | 8 => target.write(&0u32.to_ne_bytes()),
            9 => target.write(&found.device.to_ne_bytes()),
            11 => target.write(&found.start.to_ne_bytes()),
            12 => target.write(&found.bytes.to_ne_bytes()),
            13 => target.write(&1u32.to_ne_bytes()),
            other => {
                self.fault(format!("cuPointerGetAttribute: attribute {other} is not known to the double"));
                return Err(CudaStatus::NotSupported);
            }
        }
        Ok(())
    }

    /// Returns the memory that an address lies in, if the driver knows of it.
    fn about(&self, address: u64) -> Option<AboutAddress> {
        if let Some((start, own)) = self.memory.allocation_at(address) {
            let context = own.context;
            let device = own.device;
            let bytes = own.bytes;
            return Some(AboutAddress { is_on_host: false, context, device, start, bytes });
        }
        if let Some((start, bytes, device)) = self.memory.mapping_at(address) {
            return Some(AboutAddress { is_on_host: false, context: 0, device, start, bytes });
        }
        let piece = self.host.piece_at(address as usize)?;
        let device = self.device_of(piece.context).unwrap_or(0);
        let start = piece.start.number() as u64;
        Some(AboutAddress { is_on_host: true, context: piece.context, device, start, bytes: piece.bytes as u64 })
    }
}

/// Memory that an address lies in.
struct AboutAddress {
    is_on_host: bool,
    context: u64,
    device: u32,
    start: u64,
    bytes: u64,
}
