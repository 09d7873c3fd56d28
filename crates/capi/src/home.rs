//! Where callbacks run that belong to the program's own threads.
//!
//! The pipeline makes versions on a thread of its own, and needs the communicator and the operator
//! there. A program may not allow that: MPI may be initialised for one thread, a matrix may use its
//! buffers for the product of the solver. What the worker wants called then waits here until the
//! program is inside a call of the library, and runs on that thread. Which of several waiting calls
//! runs is agreed between the ranks first, because each is collective.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;

use crate::callbacks::RecoupComm;

/// The channel of the operator; those of communicators follow.
pub(crate) const OPERATOR: u32 = 0;
/// Channels that fit into the mask ranks compare, with two bits to spare.
const CHANNELS: u32 = 62;

/// The meeting place of one handle's threads.
#[derive(Default)]
pub(crate) struct Home {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The program's thread that is inside a call of the library.
    inside: Option<ThreadId>,
    slots: BTreeMap<u32, Slot>,
    next_channel: u32,
    is_abandoned: bool,
    /// Communicators whose last owner was a thread that may not free them.
    left_over: Vec<RecoupComm>,
}

enum Slot {
    Waiting(Task),
    Running,
    Done,
}

/// What a waiting thread wants called. It lives on that thread's stack.
struct Task(*mut (dyn FnMut() + Send));

// SAFETY: what is pointed to is `Send`, and its owner does not touch it until it was run or taken
// back.
unsafe impl Send for Task {}

/// Whether a call waits to be served.
fn has_call(state: &State) -> bool {
    state.slots.values().any(|slot| matches!(slot, Slot::Waiting(_)))
}

/// The handle was closed while a call waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Abandoned;

/// The program is inside a call of the library.
#[must_use]
pub struct Inside<'a>(&'a Home);

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.lock().inside = None;
    }
}

impl Home {
    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of ours panics with the lock held.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This thread is the program's, until the guard goes. One at a time: calls of one handle
    /// exclude each other.
    pub(crate) fn enter(&self) -> Inside<'_> {
        self.lock().inside = Some(std::thread::current().id());
        Inside(self)
    }

    fn is_here(state: &State) -> bool {
        state.inside == Some(std::thread::current().id())
    }

    /// Whether this thread is already inside a call: in a callback of the program, then.
    pub(crate) fn is_inside(&self) -> bool {
        Self::is_here(&self.lock())
    }

    /// A number for the calls of one more communicator: the same on all ranks, as they make them in
    /// the same order. Beyond the last, communicators share one; their calls then wait for each
    /// other.
    pub(crate) fn new_channel(&self) -> u32 {
        let mut state = self.lock();
        state.next_channel = (state.next_channel + 1).min(CHANNELS - 1);
        state.next_channel
    }

    /// Runs `work` on the program's thread: now when this is it, else when it next comes by.
    pub(crate) fn call<R: Send>(&self, channel: u32, work: impl FnOnce() -> R + Send) -> Result<R, Abandoned> {
        let mut state = self.lock();
        if Self::is_here(&state) {
            drop(state);
            return Ok(work());
        }
        let (mut work, mut result) = (Some(work), None);
        let mut run = || result = work.take().map(|work| work());
        let borrowed: *mut (dyn FnMut() + Send + '_) = &raw mut run;
        // SAFETY: only the lifetime changes. The pointer is used while its slot is `Running`, and
        // this function returns after the slot was `Done` or, still `Waiting`, was removed under
        // the lock.
        let task =
            unsafe { std::mem::transmute::<*mut (dyn FnMut() + Send + '_), *mut (dyn FnMut() + Send)>(borrowed) };
        while state.slots.contains_key(&channel) && !state.is_abandoned {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_abandoned {
            return Err(Abandoned);
        }
        state.slots.insert(channel, Slot::Waiting(Task(task)));
        self.changed.notify_all();
        loop {
            match state.slots.get(&channel) {
                Some(Slot::Waiting(_)) if !state.is_abandoned => {}
                Some(Slot::Running) => {}
                _ => break,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.slots.remove(&channel);
        self.changed.notify_all();
        drop(state);
        result.ok_or(Abandoned)
    }

    /// The channels a call waits on, a bit each.
    pub(crate) fn waiting(&self) -> u64 {
        let state = self.lock();
        let waiting = state.slots.iter().filter(|(_, slot)| matches!(slot, Slot::Waiting(_)));
        waiting.fold(0, |mask, (channel, _)| mask | 1 << channel)
    }

    /// Runs the call that waits on a channel.
    pub(crate) fn serve(&self, channel: u32) {
        let task = match self.lock().slots.get_mut(&channel) {
            Some(slot @ Slot::Waiting(_)) => std::mem::replace(slot, Slot::Running),
            _ => return,
        };
        if let Slot::Waiting(Task(task)) = task {
            // SAFETY: the slot is `Running`, so the owner of the task waits for it, and nobody else
            // has it.
            let ran = catch_unwind(AssertUnwindSafe(|| unsafe { (*task)() }));
            if ran.is_err() {
                self.lock().is_abandoned = true;
            }
        }
        self.lock().slots.insert(channel, Slot::Done);
        self.changed.notify_all();
    }

    /// Waits a moment for a call to serve, or for a sign that none will come.
    pub(crate) fn rest(&self, at_most: Duration) {
        let state = self.lock();
        if !has_call(&state) {
            drop(self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// As [`Home::rest`], without leaving the core to nobody: for moments shorter than a timer
    /// takes to wake a thread.
    pub(crate) fn linger(&self, is_over: impl Fn() -> bool) {
        while !has_call(&self.lock()) && !is_over() {
            std::thread::yield_now();
        }
    }

    /// Calls that wait, and all later ones, fail.
    pub(crate) fn abandon(&self) {
        self.lock().is_abandoned = true;
        self.changed.notify_all();
    }

    /// Frees a communicator, or keeps it for [`Home::sweep`] when this thread may not.
    pub(crate) fn free(&self, comm: RecoupComm) {
        let mut state = self.lock();
        if Self::is_here(&state) {
            drop(state);
            comm.free_now();
        } else {
            state.left_over.push(comm);
        }
    }

    /// Frees what other threads have left over.
    pub(crate) fn sweep(&self) {
        let left_over = std::mem::take(&mut self.lock().left_over);
        left_over.into_iter().for_each(|comm| comm.free_now());
    }
}
