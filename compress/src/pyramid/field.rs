//! One field as a pyramid, both ways.

use recoup_core::CodecError;

use super::class_coder;
use super::lattice::{FineLattice, bridge};
use super::parity::{ClassRows, ORDER, ParityClasses, pyramid_extents};
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
    let mut coarse = Vec::new();
    for grid in pyramid_extents(field.grid) {
        let grid_numbers = if levels.is_empty() { &numbers } else { &coarse };
        let mut classes = field.level.run(Split { numbers: grid_numbers, grid });
        coarse = std::mem::take(&mut classes.values[0]);
        levels.push(classes);
    }
    let top = coarse.first().or(numbers.first()).copied().unwrap_or_default();
    for (height, classes) in levels.iter_mut().enumerate().rev() {
        classes.values[0] = coarse;
        for class in ORDER {
            class_coder::encode(classes, class, field.lattice.step(height), field.level, writer);
        }
        // The finest level goes back to where it came from.
        let mut merged = if height == 0 { std::mem::take(&mut numbers) } else { vec![0; classes.len()] };
        field.level.run(Merge { classes, values: &mut merged });
        if height == 0 {
            numbers = merged;
            break;
        }
        coarse = merged;
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
    let mut finest = ParityClasses::point(top);
    for (height, grid) in pyramid_extents(field.grid).into_iter().enumerate().rev() {
        let mut classes = ParityClasses::zeros(grid);
        classes.values[0] = numbers;
        for class in ORDER {
            class_coder::decode(&mut classes, class, field.lattice.step(height), field.level, reader)?;
        }
        if height == 0 {
            finest = classes;
            break;
        }
        numbers = vec![0; classes.len()];
        field.level.run(Merge { classes: &classes, values: &mut numbers });
    }
    field.level.run(Restore { field, classes: &finest, values });
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

struct Merge<'a> {
    classes: &'a ParityClasses,
    values: &'a mut [i32],
}

impl LevelKernel for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.classes.merge(self.values);
    }
}

/// The values of the finest level, row by row.
struct Restore<'a, T> {
    field: &'a Field<'a>,
    classes: &'a ParityClasses,
    values: &'a mut [T],
}

impl<T: Scalar> LevelKernel for Restore<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Field { number, fields, grid, lattice, .. } = *self.field;
        let mut rows = ClassRows::of(self.classes);
        let mut points = vec![0; grid[0]];
        for row in self.values.chunks_exact_mut(grid[0] * fields) {
            rows.take(&mut points);
            if fields == 1 {
                for (x, number) in row.iter_mut().zip(&points) {
                    *x = lattice.value(*number);
                }
            } else {
                for (x, number) in row[number..].iter_mut().step_by(fields).zip(&points) {
                    *x = lattice.value(*number);
                }
            }
        }
    }
}
