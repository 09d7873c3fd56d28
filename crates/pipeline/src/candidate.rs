//! A version that is read, but not yet given out.

use recoup_core::{Difference, FrameRecord, Manifest};

use crate::chain::Decoded;

/// The values of one version on this rank, decoded and compared but not yet given out.
pub(crate) struct Candidate {
    pub(crate) manifest: Manifest,
    pub(crate) variables: Vec<Decoded>,
    /// The next version may be coded against it: every rank has what it wrote.
    pub(crate) is_own: bool,
    /// What is read to restore it, of all ranks, where that is charged.
    pub(crate) frames_read: Vec<FrameRecord>,
    /// How its problem differs from the one at hand.
    pub(crate) difference: Option<Difference>,
    /// The method that saved it, where it is not the solver's.
    pub(crate) other_method: Option<String>,
}
