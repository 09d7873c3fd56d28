//! Grids that equal their reflection: one half of them is coded, and the other one copied.
//!
//! A solve of a symmetric problem stays among symmetric vectors, but for rounding. What is left of
//! a difference that small comes off the bound, so the bound holds for both halves.

use crate::scalar::Scalar;

/// A grid with fewer points on an axis has no halves.
const LEAST: usize = 4;
/// Values are equal to their reflections if they differ by less than this part of the bound, ..
const DIFFERENCE: f64 = 1.0 / 4096.0;
/// .. which the three axes together take from it.
const TAKEN: f64 = 1.0 / 1024.0;

/// The axes along which a grid equals its reflection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reflection {
    /// Bit a stands for axis a.
    axes: u8,
}

impl Reflection {
    /// The reflection of a header; `None` for what no encoder writes.
    pub(super) fn of_header(axes: u8) -> Option<Self> {
        (axes < 8).then_some(Self { axes })
    }

    /// The axes, as in a header.
    pub(super) fn axes(self) -> u8 {
        self.axes
    }

    /// The axes along which values equal their reflection, as far as a bound can tell.
    pub(super) fn of<T: Scalar>(values: &[T], grid: [usize; 3], bound: f64) -> Self {
        let mut found = Self::default();
        for axis in 0..3 {
            let tried = Self { axes: found.axes | 1 << axis };
            if grid[axis] >= LEAST && found.is_reflected(values, grid, axis, bound * DIFFERENCE) {
                found = tried;
            }
        }
        found
    }

    /// Returns whether there is another half.
    pub(super) fn is_any(self) -> bool {
        self.axes != 0
    }

    /// The bound that holds for both halves where it holds for the first one.
    pub(super) fn bound_of_half(self, bound: f64) -> f64 {
        if self.is_any() { bound * (1.0 - TAKEN) } else { bound }
    }

    /// The largest error of both halves, from that of the first one.
    pub(super) fn error_of_both(self, error: f64, bound: f64) -> f64 {
        if self.is_any() { error + bound * TAKEN } else { error }
    }

    fn is_on(self, axis: usize) -> bool {
        self.axes >> axis & 1 != 0
    }

    /// Extents of the half that is coded, the points in the middle included.
    pub(super) fn half(self, grid: [usize; 3]) -> [usize; 3] {
        std::array::from_fn(|axis| if self.is_on(axis) { grid[axis].div_ceil(2) } else { grid[axis] })
    }

    /// Returns whether the values of the half equal their reflection along another axis.
    fn is_reflected<T: Scalar>(self, values: &[T], grid: [usize; 3], axis: usize, limit: f64) -> bool {
        let [width, height, _] = grid;
        let mut rows = self.half(grid);
        rows[axis] = grid[axis] / 2;
        let row = |y: usize, z: usize| &values[width * (y + height * z)..][..width];
        let [points, ..] = rows;
        (0..rows[2]).all(|z| {
            (0..rows[1]).all(|y| match axis {
                0 => are_equal(row(y, z)[..points].iter().zip(row(y, z).iter().rev()), limit),
                1 => are_equal(row(y, z)[..points].iter().zip(row(height - 1 - y, z)), limit),
                _ => are_equal(row(y, z)[..points].iter().zip(row(y, grid[2] - 1 - z)), limit),
            })
        })
    }

    /// The values of the half.
    pub(super) fn folded<T: Scalar>(self, values: &[T], grid: [usize; 3]) -> Vec<T> {
        let [points, rows, slabs] = self.half(grid);
        let mut half = Vec::with_capacity(points * rows * slabs);
        for z in 0..slabs {
            for y in 0..rows {
                half.extend_from_slice(&values[grid[0] * (y + grid[1] * z)..][..points]);
            }
        }
        half
    }

    /// Fills in the values of a grid from those of its half.
    pub(super) fn unfold<T: Scalar>(self, half: &[T], grid: [usize; 3], values: &mut [T]) {
        let [points, rows, slabs] = self.half(grid);
        let nearest = |place: usize, extent: usize, half: usize| if place < half { place } else { extent - 1 - place };
        for (number, row) in values.chunks_exact_mut(grid[0]).enumerate() {
            let y = nearest(number % grid[1], grid[1], rows);
            let z = nearest(number / grid[1], grid[2], slabs);
            let source = &half[points * (y + rows * z)..][..points];
            let (first, second) = row.split_at_mut(points);
            first.copy_from_slice(source);
            second.iter_mut().rev().zip(source).for_each(|(x, source)| *x = *source);
        }
    }
}

/// Returns whether pairs of values differ by no more than a limit; -0 equals itself alone.
#[inline(always)]
fn are_equal<'a, T: Scalar>(pairs: impl Iterator<Item = (&'a T, &'a T)>, limit: f64) -> bool {
    let is_negative_zero = |x: &T| x.is_zero() && x.is_negative();
    let mut pairs = pairs;
    pairs.all(|(a, b)| {
        let is_near = (a.wide() - b.wide()).abs() <= limit && !is_negative_zero(a) && !is_negative_zero(b);
        is_near || a.bits() == b.bits()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRIDS: [[usize; 3]; 5] = [[9, 1, 1], [4, 6, 1], [5, 4, 7], [1, 8, 3], [6, 5, 4]];

    /// Noise that equals its reflection along some axes.
    fn reflected(grid: [usize; 3], axes: u8) -> Vec<f64> {
        let n = grid.iter().product::<usize>();
        let near = |i: usize, axis: usize| if axes >> axis & 1 != 0 { i.min(grid[axis] - 1 - i) } else { i };
        let place = |i: usize| [i % grid[0], i / grid[0] % grid[1], i / grid[0] / grid[1]];
        (0..n)
            .map(|i| {
                let [x, y, z] = place(i);
                let seed = near(x, 0) + 31 * near(y, 1) + 977 * near(z, 2);
                (seed as f64 * 12.9898).sin() * 43_758.545 % 1.0
            })
            .collect()
    }

    #[test]
    fn a_half_unfolds_to_the_grid_it_was_taken_from() {
        for grid in GRIDS {
            for axes in 0..8u8 {
                let values = reflected(grid, axes);
                let reflection = Reflection::of(&values, grid, 1e-3);
                let wanted = (0..3).filter(|axis| axes >> axis & 1 != 0 && grid[*axis] >= LEAST);
                assert_eq!(reflection.axes, wanted.fold(0, |axes, axis| axes | 1 << axis), "{grid:?} {axes}");
                let half = reflection.folded(&values, grid);
                assert_eq!(half.len(), reflection.half(grid).iter().product::<usize>());
                let mut found = vec![f64::NAN; values.len()];
                reflection.unfold(&half, grid, &mut found);
                assert_eq!(found, values, "{grid:?} {axes}");
            }
        }
    }

    #[test]
    fn what_differs_by_more_than_a_part_of_the_bound_is_no_reflection() {
        let grid = [6, 4, 4];
        let values = reflected(grid, 7);
        for (place, added, axes) in [(0, 2e-7, 7), (0, 3e-7, 0), (95, f64::NAN, 0), (40, -1.0, 0)] {
            let mut values = values.clone();
            values[place] += added;
            assert_eq!(Reflection::of(&values, grid, 1e-3).axes, axes, "{place} {added}");
        }
        // A zero has another sign on the other side.
        let mut values = vec![0.0; 8];
        values[1] = -0.0;
        assert_eq!(Reflection::of(&values, [8, 1, 1], 1e-3).axes, 0);
        values[6] = -0.0;
        assert_eq!(Reflection::of(&values, [8, 1, 1], 1e-3).axes, 1);
    }

    #[test]
    fn no_header_names_more_than_three_axes() {
        assert_eq!(Reflection::of_header(7), Some(Reflection { axes: 7 }));
        assert_eq!(Reflection::of_header(8), None);
    }
}
