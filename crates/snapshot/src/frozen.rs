//! Frozen values of the host, as the pipeline takes them.

use std::any::Any;

use recoup_core::{DeviceSnapshot, DeviceValuesError, DeviceValuesErrorKind, ElementType, Values, ValuesMut};

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
    fn fetch_bytes(&self, start: usize, target: &mut [u8]) -> Result<(), DeviceValuesError> {
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

    fn check(&self, start: usize, bytes: usize) -> Result<(), DeviceValuesError> {
        let size = self.element.size();
        if start.checked_add(bytes).is_some_and(|end| end <= self.len * size) {
            return Ok(());
        }
        Err(failed(format!("values {} and {} more of {}", start / size, bytes / size, self.len)))
    }

    fn given(&self, zone: std::ops::Range<usize>) -> DeviceValuesError {
        let size = self.element.size();
        failed(format!("values {} to {} were fetched before", zone.start / size, zone.end / size - 1))
    }

    fn other_type(&self, found: ElementType) -> DeviceValuesError {
        failed(format!("values of type {}, found {found}", self.element))
    }
}

fn failed(message: String) -> DeviceValuesError {
    DeviceValuesError { message, kind: DeviceValuesErrorKind::Failed }
}

impl DeviceSnapshot for FrozenValues {
    fn element(&self) -> ElementType {
        self.element
    }

    fn len(&self) -> usize {
        self.len
    }

    fn fetch(&self, start: usize, target: ValuesMut<'_>) -> Result<(), DeviceValuesError> {
        let element = target.as_values().element();
        if element != self.element {
            return Err(self.other_type(element));
        }
        self.fetch_bytes(start.saturating_mul(element.size()), bytes_mut(target))
    }

    fn put(&mut self, start: usize, source: Values<'_>) -> Result<(), DeviceValuesError> {
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

    fn is_alike(&self, other: &dyn DeviceSnapshot) -> bool {
        let other = other.as_any().downcast_ref::<Self>();
        other.is_some_and(|other| other.element == self.element && other.len == self.len)
    }

    fn alloc(&self) -> Result<Box<dyn DeviceSnapshot>, DeviceValuesError> {
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

#[cfg(test)]
mod tests {
    use recoup_core::Zones;
    use recoup_pages::PageSize;

    use super::*;
    use crate::TouchedRegion;

    /// Values of two zones and a half.
    const LEN: usize = 20_480;
    /// Values of a zone.
    const ZONE: usize = 8192;

    fn counted() -> TouchedRegion<f64> {
        let mut region = TouchedRegion::zeros(LEN, PageSize::Small).unwrap();
        region.iter_mut().enumerate().for_each(|(index, value)| *value = index as f64);
        region
    }

    fn fetched(held: &dyn DeviceSnapshot, start: usize, len: usize) -> Result<Vec<f64>, DeviceValuesError> {
        let mut values = vec![f64::NAN; len];
        held.fetch(start, ValuesMut::F64(&mut values)).map(|()| values)
    }

    #[test]
    fn a_zone_is_fetched_whole_once_and_in_parts_before() {
        let mut region = counted();
        let held = region.freeze(LEN).unwrap();
        region.write(5..6).fill(-1.0);
        for _ in 0..2 {
            assert_eq!(fetched(held.as_ref(), 4, 3), Ok(vec![4.0, 5.0, 6.0]));
            assert_eq!(fetched(held.as_ref(), ZONE, 1), Ok(vec![ZONE as f64]));
        }
        fetched(held.as_ref(), 0, 2 * ZONE).unwrap();
        let error = fetched(held.as_ref(), ZONE + 7, 1).unwrap_err();
        assert_eq!(error.message, "values 8192 to 16383 were fetched before");
        fetched(held.as_ref(), 2 * ZONE, LEN - 2 * ZONE).unwrap();
        assert_eq!(
            fetched(held.as_ref(), LEN - 1, 1).unwrap_err().message,
            "values 16384 to 20479 were fetched before"
        );
    }

    #[test]
    fn padding_repeats_the_last_frozen_value_whenever_it_is_fetched() {
        let mut region = counted();
        let held = region.freeze(LEN + 2).unwrap();
        region.write(0..LEN).fill(-1.0);
        fetched(held.as_ref(), 0, LEN).unwrap();
        let last = LEN as f64 - 1.0;
        assert_eq!(fetched(held.as_ref(), LEN, 2), Ok(vec![last; 2]));
        assert!(fetched(held.as_ref(), LEN, 3).is_err());
    }

    #[test]
    fn two_copies_are_frozen_at_once_and_a_third_when_one_has_ended() {
        let mut region = counted();
        let first = region.freeze(LEN).unwrap();
        region.write(0..1).fill(-1.0);
        let second = region.freeze(LEN).unwrap();
        region.write(0..1).fill(-2.0);
        assert!(region.freeze(LEN).is_none());
        assert_eq!(fetched(second.as_ref(), 0, 1), Ok(vec![-1.0]));
        assert_eq!(fetched(first.as_ref(), 0, 1), Ok(vec![0.0]));
        drop(first);
        let third = region.freeze(LEN).unwrap();
        assert_eq!(fetched(third.as_ref(), 0, 1), Ok(vec![-2.0]));
    }

    #[test]
    fn a_copy_outlives_its_owner() {
        let region = counted();
        let held = region.freeze(LEN).unwrap();
        let expected = region.to_vec();
        drop(region);
        assert_eq!(fetched(held.as_ref(), 0, LEN), Ok(expected));
    }

    #[test]
    fn values_that_are_put_replace_frozen_ones_and_not_the_owner_s() {
        let region = counted();
        let mut held = region.freeze(LEN + 1).unwrap();
        held.put(LEN, Values::F64(&[7.0])).unwrap();
        held.put(0, Values::F64(&[8.0])).unwrap();
        let mut expected = region.to_vec();
        expected.push(7.0);
        expected[0] = 8.0;
        // In memory of their own, values are fetched as often as wanted.
        for _ in 0..2 {
            assert_eq!(fetched(held.as_ref(), 0, LEN + 1), Ok(expected.clone()));
        }
        assert_eq!(region[0], 0.0);
        let mut room = held.alloc().unwrap();
        assert!(room.is_alike(held.as_ref()) && held.is_alike(room.as_ref()));
        room.put(3, Values::F64(&expected[..2])).unwrap();
        assert_eq!(fetched(room.as_ref(), 2, 3), Ok(vec![0.0, 8.0, 1.0]));
        assert!(room.put(LEN, Values::F64(&[0.0; 2])).is_err());
        assert!(room.put(0, Values::I64(&[0])).is_err());
    }
}
