//! The memory of a level: pages of the host, a directory, and, with a device, its memory and pages
//! that it copies to.

use std::ops::Range;
use std::sync::Arc;

#[cfg(feature = "cuda")]
use recoup_device::HostBuffer;
use recoup_pages::PageRegion;

#[cfg(feature = "cuda")]
use crate::device_cache::{DeviceCache, message};
use crate::payload::{RecordSource, RecordTarget};
use crate::spill::SpillDirectory;
use crate::turns::PinTurns;
use crate::work::Extent;

/// The memory of a level.
#[derive(Clone, Debug)]
pub(crate) enum LevelStorage {
    /// Pages of the host.
    Pages(Arc<PageRegion>),
    /// Files.
    Spill(Arc<SpillDirectory>),
    /// Memory of a device.
    #[cfg(feature = "cuda")]
    Device(Arc<DeviceCache>),
    /// Pages of the host that a device copies to.
    #[cfg(feature = "cuda")]
    Buffer(Arc<HostBuffer>),
}

impl LevelStorage {
    /// Returns whether it is memory, not files.
    pub(crate) fn is_memory(&self) -> bool {
        !matches!(self, Self::Spill(_))
    }

    /// Gives the level memory up to this watermark.
    pub(crate) fn extend(&self, to: u64) -> Result<(), String> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Device(cache) => cache.grow(to),
            // Its memory exists as addresses.
            _ => {
                let _ = to;
                Ok(())
            }
        }
    }

    /// Touches pages, so that they exist.
    pub(crate) fn touch(&self, bytes: Range<u64>) {
        match self {
            Self::Pages(region) => region.touch(bytes.start as usize..bytes.end as usize),
            #[cfg(feature = "cuda")]
            Self::Buffer(buffer) => buffer.touch(bytes.end as usize),
            _ => {}
        }
    }

    /// Locks or registers pages, in turn with other processes.
    pub(crate) fn pin(&self, bytes: Range<u64>, turns: Option<&PinTurns>) -> Result<(), String> {
        let _turn = turns.map(PinTurns::take).transpose()?;
        match self {
            Self::Pages(region) => {
                let locked = region.lock(bytes.start as usize..bytes.end as usize);
                locked.map_err(|error| format!("lock {} bytes in memory: {error}", bytes.end - bytes.start))
            }
            #[cfg(feature = "cuda")]
            Self::Buffer(buffer) => buffer.register(bytes.end as usize).map_err(message),
            _ => Ok(()),
        }
    }

    /// Gives up what a place holds.
    pub(crate) fn discard(&self, extent: Extent) {
        if let Self::Spill(directory) = self {
            directory.discard(extent.start);
        }
    }

    /// Puts a record of the program in its place, and returns its bytes.
    pub(crate) fn store(&self, extent: Extent, source: &mut RecordSource<'_>) -> Result<u64, String> {
        #[cfg(feature = "cuda")]
        if let Self::Device(cache) = self {
            return cache.store(extent, source).map(|()| extent.bytes);
        }
        self.write(extent, |place| source.write(place))
    }

    /// Gives the record of a place to the program.
    pub(crate) fn give(&self, extent: Extent, target: &mut RecordTarget<'_>) -> Result<(), String> {
        #[cfg(feature = "cuda")]
        if let Self::Device(cache) = self {
            return cache.give(extent, target);
        }
        self.read(extent, |record| target.read(record))
    }

    /// Copies a state to a place of another level, through the codec where one level is coded.
    /// Returns the bytes that it needs there.
    pub(crate) fn copy(&self, extent: Extent, target: &Self, place: Extent) -> Result<u64, String> {
        match (self, target) {
            #[cfg(feature = "cuda")]
            (Self::Device(cache), _) if cache.coder().is_some() => {
                target.write(place, |place| cache.encode(extent, place))
            }
            #[cfg(feature = "cuda")]
            (_, Self::Device(cache)) if cache.coder().is_some() => {
                self.read(extent, |record| cache.decode(place, record).map(|()| place.bytes))
            }
            #[cfg(feature = "cuda")]
            (Self::Device(cache), Self::Buffer(buffer)) => {
                cache.drain(extent, buffer, place.start as usize).map(|()| place.bytes)
            }
            #[cfg(feature = "cuda")]
            (Self::Buffer(buffer), Self::Device(cache)) => {
                cache.fetch(place, buffer, extent.start as usize).map(|()| place.bytes)
            }
            (Self::Spill(directory), _) => {
                target.write(place, |place| directory.read(extent.start, place).map(|()| place.len()))
            }
            (_, Self::Spill(directory)) => {
                self.read(extent, |record| directory.write(place.start, record).map(|()| place.bytes))
            }
            _ => target.write(place, |place| {
                self.read(extent, |record| {
                    place.copy_from_slice(record);
                    Ok(record.len())
                })
            }),
        }
    }

    /// Lends the bytes of a place to be read, where a processor sees them.
    fn read<R>(&self, extent: Extent, take: impl FnOnce(&[u8]) -> Result<R, String>) -> Result<R, String> {
        match self {
            Self::Pages(region) => take(&region.read(range(extent))),
            #[cfg(feature = "cuda")]
            Self::Buffer(buffer) => take(&buffer.read(range(extent)).map_err(message)?),
            #[cfg(feature = "cuda")]
            Self::Device(cache) => take(&cache.drained(extent)?),
            Self::Spill(directory) => {
                let mut record = vec![0; extent.bytes as usize];
                directory.read(extent.start, &mut record)?;
                take(&record)
            }
        }
    }

    /// Lends the bytes of a place to be written: the first of them, as many as `fill` returns.
    fn write(&self, extent: Extent, fill: impl FnOnce(&mut [u8]) -> Result<usize, String>) -> Result<u64, String> {
        let written = match self {
            Self::Pages(region) => fill(&mut region.write(range(extent)))?,
            #[cfg(feature = "cuda")]
            Self::Buffer(buffer) => fill(&mut buffer.write(range(extent)).map_err(message)?)?,
            #[cfg(feature = "cuda")]
            Self::Device(cache) => {
                let mut record = vec![0; extent.bytes as usize];
                let written = fill(&mut record)?;
                cache.fetched(extent, &record)?;
                written
            }
            Self::Spill(directory) => {
                let mut record = vec![0; extent.bytes as usize];
                let written = fill(&mut record)?;
                directory.write(extent.start, &record[..written])?;
                written
            }
        };
        Ok(written as u64)
    }
}

fn range(extent: Extent) -> Range<usize> {
    extent.start as usize..extent.end() as usize
}
