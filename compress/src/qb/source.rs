//! Values to be coded, next to those of the parent at the same places.

use super::kernels::GROUP;

/// Values of a frame or a block, and those of the parent at the same places.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceValues<'a, T> {
    pub(super) values: &'a [T],
    pub(super) parent: Option<&'a [T]>,
}

impl<'a, T> SourceValues<'a, T> {
    /// Whole groups; what is left behind them is not among them.
    pub(super) fn groups(self) -> impl Iterator<Item = SourceGroup<'a, T>> {
        let parents = self.parent.unwrap_or(&[]).as_chunks::<GROUP>().0;
        let values = self.values.as_chunks::<GROUP>().0.iter().enumerate();
        values.map(|(g, values)| SourceGroup { values, parent: parents.get(g) })
    }
}

/// A group of values, and of those of the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceGroup<'a, T> {
    pub(super) values: &'a [T; GROUP],
    pub(super) parent: Option<&'a [T; GROUP]>,
}
