//! Strict triangles of a factorisation: by rows while they are made, and in runs of rows for the
//! solves.
//!
//! A solve by rows waits for the row before at every step. On a grid that wait is for one entry
//! only, the neighbour's; the others lie rows away. So rows in a row whose entries stand at the
//! same distances from the diagonal make a run: all entries but the neighbour's are taken off for
//! the whole run at once, without columns, and the chain that is left has two operations for four
//! rows.

use std::ops::Range;

use crate::kernels::simd::{LINE, begin_run_block, prefetch, reduce_by_products_block, scale_by_block};

/// Rows of a run, at most.
const RUN_MAX: usize = 128;
/// Fewer rows than these are solved one by one.
const RUN_MIN: usize = 8;
/// The largest entry of a chain: products of four keep the rounding below 1e-11 of a row's terms.
const CHAIN_MAX: f64 = 16.0;
/// Values ahead of those in use that a solve fetches: runs are read backwards on one of two ways,
/// which the hardware does not see coming.
const AHEAD: usize = 384;

/// A strict lower or upper triangle by rows; the diagonal is kept apart by its owner.
#[derive(Clone, Debug, Default)]
pub(super) struct Triangle {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl Triangle {
    /// A triangle without rows, to be filled by [`Triangle::push`] and [`Triangle::end_row`].
    pub(super) fn with_capacity(rows: usize, entries: usize) -> Self {
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        Self { starts, columns: Vec::with_capacity(entries), values: Vec::with_capacity(entries) }
    }

    /// Adds an entry to the row in progress.
    pub(super) fn push(&mut self, column: u32, value: f64) {
        self.columns.push(column);
        self.values.push(value);
    }

    /// Ends the row in progress.
    pub(super) fn end_row(&mut self) {
        self.starts.push(self.columns.len());
    }

    /// The entries of a row as (column, value).
    #[inline]
    pub(super) fn row(&self, row: usize) -> impl DoubleEndedIterator<Item = (usize, f64)> {
        let range = self.starts[row]..self.starts[row + 1];
        self.columns[range.clone()].iter().map(|&column| column as usize).zip(self.values[range].iter().copied())
    }

    /// Entries of all rows.
    pub(super) fn entries(&self) -> usize {
        self.values.len()
    }

    /// Columns of a row.
    fn columns(&self, row: usize) -> &[u32] {
        &self.columns[self.starts[row]..self.starts[row + 1]]
    }

    /// Rows of the run that begins at `first`, of the triangle with scaled rows.
    fn run_rows(&self, first: usize, scale: impl Fn(usize) -> f64) -> usize {
        let columns = self.columns(first);
        let far = columns.iter().map(|&column| first.abs_diff(column as usize)).filter(|&distance| distance > 1);
        // No row of a run needs another but its neighbour.
        let most = far.min().unwrap_or(RUN_MAX).min(RUN_MAX).min(self.starts.len() - 1 - first);
        let is_alike = |&rows: &usize| {
            let row = first + rows;
            let others = self.columns(row);
            others.len() == columns.len()
                && columns.iter().zip(others).all(|(a, b)| *a as usize + rows == *b as usize)
                && self.row(row).all(|(column, t)| row.abs_diff(column) > 1 || (t * scale(row)).abs() <= CHAIN_MAX)
        };
        let alike = (0..most).take_while(is_alike).count();
        if alike < RUN_MIN { 1 } else { alike }
    }
}

/// Rows that follow one another, and where their entries begin; the next run says where they end.
#[derive(Clone, Copy, Debug, Default)]
struct RowRun {
    row: usize,
    distances: usize,
    values: usize,
}

/// A strict triangle T in runs of rows, for solves with `I + T`.
#[derive(Clone, Debug, Default)]
pub(super) struct RunTriangle {
    is_upper: bool,
    runs: Vec<RowRun>,
    /// Distances from the diagonal of the entries of each run, those of the neighbours last.
    distances: Vec<u32>,
    /// Values of each run, those at one distance after those at another.
    values: Vec<f64>,
}

/// A run ready to be solved.
struct RunView<'a> {
    first: usize,
    end: usize,
    /// Distances with the values at each, but for the neighbours'.
    distances: &'a [u32],
    values: &'a [f64],
    /// Values at distance 1, which may be none.
    neighbours: &'a [f64],
}

impl RunTriangle {
    /// Puts `diag(scale) T` in runs, for a T by rows, upper or lower.
    pub(super) fn of(triangle: &Triangle, is_upper: bool, scale: impl Fn(usize) -> f64) -> Self {
        let rows = triangle.starts.len() - 1;
        let values = Vec::with_capacity(triangle.values.len());
        let mut made = Self { is_upper, values, ..Self::default() };
        let mut first = 0;
        while first < rows {
            made.end_run(first);
            let end = first + triangle.run_rows(first, &scale);
            let columns = triangle.columns(first);
            let mut places: Vec<usize> = (0..columns.len()).collect();
            places.sort_by_key(|&place| first.abs_diff(columns[place] as usize) == 1);
            for place in places {
                made.distances.push(first.abs_diff(columns[place] as usize) as u32);
                made.values.extend((first..end).map(|row| triangle.values[triangle.starts[row] + place] * scale(row)));
            }
            first = end;
        }
        made.end_run(rows);
        made
    }

    fn end_run(&mut self, row: usize) {
        self.runs.push(RowRun { row, distances: self.distances.len(), values: self.values.len() });
    }

    /// Number of runs: of steps of a solve.
    pub(super) fn len(&self) -> usize {
        self.runs.len() - 1
    }

    /// Bytes that the triangle keeps.
    pub(super) fn bytes(&self) -> u64 {
        (size_of::<RowRun>() * self.runs.len() + 4 * self.distances.len() + 8 * self.values.len()) as u64
    }

    /// The run of a step: in the order in which rows are solved with T, or with its transpose.
    fn run_at(&self, step: usize, is_transposed: bool) -> usize {
        if self.is_upper == is_transposed { step } else { self.len() - 1 - step }
    }

    /// The rows of a step.
    pub(super) fn rows_at(&self, step: usize, is_transposed: bool) -> Range<usize> {
        let run = self.run_at(step, is_transposed);
        self.runs[run].row..self.runs[run + 1].row
    }

    #[inline]
    fn run(&self, step: usize, is_transposed: bool) -> RunView<'_> {
        let run = self.run_at(step, is_transposed);
        let [here, next] = [self.runs[run], self.runs[run + 1]];
        let rows = next.row - here.row;
        let distances = &self.distances[here.distances..next.distances];
        let values = &self.values[here.values..next.values];
        fetch_ahead(&self.values, here.values..next.values, self.is_upper != is_transposed);
        let far = distances.len() - usize::from(distances.last() == Some(&1));
        let (values, neighbours) = values.split_at(far * rows);
        RunView { first: here.row, end: next.row, distances: &distances[..far], values, neighbours }
    }

    /// `x = (I + T)^-1 diag(scale) b` in the rows of a step, where those of the steps before were
    /// solved; b is x where none is given.
    #[inline]
    pub(super) fn reduce(&self, step: usize, b: Option<&[f64]>, scale: Option<&[f64]>, x: &mut [f64]) {
        let RunView { first, end, mut distances, mut values, neighbours } = self.run(step, false);
        let rows = end - first;
        let (before, own) = x.split_at_mut(first);
        let (own, behind) = own.split_at_mut(rows);
        let known = |distance: u32| match self.is_upper {
            true => &behind[distance as usize - rows..distance as usize],
            false => &before[first - distance as usize..end - distance as usize],
        };
        let [b, scale] = [b, scale].map(|given| given.map(|given| &given[first..end]));
        if let [one, other, others @ ..] = distances {
            let (t, rest) = values.split_at(2 * rows);
            let (t_one, t_other) = t.split_at(rows);
            begin_run_block(b, scale, [t_one, t_other], [known(*one), known(*other)], own);
            distances = others;
            values = rest;
        } else {
            if let Some(b) = b {
                own.copy_from_slice(b);
            }
            if let Some(scale) = scale {
                scale_by_block(scale, own);
            }
        }
        if let [own] = own {
            *own = distances.iter().zip(values).fold(*own, |sum, (&distance, t)| sum - t * known(distance)[0]);
            neighbours.iter().for_each(|t| *own -= t * known(1)[0]);
            return;
        }
        for (&distance, t) in distances.iter().zip(values.chunks_exact(rows)) {
            reduce_by_products_block(t, known(distance), own);
        }
        if neighbours.is_empty() {
        } else if self.is_upper {
            reduce_back(own, neighbours, behind[0]);
        } else {
            reduce_on(own, neighbours, before[first - 1]);
        }
    }

    /// Solves with `diag(scale)^-1 (I + T)^T` in the rows of a step, where those of the steps
    /// before were solved, and takes what these rows give off the rows of later steps.
    #[inline]
    pub(super) fn spread(&self, step: usize, scale: &[f64], x: &mut [f64]) {
        let RunView { first, end, distances, values, neighbours } = self.run(step, true);
        let rows = end - first;
        let (before, own) = x.split_at_mut(first);
        let (own, behind) = own.split_at_mut(rows);
        if neighbours.is_empty() {
        } else if self.is_upper {
            let (first, others) = own.split_at_mut(1);
            let last = reduce_on(others, neighbours, first[0]);
            behind[0] -= neighbours[rows - 1] * last;
        } else {
            let (others, last) = own.split_at_mut(rows - 1);
            let first = reduce_back(others, &neighbours[1..], last[0]);
            before[before.len() - 1] -= neighbours[0] * first;
        }
        for (&distance, t) in distances.iter().zip(values.chunks_exact(rows)) {
            let distance = distance as usize;
            let target = if self.is_upper { &mut behind[distance - rows..] } else { &mut before[first - distance..] };
            if let ([own], [t]) = (&*own, t) {
                target[0] -= t * own;
            } else {
                reduce_by_products_block(t, own, &mut target[..rows]);
            }
        }
        scale_by_block(&scale[first..end], own);
    }
}

/// Asks for as many values as the range has, [`AHEAD`] of it.
#[inline]
fn fetch_ahead(values: &[f64], range: Range<usize>, is_back: bool) {
    let first = values.as_ptr().wrapping_add(range.start);
    let first = if is_back { first.wrapping_sub(AHEAD + range.len()) } else { first.wrapping_add(AHEAD) };
    (0..range.len()).step_by(LINE).for_each(|line| prefetch(first.wrapping_add(line)));
}

/// `x_i -= t_i x_(i-1)` one after the other; returns the last x.
#[inline]
fn reduce_on(x: &mut [f64], t: &[f64], mut last: f64) -> f64 {
    let (fours, others) = x.as_chunks_mut::<4>();
    let (of_fours, of_others) = t[..4 * fours.len() + others.len()].as_chunks::<4>();
    for (x, t) in fours.iter_mut().zip(of_fours) {
        *x = next_four(*x, *t, last);
        last = x[3];
    }
    others.iter_mut().zip(of_others).fold(last, |last, (x, t)| next(x, *t, last))
}

/// `x_i -= t_i x_(i+1)` one after the other, from the end; returns the first x.
#[inline]
fn reduce_back(x: &mut [f64], t: &[f64], mut last: f64) -> f64 {
    let (others, fours) = x.as_rchunks_mut::<4>();
    let (of_others, of_fours) = t[..others.len() + 4 * fours.len()].as_rchunks::<4>();
    for (x, t) in fours.iter_mut().zip(of_fours).rev() {
        let [a, b, c, d] = *x;
        let [of_a, of_b, of_c, of_d] = *t;
        let [d, c, b, a] = next_four([d, c, b, a], [of_d, of_c, of_b, of_a], last);
        *x = [a, b, c, d];
        last = a;
    }
    others.iter_mut().zip(of_others).rev().fold(last, |last, (x, t)| next(x, *t, last))
}

/// Four rows of a chain: all is done for a last x of 0 and one of 1, so that a row waits for one
/// product and one sum only.
#[inline]
fn next_four([a, b, c, d]: [f64; 4], [of_a, of_b, of_c, of_d]: [f64; 4], last: f64) -> [f64; 4] {
    let b = b - of_b * a;
    let c = c - of_c * b;
    let d = d - of_d * c;
    let by_b = of_b * of_a;
    let by_c = of_c * by_b;
    let by_d = of_d * by_c;
    [a - of_a * last, b + by_b * last, c - by_c * last, d + by_d * last]
}

/// `x -= t last`, and x.
#[inline]
fn next(x: &mut f64, t: f64, last: f64) -> f64 {
    *x -= t * last;
    *x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A strict lower or upper triangle whose rows have entries at these distances where they fit
    /// and `has` them; entry (i, j) is 1 / (i + j + 1).
    fn triangle(n: usize, is_lower: bool, distances: &[usize], has: impl Fn(usize) -> bool) -> Triangle {
        let mut made = Triangle::with_capacity(n, 0);
        for i in 0..n {
            let mut columns: Vec<usize> = distances
                .iter()
                .filter(|&&distance| has(i) || distance == 1)
                .filter_map(|&distance| if is_lower { i.checked_sub(distance) } else { Some(i + distance) })
                .filter(|&j| j < n)
                .collect();
            columns.sort_unstable();
            columns.into_iter().for_each(|j| made.push(j as u32, 1.0 / (i + j + 1) as f64));
            made.end_row();
        }
        made
    }

    /// Solves in runs against their definition, entry by entry, for rows in long runs, in runs cut
    /// short by a near entry, and alone.
    #[test]
    fn solves_undo_their_products() {
        let n = 150;
        let known: Vec<f64> = (0..n).map(|i| (i % 7) as f64 - 3.0).collect();
        let scale: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        // Distances, every how many rows one has its neighbour alone, and the runs there may be.
        let all: [(&[usize], usize, usize); 5] =
            [(&[1, 10, 60], n, 16), (&[1], n, 6), (&[40], n, 6), (&[1, 2], n, n), (&[1, 50], 3, n)];
        for (distances, alone, runs_max) in all {
            let has = |i: usize| !i.is_multiple_of(alone);
            let [lower, upper] = [true, false].map(|is_lower| triangle(n, is_lower, distances, has));
            // (I + diag(scale) T) x, T x by rows or by columns.
            let product = |of: &Triangle, is_transposed: bool| {
                let mut b = known.clone();
                for (i, scale) in scale.iter().enumerate() {
                    for (j, t) in of.row(i) {
                        let [to, from] = if is_transposed { [j, i] } else { [i, j] };
                        b[to] += scale * t * known[from];
                    }
                }
                b
            };
            for (of, is_upper) in [(&lower, false), (&upper, true)] {
                let made = RunTriangle::of(of, is_upper, |row| scale[row]);
                assert!(is_upper || made.len() <= runs_max, "{distances:?}: {} runs", made.len());
                let unscaled = |b: Vec<f64>| b.iter().zip(&scale).map(|(b, s)| b / s).collect::<Vec<f64>>();
                let b = unscaled(product(of, false));
                let mut solved = [vec![f64::NAN; n], b.clone(), product(of, true)];
                for step in 0..made.len() {
                    made.reduce(step, Some(&b), Some(&scale), &mut solved[0]);
                    made.reduce(step, None, Some(&scale), &mut solved[1]);
                    made.spread(step, &scale, &mut solved[2]);
                }
                solved[2].iter_mut().zip(&scale).for_each(|(x, s)| *x /= s);
                for x in &solved {
                    for (x, known) in x.iter().zip(&known) {
                        // Sums of 4 products below 9, solved through rows whose entries grow errors
                        // by less than 100 in all.
                        assert!((x - known).abs() <= 100.0 * 40.0 * f64::EPSILON, "{distances:?}: {x} {known}");
                    }
                }
            }
        }
    }

    /// Products of four entries would be infinite, and their product with 0 no number.
    #[test]
    fn large_entries_stand_in_no_chain() {
        let n = 40;
        let mut lower = Triangle::with_capacity(n, n);
        for row in 0..n {
            if row > 0 {
                lower.push(row as u32 - 1, if row % 10 < 5 { 1e100 } else { 0.5 });
            }
            lower.end_row();
        }
        let made = RunTriangle::of(&lower, false, |_| 1.0);
        let mut x = vec![0.0; n];
        x[36] = 1.0;
        (0..made.len()).for_each(|step| made.reduce(step, None, None, &mut x));
        assert_eq!(x[36..], [1.0, -0.5, 0.25, -0.125]);
        assert!(x[..36].iter().all(|x| *x == 0.0), "{x:?}");
    }
}
