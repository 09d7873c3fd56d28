//! Ranks as threads of one process: the real meaning of every collective call, without MPI.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use recoup_core::{Comm, CommError, ExactSum, mix};

use crate::hub::{Hub, HubMessage};

/// The communicator of one rank that is a thread.
///
/// Every collective call returns on all ranks or on none. A rank that panics or calls
/// [`Threads::lose`] fails all pending and later calls of every rank with [`CommError::RankLost`].
/// A rank whose function has returned fails the calls that wait for it.
#[derive(Debug)]
pub struct Threads {
    hub: Arc<Hub>,
    rank: usize,
    /// The number of this communicator in its launch: 0, and one more by each `dup`.
    group: u64,
    /// Collective calls made on it.
    calls: Cell<u64>,
    /// `dup`s made of it.
    dups: Cell<u64>,
}

impl Threads {
    /// Runs `run` on `ranks` threads at once; the results in rank order.
    ///
    /// # Panics
    /// With the panic of the first rank that panicked, when all threads have ended; and for no
    /// ranks.
    pub fn launch<T: Send>(ranks: usize, run: impl Fn(Self) -> T + Sync) -> Vec<T> {
        let (results, first) = launch_all(ranks, run);
        let mut values = Vec::with_capacity(ranks);
        let mut panics = Vec::new();
        for (rank, result) in results.into_iter().enumerate() {
            match result {
                Ok(value) => values.push(value),
                Err(panic) => panics.push((rank, panic)),
            }
        }
        let chosen = panics.iter().position(|(rank, _)| Some(*rank) == first).unwrap_or(0);
        if chosen < panics.len() {
            resume_unwind(panics.swap_remove(chosen).1);
        }
        values
    }

    /// Does the work of [`Threads::launch`], with a rank's panic as its result.
    ///
    /// # Panics
    /// For no ranks.
    pub fn launch_each<T: Send>(ranks: usize, run: impl Fn(Self) -> T + Sync) -> Vec<thread::Result<T>> {
        launch_all(ranks, run).0
    }

    /// Declares this rank lost, as a killed process would be.
    pub fn lose(&self) {
        self.hub.lose(self.rank);
    }

    fn meet(&self, message: HubMessage) -> Result<Arc<[HubMessage]>, CommError> {
        let call = self.calls.replace(self.calls.get() + 1);
        self.hub.meet((self.group, call), self.rank, message)
    }
}

fn launch_all<T: Send>(ranks: usize, run: impl Fn(Threads) -> T + Sync) -> (Vec<thread::Result<T>>, Option<usize>) {
    assert!(ranks > 0, "a launch needs at least one rank");
    let hub = Arc::new(Hub::new(ranks));
    let run_rank = |rank| {
        let comm = Threads { hub: Arc::clone(&hub), rank, group: 0, calls: Cell::new(0), dups: Cell::new(0) };
        let result = catch_unwind(AssertUnwindSafe(|| run(comm)));
        match &result {
            Ok(_) => hub.leave(rank),
            Err(_) => hub.lose(rank),
        }
        result
    };
    let run_rank = &run_rank;
    let results = thread::scope(|scope| {
        let handles: Vec<_> = (0..ranks).map(|rank| scope.spawn(move || run_rank(rank))).collect();
        handles.into_iter().map(|handle| handle.join().unwrap_or_else(Err::<T, Box<dyn Any + Send>>)).collect()
    });
    (results, hub.lost())
}

impl Comm for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.hub.size()
    }

    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        let all = self.meet(HubMessage::Sums(sums.into()));
        work();
        // Of one length they are added, else as many as there are ranks.
        for (rank, part) in all?.iter().map(HubMessage::sums).enumerate() {
            if part.len() != sums.len() {
                return Err(CommError::Length { rank, expected: sums.len(), found: part.len() });
            }
            sums.copy_from_slice(part);
        }
        Ok(())
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        Ok(self.meet(HubMessage::Integer(value))?.iter().map(HubMessage::integer).fold(value, i64::min))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let own = if self.rank == root { std::mem::take(bytes) } else { Vec::new() };
        *bytes = self.meet(HubMessage::Bytes(own))?[root].bytes().to_vec();
        Ok(())
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let all = self.meet(HubMessage::Bytes(bytes.to_vec()))?;
        Ok(all.iter().map(|message| message.bytes().to_vec()).collect())
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        for (to, values) in sends {
            self.hub.send((self.group, self.rank, *to), values)?;
        }
        // All are taken even when one does not fit, so that the next exchange finds its own.
        let mut result = Ok(());
        for (from, target) in receives {
            let values: Vec<f64> = self.hub.receive((self.group, *from, self.rank))?;
            if values.len() == target.len() {
                target.copy_from_slice(&values);
            } else if result.is_ok() {
                result = Err(CommError::Length { rank: *from, expected: target.len(), found: values.len() });
            }
        }
        result
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        for (to, bytes) in sends {
            self.hub.send((self.group, self.rank, *to), bytes)?;
        }
        from.iter().map(|from| self.hub.receive((self.group, *from, self.rank))).collect()
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.meet(HubMessage::Nothing).map(|_| ())
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        self.barrier()?;
        let nth = self.dups.replace(self.dups.get() + 1);
        // Ranks dup in the same order, so all compute the same name for the same new communicator:
        // the parent's number with the count of its dups mixed in.
        let group = mix(self.group.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ nth);
        let comm = Self { hub: Arc::clone(&self.hub), rank: self.rank, group, calls: Cell::new(0), dups: Cell::new(0) };
        Ok(Box::new(comm))
    }
}

#[cfg(test)]
mod tests {
    use recoup_testkit::comm_suite;

    use super::*;
    use crate::Solo;

    #[test]
    fn solo_passes_the_suite() {
        comm_suite::run(&Solo);
    }

    #[test]
    fn threads_pass_the_suite_on_one_to_five_ranks() {
        for ranks in 1..=5 {
            Threads::launch(ranks, |comm| comm_suite::run(&comm));
        }
    }

    #[test]
    fn lost_rank_fails_pending_and_later_calls_of_all() {
        let results = Threads::launch(3, |comm| {
            comm.barrier().unwrap();
            if comm.rank() == 1 {
                comm.lose();
                return (Ok(()), comm.barrier());
            }
            (comm.sum(&mut [1.0]), comm.exchange(&[((comm.rank() + 2) % 4, &[1.0])], &mut []))
        });
        let lost = Err(CommError::RankLost { rank: 1 });
        assert_eq!(results[0], (lost.clone(), lost.clone()));
        assert_eq!(results[2], (lost.clone(), lost.clone()));
        assert_eq!(results[1].1, lost);
    }

    #[test]
    fn panicking_rank_is_lost_and_no_rank_hangs() {
        let results = Threads::launch_each(4, |comm| {
            let other = comm.dup().unwrap();
            assert!(comm.rank() != 2, "rank 2 dies on purpose");
            other.barrier()
        });
        for (rank, result) in results.into_iter().enumerate() {
            match (rank, result) {
                (2, result) => assert!(result.is_err()),
                (_, result) => assert_eq!(result.unwrap(), Err(CommError::RankLost { rank: 2 })),
            }
        }
    }

    #[test]
    fn rank_that_returned_fails_only_calls_that_wait_for_it() {
        let results = Threads::launch(3, |comm| {
            if comm.rank() == 2 {
                return Ok(());
            }
            let partner = 1 - comm.rank();
            comm.exchange(&[(partner, &[1.0])], &mut [(partner, &mut [0.0])]).unwrap();
            comm.barrier()
        });
        let left = Err(CommError::RankLost { rank: 2 });
        assert_eq!(results, vec![left.clone(), left, Ok(())]);
    }

    #[test]
    #[should_panic(expected = "the first of all")]
    fn launch_repeats_the_first_panic() {
        Threads::launch(3, |comm| {
            assert!(comm.rank() != 2, "the first of all");
            comm.barrier().unwrap();
        });
    }
}
