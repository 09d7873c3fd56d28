//! pco's wide predictor: each code of a grid from all before it that are at most four steps away.
//!
//! Directions of CG, and what an iterate gained since the last version, are sums of many waves.
//! Thirteen neighbours tell few of these apart, sixty-four more. docs/lab/decisions/codecs.md has
//! what that saves.
//!
//! A neighbour outside the grid takes the value of the nearest one inside that comes before, and 0
//! where there is none. Predictions are the same on every machine, as those of `fitted.rs` are.

use recoup_core::Context;

use super::fitted::WalkStep;
use crate::lattice::rounded_or_zero;
use crate::least_squares::Normal;

/// Steps along axes, in all, to the farthest neighbour.
pub(super) const REACH: usize = 4;
/// Neighbours of a code with a plane before it.
const SPACE: usize = 64;
/// Neighbours of a code in the first plane: the last of the others.
const PLANE: usize = 20;
/// Neighbours in planes before, and in rows before: those in the row itself follow.
const BELOW: usize = SPACE - PLANE;
const ROWS: usize = SPACE - REACH;
/// Bytes of a predictor.
pub(super) const WIDE_BYTES: usize = 4 * (SPACE + PLANE);
/// Values a fit looks at, about.
const SAMPLED_VALUES: usize = 1 << 13;
/// Predictions made at a time.
const LANES: usize = 8;

/// The predictor of a grid: the weight of each neighbour.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wide {
    space: [f32; SPACE],
    plane: [f32; PLANE],
}

/// The place of a neighbour: rows and places count from the first that any neighbour has.
#[derive(Clone, Copy)]
struct Neighbour {
    planes_back: usize,
    row: usize,
    place: usize,
}

/// All neighbours, from the farthest plane to the nearest, and likewise by rows and by places. A
/// code itself has row and place [`REACH`].
const NEIGHBOURS: [Neighbour; SPACE] = {
    let mut all = [Neighbour { planes_back: 0, row: 0, place: 0 }; SPACE];
    let mut found = 0;
    let mut planes_back = REACH + 1;
    while planes_back > 0 {
        planes_back -= 1;
        let mut row = 0;
        while row <= 2 * REACH {
            let mut place = 0;
            while place <= 2 * REACH {
                let is_before = planes_back > 0 || row < REACH || row == REACH && place < REACH;
                if is_before && planes_back + row.abs_diff(REACH) + place.abs_diff(REACH) <= REACH {
                    all[found] = Neighbour { planes_back, row, place };
                    found += 1;
                }
                place += 1;
            }
            row += 1;
        }
    }
    assert!(found == SPACE, "as many neighbours as there is room for");
    all
};

impl Wide {
    /// Returns whether codes of this shape can be predicted.
    pub(super) fn covers(context: &Context) -> bool {
        let [nx, ny, _] = context.dims;
        context.stride <= 1 && nx > 2 * REACH && ny > 2 * REACH
    }

    /// The predictor of these codes; `None` where they lie on no grid that is wide enough.
    pub(super) fn fit(codes: &[i64], context: &Context) -> Option<Self> {
        let [nx, ny, nz] = context.dims;
        if !Self::covers(context) || (2..=REACH).contains(&nz) || codes.len() != nx * ny * nz {
            return None;
        }
        let plane = fitted(codes, context.dims, 0..1, NEIGHBOURS.last_chunk::<PLANE>()?)?;
        let space = if nz > 1 { fitted(codes, context.dims, REACH..nz, &NEIGHBOURS)? } else { [0.0; SPACE] };
        Some(Self { space, plane })
    }

    /// Replaces codes by their residuals.
    pub(super) fn remove(&self, codes: &mut [i64], context: &Context) {
        self.walk(codes, context, |code, predicted| WalkStep { code, written: code.wrapping_sub(predicted) });
    }

    /// Undoes [`Wide::remove`].
    pub(super) fn add(&self, codes: &mut [i64], context: &Context) {
        self.walk(codes, context, |left, predicted| {
            let code = left.wrapping_add(predicted);
            WalkStep { code, written: code }
        });
    }

    /// Goes through the grid: `step` takes the number at a place and its prediction.
    fn walk(&self, codes: &mut [i64], context: &Context, step: impl Fn(i64, i64) -> WalkStep) {
        let [nx, ny, nz] = context.dims;
        let mut planes: Vec<PaddedPlane> = (0..nz.min(REACH + 1)).map(|_| PaddedPlane::new(nx, ny)).collect();
        let mut sums = vec![0.0; nx.next_multiple_of(LANES)];
        let space = self.space.map(f64::from);
        let plane = self.plane.map(f64::from);
        for (z, codes) in codes.chunks_exact_mut(nx * ny).enumerate() {
            let place = |z: usize| z % (REACH + 1);
            if z > 0 {
                let [before, own] = planes.get_disjoint_mut([place(z - 1), place(z)]).expect("two planes");
                own.begin_after(before);
            }
            for (y, codes) in codes.chunks_exact_mut(nx).enumerate() {
                let row = |near: &Neighbour| planes[place(z.saturating_sub(near.planes_back))].row(y + near.row);
                let own = if z > 0 {
                    weigh(&NEIGHBOURS[..ROWS], &space[..ROWS], row, &mut sums);
                    &space[ROWS..]
                } else {
                    weigh(&NEIGHBOURS[BELOW..ROWS], &plane[..ROWS - BELOW], row, &mut sums);
                    &plane[ROWS - BELOW..]
                };
                let &[a, b, c, d] = own else { unreachable!("four places in the row itself") };
                let done = planes[place(z)].begin_row(y);
                let [mut p, mut q, mut r, mut s] = [done[REACH]; REACH];
                for ((code_there, sum), done) in codes.iter_mut().zip(&sums).zip(&mut done[REACH..]) {
                    let near = ((a * p + b * q) + c * r) + d * s;
                    let WalkStep { code, written } = step(*code_there, rounded_or_zero(sum + near));
                    *code_there = written;
                    *done = code as f64;
                    (p, q, r, s) = (q, r, s, *done);
                }
                planes[place(z)].end_row(y);
            }
            planes[place(z)].end();
        }
    }

    /// The coefficients, little-endian singles.
    pub(super) fn to_bytes(&self) -> [u8; WIDE_BYTES] {
        let mut bytes = [0; WIDE_BYTES];
        for (field, c) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(self.space.iter().chain(&self.plane)) {
            *field = c.to_le_bytes();
        }
        bytes
    }

    /// The inverse of [`Wide::to_bytes`]: any bits are coefficients.
    pub(super) fn from_bytes(bytes: &[u8; WIDE_BYTES]) -> Self {
        let stored = |i: usize| f32::from_le_bytes(bytes.as_chunks::<4>().0[i]);
        Self { space: std::array::from_fn(stored), plane: std::array::from_fn(|i| stored(SPACE + i)) }
    }
}

/// The codes of a plane with [`REACH`] more on each side, as doubles.
struct PaddedPlane {
    values: Vec<f64>,
    nx: usize,
    ny: usize,
    width: usize,
}

impl PaddedPlane {
    /// Zeros.
    fn new(nx: usize, ny: usize) -> Self {
        let width = nx.next_multiple_of(LANES) + 2 * REACH;
        Self { values: vec![0.0; width * (ny + 2 * REACH)], nx, ny, width }
    }

    /// A row, by its number among all with those before the first.
    fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..][..self.width]
    }

    /// Copies a row to others.
    fn repeat(&mut self, row: usize, to: std::ops::Range<usize>) {
        for target in to {
            self.values.copy_within(row * self.width..(row + 1) * self.width, target * self.width);
        }
    }

    /// Fills the rows before the first with the first row of the plane before.
    fn begin_after(&mut self, before: &Self) {
        let width = self.width;
        self.values[..width].copy_from_slice(before.row(REACH));
        self.repeat(0, 1..REACH);
    }

    /// Row `y` to fill, whose first value is the first of the row before.
    fn begin_row(&mut self, y: usize) -> &mut [f64] {
        let start = (y + REACH) * self.width;
        self.values[start + REACH] = self.values[start - self.width + REACH];
        &mut self.values[start..][..self.width]
    }

    /// Repeats the first and the last value of row `y` beside them.
    fn end_row(&mut self, y: usize) {
        let row = &mut self.values[(y + REACH) * self.width..][..self.width];
        let first = row[REACH];
        let last = row[REACH + self.nx - 1];
        row[..REACH].fill(first);
        row[REACH + self.nx..].fill(last);
    }

    /// Repeats the first and the last row beside them.
    fn end(&mut self) {
        let end = self.ny + REACH;
        self.repeat(REACH, 0..REACH);
        self.repeat(end - 1, end..end + REACH);
    }
}

/// Sets `sums` to what neighbours in rows before make of each place of a row.
#[inline]
fn weigh<'a>(near: &[Neighbour], weights: &[f64], row: impl Fn(&Neighbour) -> &'a [f64], sums: &mut [f64]) {
    let mut rows = [&[][..]; ROWS];
    for (found, near) in rows.iter_mut().zip(near) {
        *found = &row(near)[near.place..][..sums.len()];
    }
    let rows = &rows[..near.len()];
    for (lanes, sums) in sums.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        *sums = [0.0; LANES];
        for (row, weight) in rows.iter().zip(weights) {
            let values = &row[lanes * LANES..][..LANES];
            sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += weight * value);
        }
    }
}

/// Coefficients fitted to rows spread evenly over these planes, where all neighbours are inside.
fn fitted<const N: usize>(
    codes: &[i64],
    [nx, ny, _]: [usize; 3],
    planes: std::ops::Range<usize>,
    near: &[Neighbour; N],
) -> Option<[f32; N]> {
    let len = nx - 2 * REACH;
    let mut normal = Box::new(Normal::EMPTY);
    let rows_of_plane = ny - 2 * REACH;
    let rows = planes.len() * rows_of_plane;
    let taken = (SAMPLED_VALUES / len).max(1).min(rows);
    for sample in 0..taken {
        let index = sample * rows / taken;
        let y = index % rows_of_plane;
        let z = planes.start + index / rows_of_plane;
        let row = |planes_back: usize, row: usize| -> Vec<f64> {
            let start = ((z - planes_back) * ny + y + row) * nx;
            codes[start..start + nx].iter().map(|code| *code as f64).collect()
        };
        let own = row(0, REACH);
        let before = near.map(|n| row(n.planes_back, n.row));
        let columns = std::array::from_fn(|i| &before[i][near[i].place..][..len]);
        normal.count_columns(&columns, &own[REACH..][..len]);
    }
    normal.solve()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pco::fitted::Fitted;

    /// Six waves of amplitude 20 and of different lengths and directions, to integers.
    fn waves([nx, ny, nz]: [usize; 3]) -> Vec<i64> {
        const WAVES: [[f64; 3]; 6] =
            [[0.3, 0.9, 0.2], [1.1, -0.4, 0.7], [-0.2, 0.5, 1.3], [0.8, 1.2, -0.9], [1.5, 0.1, 0.4], [0.6, -1.4, 0.3]];
        let at = |i: usize| [i % nx, i / nx % ny, i / nx / ny].map(|place| place as f64);
        let wave = |[x, y, z]: [f64; 3], [a, b, c]: [f64; 3]| (a * x + b * y + c * z + a).sin();
        let codes = (0..nx * ny * nz).map(|i| WAVES.iter().map(|of| 20.0 * wave(at(i), *of)).sum::<f64>());
        codes.map(|code| code.round() as i64).collect()
    }

    #[test]
    fn neighbours_are_all_within_reach_that_come_before_and_those_of_the_plane_come_last() {
        assert_eq!(NEIGHBOURS.iter().filter(|n| n.planes_back == 0).count(), PLANE);
        assert!(NEIGHBOURS[..BELOW].iter().all(|n| n.planes_back > 0));
        assert!(NEIGHBOURS[BELOW..ROWS].iter().all(|n| n.planes_back == 0 && n.row < REACH));
        let own = NEIGHBOURS[ROWS..].iter().map(|n| (n.planes_back, n.row, n.place));
        assert!(own.eq([(0, REACH, 0), (0, REACH, 1), (0, REACH, 2), (0, REACH, 3)]));
    }

    #[test]
    fn add_undoes_remove_whatever_the_codes_and_the_grid() {
        for dims in [[24, 16, 14], [9, 9, 5], [9, 10, 6], [17, 9, 1], [33, 17, 1]] {
            let context = Context::grid(dims);
            let mut wild = waves(dims);
            for (i, code) in wild.iter_mut().enumerate().filter(|(i, _)| i % 7 == 3) {
                *code = [i64::MAX, i64::MIN, 1 << 51, -(1 << 49)][i % 4];
            }
            for codes in [waves(dims), wild] {
                let Some(wide) = Wide::fit(&codes, &context) else { panic!("{dims:?} can be fitted") };
                let again = Wide::from_bytes(&wide.to_bytes());
                assert_eq!(again, wide);
                let mut changed = codes.clone();
                wide.remove(&mut changed, &context);
                assert_ne!(changed, codes, "{dims:?}");
                again.add(&mut changed, &context);
                assert_eq!(changed, codes, "{dims:?}");
            }
        }
    }

    #[test]
    fn coefficients_that_are_no_numbers_predict_and_undo_all_the_same() {
        for dims in [[9, 9, 2], [12, 9, 4], [10, 11, 7]] {
            let context = Context::grid(dims);
            for c in [f32::NAN, f32::INFINITY, 1e30] {
                let wide = Wide { space: [c; SPACE], plane: [c; PLANE] };
                let codes = waves(dims);
                let mut changed = codes.clone();
                wide.remove(&mut changed, &context);
                wide.add(&mut changed, &context);
                assert_eq!(changed, codes);
            }
        }
    }

    /// Rounding leaves a mean square of 1/12 in each code, and more in what is predicted from them.
    #[test]
    fn waves_are_told_apart_that_thirteen_neighbours_do_not() {
        let context = Context::grid([24, 24, 24]);
        let codes = waves(context.dims);
        let mean_square = |remove: &dyn Fn(&mut [i64], &Context)| {
            let mut left = codes.clone();
            remove(&mut left, &context);
            let is_inner =
                |i: usize| [i % 24, i / 24 % 24, i / 24 / 24].iter().all(|x| (REACH..24 - REACH).contains(x));
            let inner: Vec<i64> = (0..left.len()).filter(|i| is_inner(*i)).map(|i| left[i]).collect();
            inner.iter().map(|&x| (x * x) as f64).sum::<f64>() / inner.len() as f64
        };
        let near = Fitted::fit(&codes, &context).unwrap();
        let near = mean_square(&|codes, context| near.remove(codes, context));
        let wide = Wide::fit(&codes, &context).unwrap();
        let wide = mean_square(&|codes, context| wide.remove(codes, context));
        assert!(near > 10.0 * wide, "{near} and {wide}");
    }

    #[test]
    fn lines_narrow_and_shallow_grids_and_interleaved_unknowns_are_left_alone() {
        assert_eq!(Wide::fit(&[1, 2, 3], &Context::flat(3)), None);
        for dims in [[8, 9, 9], [9, 8, 9], [9, 9, 4], [9, 9, 2]] {
            assert_eq!(Wide::fit(&waves(dims), &Context::grid(dims)), None);
        }
        let interleaved = Context { stride: 2, ..Context::grid([10, 9, 9]) };
        assert_eq!(Wide::fit(&waves(interleaved.dims), &interleaved), None);
        assert_eq!(Wide::fit(&[0; 729], &Context::grid([9, 9, 9])), None);
    }
}
