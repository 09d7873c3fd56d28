//! Exceptions: values that are stored exactly, as their code does not hold the bound.

use recoup_core::CodecError;

use super::damage::damaged;
use super::field::Field;
use super::parity::{PIECE, ParityClasses, RowPieces};
use crate::qb::LevelKernel;
use crate::scalar::Scalar;

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

    /// Finds those of a field, whose numbers a decoder will have; `top` is that of a single point.
    pub(super) fn find<T: Scalar>(
        &mut self,
        field: &Field<'_>,
        values: &[T],
        bound: f64,
        top: i32,
        finest: Option<&ParityClasses>,
    ) {
        field.level.run(Check { field, values, bound, top, finest, exceptions: self });
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
    field: &'a Field<'a>,
    values: &'a [T],
    bound: f64,
    top: i32,
    finest: Option<&'a ParityClasses>,
    exceptions: &'a mut PyramidExceptions,
}

impl<T: Scalar> LevelKernel for Check<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { field, values, bound, top, finest, exceptions } = self;
        let mut room = [T::default(); PIECE];
        let mut numbers = [top; PIECE];
        for piece in RowPieces::of(field.grid) {
            let own = field.piece(values, &piece, &mut room);
            let numbers = &mut numbers[..piece.len];
            if let Some(finest) = finest {
                finest.take(&piece, numbers);
            }
            let checked = check(field, own, numbers, bound);
            exceptions.largest_error = exceptions.largest_error.max(checked.largest_error);
            if checked.all_hold {
                continue;
            }
            for (i, (x, number)) in own.iter().zip(numbers).enumerate() {
                if !holds(*x, field.lattice.value(*number), bound) {
                    let place = (piece.first + i) * field.fields + field.number;
                    exceptions.found.push((place as u32, x.bits()));
                }
            }
        }
    }
}

/// The findings on a piece of a row.
struct CheckedRun {
    all_hold: bool,
    largest_error: f64,
}

#[inline(always)]
fn check<T: Scalar>(field: &Field<'_>, values: &[T], numbers: &[i32], bound: f64) -> CheckedRun {
    const LANES: usize = 16;
    let mut largest = [0.0f64; LANES];
    let mut doubtful = [0u64; LANES];
    let (runs, rest) = values.as_chunks::<LANES>();
    let (number_runs, number_rest) = numbers.as_chunks::<LANES>();
    for (xs, numbers) in runs.iter().zip(number_runs) {
        for lane in 0..LANES {
            let decoded: T = field.lattice.value(numbers[lane]);
            let error = (xs[lane].wide() - decoded.wide()).abs();
            // Others are looked at one by one.
            let is_sound = (error < bound) & !(xs[lane].is_zero() & xs[lane].is_negative());
            largest[lane] = if (error > largest[lane]) & (error < bound) { error } else { largest[lane] };
            doubtful[lane] |= u64::from(!is_sound);
        }
    }
    let mut all_hold = doubtful == [0; LANES];
    for (x, number) in rest.iter().zip(number_rest) {
        let decoded: T = field.lattice.value(*number);
        let error = (x.wide() - decoded.wide()).abs();
        all_hold &= holds(*x, decoded, bound);
        largest[0] = if (error > largest[0]) & (error < bound) { error } else { largest[0] };
    }
    CheckedRun { all_hold, largest_error: largest.into_iter().fold(0.0, f64::max) }
}
