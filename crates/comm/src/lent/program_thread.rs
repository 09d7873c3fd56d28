//! The program's own thread, on which its callbacks run.
//!
//! The pipeline makes versions on a thread of its own, and needs the communicator and the operator
//! there. A program may not allow that: MPI may be initialised for one thread, a matrix may use its
//! buffers for the product of the solver. Calls of the worker then wait here until the program is
//! inside a call of the library, and run on that thread. The ranks first agree on which of the
//! waiting calls runs, because each is collective.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use recoup_core::CommError;

use super::callbacks::CommCallbacks;
use super::sys::{BorrowedCall, lend};
use crate::waits::Waits;

/// The channel of calls that belong to no communicator; those of communicators follow.
const OTHER_CALLS: u32 = 0;
/// Channels that fit into the mask ranks compare, with two bits to spare.
const CHANNELS: u32 = 62;

/// The program's thread, as the threads of the library see it. A handle of the program has one.
#[derive(Default)]
pub struct ProgramThread {
    state: Mutex<WaitingCalls>,
    changed: Condvar,
    /// Callbacks under way, on this thread or another.
    waits: Arc<Waits>,
}

#[derive(Default)]
struct WaitingCalls {
    /// The program's thread that is inside a call of the library.
    inside: Option<ThreadId>,
    by_channel: BTreeMap<u32, CallState>,
    last_channel: u32,
    is_abandoned: bool,
    /// Communicators whose last owner was a thread that may not free them.
    left_over: Vec<Box<dyn CommCallbacks>>,
}

enum CallState {
    Waiting(BorrowedCall),
    Running,
    Done,
}

impl WaitingCalls {
    /// Returns whether a call waits to be served.
    fn has_call(&self) -> bool {
        self.by_channel.values().any(|call| matches!(call, CallState::Waiting(_)))
    }

    /// Returns whether this is the program's thread, inside a call of the library.
    fn is_here(&self) -> bool {
        self.inside == Some(std::thread::current().id())
    }
}

/// The program is inside a call of the library, as long as this guard lives.
#[must_use]
pub struct InsideCall<'a>(&'a ProgramThread);

impl Drop for InsideCall<'_> {
    fn drop(&mut self) {
        self.0.lock().inside = None;
    }
}

impl ProgramThread {
    fn lock(&self) -> MutexGuard<'_, WaitingCalls> {
        // No code of ours panics with the lock held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, WaitingCalls>) -> MutexGuard<'a, WaitingCalls> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn waits(&self) -> &Arc<Waits> {
        &self.waits
    }

    /// Declares the calling thread to be the program's until the guard is dropped. One at a time:
    /// calls of one handle exclude each other.
    pub(super) fn enter(&self) -> InsideCall<'_> {
        self.lock().inside = Some(std::thread::current().id());
        InsideCall(self)
    }

    /// Returns whether this thread is already inside a call of the library: in a callback, then.
    pub fn is_inside(&self) -> bool {
        self.lock().is_here()
    }

    /// Returns a number for the calls of one more communicator: the same on all ranks, as they make
    /// communicators in the same order. Beyond the last, communicators share one; their calls then
    /// wait for each other.
    pub(super) fn new_channel(&self) -> u32 {
        let mut state = self.lock();
        state.last_channel = (state.last_channel + 1).min(CHANNELS - 1);
        state.last_channel
    }

    /// Runs a collective call of the program that belongs to no communicator, such as the product
    /// of its operator: now if this is the program's thread, else when that comes by next.
    ///
    /// # Errors
    /// [`CommError::Closed`] when the handle was closed meanwhile, or the call panicked.
    pub fn call<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, CommError> {
        self.call_on(OTHER_CALLS, work)
    }

    /// Runs a collective call as [`ProgramThread::call`] does, on the channel of a communicator.
    pub(super) fn call_on<R: Send>(&self, channel: u32, work: impl FnOnce() -> R + Send) -> Result<R, CommError> {
        if self.is_inside() {
            return Ok(work());
        }
        lend(work, |call| self.wait_for(channel, call)).ok_or(CommError::Closed)
    }

    /// Returns when the call was served, or will not be.
    fn wait_for(&self, channel: u32, call: BorrowedCall) {
        let mut state = self.lock();
        while state.by_channel.contains_key(&channel) && !state.is_abandoned {
            state = self.wait(state);
        }
        if state.is_abandoned {
            return;
        }
        state.by_channel.insert(channel, CallState::Waiting(call));
        self.changed.notify_all();
        loop {
            match state.by_channel.get(&channel) {
                Some(CallState::Waiting(_)) if !state.is_abandoned => {}
                Some(CallState::Running) => {}
                _ => break,
            }
            state = self.wait(state);
        }
        state.by_channel.remove(&channel);
        self.changed.notify_all();
    }

    /// Returns the channels on which a call waits, a bit each.
    pub(super) fn waiting(&self) -> u64 {
        let state = self.lock();
        let waiting = state.by_channel.iter().filter(|(_, call)| matches!(call, CallState::Waiting(_)));
        waiting.fold(0, |mask, (channel, _)| mask | 1 << channel)
    }

    /// Runs the call that waits on a channel.
    pub(super) fn serve(&self, channel: u32) {
        let call = match self.lock().by_channel.get_mut(&channel) {
            Some(state @ CallState::Waiting(_)) => std::mem::replace(state, CallState::Running),
            _ => return,
        };
        if let CallState::Waiting(call) = call
            && catch_unwind(AssertUnwindSafe(|| call.run())).is_err()
        {
            self.lock().is_abandoned = true;
        }
        self.lock().by_channel.insert(channel, CallState::Done);
        self.changed.notify_all();
    }

    /// Waits a moment for a call to serve, or for a sign that none will come.
    pub(super) fn rest(&self, at_most: Duration) {
        let state = self.lock();
        if !state.has_call() {
            drop(self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Waits as [`ProgramThread::rest`] does, but spins: for moments shorter than a timer takes to
    /// wake a thread.
    pub(super) fn linger(&self, is_over: impl Fn() -> bool) {
        while !self.lock().has_call() && !is_over() {
            std::thread::yield_now();
        }
    }

    /// Lets waiting calls and all later ones fail.
    pub(super) fn abandon(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    /// Frees a communicator, or keeps it for [`ProgramThread::sweep`] if this thread may not.
    pub(super) fn free(&self, comm: Box<dyn CommCallbacks>) {
        let mut state = self.lock();
        if state.is_here() {
            drop(state);
            comm.free();
        } else {
            state.left_over.push(comm);
        }
    }

    /// Frees the communicators that other threads have left over.
    pub(super) fn sweep(&self) {
        let left_over = std::mem::take(&mut self.lock().left_over);
        left_over.into_iter().for_each(|comm| comm.free());
    }
}
