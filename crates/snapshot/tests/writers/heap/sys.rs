//! Values on the heap that several threads write.

#![expect(unsafe_code, reason = "keeps the promises of memory in zones, as an owner does")]

use std::cell::UnsafeCell;
use std::ops::Range;

use recoup_snapshot::ZoneMemory;

/// Zeros at first.
pub(crate) struct HeapValues(Box<[UnsafeCell<f64>]>);

// SAFETY: threads write disjoint elements, which the plans of a round say, and none reads them
// meanwhile but copiers, as the zone table orders.
unsafe impl Sync for HeapValues {}

// SAFETY: the box stays as long as this, and `Heap` asks its table before each write.
unsafe impl ZoneMemory for HeapValues {
    fn bytes(&self) -> *const [u8] {
        std::ptr::slice_from_raw_parts(self.0.as_ptr().cast(), size_of_val(&self.0[..]))
    }
}

impl HeapValues {
    pub(crate) fn zeros(len: usize) -> Self {
        Self((0..len).map(|_| UnsafeCell::new(0.0)).collect())
    }

    pub(crate) fn fill(&self, elements: Range<usize>, value: f64) {
        // SAFETY: this thread alone writes these elements, and its table was asked.
        self.0[elements].iter().for_each(|element| unsafe { *element.get() = value });
    }

    pub(crate) fn to_vec(&self) -> Vec<f64> {
        // SAFETY: no thread writes between two rounds.
        self.0.iter().map(|element| unsafe { *element.get() }).collect()
    }
}
