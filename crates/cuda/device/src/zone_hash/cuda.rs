//! Hashes of zones where they are stored, with the bits of `host.rs`.

#![expect(unsafe_code, reason = "a launch trusts its arguments")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use xxhash_rust::const_xxh3::const_custom_default_secret;

use crate::{
    Argument, Device, DeviceError, DeviceKernel, DeviceModule, DeviceVec, DeviceView, DeviceViewMut, Grid, Stream,
};

/// The kernel, as CUDA C.
pub const ZONE_HASH_SOURCE: &str = include_str!("zone_hash.cuh");

/// Zones up to this size have a hash of another form, which the kernel lacks.
pub(super) const SHORT_BYTES: usize = 240;
/// Threads that share a zone; `LANES` of the kernel.
const HASH_LANES: usize = 4;
/// Threads of a thread block; `THREADS` of the kernel.
const HASH_THREADS: u32 = 64;
/// Words of the keys of XXH3; `KEY_WORDS` of the kernel.
const KEY_WORDS: usize = 24;

/// The kernel on one device, and its keys.
pub(super) struct ZoneHasher {
    kernel: DeviceKernel,
    keys: DeviceVec<u64>,
}

impl ZoneHasher {
    /// Returns the one on a device, which all who have it share.
    ///
    /// # Errors
    /// Those of [`DeviceModule::load`].
    pub(super) fn on(device: &Device) -> Result<Arc<Self>, DeviceError> {
        static LOADED: Mutex<BTreeMap<usize, Weak<ZoneHasher>>> = Mutex::new(BTreeMap::new());
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let place = loaded.entry(device.info().ordinal).or_default();
        if let Some(found) = place.upgrade() {
            return Ok(found);
        }
        let made = Arc::new(Self::load(device)?);
        *place = Arc::downgrade(&made);
        Ok(made)
    }

    fn load(device: &Device) -> Result<Self, DeviceError> {
        let kernel = DeviceModule::load(device, ZONE_HASH_SOURCE, "zone_hash.cuh")?.kernel("hash_zones")?;
        const SECRET: [u8; 8 * KEY_WORDS] = const_custom_default_secret(0);
        let keys = SECRET.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let keys: Vec<u64> = keys.collect();
        Ok(Self { kernel, keys: DeviceVec::copy_of(&Stream::new(device)?, &keys)? })
    }

    /// Hashes zones of more than [`SHORT_BYTES`] bytes each, as the next work of `stream`: the low
    /// and the high half of each.
    pub(super) fn hash_zones(
        &self,
        stream: &Stream,
        bytes: DeviceView<'_, u8>,
        zone_bytes: usize,
        hashes: &mut DeviceViewMut<'_, u64>,
    ) -> Result<(), DeviceError> {
        let zones = bytes.len().div_ceil(zone_bytes);
        let shortest = bytes.len() - zones.saturating_sub(1) * zone_bytes;
        assert!(bytes.address().is_multiple_of(8) && zone_bytes.is_multiple_of(8), "zones begin at words");
        assert!(zones == 0 || shortest > SHORT_BYTES, "a zone of {shortest} bytes");
        assert!(hashes.len() == 2 * zones, "two halves for each of {zones} zones");
        let blocks = (zones * HASH_LANES).div_ceil(HASH_THREADS as usize) as u32;
        if blocks == 0 {
            return Ok(());
        }
        let [len, zone_bytes] = [bytes.len() as u64, zone_bytes as u64];
        let arguments: [&dyn Argument; 5] = [&bytes, &len, &zone_bytes, &self.keys.view(), &*hashes];
        // SAFETY: as the kernel is declared; it reads the bytes and the keys, and writes two words
        // for each zone, for which there is room, as asserted.
        unsafe { self.kernel.launch(stream, Grid { blocks, threads: HASH_THREADS, shared_bytes: 0 }, &arguments) }
    }
}
