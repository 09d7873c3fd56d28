//! Frozen values of the host, as the pipeline takes them.

use std::any::Any;

use recoup_core::{AfarError, AfarErrorKind, ElementType, HeldValues, Values, ValuesMut};

use crate::memory::FrozenMemory;

/// Values of the host as they were when they were frozen, or room for as many.
///
/// Values are fetched once: where a fetch covers a whole zone, the owner may write there again, and
/// a second fetch of the zone is an error. Parts of a zone may be fetched again until then. The
/// frozen copy ends when it is dropped.
#[derive(Debug)]
pub struct FrozenValues {
    element: ElementType,
    /// Elements, padding among them.
    len: usize,
    rest: Resting,
}

/// The place where the values are.
#[derive(Debug)]
enum Resting {
    /// In the owner's memory and in duplicates.
    Owner(FrozenMemory),
    /// In memory of their own.
    Own(Vec<u8>),
}

impl FrozenValues {
    pub(crate) fn new(frozen: FrozenMemory, element: ElementType, padded_len: usize) -> Self {
        let len = frozen.bytes() / element.size();
        assert!(padded_len >= len, "{padded_len} values, padding among them, of {len}");
        Self { element, len: padded_len, rest: Resting::Owner(frozen) }
    }

    /// Makes room for `len` values, which are zeros.
    #[must_use]
    pub fn room(element: ElementType, len: usize) -> Self {
        Self { element, len, rest: Resting::Own(vec![0; len * element.size()]) }
    }

    /// Copies bytes from `start` on.
    fn fetch_bytes(&self, start: usize, target: &mut [u8]) -> Result<(), AfarError> {
        self.check(start, target.len())?;
        match &self.rest {
            Resting::Own(bytes) => target.copy_from_slice(&bytes[start..start + target.len()]),
            Resting::Owner(frozen) => {
                let real = frozen.bytes().saturating_sub(start).min(target.len());
                let (values, padding) = target.split_at_mut(real);
                if !values.is_empty() {
                    frozen.fetch(start, values).map_err(|zone| self.given(zone))?;
                }
                padding.chunks_exact_mut(self.element.size()).for_each(|value| {
                    value.copy_from_slice(&frozen.last()[..value.len()]);
                });
            }
        }
        Ok(())
    }

    fn check(&self, start: usize, bytes: usize) -> Result<(), AfarError> {
        let size = self.element.size();
        if start.checked_add(bytes).is_some_and(|end| end <= self.len * size) {
            return Ok(());
        }
        Err(failed(format!("values {} and {} more of {}", start / size, bytes / size, self.len)))
    }

    fn given(&self, zone: std::ops::Range<usize>) -> AfarError {
        let size = self.element.size();
        failed(format!("values {} to {} were fetched before", zone.start / size, zone.end / size - 1))
    }

    fn other_type(&self, found: ElementType) -> AfarError {
        failed(format!("values of type {}, found {found}", self.element))
    }
}

fn failed(message: String) -> AfarError {
    AfarError { message, kind: AfarErrorKind::Failed }
}

impl HeldValues for FrozenValues {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.len
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), AfarError> {
        let element = target.as_values().element();
        if element != self.element {
            return Err(self.other_type(element));
        }
        self.fetch_bytes(start.saturating_mul(element.size()), bytes_mut(target))
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), AfarError> {
        if source.element() != self.element {
            return Err(self.other_type(source.element()));
        }
        let start = start.saturating_mul(self.element.size());
        let source = bytes(source);
        self.check(start, source.len())?;
        if let Resting::Owner(_) = &self.rest {
            let mut own = vec![0; self.len * self.element.size()];
            self.fetch_bytes(0, &mut own)?;
            self.rest = Resting::Own(own);
        }
        if let Resting::Own(own) = &mut self.rest {
            own[start..start + source.len()].copy_from_slice(source);
        }
        Ok(())
    }

    fn is_alike(&self, other: &dyn HeldValues) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| other.element == self.element && other.len == self.len)
    }

    fn room(&self) -> Result<Box<dyn HeldValues>, AfarError> {
        Ok(Box::new(Self::room(self.element, self.len)))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// The memory of values.
fn bytes(values: Values<'_>) -> &[u8] {
    match values {
        Values::F64(values) => bytemuck::cast_slice(values),
        Values::F32(values) => bytemuck::cast_slice(values),
        Values::I64(values) => bytemuck::cast_slice(values),
        Values::Bytes(values) => values,
    }
}

/// The memory of values to be overwritten.
fn bytes_mut(values: ValuesMut<'_>) -> &mut [u8] {
    match values {
        ValuesMut::F64(values) => bytemuck::cast_slice_mut(values),
        ValuesMut::F32(values) => bytemuck::cast_slice_mut(values),
        ValuesMut::I64(values) => bytemuck::cast_slice_mut(values),
        ValuesMut::Bytes(values) => values,
    }
}
