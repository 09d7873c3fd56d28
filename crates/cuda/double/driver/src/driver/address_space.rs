//! Memory of the devices: addresses that no process maps, looked up at every access.

use std::collections::BTreeMap;
use std::ops::Range;

use recoup_cuda_double::CudaStatus;

use super::paged_bytes::PagedBytes;
use super::ranges::Ranges;
use crate::Refusable;
use crate::ptx::DeviceFault;

/// Addresses begin here, below where Linux maps libraries and above what it maps otherwise. None is
/// given out twice.
const FIRST_ADDRESS: u64 = 0x7d00_0000_0000;
/// Physical bytes are counted from here, above all addresses of the host.
const FIRST_PHYSICAL: u64 = 1 << 48;
/// Alignment of allocations, and the least distance between them.
const ALIGNMENT: u64 = 512;
/// Pages of memory that is mapped piece by piece.
pub(crate) const GRANULARITY: u64 = 2 << 20;

/// A piece of addresses with memory behind it.
#[derive(Clone, Copy, Debug)]
struct MappedPiece {
    bytes: u64,
    storage: usize,
    can_access: bool,
}

/// Memory that a program asked for in one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedRange {
    pub(crate) bytes: u64,
    pub(crate) context: u64,
    pub(crate) device: u32,
    storage: usize,
}

/// A place in a storage.
#[derive(Clone, Copy, Debug)]
struct Spot {
    storage: usize,
    offset: u64,
    /// Bytes from here to the end of the span.
    room: u64,
}

/// All memory of all devices.
#[derive(Debug, Default)]
pub(crate) struct AddressSpace {
    spans: BTreeMap<u64, MappedPiece>,
    allocations: BTreeMap<u64, OwnedRange>,
    reservations: BTreeMap<u64, u64>,
    storages: Vec<Option<PagedBytes>>,
    used: BTreeMap<u32, u64>,
    taken_addresses: u64,
    taken_physical: u64,
    /// First address and contents of the span found last.
    recent: Option<(u64, MappedPiece)>,
}

impl AddressSpace {
    /// Bytes in use on a device.
    pub(crate) fn used(&self, device: u32) -> u64 {
        self.used.get(&device).copied().unwrap_or(0)
    }

    fn take_addresses(&mut self, bytes: u64, alignment: u64) -> u64 {
        let next = FIRST_ADDRESS + self.taken_addresses;
        let address = next.next_multiple_of(alignment.max(ALIGNMENT));
        self.taken_addresses = address + bytes.next_multiple_of(ALIGNMENT) + ALIGNMENT - FIRST_ADDRESS;
        address
    }

    fn add_storage(&mut self, device: u32, bytes: u64) -> usize {
        let physical = FIRST_PHYSICAL + self.taken_physical;
        self.taken_physical += bytes + 1;
        self.storages.push(Some(PagedBytes::new(device, bytes, physical)));
        *self.used.entry(device).or_insert(0) += bytes;
        self.storages.len() - 1
    }

    /// Removes a storage that is neither mapped nor held.
    fn drop_unused(&mut self, index: usize) {
        let is_unused = |storage: &mut PagedBytes| storage.mappings == 0 && storage.handles == 0;
        if let Some(gone) = self.storages[index].take_if(is_unused) {
            *self.used.entry(gone.device).or_insert(0) -= gone.bytes;
        }
    }

    fn storage_mut(&mut self, index: usize) -> Refusable<&mut PagedBytes> {
        self.storages.get_mut(index).and_then(Option::as_mut).ok_or(CudaStatus::InvalidValue)
    }

    fn map_span(&mut self, address: u64, span: MappedPiece) {
        if let Some(storage) = &mut self.storages[span.storage] {
            storage.mappings += 1;
        }
        self.spans.insert(address, span);
        self.recent = None;
    }

    fn unmap_span(&mut self, address: u64) {
        self.recent = None;
        if let Some(span) = self.spans.remove(&address) {
            if let Some(storage) = &mut self.storages[span.storage] {
                storage.mappings -= 1;
            }
            self.drop_unused(span.storage);
        }
    }

    /// Gives out memory and its addresses.
    pub(crate) fn allocate(&mut self, context: u64, device: u32, bytes: u64) -> u64 {
        let address = self.take_addresses(bytes, ALIGNMENT);
        let storage = self.add_storage(device, bytes);
        if let Some(storage) = &mut self.storages[storage] {
            storage.handles = 1;
        }
        self.allocations.insert(address, OwnedRange { bytes, context, device, storage });
        self.map_span(address, MappedPiece { bytes, storage, can_access: true });
        address
    }

    /// Makes an allocation inaccessible, and its memory free.
    pub(crate) fn end(&mut self, address: u64) {
        self.unmap_span(address);
        if let Some(allocation) = self.allocations.remove(&address) {
            if let Some(storage) = &mut self.storages[allocation.storage] {
                storage.handles = 0;
            }
            self.drop_unused(allocation.storage);
        }
    }

    /// First addresses and allocations that belong to a context.
    pub(crate) fn of_context(&self, context: u64) -> Vec<(u64, OwnedRange)> {
        let all = self.allocations.iter().map(|(address, allocation)| (*address, *allocation));
        all.filter(|(_, allocation)| allocation.context == context).collect()
    }

    /// Returns the allocation of the program that an address lies in, with its first address.
    pub(crate) fn allocation_at(&self, address: u64) -> Option<(u64, OwnedRange)> {
        let (start, allocation) = self.allocations.range(..=address).next_back()?;
        (address - start < allocation.bytes).then_some((*start, *allocation))
    }

    /// Returns whether a program may name these bytes in a call: they lie in one allocation, or are
    /// mapped without a gap.
    pub(crate) fn is_known(&self, address: u64, bytes: u64) -> bool {
        if let Some((start, allocation)) = self.allocation_at(address) {
            return bytes <= allocation.bytes - (address - start);
        }
        self.is_mapped(address, bytes)
    }

    fn is_mapped(&self, address: u64, bytes: u64) -> bool {
        let mut done = 0;
        while done < bytes {
            let Some((start, span)) = self.span_at(address + done) else { return false };
            done = start + span.bytes - address;
        }
        true
    }

    fn span_at(&self, address: u64) -> Option<(u64, MappedPiece)> {
        let (start, span) = self.spans.range(..=address).next_back()?;
        (address - start < span.bytes).then_some((*start, *span))
    }

    /// First address, length and device of the mapping that an address lies in.
    pub(crate) fn mapping_at(&self, address: u64) -> Option<(u64, u64, u32)> {
        let (start, span) = self.span_at(address).filter(|(start, _)| !self.allocations.contains_key(start))?;
        let device = self.storages[span.storage].as_ref()?.device;
        Some((start, span.bytes, device))
    }

    fn spot(&mut self, address: u64) -> Option<Spot> {
        let found = self.recent.filter(|(start, span)| (*start..start + span.bytes).contains(&address));
        let (start, span) = found.or_else(|| self.span_at(address)).filter(|(_, span)| span.can_access)?;
        self.recent = Some((start, span));
        let offset = address - start;
        Some(Spot { storage: span.storage, offset, room: span.bytes - offset })
    }

    /// The places of `bytes` bytes from `address` on, with the bytes of each.
    fn spots(&mut self, address: u64, bytes: usize) -> Result<Vec<(Spot, Range<usize>)>, DeviceFault> {
        let mut spots = Vec::new();
        let mut done = 0;
        while done < bytes {
            let spot = self.spot(address + done as u64).ok_or(DeviceFault::Address { address, bytes })?;
            let n = (spot.room as usize).min(bytes - done);
            spots.push((spot, done..done + n));
            done += n;
        }
        Ok(spots)
    }

    /// Reads from `address` on.
    pub(crate) fn read(&mut self, address: u64, target: &mut [u8]) -> Result<(), DeviceFault> {
        if let Some(spot) = self.spot(address).filter(|spot| spot.room >= target.len() as u64) {
            if let Some(storage) = &self.storages[spot.storage] {
                storage.read(spot.offset, target);
            }
            return Ok(());
        }
        for (spot, range) in self.spots(address, target.len())? {
            if let Some(storage) = &self.storages[spot.storage] {
                storage.read(spot.offset, &mut target[range]);
            }
        }
        Ok(())
    }

    /// Writes from `address` on.
    pub(crate) fn write(&mut self, address: u64, source: &[u8]) -> Result<(), DeviceFault> {
        if let Some(spot) = self.spot(address).filter(|spot| spot.room >= source.len() as u64) {
            if let Some(storage) = &mut self.storages[spot.storage] {
                storage.write(spot.offset, source);
            }
            return Ok(());
        }
        for (spot, range) in self.spots(address, source.len())? {
            if let Some(storage) = &mut self.storages[spot.storage] {
                storage.write(spot.offset, &source[range]);
            }
        }
        Ok(())
    }

    /// The physical byte at an address, if it is accessible.
    pub(crate) fn physical(&mut self, address: u64) -> Option<u64> {
        let spot = self.spot(address)?;
        self.storages[spot.storage].as_ref().map(|storage| storage.physical + spot.offset)
    }

    /// The physical bytes behind addresses; those that are not accessible are left out.
    pub(crate) fn physical_ranges(&mut self, address: u64, bytes: u64) -> Ranges {
        let spots = self.spots(address, bytes as usize).unwrap_or_default();
        let ranges = spots.into_iter().filter_map(|(spot, range)| {
            let start = self.storages[spot.storage].as_ref()?.physical + spot.offset;
            Some(start..start + range.len() as u64)
        });
        Ranges::of(ranges)
    }

    /// Reserves addresses.
    pub(crate) fn reserve(&mut self, bytes: u64, alignment: u64) -> Refusable<u64> {
        let is_power = alignment == 0 || alignment.is_power_of_two();
        if bytes == 0 || !bytes.is_multiple_of(GRANULARITY) || !is_power {
            return Err(CudaStatus::InvalidValue);
        }
        let address = self.take_addresses(bytes, alignment.max(GRANULARITY));
        self.reservations.insert(address, bytes);
        Ok(address)
    }

    /// Gives addresses back; all of a reservation, with nothing mapped there.
    pub(crate) fn release_addresses(&mut self, address: u64, bytes: u64) -> Refusable<()> {
        let is_whole = self.reservations.get(&address) == Some(&bytes);
        if !is_whole || self.spans.range(address..address + bytes).next().is_some() {
            return Err(CudaStatus::InvalidValue);
        }
        self.reservations.remove(&address);
        Ok(())
    }

    /// Makes memory without an address; its handle.
    pub(crate) fn create(&mut self, device: u32, bytes: u64) -> usize {
        let index = self.add_storage(device, bytes);
        if let Some(storage) = &mut self.storages[index] {
            storage.handles = 1;
        }
        index
    }

    /// Gives a handle back; mapped memory lives on until it is unmapped.
    pub(crate) fn release(&mut self, handle: usize) -> Refusable<()> {
        let storage = self.storage_mut(handle)?;
        storage.handles = storage.handles.checked_sub(1).ok_or(CudaStatus::InvalidValue)?;
        self.drop_unused(handle);
        Ok(())
    }

    /// Maps all of a handle's memory into reserved addresses; nothing may access it yet.
    pub(crate) fn map(&mut self, address: u64, bytes: u64, handle: usize) -> Refusable<()> {
        let storage = self.storage_mut(handle)?;
        if storage.handles == 0 || storage.bytes != bytes || !address.is_multiple_of(GRANULARITY) {
            return Err(CudaStatus::InvalidValue);
        }
        let end = address + bytes;
        let reservation = self.reservations.range(..=address).next_back();
        let is_reserved = reservation.is_some_and(|(start, len)| end <= start + len);
        let is_free = self.span_at(address).is_none() && self.spans.range(address..end).next().is_none();
        if !is_reserved || !is_free {
            return Err(CudaStatus::InvalidValue);
        }
        self.map_span(address, MappedPiece { bytes, storage: handle, can_access: false });
        Ok(())
    }

    /// First addresses of the mappings that fill a range of reserved addresses exactly.
    fn whole_mappings(&self, address: u64, bytes: u64) -> Refusable<Vec<u64>> {
        let starts: Vec<u64> = self.spans.range(address..address + bytes).map(|(start, _)| *start).collect();
        let total: u64 = starts.iter().map(|start| self.spans[start].bytes).sum();
        let is_reserved =
            self.reservations.range(..=address).next_back().is_some_and(|(start, len)| address + bytes <= start + len);
        (is_reserved && bytes > 0 && total == bytes).then_some(starts).ok_or(CudaStatus::InvalidValue)
    }

    /// Unmaps whole mappings.
    pub(crate) fn unmap(&mut self, address: u64, bytes: u64) -> Refusable<()> {
        for start in self.whole_mappings(address, bytes)? {
            self.unmap_span(start);
        }
        Ok(())
    }

    /// Lets the device access whole mappings, or forbids it.
    pub(crate) fn set_access(&mut self, address: u64, bytes: u64, can_access: bool) -> Refusable<()> {
        for start in self.whole_mappings(address, bytes)? {
            if let Some(span) = self.spans.get_mut(&start) {
                span.can_access = can_access;
            }
        }
        self.recent = None;
        Ok(())
    }

    /// Everything a program has not given back, in words.
    pub(crate) fn live(&self) -> Vec<String> {
        let allocations = self.allocations.iter().map(|(address, own)| format!("{} bytes at {address:#x}", own.bytes));
        let reservations = self.reservations.iter().map(|(address, len)| format!("{len} addresses at {address:#x}"));
        let is_reserved = |address: u64| {
            let before = self.reservations.range(..=address).next_back();
            before.is_some_and(|(start, len)| address < start + len)
        };
        let mappings = self.spans.iter().filter(|(start, _)| is_reserved(**start));
        let mappings = mappings.map(|(start, span)| format!("a mapping of {} bytes at {start:#x}", span.bytes));
        let own: Vec<usize> = self.allocations.values().map(|allocation| allocation.storage).collect();
        let handles = self.storages.iter().enumerate().filter(|(index, _)| !own.contains(index));
        let handles = handles.filter_map(|(_, storage)| storage.as_ref()).filter(|storage| storage.handles > 0);
        let handles = handles.map(|storage| format!("a handle of {} bytes", storage.bytes));
        allocations.chain(reservations).chain(mappings).chain(handles).collect()
    }
}
