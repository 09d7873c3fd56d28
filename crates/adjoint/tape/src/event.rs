//! Events that a policy is told, and actions that it asks for.

use crate::work::{Extent, PlaceError, StateId, TapeWork, WorkId};

/// Events that a policy is told.
#[derive(Clone, Debug)]
pub enum TapeEvent {
    /// The program pushes a state and waits.
    Push {
        /// Bytes of the state.
        bytes: u64,
        /// Time since its last call was answered.
        interval_seconds: f64,
    },
    /// The program pops a state and waits.
    Pop {
        /// The state.
        id: StateId,
    },
    /// The program reads a state, which stays on the tape, and waits.
    Peek {
        /// The state.
        id: StateId,
    },
    /// The program drops a state unread.
    Forget {
        /// The state.
        id: StateId,
    },
    /// The program waits until the last level has all states.
    Keep,
    /// The program announces the next pops. States that are not named follow in reverse order.
    Announce(Vec<StateId>),
    /// The program begins to read; fetching may begin.
    Turn,
    /// The tape ends: no more work is started.
    Close,
    /// Work has ended.
    Ended {
        /// The work.
        work: WorkId,
        /// Reason of the mover, if the work failed.
        failure: Option<String>,
        /// Bytes that a copy between levels has written, if they are known.
        written_bytes: Option<u64>,
        /// Time it took.
        seconds: f64,
    },
}

/// Actions that a policy asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TapeAction {
    /// Start this work.
    Start {
        /// Name of the work, for [`TapeEvent::Ended`].
        id: WorkId,
        /// The work.
        work: TapeWork,
    },
    /// Nothing uses this place any more; the mover may give up what it holds.
    Discard {
        /// Number of the level.
        level: usize,
        /// The place.
        extent: Extent,
    },
    /// Answer the call of the program, with its state, or the newest one if the call names none.
    Reply(Result<StateId, PlaceError>),
}

/// A state that the last level held before, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdoptedState {
    /// Its name.
    pub id: StateId,
    /// Its place.
    pub extent: Extent,
}
