//! The calls that solvers and the pipeline make to a communicator.

use crate::{ErrorKind, ExactSum, KindedError};

/// A group of ranks that compute together. Borrowed to solvers, replaceable on resume.
///
/// All calls but `rank`, `size` and the two exchanges are collective: every rank makes them in the
/// same order. Every call can say that a rank is lost.
pub trait Comm: Send {
    /// This rank's number, below `size`.
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// Replaces each value by its sum over all ranks: the exact sum, rounded once. Its bits depend
    /// neither on the order of the ranks nor on the library that adds.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        let mut sums: Vec<ExactSum> = values.iter().map(|&value| value.into()).collect();
        self.sum_exact(&mut sums)?;
        values.iter_mut().zip(&sums).for_each(|(value, sum)| *value = sum.rounded());
        Ok(())
    }

    /// Replaces each sum of this rank by that of all ranks.
    ///
    /// # Errors
    /// As [`Comm::sum`].
    fn sum_exact(&self, sums: &mut [ExactSum]) -> Result<(), CommError> {
        self.sum_exact_while(sums, &mut || {})
    }

    /// Sums as [`Comm::sum_exact`], with `work` done while the sums travel, where the communicator
    /// can. It is done once, whatever becomes of the sums, and makes no calls of this communicator.
    ///
    /// # Errors
    /// As [`Comm::sum`].
    fn sum_exact_while(&self, sums: &mut [ExactSum], work: &mut dyn FnMut()) -> Result<(), CommError>;

    /// The least `value` of all ranks.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn min(&self, value: i64) -> Result<i64, CommError>;

    /// The largest `value` of all ranks.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn max(&self, value: i64) -> Result<i64, CommError> {
        Ok(-self.min(-value)?)
    }

    /// Gives every rank the bytes of `root`.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError>;

    /// The bytes of every rank, in rank order, on every rank.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, CommError>;

    /// Sends slices to and receives slices from other ranks: pairs of (rank, values).
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a partner is gone, [`CommError::Length`] when one sends
    /// another number of values than is expected.
    fn exchange(&self, sends: &[(usize, &[f64])], receives: &mut [(usize, &mut [f64])]) -> Result<(), CommError>;

    /// Exchanges as [`Comm::exchange`], with `work` done while the values travel, where the
    /// communicator can. It is done once, whatever becomes of the exchange.
    ///
    /// # Errors
    /// As [`Comm::exchange`].
    fn exchange_while(
        &self,
        sends: &[(usize, &[f64])],
        receives: &mut [(usize, &mut [f64])],
        work: &mut dyn FnMut(),
    ) -> Result<(), CommError> {
        let exchanged = self.exchange(sends, receives);
        work();
        exchanged
    }

    /// Sends bytes to and receives bytes from other ranks, any lengths: what came from each rank of
    /// `from`, in that order. Messages of one pair of ranks keep their order; they never mix with
    /// those of [`Comm::exchange`].
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a partner is gone.
    fn exchange_bytes(&self, sends: &[(usize, &[u8])], from: &[usize]) -> Result<Vec<Vec<u8>>, CommError>;

    /// Exchanges as [`Comm::exchange_bytes`], into room that is there: longer messages than the
    /// room are errors. Returns the length of what came from each rank. The ranks that send and
    /// those that receive both make this call, for messages of at most a GiB.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a partner is gone, [`CommError::Length`] for too little room.
    fn exchange_bytes_into(
        &self,
        sends: &[(usize, &[u8])],
        receives: &mut [(usize, &mut [u8])],
    ) -> Result<Vec<usize>, CommError> {
        let from: Vec<usize> = receives.iter().map(|(from, _)| *from).collect();
        let received = self.exchange_bytes(sends, &from)?;
        let put = |(bytes, (rank, room)): (Vec<u8>, &mut (usize, &mut [u8]))| {
            let wrong = CommError::Length { rank: *rank, expected: room.len(), found: bytes.len() };
            room.get_mut(..bytes.len()).ok_or(wrong)?.copy_from_slice(&bytes);
            Ok(bytes.len())
        };
        received.into_iter().zip(receives).map(put).collect()
    }

    /// Returns when every rank has called it.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn barrier(&self) -> Result<(), CommError>;

    /// A communicator of the same ranks whose calls never mix with this one's.
    ///
    /// # Errors
    /// [`CommError::RankLost`] when a rank is gone.
    fn dup(&self) -> Result<Box<dyn Comm>, CommError>;

    /// The communicator of MPI below this one, for libraries that make their own calls. `None`
    /// where there is none, where MPI takes calls of one thread at a time, and once it has ended.
    fn mpi(&self) -> Option<MpiHandle> {
        None
    }
}

/// A communicator of the MPI library that the process uses; good as long as the [`Comm`] that gave
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiHandle {
    /// The library's `MPI_Comm`. A C int is its lower half.
    pub comm: usize,
    /// The address of the library's `MPI_Comm_size`, which tells one library from another.
    pub comm_size: usize,
}

/// An error of a communicator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommError {
    /// A rank is gone; the communicator is of no further use.
    #[error("rank {rank} is lost")]
    RankLost {
        /// The lost rank.
        rank: usize,
    },
    /// The library that connects the ranks refuses a call.
    #[error("the library that connects the ranks reports error class {class}")]
    Library {
        /// The library's number for it.
        class: i32,
    },
    /// A message had another length than agreed.
    #[error("message from rank {rank}: {expected} values expected, {found} found")]
    Length {
        /// The sender.
        rank: usize,
        /// Values expected.
        expected: usize,
        /// Values received.
        found: usize,
    },
    /// A message could not be decoded.
    #[error("message from rank {rank} not understood: {what}")]
    Undecodable {
        /// The sender.
        rank: usize,
        /// The reason.
        what: String,
    },
    /// A callback of the program that lent the communicator failed.
    #[error("the program's {what} returned {code}")]
    Callback {
        /// The callback.
        what: &'static str,
        /// The code it returned.
        code: i32,
    },
    /// The communicator was closed while a call waited.
    #[error("the communicator is closed")]
    Closed,
}

impl KindedError for CommError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::RankLost { .. } => ErrorKind::RankLost,
            Self::Callback { .. } => ErrorKind::Callback,
            Self::Library { .. } | Self::Length { .. } | Self::Undecodable { .. } | Self::Closed => {
                ErrorKind::Communication
            }
        }
    }
}
