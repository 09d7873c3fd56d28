//! The threads of one rank: a static partition of the rows, and sums that do not depend on it.
//!
//! How to use it: capture what is read, hand over what is written.
//!
//! ```
//! use recoup_solvers::Pool;
//! let pool = Pool::new(2);
//! let x = vec![1.0; 5000];
//! let mut y = vec![0.0; 5000];
//! let mut z = vec![0.0; 5000];
//! // each thread sees its rows of y and z: y = 2 x, z = -x
//! pool.for_rows(5000, (&mut y[..], &mut z[..]), |rows, (y, z)| {
//!     for ((y, z), x) in y.iter_mut().zip(z).zip(&x[rows]) {
//!         (*y, *z) = (2.0 * x, -x);
//!     }
//! });
//! // block by block: y += x, and the sums of y and y^2
//! let [sum, squares] = pool.sum_rows(5000, &mut y[..], |rows, y| {
//!     y.iter_mut().zip(&x[rows]).fold([0.0; 2], |[s, q], (y, x)| {
//!         *y += x;
//!         [s + *y, q + *y * *y]
//!     })
//! });
//! assert_eq!((sum.rounded(), squares.rounded()), (15000.0, 45000.0));
//! ```
//!
//! Promises: the same bits for any number of threads, as sums are formed per block of [`BLOCK`]
//! rows, blocks added in order into chunks, chunks added exactly. No allocation per call once
//! [`Pool::reserve_sums`] has seen the number of sums. A call that finds the pool busy (another
//! thread, or a call within a call) does all parts itself, with the same bits.
//!
//! Threads spin for some microseconds and then sleep. On 2 EPYC cores an axpy of 128^3 values took
//! 1.25 ms here and 1.30 ms in the pool of rayon.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

pub use recoup_core::BLOCK;
use recoup_core::ExactSum;
use recoup_team::{Team, TeamJob};

use crate::kernels::sys::{RowSlices, ThreadSums, for_pieces, for_rows, for_slabs, sum_blocks};
pub use crate::kernels::team::{CHUNKS_MAX, SummedRows};
use crate::kernels::team::{Crew, Partition, add_chunks, run_on};

/// Sums of one pass that need no [`Pool::reserve_sums`].
const SUMS_RESERVED: usize = 8;
/// Sums for which a busy pool needs no allocation.
const SUMS_ON_STACK: usize = 128;
/// A fixed set of threads with a static partition of the rows.
pub struct Pool {
    team: Team,
    /// Room for sums; whoever holds it has the workers to itself.
    room: Mutex<ThreadSums>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("threads", &self.threads()).finish_non_exhaustive()
    }
}

impl Pool {
    /// A pool of `threads` threads, the calling one included; at least one, at most [`CHUNKS_MAX`].
    ///
    /// # Panics
    /// When the system refuses a thread.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let team = Team::new(threads.clamp(1, CHUNKS_MAX), "rows").expect("the system grants a thread");
        let pool = Self { team, room: Mutex::default() };
        pool.reserve_sums(SUMS_RESERVED);
        pool
    }

    /// Number of threads that work.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.team.threads()
    }

    /// Makes room for passes with up to `sums` sums, so that they allocate nothing.
    pub fn reserve_sums(&self, sums: usize) {
        self.room.lock().unwrap_or_else(PoisonError::into_inner).reserve(self.threads() * sums);
    }

    /// Calls `body` with the rows of `0..n` and these rows of `vectors`, all of length `n`: once
    /// per thread, or zone by zone while a frozen copy of a vector needs its values.
    ///
    /// # Panics
    /// When a vector has another length than `n`, or a thread panicked.
    pub fn for_rows<V: RowSlices>(&self, n: usize, vectors: V, body: impl Fn(Range<usize>, V::View) + Sync) {
        for_rows(self, Partition::new(n, BLOCK), vectors, body);
    }

    /// Works as [`Pool::for_rows`] with parts that are whole slabs of `unit` rows, and a piece of
    /// `scratch` for each thread: `scratch.len() / threads()` values.
    ///
    /// # Panics
    /// When a vector has another length than `n`, or a thread panicked.
    pub fn for_slabs<V: RowSlices>(
        &self,
        n: usize,
        unit: usize,
        vectors: V,
        scratch: &mut [f64],
        body: impl Fn(Range<usize>, V::View, &mut [f64]) + Sync,
    ) {
        for_slabs(self, Partition::new(n, unit), vectors, scratch, body);
    }

    /// Shares pieces of rows: calls `body` for those of each thread with their numbers, and their
    /// rows of `vectors`. `starts` has the first row of each piece, and the number of rows.
    ///
    /// # Panics
    /// When a vector has another length, `starts` descend, or a thread panicked.
    pub(crate) fn for_pieces<V: RowSlices>(
        &self,
        starts: &[usize],
        vectors: V,
        body: impl Fn(Range<usize>, V::View) + Sync,
    ) {
        for_pieces(self, starts, vectors, body);
    }

    /// Calls `body` for each block of `rows` and adds up what it returns.
    ///
    /// # Panics
    /// When a vector has another length than there are rows, or a thread panicked.
    pub fn sum_rows<const K: usize, V: RowSlices>(
        &self,
        rows: impl Into<SummedRows>,
        vectors: V,
        body: impl Fn(Range<usize>, V::View) -> [f64; K] + Sync,
    ) -> [ExactSum; K] {
        let mut sums = [ExactSum::ZERO; K];
        self.add_rows_into(rows, vectors, &mut sums, |rows, view, sums| {
            for (sum, partial) in sums.iter_mut().zip(body(rows, view)) {
                *sum += partial;
            }
        });
        sums
    }

    /// Works as [`Pool::sum_rows`] for a number of sums known at run time: `body` adds to its last
    /// argument.
    ///
    /// # Panics
    /// When a vector has another length than there are rows, or a thread panicked.
    pub fn sum_rows_into<V: RowSlices>(
        &self,
        rows: impl Into<SummedRows>,
        vectors: V,
        sums: &mut [ExactSum],
        body: impl Fn(Range<usize>, V::View, &mut [f64]) + Sync,
    ) {
        sums.iter_mut().for_each(ExactSum::clear);
        self.add_rows_into(rows, vectors, sums, body);
    }

    /// Works as [`Pool::sum_rows_into`], and adds to the sums there are.
    pub(crate) fn add_rows_into<V: RowSlices>(
        &self,
        rows: impl Into<SummedRows>,
        vectors: V,
        sums: &mut [ExactSum],
        body: impl Fn(Range<usize>, V::View, &mut [f64]) + Sync,
    ) {
        sum_blocks(self, Partition::summed(rows.into()), vectors, sums, body);
    }

    /// The workers, if they are free and worth waking for this many chunks.
    fn enter(&self, chunks: usize) -> Option<MutexGuard<'_, ThreadSums>> {
        if self.threads() == 1 || chunks < 2 { None } else { self.try_room() }
    }

    /// The room for sums, unless another thread is using it.
    fn try_room(&self) -> Option<MutexGuard<'_, ThreadSums>> {
        match self.room.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Crew for Pool {
    fn threads(&self) -> usize {
        self.team.threads()
    }

    fn run(&self, chunks: usize, job: TeamJob<'_>) {
        match self.enter(chunks) {
            Some(_entered) => run_on(&self.team, job),
            None => (0..self.threads()).for_each(job),
        }
    }

    fn sum_chunks(&self, partition: &Partition, sums: &mut [ExactSum], body: &(dyn Fn(usize, &mut [f64]) + Sync)) {
        let count = sums.len();
        let chunks = 0..partition.chunks();
        if let Some(mut room) = self.enter(chunks.len()).filter(|_| count > 0) {
            room.sum_chunks(&self.team, partition, sums, body);
        } else if count <= SUMS_ON_STACK {
            add_chunks(chunks, sums, &mut [0.0; SUMS_ON_STACK][..count], body);
        } else if let Some(mut room) = self.try_room().filter(|room| room.chunks.len() >= count) {
            add_chunks(chunks, sums, &mut room.chunks[..count], body);
        } else {
            add_chunks(chunks, sums, &mut vec![0.0; count], body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 * 0.7).sin() * 1e3_f64.powi((i % 5) as i32)).collect()
    }

    fn sum(pool: &Pool, x: &[f64]) -> u64 {
        pool.sum_rows(x.len(), (), |rows, ()| [x[rows].iter().sum()])[0].rounded().to_bits()
    }

    #[test]
    fn sums_have_the_same_bits_for_any_number_of_threads() {
        for n in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 10 * BLOCK + 7, 300 * BLOCK + 5] {
            let x = wave(n);
            let alone = sum(&Pool::new(1), &x);
            for threads in [2, 3, 5] {
                assert_eq!(sum(&Pool::new(threads), &x), alone, "n {n}, {threads} threads");
            }
        }
    }

    #[test]
    fn every_row_is_handed_out_once() {
        let pool = Pool::new(3);
        let mut counts = vec![0.0; 20 * BLOCK + 3];
        pool.for_rows(counts.len(), &mut counts[..], |rows, counts| {
            assert_eq!(rows.len(), counts.len());
            counts.iter_mut().for_each(|count| *count += 1.0);
        });
        assert!(counts.iter().all(|&count| count == 1.0));
    }

    #[test]
    fn nested_and_concurrent_calls_run_and_agree() {
        let pool = Pool::new(2);
        let x = wave(40 * BLOCK);
        let expected = sum(&pool, &x);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| assert_eq!(sum(&pool, &x), expected)));
            }
        });
        pool.for_rows(x.len(), (), |_, ()| assert_eq!(sum(&pool, &x), expected));
    }

    #[test]
    fn a_panic_in_a_thread_reaches_the_caller_and_leaves_the_pool_usable() {
        let pool = Pool::new(2);
        let x = wave(4 * BLOCK);
        for bad in [0, 3 * BLOCK] {
            let body = || pool.for_rows(x.len(), (), |rows, ()| assert!(!rows.contains(&bad)));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).is_err());
        }
        assert_eq!(sum(&pool, &x), sum(&Pool::new(1), &x));
    }
}
