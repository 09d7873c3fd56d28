//! Values in the memory of a device, lent to a pipeline where they rest.
//!
//! A [`DeviceVector`] is values and the stream that works on them. A frozen copy of it, a
//! [`DeviceHeld`], is the next work of that stream.

use bytemuck::Pod;
use recoup_core::{Afar, AfarError, AfarErrorKind, ElementType, HeldValues, Values, ValuesMut};

use crate::held::other_place;
use crate::{DeviceError, DeviceHeld, DeviceVec, Stream};

/// A type of values that a pipeline takes.
pub trait DeviceElement: Pod + Send + Sync {
    /// The type, as the pipeline knows it.
    const ELEMENT: ElementType;

    /// Returns the values of a slice of this type.
    fn values(source: Values<'_>) -> Option<&[Self]>;

    /// Returns the values of a slice of this type, to be overwritten.
    fn values_mut(target: ValuesMut<'_>) -> Option<&mut [Self]>;
}

/// Defines the element types, a line each.
macro_rules! elements {
    ($($type:ty => $variant:ident),+ $(,)?) => {$(
        impl DeviceElement for $type {
            const ELEMENT: ElementType = ElementType::$variant;

            fn values(source: Values<'_>) -> Option<&[Self]> {
                if let Values::$variant(values) = source { Some(values) } else { None }
            }

            fn values_mut(target: ValuesMut<'_>) -> Option<&mut [Self]> {
                if let ValuesMut::$variant(values) = target { Some(values) } else { None }
            }
        }
    )+};
}

elements!(f64 => F64, f32 => F32, i64 => I64, u8 => Bytes);

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
        Ok(Box::new(DeviceHeld::<T>::new(self.stream.device(), padded_len)?))
    }

    fn overwrite(&mut self, held: &dyn HeldValues) -> Result<(), AfarError> {
        let held: &DeviceHeld<T> = held.as_any().downcast_ref().ok_or_else(other_place)?;
        held.copy_to(&mut self.values.view_mut(), &self.stream)
    }
}

/// Turns an error of a device into one of a place, by what can be done about it.
#[must_use]
pub fn afar_error(error: DeviceError) -> AfarError {
    let kind = match &error {
        error if error.is_out_of_memory() => AfarErrorKind::NoRoom,
        error if error.is_lost() => AfarErrorKind::Lost,
        _ => AfarErrorKind::Failed,
    };
    AfarError { message: error.to_string(), kind }
}
