//! A communicator lent for as long as a handle lives, and the rounds in which the checkpoint worker
//! gets on with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use recoup::core::{Clock, Comm, CommError};
use recoup::io::SystemClock;

use crate::callbacks::RecoupComm;
use crate::comm::CallbackComm;
use crate::home::{Home, Inside};

/// The bit that says a rank has nothing under way.
const IDLE: u64 = 1 << 63;
/// The bit that says a rank has time for another round.
const PATIENT: u64 = 1 << 62;
/// How long a rank rests between two looks at the others.
const REST: Duration = Duration::from_micros(200);
/// What takes less than this is waited for awake: a timer would wake the thread as late.
const LINGER: Duration = Duration::from_micros(100);
/// Rests of a call that is not to wait are this part of the time between calls, at most.
const REST_PART: u32 = 256;

/// What a round found.
struct Round {
    is_idle: bool,
    has_served: bool,
    /// All ranks have time for another one.
    is_patient: bool,
}

/// The program's communicator, and the thread its callbacks run on.
pub struct Lent {
    home: Arc<Home>,
    /// `None` for a job of one rank: it has nothing to agree on.
    comm: Option<CallbackComm>,
    clock: SystemClock,
    /// When the last call of an iteration was over, in nanoseconds of the clock.
    left_at: AtomicU64,
}

impl Lent {
    /// Takes a communicator, or none for a job of one rank. `None` when callbacks are missing or
    /// ranks are out of order.
    ///
    /// # Safety
    /// The callbacks do what [`RecoupComm`] says, as long as this lives.
    #[must_use]
    pub unsafe fn new(raw: Option<RecoupComm>) -> Option<Self> {
        let home = Arc::new(Home::default());
        if raw.is_some_and(|raw| !raw.is_whole()) {
            return None;
        }
        let comm = raw.filter(|raw| raw.size > 1).map(|raw| CallbackComm::at_home(raw, Arc::clone(&home)));
        Some(Self { home, comm, clock: SystemClock::new(), left_at: AtomicU64::new(0) })
    }

    /// The communicator.
    #[must_use]
    pub fn comm(&self) -> &dyn Comm {
        self.comm.as_ref().map_or(&recoup::comm::Solo, |comm| comm)
    }

    /// Where callbacks run.
    pub(crate) fn home(&self) -> &Arc<Home> {
        &self.home
    }

    /// The calling thread is the program's, inside a call of the library, until the guard goes.
    /// Callbacks run on it at once; those other threads want wait for [`Lent::advance`].
    pub fn enter(&self) -> Inside<'_> {
        self.home.enter()
    }

    /// Whether callbacks may be made from any thread.
    #[must_use]
    pub fn is_free_threaded(&self) -> bool {
        self.comm.as_ref().is_none_or(CallbackComm::is_free_threaded)
    }

    /// Runs what waits on all ranks, and what comes up on its heels, but rests for a small part of
    /// the time between calls at most: what takes longer is for a later call. Says whether all
    /// ranks are idle. Collective, inside [`Lent::enter`].
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
                self.home.linger(|| self.clock.now() >= until);
            } else {
                self.home.rest(rest.min(REST));
            }
        };
        self.leave();
        Ok(is_idle)
    }

    /// A call of an iteration is over, in which nothing was under way.
    pub(crate) fn leave(&self) {
        self.left_at.store(self.clock.now().as_nanos() as u64, Ordering::Relaxed);
    }

    /// Runs what waits on all ranks.
    fn round(&self, is_idle: bool, is_patient: bool) -> Result<Round, CommError> {
        let bit = |holds: bool, bit: u64| if holds { bit } else { 0 };
        let mine = self.home.waiting() | bit(is_idle, IDLE) | bit(is_patient, PATIENT);
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
            self.home.serve(channels.trailing_zeros());
            channels &= channels - 1;
        }
    }

    /// Rounds until all ranks are idle. Collective, inside [`Lent::enter`].
    ///
    /// # Errors
    /// [`CommError`] of the program's communicator.
    pub fn finish(&self, mut is_idle: impl FnMut() -> bool) -> Result<(), CommError> {
        while !self.round(is_idle(), true)?.is_idle {
            self.home.rest(REST);
        }
        Ok(())
    }

    /// Frees communicators other threads have left over.
    pub(crate) fn sweep(&self) {
        self.home.sweep();
    }

    /// What still waits fails, and so does every later call from another thread.
    pub fn abandon(&self) {
        self.home.abandon();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.sweep();
    }
}
