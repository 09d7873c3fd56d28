//! Notes of the system on which pages were written: owners need not say (`userfaultfd(2)` with
//! `UFFD_FEATURE_WP_ASYNC`, `PAGEMAP_SCAN(2const)`).
//!
//! The first write of a page since the last mark costs a fault of about a microsecond. What the
//! kernel writes, for `read(2)` say, is noted as well; what a device writes is not.

use std::fmt;
use std::ops::{Deref, DerefMut, Range};

use recoup_core::{DeviceSnapshot, Mark, Zones};
use recoup_pages::PageSize;

use crate::element::RegionElement;
use crate::memory::new_table;
use crate::no_monitor::NoMonitor;
use crate::region::RegionValues;
use crate::table::ZoneTable;
use crate::touch::ZONE_BYTES;
use crate::userfault::{Userfault, WrittenPages};

/// Values in pages of their own, of which the system knows which were written.
///
/// Read and write it as a slice. It is never frozen: a writer does not wait.
///
/// ```no_run
/// use recoup_core::Zones;
/// use recoup_snapshot::{PageSize, TrackedRegion};
/// let mut region = TrackedRegion::<f64>::zeros(100_000, PageSize::Small)?;
/// let mark = region.mark();
/// region[70_000] = 1.0;
/// assert_eq!(region.written_since(mark), Some(vec![65_536..73_728]));
/// # Ok::<(), recoup_snapshot::NoMonitor>(())
/// ```
pub struct TrackedRegion<T> {
    values: RegionValues<T>,
    table: ZoneTable,
    pages: WrittenPages,
    /// Pages are watched until this file is closed.
    _userfault: Userfault,
}

impl<T: RegionElement> TrackedRegion<T> {
    /// Makes `len` zeros. Their pages come to be when they are first written.
    ///
    /// # Errors
    /// [`NoMonitor`] when the system grants no addresses, or takes no notes of them.
    pub fn zeros(len: usize, size: PageSize) -> Result<Self, NoMonitor> {
        let values = RegionValues::zeros(len, size).map_err(NoMonitor::system("addresses"))?;
        let userfault = Userfault::open()?;
        let pages = WrittenPages::open()?;
        userfault.register(values.addresses()).map_err(NoMonitor::system("UFFDIO_REGISTER"))?;
        let table = new_table(len * size_of::<T>(), ZONE_BYTES);
        // The first scan begins the notes, and finds whether there can be any.
        pages.scan(values.addresses(), |_| ()).map_err(NoMonitor::system("PAGEMAP_SCAN"))?;
        Ok(Self { values, table, pages, _userfault: userfault })
    }

    /// Takes the system's notes over.
    fn note_writes(&self) {
        let addresses = self.values.addresses();
        let zones = self.table.zones();
        let zone = |address: usize| zones.min((address - addresses.start) / ZONE_BYTES);
        let noted = self.pages.scan(addresses.clone(), |run| {
            self.table.note_write(zone(run.start)..zones.min(zone(run.end - 1) + 1));
        });
        if noted.is_err() {
            // Without notes, all may be written.
            self.table.note_write(0..zones);
        }
    }
}

impl<T: RegionElement> Deref for TrackedRegion<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.values.as_slice()
    }
}

impl<T: RegionElement> DerefMut for TrackedRegion<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.values.as_mut_slice()
    }
}

impl<T: RegionElement> fmt::Debug for TrackedRegion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TrackedRegion({} {})", self.len(), T::ELEMENT)
    }
}

impl<T: RegionElement> Zones for TrackedRegion<T> {
    fn mark(&self) -> Mark {
        self.note_writes();
        self.table.mark()
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        self.note_writes();
        let zone_len = ZONE_BYTES / size_of::<T>();
        let zones = self.table.written_since(since)?;
        Some(zones.into_iter().map(|run| run.start * zone_len..self.len().min(run.end * zone_len)).collect())
    }

    /// Returns `None`: writers do not wait.
    fn freeze(&self, _padded_len: usize) -> Option<Box<dyn DeviceSnapshot>> {
        None
    }
}

/// Values of a trial: two zones.
const PROBE_LEN: usize = 2 * ZONE_BYTES / size_of::<f64>();

/// Writes one zone of two and asks which were written.
pub(crate) fn probe() -> Result<(), NoMonitor> {
    let mut region = TrackedRegion::<f64>::zeros(PROBE_LEN, PageSize::Small)?;
    region[0] = 1.0;
    let mark = region.mark();
    let is_quiet = region.written_since(mark).is_some_and(|written| written.is_empty());
    region[PROBE_LEN - 1] = 1.0;
    let written = region.written_since(mark).unwrap_or_default();
    let is_noted = matches!(written.as_slice(), [run] if *run == (PROBE_LEN / 2..PROBE_LEN));
    if is_quiet && is_noted { Ok(()) } else { Err(NoMonitor::Unnoticed) }
}
