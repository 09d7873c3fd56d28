//! The encoder's choice of axes that join late: those along which a field is rough.
//!
//! A sample says how many bits a code of an interpolation along each axis takes, at the distances
//! of the finest levels. From these follow the bits of all levels, for each choice of delays.

use super::levels::{LevelRule, LevelShape, ORDER, is_odd};
use crate::scalar::Scalar;

/// Points of a sample, along each axis and at each distance.
const SAMPLE: usize = 128;
/// Distances that are looked at: 1, 2, 4 and 8 points.
const DISTANCES: usize = 4;
/// An axis joins late if that saves this part of the bits.
const SAVED: f64 = 0.25;

/// Values of a grid with interleaved unknowns.
#[derive(Clone, Copy, Debug)]
pub(super) struct GridSample<'a, T> {
    pub(super) values: &'a [T],
    pub(super) fields: usize,
    pub(super) grid: [usize; 3],
    pub(super) bound: f64,
}

impl<T: Scalar> GridSample<'_, T> {
    /// The rule by which the values most likely take the fewest bytes.
    pub(super) fn rule(&self) -> LevelRule {
        let at_once = LevelRule { keeps_last: true, delays: [0; 3] };
        let mut bits = [[0.0; DISTANCES]; 3];
        let axes = || (0..3).filter(|axis| self.grid[*axis] > 1);
        axes().for_each(|axis| bits[axis][0] = self.bits(axis, 1));
        let largest = axes().map(|axis| bits[axis][0]).fold(0.0, f64::max);
        let least = axes().map(|axis| bits[axis][0]).fold(largest, f64::min);
        if largest < 1.5 * least + 0.02 {
            return at_once;
        }
        for axis in axes() {
            (1..DISTANCES).for_each(|log| bits[axis][log] = self.bits(axis, 1 << log));
        }
        let mut best = at_once;
        let mut fewest = (1.0 - SAVED) * bits_of_levels(&at_once.levels(self.grid), &bits);
        for number in 1..DISTANCES.pow(3) {
            let delays = [0, 1, 2].map(|axis| (number / DISTANCES.pow(axis) % DISTANCES) as u8);
            let is_even =
                axes().all(|axis| delays[axis] > 0) || (0..3).any(|axis| delays[axis] > 0 && self.grid[axis] < 2);
            let rule = LevelRule { delays, ..at_once };
            let sum = if is_even { f64::INFINITY } else { bits_of_levels(&rule.levels(self.grid), &bits) };
            if sum < fewest {
                fewest = sum;
                best = rule;
            }
        }
        best
    }

    /// Mean bits of the codes of points between others that lie `distance` points away along an
    /// axis.
    fn bits(&self, axis: usize, distance: usize) -> f64 {
        let extent = self.grid[axis];
        let between = extent.saturating_sub(1) / (2 * distance);
        if between == 0 {
            return 0.0;
        }
        let stride = self.fields * [1, self.grid[0], self.grid[0] * self.grid[1]][axis];
        let mut sum = 0.0;
        for number in 0..SAMPLE {
            let parts = scattered(number);
            let mut place = [0, 1, 2].map(|axis| part_of(self.grid[axis], parts[axis]));
            place[axis] = (2 * part_of(between, parts[axis]) + 1) * distance;
            let index = (place[0] + self.grid[0] * (place[1] + self.grid[1] * place[2])) * self.fields;
            let at = |steps: isize| self.values[index.wrapping_add_signed(steps * (distance * stride) as isize)].wide();
            let near = at(-1) + at(1);
            let has_far = place[axis] >= 3 * distance && place[axis] + 3 * distance < extent;
            let between = if has_far { (9.0 * near - at(-3) - at(3)) / 16.0 } else { near / 2.0 };
            sum += bits_of_code((at(0) - between) / (2.0 * self.bound));
        }
        sum / SAMPLE as f64
    }
}

/// The place that a number below 2^20 stands for, below `places`.
fn part_of(places: usize, part: u64) -> usize {
    ((places as u64 * part) >> 20) as usize
}

/// Three numbers below 2^20 that follow no pattern.
fn scattered(number: usize) -> [u64; 3] {
    let mixed = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    [mixed >> 44, mixed >> 24, mixed >> 4].map(|bits| bits & 0xf_ffff)
}

/// About the bits of a code: half the logarithm of 1 + (3 code)^2, in lines between powers of two.
/// The same on every machine.
fn bits_of_code(code: f64) -> f64 {
    let bits = (1.0 + 9.0 * code * code).min(f64::MAX).to_bits();
    let above_one = bits.wrapping_sub(1.0f64.to_bits());
    // What is not finite has the bits of the largest number.
    0.5 * (above_one.min(1 << 62) as f64) / (1u64 << 52) as f64
}

/// Bits of all levels, if a class takes those of its smoothest axis.
fn bits_of_levels(levels: &[LevelShape], bits: &[[f64; DISTANCES]; 3]) -> f64 {
    let mut halvings = [0usize; 3];
    let mut sum = 0.0;
    for level in levels {
        for class in ORDER {
            let points = level.class_extents(class).iter().product::<usize>();
            let along = |axis: usize| bits[axis][halvings[axis].min(DISTANCES - 1)];
            let fewest = (0..3).filter(|axis| is_odd(class, *axis)).map(along).fold(f64::INFINITY, f64::min);
            sum += if points == 0 { 0.0 } else { points as f64 * fewest };
        }
        (0..3).for_each(|axis| halvings[axis] += usize::from(level.axes[axis].odd > 0));
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(grid: [usize; 3], value: impl Fn([usize; 3]) -> f64) -> LevelRule {
        let n = grid.iter().product();
        let place = |i: usize| [i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]];
        let values: Vec<f64> = (0..n).map(|i| value(place(i))).collect();
        GridSample { values: &values, fields: 1, grid, bound: 1e-3 }.rule()
    }

    fn noise(i: usize) -> f64 {
        (i as f64 * 12.9898).sin() * 43_758.545 % 1.0
    }

    #[test]
    fn a_rough_axis_joins_late() {
        for axis in 0..3 {
            let delays = rule([30, 31, 32], |place| noise(place[axis]) + place[(axis + 1) % 3] as f64).delays;
            assert_eq!(delays, [0, 1, 2].map(|other| if other == axis { 3 } else { 0 }), "{axis}");
        }
        assert_eq!(rule([300, 40, 1], |[x, y, _]| noise(y) + x as f64).delays, [0, 3, 0]);
    }

    #[test]
    fn axes_join_at_once_where_none_is_smoother() {
        assert_eq!(rule([30, 31, 32], |[x, y, z]| noise(x + 31 * y + 977 * z)).delays, [0; 3]);
        assert_eq!(rule([30, 31, 32], |[x, y, z]| (0.1 * (x + y + z) as f64).sin()).delays, [0; 3]);
        assert_eq!(rule([300, 1, 1], |[x, ..]| noise(x)).delays, [0; 3]);
        assert_eq!(rule([30, 31, 32], |[x, y, _]| if x == y { f64::NAN } else { noise(x) }).delays[2], 0);
    }

    #[test]
    fn bits_grow_with_the_logarithm_of_a_code() {
        assert_eq!(bits_of_code(0.0), 0.0);
        assert!((bits_of_code(100.0) - 300f64.log2()).abs() < 0.1);
        assert!(bits_of_code(f64::NAN).is_finite() && bits_of_code(f64::INFINITY).is_finite());
    }
}
