//! Values of a region, which threads write part by part.
//!
//! A writer has a raw pointer to the whole, and makes slices only of elements that the table was
//! asked about: copiers may be reading the others.

#![expect(unsafe_code, reason = "lends parts of one memory to writers, while copiers read others")]

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use recoup_pages::{HostPages, PageSize};

use crate::element::RegionElement;
use crate::sys::ZoneMemory;
use crate::touch::TouchedZones;

/// Bytes of a huge page.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of a small page, on the processor where it is largest.
const SMALL_PAGE_BYTES_MAX: usize = 64 << 10;

/// Pages of a region: whole ones, which belong to no other memory.
struct RegionPages {
    pages: HostPages,
    bytes: usize,
}

// SAFETY: the pages are mapped as long as this lives, and zeros at first. They are lent by
// `RegionValues` under an exclusive borrow, which leaves no room for `freeze`, in parts that
// `TouchedZones::before_write` was called for.
unsafe impl ZoneMemory for RegionPages {
    fn bytes(&self) -> *const [u8] {
        std::ptr::slice_from_raw_parts(self.pages.at(0), self.bytes)
    }
}

/// The values of a region. Its parts are lent as it is borrowed.
pub(crate) struct RegionValues<T> {
    memory: Arc<RegionPages>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: RegionElement> RegionValues<T> {
    /// Makes `len` zeros.
    pub(crate) fn zeros(len: usize, size: PageSize) -> io::Result<Self> {
        let bytes = len.checked_mul(size_of::<T>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let granule = if size == PageSize::Huge { HUGE_PAGE_BYTES } else { SMALL_PAGE_BYTES_MAX };
        let reserved = bytes.max(1).checked_next_multiple_of(granule).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = RegionPages { pages: HostPages::reserve(reserved, size)?, bytes };
        Ok(Self { memory: Arc::new(memory), len, element: PhantomData })
    }

    /// The memory, for frozen copies.
    pub(crate) fn memory(&self) -> Arc<dyn ZoneMemory> {
        Arc::clone(&self.memory) as _
    }

    /// The first value.
    fn start(&mut self) -> *mut T {
        self.memory.pages.at(0).cast()
    }

    /// The addresses of the pages.
    pub(crate) fn addresses(&self) -> Range<usize> {
        self.memory.pages.at(0).addr()..self.memory.pages.at(self.memory.pages.bytes()).addr()
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: as many values, aligned to 2 MiB and initialised; every bit pattern is a value.
        // Writers borrow `self` exclusively.
        unsafe { std::slice::from_raw_parts(self.memory.pages.at(0).cast::<T>(), self.len) }
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and the borrow is exclusive. Their owner freezes nothing:
        // no copier reads.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.len) }
    }

    /// Makes pages; where the system cannot, they come to be when they are used.
    pub(crate) fn populate(&self, elements: Range<usize>) {
        let _ = self.memory.pages.populate(elements.start * size_of::<T>()..elements.end * size_of::<T>());
    }

    /// Lends all values, to be written after their table was asked.
    pub(crate) fn part<'a>(&'a mut self, touched: &'a TouchedZones) -> RegionPart<'a, T> {
        let start = self.start();
        RegionPart { start, range: 0..self.len, touched, borrow: PhantomData }
    }
}

/// Some elements of a [`TouchedRegion`](crate::TouchedRegion) that are written by one thread. Other
/// parts may be written by others at the same time.
///
/// ```
/// use recoup_snapshot::{PageSize, TouchedRegion};
/// let mut region = TouchedRegion::<f64>::zeros(1000, PageSize::Small)?;
/// let (mut low, mut high) = region.part().split_at(500);
/// std::thread::scope(|scope| {
///     scope.spawn(|| low.write(0..500).fill(1.0));
///     high.write(0..500).fill(2.0);
/// });
/// assert_eq!((region[499], region[500]), (1.0, 2.0));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct RegionPart<'a, T> {
    /// The first value of the region.
    start: *mut T,
    /// Elements of the region.
    range: Range<usize>,
    touched: &'a TouchedZones,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: as an exclusive borrow of `T: Send` values.
unsafe impl<T: Send> Send for RegionPart<'_, T> {}
// SAFETY: a shared part gives out its length only.
unsafe impl<T: Send> Sync for RegionPart<'_, T> {}

impl<T> fmt::Debug for RegionPart<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegionPart({:?})", self.range)
    }
}

impl<'a, T: RegionElement> RegionPart<'a, T> {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// Splits the part before element `at` of it.
    ///
    /// # Panics
    /// If it has fewer.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        assert!(at <= self.len(), "split at {at} of {}", self.len());
        let middle = self.range.start + at;
        let Self { start, range, touched, borrow } = self;
        let low = Self { start, range: range.start..middle, touched, borrow };
        (low, Self { start, range: middle..range.end, touched, borrow })
    }

    /// Lends elements of this part to be written, counted from its first.
    ///
    /// # Panics
    /// If it has fewer.
    #[must_use]
    pub fn write(&mut self, elements: Range<usize>) -> &mut [T] {
        assert!(elements.start <= elements.end && elements.end <= self.len(), "{elements:?} of {}", self.len());
        let range = self.range.start + elements.start..self.range.start + elements.end;
        let part = Self { start: self.start, range, touched: self.touched, borrow: PhantomData };
        part.into_mut()
    }

    /// Lends the whole part to be written.
    #[must_use]
    pub fn into_mut(self) -> &'a mut [T] {
        self.touched.before_write(self.range.clone());
        // SAFETY: in bounds, as parts come from the whole by splits, which are asserted; exclusive
        // among writers by the borrow, and among copiers as the table was asked.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(self.range.start), self.range.len()) }
    }
}
