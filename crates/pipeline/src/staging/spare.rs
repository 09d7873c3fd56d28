//! Memory of staged values that no version needs any more, for later versions to use again.

use recoup_core::{ElementType, HeldValues};

use super::buffer::Buffer;
use super::placed_values::PlacedValues;

/// Memory to be used again, by the place it is at. Never more than was in use at one time: memory
/// is made only where there is none here.
#[derive(Debug, Default)]
pub(crate) struct SpareMemory {
    near: Vec<Buffer>,
    held: Vec<Box<dyn HeldValues>>,
}

impl SpareMemory {
    /// Takes memory that is not in use any more.
    pub(crate) fn put(&mut self, values: PlacedValues) {
        match values {
            PlacedValues::Near(buffer) => self.near.push(buffer),
            PlacedValues::Held(held) => self.held.push(held),
        }
    }

    /// Returns the buffer here that fits best: of this type, with room for this many values but for
    /// few more. One that fits badly grows.
    pub(crate) fn take_near(&mut self, element: ElementType, padded_len: usize) -> Buffer {
        let misfit = |buffer: &Buffer| {
            let room = buffer.room();
            let is_other = buffer.all().element() != element;
            (is_other, room < padded_len, room.abs_diff(padded_len))
        };
        let best = (0..self.near.len()).min_by_key(|&index| misfit(&self.near[index]));
        best.map_or_else(|| Buffer::new(element), |index| self.near.swap_remove(index))
    }

    /// Returns a frozen copy whose memory is of this type and length, or else any.
    pub(crate) fn take_held(&mut self, element: ElementType, padded_len: usize) -> Option<Box<dyn HeldValues>> {
        let misfit = |held: &dyn HeldValues| held.element() != element || held.len() != padded_len;
        let best = (0..self.held.len()).min_by_key(|&index| misfit(self.held[index].as_ref()));
        best.map(|index| self.held.swap_remove(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_fits_best_is_taken_first() {
        let mut spare = SpareMemory::default();
        for buffer in [Buffer::F64(vec![0.0; 5]), Buffer::F64(vec![0.0; 9]), Buffer::I64(vec![0; 7])] {
            spare.put(PlacedValues::Near(buffer));
        }
        assert_eq!(spare.take_near(ElementType::F64, 7), Buffer::F64(vec![0.0; 9]));
        assert_eq!(spare.take_near(ElementType::F64, 7), Buffer::F64(vec![0.0; 5]), "it grows");
        assert_eq!(spare.take_near(ElementType::F64, 7), Buffer::I64(vec![0; 7]), "it changes its type");
        assert_eq!(spare.take_near(ElementType::F64, 7), Buffer::F64(Vec::new()));
    }
}
