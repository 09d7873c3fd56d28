//! Values in the memory of a device, lent to a pipeline where they are stored.
//!
//! A [`DeviceVector`] is values and the stream that works on them. A frozen copy of it is the next
//! work of that stream: a [`VectorSnapshot`], or a [`DeviceFrozen`], which is none until the vector
//! is overwritten. All writes go through [`DeviceVector::write`], so the vector knows of them.

use std::ops::Range;
use std::sync::Arc;

use recoup_core::{
    DeviceSnapshot, DeviceValues, DeviceValuesError, DeviceValuesErrorKind, ElementType, LastWrite, Mark,
    SnapshotAllocator, Zones,
};

use crate::freezer::VectorFreezer;
use crate::frozen::DeviceFrozen;
use crate::vector_snapshot::{device_values_error, other_place};
use crate::{
    DeviceElement, DeviceError, DeviceVec, DeviceView, DeviceViewMut, FreezeWay, Stream, VectorSnapshot, ZoneRing,
};

/// A vector of a solver on a device: its values, and the stream that works on them. A pipeline
/// takes it as [`DeviceValues`].
#[derive(Debug)]
pub struct DeviceVector<T> {
    values: DeviceVec<T>,
    stream: Stream,
    /// The copies frozen in it; `None` where every frozen copy is a copy from the beginning.
    freezer: Option<Arc<VectorFreezer>>,
    last_write: LastWrite,
}

impl<T> DeviceVector<T> {
    /// Makes a vector that is frozen by copies alone.
    #[must_use]
    pub fn new(values: DeviceVec<T>, stream: Stream) -> Self {
        Self { values, stream, freezer: None, last_write: LastWrite::to_new_memory() }
    }

    /// Makes a vector that is frozen as the settings of `ring` say.
    #[must_use]
    pub fn zoned(values: DeviceVec<T>, stream: Stream, ring: &Arc<ZoneRing>) -> Self {
        let freezer = Some(Arc::new(VectorFreezer::new(ring, values.view().as_bytes())));
        Self { values, stream, freezer, last_write: LastWrite::to_new_memory() }
    }

    /// Returns the stream in which the owner works on the values.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the values, to read.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_, T> {
        self.values.view()
    }

    /// Returns the values, to be overwritten by the next work of the stream. What versions still
    /// need of them is saved before that work.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the driver refuses.
    pub fn write(&mut self) -> Result<DeviceViewMut<'_, T>, DeviceError> {
        if let Some(freezer) = &self.freezer {
            freezer.before_write(&self.stream)?;
        }
        self.last_write.note();
        Ok(self.values.view_mut())
    }

    /// Overwrites the values with those of a slice, which has the same length. Waits for them.
    ///
    /// # Errors
    /// [`DeviceError::Driver`], also for an error of earlier work of the stream.
    pub fn upload(&mut self, source: &[T]) -> Result<(), DeviceError>
    where
        T: DeviceElement,
    {
        let stream = self.stream.clone();
        stream.upload(source, &mut self.write()?)
    }

    /// Copies the values to a slice, which has the same length. Waits for them.
    ///
    /// # Errors
    /// As [`DeviceVector::upload`].
    pub fn download(&self, target: &mut [T]) -> Result<(), DeviceError>
    where
        T: DeviceElement,
    {
        self.stream.download(self.view(), target)
    }
}

impl<T> AsRef<DeviceVec<T>> for DeviceVector<T> {
    fn as_ref(&self) -> &DeviceVec<T> {
        &self.values
    }
}

/// A vector freezes where it is stored, by [`DeviceValues::snapshot`].
impl<T: DeviceElement> Zones for DeviceVector<T> {
    fn mark(&self) -> Mark {
        self.last_write.mark()
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        self.last_write.written_since(since, self.values.len())
    }

    fn freeze(&self, _padded_len: usize) -> Option<Box<dyn DeviceSnapshot>> {
        None
    }
}

impl<T> Drop for DeviceVector<T> {
    fn drop(&mut self) {
        // The values wait for the device before they give the memory back.
        if let Some(freezer) = &self.freezer {
            drop(freezer.detach());
        }
    }
}

impl<T: DeviceElement> DeviceValues for DeviceVector<T> {
    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn snapshot(
        &self,
        padded_len: usize,
        earlier: Option<Box<dyn DeviceSnapshot>>,
    ) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        let Some(freezer) = &self.freezer else {
            return VectorSnapshot::frozen(self.view(), padded_len, &self.stream, earlier);
        };
        let host = earlier.as_deref().and_then(DeviceFrozen::<T>::host_memory_of);
        if freezer.ring().settings().way == FreezeWay::Copy {
            match VectorSnapshot::frozen(self.view(), padded_len, &self.stream, earlier) {
                Err(error) if error.kind == DeviceValuesErrorKind::NoRoom => (),
                held => return held,
            }
        } else {
            drop(earlier);
        }
        Ok(Box::new(DeviceFrozen::<T>::freeze(freezer, self.values.len(), padded_len, &self.stream, host)?))
    }

    fn alloc(&self, padded_len: usize) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
        self.stream.device().alloc(T::ELEMENT, padded_len)
    }

    fn allocator(&self) -> Option<Arc<dyn SnapshotAllocator>> {
        let is_copied = self.freezer.as_ref().is_none_or(|freezer| freezer.ring().settings().way == FreezeWay::Copy);
        is_copied.then(|| Arc::new(self.stream.device().clone()) as Arc<dyn SnapshotAllocator>)
    }

    fn overwrite(&mut self, held: &dyn DeviceSnapshot) -> Result<(), DeviceValuesError> {
        let held: &VectorSnapshot<T> = held.as_any().downcast_ref().ok_or_else(other_place)?;
        let stream = self.stream.clone();
        held.copy_to(&mut self.write().map_err(device_values_error)?, &stream)
    }
}
