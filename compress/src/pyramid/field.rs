//! One field as a pyramid, both ways.

use recoup_core::CodecError;

use super::class_coder;
use super::lattice::{FineLattice, bridge};
use super::parity::{ORDER, ParityClasses, pyramid_extents};
use super::stream::{StreamReader, StreamWriter};
use crate::qb::{LevelKernel, SimdLevel};
use crate::scalar::Scalar;

/// A field among interleaved ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field<'a> {
    pub(super) number: usize,
    pub(super) fields: usize,
    pub(super) grid: [usize; 3],
    pub(super) lattice: &'a FineLattice,
    pub(super) level: SimdLevel,
}

/// A coded field, as a decoder will have it.
pub(super) struct CodedField {
    pub(super) top: i32,
    /// Numbers of the lattice of all values.
    pub(super) numbers: Vec<i32>,
}

impl Field<'_> {
    /// The values of this field alone.
    pub(super) fn gather<T: Scalar>(&self, values: &[T]) -> Vec<T> {
        values[self.number..].iter().step_by(self.fields).copied().collect()
    }
}

/// Codes a field; `is_whole` says that all values have numbers.
pub(super) fn encode_field<T: Scalar>(
    field: &Field<'_>,
    values: &[T],
    is_whole: bool,
    writer: &mut StreamWriter,
) -> CodedField {
    let gathered = if field.fields > 1 { field.gather(values) } else { Vec::new() };
    let values = if field.fields > 1 { &gathered } else { values };
    let mut numbers = vec![0; values.len()];
    field.level.run(Quantise { lattice: field.lattice, values, numbers: &mut numbers });
    if !is_whole {
        bridge(values, &mut numbers);
    }
    let mut levels = Vec::new();
    for grid in pyramid_extents(field.grid) {
        let mut classes = field.level.run(Split { numbers: &numbers, grid });
        numbers = std::mem::take(&mut classes.values[0]);
        levels.push(classes);
    }
    let top = numbers[0];
    for (height, classes) in levels.iter_mut().enumerate().rev() {
        classes.values[0] = numbers;
        for class in ORDER {
            class_coder::encode(classes, class, field.lattice.step(height), field.level, writer);
        }
        numbers = field.level.run(Merge(classes));
    }
    CodedField { top, numbers }
}

/// Decodes a field into its places among all values.
pub(super) fn decode_field<T: Scalar>(
    field: &Field<'_>,
    top: i32,
    reader: &mut StreamReader<'_>,
    values: &mut [T],
) -> Result<(), CodecError> {
    let mut numbers = vec![top];
    for (height, grid) in pyramid_extents(field.grid).into_iter().enumerate().rev() {
        let mut classes = ParityClasses::zeros(grid);
        classes.values[0] = numbers;
        for class in ORDER {
            class_coder::decode(&mut classes, class, field.lattice.step(height), field.level, reader)?;
        }
        numbers = field.level.run(Merge(&classes));
    }
    field.level.run(Restore { field, numbers: &numbers, values });
    Ok(())
}

struct Quantise<'a, T> {
    lattice: &'a FineLattice,
    values: &'a [T],
    numbers: &'a mut [i32],
}

impl<T: Scalar> LevelKernel for Quantise<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.lattice.quantise(self.values, self.numbers);
    }
}

struct Split<'a> {
    numbers: &'a [i32],
    grid: [usize; 3],
}

impl LevelKernel for Split<'_> {
    type Output = ParityClasses;

    #[inline(always)]
    fn run(self) -> ParityClasses {
        ParityClasses::split(self.numbers, self.grid)
    }
}

struct Merge<'a>(&'a ParityClasses);

impl LevelKernel for Merge<'_> {
    type Output = Vec<i32>;

    #[inline(always)]
    fn run(self) -> Vec<i32> {
        self.0.merge()
    }
}

struct Restore<'a, T> {
    field: &'a Field<'a>,
    numbers: &'a [i32],
    values: &'a mut [T],
}

impl<T: Scalar> LevelKernel for Restore<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Field { number, fields, lattice, .. } = *self.field;
        if fields == 1 {
            self.values.iter_mut().zip(self.numbers).for_each(|(x, number)| *x = lattice.value(*number));
        } else {
            let own = self.values[number..].iter_mut().step_by(fields);
            own.zip(self.numbers).for_each(|(x, number)| *x = lattice.value(*number));
        }
    }
}
