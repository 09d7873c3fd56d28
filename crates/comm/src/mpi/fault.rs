//! The failures that the library reports.

/// MPI said no: the class of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MpiFault {
    /// `MPI_ERR_...`.
    pub(super) class: i32,
}
