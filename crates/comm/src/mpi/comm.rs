//! One communicator of a job.

use std::cell::RefCell;
use std::sync::Arc;

use recoup_core::{Comm, CommError, ExactSum, MpiHandle};

use super::fault::MpiFault;
use super::sys::{Family, MESSAGE_MAX, PendingCalls, RawComm, Wire, WordReduction};
use crate::waits::Waits;

/// Tags of [`Comm::exchange`], and of the lengths and contents of [`Comm::exchange_bytes`].
const VALUES: i32 = 1;
const LENGTH: i32 = 2;
const BYTES: i32 = 3;
/// Tag of packed sums.
const SUMS: i32 = 4;
/// Ranks that send their packed sums to each other: one step, where a reduction takes log P steps
/// with all words.
const DIRECT_RANKS_MAX: usize = 8;

/// A communicator of an MPI job.
#[derive(Debug)]
pub struct Mpi {
    raw: RawComm,
    rank: usize,
    size: usize,
    family: Arc<Family>,
    /// Its calls under way, with those of all communicators of the job.
    waits: Arc<Waits>,
    /// Words of the sums of this rank, and of all or of the others, kept for the next call.
    words: RefCell<[Vec<i64>; 2]>,
}

impl Mpi {
    pub(super) fn new(raw: RawComm, family: Arc<Family>, waits: Arc<Waits>) -> Result<Self, MpiFault> {
        let rank = raw.rank()?;
        let size = raw.size()?;
        family.join(raw);
        Ok(Self { raw, rank, size, family, waits, words: RefCell::default() })
    }

    fn pending(&self) -> PendingCalls<'_> {
        PendingCalls::new(self.raw, &self.family).seen(self.waits.begin())
    }

    /// The `own` values of all ranks, equally many, one after the other in `all`.
    fn gather_equal<T: Wire>(&self, own: &[T], all: &mut [T]) -> Result<(), CommError> {
        let mut pending = self.pending();
        pending.gather(own, all).and_then(|()| pending.wait()).map_err(|fault| self.error(fault))
    }

    /// Translates a fault for the callers of a communicator.
    fn error(&self, fault: MpiFault) -> CommError {
        self.family.error(fault)
    }

    fn begin_exchange<'b>(
        &self,
        pending: &mut PendingCalls<'b>,
        sends: &'b [(usize, &[f64])],
        receives: &'b mut [(usize, &mut [f64])],
    ) -> Result<(), MpiFault> {
        for (from, target) in receives {
            pending.receive(*from, VALUES, target);
        }
        for (to, values) in sends {
            pending.send(*to, VALUES, values)?;
        }
        Ok(())
    }

    /// Sends packed sums to every other rank, and adds those of the others.
    fn sum_directly(
        &self,
        sums: &mut [ExactSum],
        [own, others]: &mut [Vec<i64>; 2],
        work: &mut dyn FnMut(),
    ) -> Result<(), CommError> {
        ExactSum::pack(sums, own);
        let room = sums.len() * ExactSum::PACKED_WORDS_MAX;
        let ranks = || (0..self.size).filter(|rank| *rank != self.rank);
        others.resize(others.len().max((self.size - 1) * room), 0);
        let mut pending = self.pending();
        for (rank, target) in ranks().zip(others.chunks_exact_mut(room)) {
            pending.receive_up_to(rank, SUMS, target);
        }
        let begun = ranks().try_for_each(|rank| pending.send(rank, SUMS, own));
        work();
        begun.and_then(|()| pending.wait()).map_err(|fault| self.error(fault))?;
        let mut lengths = [0; DIRECT_RANKS_MAX];
        lengths.iter_mut().zip(pending.outcomes().flatten()).for_each(|(length, found)| *length = found);
        drop(pending);
        for ((rank, part), length) in ranks().zip(others.chunks_exact(room)).zip(lengths) {
            let packed = part.get(..length).unwrap_or_default();
            ExactSum::add_packed(sums, packed).map_err(|found| CommError::Length {
                rank,
                expected: sums.len(),
                found,
            })?;
        }
        Ok(())
    }

    /// Has the library add all words.
    fn sum_by_reduction(
        &self,
        sums: &mut [ExactSum],
        [own, all]: &mut [Vec<i64>; 2],
        work: &mut dyn FnMut(),
    ) -> Result<(), CommError> {
        own.extend(sums.iter().flat_map(ExactSum::words));
        all.resize(own.len(), 0);
        let mut pending = self.pending();
        let begun = pending.reduce(WordReduction::Sum, own, all);
        work();
        begun.and_then(|()| pending.wait()).map_err(|fault| self.error(fault))?;
        drop(pending);
        sums.iter_mut().zip(all.as_chunks().0).for_each(|(sum, words)| *sum = ExactSum::of_words(*words));
        Ok(())
    }

    /// Waits for messages, whose receivers have room for so much each; returns the length of each.
    fn finish_exchange(
        &self,
        pending: &mut PendingCalls<'_>,
        rooms: &[(usize, usize)],
        fits: fn(usize, usize) -> bool,
    ) -> Result<Vec<usize>, CommError> {
        pending.finish();
        // All are taken even when one does not fit, so that the next exchange finds its own.
        let lengths: Result<Vec<usize>, MpiFault> = pending.outcomes().collect();
        let mut lengths = lengths.map_err(|fault| self.error(fault))?;
        lengths.truncate(rooms.len());
        let mut messages = rooms.iter().zip(&lengths);
        match messages.find(|((_, room), found)| !fits(*room, **found)) {
            Some((&(rank, expected), &found)) => Err(CommError::Length { rank, expected, found }),
            None => Ok(lengths),
        }
    }

    /// Contents, into room of the right length.
    fn swap_bytes(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, Vec<u8>)]) -> Result<(), MpiFault> {
        let mut pending = self.pending();
        for (from, target) in receives {
            for piece in target.chunks_mut(MESSAGE_MAX) {
                pending.receive(*from, BYTES, piece);
            }
        }
        for (to, bytes) in sends {
            for piece in bytes.chunks(MESSAGE_MAX) {
                pending.send(*to, BYTES, piece)?;
            }
        }
        pending.wait()
    }

    /// The lengths of what comes from each rank of `from`.
    fn swap_lengths(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<usize>, MpiFault> {
        let own: Vec<[i64; 1]> = sends.iter().map(|(_, bytes)| [bytes.len() as i64]).collect();
        let mut lengths = vec![[0_i64; 1]; from.len()];
        let mut pending = self.pending();
        for (from, length) in from.iter().zip(&mut lengths) {
            pending.receive(*from, LENGTH, length);
        }
        for ((to, _), length) in sends.iter().zip(&own) {
            pending.send(*to, LENGTH, length)?;
        }
        pending.wait()?;
        drop(pending);
        Ok(lengths.into_iter().map(|[length]| length as usize).collect())
    }

    fn broadcast_bytes(&self, root: usize, bytes: &mut [u8]) -> Result<(), MpiFault> {
        let mut pending = self.pending();
        for piece in bytes.chunks_mut(MESSAGE_MAX) {
            pending.broadcast(root, piece)?;
        }
        pending.wait()
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.family.leave(self.raw);
    }
}

impl Comm for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        if self.size == 1 || sums.is_empty() {
            work();
            return Ok(());
        }
        let words = &mut *self.words.borrow_mut();
        words[0].clear();
        if self.size <= DIRECT_RANKS_MAX {
            self.sum_directly(sums, words, work)
        } else {
            self.sum_by_reduction(sums, words, work)
        }
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        let own = [value];
        let mut least = [value];
        let mut pending = self.pending();
        let reduced = pending.reduce(WordReduction::Min, &own, &mut least).and_then(|()| pending.wait());
        drop(pending);
        reduced.map_err(|fault| self.error(fault))?;
        Ok(least[0])
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let mut length = [bytes.len() as i64];
        let mut pending = self.pending();
        let told = pending.broadcast(root, &mut length).and_then(|()| pending.wait());
        drop(pending);
        told.map_err(|fault| self.error(fault))?;
        bytes.resize(length[0] as usize, 0);
        self.broadcast_bytes(root, bytes).map_err(|fault| self.error(fault))
    }

    #[expect(clippy::disallowed_methods, reason = "a communicator, which this is")]
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let mut lengths = vec![0_i64; self.size];
        self.gather_equal(&[bytes.len() as i64], &mut lengths)?;
        let total = lengths.iter().sum::<i64>();
        if total == 0 {
            // Some libraries take such a call for a mistake.
            return Ok(vec![Vec::new(); self.size]);
        }
        if total > MESSAGE_MAX as i64 {
            let own = |rank| if rank == self.rank { bytes.to_vec() } else { Vec::new() };
            let mut all: Vec<Vec<u8>> = (0..self.size).map(own).collect();
            for (root, bytes) in all.iter_mut().enumerate() {
                self.broadcast(root, bytes)?;
            }
            return Ok(all);
        }
        let counts: Vec<i32> = lengths.iter().map(|&length| length as i32).collect();
        let starts: Vec<i32> =
            counts.iter().scan(0, |end, &count| Some(std::mem::replace(end, *end + count))).collect();
        let mut all = vec![0; total as usize];
        let mut pending = self.pending();
        let gathered = pending.gather_parts(bytes, &mut all, [&counts, &starts]);
        let gathered = gathered.and_then(|()| pending.wait());
        drop(pending);
        gathered.map_err(|fault| self.error(fault))?;
        let part = |(&start, &count): (&i32, &i32)| all[start as usize..(start + count) as usize].to_vec();
        Ok(starts.iter().zip(&counts).map(part).collect())
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
        let expected: Vec<(usize, usize)> = receives.iter().map(|(rank, target)| (*rank, target.len())).collect();
        let mut pending = PendingCalls::new(self.raw, &self.family).seen(self.waits.begin_exchange());
        let begun = self.begin_exchange(&mut pending, sends, receives);
        work();
        begun.map_err(|fault| self.error(fault))?;
        self.finish_exchange(&mut pending, &expected, |expected, found| found == expected).map(drop)
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        let lengths = self.swap_lengths(sends, from).map_err(|fault| self.error(fault))?;
        let mut received: Vec<_> = from.iter().zip(lengths).map(|(&from, length)| (from, vec![0; length])).collect();
        self.swap_bytes(sends, &mut received).map_err(|fault| self.error(fault))?;
        Ok(received.into_iter().map(|(_, bytes)| bytes).collect())
    }

    fn exchange_bytes_into(
        &self,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
    ) -> Result<Vec<usize>, CommError> {
        let rooms: Vec<(usize, usize)> = receives.iter().map(|(rank, room)| (*rank, room.len())).collect();
        let mut pending = self.pending();
        for (from, room) in receives {
            pending.receive_up_to(*from, BYTES, room);
        }
        for (to, bytes) in sends {
            assert!(bytes.len() <= MESSAGE_MAX, "a message of {} bytes", bytes.len());
            pending.send(*to, BYTES, bytes).map_err(|fault| self.error(fault))?;
        }
        self.finish_exchange(&mut pending, &rooms, |room, found| found <= room)
    }

    fn barrier(&self) -> Result<(), CommError> {
        let mut pending = self.pending();
        pending.barrier().and_then(|()| pending.wait()).map_err(|fault| self.error(fault))
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        let _wait = self.waits.begin();
        let dup = self
            .raw
            .dup(&self.family)
            .and_then(|raw| Self::new(raw, Arc::clone(&self.family), Arc::clone(&self.waits)))
            .map_err(|fault| self.error(fault))?;
        Ok(Box::new(dup))
    }

    fn mpi(&self) -> Option<MpiHandle> {
        self.raw.handle()
    }
}
