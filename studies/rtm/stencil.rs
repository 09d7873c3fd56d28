//! One time step of the acoustic wave equation, forward or adjoint, eighth order in space.
//!
//! ```text
//! (1+s) u(k+1) = 2 u(k) - (1-s) u(k-1) + v L u(k)
//! ```
//!
//! `L` is the sum of second differences, `v = c^2 dt^2`, `s` the damping; waves are 0 outside of
//! the grid. `L` is symmetric, so the adjoint of the step is the same step taken backwards.
//! A row is worked on axis by axis while it is in the cache, in loops over slices of one length.
//! Rows depend on nothing but their values, so the bits are the same for any number of threads.

use rayon::prelude::*;

use crate::medium::Medium;
use crate::real::Real;

/// Neighbours to each side.
const REACH: usize = 4;
/// Planes of a task at least; a plane of a section is one row.
const PLANES_MIN: usize = 8;

/// Sums that an adjoint step adds to where a state is sampled.
pub(crate) struct Correlation<'a, T> {
    /// `u(k)`, the state of the forward pass.
    pub(crate) state: &'a [T],
    /// `sum u(k) l(k)`.
    pub(crate) image: &'a mut [T],
    /// `sum u(k) v (L l(k+1) + R' r(k))`.
    pub(crate) gradient: &'a mut [T],
}

/// Writes the next field over the one before the newest.
pub(crate) fn step<T: Real>(medium: &Medium<T>, now: &[T], older: &mut [T]) {
    let plane = medium.grid.plane();
    let planes = older.par_chunks_mut(plane).enumerate().with_min_len(PLANES_MIN);
    planes.for_each_init(
        || scratch(medium),
        |difference, (z, target)| {
            for (y, row) in target.chunks_exact_mut(difference.len()).enumerate() {
                laplacian_row(medium, now, y, z, difference);
                update_row(&RowInput::of(medium, now, y, z), difference, row);
            }
        },
    );
}

/// Does the same, and adds the new field to the sums.
pub(crate) fn step_and_correlate<T: Real>(
    medium: &Medium<T>,
    now: &[T],
    older: &mut [T],
    sums: &mut Correlation<'_, T>,
) {
    let plane = medium.grid.plane();
    let sums = sums
        .state
        .par_chunks(plane)
        .zip_eq(sums.image.par_chunks_mut(plane))
        .zip_eq(sums.gradient.par_chunks_mut(plane));
    let planes = older.par_chunks_mut(plane).zip_eq(sums).enumerate().with_min_len(PLANES_MIN);
    planes.for_each_init(
        || scratch(medium),
        |difference, (z, (target, ((state, image), gradient)))| {
            let nx = difference.len();
            for (y, row) in target.chunks_exact_mut(nx).enumerate() {
                let span = y * nx..(y + 1) * nx;
                let input = RowInput::of(medium, now, y, z);
                laplacian_row(medium, now, y, z, difference);
                update_row(&input, difference, row);
                let state = &state[span.clone()];
                add_products(state, row, &mut image[span.clone()]);
                add_scaled_products(state, input.scaled, difference, &mut gradient[span]);
            }
        },
    );
}

/// A row of second differences.
fn scratch<T: Real>(medium: &Medium<T>) -> Vec<T> {
    vec![T::default(); medium.grid.extents[0]]
}

/// Parts of a row that its update reads.
struct RowInput<'a, T> {
    now: &'a [T],
    scaled: &'a [T],
    damping: &'a [T],
    /// Damping along y and z.
    damping_row: T,
}

impl<'a, T: Real> RowInput<'a, T> {
    fn of(medium: &'a Medium<T>, now: &'a [T], y: usize, z: usize) -> Self {
        let nx = medium.grid.extents[0];
        let start = medium.grid.index([0, y, z]);
        Self {
            now: &now[start..start + nx],
            scaled: &medium.scaled[start..start + nx],
            damping: &medium.damping[0],
            damping_row: medium.damping[1][y] + medium.damping[2][z],
        }
    }
}

/// `u(k+1) = (2 u(k) - (1-s) u(k-1) + v L u(k)) / (1+s)`
fn update_row<T: Real>(input: &RowInput<'_, T>, difference: &[T], target: &mut [T]) {
    let n = target.len();
    let now = &input.now[..n];
    let scaled = &input.scaled[..n];
    let damping = &input.damping[..n];
    let difference = &difference[..n];
    let one = T::of(1.0);
    for x in 0..n {
        let s = damping[x] + input.damping_row;
        target[x] = (now[x] + now[x] - (one - s) * target[x] + scaled[x] * difference[x]) / (one + s);
    }
}

fn add_products<T: Real>(a: &[T], b: &[T], sum: &mut [T]) {
    for ((sum, &a), &b) in sum.iter_mut().zip(a).zip(b) {
        *sum += a * b;
    }
}

fn add_scaled_products<T: Real>(a: &[T], scale: &[T], b: &[T], sum: &mut [T]) {
    for (((sum, &a), &scale), &b) in sum.iter_mut().zip(a).zip(scale).zip(b) {
        *sum += a * (scale * b);
    }
}

/// `L u` of a row.
fn laplacian_row<T: Real>(medium: &Medium<T>, now: &[T], y: usize, z: usize, target: &mut [T]) {
    let [nx, ny, nz] = medium.grid.extents;
    let row = |y: Option<usize>, z: Option<usize>| match (y, z) {
        (Some(y), Some(z)) if y < ny && z < nz => {
            let start = (z * ny + y) * nx;
            &now[start..start + nx]
        }
        _ => &medium.zeros[..],
    };
    let centre = row(Some(y), Some(z));
    let weight = medium.weights[0] * T::of(medium.grid.n_axes() as f64);
    for (target, &centre) in target.iter_mut().zip(centre) {
        *target = weight * centre;
    }
    let reach = [1, 2, 3, REACH];
    if ny > 1 {
        let below = reach.map(|k| row(y.checked_sub(k), Some(z)));
        add_axis(&medium.weights, below, reach.map(|k| row(Some(y + k), Some(z))), target);
    }
    if nz > 1 {
        let below = reach.map(|k| row(Some(y), z.checked_sub(k)));
        add_axis(&medium.weights, below, reach.map(|k| row(Some(y), Some(z + k))), target);
    }
    if nx > 1 {
        add_along_row(&medium.weights, centre, target);
    }
}

/// Adds the weighted neighbours along one axis, the nearest first.
fn add_axis<T: Real>(weights: &[T; 5], below: [&[T]; REACH], above: [&[T]; REACH], target: &mut [T]) {
    let n = target.len();
    let [b1, b2, b3, b4] = below.map(|row| &row[..n]);
    let [a1, a2, a3, a4] = above.map(|row| &row[..n]);
    let [_, w1, w2, w3, w4] = *weights;
    for x in 0..n {
        let near = w1 * (b1[x] + a1[x]) + w2 * (b2[x] + a2[x]);
        target[x] += near + (w3 * (b3[x] + a3[x]) + w4 * (b4[x] + a4[x]));
    }
}

/// Adds the weighted neighbours along x: the inner cells as shifted rows, the others one by one.
fn add_along_row<T: Real>(weights: &[T; 5], centre: &[T], target: &mut [T]) {
    let n = centre.len();
    let inner = n.saturating_sub(2 * REACH);
    if inner > 0 {
        let shifted = |shift: usize| &centre[shift..shift + inner];
        let below = [3, 2, 1, 0].map(shifted);
        let above = [5, 6, 7, 8].map(shifted);
        add_axis(weights, below, above, &mut target[REACH..REACH + inner]);
    }
    let at = |x: Option<usize>| x.and_then(|x| centre.get(x)).copied().unwrap_or_default();
    for x in (0..n).filter(|x| *x < REACH || *x >= REACH + inner) {
        let pair = |k: usize| weights[k] * (at(x.checked_sub(k)) + at(Some(x + k)));
        target[x] += (pair(1) + pair(2)) + (pair(3) + pair(4));
    }
}
