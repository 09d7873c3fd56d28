//! The place where work is done: on a device, in memory of the host, or in virtual time.

use crate::work::{Extent, TapeWork};

/// Names work under way in a mover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MoveTicket(pub u64);

/// Work that has ended.
#[derive(Clone, Debug)]
pub struct EndedMove {
    /// Name that [`Mover::start`] gave.
    pub ticket: MoveTicket,
    /// Bytes that a copy to a level has written: not more than it had room for. `None` for other
    /// work, and for copies that are as long as they were asked to be.
    pub written_bytes: Option<u64>,
    /// Its error, if it failed.
    pub result: Result<(), MoveError>,
}

/// Errors of a mover.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{work:?} failed: {reason}")]
pub struct MoveError {
    /// The work.
    pub work: TapeWork,
    /// Message of the system or the driver.
    pub reason: String,
}

/// Memory in levels, and copies between them.
///
/// Work under way at the same time never writes bytes that other work uses. A mover registers
/// memory in turn with the other movers of the machine, and cuts copies where registrations meet.
pub trait Mover {
    /// Starts work.
    ///
    /// # Errors
    /// [`MoveError`] if it could not be started; then nothing of it is under way.
    fn start(&mut self, work: TapeWork) -> Result<MoveTicket, MoveError>;

    /// Returns work that has ended since the last call, if there is any.
    fn poll(&mut self) -> Option<EndedMove>;

    /// Waits until work ends, and returns it. `None` if no work is under way.
    fn wait(&mut self) -> Option<EndedMove>;

    /// Gives up the bytes of a place that nothing uses any more.
    fn discard(&mut self, _level: usize, _extent: Extent) {}

    /// Seconds since some moment before the first call.
    fn now_seconds(&self) -> f64;
}
