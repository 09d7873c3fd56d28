//! One Jacobi sweep in place: x and b read once, x written once, old planes kept in the cache.
//!
//! Each thread owns a slab of planes. The old planes next to it are copied first; then it goes up plane by
//! plane and keeps the old values of the plane it overwrites and of the one below.

use recoup_core::JacobiSweep;

use super::Poisson3d;
use crate::pool::BLOCK;
use crate::simd::sweep_line;
use crate::sys::PerUnit;

/// Cubes up to this side are smaller than the room their sweep needs.
const SMALL: usize = 4;

/// Values of room a slab of a cube of side `n` needs: old planes below and above it, and two padded ones.
const fn room(n: usize) -> usize {
    2 * n * n + 2 * padded(n)
}

/// Values of a plane with a zero before and after each line.
const fn padded(n: usize) -> usize {
    n * (n + 1) + 1
}

/// A missing neighbour's values: no segment is longer than a block.
static BEYOND: [f64; BLOCK] = [0.0; BLOCK];

/// What all slabs share.
struct Slabs<'a> {
    n: usize,
    b: &'a [f64],
    /// `omega / 6`.
    step: f64,
}

/// Old values around the plane that is overwritten, `None` outside the cube.
struct Planes<'a> {
    /// Padded.
    below: Option<&'a [f64]>,
    /// Padded.
    current: &'a [f64],
    above: Option<&'a [f64]>,
}

/// Sweeps, and returns the sum of squares of the residual before, formed plane by plane.
pub(super) fn sweep_in_place(cube: &Poisson3d, sweep: JacobiSweep<'_>) -> f64 {
    let JacobiSweep { b, omega, x, target, .. } = sweep;
    let (n, plane) = (cube.n, cube.n * cube.n);
    assert_eq!([x.len(), b.len(), target.len()], [n * plane; 3], "vectors of one sweep differ in length");
    let slabs = Slabs { n, b, step: omega * 6.0_f64.recip() };
    let (sums, scratch) = target.split_at_mut(n);
    let all_rooms = cube.pool.threads() * room(n);
    if n <= SMALL {
        slabs.sweep(0, x, &mut [0.0; room(SMALL)][..room(n)], sums);
    } else if all_rooms > scratch.len() {
        slabs.sweep(0, x, &mut scratch[..room(n)], sums);
    } else {
        let (pool, scratch, shape) = (&cube.pool, &mut scratch[..all_rooms], (n * plane, plane));
        let old = &*x;
        pool.for_slabs(shape, (), scratch, |rows, (), room| {
            let (below, rest) = room.split_at_mut(plane);
            if rows.start > 0 {
                below.copy_from_slice(&old[rows.start - plane..rows.start]);
            }
            if rows.end < old.len() {
                rest[..plane].copy_from_slice(&old[rows.end..rows.end + plane]);
            }
        });
        pool.for_slabs(shape, (x, PerUnit { values: sums, unit: plane }), scratch, |rows, (x, sums), room| {
            slabs.sweep(rows.start / plane, x, room, sums);
        });
    }
    sums.iter().sum()
}

impl Slabs<'_> {
    /// Sweeps the planes of `x`, the first of which is plane `first`; `room` begins with the old planes around them.
    fn sweep(&self, first: usize, x: &mut [f64], room: &mut [f64], sums: &mut [f64]) {
        let plane = self.n * self.n;
        let (outside, inside) = room.split_at_mut(2 * plane);
        let (below, above) = outside.split_at(plane);
        let (mut previous, mut current) = inside.split_at_mut(padded(self.n));
        self.pad(below, previous);
        let last = first + sums.len();
        for (height, sum) in (first..last).zip(sums) {
            let (done, rest) = x.split_at_mut((height - first + 1) * plane);
            let target = &mut done[(height - first) * plane..];
            self.pad(target, current);
            let upper = if height + 1 < last { &rest[..plane] } else { above };
            let planes = Planes {
                below: (height > 0).then_some(&*previous),
                current,
                above: (height + 1 < self.n).then_some(upper),
            };
            *sum = self.relax(&planes, &self.b[height * plane..][..plane], target);
            std::mem::swap(&mut previous, &mut current);
        }
    }

    /// `target` is the plane with a zero before and after each line.
    fn pad(&self, plane: &[f64], target: &mut [f64]) {
        target[0] = 0.0;
        for (line, padded) in plane.chunks_exact(self.n).zip(target[1..].chunks_exact_mut(self.n + 1)) {
            padded[..self.n].copy_from_slice(line);
            padded[self.n] = 0.0;
        }
    }

    /// x = x + step (b - A x) on one plane, and the sum of squares of b - A x.
    fn relax(&self, planes: &Planes<'_>, b: &[f64], target: &mut [f64]) -> f64 {
        let (n, current) = (self.n, planes.current);
        let mut squared = 0.0;
        for line in 0..n {
            for first in (0..n).step_by(BLOCK) {
                let len = (n - first).min(BLOCK);
                let (plain, padded) = (line * n + first, 1 + line * (n + 1) + first);
                let beyond = &BEYOND[..len];
                let star = [
                    planes.below.map_or(beyond, |below| &below[padded..padded + len]),
                    if line > 0 { &current[padded - n - 1..][..len] } else { beyond },
                    &current[padded - 1..][..len],
                    &current[padded..][..len],
                    &current[padded + 1..][..len],
                    if line + 1 < n { &current[padded + n + 1..][..len] } else { beyond },
                    planes.above.map_or(beyond, |above| &above[plain..plain + len]),
                ];
                squared += sweep_line(self.step, &star, &b[plain..plain + len], &mut target[plain..plain + len]);
            }
        }
        squared
    }
}
