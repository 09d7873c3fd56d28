//! Vectors of a solve on a device.
//!
//! Promises: whoever overwrites values asks for a view to do so, and is noted.

use std::ops::Range;

use recoup_core::{HeldValues, LastWrite, Lent, LentMut, Mark, Zones};
use recoup_device::{DeviceVec, DeviceVector, DeviceView, DeviceViewMut, Stream};

/// A vector of a solve: doubles on a device, and the last write to them.
#[derive(Debug)]
pub struct DeviceDoubles {
    vector: DeviceVector<f64>,
    last_write: LastWrite,
}

impl DeviceDoubles {
    /// A vector of `values`, on which `stream` works.
    pub(super) fn new(values: DeviceVec<f64>, stream: Stream) -> Self {
        Self { vector: DeviceVector { values, stream }, last_write: LastWrite::to_new_memory() }
    }

    /// The values.
    pub(super) fn view(&self) -> DeviceView<'_, f64> {
        self.vector.values.view()
    }

    /// The values, to be overwritten by what is next in the stream.
    pub(super) fn view_mut(&mut self) -> DeviceViewMut<'_, f64> {
        self.last_write.note();
        self.vector.values.view_mut()
    }

    /// Lends the values to be saved.
    pub(super) fn lend(&self) -> Lent<'_> {
        Lent::Afar(&self.vector)
    }

    /// Lends the values to be overwritten by a restore.
    pub(super) fn lend_mut(&mut self) -> LentMut<'_> {
        self.last_write.note();
        LentMut::Afar(&mut self.vector)
    }
}

impl AsRef<DeviceVec<f64>> for DeviceDoubles {
    fn as_ref(&self) -> &DeviceVec<f64> {
        &self.vector.values
    }
}

impl Zones for DeviceDoubles {
    fn mark(&self) -> Mark {
        self.last_write.mark()
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        self.last_write.written_since(since, self.vector.values.len())
    }

    fn freeze(&self, _padded_len: usize) -> Option<Box<dyn HeldValues>> {
        None
    }
}
