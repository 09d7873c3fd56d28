//! A bell that threads wait for.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Counts rings; a thread waits for those it has not heard.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    n_rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    pub(crate) fn ring(&self) {
        *self.n_rings() += 1;
        self.rung.notify_all();
    }

    /// Returns the rings so far.
    pub(crate) fn heard(&self) -> u64 {
        *self.n_rings()
    }

    /// Waits for a ring after the first `heard`, and returns the rings so far.
    pub(crate) fn wait(&self, heard: u64) -> u64 {
        let waited = self.rung.wait_while(self.n_rings(), |n_rings| *n_rings == heard);
        *waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// A number is right after a panic too.
    fn n_rings(&self) -> MutexGuard<'_, u64> {
        self.n_rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
