//! [`Comm`] over the callbacks of a program.

use std::sync::Arc;

use recoup_core::{Comm, CommError, ExactSum};

use super::callbacks::CommCallbacks;
use super::program_thread::ProgramThread;

/// A communicator whose calls the program makes.
///
/// Sums are made here, from gathered parts, so they do not depend on the program's MPI.
pub(super) struct CallbackComm {
    /// `None` once freed.
    callbacks: Option<Box<dyn CommCallbacks>>,
    rank: usize,
    size: usize,
    is_free_threaded: bool,
    thread: Arc<ProgramThread>,
    channel: u32,
    /// Made by `dup`, so freed by us.
    is_ours: bool,
}

/// The eight bytes of every rank, as numbers.
fn words(all: &[u8]) -> Vec<u64> {
    all.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// Eight bytes of every rank; for a call that is already where it may run.
fn gather_word(callbacks: &dyn CommCallbacks, word: u64) -> Result<Vec<u64>, CommError> {
    let size = callbacks.size();
    let mut all = vec![0; 8 * size];
    callbacks.gather(&word.to_le_bytes(), &vec![8; size], &mut all)?;
    Ok(words(&all))
}

impl CallbackComm {
    /// Takes the communicator that the program lends.
    pub(super) fn new(callbacks: Box<dyn CommCallbacks>, thread: Arc<ProgramThread>) -> Self {
        let channel = thread.new_channel();
        Self::on(channel, callbacks, thread, false)
    }

    fn on(channel: u32, callbacks: Box<dyn CommCallbacks>, thread: Arc<ProgramThread>, is_ours: bool) -> Self {
        Self {
            rank: callbacks.rank(),
            size: callbacks.size(),
            is_free_threaded: callbacks.is_free_threaded(),
            callbacks: Some(callbacks),
            thread,
            channel,
            is_ours,
        }
    }

    pub(super) fn is_free_threaded(&self) -> bool {
        self.is_free_threaded
    }

    /// Makes calls where they may be made. The program may come by once an iteration only, so calls
    /// that follow each other are made together.
    fn call<R: Send>(
        &self,
        work: impl FnOnce(&dyn CommCallbacks) -> Result<R, CommError> + Send,
    ) -> Result<R, CommError> {
        let callbacks = self.callbacks.as_deref().ok_or(CommError::Closed)?;
        let seen = || {
            let _wait = self.thread.waits().begin();
            work(callbacks)
        };
        if self.is_free_threaded { seen() } else { self.thread.call_on(self.channel, seen)? }
    }

    /// Returns the bitwise and of all ranks.
    pub(super) fn all_of(&self, mask: u64) -> Result<u64, CommError> {
        let masks = self.call(|callbacks| gather_word(callbacks, mask))?;
        Ok(masks.into_iter().fold(u64::MAX, |all, mask| all & mask))
    }

    /// Exchanges messages whose lengths travel first, under the tag before theirs.
    fn exchange_parts(
        &self,
        tag: i32,
        sends: &[(usize, &[u8])],
        from: impl Iterator<Item = usize>,
    ) -> Result<Vec<Vec<u8>>, CommError> {
        let lengths: Vec<[u8; 8]> = sends.iter().map(|(_, message)| (message.len() as u64).to_le_bytes()).collect();
        let announced: Vec<(usize, &[u8])> = sends.iter().zip(&lengths).map(|((to, _), n)| (*to, &n[..])).collect();
        let mut receives: Vec<(usize, Vec<u8>)> = from.map(|rank| (rank, vec![0; 8])).collect();
        self.call(|callbacks| callbacks.exchange(tag - 1, &announced, &mut receives))?;
        for (_, message) in &mut receives {
            let length = words(message).into_iter().sum::<u64>();
            *message = vec![0; length as usize];
        }
        self.call(|callbacks| callbacks.exchange(tag, sends, &mut receives))?;
        Ok(receives.into_iter().map(|(_, message)| message).collect())
    }
}

/// The values that bytes stand for.
fn values(bytes: &[u8]) -> impl Iterator<Item = f64> {
    bytes.as_chunks().0.iter().map(|value| f64::from_le_bytes(*value))
}

impl Comm for CallbackComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    #[expect(clippy::disallowed_methods, reason = "a communicator, which this is")]
    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError> {
        let mut packed = Vec::new();
        ExactSum::pack(sums, &mut packed);
        let bytes: Vec<u8> = packed.into_iter().flat_map(i64::to_le_bytes).collect();
        let all = self.gather(&bytes);
        work();
        sums.iter_mut().for_each(ExactSum::clear);
        for (rank, part) in all?.into_iter().enumerate() {
            let words: Vec<i64> = words(&part).into_iter().map(u64::cast_signed).collect();
            ExactSum::add_packed(sums, &words).map_err(|found| CommError::Length {
                rank,
                expected: sums.len(),
                found,
            })?;
        }
        Ok(())
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        let all = self.call(|callbacks| gather_word(callbacks, value.cast_unsigned()))?;
        Ok(all.into_iter().map(u64::cast_signed).fold(value, i64::min))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        self.call(|callbacks| {
            let mut length = (bytes.len() as u64).to_le_bytes();
            callbacks.broadcast(root, &mut length)?;
            bytes.resize(u64::from_le_bytes(length) as usize, 0);
            if bytes.is_empty() { Ok(()) } else { callbacks.broadcast(root, bytes) }
        })
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        self.call(|callbacks| {
            let lengths = gather_word(callbacks, bytes.len() as u64)?;
            let mut all = vec![0; lengths.iter().sum::<u64>() as usize];
            callbacks.gather(bytes, &lengths, &mut all)?;
            let mut rest = &all[..];
            let mut take = |length: u64| {
                let (part, after) = rest.split_at(length as usize);
                rest = after;
                part.to_vec()
            };
            Ok(lengths.into_iter().map(&mut take).collect())
        })
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        let bytes: Vec<Vec<u8>> =
            sends.iter().map(|(_, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        let sends: Vec<(usize, &[u8])> = sends.iter().zip(&bytes).map(|((to, _), bytes)| (*to, &bytes[..])).collect();
        let found = self.exchange_parts(1, &sends, receives.iter().map(|(rank, _)| *rank))?;
        let mut result = Ok(());
        for ((rank, target), found) in receives.iter_mut().zip(found) {
            if found.len() == target.len() * 8 {
                target.iter_mut().zip(values(&found)).for_each(|(target, value)| *target = value);
            } else if result.is_ok() {
                result = Err(CommError::Length { rank: *rank, expected: target.len(), found: found.len() / 8 });
            }
        }
        result
    }

    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError> {
        self.exchange_parts(3, sends, from.iter().copied())
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.call(|callbacks| gather_word(callbacks, 0)).map(drop)
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        let (copy, channel) = self.call(|callbacks| {
            let copy = callbacks.dup();
            // A rank whose copy failed counts it as well, so that the numbers stay the same.
            let channel = self.thread.new_channel();
            Ok((copy?, channel))
        })?;
        let copy = Self::on(channel, copy, Arc::clone(&self.thread), true);
        if (copy.rank, copy.size) != (self.rank, self.size) {
            return Err(CommError::Callback { what: "dup", code: -1 });
        }
        Ok(Box::new(copy))
    }
}

impl Drop for CallbackComm {
    fn drop(&mut self) {
        let Some(callbacks) = self.callbacks.take().filter(|_| self.is_ours) else { return };
        if self.is_free_threaded { callbacks.free() } else { self.thread.free(callbacks) }
    }
}
