//! Samples of a frame that is stored on the device: the few blocks by which the host chooses a plan
//! are gathered there, and fetched. Each block is fetched once, for all plans.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use recoup_core::{CodecError, CodecResult};
use recoup_device::{DeviceModule, DeviceView};

use super::lanes::{self, Element};
use super::sys::ValueViews;
use super::{DeviceState, QbCuda, cut_of, foreign};
use crate::qb::shape::{BlockRef, FrameShape};
use crate::qb::source::{SampledFrame, SourceBlock, SourceValues};

/// The kernel that gathers blocks, as CUDA C; that of a type and a cut is one more line.
const SOURCE: &str =
    concat!(include_str!("../qb.cuh"), include_str!("../qb_cut.cuh"), include_str!("../qb_gather.cuh"));

/// The source of the kernel that gathers blocks of a type, in a line or in tiles.
pub(super) fn source(element: &str, cut: &str) -> String {
    format!("{SOURCE}\nQB_GATHER({element}, {cut})\n")
}

/// A frame on the device, and those of its blocks that were brought near.
pub(super) struct DeviceSamples<'a, T> {
    codec: &'a QbCuda,
    views: ValueViews<'a, T>,
    near: BTreeMap<BlockPlace, HostBlock<T>>,
}

/// The place of a block in its frame: the cut, and the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BlockPlace {
    is_tiled: bool,
    index: usize,
}

impl BlockPlace {
    fn of(block: BlockRef) -> Self {
        Self { is_tiled: matches!(block.shape, FrameShape::Tiles { .. }), index: block.index }
    }
}

/// The values of a block, and those of the parent.
struct HostBlock<T> {
    values: Vec<T>,
    parent: Option<Vec<T>>,
}

impl<'a, T: Element> DeviceSamples<'a, T> {
    /// No block is near yet.
    pub(super) fn new(codec: &'a QbCuda, views: ValueViews<'a, T>) -> Self {
        Self { codec, views, near: BTreeMap::new() }
    }

    /// Brings blocks of one shape near.
    fn bring_shape(&mut self, shape: FrameShape, blocks: &[BlockRef]) -> CodecResult<()> {
        let ValueViews { values, parent } = self.views;
        let own = self.codec.gather(shape, values, blocks)?;
        let parents = parent.map(|parent| self.codec.gather(shape, parent, blocks)).transpose()?;
        let mut parents = parents.into_iter().flatten();
        for (block, values) in blocks.iter().zip(own) {
            self.near.insert(BlockPlace::of(*block), HostBlock { values, parent: parents.next() });
        }
        Ok(())
    }
}

impl<T: Element> SampledFrame<T> for DeviceSamples<'_, T> {
    fn bring(&mut self, blocks: &[BlockRef]) -> CodecResult<()> {
        let is_far = |block: &BlockRef| !self.near.contains_key(&BlockPlace::of(*block));
        let far: BTreeMap<BlockPlace, BlockRef> =
            blocks.iter().filter(|block| is_far(block)).map(|block| (BlockPlace::of(*block), *block)).collect();
        let far: Vec<BlockRef> = far.into_values().collect();
        for blocks in far.chunk_by(|a, b| BlockPlace::of(*a).is_tiled == BlockPlace::of(*b).is_tiled) {
            self.bring_shape(blocks[0].shape, blocks)?;
        }
        Ok(())
    }

    fn block(&self, block: BlockRef) -> SourceBlock<'_, T> {
        let HostBlock { values, parent } = &self.near[&BlockPlace::of(block)];
        SourceBlock { block: block.alone(), source: SourceValues { values, parent: parent.as_deref() } }
    }
}

impl QbCuda {
    /// Fetches the values of some blocks of a frame.
    fn gather<T: Element>(
        &self,
        shape: FrameShape,
        values: DeviceView<'_, T>,
        blocks: &[BlockRef],
    ) -> Result<Vec<Vec<T>>, CodecError> {
        let cut = cut_of(shape);
        let mut state = self.state();
        let DeviceState { gathering, lanes, .. } = &mut *state;
        let mut run = || {
            let kernel = match gathering.entry([T::NAME, cut]) {
                Entry::Occupied(loaded) => loaded.into_mut(),
                Entry::Vacant(vacant) => {
                    let source = source(T::NAME, cut);
                    vacant.insert(DeviceModule::load(&self.device, &source, "qb.cuh")?.kernel("qb_gather")?)
                }
            };
            lanes::gather(&self.device, lanes, kernel, values, blocks)
        };
        run().map_err(|error| foreign(&error))
    }
}
