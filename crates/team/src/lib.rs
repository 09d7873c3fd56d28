//! Threads that wait for jobs: they spin for a while, then sleep.
//!
//! Promises: a job is over on all threads when the call that gave it returns, also by a panic; a
//! job costs no allocation. Must not know what jobs do.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod sys;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::{Builder, JoinHandle};

/// Number of times a thread looks before it sleeps: some tens of microseconds.
const SPINS: u32 = 2000;

/// A job that threads share: each calls it with its number.
pub type TeamJob<'a> = &'a (dyn Fn(usize) + Sync);

/// The calling thread and its workers.
#[derive(Debug)]
pub struct Team {
    shared: Arc<TeamState>,
    workers: Vec<JoinHandle<()>>,
    /// Whoever holds it has the workers.
    entered: Mutex<()>,
}

/// State that the calling thread and the workers share. Threads look at the atomics for a while,
/// then sleep on the condition variables.
#[derive(Debug, Default)]
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
    Run(TeamJob<'static>),
    Stop,
}

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Wait => "Wait",
            Self::Run(_) => "Run",
            Self::Stop => "Stop",
        })
    }
}

impl Team {
    /// A team of `threads` threads, the calling one included; the others are called `name` and
    /// their number.
    ///
    /// # Errors
    /// When the system refuses a thread.
    pub fn new(threads: usize, name: &str) -> io::Result<Self> {
        let mut team = Self { shared: Arc::default(), workers: Vec::new(), entered: Mutex::default() };
        for number in 1..threads {
            let shared = Arc::clone(&team.shared);
            let builder = Builder::new().name(format!("{name}-{number}"));
            team.workers.push(builder.spawn(move || shared.work(number))?);
        }
        Ok(team)
    }

    /// Number of threads, the calling one included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    /// Calls `here` on this thread, and meanwhile `job` on each worker with its number, from 1.
    /// When another thread has the workers, or this one is at a job of them, it calls `here` alone
    /// and returns false.
    ///
    /// # Panics
    /// When `here` or a worker panics, after all workers are done.
    pub fn work_beside(&self, job: TeamJob<'_>, here: impl FnOnce()) -> bool {
        let entered = match self.entered.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        match &entered {
            Some(_) => sys::work_beside(self, job, here),
            None => here(),
        }
        entered.is_some()
    }

    /// Gives `job` to the workers. [`Team::finish`] must follow before the job goes.
    fn start(&self, job: TeamJob<'static>) {
        self.shared.unfinished.store(self.workers.len(), Ordering::Relaxed);
        self.shared.give(Order::Run(job));
    }

    /// Returns when no worker uses the job any more.
    ///
    /// # Panics
    /// When a worker panicked, unless this thread is panicking already.
    fn finish(&self) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_does_its_part_once_and_a_nested_call_is_done_here() {
        let team = Team::new(3, "team").unwrap();
        let parts = [const { AtomicUsize::new(0) }; 3];
        let count = |part: usize| _ = parts[part].fetch_add(1, Ordering::Relaxed);
        for _ in 0..1000 {
            let nested = || assert!(!team.work_beside(&|_| unreachable!("the workers are busy"), || count(0)));
            assert!(team.work_beside(&count, nested));
        }
        assert_eq!(parts.map(AtomicUsize::into_inner), [1000; 3]);
    }

    #[test]
    fn a_panic_of_a_worker_reaches_the_caller_and_leaves_the_team_usable() {
        let team = Team::new(2, "team").unwrap();
        let work = || team.work_beside(&|_| panic!("a planted panic"), || ());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err());
        assert!(team.work_beside(&|_| (), || ()));
    }
}
