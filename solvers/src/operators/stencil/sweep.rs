//! A Jacobi sweep in place: x and b read once, x written once, old lines kept in the cache.
//!
//! Each thread owns a slab of planes. The old planes next to it are copied first; then it goes up
//! line by line and keeps the old values of the lines of one plane back, of the line it overwrites
//! and of the next one.

use std::ops::Range;

use recoup_core::{ExactSum, JacobiSweep};

use super::{Around, Poisson3d};
use crate::kernels::simd::{Star, sweep_line};
use crate::kernels::sys::PerUnit;

/// Cubes up to this side are smaller than the room their sweep needs.
const SMALL: usize = 6;
/// Values in a cache line; lines of the grid start at multiples of it.
const ALIGNED: usize = 8;

/// Values of room a slab of a cube of side `n` needs: old planes below and above it, a line of
/// zeros, the ring.
const fn room(n: usize) -> usize {
    (2 * n * n + n).next_multiple_of(ALIGNED) + ALIGNED + (n + 2) * stride(n)
}

/// Values from one line of the ring to the next, at least one of them a zero between the two.
const fn stride(n: usize) -> usize {
    (n + 1).next_multiple_of(ALIGNED)
}

/// State that all slabs share.
struct Slabs<'a> {
    n: usize,
    /// Planes swept in all, and what lies around them.
    planes: usize,
    around: Around<'a>,
    b: &'a [f64],
    /// `omega / 6`.
    step: f64,
}

/// The old values of the last n + 2 lines, with a zero before and after each: those from one plane
/// before the current line to the line after it.
struct Ring<'a> {
    n: usize,
    values: &'a mut [f64],
    /// Places of the line before the current one, the current one, the next one, and the one a
    /// plane below.
    slots: [usize; 4],
}

/// Sweeps, and returns the sum of squares of the residual before, formed plane by plane. A slab of
/// less than about four planes has no room in the target, and allocates it.
pub(super) fn sweep_in_place(cube: &Poisson3d, sweep: JacobiSweep<'_>, around: Around<'_>) -> ExactSum {
    let JacobiSweep { b, omega, x, target, .. } = sweep;
    let n = cube.n;
    let planes = cube.planes.len();
    let plane = cube.n * cube.n;
    assert_eq!([x.len(), b.len(), target.len()], [planes * plane; 3], "vectors of one sweep differ in length");
    let slabs = Slabs { n, planes, around, b, step: omega * 6.0_f64.recip() };
    let (sums, scratch) = target.split_at_mut(planes);
    let all_rooms = cube.pool.threads() * room(n);
    if n <= SMALL {
        slabs.sweep_alone(x, &mut [0.0; room(SMALL)][..room(n)], sums);
    } else if room(n) > scratch.len() {
        slabs.sweep_alone(x, &mut vec![0.0; room(n)], sums);
    } else if all_rooms > scratch.len() {
        slabs.sweep_alone(x, &mut scratch[..room(n)], sums);
    } else {
        let pool = &cube.pool;
        let scratch = &mut scratch[..all_rooms];
        let rows = planes * plane;
        let old = &*x;
        pool.for_slabs(rows, plane, (), scratch, |rows, (), room| slabs.keep_around(rows, old, room));
        pool.for_slabs(rows, plane, (x, PerUnit { values: sums, unit: plane }), scratch, |rows, (x, sums), room| {
            slabs.sweep(rows.start / plane, x, room, sums);
        });
    }
    sums.iter().copied().collect()
}

impl Slabs<'_> {
    /// All planes on this thread.
    fn sweep_alone(&self, x: &mut [f64], room: &mut [f64], sums: &mut [f64]) {
        self.keep_around(0..x.len(), x, room);
        self.sweep(0, x, room, sums);
    }

    /// Copies the old planes next to the rows `rows` of `x` to the beginning of `room`.
    fn keep_around(&self, rows: Range<usize>, x: &[f64], room: &mut [f64]) {
        let plane = self.n * self.n;
        let (below, rest) = room.split_at_mut(plane);
        let old_below = if rows.start > 0 { &x[rows.start - plane..rows.start] } else { self.around.below };
        let old_above = if rows.end < x.len() { &x[rows.end..rows.end + plane] } else { self.around.above };
        below[..old_below.len()].copy_from_slice(old_below);
        rest[..old_above.len()].copy_from_slice(old_above);
    }

    /// Sweeps the planes of `x`, the first of which is plane `first`; `room` begins with the old
    /// planes around them.
    fn sweep(&self, first: usize, x: &mut [f64], room: &mut [f64], sums: &mut [f64]) {
        let n = self.n;
        let plane = self.n * self.n;
        let (outside, inside) = room.split_at_mut(2 * plane);
        let (below, above) = outside.split_at(plane);
        inside.fill(0.0);
        let (zeros, ring) = inside.split_at_mut((2 * plane + n).next_multiple_of(ALIGNED) - 2 * plane);
        let zeros = &zeros[..n];
        let mut ring = Ring { n, values: ring, slots: [n, n + 1, 0, 1] };
        let has_below = first > 0 || !self.around.below.is_empty();
        let has_above = |height| height + 1 < self.planes || !self.around.above.is_empty();
        if has_below {
            below.chunks_exact(n).enumerate().for_each(|(line, old)| ring.put(line + 1, old));
        }
        ring.put(n + 1, &x[..n]);
        for (height, sum) in (first..).zip(sums) {
            let mut lanes = [[0.0; 4]; 2];
            for line in 0..n {
                let row = (height - first) * plane + line * n;
                let (done, rest) = x.split_at_mut(row + n);
                if let Some(next) = rest.get(..n) {
                    ring.put(ring.slots[2], next);
                }
                let star = Star {
                    below: ring.line(ring.slots[3]),
                    front: if line > 0 { ring.line(ring.slots[0]) } else { zeros },
                    centre: ring.padded_line(),
                    back: if line + 1 < n { ring.line(ring.slots[2]) } else { zeros },
                    above: match rest.get(plane - n..plane) {
                        Some(above) => above,
                        None if has_above(height) => &above[line * n..][..n],
                        None => zeros,
                    },
                    b: &self.b[height * plane + line * n..][..n],
                };
                sweep_line(self.step, &star, &mut done[row..], &mut lanes);
                ring.advance();
            }
            *sum = lanes.as_flattened().iter().sum();
        }
    }
}

impl Ring<'_> {
    /// The old line at a slot.
    fn line(&self, slot: usize) -> &[f64] {
        &self.values[ALIGNED + slot * stride(self.n)..][..self.n]
    }

    /// The current line with the zeros around it.
    fn padded_line(&self) -> &[f64] {
        &self.values[ALIGNED + self.slots[1] * stride(self.n) - 1..][..self.n + 2]
    }

    /// Keeps a line.
    fn put(&mut self, slot: usize, line: &[f64]) {
        self.values[ALIGNED + slot * stride(self.n)..][..self.n].copy_from_slice(line);
    }

    /// The next line becomes the current one.
    fn advance(&mut self) {
        let [_, current, next, below] = self.slots;
        let after = if below == self.n + 1 { 0 } else { below + 1 };
        self.slots = [current, next, below, after];
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use recoup_core::Operator;

    use super::*;
    use crate::{Csr, Pool};

    #[test]
    fn sweeps_in_place_give_the_iterate_of_the_matrix_bit_for_bit() {
        for n in [1, 2, 3, SMALL, SMALL + 1, 8, 9, 16, 19] {
            let matrix = Csr::poisson3d(n);
            let rows = n * n * n;
            let b: Vec<f64> = (0..rows).map(|i| (i as f64 * 0.3).cos()).collect();
            let start: Vec<f64> = (0..rows).map(|i| (i as f64 * 0.7).sin()).collect();
            let inverse_diagonal = vec![6.0_f64.recip(); rows];
            let swept = |a: &dyn Operator| {
                let mut x = start.clone();
                let mut target = vec![f64::NAN; rows];
                let mut squared = ExactSum::ZERO;
                for _ in 0..3 {
                    let b = &b[..];
                    let inverse_diagonal = &inverse_diagonal[..];
                    let sweep = JacobiSweep { b, inverse_diagonal, omega: 0.9, x: &mut x, target: &mut target };
                    squared = a.jacobi_sweep(sweep).unwrap();
                    if !a.sweeps_in_place() {
                        std::mem::swap(&mut x, &mut target);
                    }
                }
                (x.iter().map(|x| x.to_bits()).collect::<Vec<_>>(), squared)
            };
            let (expected, squared) = swept(&matrix);
            let mut seen = None;
            for threads in [1, 2, 3] {
                let (x, sum) = swept(&Poisson3d::new(n).with_pool(Arc::new(Pool::new(threads))));
                assert_eq!(x, expected, "n {n}, {threads} threads");
                assert_eq!(*seen.get_or_insert(sum), sum, "n {n}, {threads} threads");
                // Two orders of one sum of n^3 squares, all positive.
                let [sum, squared] = [sum, squared].map(|sum| sum.rounded());
                assert!((sum - squared).abs() <= 2.0 * rows as f64 * f64::EPSILON * squared, "n {n}");
            }
        }
    }
}
