//! Hashes of zones: which parts of values on a device changed, without fetching the others.
//!
//! 128 bits of XXH3 for each zone, the same on the device and on the host.

mod cuda;
mod host;

use std::fmt;
use std::sync::Arc;

pub use self::cuda::ZONE_HASH_SOURCE;
use self::cuda::{SHORT_BYTES, ZoneHasher};
pub use self::host::hash_zones;
use crate::{Device, DeviceError, DeviceVec, DeviceView, HostBuffer, Stream};

/// Room for the hashes of some zones, and the kernel that makes them.
pub(crate) struct ZoneHashes {
    hasher: Arc<ZoneHasher>,
    hashes: DeviceVec<u64>,
}

impl fmt::Debug for ZoneHashes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ZoneHashes").field("hashes", &self.hashes).finish_non_exhaustive()
    }
}

impl ZoneHashes {
    /// Loads the kernel. `None` where there is neither a compiler for it nor a compiled one.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device refuses.
    pub(crate) fn on(device: &Device) -> Result<Option<Self>, DeviceError> {
        match ZoneHasher::on(device) {
            Ok(hasher) => Ok(Some(Self { hasher, hashes: DeviceVec::new(device, 0)? })),
            Err(DeviceError::NotAvailable { .. } | DeviceError::Compile { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Hashes the zones of `bytes`, as the next work of `stream`, and waits for the hashes, which
    /// pass through `host`. That has room for them, and for a short zone.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device fails.
    pub(crate) fn of(
        &mut self,
        stream: &Stream,
        bytes: DeviceView<'_, u8>,
        zone_bytes: usize,
        host: &HostBuffer,
    ) -> Result<Vec<u128>, DeviceError> {
        let last = bytes.len() % zone_bytes;
        let short = if last > SHORT_BYTES { 0 } else { last };
        let long = bytes.slice(0..bytes.len() - short);
        let words = 2 * long.len().div_ceil(zone_bytes);
        if self.hashes.len() < words {
            self.hashes = DeviceVec::new(stream.device(), words)?;
        }
        let mut found = self.hashes.slice_mut(0..words);
        self.hasher.hash_zones(stream, long, zone_bytes, &mut found)?;
        host.store(stream, found.as_view(), 0)?;
        let mut hashes: Vec<u128> =
            host.read(0..8 * words)?.as_chunks().0.iter().map(|hash| u128::from_le_bytes(*hash)).collect();
        if short > 0 {
            host.store(stream, bytes.slice(long.len()..bytes.len()), 0)?;
            hashes.extend(hash_zones(&host.read(0..short)?, zone_bytes));
        }
        Ok(hashes)
    }
}
