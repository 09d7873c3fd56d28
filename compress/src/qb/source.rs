//! Values to be coded, next to those of the parent at the same places.

use recoup_core::CodecResult;

use super::kernels::GROUP;
use super::shape::BlockRef;

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

/// A block, and the values it is cut from: those of its frame, or its own alone, as a frame of one
/// block. Its bytes are the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceBlock<'a, T> {
    pub(super) block: BlockRef,
    pub(super) source: SourceValues<'a, T>,
}

/// A frame that the choice of a plan takes samples of, wherever its values are stored.
pub(super) trait SampledFrame<T>: Sync {
    /// Brings blocks near, so that [`SampledFrame::block`] may be asked for them.
    fn bring(&mut self, blocks: &[BlockRef]) -> CodecResult<()>;

    /// Returns a block that was brought near, with the values of the parent if there is one.
    fn block(&self, block: BlockRef) -> SourceBlock<'_, T>;
}

/// Values in the memory of the host are near.
impl<T: Copy + Sync> SampledFrame<T> for SourceValues<'_, T> {
    fn bring(&mut self, _: &[BlockRef]) -> CodecResult<()> {
        Ok(())
    }

    fn block(&self, block: BlockRef) -> SourceBlock<'_, T> {
        SourceBlock { block, source: *self }
    }
}

/// A group of values, and of those of the parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceGroup<'a, T> {
    pub(super) values: &'a [T; GROUP],
    pub(super) parent: Option<&'a [T; GROUP]>,
}
