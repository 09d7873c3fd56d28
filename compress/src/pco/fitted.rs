//! pco's fitted predictor: each code of a grid from the thirteen neighbours coded before it.
//!
//! The fit may err as it likes: encoder and decoder walk the same function over the same codes, in
//! the same order of IEEE operations, so that predictions are the same on every machine.

use recoup_core::Context;

use crate::lattice::rounded_or_zero;
use crate::neighbours::{COEFFICIENTS, Coefficients, Fit, RowsBefore, SPACE};

/// Bytes of a predictor.
pub(super) const FITTED_BYTES: usize = 4 * COEFFICIENTS;
/// Values a fit looks at, about.
const SAMPLED_VALUES: usize = 1 << 14;

/// The predictor of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fitted(Coefficients<f32>);

/// The rows a row is predicted from, each with its first and last code once more at its ends.
struct RowNeighbours<'a> {
    /// Row y - 1.
    south: Option<&'a [f64]>,
    /// Rows (y - 1, z - 1), (y, z - 1), (y + 1, z - 1).
    below: Option<[&'a [f64]; 3]>,
}

impl<'a> RowNeighbours<'a> {
    /// The three or twelve neighbours' rows, a missing one replaced by the nearest there is.
    fn new(rows: impl Fn(usize, usize) -> &'a [f64], [y, z]: [usize; 2], ny: usize) -> Self {
        let below =
            (z > 0).then(|| [rows(y.saturating_sub(1), z - 1), rows(y, z - 1), rows((y + 1).min(ny - 1), z - 1)]);
        let south = if y > 0 { Some(rows(y - 1, z)) } else { below.map(|[_, level, _]| level) };
        Self { south, below }
    }

    /// The code that stands in for the one before the first of the row.
    fn edge(&self) -> f64 {
        self.south.map_or(0.0, |south| south[1])
    }
}

/// One place of a walk through the grid.
pub(super) struct WalkStep {
    /// The code there, from which others are predicted.
    pub(super) code: i64,
    /// The number that replaces the one there.
    pub(super) written: i64,
}

impl Fitted {
    /// The predictor of these codes; `None` where they lie on no grid of two dimensions or more.
    pub(super) fn fit(codes: &[i64], context: &Context) -> Option<Self> {
        let [nx, ny, nz] = context.dims;
        if context.stride > 1 || nx < 4 || ny < 2 || codes.len() != nx * ny * nz {
            return None;
        }
        let mut fit = Fit::EMPTY;
        count_planes(&mut fit, codes, context.dims, 0..1);
        count_planes(&mut fit, codes, context.dims, 1..nz);
        let space = if nz > 1 { fit.space()? } else { [0.0; SPACE] };
        Some(Self(Coefficients { space, plane: fit.plane()? }))
    }

    /// Replaces codes by their residuals.
    pub(super) fn remove(&self, codes: &mut [i64], context: &Context) {
        self.walk(codes, context, |code, predicted| WalkStep { code, written: code.wrapping_sub(predicted) });
    }

    /// Undoes [`Fitted::remove`].
    pub(super) fn add(&self, codes: &mut [i64], context: &Context) {
        self.walk(codes, context, |left, predicted| {
            let code = left.wrapping_add(predicted);
            WalkStep { code, written: code }
        });
    }

    /// Goes through the grid: `step` takes the number at a place and its prediction.
    fn walk(&self, codes: &mut [i64], context: &Context, step: impl Fn(i64, i64) -> WalkStep) {
        let [nx, ny, _] = context.dims;
        let padded = nx + 2;
        let mut planes = [vec![0.0; padded * ny], vec![0.0; padded * ny]];
        let mut sums = vec![0.0; nx];
        let mut done = vec![0.0; padded];
        for (line, row) in codes.chunks_exact_mut(nx).enumerate() {
            let y = line % ny;
            let z = line / ny;
            let rows = |y: usize, z: usize| &planes[z & 1][y * padded..][..padded];
            let before = RowNeighbours::new(rows, [y, z], ny);
            let own = self.sums(&before, &mut sums);
            let mut west = before.edge();
            for ((place, sum), done) in row.iter_mut().zip(&sums).zip(&mut done[1..]) {
                let WalkStep { code, written } = step(*place, rounded_or_zero(sum + own * west));
                *place = written;
                west = code as f64;
                *done = west;
            }
            (done[0], done[padded - 1]) = (done[1], done[nx]);
            planes[z & 1][y * padded..][..padded].copy_from_slice(&done);
        }
    }

    /// The predictions of a row but for the codes of the row itself, and the coefficient of these.
    fn sums(&self, before: &RowNeighbours<'_>, sums: &mut [f64]) -> f64 {
        match (before.south, before.below) {
            (None, _) => {
                sums.fill(0.0);
                1.0
            }
            (Some(south), None) => {
                let [a, b, c, own] = self.0.plane.map(f64::from);
                sums.iter_mut().zip(south.windows(3)).for_each(|(sum, s)| *sum = a * s[0] + b * s[1] + c * s[2]);
                own
            }
            (Some(south), Some(below)) => {
                let c = self.0.space.map(f64::from);
                let [first, level, last] = below.map(|row| row.windows(3));
                let rows = south.windows(3).zip(first).zip(level).zip(last);
                for (sum, (((s, f), l), t)) in sums.iter_mut().zip(rows) {
                    let south = c[0] * s[0] + c[1] * s[1] + c[2] * s[2];
                    let first = c[3] * f[0] + c[4] * f[1] + c[5] * f[2];
                    let level = c[6] * l[0] + c[7] * l[1] + c[8] * l[2];
                    let last = c[9] * t[0] + c[10] * t[1] + c[11] * t[2];
                    *sum = (south + first) + (level + last);
                }
                c[SPACE - 1]
            }
        }
    }

    /// The coefficients, little-endian singles.
    pub(super) fn to_bytes(self) -> [u8; FITTED_BYTES] {
        let mut bytes = [0; FITTED_BYTES];
        for (field, c) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(self.0.iter()) {
            *field = c.to_le_bytes();
        }
        bytes
    }

    /// The inverse of [`Fitted::to_bytes`]: any bits are coefficients.
    pub(super) fn from_bytes(bytes: &[u8; FITTED_BYTES]) -> Self {
        Self(Coefficients::from_fn(|i| f32::from_le_bytes(bytes.as_chunks::<4>().0[i])))
    }
}

/// Counts rows spread evenly over these planes.
fn count_planes(fit: &mut Fit, codes: &[i64], dims: [usize; 3], planes: std::ops::Range<usize>) {
    let [nx, ny, _] = dims;
    let rows = planes.len() * (ny - 1);
    let taken = (SAMPLED_VALUES / nx).max(1).min(rows);
    let row =
        |y: usize, z: usize| -> Vec<f64> { codes[(z * ny + y) * nx..][..nx].iter().map(|code| *code as f64).collect() };
    for sample in 0..taken {
        let index = sample * rows / taken;
        let y = 1 + index % (ny - 1);
        let z = planes.start + index / (ny - 1);
        let south = row(y - 1, z);
        let below = (z > 0).then(|| [row(y - 1, z - 1), row(y, z - 1), row((y + 1).min(ny - 1), z - 1)]);
        let below = below.as_ref().map(|rows| rows.each_ref().map(|row| &row[..]));
        fit.count(RowsBefore { south: &south, below }, &row(y, z));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(i: usize) -> f64 {
        (i as f64 * 0.3).sin()
    }

    /// A smooth field of amplitude 40 and white noise of +-4, and of code 10^15.
    fn noisy(dims: [usize; 3]) -> Vec<i64> {
        let [nx, ny, nz] = dims;
        let mix = |x: u64| (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let noise = |i: usize| (mix(mix(i as u64 + 1)) >> 40) as i64 % 9 - 4;
        let at = |i: usize| (40.0 * wave(i % nx) * wave(i / nx % ny) * wave(i / nx / ny + 5)) as i64;
        (0..nx * ny * nz).map(|i| at(i) + noise(i)).collect()
    }

    #[test]
    fn add_undoes_remove_whatever_the_codes_and_the_grid() {
        for dims in [[24, 24, 24], [4, 2, 1], [5, 2, 2], [7, 3, 2], [33, 17, 1], [4, 9, 3]] {
            let context = Context::grid(dims);
            let mut wild = noisy(dims);
            for (i, code) in wild.iter_mut().enumerate().filter(|(i, _)| i % 7 == 3) {
                *code = [i64::MAX, i64::MIN, 1 << 51, -(1 << 49)][i % 4];
            }
            for codes in [noisy(dims), wild] {
                let Some(fitted) = Fitted::fit(&codes, &context) else { panic!("{dims:?} can be fitted") };
                let again = Fitted::from_bytes(&fitted.to_bytes());
                assert_eq!(again, fitted);
                let mut changed = codes.clone();
                fitted.remove(&mut changed, &context);
                again.add(&mut changed, &context);
                assert_eq!(changed, codes, "{dims:?}");
            }
        }
    }

    #[test]
    fn coefficients_that_are_no_numbers_predict_and_undo_all_the_same() {
        let context = Context::grid([8, 8, 4]);
        for c in [f32::NAN, f32::INFINITY, 1e30] {
            let fitted = Fitted(Coefficients::from_fn(|_| c));
            let codes = noisy(context.dims);
            let mut changed = codes.clone();
            fitted.remove(&mut changed, &context);
            fitted.add(&mut changed, &context);
            assert_eq!(changed, codes);
        }
    }

    /// The noise alone has a mean square of 60 / 9; an average over neighbours comes near it,
    /// Lorenzo's signed sum of eight noises is eight times that.
    #[test]
    fn noise_is_not_added_up() {
        let context = Context::grid([24, 24, 24]);
        let codes = noisy(context.dims);
        let mut left = codes.clone();
        Fitted::fit(&codes, &context).unwrap().remove(&mut left, &context);
        let inner = left[24 * 24..].iter();
        let mean_square = inner.map(|&x| (x * x) as f64).sum::<f64>() / (23 * 24 * 24) as f64;
        assert!(mean_square < 3.0 * 60.0 / 9.0, "{mean_square}");
    }

    #[test]
    fn lines_interleaved_unknowns_and_nothing_are_left_alone() {
        assert_eq!(Fitted::fit(&[1, 2, 3], &Context::flat(3)), None);
        assert_eq!(Fitted::fit(&[1; 64], &Context { stride: 2, ..Context::grid([4, 4, 4]) }), None);
        assert_eq!(Fitted::fit(&[0; 64], &Context::grid([4, 4, 4])), None);
    }
}
