//! The parent of a frame, as values of one type.

use recoup_core::Parent;

use crate::scalar::Scalar;

/// A parent whose values are of the type to be coded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypedParent<'a, T> {
    /// The decoded values.
    pub(crate) values: &'a [T],
    /// The first bytes of the hash of the parent's payload.
    pub(crate) hash: [u8; 16],
}

impl<'a, T: Scalar> TypedParent<'a, T> {
    /// The parent, if there is one and its values are of this type.
    pub(crate) fn of(parent: Option<Parent<'a>>) -> Option<Self> {
        let parent = parent?;
        Some(Self { values: T::of(parent.values)?, hash: parent.hash })
    }
}
