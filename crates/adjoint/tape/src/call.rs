//! The calls of a program, as a policy sees them.

use crate::work::StateId;

/// The call in which the program waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgramCall {
    pub(crate) kind: CallKind,
    /// Its copy is under way.
    pub(crate) is_copying: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    Push(StateId),
    Pop(StateId),
    Peek(StateId),
    Keep,
}

impl CallKind {
    /// Returns the state that the program reads.
    pub(crate) fn reads(self) -> Option<StateId> {
        match self {
            Self::Pop(id) | Self::Peek(id) => Some(id),
            Self::Push(_) | Self::Keep => None,
        }
    }
}
