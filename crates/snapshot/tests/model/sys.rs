//! Memory whose uses are checked: two at once of which one writes end the test.

#![expect(unsafe_code, reason = "lends memory that only the zone table protects")]

use loom::cell::UnsafeCell;

/// A half of a zone: one writer's part of it.
#[derive(Debug)]
pub(crate) struct ModelledHalf(UnsafeCell<u32>);

// SAFETY: the checker finds uses at the same time.
unsafe impl Sync for ModelledHalf {}

impl ModelledHalf {
    pub(crate) fn new(value: u32) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> u32 {
        // SAFETY: the checker finds a writer at the same time, and the pointer is good.
        self.0.with(|value| unsafe { *value })
    }

    pub(crate) fn set(&self, new: u32) {
        // SAFETY: the checker finds any other user at the same time, and the pointer is good.
        self.0.with_mut(|value| unsafe { *value = new });
    }
}
