//! A lent communicator, as the pipeline uses one.

use std::ffi::c_int;
use std::sync::Arc;

use recoup::core::{Comm, CommError};

use crate::callbacks::{RECOUP_COMM_ANY_THREAD, RecoupComm, RecoupPart};
use crate::home::{Abandoned, Home};

/// Fills `all` with the parts of all ranks, whose lengths every rank knows; the callback's code.
fn gathered(raw: &RecoupComm, mine: &[u8], lengths: &[u64], all: &mut Vec<u8>) -> Option<c_int> {
    // An empty slice may have an address that means something else to an MPI (1 is Open MPI's
    // MPI_IN_PLACE).
    let mine = if mine.is_empty() { &[0] } else { mine };
    *all = vec![0; (lengths.iter().sum::<u64>() as usize).max(1)];
    // SAFETY: `all` has the sum of `lengths` bytes, of which this rank's are those of `mine`.
    raw.allgatherv.map(|f| unsafe { f(raw.ctx, mine.as_ptr().cast(), all.as_mut_ptr().cast(), lengths.as_ptr()) })
}

/// Gives every rank the bytes of `root`, as many as it has room for; the callback's code.
fn broadcast(raw: &RecoupComm, root: usize, bytes: &mut [u8]) -> Option<c_int> {
    // SAFETY: the slice has as many bytes as it says, and as many on every rank.
    raw.broadcast.map(|f| unsafe { f(raw.ctx, bytes.as_mut_ptr().cast(), bytes.len() as u64, root as i32) })
}

/// [`Comm`] over the callbacks of a program.
///
/// Sums are added in rank order from gathered parts, so they do not depend on the program's MPI.
pub struct CallbackComm {
    raw: RecoupComm,
    home: Arc<Home>,
    channel: u32,
    /// Made by `dup`, so freed by us.
    is_ours: bool,
}

impl CallbackComm {
    /// The communicator of a handle.
    pub(crate) fn at_home(raw: RecoupComm, home: Arc<Home>) -> Self {
        let channel = home.new_channel();
        Self { raw, home, channel, is_ours: false }
    }

    /// Whether callbacks may be made from any thread.
    pub(crate) fn is_free_threaded(&self) -> bool {
        self.raw.flags & RECOUP_COMM_ANY_THREAD != 0
    }

    /// Runs a callback where it may run.
    fn call(&self, what: &'static str, callback: impl FnOnce(&RecoupComm) -> Option<c_int>) -> Result<(), CommError> {
        /// A callback that `Home` may carry to another thread.
        struct CarriedCall<F>(F);
        // SAFETY: the program's callback expects to run on the program's thread, and what else
        // `callback` holds are slices of the caller, who waits.
        unsafe impl<F> Send for CarriedCall<F> {}
        impl<F: FnOnce(&RecoupComm) -> Option<c_int>> CarriedCall<F> {
            fn run(self, raw: &RecoupComm) -> Option<c_int> {
                (self.0)(raw)
            }
        }
        let raw = self.raw;
        let carried = CarriedCall(callback);
        let code = if self.is_free_threaded() {
            carried.run(&raw)
        } else {
            let run = move || carried.run(&raw);
            self.home.call(self.channel, run).map_err(|Abandoned| CommError::Closed)?
        };
        match code {
            Some(0) => Ok(()),
            code => Err(CommError::Callback { what, code: code.unwrap_or(-1) }),
        }
    }

    /// Gathers parts whose lengths every rank knows.
    fn allgatherv(&self, mine: &[u8], lengths: &[u64]) -> Result<Vec<u8>, CommError> {
        let mut all = Vec::new();
        self.call("allgatherv", |raw| gathered(raw, mine, lengths, &mut all))?;
        Ok(all)
    }

    /// Eight bytes of every rank.
    fn allgather_word(&self, word: [u8; 8]) -> Result<Vec<[u8; 8]>, CommError> {
        let all = self.allgatherv(&word, &vec![8; self.size()])?;
        Ok(all.chunks_exact(8).map(|word| word.try_into().unwrap_or_default()).collect())
    }

    /// The bitwise and of all ranks.
    pub(crate) fn all_of(&self, mask: u64) -> Result<u64, CommError> {
        let masks = self.allgather_word(mask.to_le_bytes())?;
        Ok(masks.into_iter().fold(u64::MAX, |all, mask| all & u64::from_le_bytes(mask)))
    }

    /// Messages whose lengths both sides know.
    fn exchange_known(
        &self,
        tag: i32,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, Vec<u8>)],
    ) -> Result<(), CommError> {
        let part = |rank: usize, data: *const u8, bytes: usize| {
            let data = if bytes == 0 { std::ptr::null() } else { data };
            let (rank, data) = (rank as i32, data.cast_mut().cast());
            RecoupPart { rank, tag, bytes: bytes as u64, data }
        };
        let sends: Vec<RecoupPart> = sends.iter().map(|(to, m)| part(*to, m.as_ptr(), m.len())).collect();
        let receives: Vec<RecoupPart> =
            receives.iter_mut().map(|(from, m)| part(*from, m.as_mut_ptr(), m.len())).collect();
        let (n_sends, n_receives) = (sends.len() as u64, receives.len() as u64);
        self.call("exchange", |raw| {
            // SAFETY: every part describes a slice that lives until the callback returns; those
            // received into are ours alone.
            raw.exchange.map(|f| unsafe { f(raw.ctx, sends.as_ptr(), n_sends, receives.as_ptr(), n_receives) })
        })
    }

    /// Messages whose lengths travel first, under the tag before theirs.
    fn exchange_parts(
        &self,
        tag: i32,
        sends: &[(usize, &[u8])],
        from: impl Iterator<Item = usize>,
    ) -> Result<Vec<Vec<u8>>, CommError> {
        let lengths: Vec<[u8; 8]> = sends.iter().map(|(_, message)| (message.len() as u64).to_le_bytes()).collect();
        let announced: Vec<(usize, &[u8])> = sends.iter().zip(&lengths).map(|((to, _), n)| (*to, &n[..])).collect();
        let mut receives: Vec<(usize, Vec<u8>)> = from.map(|rank| (rank, vec![0; 8])).collect();
        self.exchange_known(tag - 1, &announced, &mut receives)?;
        for (_, message) in &mut receives {
            let length = u64::from_le_bytes(message[..].try_into().unwrap_or_default());
            *message = vec![0; length as usize];
        }
        self.exchange_known(tag, sends, &mut receives)?;
        Ok(receives.into_iter().map(|(_, message)| message).collect())
    }
}

impl Comm for CallbackComm {
    fn rank(&self) -> usize {
        self.raw.rank as usize
    }

    fn size(&self) -> usize {
        self.raw.size as usize
    }

    #[expect(clippy::disallowed_methods, reason = "a communicator, which this is")]
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        let mine: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        for (rank, part) in self.gather(&mine)?.into_iter().enumerate() {
            if part.len() != mine.len() {
                return Err(CommError::Length { rank, expected: values.len(), found: part.len() / 8 });
            }
            for (sum, bytes) in values.iter_mut().zip(part.chunks_exact(8)) {
                let value = f64::from_le_bytes(bytes.try_into().unwrap_or_default());
                *sum = if rank == 0 { value } else { *sum + value };
            }
        }
        Ok(())
    }

    fn min(&self, value: i64) -> Result<i64, CommError> {
        let all = self.allgather_word(value.to_le_bytes())?;
        Ok(all.into_iter().map(i64::from_le_bytes).fold(value, i64::min))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        // One stay with the program for both messages: it may come by once an iteration only.
        self.call("broadcast", |raw| {
            let mut length = (bytes.len() as u64).to_le_bytes();
            match broadcast(raw, root, &mut length)? {
                0 => {}
                code => return Some(code),
            }
            bytes.resize(u64::from_le_bytes(length) as usize, 0);
            if bytes.is_empty() { Some(0) } else { broadcast(raw, root, bytes) }
        })
    }

    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError> {
        let (mut lengths, mut all) = (Vec::new(), Vec::new());
        // As in `broadcast`.
        self.call("allgatherv", |raw| {
            let mut words = Vec::new();
            match gathered(raw, &(bytes.len() as u64).to_le_bytes(), &vec![8; self.size()], &mut words)? {
                0 => {}
                code => return Some(code),
            }
            let words = words.chunks_exact(8);
            lengths = words.map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default())).collect();
            gathered(raw, bytes, &lengths, &mut all)
        })?;
        let mut rest = &all[..];
        let mut take = |length: u64| {
            let (part, after) = rest.split_at(length as usize);
            rest = after;
            part.to_vec()
        };
        Ok(lengths.into_iter().map(&mut take).collect())
    }

    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError> {
        let bytes: Vec<Vec<u8>> =
            sends.iter().map(|(_, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        let sends: Vec<(usize, &[u8])> = sends.iter().zip(&bytes).map(|((to, _), bytes)| (*to, &bytes[..])).collect();
        let found = self.exchange_parts(1, &sends, receives.iter().map(|(rank, _)| *rank))?;
        let mut result = Ok(());
        for ((rank, target), found) in receives.iter_mut().zip(found) {
            if found.len() == target.len() * 8 {
                let values = found.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap_or_default()));
                target.iter_mut().zip(values).for_each(|(target, value)| *target = value);
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
        self.allgather_word([0; 8]).map(drop)
    }

    fn dup(&self) -> Result<Box<dyn Comm>, CommError> {
        let mut copy = RecoupComm { ctx: std::ptr::null_mut(), ..self.raw };
        let mut channel = 0;
        self.call("dup", |raw| {
            // SAFETY: `copy` is a whole struct for the program to fill.
            let code = raw.dup.map(|f| unsafe { f(raw.ctx, &raw mut copy) });
            channel = self.home.new_channel();
            code
        })?;
        if !copy.is_whole() || (copy.rank, copy.size) != (self.raw.rank, self.raw.size) {
            return Err(CommError::Callback { what: "dup", code: -1 });
        }
        Ok(Box::new(Self { raw: copy, home: Arc::clone(&self.home), channel, is_ours: true }))
    }
}

impl Drop for CallbackComm {
    fn drop(&mut self) {
        if !self.is_ours {
            return;
        }
        if self.is_free_threaded() { self.raw.free_now() } else { self.home.free(self.raw) }
    }
}
