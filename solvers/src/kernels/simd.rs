//! Block kernels, compiled once for the base instruction set and once for AVX2 with F16C, which all
//! processors with AVX2 have.
//!
//! Promises: the same bits from both, as the same operations run in the same order; no fused
//! multiply-add.
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls the AVX2 form of a kernel where the processor has AVX2, and prefetches")
)]

pub(crate) mod pack;

use pack::{Operand, Pack};

/// Independent partial sums of a dot product, added in a fixed tree.
const LANES: usize = 16;

/// Values in a cache line, and in two registers.
pub(crate) const LINE: usize = 8;
/// Values ahead of those in use that a sweep fetches: 4 KiB. Passes over four vectors are faster
/// left to the hardware.
const AHEAD: usize = 512;

/// Defines kernels that run in their AVX2 form where the processor has it.
macro_rules! kernels {
    ($($(#[$doc:meta])* fn $name:ident $(<$element:ident>)? ($($argument:ident: $kind:ty),+ $(,)?) $(-> $result:ty)?
        $body:block)+) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name $(<$element: Operand>)? ($($argument: $kind),+) $(-> $result)? {
            #[inline(always)]
            fn plain $(<$element: Operand>)? ($($argument: $kind),+) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,f16c")]
                fn wide $(<$element: Operand>)? ($($argument: $kind),+) $(-> $result)? {
                    plain($($argument),+)
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("f16c") {
                    // SAFETY: the processor has AVX2 and F16C.
                    return unsafe { wide($($argument),+) };
                }
            }
            plain($($argument),+)
        }
    )+};
}

/// Defines kernels over [`Pack`]s, which run on AVX2 registers where the processor has them.
macro_rules! packed_kernels {
    ($($(#[$doc:meta])* fn $name:ident $(<$element:ident>)? =
        $generic:ident($($argument:ident: $kind:ty),+ $(,)?) $(-> $result:ty)?;)+) => {$(
        $(#[$doc])*
        #[inline]
        pub(crate) fn $name $(<$element: Operand>)? ($($argument: $kind),+) $(-> $result)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,f16c")]
                fn wide $(<$element: Operand>)? ($($argument: $kind),+) $(-> $result)? {
                    $generic::<std::arch::x86_64::__m256d $(, $element)?>($($argument),+)
                }
                if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("f16c") {
                    // SAFETY: the processor has AVX2 and F16C.
                    return unsafe { wide($($argument),+) };
                }
            }
            $generic::<[f64; 4] $(, $element)?>($($argument),+)
        }
    )+};
}

packed_kernels! {
    /// `x . y` of one block.
    fn dot_block<E> = dot(x: &[f64], y: &[E]) -> f64;

    /// `r . (D^-1 r)` of one block, summed as [`dot_block`] does.
    fn scaled_dot_block = scaled_dot(diagonal: &[f64], r: &[f64]) -> f64;

    /// `r = b - r`, and the new `r . r`, of one block.
    fn residual_block = residual(b: &[f64], r: &mut [f64]) -> f64;

    /// `r -= alpha q`, and the new `r . r`, of one block.
    fn reduce_block = reduce(alpha: f64, q: &[f64], r: &mut [f64]) -> f64;

    /// `w . v_j` of one block for four vectors.
    fn dot_four_block<E> = dot_four(w: &[f64], vectors: [&[E]; 4]) -> [f64; 4];

    /// `w = (((w + h_0 v_0) + h_1 v_1) + h_2 v_2) + h_3 v_3` of one block.
    fn axpy_four_block<E> = axpy_four(h: [f64; 4], vectors: [&[E]; 4], w: &mut [f64]);

    /// `target = x + step r` with `r = b - A x` on a line of a grid; squares of r are added to
    /// `lanes`, in turn.
    fn sweep_line = sweep(step: f64, star: &Star<'_>, target: &mut [f64], lanes: &mut CacheLine);
}

kernels! {
    /// `y += alpha x` of one block.
    fn axpy_block<E>(alpha: f64, x: &[E], y: &mut [f64]) {
        assert_eq!(x.len(), y.len(), "vectors of one sum differ in length");
        for (y, &x) in y.iter_mut().zip(x) {
            *y += alpha * x.double();
        }
    }

    /// `target = stretch w` in fewer bits, and w becomes the rounded value, of one block.
    fn round_block<E>(stretch: f64, w: &mut [f64], target: &mut [E]) {
        for (w, target) in w.iter_mut().zip(target) {
            *target = E::round(*w * stretch);
            *w = target.double();
        }
    }

    /// `target = x` of one block.
    fn widen_block<E>(x: &[E], target: &mut [f64]) {
        for (target, x) in target.iter_mut().zip(x) {
            *target = x.double();
        }
    }

    /// `z = D^-1 r` of one block.
    fn scale_block(diagonal: &[f64], r: &[f64], z: &mut [f64]) {
        for ((z, d), r) in z.iter_mut().zip(diagonal).zip(r) {
            *z = r / d;
        }
    }

    /// `z = d z`, value by value, of one run.
    fn scale_by_block(d: &[f64], z: &mut [f64]) {
        for (z, d) in z.iter_mut().zip(d) {
            *z *= d;
        }
    }

    /// `z -= t x`, value by value, of one run.
    fn reduce_by_products_block(t: &[f64], x: &[f64], z: &mut [f64]) {
        for ((z, t), x) in z.iter_mut().zip(t).zip(x) {
            *z -= t * x;
        }
    }

    /// `z = (d b - t_0 x_0) - t_1 x_1`, value by value, of one run; b is z, and d 1, where none is
    /// given.
    fn begin_run_block(b: Option<&[f64]>, d: Option<&[f64]>, t: [&[f64]; 2], x: [&[f64]; 2], z: &mut [f64]) {
        let n = z.len();
        let terms = [&t[0][..n], &x[0][..n], &t[1][..n], &x[1][..n]];
        let less = |value: f64, i: usize| (value - terms[0][i] * terms[1][i]) - terms[2][i] * terms[3][i];
        match (b.map(|b| &b[..n]), d.map(|d| &d[..n])) {
            (None, None) => (0..n).for_each(|i| z[i] = less(z[i], i)),
            (None, Some(d)) => (0..n).for_each(|i| z[i] = less(d[i] * z[i], i)),
            (Some(b), None) => (0..n).for_each(|i| z[i] = less(b[i], i)),
            (Some(b), Some(d)) => (0..n).for_each(|i| z[i] = less(d[i] * b[i], i)),
        }
    }

    /// `x += alpha p` and `p = z + beta p` of one part.
    fn descend_block(alpha: f64, beta: f64, z: &[f64], x: &mut [f64], p: &mut [f64]) {
        for ((x, p), z) in x.iter_mut().zip(p).zip(z) {
            *x += alpha * *p;
            *p = z + beta * *p;
        }
    }

    /// `x += alpha p + omega s` of one block.
    fn add_two_block(alpha: f64, p: &[f64], omega: f64, s: &[f64], x: &mut [f64]) {
        for ((x, p), s) in x.iter_mut().zip(p).zip(s) {
            *x += alpha * p + omega * s;
        }
    }

    /// `p = r + beta (p - omega v)` of one part.
    fn direct_block(beta: f64, omega: f64, r: &[f64], v: &[f64], p: &mut [f64]) {
        for ((p, r), v) in p.iter_mut().zip(r).zip(v) {
            *p = r + beta * (*p - omega * v);
        }
    }

    /// `d = source + beta d`, then `target += alpha d`, of one block.
    fn pursue_block(alpha: f64, beta: f64, source: &[f64], d: &mut [f64], target: &mut [f64]) {
        for ((target, d), source) in target.iter_mut().zip(d).zip(source) {
            *d = source + beta * *d;
            *target += alpha * *d;
        }
    }

    /// Does the work of [`descend_block`] with `z = D^-1 r`.
    fn descend_scaled_block(alpha: f64, beta: f64, r: &[f64], diagonal: &[f64], x: &mut [f64], p: &mut [f64]) {
        for (((x, p), r), d) in x.iter_mut().zip(p).zip(r).zip(diagonal) {
            *x += alpha * *p;
            *p = r / d + beta * *p;
        }
    }

    /// `r = x + omega D^-1 r` of one block.
    fn relax_block(omega: f64, inverse_diagonal: &[f64], x: &[f64], r: &mut [f64]) {
        for ((r, x), d) in r.iter_mut().zip(x).zip(inverse_diagonal) {
            *r = x + omega * d * *r;
        }
    }

    /// `y = A x` on a segment, for the 7-point Laplacian.
    fn multiply_line(line: &GridSegment<'_>, y: &mut [f64]) {
        let n = y.len();
        let centre = &line.centre[..n];
        let below = &line.below[..n];
        let above = &line.above[..n];
        let front = &line.front[..n];
        let back = &line.back[..n];
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
}

/// A cache line of doubles, or as many other numbers, as two packs.
pub(crate) type CacheLine<E = f64> = [[E; 4]; 2];

/// The cache lines that `values` fill.
#[inline(always)]
fn pairs<E>(values: &[E]) -> &[CacheLine<E>] {
    values.as_chunks::<4>().0.as_chunks::<2>().0
}

/// The cache lines that `values` fill, to be written.
#[inline(always)]
fn pairs_mut(values: &mut [f64]) -> &mut [CacheLine] {
    values.as_chunks_mut::<4>().0.as_chunks_mut::<2>().0
}

#[inline(always)]
fn dot_four<P: Pack, E: Operand>(w: &[f64], vectors: [&[E]; 4]) -> [f64; 4] {
    let lines = pairs(w);
    let mut lanes = [[P::splat(0.0); 2]; 4];
    let v = [
        &pairs(vectors[0])[..lines.len()],
        &pairs(vectors[1])[..lines.len()],
        &pairs(vectors[2])[..lines.len()],
        &pairs(vectors[3])[..lines.len()],
    ];
    for (i, line) in lines.iter().enumerate() {
        let w = [P::load(&line[0]), P::load(&line[1])];
        for j in 0..4 {
            lanes[j][0] = lanes[j][0].plus(w[0].times(E::load(&v[j][i][0])));
            lanes[j][1] = lanes[j][1].plus(w[1].times(E::load(&v[j][i][1])));
        }
    }
    let first = lines.len() * LINE;
    let mut sums = [0.0; 4];
    for j in 0..4 {
        let mut parts: CacheLine = [[0.0; 4]; 2];
        lanes[j][0].store(&mut parts[0]);
        lanes[j][1].store(&mut parts[1]);
        for ((part, w), &v) in parts.as_flattened_mut().iter_mut().zip(&w[first..]).zip(&vectors[j][first..]) {
            *part += w * v.double();
        }
        let [[a, b, c, d], [e, f, g, h]] = parts;
        sums[j] = sum_lanes([a, b, c, d, e, f, g, h]);
    }
    sums
}

#[inline(always)]
fn axpy_four<P: Pack, E: Operand>(h: [f64; 4], vectors: [&[E]; 4], w: &mut [f64]) {
    let lines = pairs_mut(w);
    let first = lines.len() * LINE;
    let v = [
        &pairs(vectors[0])[..lines.len()],
        &pairs(vectors[1])[..lines.len()],
        &pairs(vectors[2])[..lines.len()],
        &pairs(vectors[3])[..lines.len()],
    ];
    let packs = [P::splat(h[0]), P::splat(h[1]), P::splat(h[2]), P::splat(h[3])];
    for (i, line) in lines.iter_mut().enumerate() {
        let mut low = P::load(&line[0]);
        let mut high = P::load(&line[1]);
        for j in 0..4 {
            low = low.plus(packs[j].times(E::load(&v[j][i][0])));
            high = high.plus(packs[j].times(E::load(&v[j][i][1])));
        }
        low.store(&mut line[0]);
        high.store(&mut line[1]);
    }
    for (i, w) in (first..).zip(&mut w[first..]) {
        let [a, b, c, d] = vectors.map(|v| v[i].double());
        *w = (((*w + h[0] * a) + h[1] * b) + h[2] * c) + h[3] * d;
    }
}

/// Input of a sweep for one line of a grid.
pub(crate) struct Star<'a> {
    /// The line in the plane below.
    pub(crate) below: &'a [f64],
    /// The previous line within the plane.
    pub(crate) front: &'a [f64],
    /// The line, with one more value before and after it.
    pub(crate) centre: &'a [f64],
    /// The next line within the plane.
    pub(crate) back: &'a [f64],
    /// The line in the plane above.
    pub(crate) above: &'a [f64],
    /// The right-hand side.
    pub(crate) b: &'a [f64],
}

#[inline(always)]
fn sweep<P: Pack>(step: f64, star: &Star<'_>, target: &mut [f64], lanes: &mut CacheLine) {
    let whole = pairs_mut(target);
    let lines = whole.len();
    let below = &pairs(star.below)[..lines];
    let front = &pairs(star.front)[..lines];
    let back = &pairs(star.back)[..lines];
    let above = &pairs(star.above)[..lines];
    let b = &pairs(star.b)[..lines];
    let west = &pairs(star.centre)[..lines];
    let centre = &pairs(&star.centre[1..])[..lines];
    let east = &pairs(&star.centre[2..])[..lines];
    let factors = [P::splat(6.0), P::splat(step)];
    let mut sums = [P::load(&lanes[0]), P::load(&lanes[1])];
    for i in 0..lines {
        prefetch(above.as_ptr().wrapping_add(i + AHEAD / LINE));
        prefetch(b.as_ptr().wrapping_add(i + AHEAD / LINE));
        for half in 0..2 {
            let before = [P::load(&below[i][half]), P::load(&front[i][half]), P::load(&west[i][half])];
            let after = [P::load(&east[i][half]), P::load(&back[i][half]), P::load(&above[i][half])];
            let (r, x) = relax_pack(factors, [before, after], [P::load(&centre[i][half]), P::load(&b[i][half])]);
            sums[half] = sums[half].plus(r.times(r));
            x.store(&mut whole[i][half]);
        }
    }
    sums[0].store(&mut lanes[0]);
    sums[1].store(&mut lanes[1]);
    let first = lines * LINE;
    for ((i, target), lane) in (first..).zip(&mut target[first..]).zip(lanes.as_flattened_mut()) {
        let row = &star.centre[i..i + 3];
        let x = star.centre[i + 1];
        let r = star.b[i] - laplacian([star.below[i], star.front[i], row[0], x, row[2], star.back[i], star.above[i]]);
        *lane += r * r;
        *target = x + step * r;
    }
}

/// `r = b - A x` and `x + step r`; factors are 6 and the step, the others x before and after and x
/// and b here.
#[inline(always)]
fn relax_pack<P: Pack>(factors: [P; 2], [before, after]: [[P; 3]; 2], [x, b]: [P; 2]) -> (P, P) {
    let taken = P::splat(0.0).minus(before[0]).minus(before[1]).minus(before[2]);
    let product = taken.plus(factors[0].times(x)).minus(after[0]).minus(after[1]).minus(after[2]);
    let r = b.minus(product);
    (r, x.plus(factors[1].times(r)))
}

/// A row of the 7-point Laplacian times x, terms in ascending column order; absent neighbours
/// are 0.
#[inline(always)]
fn laplacian([below, front, west, centre, east, back, above]: [f64; 7]) -> f64 {
    0.0 - below - front - west + 6.0 * centre - east - back - above
}

/// The lanes of the sums of a block, as four packs.
type PackedLanes<E = f64> = [[E; 4]; 4];

/// Values as lanes, without those that are left.
#[inline(always)]
fn whole_lanes<E>(values: &[E]) -> &[PackedLanes<E>] {
    values.as_chunks::<4>().0.as_chunks::<4>().0
}

/// The values that fill no lanes, filled up with `filler`.
#[inline(always)]
fn last_lanes<E: Copy>(values: &[E], filler: E) -> PackedLanes<E> {
    let left = values.len() % LANES;
    let mut last = [[filler; 4]; 4];
    last.as_flattened_mut()[..left].copy_from_slice(&values[values.len() - left..]);
    last
}

/// The sum of `term` over one block, in [`LANES`] interleaved sums. A term of 0 and 1 is 0, which
/// changes no bit of a sum that began with 0.
#[inline(always)]
fn sum_block<P: Pack, E: Operand>(x: &[f64], y: &[E], term: impl Fn([P; 2]) -> P) -> f64 {
    assert_eq!(x.len(), y.len(), "vectors of one product differ in length");
    let mut sums = [P::splat(0.0); 4];
    for (x, y) in whole_lanes(x).iter().zip(whole_lanes(y)) {
        add_terms(&mut sums, x, y, &term);
    }
    if !x.len().is_multiple_of(LANES) {
        add_terms(&mut sums, &last_lanes(x, 0.0), &last_lanes(y, E::round(1.0)), &term);
    }
    sum_packs(sums)
}

/// Adds a term to each lane. As a closure it would not be inlined, and lanes pass through memory.
#[inline(always)]
fn add_terms<P: Pack, E: Operand>(sums: &mut [P; 4], x: &PackedLanes, y: &PackedLanes<E>, term: &impl Fn([P; 2]) -> P) {
    for pack in 0..4 {
        sums[pack] = sums[pack].plus(term([P::load(&x[pack]), E::load(&y[pack])]));
    }
}

/// `r = change(q, r)`, and the new `r . r` of one block, summed as [`sum_block`] does on the way.
/// The change of 0 and 0 is 0.
#[inline(always)]
fn change_block<P: Pack>(q: &[f64], r: &mut [f64], change: impl Fn([P; 2]) -> P) -> f64 {
    assert_eq!(q.len(), r.len(), "vectors of one residual differ in length");
    let mut sums = [P::splat(0.0); 4];
    let whole = r.as_chunks_mut::<4>().0.as_chunks_mut::<4>().0;
    for (q, r) in whole_lanes(q).iter().zip(whole) {
        add_changes(&mut sums, q, r, &change);
    }
    let left = r.len() % LANES;
    if left > 0 {
        let mut last = last_lanes(r, 0.0);
        add_changes(&mut sums, &last_lanes(q, 0.0), &mut last, &change);
        let first = r.len() - left;
        r[first..].copy_from_slice(&last.as_flattened()[..left]);
    }
    sum_packs(sums)
}

/// Changes r, and adds a square to each lane.
#[inline(always)]
fn add_changes<P: Pack>(sums: &mut [P; 4], q: &PackedLanes, r: &mut PackedLanes, change: &impl Fn([P; 2]) -> P) {
    for pack in 0..4 {
        let changed = change([P::load(&q[pack]), P::load(&r[pack])]);
        changed.store(&mut r[pack]);
        sums[pack] = sums[pack].plus(changed.times(changed));
    }
}

#[inline(always)]
fn dot<P: Pack, E: Operand>(x: &[f64], y: &[E]) -> f64 {
    sum_block(x, y, |[x, y]: [P; 2]| x.times(y))
}

#[inline(always)]
fn scaled_dot<P: Pack>(diagonal: &[f64], r: &[f64]) -> f64 {
    sum_block(r, diagonal, |[r, d]: [P; 2]| r.times(r.over(d)))
}

#[inline(always)]
fn residual<P: Pack>(b: &[f64], r: &mut [f64]) -> f64 {
    change_block(b, r, |[b, r]: [P; 2]| b.minus(r))
}

#[inline(always)]
fn reduce<P: Pack>(alpha: f64, q: &[f64], r: &mut [f64]) -> f64 {
    change_block(q, r, |[q, r]: [P; 2]| r.minus(P::splat(alpha).times(q)))
}

/// The lanes of four packs, added in the tree of [`sum_lanes`].
#[inline(always)]
fn sum_packs<P: Pack>([a, b, c, d]: [P; 4]) -> f64 {
    let mut lanes = [0.0; 4];
    a.plus(c).plus(b.plus(d)).store(&mut lanes);
    sum_lanes(lanes)
}

/// The lanes, a power of two, added in a fixed tree.
#[inline(always)]
pub(crate) fn sum_lanes<const N: usize>(mut lanes: [f64; N]) -> f64 {
    let mut width = N / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// A segment of a line of a grid, and its neighbours in the other directions.
pub(crate) struct GridSegment<'a> {
    /// The value before the segment; 0 at the boundary.
    pub(crate) before: f64,
    /// The value after the segment; 0 at the boundary.
    pub(crate) after: f64,
    /// The segment.
    pub(crate) centre: &'a [f64],
    /// The line in the plane below.
    pub(crate) below: &'a [f64],
    /// The line in the plane above.
    pub(crate) above: &'a [f64],
    /// The previous line within the plane.
    pub(crate) front: &'a [f64],
    /// The next line within the plane.
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

#[cfg(test)]
mod tests {
    use super::pack::Half;
    use super::*;

    fn wave(n: usize, phase: f64) -> Vec<f64> {
        (0..n).map(|i| (i as f64 * 0.7 + phase).sin() * 1e3_f64.powi((i % 5) as i32)).collect()
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|value| value.to_bits()).collect()
    }

    #[test]
    fn packs_have_the_same_bits_with_and_without_registers() {
        for n in [0, 1, 7, 8, 9, 16, 100] {
            let v = [0.1, 0.2, 0.3, 0.4].map(|phase| wave(n, phase));
            let w = wave(n, 0.5);
            let vectors = v.each_ref().map(Vec::as_slice);
            assert_eq!(dot_block(&w, vectors[0]).to_bits(), dot::<[f64; 4], f64>(&w, vectors[0]).to_bits(), "n {n}");
            let [wide, plain] = [scaled_dot_block, scaled_dot::<[f64; 4]>].map(|of| of(vectors[0], &w).to_bits());
            assert_eq!(wide, plain, "n {n}");
            assert_eq!(bits(&dot_four_block(&w, vectors)), bits(&dot_four::<[f64; 4], f64>(&w, vectors)), "n {n}");
            let mut wide = w.clone();
            let mut plain = w.clone();
            axpy_four_block([0.3, -0.7, 1e-3, 5.0], vectors, &mut wide);
            axpy_four::<[f64; 4], f64>([0.3, -0.7, 1e-3, 5.0], vectors, &mut plain);
            assert_eq!(bits(&wide), bits(&plain), "n {n}");
            let [below, front, back, above] = vectors;
            let centre = &wave(n + 2, 0.6)[..];
            let star = Star { below, front, centre, back, above, b: &w };
            let mut wide_lanes = [[0.0; 4]; 2];
            let mut plain_lanes = [[0.0; 4]; 2];
            sweep_line(0.15, &star, &mut wide, &mut wide_lanes);
            sweep::<[f64; 4]>(0.15, &star, &mut plain, &mut plain_lanes);
            assert_eq!(bits(&wide), bits(&plain), "n {n}");
            assert_eq!(bits(wide_lanes.as_flattened()), bits(plain_lanes.as_flattened()), "n {n}");
        }
    }

    #[test]
    fn sums_on_the_way_have_the_bits_of_a_pass_of_their_own() {
        for n in [0, 1, LANES - 1, LANES, LANES + 1, 512, 1001] {
            let q = wave(n, 0.1);
            let mut r = wave(n, 0.2);
            let plain: Vec<f64> = r.iter().zip(&q).map(|(r, q)| r - 0.3 * q).collect();
            assert_eq!(reduce_block(0.3, &q, &mut r).to_bits(), dot_block(&plain, &plain).to_bits(), "n {n}");
            assert_eq!(bits(&r), bits(&plain), "n {n}");
            let mut r = wave(n, 0.2);
            let plain: Vec<f64> = r.iter().zip(&q).map(|(r, q)| q - r).collect();
            assert_eq!(residual_block(&q, &mut r).to_bits(), dot_block(&plain, &plain).to_bits(), "n {n}");
            assert_eq!(bits(&r), bits(&plain), "n {n}");
            // The definition: lane i has every 16th term, lanes are added in a tree.
            let mut lanes = [0.0; LANES];
            r.iter().zip(&q).enumerate().for_each(|(i, (r, q))| lanes[i % LANES] += r * q);
            assert_eq!(dot_block(&r, &q).to_bits(), sum_lanes(lanes).to_bits(), "n {n}");
        }
    }

    #[test]
    fn halves_have_the_same_bits_with_and_without_registers() {
        let all: Vec<Half> = (0..0x7c00_u16).map(u16::to_le_bytes).collect();
        for halves in all.as_chunks::<100>().0 {
            let w = wave(100, 0.5);
            let vectors = [&halves[..]; 4];
            assert_eq!(bits(&dot_four_block(&w, vectors)), bits(&dot_four::<[f64; 4], Half>(&w, vectors)));
        }
    }

    #[test]
    fn products_with_four_vectors_are_the_products_with_each() {
        let v = [0.1, 0.2, 0.3, 0.4].map(|phase| wave(1001, phase));
        let w = wave(1001, 0.5);
        let products = dot_four_block(&w, v.each_ref().map(Vec::as_slice));
        for (product, v) in products.into_iter().zip(&v) {
            // Each way errs by at most n eps sum |w_i v_i|.
            let bound = w.iter().zip(v).map(|(w, v)| (w * v).abs()).sum::<f64>() * 2.0 * 1001.0 * f64::EPSILON;
            assert!((product - dot_block(&w, v)).abs() <= bound, "{product}");
        }
    }
}
