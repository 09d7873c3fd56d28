//! The monitor without help of the system: the owner says what it is about to write.

use std::ops::Range;
use std::sync::Arc;

use recoup_core::{DeviceSnapshot, ElementType, Mark, Zones};

use crate::frozen::FrozenValues;
use crate::memory::{FrozenMemory, ZonedMemory};
use crate::sys::ZoneMemory;

/// Bytes of a zone, unless its owner chooses others.
pub const ZONE_BYTES: usize = 64 << 10;

/// Values whose owner calls [`TouchedZones::before_write`] before each write.
///
/// [`Zones::mark`] and [`Zones::freeze`] are called between two writes, never during one. There are
/// two frozen copies at most; [`Zones::freeze`] returns `None` while both are in use, and the
/// values are then copied as any others.
#[derive(Debug)]
pub struct TouchedZones {
    memory: Arc<ZonedMemory>,
    element: ElementType,
}

impl TouchedZones {
    /// Watches over `memory`, whose bytes are elements of this type, in zones of [`ZONE_BYTES`].
    #[must_use]
    pub fn new(memory: Arc<dyn ZoneMemory>, element: ElementType) -> Self {
        Self::with_zones(memory, element, ZONE_BYTES)
    }

    /// Watches over `memory` in zones of `zone_bytes` bytes.
    ///
    /// # Panics
    /// Unless that is a power of two, 8 at least, and the memory holds whole elements.
    #[must_use]
    pub fn with_zones(memory: Arc<dyn ZoneMemory>, element: ElementType, zone_bytes: usize) -> Self {
        let memory = ZonedMemory::new(memory, zone_bytes);
        assert!(memory.bytes().is_multiple_of(element.size()), "{} bytes of type {element}", memory.bytes());
        Self { memory: Arc::new(memory), element }
    }

    /// Returns whether there is a frozen copy. None comes to be while the owner writes.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.memory.table().is_frozen()
    }

    /// Takes note that these elements are about to be written, and returns once no frozen copy
    /// needs them. Costs a few loads where there is none. Any number of threads may call this at
    /// once; each writes after its call has returned.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn before_write(&self, elements: Range<usize>) {
        let size = self.element.size();
        self.memory.before_write(&(elements.start * size..elements.end * size));
    }
}

impl Zones for TouchedZones {
    fn mark(&self) -> Mark {
        self.memory.table().mark()
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        let zone_len = self.memory.zone_bytes() / self.element.size();
        let len = self.memory.bytes() / self.element.size();
        let zones = self.memory.table().written_since(since)?;
        Some(zones.into_iter().map(|run| run.start * zone_len..len.min(run.end * zone_len)).collect())
    }

    fn freeze(&self, padded_len: usize) -> Option<Box<dyn DeviceSnapshot>> {
        let frozen = FrozenMemory::new(&self.memory, self.element.size())?;
        Some(Box::new(FrozenValues::new(frozen, self.element, padded_len)))
    }
}
