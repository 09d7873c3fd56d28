//! Memory of our own that sees every write to it.

use std::fmt;
use std::io;
use std::ops::{Deref, DerefMut, Range};

use recoup_core::{DeviceSnapshot, Mark, Zones};
use recoup_pages::PageSize;

use crate::element::RegionElement;
use crate::touch::TouchedZones;
pub use sys::RegionPart;
pub(crate) use sys::RegionValues;

mod sys;

/// Values in pages of their own, aligned to 2 MiB, that are frozen without a copy.
///
/// Read it as a slice. Every way to write it says which elements may change. The slice as a whole,
/// mutable, counts as a write to all of them.
///
/// ```
/// use recoup_core::{DeviceSnapshot, ValuesMut, Zones};
/// use recoup_snapshot::{PageSize, TouchedRegion};
/// let mut region = TouchedRegion::<f64>::zeros(100_000, PageSize::Huge)?;
/// region.write(10..20).fill(1.0);
/// let frozen = region.freeze(100_000).expect("no other frozen copy");
/// region.write(0..15).fill(2.0);
/// let mut values = vec![0.0; 100_000];
/// frozen.fetch(0, ValuesMut::F64(&mut values))?;
/// assert_eq!((values[14], region[14]), (1.0, 2.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TouchedRegion<T> {
    values: RegionValues<T>,
    touched: TouchedZones,
}

impl<T: RegionElement> TouchedRegion<T> {
    /// Makes `len` zeros. Their pages come to be when they are first used, or by
    /// [`TouchedRegion::populate`]. Huge pages are for large regions: each takes 2 MiB.
    ///
    /// # Errors
    /// The system's, when it grants no addresses.
    pub fn zeros(len: usize, size: PageSize) -> io::Result<Self> {
        let values = RegionValues::zeros(len, size)?;
        let touched = TouchedZones::new(values.memory(), T::ELEMENT);
        Ok(Self { values, touched })
    }

    /// Makes the pages of these elements, near the core of the thread that calls this. Where the
    /// system cannot, they come to be when they are used.
    ///
    /// # Panics
    /// If there are fewer elements.
    pub fn populate(&self, elements: Range<usize>) {
        self.values.populate(elements);
    }

    /// Lends elements to be written.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn write(&mut self, elements: Range<usize>) -> &mut [T] {
        let (_before, part) = self.part().split_at(elements.start);
        let (part, _after) = part.split_at(elements.len());
        part.into_mut()
    }

    /// Lends all elements as one part, which can be split and handed to threads.
    #[must_use]
    pub fn part(&mut self) -> RegionPart<'_, T> {
        self.values.part(&self.touched)
    }
}

impl<T: RegionElement> Deref for TouchedRegion<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.values.as_slice()
    }
}

impl<T: RegionElement> DerefMut for TouchedRegion<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.part().into_mut()
    }
}

impl<T: RegionElement> fmt::Debug for TouchedRegion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TouchedRegion({} {})", self.len(), T::ELEMENT)
    }
}

impl<T: RegionElement> Zones for TouchedRegion<T> {
    fn mark(&self) -> Mark {
        self.touched.mark()
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        self.touched.written_since(since)
    }

    fn freeze(&self, padded_len: usize) -> Option<Box<dyn DeviceSnapshot>> {
        self.touched.freeze(padded_len)
    }
}
