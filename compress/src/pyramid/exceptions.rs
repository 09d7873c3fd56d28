//! Exceptions: values that are stored exactly, as their code does not hold the bound.

use recoup_core::CodecError;

use super::damage::damaged;
use super::field::Field;
use super::lattice::FineLattice;
use crate::qb::LevelKernel;
use crate::scalar::Scalar;

/// Values checked at a time: a run without a doubtful value needs one branch.
const RUN: usize = 256;

/// The exceptions of a frame, and the largest error of all other values.
#[derive(Debug, Default)]
pub(super) struct PyramidExceptions {
    /// Place among all values, and bits.
    found: Vec<(u32, u64)>,
    largest_error: f64,
}

impl PyramidExceptions {
    pub(super) fn len(&self) -> u64 {
        self.found.len() as u64
    }

    pub(super) fn largest_error(&self) -> f64 {
        self.largest_error
    }

    /// Bytes that they take.
    pub(super) fn bytes<T: Scalar>(&self) -> usize {
        self.found.len() * (4 + T::BYTES)
    }

    /// Finds those of a field, whose numbers a decoder will have.
    pub(super) fn find<T: Scalar>(&mut self, field: &Field<'_>, values: &[T], numbers: &[i32], bound: f64) {
        let gathered = if field.fields > 1 { field.gather(values) } else { Vec::new() };
        let values = if field.fields > 1 { &gathered } else { values };
        for (run, (xs, numbers)) in values.chunks(RUN).zip(numbers.chunks(RUN)).enumerate() {
            let checked = field.level.run(Check { lattice: field.lattice, values: xs, numbers, bound });
            self.largest_error = self.largest_error.max(checked.largest_error);
            if checked.all_hold {
                continue;
            }
            for (i, (x, number)) in xs.iter().zip(numbers).enumerate() {
                if !holds(*x, field.lattice.value(*number), bound) {
                    let place = (run * RUN + i) * field.fields + field.number;
                    self.found.push((place as u32, x.bits()));
                }
            }
        }
    }

    /// Appends place and bits of each, by ascending place.
    pub(super) fn write<T: Scalar>(&mut self, target: &mut Vec<u8>) {
        self.found.sort_unstable();
        for (place, bits) in &self.found {
            target.extend(place.to_le_bytes());
            target.extend(&bits.to_le_bytes()[..T::BYTES]);
        }
    }
}

/// Puts exceptions into their places.
pub(super) fn restore<T: Scalar>(source: &[u8], target: &mut [T]) -> Result<(), CodecError> {
    let mut least = 0;
    for exception in source.chunks_exact(4 + T::BYTES) {
        let (place, bits) = exception.split_at(4);
        let place = place.iter().rev().fold(0, |place, byte| place << 8 | usize::from(*byte));
        let x = target.get_mut(place).filter(|_| place >= least).ok_or_else(|| damaged("place of an exception"))?;
        *x = T::from_bits(bits.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte)));
        least = place + 1;
    }
    Ok(())
}

/// Returns whether a decoded value holds the bound. A rounded distance below the bound is one below
/// it; what has no distance, and -0, holds bit for bit only.
#[inline(always)]
fn holds<T: Scalar>(x: T, decoded: T, bound: f64) -> bool {
    let is_near = (x.wide() - decoded.wide()).abs() < bound && !(x.is_zero() && x.is_negative());
    is_near || x.bits() == decoded.bits()
}

struct Check<'a, T> {
    lattice: &'a FineLattice,
    values: &'a [T],
    numbers: &'a [i32],
    bound: f64,
}

/// The findings on a run.
struct CheckedRun {
    all_hold: bool,
    largest_error: f64,
}

impl<T: Scalar> LevelKernel for Check<'_, T> {
    type Output = CheckedRun;

    #[inline(always)]
    fn run(self) -> CheckedRun {
        let mut all_hold = true;
        let mut largest = [0.0f64; 16];
        let mut check = |x: T, number: i32, largest: &mut f64| {
            let decoded: T = self.lattice.value(number);
            let error = (x.wide() - decoded.wide()).abs();
            all_hold &= holds(x, decoded, self.bound);
            *largest = if (error > *largest) & (error < self.bound) { error } else { *largest };
        };
        let (runs, rest) = self.values.as_chunks::<16>();
        let (number_runs, number_rest) = self.numbers.as_chunks::<16>();
        for (xs, numbers) in runs.iter().zip(number_runs) {
            (0..16).for_each(|lane| check(xs[lane], numbers[lane], &mut largest[lane]));
        }
        rest.iter().zip(number_rest).for_each(|(x, number)| check(*x, *number, &mut largest[0]));
        CheckedRun { all_hold, largest_error: largest.into_iter().fold(0.0, f64::max) }
    }
}
