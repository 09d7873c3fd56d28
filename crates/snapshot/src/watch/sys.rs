//! Elements of a watched region, which threads write one by one.

#![expect(unsafe_code, reason = "lends elements to writers while copiers read")]

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

use crate::element::RegionElement;
use crate::region::RegionValues;

/// Some elements of a [`WatchedRegion`](crate::WatchedRegion) that are written by one thread. Other
/// parts may be written by others at the same time.
pub struct WatchedPart<'a, T> {
    start: *mut T,
    len: usize,
    borrow: PhantomData<&'a mut [T]>,
}

// SAFETY: as an exclusive borrow of `T: Send` values.
unsafe impl<T: Send> Send for WatchedPart<'_, T> {}

impl<T> fmt::Debug for WatchedPart<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WatchedPart({})", self.len)
    }
}

impl<'a, T: RegionElement> WatchedPart<'a, T> {
    pub(crate) fn new(values: &'a mut RegionValues<T>) -> Self {
        Self { start: values.start(), len: values.len(), borrow: PhantomData }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Splits the part before element `at` of it.
    ///
    /// # Panics
    /// If it has fewer.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        assert!(at <= self.len, "split at {at} of {}", self.len);
        // SAFETY: in bounds of the part by the assertion.
        let middle = unsafe { self.start.add(at) };
        let high = Self { start: middle, len: self.len - at, borrow: PhantomData };
        (Self { len: at, ..self }, high)
    }

    /// Lends the elements to be written.
    #[must_use]
    pub fn into_cells(self) -> &'a [Cell<T>] {
        // SAFETY: in bounds, as parts come from the whole by splits, and this thread alone has
        // these. A copier may read them: each store waits in the system until the copier has
        // claimed its zone, copied it and let writers in; cells promise no compiler that values
        // are the same from one use to the next, nor that none else reads them.
        unsafe { std::slice::from_raw_parts(self.start.cast::<Cell<T>>(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use recoup_core::{ValuesMut, Zones};
    use recoup_pages::PageSize;
    use rustix::io::Errno;

    use crate::{Monitors, NoMonitor, WatchedRegion, WriteWatch};

    /// What a program must never do, and cannot with safe code: the kernel writes into a region.
    fn read_into(region: &mut WatchedRegion<f64>, file: &mut std::io::PipeReader) -> rustix::io::Result<usize> {
        let part = region.part();
        // SAFETY: in bounds, and no other thread uses the values but the copier, whom the kernel
        // does not disturb: it refuses.
        rustix::io::read(file, unsafe { std::slice::from_raw_parts_mut(part.start.cast::<u8>(), 8) })
    }

    #[test]
    fn the_kernel_writes_into_elements_that_are_lent_and_frozen_copies_have_theirs() {
        match Monitors::probe().watch {
            Ok(()) => {}
            Err(reason @ (NoMonitor::Unnoticed | NoMonitor::System { .. })) => panic!("{reason}"),
            Err(reason) => return println!("SKIPPED: {reason}"),
        }
        const LEN: usize = 20_000;
        let watch: Arc<WriteWatch> = WriteWatch::new().unwrap();
        let mut region = WatchedRegion::<u8>::zeros(&watch, LEN, PageSize::Small).unwrap();
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&[7; LEN]).unwrap();
        let frozen = region.freeze(LEN).unwrap();
        assert_eq!(rustix::io::read(&reader, region.as_mut_slice()), Ok(LEN));
        let mut values = [1; LEN];
        frozen.fetch(0, ValuesMut::Bytes(&mut values)).unwrap();
        assert_eq!((values, &region[..]), ([0; LEN], &[7; LEN][..]));
    }

    #[test]
    fn the_kernel_writes_nothing_into_frozen_pages_and_says_so() {
        match Monitors::probe().watch {
            Ok(()) => {}
            Err(reason @ (NoMonitor::Unnoticed | NoMonitor::System { .. })) => panic!("{reason}"),
            Err(reason) => return println!("SKIPPED: {reason}"),
        }
        let watch: Arc<WriteWatch> = WriteWatch::new().unwrap();
        let mut region = WatchedRegion::<f64>::zeros(&watch, 100, PageSize::Small).unwrap();
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(&2.0_f64.to_ne_bytes()).unwrap();
        let frozen = region.freeze(100).unwrap();
        assert_eq!(read_into(&mut region, &mut reader), Err(Errno::FAULT));
        let mut values = [f64::NAN; 100];
        frozen.fetch(0, ValuesMut::F64(&mut values)).unwrap();
        assert_eq!((values, region[0]), ([0.0; 100], 0.0));
        // The zone was fetched, and the same call succeeds.
        assert_eq!(read_into(&mut region, &mut reader), Ok(8));
        assert_eq!(region[0], 2.0);
    }
}
