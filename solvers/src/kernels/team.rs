//! Threads that wait for jobs, and how rows are shared among them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Rows summed in one go.
pub const BLOCK: usize = 1024;
/// Most partial sums kept of one pass: blocks are added into this many chunks of equal length.
pub const CHUNKS_MAX: usize = 256;
/// Number of times a thread looks before it sleeps: some tens of microseconds.
const SPINS: u32 = 2000;

/// A job that threads share: called once for each part.
pub(crate) type PartJob<'a> = &'a (dyn Fn(usize) + Sync);

/// Threads that share the parts of a job.
pub(crate) trait Crew {
    /// Number of threads, the calling one included.
    fn threads(&self) -> usize;

    /// Calls `job` once for each part, on the workers when they are free and there is work for two.
    fn run(&self, chunks: usize, job: PartJob<'_>);

    /// Calls `body` once for each chunk with zeros to add to, and adds these up in the order of the
    /// chunks.
    fn sum_chunks(&self, partition: &Partition, sums: &mut [f64], body: &(dyn Fn(usize, &mut [f64]) + Sync));
}

/// The calling thread alone.
pub(crate) struct Alone;

impl Crew for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, _chunks: usize, job: PartJob<'_>) {
        job(0);
    }

    fn sum_chunks(&self, partition: &Partition, sums: &mut [f64], body: &(dyn Fn(usize, &mut [f64]) + Sync)) {
        sums.fill(0.0);
        let mut room = vec![0.0; sums.len()];
        sum_alone(partition, sums, &mut room, body);
    }
}

/// `sums += partial`.
pub(crate) fn add(sums: &mut [f64], partial: &[f64]) {
    for (sum, value) in sums.iter_mut().zip(partial) {
        *sum += value;
    }
}

/// The sums of all chunks on this thread, in the same order.
pub(crate) fn sum_alone(
    partition: &Partition,
    sums: &mut [f64],
    room: &mut [f64],
    body: &(dyn Fn(usize, &mut [f64]) + Sync),
) {
    let partial = &mut room[..sums.len()];
    for chunk in 0..partition.chunks() {
        partial.fill(0.0);
        body(chunk, partial);
        add(sums, partial);
    }
}

/// Rows cut into chunks of whole units; which chunks there are depends on the rows alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Partition {
    /// Rows in all.
    pub(crate) n: usize,
    chunk_rows: usize,
}

impl Partition {
    /// Makes at most [`CHUNKS_MAX`] chunks of whole units of `unit` rows.
    pub(crate) fn new(n: usize, unit: usize) -> Self {
        let units = n.div_ceil(unit);
        Self { n, chunk_rows: units.div_ceil(CHUNKS_MAX).max(1) * unit }
    }

    /// Rows of a chunk; the last may have fewer.
    #[cfg(feature = "cuda")]
    pub(crate) fn chunk_rows(&self) -> usize {
        self.chunk_rows
    }

    /// Number of chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.n.div_ceil(self.chunk_rows)
    }

    /// The chunks of part `part` of `parts`.
    pub(crate) fn part(&self, part: usize, parts: usize) -> Range<usize> {
        self.chunks() * part / parts..self.chunks() * (part + 1) / parts
    }

    /// The rows of `chunks`.
    pub(crate) fn rows(&self, chunks: &Range<usize>) -> Range<usize> {
        (chunks.start * self.chunk_rows).min(self.n)..(chunks.end * self.chunk_rows).min(self.n)
    }

    /// The blocks of a chunk, as row ranges.
    pub(crate) fn blocks(&self, chunk: usize) -> impl Iterator<Item = Range<usize>> + use<> {
        let rows = self.rows(&(chunk..chunk + 1));
        let end = rows.end;
        rows.step_by(BLOCK).map(move |first| first..(first + BLOCK).min(end))
    }
}

/// The calling thread and its workers.
pub(crate) struct Team {
    shared: Arc<TeamState>,
    workers: Vec<JoinHandle<()>>,
}

/// State that the calling thread and the workers share. Threads look at the atomics for a while,
/// then sleep on the condition variables.
#[derive(Default)]
struct TeamState {
    /// Counts the jobs; a worker runs the job when it sees a new count.
    epoch: AtomicUsize,
    /// Workers that have not finished the job.
    unfinished: AtomicUsize,
    panicked: AtomicBool,
    order: Mutex<Order>,
    started: Condvar,
    finished: Condvar,
}

/// Order to the workers.
#[derive(Clone, Copy, Default)]
enum Order {
    #[default]
    Wait,
    Run(PartJob<'static>),
    Stop,
}

impl Team {
    pub(crate) fn new(threads: usize) -> Self {
        let shared = Arc::new(TeamState::default());
        let worker = |part| {
            let shared = Arc::clone(&shared);
            let builder = std::thread::Builder::new().name(format!("rows-{part}"));
            builder.spawn(move || shared.work(part)).expect("the system grants a thread")
        };
        let workers = (1..threads).map(worker).collect();
        Self { shared, workers }
    }

    /// Number of threads, the calling one included.
    pub(crate) fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Gives `job` to the workers. [`Team::finish`] must follow before the job goes.
    pub(crate) fn start(&self, job: PartJob<'static>) -> &Self {
        self.shared.unfinished.store(self.workers.len(), Ordering::Relaxed);
        self.shared.give(Order::Run(job));
        self
    }

    /// Returns when no worker uses the job any more.
    ///
    /// # Panics
    /// When a worker panicked, unless this thread is panicking already.
    pub(crate) fn finish(&self) {
        self.shared.await_workers();
        if self.shared.panicked.swap(false, Ordering::Relaxed) && !std::thread::panicking() {
            panic!("a thread of the pool panicked");
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.give(Order::Stop);
        for worker in self.workers.drain(..) {
            // A panic of a worker has been reported by `finish`.
            drop(worker.join());
        }
    }
}

impl TeamState {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, order: Order) {
        let mut current = self.order();
        *current = order;
        self.epoch.fetch_add(1, Ordering::Release);
        drop(current);
        self.started.notify_all();
    }

    fn work(&self, part: usize) {
        let mut seen = 0;
        loop {
            let Order::Run(job) = self.await_order(&mut seen) else { return };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job(part)));
            if outcome.is_err() {
                self.panicked.store(true, Ordering::Relaxed);
            }
            if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
                let _order = self.order();
                self.finished.notify_one();
            }
        }
    }

    /// The first order after the one numbered `seen`.
    fn await_order(&self, seen: &mut usize) -> Order {
        spin_until(|| self.epoch.load(Ordering::Acquire) != *seen);
        let mut order = self.order();
        while self.epoch.load(Ordering::Acquire) == *seen {
            order = self.started.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
        *seen = self.epoch.load(Ordering::Acquire);
        *order
    }

    fn await_workers(&self) {
        let is_done = || self.unfinished.load(Ordering::Acquire) == 0;
        if spin_until(is_done) {
            return;
        }
        let mut order = self.order();
        while !is_done() {
            order = self.finished.wait(order).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Spins for a while. Returns whether the condition came true.
fn spin_until(is_true: impl Fn() -> bool) -> bool {
    for _ in 0..SPINS {
        if is_true() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}
