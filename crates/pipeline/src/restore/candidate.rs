//! A version that is read, but has not overwritten any variable yet.

use recoup_core::{Difference, FrameRecord, Manifest, Role, Scheme};

use crate::encode::Decoded;

/// The values of one version on this rank, decoded and compared, but not yet in the
/// owners' variables.
pub(crate) struct Candidate {
    pub(crate) manifest: Manifest,
    pub(crate) variables: Vec<Decoded>,
    /// The variables it lacks, which keep the program's values.
    pub(crate) defaults: Vec<String>,
    /// The next version may be coded against it: every rank has what it wrote, under its name.
    pub(crate) is_own: bool,
    /// The frames read to restore it, of all ranks, where that is charged.
    pub(crate) frames_read: Vec<FrameRecord>,
    /// The difference between its problem and the one at hand.
    pub(crate) difference: Option<Difference>,
    /// The method that saved it, where it is not the solver's.
    pub(crate) other_method: Option<String>,
}

impl Candidate {
    /// Returns what the next lossy version may be coded against: the iterate and the directions of
    /// a lossy version of this problem.
    pub(crate) fn into_parents(self) -> Vec<Decoded> {
        if !self.is_own || self.difference.is_some() || self.manifest.scheme != Scheme::Lossy {
            return Vec::new();
        }
        let is_lossy = |d: &Decoded| matches!(d.record.role, Role::Iterate | Role::Direction | Role::Recomputed { .. });
        self.variables.into_iter().filter(is_lossy).collect()
    }
}
