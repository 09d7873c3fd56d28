//! QB's fitted tiles: each code from the thirteen neighbours coded before it, by weights the frame
//! carries.
//!
//! Differences of a version to the one before are predicted too. Weights are integers and sums
//! wrap, so that predictions are the same on every machine, whatever the weights are.

use super::int::Int;
use super::tile::{EDGE, TILE};
use crate::neighbours::{COEFFICIENTS, Coefficients, Fit, RowsBefore};

/// Weights are multiples of `2^-FRACTION`.
const FRACTION: u32 = 12;
/// Bytes of the weights, with zeros up to a whole word.
pub(super) const WEIGHTS: usize = (2 * COEFFICIENTS).next_multiple_of(4);
/// Distance from a tile's base up to which 32 bits hold a weighted sum, where it is about as large
/// as a code.
pub(super) const NARROW_FITTED: i64 = 1 << 18;

/// The weights of neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weights(Coefficients<i16>);

impl Weights {
    /// The weights that fit; `None` where the codes determine none.
    pub(super) fn of(fit: &Fit) -> Option<Self> {
        Some(Self(Coefficients { space: rounded(fit.space()?, 7), plane: rounded(fit.plane()?, 1) }))
    }

    /// The weights, little-endian, and zeros up to a whole word.
    pub(super) fn to_bytes(self) -> [u8; WEIGHTS] {
        let mut bytes = [0; WEIGHTS];
        for (field, weight) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(self.0.iter()) {
            *field = weight.to_le_bytes();
        }
        bytes
    }

    /// The weights, and a zero, as kernels take them.
    #[cfg(feature = "cuda")]
    pub(super) fn to_device(self) -> [i16; COEFFICIENTS + 1] {
        let mut weights = [0; COEFFICIENTS + 1];
        weights.iter_mut().zip(self.0.iter()).for_each(|(field, weight)| *field = weight);
        weights
    }

    /// The inverse of [`Weights::to_bytes`]: any integers are weights.
    pub(super) fn from_bytes(bytes: &[u8; WEIGHTS]) -> Option<Self> {
        let weights = Self(Coefficients::from_fn(|i| i16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])));
        (weights.to_bytes() == *bytes).then_some(weights)
    }
}

/// A row of codes, its first and last once more at its ends.
type PaddedRow<I> = [I; EDGE + 2];

/// The rows of a plane and of the one before, in turns.
type RowPlanes<I> = [[PaddedRow<I>; EDGE]; 2];

fn no_planes<I: Int>() -> RowPlanes<I> {
    [[[I::default(); EDGE + 2]; EDGE]; 2]
}

/// The prediction of a row.
struct RowPredictor<I> {
    /// Weighted neighbours but for the code before in the row, and a half.
    sums: [I; EDGE],
    /// Weight of the code before.
    own: I,
    /// The code that stands in for the one before the first.
    edge: I,
}

impl<I: Int> RowPredictor<I> {
    #[inline(always)]
    fn new(weights: &Weights, planes: &RowPlanes<I>, [y, z]: [usize; 2]) -> Self {
        let level = &planes[z & 1];
        let below = &planes[(z & 1) ^ 1];
        let mut sums = [I::narrowed(1 << (FRACTION - 1)); EDGE];
        if y == 0 && z == 0 {
            return Self { sums, own: I::narrowed(1 << FRACTION), edge: I::default() };
        }
        let south = if y > 0 { &level[y - 1] } else { &below[y] };
        let own = if z == 0 {
            let [a, b, c, own] = weights.0.plane;
            add_row(&mut sums, [a, b, c], south);
            own
        } else {
            let [a, b, c, d, e, f, g, h, i, j, k, l, own] = weights.0.space;
            add_row(&mut sums, [a, b, c], south);
            add_row(&mut sums, [d, e, f], &below[y.saturating_sub(1)]);
            add_row(&mut sums, [g, h, i], &below[y]);
            add_row(&mut sums, [j, k, l], &below[(y + 1).min(EDGE - 1)]);
            own
        };
        Self { sums, own: I::narrowed(i64::from(own)), edge: south[1] }
    }

    /// The predictions of a row from its residuals. With m the prediction and d the residual at a
    /// place, the next prediction is of `S + v (d + m)`, of which all but `v m` is summed
    /// beforehand.
    #[inline(always)]
    fn chain(self, residuals: &[I; EDGE]) -> [I; EDGE] {
        let mut ahead = self.sums;
        ahead[0] = ahead[0].add(self.own.mul(self.edge));
        for x in 1..EDGE {
            ahead[x] = ahead[x].add(self.own.mul(residuals[x - 1]));
        }
        let mut last = I::default();
        for prediction in &mut ahead {
            last = prediction.add(self.own.mul(last)).shifted(FRACTION);
            *prediction = last;
        }
        ahead
    }

    /// The prediction at a place behind `before`.
    #[inline(always)]
    fn at(&self, x: usize, before: I) -> I {
        self.sums[x].add(self.own.mul(before)).shifted(FRACTION)
    }
}

/// `sums[x] += a row[x - 1] + b row[x] + c row[x + 1]`
#[inline(always)]
fn add_row<I: Int>(sums: &mut [I; EDGE], [a, b, c]: [i16; 3], row: &PaddedRow<I>) {
    let a = I::narrowed(i64::from(a));
    let b = I::narrowed(i64::from(b));
    let c = I::narrowed(i64::from(c));
    for x in 0..EDGE {
        sums[x] = sums[x].add(a.mul(row[x]).add(b.mul(row[x + 1])).add(c.mul(row[x + 2])));
    }
}

#[inline(always)]
fn padded<I: Copy + Default>(row: &[I; EDGE]) -> PaddedRow<I> {
    let mut padded = [I::default(); EDGE + 2];
    padded[1..=EDGE].copy_from_slice(row);
    (padded[0], padded[EDGE + 1]) = (row[0], row[EDGE - 1]);
    padded
}

/// The residuals of the codes of a tile, zigzag.
#[inline(always)]
pub(super) fn fitted_residuals<I: Int>(weights: &Weights, tile: &[I; TILE], residuals: &mut [I::Unsigned; TILE]) {
    let mut planes = no_planes();
    let rows = tile.as_chunks::<EDGE>().0;
    let left = residuals.as_chunks_mut::<EDGE>().0;
    for r in 0..EDGE * EDGE {
        let y = r % EDGE;
        let z = r / EDGE;
        let row = &rows[r];
        let left = &mut left[r];
        let ahead = RowPredictor::new(weights, &planes, [y, z]);
        let own = padded(row);
        let mut before = own;
        before[0] = ahead.edge;
        for x in 0..EDGE {
            left[x] = row[x].sub(ahead.at(x, before[x])).zigzag();
        }
        planes[z & 1][y] = own;
    }
}

/// Undoes [`fitted_residuals`].
#[inline(always)]
pub(super) fn fitted_codes<I: Int>(weights: &Weights, residuals: &[I::Unsigned; TILE], tile: &mut [I; TILE]) {
    let mut planes = no_planes();
    let rows = tile.as_chunks_mut::<EDGE>().0.iter_mut().zip(residuals.as_chunks::<EDGE>().0);
    for (r, (row, residuals)) in rows.enumerate() {
        let y = r % EDGE;
        let z = r / EDGE;
        let residuals = residuals.map(I::unzigzag);
        let predictions = RowPredictor::new(weights, &planes, [y, z]).chain(&residuals);
        for x in 0..EDGE {
            row[x] = residuals[x].add(predictions[x]);
        }
        planes[z & 1][y] = padded(row);
    }
}

/// Distance between the rows that a fit looks at.
const ROWS_APART: usize = 8;

/// The fit to one tile: places behind others along each axis that matters, of the first plane and
/// of some rows behind it.
pub(super) fn fit_tile(codes: &[i64; TILE]) -> Fit {
    let mut fit = Fit::EMPTY;
    let rows = codes.as_chunks::<EDGE>().0;
    let row = |y: usize, z: usize| padded(&rows[z * EDGE + y].map(|code| code.wrapping_sub(codes[0]) as f64));
    // Padding stands for the neighbour right of the last place; the first place has no left one,
    // and is not counted.
    for y in 1..EDGE {
        fit.count(RowsBefore { south: &row(y - 1, 0)[1..], below: None }, &row(y, 0)[1..]);
    }
    let behind = (1..EDGE).flat_map(|z| (1..EDGE).map(move |y| (y, z)));
    for (y, z) in behind.filter(|(y, z)| (y + z).is_multiple_of(ROWS_APART)) {
        let below = [row(y - 1, z - 1), row(y, z - 1), row((y + 1).min(EDGE - 1), z - 1)];
        let below = Some(below.each_ref().map(|row| &row[1..]));
        fit.count(RowsBefore { south: &row(y - 1, z)[1..], below }, &row(y, z)[1..]);
    }
    fit
}

/// The nearest weights. What rounding changes of their sum goes to the one at `centre`: the codes
/// of a tile have much in common.
fn rounded<const N: usize>(coefficients: [f32; N], centre: usize) -> [i16; N] {
    const LARGEST: f64 = i16::MAX as f64;
    let scaled = coefficients.map(|c| (f64::from(c) * f64::from(1 << FRACTION)).clamp(-LARGEST, LARGEST));
    let nearest = |t: f64| (t + if t < 0.0 { -0.5 } else { 0.5 }) as i32;
    let mut weights = scaled.map(nearest);
    weights[centre] += nearest(scaled.iter().sum()) - weights.iter().sum::<i32>();
    weights.map(|weight| weight.clamp(-i32::from(i16::MAX), i32::from(i16::MAX)) as i16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whole numbers below `2^32` in no order.
    fn scattered(n: usize) -> i64 {
        let mix = |x: u64| (x ^ (x >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mix(mix(n as u64 + 1)) >> 32) as i64
    }

    /// A smooth field of amplitude 40 with white noise of +-8.
    fn noisy() -> Box<[i64; TILE]> {
        let wave = |i: usize| (i as f64 * 0.3).sin();
        let at = |i: usize| (40.0 * wave(i % 16) * wave(i / 16 % 16) * wave(i / 256 + 5)) as i64;
        Box::new(std::array::from_fn(|i| at(i) + scattered(i) % 17 - 8))
    }

    fn fit(codes: &[i64; TILE]) -> Weights {
        Weights::of(&fit_tile(codes)).unwrap()
    }

    fn there_and_back<I: Int + PartialEq + std::fmt::Debug>(weights: &Weights, codes: &[i64; TILE]) -> Box<[I; TILE]> {
        let tile = Box::new(codes.map(I::narrowed));
        let mut residuals = Box::new([I::Unsigned::default(); TILE]);
        fitted_residuals(weights, &tile, &mut residuals);
        let mut again = Box::new([I::default(); TILE]);
        fitted_codes(weights, &residuals, &mut again);
        assert_eq!(again, tile);
        Box::new(residuals.map(I::unzigzag))
    }

    #[test]
    fn codes_come_back_whatever_they_and_the_weights_are() {
        let wild: Box<[i64; TILE]> = Box::new(std::array::from_fn(|i| scattered(i).wrapping_mul(scattered(i + 7))));
        let extreme = |weight| Weights(Coefficients::from_fn(|_| weight));
        for codes in [noisy(), wild] {
            for weights in [fit(&codes), extreme(i16::MAX), extreme(i16::MIN), extreme(0)] {
                there_and_back::<i32>(&weights, &codes);
                there_and_back::<i64>(&weights, &codes);
            }
        }
    }

    /// The noise alone has a mean square of 24; Lorenzo's signed sum of eight noises is eight times
    /// that.
    #[test]
    fn noise_is_not_added_up() {
        let codes = noisy();
        let left = there_and_back::<i32>(&fit(&codes), &codes);
        let mean_square = left[256..].iter().map(|x| f64::from(x * x)).sum::<f64>() / (TILE - 256) as f64;
        assert!(mean_square < 3.0 * 24.0, "{mean_square}");
    }

    #[test]
    fn weights_survive_their_bytes_and_nothing_stands_behind_them() {
        let weights = fit(&noisy());
        let mut bytes = weights.to_bytes();
        assert_eq!(Weights::from_bytes(&bytes), Some(weights));
        bytes[WEIGHTS - 1] = 1;
        assert_eq!(Weights::from_bytes(&bytes), None);
    }

    #[test]
    fn nothing_is_fitted_to_nothing() {
        assert!(Weights::of(&fit_tile(&[5; TILE])).is_none());
    }
}
