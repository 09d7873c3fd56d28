//! The road of zones from vectors of a device to the host, with a bounded part of the device's
//! memory.
//!
//! A zone that is about to be overwritten is copied to a slot within the device first, and goes to
//! the host from there while the next slot fills (J. Lee et al. 2019, doi 10.1145/3330345.3330361:
//! duplicate on write, by a double buffer). A slot is filled again once it has been emptied. The
//! streams see to that: no thread of the host waits.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use crate::pending::pieces;
use crate::{Device, DeviceError, DeviceTicket, DeviceVec, DeviceView, HostBuffer, Stream};

/// The way in which the values of a vector are frozen for a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FreezeWay {
    /// By a copy within the device; without one where there is no room for it.
    #[default]
    Copy,
    /// Never by a copy: zones go to the host when they are fetched, or before they are overwritten.
    Zones,
}

/// The ways and sizes by which the vectors of one owner are frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreezeSettings {
    /// The way.
    pub way: FreezeWay,
    /// Bytes that are pending or saved together.
    pub zone_bytes: usize,
    /// Bytes of a slot, which go to the host in one transfer.
    pub slot_bytes: usize,
    /// Number of slots: one is filled while others are emptied.
    pub slots: usize,
}

impl Default for FreezeSettings {
    fn default() -> Self {
        Self { way: FreezeWay::default(), zone_bytes: 64 << 10, slot_bytes: 4 << 20, slots: 2 }
    }
}

impl FreezeSettings {
    /// Settings without any copy, with about `ring_bytes` of the device's memory: two slots, or as
    /// many of 4 MiB as that is.
    #[must_use]
    pub fn zones(ring_bytes: usize) -> Self {
        let usual = Self::default();
        let slots = (ring_bytes / usual.slot_bytes).max(usual.slots);
        let slot_bytes = (ring_bytes / slots).clamp(1, usual.slot_bytes);
        Self { way: FreezeWay::Zones, slot_bytes, slots, ..usual }
    }

    /// Returns the bytes of all slots: what versions without a copy take of the device's memory.
    #[must_use]
    pub fn ring_bytes(&self) -> usize {
        self.slots * self.slot_bytes
    }
}

/// Slots in the memory of a device, which all vectors of one owner share, and the streams that fill
/// and empty them.
#[derive(Debug)]
pub struct ZoneRing {
    device: Device,
    settings: FreezeSettings,
    /// Made when first needed. After an error they are given back, and the next need makes others.
    parts: Mutex<Option<RingParts>>,
}

#[derive(Debug)]
struct RingParts {
    /// Reads vectors. Its last ticket therefore tells when a vector may be overwritten.
    copies: Stream,
    /// Empties slots.
    drains: Stream,
    slots: Vec<Slot>,
    next: usize,
}

#[derive(Debug)]
struct Slot {
    memory: DeviceVec<u8>,
    /// The work after which it is empty.
    emptied: Option<DeviceTicket>,
}

/// The zones that are to be saved: the runs of a vector's bytes, once `after` is due, at the same
/// bytes of `host`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedRuns<'a> {
    pub(crate) source: DeviceView<'a, u8>,
    pub(crate) runs: &'a [Range<usize>],
    pub(crate) after: &'a DeviceTicket,
    pub(crate) host: &'a HostBuffer,
}

impl ZoneRing {
    /// A ring without memory yet.
    ///
    /// # Panics
    /// If a size is zero.
    #[must_use]
    pub fn new(device: &Device, settings: FreezeSettings) -> Self {
        let FreezeSettings { zone_bytes, slot_bytes, slots, .. } = settings;
        assert!(zone_bytes > 0 && slot_bytes > 0 && slots > 0, "sizes of {settings:?}");
        Self { device: device.clone(), settings, parts: Mutex::new(None) }
    }

    /// Returns its device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns its settings.
    #[must_use]
    pub fn settings(&self) -> &FreezeSettings {
        &self.settings
    }

    /// Makes its memory now, so that a version need not find room for it later.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no more.
    pub fn reserve(&self) -> Result<(), DeviceError> {
        self.with_parts(|_| Ok(()))
    }

    /// Copies zones to the host straight from where they are. Returns the place after which the
    /// source is not read any more.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses; then nothing of it is under way.
    pub(crate) fn fetch(&self, saved: SavedRuns<'_>) -> Result<DeviceTicket, DeviceError> {
        self.with_parts(|parts| {
            parts.copies.wait_for(saved.after)?;
            for piece in pieces(saved.runs, self.settings.slot_bytes) {
                saved.host.store(&parts.copies, saved.source.slice(piece.clone()), piece.start)?;
            }
            parts.copies.ticket()
        })
    }

    /// Copies zones to slots, and from there to the host. Returns the place after which the source
    /// is not read any more: it comes before the host has all of them.
    ///
    /// # Errors
    /// As for [`ZoneRing::fetch`].
    pub(crate) fn duplicate(&self, saved: SavedRuns<'_>) -> Result<DeviceTicket, DeviceError> {
        self.with_parts(|parts| {
            parts.copies.wait_for(saved.after)?;
            for piece in pieces(saved.runs, self.settings.slot_bytes) {
                parts.pass(saved.source.slice(piece.clone()), piece.start, saved.host)?;
            }
            parts.copies.ticket()
        })
    }

    fn with_parts<R>(&self, work: impl FnOnce(&mut RingParts) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        // Parts are put back whole, or not at all.
        let mut place = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = match place.take() {
            Some(parts) => parts,
            None => RingParts::new(&self.device, &self.settings)?,
        };
        // Parts that are dropped after an error wait for the device before they free their memory.
        let done = work(&mut parts)?;
        *place = Some(parts);
        Ok(done)
    }
}

impl RingParts {
    fn new(device: &Device, settings: &FreezeSettings) -> Result<Self, DeviceError> {
        let slot = |_| Ok(Slot { memory: DeviceVec::new(device, settings.slot_bytes)?, emptied: None });
        let slots = (0..settings.slots).map(slot).collect::<Result<_, DeviceError>>()?;
        Ok(Self { copies: Stream::new(device)?, drains: Stream::new(device)?, slots, next: 0 })
    }

    /// Lets a piece pass through the next slot.
    fn pass(&mut self, source: DeviceView<'_, u8>, offset: usize, host: &HostBuffer) -> Result<(), DeviceError> {
        let next = (self.next + 1) % self.slots.len();
        let slot = &mut self.slots[std::mem::replace(&mut self.next, next)];
        if let Some(emptied) = &slot.emptied {
            self.copies.wait_for(emptied)?;
        }
        self.copies.copy(source, &mut slot.memory.slice_mut(0..source.len()))?;
        self.drains.wait_for(&self.copies.ticket()?)?;
        slot.emptied = Some(host.store(&self.drains, slot.memory.slice(0..source.len()), offset)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_the_bytes_that_were_asked_for() {
        for (bytes, slots) in [(8 << 20, 2), (1 << 20, 2), (64 << 20, 16), (2, 2)] {
            let settings = FreezeSettings::zones(bytes);
            assert_eq!((settings.ring_bytes(), settings.slots), (bytes, slots));
        }
        assert_eq!(FreezeSettings::zones(0).ring_bytes(), 2);
    }
}
