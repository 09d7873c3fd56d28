//! A communicator that a program lends for as long as a handle lives, and the rounds in which the
//! checkpoint worker makes its calls on it.
//!
//! Promises: callbacks run on the program's threads unless it allows others; those that wait are
//! served in the same order on all ranks. Must not know the language of the program, or its MPI.

mod callback_comm;
mod callbacks;
mod program_thread;
mod sys;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recoup_core::{Clock, Comm, CommError};

use crate::solo::Solo;
use crate::waits::Waits;
use callback_comm::CallbackComm;
pub use callbacks::CommCallbacks;
pub use program_thread::{InsideCall, ProgramThread};

/// The bit that says a rank has nothing under way.
const IDLE: u64 = 1 << 63;
/// The bit that says a rank has time for another round.
const PATIENT: u64 = 1 << 62;
/// Rest of a rank between two looks at the others.
const REST: Duration = Duration::from_micros(200);
/// A rest shorter than this is spent spinning: a timer would wake the thread as late.
const LINGER: Duration = Duration::from_micros(100);
/// A call that is not to wait rests for this part of the time between calls, at most.
const REST_PART: u32 = 256;

/// The findings of a round.
struct Round {
    is_idle: bool,
    has_served: bool,
    /// All ranks have time for another one.
    is_patient: bool,
}

/// The program's communicator, and the thread its callbacks run on.
pub struct LentComm {
    thread: Arc<ProgramThread>,
    /// `None` for a job of one rank: it has nothing to agree on.
    comm: Option<CallbackComm>,
    clock: Arc<dyn Clock>,
    /// The end of the last call of an iteration, in nanoseconds of the clock.
    left_at: AtomicU64,
}

impl LentComm {
    /// Takes the callbacks of a communicator, or none for a job of one rank.
    #[must_use]
    pub fn new(callbacks: Option<Box<dyn CommCallbacks>>, clock: Arc<dyn Clock>) -> Self {
        let thread = Arc::new(ProgramThread::default());
        let comm = callbacks.filter(|callbacks| callbacks.size() > 1);
        let comm = comm.map(|callbacks| CallbackComm::new(callbacks, Arc::clone(&thread)));
        Self { thread, comm, clock, left_at: AtomicU64::new(0) }
    }

    /// Returns the communicator.
    #[must_use]
    pub fn comm(&self) -> &dyn Comm {
        self.comm.as_ref().map_or(&Solo, |comm| comm)
    }

    /// Returns the callbacks under way. A call that waits for the program's thread is none of them.
    #[must_use]
    pub fn waits(&self) -> &Arc<Waits> {
        self.thread.waits()
    }

    /// Returns the thread that callbacks run on.
    #[must_use]
    pub fn thread(&self) -> &Arc<ProgramThread> {
        &self.thread
    }

    /// Declares the calling thread to be the program's, inside a call of the library, until the
    /// guard is dropped. Its own callbacks run at once; those of other threads wait for
    /// [`LentComm::advance`].
    pub fn enter(&self) -> InsideCall<'_> {
        self.thread.enter()
    }

    /// Returns whether callbacks may be made from any thread.
    #[must_use]
    pub fn is_free_threaded(&self) -> bool {
        self.comm.as_ref().is_none_or(CallbackComm::is_free_threaded)
    }

    /// Runs the calls that wait on all ranks, and calls that follow them closely. Rests for a small
    /// part of the time between calls at most: whatever takes longer is left to a later call.
    /// Returns whether all ranks are idle. Collective, inside [`LentComm::enter`].
    ///
    /// # Errors
    /// [`CommError`] of the program's communicator.
    pub fn advance(&self, mut is_idle: impl FnMut() -> bool) -> Result<bool, CommError> {
        let left_at = Duration::from_nanos(self.left_at.load(Ordering::Relaxed));
        let until = self.clock.now() + self.clock.now().saturating_sub(left_at) / REST_PART;
        let is_idle = loop {
            let rest = until.saturating_sub(self.clock.now());
            let round = self.round(is_idle(), !rest.is_zero())?;
            if round.is_idle || !round.has_served || !round.is_patient {
                break round.is_idle;
            }
            if rest < LINGER {
                self.thread.linger(|| self.clock.now() >= until);
            } else {
                self.thread.rest(rest.min(REST));
            }
        };
        self.leave();
        Ok(is_idle)
    }

    /// Records the end of a call of an iteration in which no version was under way.
    pub fn leave(&self) {
        self.left_at.store(self.clock.now().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Runs the calls that wait on all ranks.
    fn round(&self, is_idle: bool, is_patient: bool) -> Result<Round, CommError> {
        let bit = |holds: bool, bit: u64| if holds { bit } else { 0 };
        let mine = self.thread.waiting() | bit(is_idle, IDLE) | bit(is_patient, PATIENT);
        let all = match &self.comm {
            Some(comm) => comm.all_of(mine)?,
            None => mine,
        };
        let waiting = all & !(IDLE | PATIENT);
        self.serve(waiting);
        Ok(Round { is_idle: all & IDLE != 0, has_served: waiting != 0, is_patient: all & PATIENT != 0 })
    }

    fn serve(&self, mut channels: u64) {
        while channels != 0 {
            self.thread.serve(channels.trailing_zeros());
            channels &= channels - 1;
        }
    }

    /// Makes rounds until all ranks are idle. Collective, inside [`LentComm::enter`].
    ///
    /// # Errors
    /// [`CommError`] of the program's communicator.
    pub fn finish(&self, is_idle: impl FnMut() -> bool) -> Result<(), CommError> {
        self.finish_within(Duration::MAX, is_idle).map(drop)
    }

    /// Makes rounds until all ranks are idle, or one of them has waited for `timeout`. Returns
    /// whether all ranks are idle, alike on all. A call that is being served is not interrupted.
    /// Collective, inside [`LentComm::enter`].
    ///
    /// # Errors
    /// [`CommError`] of the program's communicator.
    pub fn finish_within(&self, timeout: Duration, mut is_idle: impl FnMut() -> bool) -> Result<bool, CommError> {
        let until = self.clock.now().saturating_add(timeout);
        loop {
            let round = self.round(is_idle(), self.clock.now() < until)?;
            if round.is_idle || !round.is_patient {
                return Ok(round.is_idle);
            }
            self.thread.rest(REST);
        }
    }

    /// Frees the communicators that other threads have left over.
    pub fn sweep(&self) {
        self.thread.sweep();
    }

    /// Lets calls of other threads fail from now on, those that wait included.
    pub fn abandon(&self) {
        self.thread.abandon();
    }
}

impl Drop for LentComm {
    fn drop(&mut self) {
        self.thread.sweep();
    }
}
