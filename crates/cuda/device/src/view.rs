//! Views of values in the memory of a device.

use std::marker::PhantomData;
use std::ops::Range;

/// Values in the memory of a device, to read.
///
/// A view keeps the memory from being freed while work is given to a stream, and no longer. Work of
/// one stream is done in order. Work of two streams on the same values is ordered by a
/// [`DeviceTicket`](crate::DeviceTicket), or not at all.
#[derive(Debug)]
pub struct DeviceView<'a, T> {
    address: u64,
    len: usize,
    lifetime: PhantomData<&'a [T]>,
}

impl<T> Clone for DeviceView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DeviceView<'_, T> {}

impl<'a, T> DeviceView<'a, T> {
    pub(crate) fn at(address: u64, len: usize) -> Self {
        Self { address, len, lifetime: PhantomData }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address of the first value, as the device knows it.
    #[must_use]
    pub fn address(&self) -> &u64 {
        &self.address
    }

    /// The same memory as bytes.
    pub(crate) fn as_bytes(&self) -> DeviceView<'a, u8> {
        DeviceView::at(self.address, self.bytes())
    }

    /// The values of `range`.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let Range { start, end } = range;
        assert!(start <= end && end <= self.len, "values {start}..{end} of {}", self.len);
        Self { address: self.address + (start * size_of::<T>()) as u64, len: end - start, lifetime: PhantomData }
    }
}

/// Values in the memory of a device, to write; as [`DeviceView`].
#[derive(Debug)]
pub struct DeviceViewMut<'a, T> {
    address: u64,
    len: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

impl<'a, T> DeviceViewMut<'a, T> {
    pub(crate) fn at(address: u64, len: usize) -> Self {
        Self { address, len, lifetime: PhantomData }
    }

    /// Number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address of the first value, as the device knows it.
    #[must_use]
    pub fn address(&self) -> &u64 {
        &self.address
    }

    /// The same values, to read.
    #[must_use]
    pub fn as_view(&self) -> DeviceView<'_, T> {
        DeviceView::at(self.address, self.len)
    }

    /// The values of `range`.
    pub fn slice(&mut self, range: Range<usize>) -> DeviceViewMut<'_, T> {
        let part = self.as_view().slice(range);
        DeviceViewMut::at(part.address, part.len)
    }

    /// The first `middle` values, and the rest.
    pub fn split_at(&mut self, middle: usize) -> [DeviceViewMut<'_, T>; 2] {
        [0..middle, middle..self.len].map(|range| {
            let part = self.as_view().slice(range);
            DeviceViewMut::at(part.address, part.len)
        })
    }

    /// The values of `range`, in place of all.
    #[must_use]
    pub fn into_slice(self, range: Range<usize>) -> Self {
        let part = self.as_view().slice(range);
        Self::at(part.address, part.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_of_a_view_begins_at_its_first_value() {
        let view = DeviceView::<f64>::at(4096, 10);
        let part = view.slice(3..7);
        assert_eq!((*part.address(), part.len(), part.bytes()), (4096 + 24, 4, 32));
        assert_eq!(*part.slice(1..4).address(), 4096 + 32);
        assert!(view.slice(10..10).is_empty());
        let mut target = DeviceViewMut::<u32>::at(64, 5);
        assert_eq!(*target.slice(2..5).address(), 72);
        assert_eq!(target.into_slice(1..2).bytes(), 4);
    }

    #[test]
    #[should_panic(expected = "values 3..11 of 10")]
    fn a_slice_beyond_a_view_is_our_mistake() {
        let _ = DeviceView::<f64>::at(4096, 10).slice(3..11);
    }
}
