//! Memory of a device: asked for, given back, and asked about.

mod sys;

use recoup_cuda_double::CudaStatus;

use super::execute::Touched;
use super::host_memory::HostAddress;
use super::operation::StreamWork;
use super::state::Driver;
use crate::Refusable;

/// Kinds of memory, as an attribute of a pointer tells them.
const ON_HOST: u32 = 1;
const ON_DEVICE: u32 = 2;

impl Driver {
    /// Refuses more memory than the device has left, once all that was given back is free.
    pub(crate) fn make_room(&mut self, device: u32, bytes: u64) -> Refusable<()> {
        let limit = self.settings.memory_bytes;
        let fits = |driver: &Self| driver.memory.used(device).checked_add(bytes).is_some_and(|sum| sum <= limit);
        if !fits(self) {
            let ends = self.backlog.select(|waiting| matches!(waiting.action, StreamWork::End { .. }));
            self.force(&ends);
        }
        fits(self).then_some(()).ok_or(CudaStatus::OutOfMemory)
    }

    fn allocate(&mut self, bytes: usize) -> Refusable<u64> {
        let context = self.context()?;
        if bytes == 0 {
            return Err(CudaStatus::InvalidValue);
        }
        let device = self.device_of(context)?;
        self.make_room(device, bytes as u64)?;
        let address = self.memory.allocate(context, device, bytes as u64);
        self.memory.begin(address);
        Ok(address)
    }

    /// Allocates in the order of a stream: operations of other streams that use the memory must
    /// wait for this one. No bytes are the address 0.
    fn allocate_in(&mut self, bytes: usize, number: u64) -> Refusable<u64> {
        self.context()?;
        let stream = self.stream(number)?;
        if !self.settings.has_pools {
            return Err(CudaStatus::NotSupported);
        }
        if bytes == 0 {
            return Ok(0);
        }
        let context = self.context_of(stream)?;
        let device = self.device_of(context)?;
        self.make_room(device, bytes as u64)?;
        let bytes = bytes as u64;
        let address = self.memory.allocate(context, device, bytes);
        self.submit(stream, StreamWork::Begin { address, bytes })?;
        Ok(address)
    }

    /// Frees memory. Nothing is waited for: work that uses it and has not run will
    /// find it gone.
    fn free(&mut self, address: u64) -> Refusable<()> {
        self.context()?;
        if address == 0 {
            return Ok(());
        }
        let bytes = self.given_back(address)?;
        let touched = Touched { writes: self.memory.physical_ranges(address, bytes), ..Touched::default() };
        let label = format!("release of {bytes} bytes at {address:#x} by the host");
        let before = self.backlog.host.clone();
        self.backlog.history.compare(&label, &touched, &before);
        self.memory.end(address);
        Ok(())
    }

    fn free_in(&mut self, address: u64, number: u64) -> Refusable<()> {
        self.context()?;
        let stream = self.stream(number)?;
        if address == 0 {
            return Ok(());
        }
        let bytes = self.given_back(address)?;
        self.submit(stream, StreamWork::End { address, bytes }).map(|_| ())
    }

    fn given_back(&mut self, address: u64) -> Refusable<u64> {
        let result = self.memory.give_back(address);
        if result.is_err() {
            self.fault(format!("{address:#x} is given back, and was not asked for or is gone"));
        }
        result.map(|allocation| allocation.bytes)
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
