//! A small right-looking LU factorisation with partial pivoting, and the writes of its kernels.
//!
//! The factors are computed, because the rows that are swapped depend on them. Source of the
//! algorithm: G. H. Golub, C. F. Van Loan, Matrix Computations, 4th edition 2013, section 3.4.

use std::ops::Range;
use std::slice;

use recoup::model::Rng;

use crate::trace::{KernelWork, Recorder, WriteTrace};

/// Columns of a panel.
const PANEL: usize = 64;

/// A square matrix by columns, in the memory of a device.
pub(crate) struct DenseMatrix {
    pub(crate) n: usize,
    pub(crate) values: Vec<f64>,
    place: Range<u64>,
}

impl DenseMatrix {
    /// Makes a matrix of random values in (-1, 1].
    pub(crate) fn random(n: usize, rng: &mut Rng, place: Range<u64>) -> Self {
        let values = (0..n * n).map(|_| 2.0 * rng.uniform() - 1.0).collect();
        Self { n, values, place }
    }

    /// Bytes of these rows of a column.
    fn column(&self, column: usize, rows: Range<usize>) -> Range<u64> {
        let start = self.place.start + 8 * (column * self.n) as u64;
        start + 8 * rows.start as u64..start + 8 * rows.end as u64
    }

    fn places(&self, columns: Range<usize>, rows: &Range<usize>) -> impl Iterator<Item = u64> + '_ {
        let rows = rows.clone();
        columns.flat_map(move |column| self.column(column, rows.clone()).step_by(8))
    }

    /// Factors `P A = L U` in place; returns the row that was swapped with each. Calls `at_panel`
    /// before every panel.
    pub(crate) fn factor(
        &mut self,
        recorder: &mut Recorder,
        mut at_panel: impl FnMut(usize, &mut Recorder),
    ) -> Vec<usize> {
        let mut pivots = Vec::with_capacity(self.n);
        for start in (0..self.n).step_by(PANEL) {
            at_panel(start, recorder);
            let panel = start..(start + PANEL).min(self.n);
            let swapped = self.factor_panel(panel.clone(), recorder);
            self.swap_rows(&panel, &swapped, recorder);
            self.solve_rows(panel.clone(), recorder);
            self.update(panel, recorder);
            pivots.extend(swapped);
        }
        pivots
    }

    /// Factors the columns of a panel; returns the row swapped with each.
    fn factor_panel(&mut self, panel: Range<usize>, recorder: &mut Recorder) -> Vec<usize> {
        let n = self.n;
        let mut swapped = Vec::new();
        for k in panel.clone() {
            let magnitude = |&row: &usize| self.values[k * n + row].abs();
            let pivot = (k..n).max_by(|a, b| magnitude(a).total_cmp(&magnitude(b))).unwrap_or(k);
            swapped.push(pivot);
            panel.clone().for_each(|column| self.values.swap(column * n + k, column * n + pivot));
            let scale = self.values[k * n + k];
            self.values[k * n + k + 1..(k + 1) * n].iter_mut().for_each(|value| *value /= scale);
            for column in k + 1..panel.end {
                self.eliminate(k, column, k + 1..n);
            }
        }
        let rows = (n - panel.start) as f64;
        let width = panel.len() as f64;
        // Every column is read and written with each one before it.
        let work = KernelWork { moved_bytes: 8.0 * rows * width * width, flops: rows * width * width };
        recorder.scatter(work, self.places(panel.clone(), &(panel.start..n)));
        swapped
    }

    /// `a_ij -= l_ik u_kj` for a column j and these rows.
    fn eliminate(&mut self, k: usize, column: usize, rows: Range<usize>) {
        let n = self.n;
        let (left, right) = self.values.split_at_mut(column * n);
        let l = &left[k * n + rows.start..k * n + rows.end];
        let factor = right[k];
        right[rows].iter_mut().zip(l).for_each(|(value, l)| *value -= l * factor);
    }

    /// Swaps the rows of all columns beside the panel.
    fn swap_rows(&mut self, panel: &Range<usize>, swapped: &[usize], recorder: &mut Recorder) {
        let n = self.n;
        let columns: Vec<usize> = (0..panel.start).chain(panel.end..n).collect();
        let mut places = Vec::new();
        for &column in &columns {
            for (k, &pivot) in panel.clone().zip(swapped).filter(|(k, pivot)| k != *pivot) {
                self.values.swap(column * n + k, column * n + pivot);
                places.extend([k, pivot].map(|row| self.column(column, row..row + 1).start));
            }
        }
        // A word of memory of 32 bytes for each value, read and written.
        let moved_bytes = 64.0 * places.len() as f64;
        recorder.scatter(KernelWork { moved_bytes, flops: 0.0 }, places);
    }

    /// `U_12 = L_11^-1 A_12`.
    fn solve_rows(&mut self, panel: Range<usize>, recorder: &mut Recorder) {
        for column in panel.end..self.n {
            for k in panel.clone() {
                self.eliminate(k, column, k + 1..panel.end);
            }
        }
        let values = (panel.len() * (self.n - panel.end)) as f64;
        let work = KernelWork { moved_bytes: 16.0 * values, flops: values * panel.len() as f64 };
        recorder.scatter(work, self.places(panel.end..self.n, &panel));
    }

    /// `A_22 -= L_21 U_12`.
    fn update(&mut self, panel: Range<usize>, recorder: &mut Recorder) {
        for column in panel.end..self.n {
            for k in panel.clone() {
                self.eliminate(k, column, panel.end..self.n);
            }
        }
        let side = (self.n - panel.end) as f64;
        let width = panel.len() as f64;
        let work = KernelWork { moved_bytes: 16.0 * side * side, flops: 2.0 * width * side * side };
        recorder.scatter(work, self.places(panel.end..self.n, &(panel.end..self.n)));
    }
}

/// Traces factorisations of one matrix after the other, with a version in the middle of the first,
/// and the one before it at a quarter.
pub(crate) fn lu(n: usize) -> WriteTrace {
    let mut recorder = Recorder::default();
    let place = recorder.allocate(8 * (n * n) as u64);
    let pivots = recorder.allocate(8 * n as u64);
    let mut rng = Rng::new(1);
    let mut matrix = DenseMatrix::random(n, &mut rng, place.clone());
    matrix.factor(&mut recorder, |column, recorder| {
        if column == (n / 4).next_multiple_of(PANEL) {
            recorder.start();
        } else if column == (n / 2).next_multiple_of(PANEL) {
            recorder.take_version();
        }
    });
    let mut next = DenseMatrix::random(n, &mut rng, place.clone());
    recorder.stream(KernelWork { moved_bytes: 8.0 * (n * n) as f64, flops: 0.0 }, slice::from_ref(&place));
    next.factor(&mut recorder, |_, _| ());
    recorder.finish("LU", format!("{n} columns, panels of {PANEL}"), vec![place, pivots])
}
