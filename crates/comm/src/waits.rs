//! Calls of this process that wait for other ranks, as a thread sees them that looks now and then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The calls under way on the communicators of one job or one program.
///
/// A call costs a number and a place in a short list. No clock is read: whoever looks knows how
/// long a number has been there.
#[derive(Debug, Default)]
pub struct Waits {
    begun: AtomicU64,
    under_way: Mutex<Vec<CallUnderWay>>,
}

#[derive(Clone, Copy, Debug)]
struct CallUnderWay {
    number: u64,
    /// Messages from rank to rank, as those of an operator.
    is_exchange: bool,
}

/// A call under way, as long as this guard lives.
#[derive(Debug)]
pub struct Wait<'a> {
    waits: &'a Waits,
    number: u64,
}

impl Waits {
    /// Returns the numbers of the calls under way; no two calls have the same.
    #[must_use]
    pub fn under_way(&self) -> Vec<u64> {
        self.calls().iter().map(|call| call.number).collect()
    }

    /// Returns how many calls were begun so far.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Relaxed)
    }

    /// Returns whether values or bytes travel from rank to rank.
    #[must_use]
    pub fn has_exchange(&self) -> bool {
        self.calls().iter().any(|call| call.is_exchange)
    }

    /// Begins a call that every rank makes.
    #[must_use]
    pub fn begin(&self) -> Wait<'_> {
        self.begin_call(false)
    }

    /// Begins messages from rank to rank.
    pub(crate) fn begin_exchange(&self) -> Wait<'_> {
        self.begin_call(true)
    }

    fn begin_call(&self, is_exchange: bool) -> Wait<'_> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        self.calls().push(CallUnderWay { number, is_exchange });
        Wait { waits: self, number }
    }

    fn calls(&self) -> MutexGuard<'_, Vec<CallUnderWay>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.calls().retain(|call| call.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_under_way_until_its_guard_is_dropped() {
        let waits = Waits::default();
        let first = waits.begin();
        let second = waits.begin_exchange();
        assert_eq!((waits.under_way(), waits.has_exchange()), (vec![0, 1], true));
        drop(second);
        assert_eq!((waits.under_way(), waits.has_exchange()), (vec![0], false));
        drop(first);
        drop(waits.begin());
        assert!(waits.under_way().is_empty());
    }
}
