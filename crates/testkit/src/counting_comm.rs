//! A communicator that counts what one rank asks of it, on all its duplicates together.
//!
//! Calls and bytes are those of the trait, so they do not depend on what connects the ranks.
//! Promises: the calls are passed on as they are. Must not know what the bytes mean.
#![expect(clippy::disallowed_methods, reason = "passes raw gathers and broadcasts on")]

use std::array;
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{Comm, CommError, ExactSum};

/// Calls that one rank has made so far, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommCounts {
    /// Reductions, broadcasts and barriers: log P messages on a rank, of as many bytes on each.
    pub reductions: u64,
    /// Gathers, whose bytes arrive on every rank.
    pub gathers: u64,
    /// Messages to single ranks, and from them.
    pub messages: u64,
    /// Bytes given to all these calls.
    pub sent_bytes: u64,
    /// Bytes received from them.
    pub received_bytes: u64,
    /// Bytes received by gathers alone.
    pub gathered_bytes: u64,
}

impl CommCounts {
    /// Collective calls, and messages from one rank to another.
    pub fn calls(&self) -> u64 {
        self.reductions + self.gathers + self.messages
    }

    fn all(&self) -> [u64; COUNTS] {
        let Self { reductions, gathers, messages, sent_bytes, received_bytes, gathered_bytes } = *self;
        [reductions, gathers, messages, sent_bytes, received_bytes, gathered_bytes]
    }
}

impl Sub for CommCounts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let [ours, before] = [self, before].map(|counts| counts.all());
        of(array::from_fn(|index| ours[index] - before[index]))
    }
}

const COUNTS: usize = 6;

fn of([reductions, gathers, messages, sent_bytes, received_bytes, gathered_bytes]: [u64; COUNTS]) -> CommCounts {
    CommCounts { reductions, gathers, messages, sent_bytes, received_bytes, gathered_bytes }
}

/// A communicator whose calls are counted.
pub struct CountingComm {
    inner: Box<dyn Comm>,
    counts: Arc<[AtomicU64; COUNTS]>,
}

impl CountingComm {
    /// Counts the calls of `inner`, and of all that are made of it.
    pub fn new(inner: Box<dyn Comm>) -> Self {
        Self { inner, counts: Arc::new(array::from_fn(|_| AtomicU64::new(0))) }
    }

    /// Returns the counts of this rank so far.
    pub fn counts(&self) -> CommCounts {
        of(array::from_fn(|index| self.counts[index].load(Ordering::SeqCst)))
    }

    fn add(&self, counts: CommCounts) {
        for (count, more) in self.counts.iter().zip(counts.all()) {
            count.fetch_add(more, Ordering::SeqCst);
        }
    }

    fn reduced(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.add(CommCounts { reductions: 1, sent_bytes: bytes, received_bytes: bytes, ..CommCounts::default() });
    }

    fn exchanged(&self, messages: usize, sent: usize, received: usize) {
        let [messages, sent_bytes, received_bytes] = [messages, sent, received].map(|count| count as u64);
        self.add(CommCounts { messages, sent_bytes, received_bytes, ..CommCounts::default() });
    }
}

impl Comm for CountingComm {
    fn rank(&self) -> usize {
        self.inner.rank()
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        self.reduced(size_of_val(sums));
        self.inner.sum_exact_while(sums, work)
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        self.reduced(size_of::<i64>());
        self.inner.min(value)
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let done = self.inner.broadcast(root, bytes);
        self.reduced(bytes.len());
        done
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let all = self.inner.gather(bytes)?;
        let received = all.iter().map(|part| part.len() as u64).sum();
        self.add(CommCounts {
            gathers: 1,
            sent_bytes: bytes.len() as u64,
            received_bytes: received,
            gathered_bytes: received,
            ..CommCounts::default()
        });
        Ok(all)
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        self.exchange_while(sends, receives, &mut || {})
    }

    fn exchange_while(
        &self,
        sends: &[(usize, &[f64])],
        receives: &mut [(usize, &mut [f64])],
        work: &mut dyn FnMut(),
    ) -> Result<(), CommError> {
        let sent: usize = sends.iter().map(|(_, values)| size_of_val(*values)).sum();
        let received: usize = receives.iter().map(|(_, values)| size_of_val(&**values)).sum();
        self.exchanged(sends.len() + receives.len(), sent, received);
        self.inner.exchange_while(sends, receives, work)
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        let received = self.inner.exchange_bytes(sends, from)?;
        let sent = sends.iter().map(|(_, bytes)| bytes.len()).sum();
        self.exchanged(sends.len() + from.len(), sent, received.iter().map(Vec::len).sum());
        Ok(received)
    }

    fn exchange_bytes_into(
        &self,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
    ) -> Result<Vec<usize>, CommError> {
        let lengths = self.inner.exchange_bytes_into(sends, receives)?;
        let sent = sends.iter().map(|(_, bytes)| bytes.len()).sum();
        self.exchanged(sends.len() + receives.len(), sent, lengths.iter().sum());
        Ok(lengths)
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.reduced(0);
        self.inner.barrier()
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        self.reduced(0);
        Ok(Box::new(Self { inner: self.inner.dup()?, counts: self.counts.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use recoup_comm::Threads;

    use super::*;
    use crate::comm_suite;

    #[test]
    fn a_counting_communicator_passes_the_suite_and_counts_its_duplicates() {
        Threads::launch(3, |comm| {
            let counting = CountingComm::new(Box::new(comm));
            comm_suite::run(&counting);
            let before = counting.counts();
            let copy = counting.dup().unwrap();
            copy.min(1).unwrap();
            copy.gather(&[0; 5]).unwrap();
            copy.exchange_bytes(&[((copy.rank() + 1) % 3, &[1; 7])], &[(copy.rank() + 2) % 3]).unwrap();
            let counts = counting.counts() - before;
            let expected = CommCounts {
                reductions: 2,
                gathers: 1,
                messages: 2,
                sent_bytes: 8 + 5 + 7,
                received_bytes: 8 + 15 + 7,
                gathered_bytes: 15,
            };
            assert_eq!((counts, counts.calls()), (expected, 5));
        });
    }
}
