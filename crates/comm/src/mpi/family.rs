//! Communicators that are lost together: when a rank is gone, none of them is of further use to
//! anybody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use recoup_core::CommError;

use super::fault::MpiFault;

/// All ranks are there.
const NONE: usize = usize::MAX;

/// A communicator, as its family knows it.
pub(super) trait Member: Copy + PartialEq {
    /// A rank is gone, or another rank found one to be gone: `MPI_ERR_PROC_ABORTED` to
    /// `MPI_ERR_REVOKED` of Open MPI 5.
    fn is_loss(fault: MpiFault) -> bool;
    /// Revoked: no call on it will succeed any more, on any rank.
    fn revoke(self);
    /// Returns whether a rank has revoked it.
    fn is_revoked(self) -> bool;
    /// The first rank known to be gone.
    fn failed_rank(self) -> Option<usize>;
    /// Gives it back to the library, unless MPI has ended.
    fn free(self);
}

/// The communicators of one rank, from the start or a repair on.
#[derive(Debug)]
pub(super) struct Members<M> {
    members: Mutex<Vec<M>>,
    /// The first rank found to be lost.
    lost: AtomicUsize,
}

impl<M: Member> Members<M> {
    pub(super) fn new() -> Self {
        Self { members: Mutex::new(Vec::new()), lost: AtomicUsize::new(NONE) }
    }

    fn members(&self) -> MutexGuard<'_, Vec<M>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A communicator that is lost with the others.
    pub(super) fn join(&self, raw: M) {
        self.members().push(raw);
        if self.lost().is_some() {
            raw.revoke();
        }
    }

    /// Gives a communicator back.
    pub(super) fn leave(&self, raw: M) {
        self.members().retain(|member| *member != raw);
        if self.lost().is_none() {
            raw.free();
        }
    }

    /// The first rank found to be lost, as its communicator numbers it.
    pub(super) fn lost(&self) -> Option<usize> {
        Some(self.lost.load(Ordering::Acquire)).filter(|&rank| rank != NONE)
    }

    /// Handles a fault on `raw`: if it means that a rank is gone, pending calls of all ranks on
    /// all members end.
    ///
    /// Collective calls that are begun and asked about were seen to end with an internal error
    /// instead of saying so.
    pub(super) fn suffer(&self, fault: MpiFault, raw: M) {
        let failed = raw.failed_rank();
        if M::is_loss(fault) || failed.is_some() || raw.is_revoked() {
            self.lose(failed.unwrap_or(0));
        }
    }

    /// Translates a fault for the callers of a communicator.
    pub(super) fn error(&self, fault: MpiFault) -> CommError {
        let library = CommError::Library { class: fault.class };
        self.lost().map_or(library, |rank| CommError::RankLost { rank })
    }

    /// A rank is gone.
    pub(super) fn lose(&self, rank: usize) {
        if self.lost.compare_exchange(NONE, rank, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.members().iter().for_each(|member| member.revoke());
        }
    }
}
