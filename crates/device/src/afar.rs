//! Values in the memory of a device, lent to a pipeline where they rest.
//!
//! A [`DeviceVector`] is values and the stream that works on them. A frozen copy of it, a
//! [`DeviceHeld`], is the next work of that stream.

use std::sync::Arc;

use recoup_core::{Afar, AfarError, ElementType, HeldRooms, HeldValues};

use crate::held::other_place;
use crate::{DeviceElement, DeviceHeld, DeviceVec, Stream};

/// A vector of a solver on a device: its values, and the stream that works on them. A pipeline
/// takes it as [`Afar`].
#[derive(Debug)]
pub struct DeviceVector<T> {
    /// The values.
    pub values: DeviceVec<T>,
    /// The stream in which the owner works on them.
    pub stream: Stream,
}

impl<T> AsRef<DeviceVec<T>> for DeviceVector<T> {
    fn as_ref(&self) -> &DeviceVec<T> {
        &self.values
    }
}

impl<T: DeviceElement> Afar for DeviceVector<T> {
    fn element(&self) -> ElementType {
        T::ELEMENT
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn hold(&self, padded_len: usize, earlier: Option<Box<dyn HeldValues>>) -> Result<Box<dyn HeldValues>, AfarError> {
        DeviceHeld::frozen(self.values.view(), padded_len, &self.stream, earlier)
    }

    fn room(&self, padded_len: usize) -> Result<Box<dyn HeldValues>, AfarError> {
        self.stream.device().room(T::ELEMENT, padded_len)
    }

    fn rooms(&self) -> Option<Arc<dyn HeldRooms>> {
        Some(Arc::new(self.stream.device().clone()))
    }

    fn overwrite(&mut self, held: &dyn HeldValues) -> Result<(), AfarError> {
        let held: &DeviceHeld<T> = held.as_any().downcast_ref().ok_or_else(other_place)?;
        held.copy_to(&mut self.values.view_mut(), &self.stream)
    }
}
