//! The monitor by the system: pages are protected when they are frozen, and a thread keeps a zone
//! when its writer waits (`userfaultfd(2)`, write protection).
//!
//! The system holds back every write of this process's own code. What the kernel itself writes
//! into protected pages, for `read(2)`, a message of MPI, or io_uring, fails there with `EFAULT`,
//! and what a device writes is not seen at all. So a watched region lends no mutable slice that
//! could be given to any of them: its elements are written one by one, as [`Cell`]s.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use recoup_core::{DeviceSnapshot, Mark, ValuesMut, Zones};
use recoup_pages::PageSize;

use crate::element::RegionElement;
use crate::frozen::FrozenValues;
use crate::memory::{FrozenMemory, WriteGuard, ZonedMemory};
use crate::no_monitor::NoMonitor;
use crate::region::RegionValues;
use crate::userfault::{Faults, Userfault, Watching};
pub use sys::WatchedPart;

mod sys;

/// Bytes of a zone in small pages; a multiple of them on every processor.
const SMALL_ZONE_BYTES: usize = 64 << 10;
/// Bytes of a zone in huge pages: one page, which so is never split.
const HUGE_ZONE_BYTES: usize = 2 << 20;

/// A thread that keeps what writers of watched regions are about to overwrite.
pub struct WriteWatch {
    shared: Arc<WatchThread>,
    thread: Option<JoinHandle<()>>,
}

/// The part of a watch that its thread has, too.
struct WatchThread {
    userfault: Arc<Userfault>,
    faults: Faults,
    memories: Mutex<Vec<WatchedMemory>>,
}

/// The memory at some addresses.
struct WatchedMemory {
    addresses: Range<usize>,
    memory: Weak<ZonedMemory>,
}

impl fmt::Debug for WriteWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteWatch").field("regions", &self.shared.memories().len()).finish_non_exhaustive()
    }
}

impl WriteWatch {
    /// Starts the thread. It sleeps while no writer waits.
    ///
    /// # Errors
    /// [`NoMonitor`] where the system protects no pages for us, or refuses a thread.
    pub fn new() -> Result<Arc<Self>, NoMonitor> {
        let userfault = Arc::new(Userfault::open(Watching::Protect)?);
        let shared = Arc::new(WatchThread { userfault, faults: Faults::new()?, memories: Mutex::default() });
        let thread = std::thread::Builder::new().name("recoup-watch".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.keep_what_is_written()
        });
        let thread = thread.map_err(NoMonitor::system("a thread"))?;
        Ok(Arc::new(Self { shared, thread: Some(thread) }))
    }

    /// Watches over memory from now on.
    fn add(&self, addresses: Range<usize>, memory: &Arc<ZonedMemory>) {
        let mut memories = self.shared.memories();
        memories.retain(|known| known.memory.strong_count() > 0);
        memories.push(WatchedMemory { addresses, memory: Arc::downgrade(memory) });
    }
}

impl Drop for WriteWatch {
    fn drop(&mut self) {
        self.shared.faults.end();
        // The thread has no result; if it panicked, its message was printed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl WatchThread {
    /// Handles faults until the watch is dropped.
    fn keep_what_is_written(&self) {
        let ended = self.faults.handle(&self.userfault, |address| self.let_write(address));
        if ended.is_err() {
            // No fault is handled any more: nothing may be protected.
            self.memories().iter().filter_map(|known| known.memory.upgrade()).for_each(|memory| memory.give_up());
        }
    }

    /// Keeps the zone at an address, and lets its writer continue.
    fn let_write(&self, address: usize) {
        let known = |known: &&WatchedMemory| known.addresses.contains(&address);
        let found =
            self.memories().iter().find(known).and_then(|known| Some((known.addresses.start, known.memory.upgrade()?)));
        // A writer of memory without an owner does not exist: the region was borrowed to write.
        if let Some((start, memory)) = found {
            let zone = (address - start) / memory.zone_bytes();
            memory.keep(zone..zone + 1);
            memory.let_write(zone..zone + 1);
        }
    }

    /// A panic leaves whole entries.
    fn memories(&self) -> MutexGuard<'_, Vec<WatchedMemory>> {
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The protection of one region.
struct RegionGuard {
    userfault: Arc<Userfault>,
    /// Addresses of whole pages.
    addresses: Range<usize>,
}

impl WriteGuard for RegionGuard {
    fn protect(&self) -> io::Result<()> {
        let protected = self.userfault.protect(self.addresses.clone());
        protected.inspect_err(|_| drop(self.userfault.lift(self.addresses.clone())))
    }

    fn lift(&self, bytes: Range<usize>) -> io::Result<()> {
        // The last zone may end within a page.
        let end = self.addresses.len().min(bytes.end.next_multiple_of(SMALL_ZONE_BYTES));
        self.userfault.lift(self.addresses.start + bytes.start..self.addresses.start + end)
    }

    fn give_up(&self) {
        // If this fails too, the end of the file's last user ends the protection.
        let _ = self.userfault.unregister(self.addresses.clone());
    }
}

/// Values in pages of their own whose writers need not say what they write.
///
/// Read it as a slice. Elements are written one by one, as [`Cell`]s. What the kernel writes into
/// frozen pages, for `read(2)`, MPI or io_uring, would fail with `EFAULT`, and what a device writes
/// would not be seen. So there is no mutable slice to be handed to them:
///
/// ```compile_fail,E0596
/// use recoup_snapshot::{PageSize, WatchedRegion, WriteWatch};
/// let mut region = WatchedRegion::<u8>::zeros(&WriteWatch::new()?, 100, PageSize::Small)?;
/// std::io::Read::read(&mut std::io::stdin(), &mut region)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What is written is not seen while nothing is frozen: every mark differs from all others.
///
/// ```no_run
/// use recoup_core::{DeviceSnapshot, ValuesMut, Zones};
/// use recoup_snapshot::{PageSize, WriteWatch, WatchedRegion};
/// let watch = WriteWatch::new()?;
/// let mut region = WatchedRegion::<f64>::zeros(&watch, 100_000, PageSize::Huge)?;
/// region.cells()[14].set(1.0);
/// let frozen = region.freeze(100_000).expect("no other frozen copy");
/// region.cells()[14].set(2.0);
/// let mut values = vec![0.0; 100_000];
/// frozen.fetch(0, ValuesMut::F64(&mut values))?;
/// assert_eq!((values[14], region[14]), (1.0, 2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct WatchedRegion<T> {
    values: RegionValues<T>,
    memory: Arc<ZonedMemory>,
    /// Its thread runs as long as any region is written.
    _watch: Arc<WriteWatch>,
}

impl<T: RegionElement> WatchedRegion<T> {
    /// Makes `len` zeros, and their pages, near the core of the thread that calls this. Huge pages
    /// have zones of 2 MiB, small pages of 64 KiB.
    ///
    /// # Errors
    /// [`NoMonitor`] when the system grants no addresses, or does not watch over them.
    pub fn zeros(watch: &Arc<WriteWatch>, len: usize, size: PageSize) -> Result<Self, NoMonitor> {
        let mut values = RegionValues::zeros(len, size).map_err(NoMonitor::system("addresses"))?;
        values.make_pages();
        let userfault = Arc::clone(&watch.shared.userfault);
        let addresses = values.addresses();
        userfault.register(addresses.clone()).map_err(NoMonitor::system("UFFDIO_REGISTER"))?;
        let zone_bytes = if size == PageSize::Huge { HUGE_ZONE_BYTES } else { SMALL_ZONE_BYTES };
        let guard = RegionGuard { userfault, addresses: addresses.clone() };
        let memory = Arc::new(ZonedMemory::new(values.memory(), zone_bytes, Some(Box::new(guard))));
        watch.add(addresses, &memory);
        Ok(Self { values, memory, _watch: Arc::clone(watch) })
    }

    /// Lends all elements to be written by this thread.
    #[must_use]
    pub fn cells(&mut self) -> &[Cell<T>] {
        self.part().into_cells()
    }

    /// Lends all elements as one part, which can be split and handed to threads.
    #[must_use]
    pub fn part(&mut self) -> WatchedPart<'_, T> {
        WatchedPart::new(&mut self.values)
    }

    /// Lends all elements to be written by whoever, the kernel among them, as when they are
    /// restored. All that frozen copies need is kept elsewhere first, and nothing is protected
    /// while the elements are lent.
    #[must_use]
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.memory.give_way();
        self.values.as_mut_slice()
    }
}

impl<T: RegionElement> Deref for WatchedRegion<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.values.as_slice()
    }
}

impl<T: RegionElement> fmt::Debug for WatchedRegion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchedRegion({} {})", self.len(), T::ELEMENT)
    }
}

impl<T: RegionElement> Zones for WatchedRegion<T> {
    /// Makes a mark that equals no other: what is written while nothing is frozen is not seen.
    fn mark(&self) -> Mark {
        let table = self.memory.table();
        table.note_write(0..table.zones());
        table.mark()
    }

    /// Lists all elements.
    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        self.memory.table().written_since(since).map(|_| std::iter::once(0..self.len()).collect())
    }

    fn freeze(&self, padded_len: usize) -> Option<Box<dyn DeviceSnapshot>> {
        let frozen = FrozenMemory::new(&self.memory, size_of::<T>())?;
        Some(Box::new(FrozenValues::new(frozen, T::ELEMENT, padded_len)))
    }
}

/// Values of a trial: two zones.
const PROBE_LEN: usize = 2 * SMALL_ZONE_BYTES / size_of::<f64>();
/// The longest wait for a trial's write, which takes microseconds where it works.
const PROBE_WAIT: Duration = Duration::from_secs(2);

/// Freezes two zones, overwrites a value and looks for the old one.
pub(crate) fn probe() -> Result<(), NoMonitor> {
    let watch = WriteWatch::new()?;
    let mut region = WatchedRegion::<f64>::zeros(&watch, PROBE_LEN, PageSize::Small)?;
    region.cells()[0].set(1.0);
    let frozen = region.freeze(PROBE_LEN).ok_or(NoMonitor::Unnoticed)?;
    let (written, is_written) = mpsc::channel();
    // A writer that is never let go must not hold the program up.
    std::thread::spawn(move || {
        region.cells()[0].set(2.0);
        // The receiver is gone where it did not wait as long.
        let _ = written.send(region);
    });
    let region = is_written.recv_timeout(PROBE_WAIT).map_err(|_| NoMonitor::Unnoticed)?;
    let mut values = [0.0; PROBE_LEN];
    let is_fetched = frozen.fetch(0, ValuesMut::F64(&mut values)).is_ok();
    if is_fetched && values[0] == 1.0 && region[0] == 2.0 { Ok(()) } else { Err(NoMonitor::Unnoticed) }
}
