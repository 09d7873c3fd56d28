//! Exceptions: values that are stored exactly, as their code does not hold the bound.

use recoup_core::CodecResult;

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
pub(super) fn restore<T: Scalar>(source: &[u8], target: &mut [T]) -> CodecResult<()> {
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
        for piece in RowPieces::of(field.finest()) {
            let own = field.piece(values, &piece, &mut room);
            let numbers = &mut numbers[..piece.len];
            if let Some(finest) = finest {
                finest.take(&piece, numbers);
            }
            if let Some(error) = largest_below(field, own, numbers, bound) {
                exceptions.largest_error = exceptions.largest_error.max(error);
                continue;
            }
            for (i, (x, number)) in own.iter().zip(numbers).enumerate() {
                let decoded: T = field.lattice.value(*number);
                let error = (x.wide() - decoded.wide()).abs();
                if error < bound {
                    exceptions.largest_error = exceptions.largest_error.max(error);
                }
                if !holds(*x, decoded, bound) {
                    let place = (piece.first + i) * field.fields + field.number;
                    exceptions.found.push((place as u32, x.bits()));
                }
            }
        }
    }
}

/// The largest error of values; `None` where one is not below the bound, or a value is -0.
#[inline(always)]
fn largest_below<T: Scalar>(field: &Field<'_>, values: &[T], numbers: &[i32], bound: f64) -> Option<f64> {
    const LANES: usize = 16;
    // Bits of sizes ascend with them, those of NaN behind all others, and those of -0 are the least
    // of all values'.
    let mut largest = [0i64; LANES];
    let mut least = [0i64; LANES];
    let mut look = |lane: usize, x: T, number: i32| {
        let decoded: T = field.lattice.value(number);
        let error = (x.wide() - decoded.wide()).abs();
        largest[lane] = largest[lane].max(error.to_bits() as i64);
        least[lane] = least[lane].min(x.wide().to_bits() as i64);
    };
    let (runs, rest) = values.as_chunks::<LANES>();
    let (number_runs, number_rest) = numbers.as_chunks::<LANES>();
    for (xs, numbers) in runs.iter().zip(number_runs) {
        (0..LANES).for_each(|lane| look(lane, xs[lane], numbers[lane]));
    }
    rest.iter().zip(number_rest).enumerate().for_each(|(lane, (x, number))| look(lane, *x, *number));
    let largest = f64::from_bits(largest.into_iter().fold(0, i64::max) as u64);
    let is_negative_zero = least.contains(&i64::MIN);
    (largest < bound && !is_negative_zero).then_some(largest)
}
