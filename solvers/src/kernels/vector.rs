//! Vectors, and kernels on them: slices and scalars in, sums in a fixed order out.
//!
//! Large vectors start at addresses that differ modulo 4 KiB and 64 KiB when allocated together
//! ([`Vector::several`]): passes over several arrays otherwise wait for stores that merely look
//! like the ones they load, which halves the speed of CG.

use std::ops::Range;

use recoup_core::ExactSum;

use crate::kernels::simd::pack::{Half, Operand};
use crate::kernels::simd::{axpy_block, axpy_four_block, dot_block, dot_four_block, round_block, widen_block};
use crate::{Pool, SummedRows};
pub use sys::{RowsMut, Vector, VectorElement};

mod sys;

impl Vector {
    /// A copy of `values`.
    #[must_use]
    pub fn copy_of(pool: &Pool, values: &[f64], slot: usize) -> Self {
        let mut vector = Self::zeros(pool, values.len(), slot);
        copy(pool, values, &mut vector);
        vector
    }

    /// `K` vectors of `n` zeros, staggered.
    #[must_use]
    pub fn several<const K: usize>(pool: &Pool, n: usize) -> [Self; K] {
        Self::several_from(pool, n, 0)
    }

    /// `K` vectors of `n` zeros, staggered, behind those in the slots before `first`.
    #[must_use]
    pub fn several_from<const K: usize>(pool: &Pool, n: usize, first: usize) -> [Self; K] {
        std::array::from_fn(|index| Self::zeros(pool, n, first + index))
    }
}

impl std::fmt::Debug for Vector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: VectorElement> AsRef<[T]> for Vector<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

/// `x . y`.
#[must_use]
pub fn dot(pool: &Pool, rows: impl Into<SummedRows>, x: &[f64], y: &[f64]) -> ExactSum {
    let [sum] = pool.sum_rows(rows, (), |rows, ()| [dot_block(&x[rows.clone()], &y[rows])]);
    sum
}

/// `x . x`.
#[must_use]
pub fn norm_squared(pool: &Pool, rows: impl Into<SummedRows>, x: &[f64]) -> ExactSum {
    dot(pool, rows, x, x)
}

/// `target = x`.
pub fn copy<'t>(pool: &Pool, x: &[f64], target: impl Into<RowsMut<'t>>) {
    pool.for_rows(x.len(), target.into(), |rows, target| target.copy_from_slice(&x[rows]));
}

/// `target = alpha x`.
pub fn scaled_copy<'t>(pool: &Pool, alpha: f64, x: &[f64], target: impl Into<RowsMut<'t>>) {
    pool.for_rows(x.len(), target.into(), |rows, target| {
        for (target, x) in target.iter_mut().zip(&x[rows]) {
            *target = alpha * x;
        }
    });
}

/// `y += alpha x`.
pub fn axpy<'y>(pool: &Pool, alpha: f64, x: &[f64], y: impl Into<RowsMut<'y>>) {
    pool.for_rows(x.len(), y.into(), |rows, y| axpy_block(alpha, &x[rows], y));
}

/// `y = x + beta y`.
pub fn xpay<'y>(pool: &Pool, x: &[f64], beta: f64, y: impl Into<RowsMut<'y>>) {
    pool.for_rows(x.len(), y.into(), |rows, y| {
        for (y, x) in y.iter_mut().zip(&x[rows]) {
            *y = x + beta * *y;
        }
    });
}

/// `h_j = w . v_j` for each vector of `basis`, in one pass over `w`: as many sums as `h` is long.
pub fn multi_dot<E: Operand, B: AsRef<[E]> + Sync>(
    pool: &Pool,
    rows: impl Into<SummedRows>,
    w: &[f64],
    basis: &[B],
    h: &mut [ExactSum],
) {
    pool.sum_rows_into(rows, (), h, |rows, (), h| multi_dot_block(&w[rows.clone()], basis, &rows, h));
}

/// Adds `w . v_j` for these rows to `h_j`.
fn multi_dot_block<E: Operand, B: AsRef<[E]>>(w: &[f64], basis: &[B], rows: &Range<usize>, h: &mut [f64]) {
    assert_eq!(basis.len(), h.len(), "one sum for each basis vector");
    let part = |v| &B::as_ref(v)[rows.clone()];
    let (h_fours, h_rest) = h.as_chunks_mut::<4>();
    let (v_fours, v_rest) = basis.as_chunks::<4>();
    for (h, v) in h_fours.iter_mut().zip(v_fours) {
        for (h, sum) in h.iter_mut().zip(dot_four_block(w, v.each_ref().map(part))) {
            *h += sum;
        }
    }
    for (h, v) in h_rest.iter_mut().zip(v_rest) {
        *h += dot_block(w, part(v));
    }
}

/// `w += alpha sum_j h_j v_j` in one pass over `w`.
pub fn multi_axpy<'w, E: Operand, B: AsRef<[E]> + Sync>(
    pool: &Pool,
    alpha: f64,
    basis: &[B],
    h: &[f64],
    w: impl Into<RowsMut<'w>>,
) {
    let w = w.into();
    pool.for_rows(w.len(), w, |rows, w| multi_axpy_block(alpha, basis, h, &rows, w));
}

/// `w += alpha sum_j h_j v_j` in one pass over `w`, and the new `w . w`.
pub fn multi_axpy_norm<'w, E: Operand, B: AsRef<[E]> + Sync>(
    pool: &Pool,
    rows: impl Into<SummedRows>,
    alpha: f64,
    basis: &[B],
    h: &[f64],
    w: impl Into<RowsMut<'w>>,
) -> ExactSum {
    let [sum] = pool.sum_rows(rows, w.into(), |rows, w| {
        multi_axpy_block(alpha, basis, h, &rows, w);
        [dot_block(w, w)]
    });
    sum
}

/// Vectors one after another: some in doubles, some in floats, some in halves.
#[derive(Clone, Copy)]
pub struct MixedVectors<'a> {
    pub(crate) doubles: &'a [Vector],
    pub(crate) floats: &'a [Vector<f32>],
    pub(crate) halves: &'a [Vector<Half>],
}

impl MixedVectors<'_> {
    /// Cuts coefficients into those of the doubles, of the floats, and of the halves.
    fn cut<'h>(&self, h: &'h [f64]) -> [&'h [f64]; 3] {
        let (doubles, others) = h.split_at(self.doubles.len());
        let (floats, halves) = others.split_at(self.floats.len());
        [doubles, floats, halves]
    }

    /// `w += alpha sum_j h_j v_j` for these rows.
    fn axpy_block(&self, alpha: f64, h: &[f64], rows: &Range<usize>, w: &mut [f64]) {
        let [doubles, floats, halves] = self.cut(h);
        multi_axpy_block(alpha, self.doubles, doubles, rows, w);
        multi_axpy_block(alpha, self.floats, floats, rows, w);
        multi_axpy_block(alpha, self.halves, halves, rows, w);
    }

    /// `h_j = w . v_j`, in one pass over `w`: as many sums as `h` is long.
    pub(crate) fn dot(&self, pool: &Pool, rows: SummedRows, w: &[f64], h: &mut [ExactSum]) {
        pool.sum_rows_into(rows, (), h, |rows, (), h| {
            let w = &w[rows.clone()];
            let (doubles, others) = h.split_at_mut(self.doubles.len());
            let (floats, halves) = others.split_at_mut(self.floats.len());
            multi_dot_block(w, self.doubles, &rows, doubles);
            multi_dot_block(w, self.floats, &rows, floats);
            multi_dot_block(w, self.halves, &rows, halves);
        });
    }

    /// `w += alpha sum_j h_j v_j` in one pass over `w`, and the new `w . w`.
    pub(crate) fn axpy_norm(&self, pool: &Pool, rows: SummedRows, alpha: f64, h: &[f64], w: &mut Vector) -> ExactSum {
        let [sum] = pool.sum_rows(rows, w.rows_mut(), |rows, w| {
            self.axpy_block(alpha, h, &rows, w);
            [dot_block(w, w)]
        });
        sum
    }
}

/// `target = stretch w` in fewer bits, w becomes the rounded value; and the new `w . w`.
pub(crate) fn round<E: Operand + VectorElement>(
    pool: &Pool,
    rows: SummedRows,
    stretch: f64,
    w: &mut Vector,
    target: &mut Vector<E>,
) -> ExactSum {
    let [sum] = pool.sum_rows(rows, (w.rows_mut(), target.rows_mut()), |_, (w, target)| {
        round_block(stretch, w, target);
        [dot_block(w, w)]
    });
    sum
}

/// `target = x`, from fewer bits.
pub(crate) fn widen<E: Operand>(pool: &Pool, x: &[E], target: &mut Vector) {
    pool.for_rows(x.len(), target.rows_mut(), |rows, target| widen_block(&x[rows], target));
}

/// `w += alpha sum_j h_j v_j` for these rows.
fn multi_axpy_block<E: Operand, B: AsRef<[E]>>(alpha: f64, basis: &[B], h: &[f64], rows: &Range<usize>, w: &mut [f64]) {
    assert_eq!(basis.len(), h.len(), "one coefficient for each basis vector");
    let part = |v| &B::as_ref(v)[rows.clone()];
    let (h_fours, h_rest) = h.as_chunks::<4>();
    let (v_fours, v_rest) = basis.as_chunks::<4>();
    for (h, v) in h_fours.iter().zip(v_fours) {
        axpy_four_block(h.map(|h| alpha * h), v.each_ref().map(part), w);
    }
    for (h, v) in h_rest.iter().zip(v_rest) {
        axpy_block(alpha * h, part(v), w);
    }
}

/// Rows combined in one go: their room stays in the fastest cache.
const COMBINED_ROWS: usize = 128;

/// `v_j = sum_i c_ij v_i` in place for the first vectors of `basis`, one for each column of
/// `columns`; the others stay.
pub fn combine(pool: &Pool, columns: &[Vec<f64>], basis: &mut [Vector]) {
    let n = basis.first().map_or(0, |v| v.len());
    let count = columns.len();
    assert!(columns.iter().all(|column| column.len() == basis.len()), "one coefficient for each vector");
    let views: Vec<RowsMut<'_>> = basis.iter_mut().map(Vector::rows_mut).collect();
    pool.for_rows(n, views, |rows, mut views| {
        let mut room = vec![0.0; COMBINED_ROWS * count];
        for first in (0..rows.len()).step_by(COMBINED_ROWS) {
            let part = first..(first + COMBINED_ROWS).min(rows.len());
            let targets = || (0..count).map(|j| j * COMBINED_ROWS..j * COMBINED_ROWS + part.len());
            room.fill(0.0);
            for (target, column) in targets().zip(columns) {
                let (c_fours, c_rest) = column.as_chunks::<4>();
                let (v_fours, v_rest) = views.as_chunks::<4>();
                for (c, v) in c_fours.iter().zip(v_fours) {
                    axpy_four_block(*c, v.each_ref().map(|v| &v[part.clone()]), &mut room[target.clone()]);
                }
                for (c, v) in c_rest.iter().zip(v_rest) {
                    axpy_block(*c, &v[part.clone()], &mut room[target.clone()]);
                }
            }
            for (view, target) in views.iter_mut().zip(targets()) {
                view[part.clone()].copy_from_slice(&room[target]);
            }
        }
    });
}
