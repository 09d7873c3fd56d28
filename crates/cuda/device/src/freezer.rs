//! The order between the writes to a vector and the copies that are frozen in it.
//!
//! A frozen copy begins as the vector itself: all its zones are pending. A zone that is fetched, or
//! about to be overwritten, goes to memory of the host, once. What overwrites
//! the vector is launched after that, and waits on the device for what still reads it.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use recoup_core::DeviceValuesError;

use crate::pending::PendingZones;
use crate::vector_snapshot::device_values_error;
use crate::zone_ring::SavedRuns;
use crate::{DeviceError, DeviceTicket, DeviceView, HostBuffer, Stream, ZoneRing};

/// The memory of a vector, with the copies frozen in it.
#[derive(Debug)]
pub(crate) struct VectorFreezer {
    ring: Arc<ZoneRing>,
    address: u64,
    bytes: usize,
    order: Mutex<WriteOrder>,
}

#[derive(Debug, Default)]
struct WriteOrder {
    /// The copies that have pending zones.
    frozen: Vec<PendingCopy>,
    /// The last work that reads the memory for a copy. The next write waits for it.
    reads: Option<DeviceTicket>,
}

#[derive(Debug)]
struct PendingCopy {
    copy: Arc<FrozenCopy>,
    /// The work of the owner after which the frozen values are there.
    since: DeviceTicket,
    zones: PendingZones,
}

/// The part of a frozen copy that stays when the vector continues.
#[derive(Debug)]
pub(crate) struct FrozenCopy {
    /// Each byte of the vector has its place here; those of pending zones are not there yet.
    pub(crate) host: Arc<HostBuffer>,
    /// The error that cost the copy some of its zones.
    pub(crate) fault: OnceLock<DeviceValuesError>,
}

impl VectorFreezer {
    pub(crate) fn new(ring: &Arc<ZoneRing>, memory: DeviceView<'_, u8>) -> Self {
        let [address, bytes] = [*memory.address(), memory.bytes() as u64];
        Self { ring: Arc::clone(ring), address, bytes: bytes as usize, order: Mutex::default() }
    }

    pub(crate) fn ring(&self) -> &ZoneRing {
        &self.ring
    }

    /// Freezes the memory as the work given to `stream` so far leaves it. Copies nothing.
    ///
    /// # Errors
    /// [`DeviceError`] when there is no room for slots or on the host, or the device fails.
    pub(crate) fn freeze(
        &self,
        stream: &Stream,
        host: Option<Arc<HostBuffer>>,
    ) -> Result<Arc<FrozenCopy>, DeviceError> {
        self.ring.reserve()?;
        let device = self.ring.device();
        let is_here = |host: &Arc<HostBuffer>| host.device().info().ordinal == device.info().ordinal;
        let host = match host.filter(|host| is_here(host) && host.bytes() >= self.bytes) {
            Some(host) => host,
            None => Arc::new(HostBuffer::registered(device, self.bytes)?),
        };
        let copy = Arc::new(FrozenCopy { host, fault: OnceLock::new() });
        let zones = PendingZones::all(self.bytes, self.ring.settings().zone_bytes);
        let since = stream.ticket()?;
        self.order().frozen.push(PendingCopy { copy: Arc::clone(&copy), since, zones });
        Ok(copy)
    }

    /// Copies the pending zones of `range` to the host.
    pub(crate) fn fetch(&self, copy: &Arc<FrozenCopy>, range: &Range<usize>) {
        let order = &mut *self.order();
        let Some(index) = order.frozen.iter().position(|of| Arc::ptr_eq(&of.copy, copy)) else { return };
        let pending = &mut order.frozen[index];
        let runs = pending.zones.take(range);
        if !runs.is_empty() {
            match self.ring.fetch(self.saved(pending, &runs)) {
                Ok(ticket) => order.reads = Some(ticket),
                Err(error) => pending.give_up(error),
            }
        }
        if order.frozen[index].zones.is_empty() {
            order.frozen.swap_remove(index);
        }
    }

    /// Prepares for later work of `stream` to overwrite the memory: what is pending goes to slots
    /// first, and that work waits for all that reads the memory. An error of a copy costs the copy
    /// alone.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the order cannot be kept; nothing may be overwritten then.
    pub(crate) fn before_write(&self, stream: &Stream) -> Result<(), DeviceError> {
        match self.detach() {
            Some(reads) => stream.wait_for(&reads).inspect_err(|_| self.order().reads = Some(reads)),
            None => Ok(()),
        }
    }

    /// Takes all copies out of the memory. Returns the last work that reads it.
    pub(crate) fn detach(&self) -> Option<DeviceTicket> {
        let WriteOrder { frozen, reads } = &mut *self.order();
        for mut pending in frozen.drain(..) {
            let runs = pending.zones.take(&(0..self.bytes));
            match self.ring.duplicate(self.saved(&pending, &runs)) {
                Ok(ticket) => *reads = Some(ticket),
                Err(error) => pending.give_up(error),
            }
        }
        reads.take()
    }

    /// Ends a copy: its pending zones are not saved any more.
    pub(crate) fn end(&self, copy: &Arc<FrozenCopy>) {
        self.order().frozen.retain(|of| !Arc::ptr_eq(&of.copy, copy));
    }

    fn saved<'a>(&self, pending: &'a PendingCopy, runs: &'a [Range<usize>]) -> SavedRuns<'a> {
        // The owner detaches its copies before it gives the memory back.
        let source = DeviceView::at(self.address, self.bytes);
        SavedRuns { source, runs, after: &pending.since, host: &pending.copy.host }
    }

    fn order(&self) -> MutexGuard<'_, WriteOrder> {
        // A copy that a panic cut short has its zones taken, and is never read: the panic is ours.
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingCopy {
    fn give_up(&self, error: DeviceError) {
        // The first error is the reason.
        let _ = self.copy.fault.set(device_values_error(error));
    }
}

/// Defects put in by hand, which the double of the driver has to find.
#[cfg(test)]
mod tests {
    use recoup_cuda_double::{Double, Settings};

    use super::*;
    use crate::{Device, DeviceVec, FreezeSettings, FreezeWay};

    const LEN: usize = 4096;

    /// Freezes bytes, and overwrites them in `order` with what versions need of them.
    fn overwritten(order: impl Fn(&VectorFreezer, &Stream)) -> Vec<u8> {
        let device = Device::open(0).unwrap();
        let stream = Stream::new(&device).unwrap();
        let settings = FreezeSettings { way: FreezeWay::Zones, zone_bytes: 64, slot_bytes: 256, slots: 2 };
        let ring = Arc::new(ZoneRing::new(&device, settings));
        let mut values = DeviceVec::copy_of(&stream, &[7_u8; LEN]).unwrap();
        let memory = VectorFreezer::new(&ring, values.view());
        let copy = memory.freeze(&stream, None).unwrap();
        memory.fetch(&copy, &(0..1000));
        order(&memory, &stream);
        stream.fill_zero(&mut values.view_mut()).unwrap();
        let found = copy.host.read(0..LEN).unwrap().to_vec();
        assert_eq!(copy.fault.get(), None);
        found
    }

    /// The number of orders of the device's work in which the double finds a race or the bytes are
    /// wrong.
    fn found_in(orders: u64, order: impl Fn(&VectorFreezer, &Stream)) -> u64 {
        let double = Double::load();
        let is_found = |seed: &u64| {
            double.reset(&Settings { seed: *seed, ..Settings::default() });
            let bytes = overwritten(&order);
            !double.report().is_clean() || bytes != [7; LEN]
        };
        (0..orders).filter(is_found).count() as u64
    }

    #[test]
    fn without_a_defect_nothing_is_found() {
        assert_eq!(found_in(50, |memory, stream| memory.before_write(stream).unwrap()), 0);
    }

    #[test]
    fn a_write_that_does_not_wait_for_the_copies_is_found_in_every_order() {
        assert_eq!(found_in(50, |memory, _| drop(memory.detach())), 50);
    }

    #[test]
    fn a_write_before_which_nothing_is_copied_is_found_in_every_order() {
        assert_eq!(found_in(50, |_, _| ()), 50);
    }
}
