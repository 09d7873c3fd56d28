//! The calls that a program makes for us on its communicator.

use recoup_core::CommError;

/// The calls of a communicator that a program lends.
///
/// All calls but [`CommCallbacks::exchange`] and [`CommCallbacks::free`] are collective and are
/// made in the same order on all ranks. A call that the program refuses is a
/// [`CommError::Callback`], which names it.
pub trait CommCallbacks: Send + Sync {
    /// Returns this rank's number, below [`CommCallbacks::size`].
    fn rank(&self) -> usize;

    /// Returns the number of ranks.
    fn size(&self) -> usize;

    /// Returns whether calls may be made from any thread, at the same time as the program's own
    /// calls of other communicators. Otherwise they are made on the program's thread only, inside
    /// the program's calls of the library.
    fn is_free_threaded(&self) -> bool;

    /// Gives every rank the bytes of `root`; all ranks know their number.
    ///
    /// # Errors
    /// [`CommError::Callback`] as the program reports it.
    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError>;

    /// Fills `all` with the bytes of all ranks in rank order. All ranks know all `lengths`, and
    /// `all` has their sum.
    ///
    /// # Errors
    /// [`CommError::Callback`] as the program reports it.
    fn gather(&self, mine: &[u8], lengths: &[u64], all: &mut [u8]) -> Result<(), CommError>;

    /// Sends and receives messages whose lengths both sides know, as pairs of rank and bytes. Tags
    /// go from 0 to 3; messages of different tags never take each other's place.
    ///
    /// # Errors
    /// [`CommError::Callback`] as the program reports it.
    fn exchange(&self, tag: i32, sends: &[(usize, &[u8])], receives: &mut [(usize, Vec<u8>)]) -> Result<(), CommError>;

    /// Makes a communicator of the same ranks whose calls never mix with this one's.
    ///
    /// # Errors
    /// [`CommError::Callback`] as the program reports it.
    fn dup(&self) -> Result<Box<dyn CommCallbacks>, CommError>;

    /// Frees the communicator. Called for those that [`CommCallbacks::dup`] made only: the first
    /// one remains the program's.
    fn free(self: Box<Self>);
}
