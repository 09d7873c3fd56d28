//! One Jacobi sweep in place: x and b read once, x written once, old planes kept in the cache.
//!
//! Each thread owns a slab of planes. The old planes next to it are copied first; then it goes up plane by
//! plane and keeps the old values of the plane it overwrites and of the one below.

use recoup_core::JacobiSweep;

use super::Poisson3d;
use crate::pool::BLOCK;
use crate::simd::{Line, multiply_line, relax_line, residual_block};
use crate::sys::PerUnit;

/// Planes of room a slab needs: below it, above it, previous, current.
const ROOM_PLANES: usize = 4;
/// Cubes up to this side are smaller than the room their sweep needs.
const SMALL: usize = 4;

/// A missing neighbour's values: no segment is longer than a block.
static BEYOND: [f64; BLOCK] = [0.0; BLOCK];

/// What all slabs share.
struct Slabs<'a> {
    n: usize,
    b: &'a [f64],
    /// `omega / 6`.
    step: f64,
}

/// Old values around the plane that is overwritten.
struct Planes<'a> {
    below: Option<&'a [f64]>,
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
    let room = cube.pool.threads() * ROOM_PLANES * plane;
    if n <= SMALL {
        slabs.sweep(0, x, &mut [0.0; ROOM_PLANES * SMALL * SMALL][..ROOM_PLANES * plane], sums);
    } else if room > scratch.len() {
        slabs.sweep(0, x, &mut scratch[..ROOM_PLANES * plane], sums);
    } else {
        let (pool, scratch, shape) = (&cube.pool, &mut scratch[..room], (n * plane, plane));
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
        let (mut previous, mut current) = inside.split_at_mut(plane);
        let last = first + sums.len();
        for (height, sum) in (first..last).zip(sums) {
            let (done, rest) = x.split_at_mut((height - first + 1) * plane);
            let target = &mut done[(height - first) * plane..];
            current.copy_from_slice(target);
            let lower = if height > first { &*previous } else { below };
            let upper = if height + 1 < last { &rest[..plane] } else { above };
            let planes =
                Planes { below: (height > 0).then_some(lower), current, above: (height + 1 < self.n).then_some(upper) };
            *sum = self.relax(&planes, &self.b[height * plane..][..plane], target);
            std::mem::swap(&mut previous, &mut current);
        }
    }

    /// x = x + step (b - A x) on one plane, and the sum of squares of b - A x.
    fn relax(&self, planes: &Planes<'_>, b: &[f64], target: &mut [f64]) -> f64 {
        let (mut squared, mut residual) = (0.0, [0.0; BLOCK]);
        for line in 0..self.n {
            for first in (line * self.n..(line + 1) * self.n).step_by(BLOCK) {
                let end = ((line + 1) * self.n).min(first + BLOCK);
                let r = &mut residual[..end - first];
                multiply_line(&self.line(planes, line, first, end), r);
                squared += residual_block(&b[first..end], r);
                relax_line(self.step, &planes.current[first..end], r, &mut target[first..end]);
            }
        }
        squared
    }

    /// A segment of line `line` and what lies around it.
    fn line<'p>(&self, planes: &Planes<'p>, line: usize, first: usize, end: usize) -> Line<'p> {
        let (n, current) = (self.n, planes.current);
        let beyond = &BEYOND[..end - first];
        Line {
            before: if first == line * n { 0.0 } else { current[first - 1] },
            after: if end == (line + 1) * n { 0.0 } else { current[end] },
            centre: &current[first..end],
            below: planes.below.map_or(beyond, |below| &below[first..end]),
            above: planes.above.map_or(beyond, |above| &above[first..end]),
            front: if line > 0 { &current[first - n..end - n] } else { beyond },
            back: if line + 1 < n { &current[first + n..end + n] } else { beyond },
        }
    }
}
