//! Differences of codes along the axes of a grid, and the choice whether they pay.
//!
//! Differencing along an axis is exact on wrapping integers and its own inverse is a running sum,
//! so no rounding is involved. Along all three axes it is the 3D Lorenzo predictor (Ibarria,
//! Lindstrom, Rossignac, Szymczak 2003, doi:10.1111/1467-8659.00681).

use recoup_core::Context;

/// One axis as memory sees it: `extent` slabs of `inner` codes each, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GridAxis {
    inner: usize,
    extent: usize,
}

/// The axes that differences were taken along, as a set of bits: 1 the fastest (at the distance of
/// the interleaved unknowns), 2 and 4 the slower ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DifferencedAxes(u8);

impl DifferencedAxes {
    /// No axis.
    pub(super) const NONE: Self = Self(0);

    /// The set as stored; `None` when it names an axis beyond the third.
    pub(super) fn from_bits(bits: u8) -> Option<Self> {
        (bits < 8).then_some(Self(bits))
    }

    /// The set as stored.
    pub(super) fn bits(self) -> u8 {
        self.0
    }

    /// The set that makes `codes` shortest, judged on a sample.
    ///
    /// The entropy coder takes differences along the fastest axis by itself, so that axis is named
    /// only where unknowns are interleaved.
    pub(super) fn choose(codes: &[i64], context: &Context) -> Self {
        let own = if context.stride > 1 && context.dims[0].is_multiple_of(context.stride) { 1 } else { 0 };
        let [_, y, z] = context.dims;
        let candidates: &[u8] = match (y > 1, z > 1) {
            (false, false) => &[0],
            (true, false) => &[0, 2],
            (false, true) => &[0, 4],
            (true, true) => &[0, 2, 6],
        };
        let cost = |axes: u8| sampled_cost(codes, context, axes);
        let best = candidates.iter().copied().min_by_key(|&axes| if candidates.len() > 1 { cost(axes) } else { 0 });
        Self(own | best.unwrap_or(0))
    }

    fn each(self, context: &Context) -> impl DoubleEndedIterator<Item = GridAxis> {
        let [nx, ny, nz] = context.dims;
        let stride = context.stride.clamp(1, nx.max(1));
        let axes = [
            GridAxis { inner: stride, extent: nx / stride },
            GridAxis { inner: nx, extent: ny },
            GridAxis { inner: nx * ny, extent: nz },
        ];
        axes.into_iter()
            .enumerate()
            .filter(move |(bit, axis)| self.0 >> bit & 1 == 1 && axis.extent > 1 && axis.inner > 0)
            .map(|(_, axis)| axis)
    }
}

/// Replaces codes by their differences along `axes`.
pub(super) fn difference(codes: &mut [i64], context: &Context, axes: DifferencedAxes) {
    for axis in axes.each(context) {
        for slab in codes.chunks_exact_mut(axis.inner * axis.extent) {
            for row in (1..axis.extent).rev() {
                let (before, after) = slab[(row - 1) * axis.inner..(row + 1) * axis.inner].split_at_mut(axis.inner);
                after.iter_mut().zip(before).for_each(|(x, p)| *x = x.wrapping_sub(*p));
            }
        }
    }
}

/// Undoes [`difference`].
pub(super) fn sum(codes: &mut [i64], context: &Context, axes: DifferencedAxes) {
    for axis in axes.each(context).rev() {
        for slab in codes.chunks_exact_mut(axis.inner * axis.extent) {
            for row in 1..axis.extent {
                let (before, after) = slab[(row - 1) * axis.inner..(row + 1) * axis.inner].split_at_mut(axis.inner);
                after.iter_mut().zip(before).for_each(|(x, p)| *x = x.wrapping_add(*p));
            }
        }
    }
}

/// Slabs of a grid that [`SlabCosts`] looks at, and planes of each that count.
const SLABS: usize = 3;
const JUDGED_PLANES: usize = 2;

/// Costs of codes after a prediction, judged on a few slabs.
#[derive(Clone, Copy)]
pub(super) struct SlabCosts<'a> {
    pub(super) codes: &'a [i64],
    pub(super) context: &'a Context<'a>,
    /// Planes at the start of a slab that do not count where there are others: they have too few
    /// before them, which is rare in the whole grid.
    pub(super) ignored: usize,
}

impl SlabCosts<'_> {
    /// Bits that a code takes, about, after `remove` has taken the prediction from a slab.
    pub(super) fn of(&self, remove: impl Fn(&mut [i64], &Context)) -> f64 {
        let [nx, ny, nz] = self.context.dims;
        let slab = Context::grid([nx, ny, nz.min(self.ignored + JUDGED_PLANES)]);
        let plane = nx * ny;
        let planes = slab.dims[2];
        let ignored = self.ignored.min(planes - 1);
        let judged = Context::grid([nx, ny, planes - ignored]);
        let mut bits = 0;
        for nth in 1..=SLABS {
            let first = (nz - planes) * nth / (SLABS + 1);
            let mut left = self.codes[first * plane..(first + planes) * plane].to_vec();
            remove(&mut left, &slab);
            bits += sampled_cost(&left[ignored * plane..], &judged, DifferencedAxes::NONE.bits());
        }
        let sampled = SLABS * nx * (ny * judged.dims[2]).min(SAMPLED_LINES);
        bits as f64 / sampled as f64
    }
}

/// Lines of the fastest axis looked at by [`DifferencedAxes::choose`].
const SAMPLED_LINES: usize = 64;

/// Bits the sampled lines would take after differences along the slower `axes` and then, once or
/// twice, along the fastest.
fn sampled_cost(codes: &[i64], context: &Context, axes: u8) -> u64 {
    let [nx, ny, nz] = context.dims;
    let lines = ny * nz;
    let mut line = vec![0i64; nx];
    let mut costs = [0u64; 3];
    for sample in 0..lines.min(SAMPLED_LINES) {
        let index = sample * lines / lines.min(SAMPLED_LINES);
        let y = index % ny;
        let z = index / ny;
        line.copy_from_slice(&codes[index * nx..(index + 1) * nx]);
        let neighbours = [(axes & 2 != 0 && y > 0, 1, true), (axes & 4 != 0 && z > 0, ny, true)];
        let both = (neighbours[0].0 && neighbours[1].0, ny + 1, false);
        for (is_there, lines_back, subtract) in neighbours.into_iter().chain([both]) {
            if is_there {
                let start = (index - lines_back) * nx;
                for (x, p) in line.iter_mut().zip(&codes[start..start + nx]) {
                    *x = if subtract { x.wrapping_sub(*p) } else { x.wrapping_add(*p) };
                }
            }
        }
        for cost in &mut costs {
            *cost += line.iter().map(|&x| length(x)).sum::<u64>();
            for i in (1..nx).rev() {
                line[i] = line[i].wrapping_sub(line[i - 1]);
            }
        }
    }
    costs.into_iter().min().unwrap_or(0)
}

/// Bits of a signed integer, about.
fn length(x: i64) -> u64 {
    u64::from(64 - ((x << 1) ^ (x >> 63)).leading_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_undoes_difference_along_every_set_of_axes() {
        for (dims, stride) in
            [([7, 1, 1], 1), ([12, 1, 1], 3), ([6, 5, 4], 1), ([6, 5, 4], 2), ([1, 1, 9], 1), ([0, 3, 3], 1)]
        {
            let context = Context { stride, ..Context::grid(dims) };
            let n: usize = dims.iter().product();
            let codes: Vec<i64> = (0..n as i64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)).collect();
            for bits in 0..8 {
                let mut changed = codes.clone();
                difference(&mut changed, &context, DifferencedAxes(bits));
                sum(&mut changed, &context, DifferencedAxes(bits));
                assert_eq!(changed, codes, "axes {bits} of {dims:?}");
            }
        }
    }

    #[test]
    fn smooth_grids_are_differenced_along_all_axes_and_noise_along_none() {
        let context = Context::grid([16, 16, 16]);
        let smooth: Vec<i64> = (0..4096)
            .map(|i| {
                let x = i % 16;
                let y = i / 16 % 16;
                let z = i / 256;
                9 * x * y * z + 100 * (x + y + z)
            })
            .collect();
        assert_eq!(DifferencedAxes::choose(&smooth, &context), DifferencedAxes(6));
        let mix = |x: i64| x.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        let noise: Vec<i64> = (1..=4096i64).map(|i| mix(mix(i) ^ (mix(i) >> 29)) >> 40).collect();
        assert_eq!(DifferencedAxes::choose(&noise, &context), DifferencedAxes(0));
    }
}
