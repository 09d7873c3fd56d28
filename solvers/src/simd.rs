//! Block kernels, compiled once for the base instruction set and once for AVX2.
//!
//! Promises: the same bits from both, as the same operations run in the same order; no fused
//! multiply-add.
#![expect(unsafe_code, reason = "calls the AVX2 form of a kernel where the processor has AVX2, and prefetches")]

/// Independent partial sums of a dot product, added in a fixed tree.
const LANES: usize = 16;

/// Values in a cache line.
const LINE: usize = 8;
/// Values ahead of those in use that a sweep fetches: 4 KiB.
const SWEEP_AHEAD: usize = 512;

/// Defines kernels that run in their AVX2 form where the processor has it.
macro_rules! kernels {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $kind:ty),+ $(,)?) $(-> $result:ty)? $body:block)+) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name($($argument: $kind),+) $(-> $result)? {
            #[inline(always)]
            fn plain($($argument: $kind),+) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2")]
                fn wide($($argument: $kind),+) $(-> $result)? {
                    plain($($argument),+)
                }
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2.
                    return unsafe { wide($($argument),+) };
                }
            }
            plain($($argument),+)
        }
    )+};
}

kernels! {
    /// `x . y` of one block.
    fn dot_block(x: &[f64], y: &[f64]) -> f64 {
        sum_block([x, y], |[x, y]| x * y)
    }

    /// `w . x` and `w . y` of one block, each with the bits of [`dot_block`].
    fn dot_pair_block(w: &[f64], x: &[f64], y: &[f64]) -> [f64; 2] {
        let (mut x_lanes, mut y_lanes) = ([0.0; LANES], [0.0; LANES]);
        let ((w_chunks, w_rest), (x_chunks, x_rest), (y_chunks, y_rest)) =
            (w.as_chunks::<LANES>(), x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
        for ((w, x), y) in w_chunks.iter().zip(x_chunks).zip(y_chunks) {
            for lane in 0..LANES {
                x_lanes[lane] += w[lane] * x[lane];
                y_lanes[lane] += w[lane] * y[lane];
            }
        }
        for (lane, ((w, x), y)) in w_rest.iter().zip(x_rest).zip(y_rest).enumerate() {
            x_lanes[lane] += w * x;
            y_lanes[lane] += w * y;
        }
        [sum_lanes(x_lanes), sum_lanes(y_lanes)]
    }

    /// `y += alpha x` of one block.
    fn axpy_block(alpha: f64, x: &[f64], y: &mut [f64]) {
        assert_eq!(x.len(), y.len(), "vectors of one sum differ in length");
        for (y, x) in y.iter_mut().zip(x) {
            *y += alpha * x;
        }
    }

    /// `w = (w + alpha x) + beta y` of one block.
    fn axpy_pair_block(factors: [f64; 2], x: &[f64], y: &[f64], w: &mut [f64]) {
        let [alpha, beta] = factors;
        for ((w, x), y) in w.iter_mut().zip(x).zip(y) {
            *w = (*w + alpha * x) + beta * y;
        }
    }

    /// `r = b - r`, and the new `r . r`, of one block.
    fn residual_block(b: &[f64], r: &mut [f64]) -> f64 {
        assert_eq!(b.len(), r.len(), "vectors of one residual differ in length");
        for (r, b) in r.iter_mut().zip(b) {
            *r = b - *r;
        }
        sum_block([r, r], |[x, y]| x * y)
    }

    /// `r -= alpha q` of one block.
    fn reduce_block(alpha: f64, q: &[f64], r: &mut [f64]) {
        for (r, q) in r.iter_mut().zip(q) {
            *r -= alpha * q;
        }
    }

    /// `r . (D^-1 r)` of one block, summed as [`dot_block`] does.
    fn weighted_dot_block(weights: &[f64], r: &[f64]) -> f64 {
        sum_block([r, weights], |[r, weight]| r * (weight * r))
    }

    /// `z = D^-1 r` of one block.
    fn scale_block(weights: &[f64], r: &[f64], z: &mut [f64]) {
        for ((z, weight), r) in z.iter_mut().zip(weights).zip(r) {
            *z = weight * r;
        }
    }

    /// `x += alpha p` and `p = z + beta p` of one part; factors are alpha and beta.
    fn descend_block(factors: [f64; 2], z: &[f64], x: &mut [f64], p: &mut [f64]) {
        let [alpha, beta] = factors;
        for ((x, p), z) in x.iter_mut().zip(p).zip(z) {
            *x += alpha * *p;
            *p = z + beta * *p;
        }
    }

    /// As [`descend_block`] with `z = D^-1 r`; the pair is r and `D^-1`.
    fn descend_weighted_block(factors: [f64; 2], pair: [&[f64]; 2], x: &mut [f64], p: &mut [f64]) {
        let ([alpha, beta], [r, weights]) = (factors, pair);
        for (((x, p), r), weight) in x.iter_mut().zip(p).zip(r).zip(weights) {
            *x += alpha * *p;
            *p = weight * r + beta * *p;
        }
    }

    /// `r = x + omega D^-1 r` of one block.
    fn relax_block(omega: f64, inverse_diagonal: &[f64], x: &[f64], r: &mut [f64]) {
        for ((r, x), d) in r.iter_mut().zip(x).zip(inverse_diagonal) {
            *r = x + omega * d * *r;
        }
    }

    /// `y = A x` on a segment, for the 7-point Laplacian.
    fn multiply_line(line: &Line<'_>, y: &mut [f64]) {
        let n = y.len();
        let (centre, below, above) = (&line.centre[..n], &line.below[..n], &line.above[..n]);
        let (front, back) = (&line.front[..n], &line.back[..n]);
        let point = |i: usize, west: f64, east: f64| {
            laplacian([below[i], front[i], west, centre[i], east, back[i], above[i]])
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

    /// `target = x + step r` with `r = b - A x` on a segment, and `r . r`; `star` is x at the points the
    /// Laplacian takes, in ascending column order.
    fn sweep_line(step: f64, star: &[&[f64]; 7], b: &[f64], target: &mut [f64]) -> f64 {
        let n = target.len();
        let (below, front, west) = (&star[0][..n], &star[1][..n], &star[2][..n]);
        let (east, back, above) = (&star[4][..n], &star[5][..n], &star[6][..n]);
        let (centre, b) = (&star[3][..n], &b[..n]);
        for ahead in (0..n).step_by(LINE) {
            prefetch(star[6].as_ptr().wrapping_add(ahead + SWEEP_AHEAD));
            prefetch(b.as_ptr().wrapping_add(ahead + SWEEP_AHEAD));
        }
        for i in 0..n {
            target[i] = b[i] - laplacian([below[i], front[i], west[i], centre[i], east[i], back[i], above[i]]);
        }
        let mut lanes = [0.0; LANES];
        let ((chunks, rest), (x_chunks, x_rest)) = (target.as_chunks_mut::<LANES>(), centre.as_chunks::<LANES>());
        for (target, x) in chunks.iter_mut().zip(x_chunks) {
            for lane in 0..LANES {
                let r = target[lane];
                lanes[lane] += r * r;
                target[lane] = x[lane] + step * r;
            }
        }
        for ((target, x), lane) in rest.iter_mut().zip(x_rest).zip(&mut lanes) {
            *lane += *target * *target;
            *target = x + step * *target;
        }
        sum_lanes(lanes)
    }
}

/// A row of the 7-point Laplacian times x, terms in ascending column order; absent neighbours are 0.
#[inline(always)]
fn laplacian([below, front, west, centre, east, back, above]: [f64; 7]) -> f64 {
    0.0 - below - front - west + 6.0 * centre - east - back - above
}

/// The sum of `term` over one block, in [`LANES`] interleaved sums.
#[inline(always)]
fn sum_block([x, y]: [&[f64]; 2], term: impl Fn([f64; 2]) -> f64) -> f64 {
    assert_eq!(x.len(), y.len(), "vectors of one product differ in length");
    let mut lanes = [0.0; LANES];
    let ((x_chunks, x_rest), (y_chunks, y_rest)) = (x.as_chunks::<LANES>(), y.as_chunks::<LANES>());
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        for lane in 0..LANES {
            lanes[lane] += term([x[lane], y[lane]]);
        }
    }
    for ((lane, &x), &y) in lanes.iter_mut().zip(x_rest).zip(y_rest) {
        *lane += term([x, y]);
    }
    sum_lanes(lanes)
}

/// The lanes, added in a fixed tree.
#[inline(always)]
fn sum_lanes(mut lanes: [f64; LANES]) -> f64 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
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

/// Asks for the cache line at `address`; any address will do.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn prefetch<T>(address: *const T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch reads nothing the program can see and never faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
}

/// Other processors prefetch by themselves.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn prefetch<T>(_address: *const T) {}
