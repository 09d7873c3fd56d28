//! The fine lattice: values as integers, with many of them to an error bound.

use super::levels::LevelRule;
use crate::scalar::Scalar;

/// Steps of the finest level to choose from, in units of the lattice, the finest lattice first.
/// They are odd, so that a code leaves at most (step - 1) / 2 units on each side.
const STEPS: [u16; 4] = [63, 15, 3, 1];
/// The largest number of the lattice. Sums of two stay far from the ends of an i32.
const LARGEST: f64 = (1 << 28) as f64;
/// Finest levels with a step of their own; all coarser ones have that of the last.
pub(super) const LEVEL_STEPS: usize = 4;
/// `2^52 + 2^51`: the sum with a small number has it, rounded, in its lowest bits.
const ROUNDING: f64 = 6_755_399_441_055_744.0;

/// The lattice of a frame: number R stands for `RN(base + RN(R unit))`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FineLattice {
    pub(super) unit: f64,
    pub(super) base: f64,
    /// Units between two values of a code, of each level.
    pub(super) steps: [u16; LEVEL_STEPS],
}

/// The smallest and the largest finite value.
#[derive(Clone, Copy, Debug)]
pub(super) struct FiniteRange {
    pub(super) min: f64,
    pub(super) max: f64,
    pub(super) is_all_finite: bool,
}

/// Lanes of a search for a range.
const RANGE_LANES: usize = 16;

/// The range of values seen so far, as long as they are finite.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeSearch {
    min: [f64; RANGE_LANES],
    max: [f64; RANGE_LANES],
    /// NaN once a value is not finite.
    zeros: [f64; RANGE_LANES],
}

impl RangeSearch {
    pub(super) const NEW: Self =
        Self { min: [f64::INFINITY; RANGE_LANES], max: [f64::NEG_INFINITY; RANGE_LANES], zeros: [0.0; RANGE_LANES] };

    #[inline(always)]
    pub(super) fn take<T: Scalar>(&mut self, values: &[T]) {
        let Self { mut min, mut max, mut zeros } = *self;
        let mut take = |lane: usize, x: f64| {
            min[lane] = if x < min[lane] { x } else { min[lane] };
            max[lane] = if x > max[lane] { x } else { max[lane] };
            zeros[lane] += x * 0.0;
        };
        let (runs, rest) = values.as_chunks::<RANGE_LANES>();
        runs.iter().for_each(|run| (0..RANGE_LANES).for_each(|lane| take(lane, run[lane].wide())));
        rest.iter().enumerate().for_each(|(lane, x)| take(lane, x.wide()));
        *self = Self { min, max, zeros };
    }

    /// The range; `None` where there were no values, or some of them are not finite.
    pub(super) fn found(&self) -> Option<FiniteRange> {
        let min = self.min.into_iter().fold(f64::INFINITY, f64::min);
        let max = self.max.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let is_all_finite = self.zeros.iter().sum::<f64>() == 0.0;
        (min <= max && is_all_finite).then_some(FiniteRange { min, max, is_all_finite })
    }
}

impl FiniteRange {
    /// The range of the finite values; `None` where there are none.
    #[inline(always)]
    pub(super) fn of<T: Scalar>(values: &[T]) -> Option<Self> {
        let mut search = RangeSearch::NEW;
        search.take(values);
        if let Some(range) = search.found() {
            return Some(range);
        }
        let finite = || values.iter().map(|x| x.wide()).filter(|x| x.is_finite());
        let min = finite().fold(f64::INFINITY, f64::min);
        let max = finite().fold(f64::NEG_INFINITY, f64::max);
        (min <= max).then_some(Self { min, max, is_all_finite: false })
    }
}

impl FineLattice {
    /// The lattice for an absolute bound; `None` where no double holds its unit. Where no lattice
    /// holds all values, it is the finest one around 0, and values outside are exceptions.
    pub(super) fn new(bound: f64, range: FiniteRange, shrinking: StepShrinking) -> Option<Self> {
        let centre = 0.5 * range.min + 0.5 * range.max;
        let around = |step: u16, base: f64| Self::around(bound, step, base, shrinking);
        let bases = STEPS.into_iter().flat_map(|step| [around(step, 0.0), around(step, centre)]);
        bases.flatten().find(|lattice| lattice.reaches(range)).or_else(|| Self::first(bound, shrinking))
    }

    /// The first lattice that [`FineLattice::new`] tries, and nearly always the one it takes.
    pub(super) fn first(bound: f64, shrinking: StepShrinking) -> Option<Self> {
        Self::around(bound, STEPS[0], 0.0, shrinking)
    }

    fn around(bound: f64, step: u16, base: f64, shrinking: StepShrinking) -> Option<Self> {
        // Roundings of units, bases and sums stay far below what this takes from the bound, as long
        // as values are below 2^28 units.
        const ROUNDED_DOWN: f64 = 1.0 - 1.0 / (1u64 << 20) as f64;
        let unit = 2.0 * bound / f64::from(step) * ROUNDED_DOWN;
        Self::is_sound(unit, base).then_some(Self { unit, base, steps: shrinking.steps(step) })
    }

    /// Returns whether all finite values have numbers.
    pub(super) fn reaches(&self, range: FiniteRange) -> bool {
        range.max - self.base <= self.unit * LARGEST && self.base - range.min <= self.unit * LARGEST
    }

    /// The lattice of a header; `None` for what no encoder writes.
    pub(super) fn of_header(unit: f64, base: f64, steps: [u16; LEVEL_STEPS]) -> Option<Self> {
        let are_odd = steps.iter().all(|step| step % 2 == 1);
        (are_odd && Self::is_sound(unit, base)).then_some(Self { unit, base, steps })
    }

    fn is_sound(unit: f64, base: f64) -> bool {
        unit.is_normal() && unit > 0.0 && (1.0 / unit).is_normal() && base.is_finite()
    }

    /// Units between two values of a code at a level, the finest being 0.
    pub(super) fn step(&self, level: usize) -> u16 {
        self.steps[level.min(LEVEL_STEPS - 1)]
    }

    /// The numbers of values. Those of values that are not finite mean nothing.
    #[inline(always)]
    pub(super) fn quantise<T: Scalar>(&self, values: &[T], numbers: &mut [i32]) {
        let inverse = 1.0 / self.unit;
        for (x, number) in values.iter().zip(numbers) {
            let t = (x.wide() - self.base) * inverse;
            let t = if t > LARGEST { LARGEST } else { t };
            let t = if t < -LARGEST { -LARGEST } else { t };
            *number = (t + ROUNDING).to_bits() as i32;
        }
    }

    /// The value of a number.
    #[inline(always)]
    pub(super) fn value<T: Scalar>(&self, number: i32) -> T {
        T::rounded(self.base + f64::from(number) * self.unit)
    }
}

/// The way steps shrink towards coarser levels, whose values predict many others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepShrinking {
    /// Not at all: lines have as many values on all coarser levels as on the finest, too many for
    /// what they gain.
    None,
    /// Levels that leave an axis as it is have more values than others.
    Slow,
    Fast,
}

impl StepShrinking {
    /// The steps that the levels of a grid ask for.
    pub(super) fn of(grid: [usize; 3], rule: LevelRule) -> Self {
        let is_line = grid.iter().filter(|extent| **extent > 1).count() < 2;
        match rule.delays {
            _ if is_line => Self::None,
            [0, 0, 0] => Self::Fast,
            _ => Self::Slow,
        }
    }

    /// The steps of the levels, made odd.
    fn steps(self, step: u16) -> [u16; LEVEL_STEPS] {
        let percent = match self {
            Self::None => [100; LEVEL_STEPS],
            Self::Slow => [100, 90, 80, 71],
            Self::Fast => [100, 80, 64, 50],
        };
        percent.map(|percent| (step * percent / 100).max(1) | 1)
    }
}

/// The code of a distance: the nearest multiple of the step.
#[inline(always)]
pub(super) fn code(distance: i32, inverse_step: f64) -> i32 {
    (f64::from(distance) * inverse_step + ROUNDING).to_bits() as i32
}

/// Numbers of values that are not finite, or out of reach, become those of the value before.
pub(super) fn bridge<T: Scalar>(values: &[T], numbers: &mut [i32], before: &mut i32) {
    for (x, number) in values.iter().zip(numbers) {
        if x.wide().is_finite() && number.unsigned_abs() < LARGEST as u32 {
            *before = *number;
        }
        *number = *before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_has_a_code_within_half_a_step() {
        for step in [1, 3, 15, 31, 41, 51, 63] {
            let inverse = 1.0 / f64::from(step);
            for distance in (-4000..4000).chain([1 << 29, -(1 << 29), i32::MAX, i32::MIN + 1]) {
                let left = i64::from(distance) - i64::from(code(distance, inverse)) * i64::from(step);
                assert!(left.abs() <= i64::from(step) / 2, "{distance} by {step}: {left}");
            }
        }
    }

    #[test]
    fn steps_are_odd_and_do_not_grow() {
        for (step, shrinking) in STEPS.into_iter().flat_map(|step| {
            [StepShrinking::None, StepShrinking::Slow, StepShrinking::Fast].map(|shrinking| (step, shrinking))
        }) {
            let steps = shrinking.steps(step);
            assert!(steps.iter().all(|step| step % 2 == 1) && steps.is_sorted_by(|a, b| a >= b) && steps[0] == step);
        }
        assert_eq!(StepShrinking::Fast.steps(63), [63, 51, 41, 31]);
    }
}
