//! A vector on a device, lent to the pipeline where it rests.

use std::any::Any;

use recoup_core::{Afar, AfarError, AfarErrorKind, ElementType, HeldValues, Values, ValuesMut};
use recoup_device::{DeviceError, DeviceVec, DeviceView, DeviceViewMut, Stream};

use super::error::afar_error;

/// Doubles in the memory of a device, and the stream whose work changes them.
#[derive(Debug)]
pub struct DeviceVector {
    values: DeviceVec<f64>,
    stream: Stream,
}

impl DeviceVector {
    /// `n` zeros.
    ///
    /// # Errors
    /// [`DeviceError::Driver`] when the device has no more.
    pub fn zeros(stream: &Stream, n: usize) -> Result<Self, DeviceError> {
        Ok(Self { values: DeviceVec::zeros(stream, n)?, stream: stream.clone() })
    }

    /// The values, to read.
    #[must_use]
    pub fn view(&self) -> DeviceView<'_, f64> {
        self.values.view()
    }

    /// The values, to write.
    pub fn view_mut(&mut self) -> DeviceViewMut<'_, f64> {
        self.values.view_mut()
    }
}

/// A frozen copy of a [`DeviceVector`]. It is made and read in the stream of its owner, so that
/// every use comes after those before.
struct HeldVector {
    values: DeviceVec<f64>,
    stream: Stream,
}

impl DeviceVector {
    fn held(&self) -> Result<HeldVector, AfarError> {
        let values = DeviceVec::new(self.stream.device(), self.values.len());
        Ok(HeldVector { values: values.map_err(|error| afar_error(&error))?, stream: self.stream.clone() })
    }
}

impl Afar for DeviceVector {
    fn element(&self) -> ElementType {
        ElementType::F64
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn hold(&self, earlier: Option<Box<dyn HeldValues>>) -> Result<Box<dyn HeldValues>, AfarError> {
        let fits = |held: &HeldVector| held.values.len() == self.values.len();
        let earlier = earlier.filter(|held| held.as_any().downcast_ref().is_some_and(fits));
        let mut held = match earlier {
            Some(earlier) => earlier,
            None => Box::new(self.held()?),
        };
        let target = held.as_any_mut().downcast_mut::<HeldVector>().expect("the copy is of a device");
        let copied = self.stream.copy(self.values.view(), &mut target.values.view_mut());
        copied.map_err(|error| afar_error(&error))?;
        Ok(held)
    }

    fn room(&self) -> Result<Box<dyn HeldValues>, AfarError> {
        Ok(Box::new(self.held()?))
    }

    fn overwrite(&mut self, held: &dyn HeldValues) -> Result<(), AfarError> {
        let Some(held) = held.as_any().downcast_ref::<HeldVector>() else {
            let message = "the values to overwrite a vector of a device with are not on one".to_owned();
            return Err(AfarError { message, kind: AfarErrorKind::Failed });
        };
        let copied = self.stream.copy(held.values.view(), &mut self.values.view_mut());
        copied.map_err(|error| afar_error(&error))
    }
}

/// The doubles among values.
fn doubles<'v>(values: Values<'v>) -> Result<&'v [f64], AfarError> {
    match values {
        Values::F64(values) => Ok(values),
        other => Err(other_element(other.element())),
    }
}

fn other_element(element: ElementType) -> AfarError {
    let message = format!("a vector of a device holds f64, not {element}");
    AfarError { message, kind: AfarErrorKind::Failed }
}

impl HeldValues for HeldVector {
    fn element(&self) -> ElementType {
        ElementType::F64
    }

    fn len(&self) -> usize {
        self.values.len()
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), AfarError> {
        let target = match target {
            ValuesMut::F64(target) => target,
            other => return Err(other_element(other.as_values().element())),
        };
        let source = self.values.slice(start..start + target.len());
        self.stream.download(source, target).map_err(|error| afar_error(&error))
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), AfarError> {
        let source = doubles(source)?;
        let mut target = self.values.slice_mut(start..start + source.len());
        self.stream.upload(source, &mut target).map_err(|error| afar_error(&error))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
