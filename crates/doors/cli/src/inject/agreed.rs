//! Failures and signals that strike all ranks at the same iteration: rank 0's time counts, and its
//! signals.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use recoup::core::{Comm, Failure, FailureSource, Phase, broadcast_words};

/// A source of failures that every rank has, asked about the time of rank 0.
pub(crate) struct Agreed {
    inner: Box<dyn FailureSource>,
    comm: Box<dyn Comm>,
    /// Raised by signals to this process.
    signalled: Arc<AtomicBool>,
    /// Raised on all ranks at once, when the signal has come to rank 0.
    stop: Arc<AtomicBool>,
}

impl Agreed {
    /// `inner` gives the same answers to the same questions on all ranks.
    pub(crate) fn new(
        inner: Box<dyn FailureSource>,
        comm: Box<dyn Comm>,
        signalled: Arc<AtomicBool>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { inner, comm, signalled, stop }
    }
}

impl FailureSource for Agreed {
    /// Collective. Nothing is due when a rank is lost: the next call that can say so will.
    fn due(&mut self, now: Duration, iteration: u64, phase: Phase) -> Option<Failure> {
        let is_signalled = u64::from(self.signalled.load(Ordering::Acquire));
        let [nanoseconds, is_signalled] =
            broadcast_words(self.comm.as_ref(), [now.as_nanos() as u64, is_signalled]).ok()?;
        if is_signalled > 0 {
            self.stop.store(true, Ordering::Release);
        }
        self.inner.due(Duration::from_nanos(nanoseconds), iteration, phase)
    }
}

#[cfg(test)]
mod tests {
    use recoup::comm::Threads;
    use recoup::model::failures::Exponential;

    use super::*;

    #[test]
    fn ranks_with_clocks_that_differ_fail_together_and_stop_together() {
        let seen = Threads::launch(3, |comm| {
            let inner = Box::new(Exponential::new(Duration::from_secs(3), 5));
            let signalled = Arc::new(AtomicBool::new(false));
            let stop = Arc::new(AtomicBool::new(false));
            let own = comm.dup().unwrap();
            let mut agreed = Agreed::new(inner, own, signalled.clone(), stop.clone());
            let mut seen = Vec::new();
            for second in 0..40 {
                // Rank 2 receives the signal long before rank 0 does.
                let heard = second >= if comm.rank() == 2 { 5 } else { 30 };
                signalled.store(heard, Ordering::Release);
                let now = Duration::from_secs(second + 7 * comm.rank() as u64);
                let failure = agreed.due(now, second, Phase::Computing);
                seen.push((failure, stop.load(Ordering::Acquire)));
            }
            seen
        });
        assert!(seen[0].iter().any(|(failure, _)| failure.is_some()));
        assert_eq!(seen[0].iter().position(|(_, stop)| *stop), Some(30));
        assert!(seen.iter().all(|other| *other == seen[0]));
    }
}
