//! A communicator whose calls can be seen: how long this process has waited for others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use recoup::SystemClock;
use recoup::core::{Clock, Comm, CommError, ExactSum, MpiHandle};

use crate::inject::last_words::exchanging;

/// Milliseconds at which a call began; 0 between calls.
type CallStart = AtomicU64;

static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);
static CALLS: Mutex<Vec<Weak<CallStart>>> = Mutex::new(Vec::new());

/// Returns how long the longest call under way has waited for other ranks.
pub(crate) fn longest_wait() -> Duration {
    let mut calls = CALLS.lock().unwrap_or_else(PoisonError::into_inner);
    calls.retain(|begun| begun.strong_count() > 0);
    let begun = calls.iter().filter_map(|begun| Some(begun.upgrade()?.load(Ordering::Relaxed)));
    let oldest = begun.filter(|begun| *begun > 0).min();
    oldest.map_or(Duration::ZERO, |begun| Duration::from_millis(milliseconds().saturating_sub(begun)))
}

fn milliseconds() -> u64 {
    CLOCK.now().as_millis() as u64 + 1
}

/// A communicator whose calls are seen by [`longest_wait`] and in the last words of a process.
pub(crate) struct Watched {
    inner: Box<dyn Comm>,
    begun: Arc<CallStart>,
}

impl Watched {
    pub(crate) fn new(inner: Box<dyn Comm>) -> Self {
        let begun = Arc::<CallStart>::default();
        CALLS.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&begun));
        Self { inner, begun }
    }

    fn seen<T>(&self, call: impl FnOnce(&dyn Comm) -> T) -> T {
        self.begun.store(milliseconds(), Ordering::Relaxed);
        let done = call(self.inner.as_ref());
        self.begun.store(0, Ordering::Relaxed);
        done
    }
}

impl Comm for Watched {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        self.seen(|inner| inner.sum_exact_while(sums, work))
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        self.seen(|inner| inner.min(value))
    }

    #[expect(clippy::disallowed_methods, reason = "passed on")]
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        self.seen(|inner| inner.broadcast(root, bytes))
    }

    #[expect(clippy::disallowed_methods, reason = "passed on")]
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.seen(|inner| inner.gather(bytes))
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        exchanging(|| self.seen(|inner| inner.exchange(sends, receives)))
    }

    fn exchange_while(
        &self,
        sends: &[(usize, &[f64])],
        receives: &mut [(usize, &mut [f64])],
        work: &mut dyn FnMut(),
    ) -> Result<(), CommError> {
        exchanging(|| self.seen(|inner| inner.exchange_while(sends, receives, work)))
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        self.seen(|inner| inner.exchange_bytes(sends, from))
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.seen(|inner| inner.barrier())
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        Ok(Box::new(Self::new(self.inner.dup()?)))
    }

    fn mpi(&self) -> Option<MpiHandle> {
        self.inner.mpi()
    }
}
