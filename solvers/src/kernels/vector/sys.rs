//! Vectors that are frozen without a copy: writers ask their zones first, row by row.
//!
//! A vector and its frozen copies share memory. Whoever writes has a raw pointer to the whole, and
//! makes slices only of rows that the table of zones was asked about: a copier may be reading the
//! others.
#![expect(unsafe_code, reason = "lends rows of one memory to writers, while copiers read others")]

use std::ops::Range;
use std::sync::Arc;

use recoup_core::{DeviceSnapshot, ElementType, Mark, Values, ValuesMut, Zones};
use recoup_snapshot::{TouchedZones, ZONE_BYTES, ZoneMemory};

use crate::Pool;
use crate::kernels::simd::pack::Half;
use crate::kernels::sys::{AlignedBuffer, Disjoint, Plain, RowSlices};

/// Rows that a writer takes at a time while a frozen copy is drained: those of a zone.
const fn zone_rows<T>() -> usize {
    ZONE_BYTES / size_of::<T>()
}

/// Numbers that a [`Vector`] can hold.
pub trait VectorElement: Plain {
    /// Their type in a version: a number is one element of it, or several.
    const TYPE: ElementType;

    /// Lends numbers to be saved.
    fn lend(numbers: &[Self]) -> Values<'_>;

    /// Lends numbers to be restored.
    fn lend_mut(numbers: &mut [Self]) -> ValuesMut<'_>;
}

impl VectorElement for f64 {
    const TYPE: ElementType = ElementType::F64;

    fn lend(numbers: &[Self]) -> Values<'_> {
        Values::F64(numbers)
    }

    fn lend_mut(numbers: &mut [Self]) -> ValuesMut<'_> {
        ValuesMut::F64(numbers)
    }
}

impl VectorElement for f32 {
    const TYPE: ElementType = ElementType::F32;

    fn lend(numbers: &[Self]) -> Values<'_> {
        Values::F32(numbers)
    }

    fn lend_mut(numbers: &mut [Self]) -> ValuesMut<'_> {
        ValuesMut::F32(numbers)
    }
}

impl VectorElement for Half {
    const TYPE: ElementType = ElementType::Bytes;

    fn lend(numbers: &[Self]) -> Values<'_> {
        Values::Bytes(numbers.as_flattened())
    }

    fn lend_mut(numbers: &mut [Self]) -> ValuesMut<'_> {
        ValuesMut::Bytes(numbers.as_flattened_mut())
    }
}

/// `n` values in aligned, staggered memory in huge pages, zero at first. Use it as a slice.
///
/// It sees all writes to its values: to lend it as a mutable slice counts as a write to all of
/// them, so loops take the slice first. Passes of a pool take [`Vector::rows_mut`].
pub struct Vector<T: VectorElement = f64> {
    memory: Arc<VectorBuffer<T>>,
    zones: TouchedZones,
}

/// The memory of a vector, which lives as long as a frozen copy of it.
struct VectorBuffer<T: VectorElement>(AlignedBuffer<T>);

// SAFETY: the memory is allocated as long as this lives, and zeros at first. It is shared, so only
// `Vector` lends it to be written, as `RowsMut` or as a slice, after `TouchedZones::before_write`.
// Both borrow the vector exclusively, which leaves no room for `freeze`.
unsafe impl<T: VectorElement> ZoneMemory for VectorBuffer<T> {
    fn bytes(&self) -> *const [u8] {
        std::ptr::slice_from_raw_parts(self.0.start().cast(), self.0.len() * size_of::<T>())
    }
}

impl Vector {
    /// `n` zeros. Vectors used in one pass should differ in `slot` (0 to 15).
    #[must_use]
    pub fn zeros(pool: &Pool, n: usize, slot: usize) -> Self {
        Self::zeros_of(pool, n, slot)
    }
}

impl<T: VectorElement> Vector<T> {
    /// `n` zeros of this type.
    pub(crate) fn zeros_of(pool: &Pool, n: usize, slot: usize) -> Self {
        Self::of(AlignedBuffer::zeros(pool, n, slot))
    }

    fn of(values: AlignedBuffer<T>) -> Self {
        let memory = Arc::new(VectorBuffer(values));
        let zones = TouchedZones::new(Arc::clone(&memory) as _, T::TYPE);
        Self { memory, zones }
    }

    /// Lends all rows to be written by a pass.
    #[must_use]
    pub fn rows_mut(&mut self) -> RowsMut<'_, T> {
        // SAFETY: the exclusive borrow of the vector, and pieces are made after the zones were
        // asked.
        let rows = unsafe { Disjoint::of_raw(self.memory.0.start(), self.memory.0.len()) };
        RowsMut { rows, zones: Some(&self.zones), elements: size_of::<T>() / T::TYPE.size() }
    }
}

impl<T: VectorElement> Clone for Vector<T> {
    /// Copies the values to memory of its own.
    fn clone(&self) -> Self {
        Self::of(self.memory.0.clone())
    }
}

impl<T: VectorElement> std::ops::Deref for Vector<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory.0
    }
}

impl<T: VectorElement> std::ops::DerefMut for Vector<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        let rows = self.rows_mut();
        let all = 0..rows.len();
        // SAFETY: the one piece of this borrow.
        unsafe { rows.piece(all) }
    }
}

impl<T: VectorElement> Zones for Vector<T> {
    fn mark(&self) -> Mark {
        self.zones.mark()
    }

    fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
        self.zones.written_since(since)
    }

    fn freeze(&self, padded_len: usize) -> Option<Box<dyn DeviceSnapshot>> {
        self.zones.freeze(padded_len)
    }
}

/// The rows of one vector, lent to be written by the threads of a pass.
pub struct RowsMut<'a, T = f64> {
    rows: Disjoint<'a, T>,
    /// The zones of its owner, which are asked before rows are written.
    zones: Option<&'a TouchedZones>,
    /// Elements of the zones in a number.
    elements: usize,
}

impl<'a, T> RowsMut<'a, T> {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns rows to be written, once no frozen copy needs their values.
    ///
    /// # Safety
    /// No two pieces alive at one time overlap.
    unsafe fn piece(&self, rows: Range<usize>) -> &'a mut [T] {
        if let Some(zones) = self.zones {
            zones.before_write(rows.start * self.elements..rows.end * self.elements);
        }
        // SAFETY: the caller's promise is the same, and copiers read other zones only.
        unsafe { self.rows.range(rows) }
    }
}

// SAFETY: disjoint ranges of one vector are disjoint slices.
unsafe impl<'a, T: Plain> RowSlices for RowsMut<'a, T> {
    type Lent = Self;
    type View = &'a mut [T];

    fn lend(self, n: usize) -> Self {
        assert_eq!(self.len(), n, "vectors of one pass differ in length");
        self
    }

    unsafe fn view(lent: &Self, rows: &Range<usize>) -> &'a mut [T] {
        // SAFETY: the caller's promise is the same.
        unsafe { lent.piece(rows.clone()) }
    }

    fn rows_at_once(lent: &Self) -> usize {
        // No copy is frozen while the vector is lent.
        let is_frozen = lent.zones.is_some_and(TouchedZones::is_frozen);
        if is_frozen { zone_rows::<T>() } else { usize::MAX }
    }
}

impl<'a> From<&'a mut [f64]> for RowsMut<'a> {
    fn from(slice: &'a mut [f64]) -> Self {
        Self { rows: Disjoint::new(slice), zones: None, elements: 1 }
    }
}

impl<'a> From<&'a mut Vec<f64>> for RowsMut<'a> {
    fn from(values: &'a mut Vec<f64>) -> Self {
        Self::from(&mut values[..])
    }
}

impl<'a> From<&'a mut Vector> for RowsMut<'a> {
    fn from(vector: &'a mut Vector) -> Self {
        vector.rows_mut()
    }
}
