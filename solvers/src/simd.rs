//! Block kernels, compiled once for the base instruction set and once for AVX2.
//!
//! Promises: the same bits from both, as the same operations run in the same order; no fused
//! multiply-add.

/// Independent partial sums of a dot product, added in a fixed tree.
const LANES: usize = 16;

/// `x . y` of one block.
#[inline]
pub(crate) fn dot_block(x: &[f64], y: &[f64]) -> f64 {
    sum_block([x, y], |[x, y]| x * y)
}

/// The sum of `term` over one block, in [`LANES`] interleaved sums.
#[inline]
fn sum_block([x, y]: [&[f64]; 2], term: impl Fn([f64; 2]) -> f64) -> f64 {
    assert_eq!(x.len(), y.len(), "vectors of one product differ in length");
    let mut lanes = [0.0; LANES];
    let (x_chunks, y_chunks) = (x.chunks_exact(LANES), y.chunks_exact(LANES));
    let (x_rest, y_rest) = (x_chunks.remainder(), y_chunks.remainder());
    for (x, y) in x_chunks.zip(y_chunks) {
        for ((lane, &x), &y) in lanes.iter_mut().zip(x).zip(y) {
            *lane += term([x, y]);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane += term([x, y]);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// `y += alpha x` of one block.
#[inline]
pub(crate) fn axpy_block(alpha: f64, x: &[f64], y: &mut [f64]) {
    assert_eq!(x.len(), y.len(), "vectors of one sum differ in length");
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

/// `r = b - r`, and the new `r . r`, of one block.
#[inline]
pub(crate) fn residual_block(b: &[f64], r: &mut [f64]) -> f64 {
    assert_eq!(b.len(), r.len(), "vectors of one residual differ in length");
    for (r, b) in r.iter_mut().zip(b) {
        *r = b - *r;
    }
    dot_block(r, r)
}

/// `r -= alpha q` of one block.
#[inline]
pub(crate) fn reduce_block(alpha: f64, q: &[f64], r: &mut [f64]) {
    for (r, q) in r.iter_mut().zip(q) {
        *r -= alpha * q;
    }
}

/// `r . (D^-1 r)` of one block, summed as [`dot_block`] does.
#[inline]
pub(crate) fn weighted_dot_block(weights: &[f64], r: &[f64]) -> f64 {
    sum_block([r, weights], |[r, weight]| r * (weight * r))
}

/// `z = D^-1 r` of one block.
#[inline]
pub(crate) fn scale_block(weights: &[f64], r: &[f64], z: &mut [f64]) {
    for ((z, weight), r) in z.iter_mut().zip(weights).zip(r) {
        *z = weight * r;
    }
}

/// `x += alpha p` and `p = z + beta p`, or `p = D^-1 z + beta p` with weights, of one part.
#[inline]
pub(crate) fn descend_block(
    (alpha, beta): (f64, f64),
    (z, weights): (&[f64], Option<&[f64]>),
    x: &mut [f64],
    p: &mut [f64],
) {
    let descend = |x: &mut f64, p: &mut f64, z: f64| {
        *x += alpha * *p;
        *p = z + beta * *p;
    };
    let points = x.iter_mut().zip(p).zip(z);
    match weights {
        None => points.for_each(|((x, p), z)| descend(x, p, *z)),
        Some(weights) => points.zip(weights).for_each(|(((x, p), z), weight)| descend(x, p, weight * z)),
    }
}

/// `r = x + omega D^-1 r` of one block.
#[inline]
pub(crate) fn relax_block(omega: f64, inverse_diagonal: &[f64], x: &[f64], r: &mut [f64]) {
    for ((r, x), d) in r.iter_mut().zip(x).zip(inverse_diagonal) {
        *r = x + omega * d * *r;
    }
}

/// `target = x + step r` of one line.
#[inline]
pub(crate) fn relax_line(step: f64, x: &[f64], r: &[f64], target: &mut [f64]) {
    for ((target, x), r) in target.iter_mut().zip(x).zip(r) {
        *target = x + step * r;
    }
}

/// A segment of a line of a grid, and its neighbours in the other directions.
pub(crate) struct Line<'a> {
    /// The value before the segment; 0 at the boundary.
    pub(crate) before: f64,
    /// The value after the segment; 0 at the boundary.
    pub(crate) after: f64,
    /// The segment.
    pub(crate) centre: &'a [f64],
    /// One plane down.
    pub(crate) below: &'a [f64],
    /// One plane up.
    pub(crate) above: &'a [f64],
    /// One line back within the plane.
    pub(crate) front: &'a [f64],
    /// One line on within the plane.
    pub(crate) back: &'a [f64],
}

/// `y = A x` on a segment, for the 7-point Laplacian; terms in ascending column order.
#[inline]
pub(crate) fn multiply_line(line: &Line<'_>, y: &mut [f64]) {
    let n = y.len();
    let (centre, below, above) = (&line.centre[..n], &line.below[..n], &line.above[..n]);
    let (front, back) = (&line.front[..n], &line.back[..n]);
    let point = |i: usize, before: f64, after: f64| {
        0.0 - below[i] - front[i] - before + 6.0 * centre[i] - after - back[i] - above[i]
    };
    match n {
        0 => {}
        1 => y[0] = point(0, line.before, line.after),
        _ => {
            y[0] = point(0, line.before, centre[1]);
            for i in 1..n - 1 {
                y[i] = point(i, centre[i - 1], centre[i + 1]);
            }
            y[n - 1] = point(n - 1, centre[n - 2], line.after);
        }
    }
}
