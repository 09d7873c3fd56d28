//! The remains of a cycle of GMRES for the next one: the directions it is slowest in, and its
//! residual.
//!
//! Source: GMRES with deflated restarting, R. B. Morgan 2002, doi 10.1137/S1064827599364659. The
//! space kept is that of the harmonic Ritz values nearest 0. Departures: it is found as an
//! invariant subspace (ordered Schur form) and not by eigenvectors, which need not be independent;
//! and it is turned until its small matrix is a Hessenberg matrix again, so that the next cycle
//! extends it as it would extend its own.
//!
//! All here is as small as a cycle is long, the same on every rank, and knows no vector of length
//! n.

use nalgebra::{Complex, DMatrix, DVector, Hessenberg, SVD, Schur};

/// Sweeps after which an eigenvalue iteration has failed.
const SWEEPS_MAX: usize = 10_000;
/// Imaginary parts of a whole set of eigenvalues cancel to this part of the largest.
const IMAGINARY_LEFT: f64 = 1e-8;
/// A subspace of complex vectors that is not as large in real ones is none of whole pairs.
const RANK_GAP: f64 = 1e-6;
/// A residual of which less than this part lies outside the space kept adds no direction.
const DEPENDENT: f64 = 1e-12;

/// The first vectors of the next cycle, in terms of the last one's basis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Harvest {
    /// The kept vectors and then one for the residual: orthonormal columns.
    pub(crate) columns: DMatrix<f64>,
    /// Beginning of the next cycle.
    pub(crate) start: Start,
}

/// The least-squares problem that a cycle begins with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Start {
    /// `A V_k = V_(k+1) H`, of one row more than columns.
    pub(crate) hessenberg: DMatrix<f64>,
    /// The residual over `V_(k+1)`.
    pub(crate) residual: DVector<f64>,
}

impl Start {
    /// Vectors kept beside the residual's.
    pub(crate) fn kept(&self) -> usize {
        self.hessenberg.ncols()
    }

    /// All numbers in a row: H by columns, then the residual.
    pub(crate) fn to_vec(&self) -> Vec<f64> {
        self.hessenberg.iter().chain(&self.residual).copied().collect()
    }

    /// Makes it from the numbers in a row for `kept` vectors; `None` if `numbers` is not as long as
    /// they need.
    pub(crate) fn from_slice(kept: usize, numbers: &[f64]) -> Option<Self> {
        let (h, residual) = numbers.split_at_checked((kept + 1) * kept)?;
        (residual.len() == kept + 1).then(|| Self {
            hessenberg: DMatrix::from_column_slice(kept + 1, kept, h),
            residual: DVector::from_column_slice(residual),
        })
    }
}

/// Chooses what to keep of a cycle with matrix `h`, of one row more than columns, that left the
/// residual `left`: `wanted` vectors, or one more where that would part a pair. `None` where there
/// is no such space.
pub(crate) fn harvest(h: &DMatrix<f64>, left: &DVector<f64>, wanted: usize) -> Option<Harvest> {
    let m = h.ncols();
    if wanted == 0 || wanted + 2 > m {
        return None;
    }
    let space = slowest(&harmonic(h)?, wanted)?;
    let kept = space.ncols();
    // H_k = W^T H W and its row below, turned
    let mut small = DMatrix::zeros(kept + 1, kept);
    let upper = h.rows(0, m);
    small.rows_mut(0, kept).copy_from(&(space.transpose() * upper * &space));
    let mut columns = DMatrix::zeros(m + 1, kept + 1);
    columns.view_mut((0, 0), (m, kept)).copy_from(&space);
    columns.set_column(kept, &outside(&columns.columns(0, kept).into_owned(), left)?);
    small.row_mut(kept).copy_from(&(columns.column(kept).transpose() * h * &space));
    let turn = to_hessenberg(&mut small);
    let turned = columns.columns(0, kept) * turn;
    columns.columns_mut(0, kept).copy_from(&turned);
    let residual = columns.transpose() * left;
    let is_finite = columns.iter().chain(&small).chain(&residual).all(|value| value.is_finite());
    is_finite.then_some(Harvest { columns, start: Start { hessenberg: small, residual } })
}

/// The matrix whose eigenvalues are the harmonic Ritz values: `H_m + h^2 H_m^-T e_m e_m^T`.
fn harmonic(h: &DMatrix<f64>) -> Option<DMatrix<f64>> {
    let m = h.ncols();
    let mut square = h.rows(0, m).into_owned();
    let mut last = DVector::zeros(m);
    last[m - 1] = h[(m, m - 1)].powi(2);
    let correction = square.transpose().lu().solve(&last)?;
    let mut column = square.column_mut(m - 1);
    column += correction;
    square.iter().all(|value| value.is_finite()).then_some(square)
}

/// An orthonormal basis of the invariant subspace of the `wanted` smallest eigenvalues, pairs
/// whole.
fn slowest(matrix: &DMatrix<f64>, wanted: usize) -> Option<DMatrix<f64>> {
    let m = matrix.ncols();
    let complex = matrix.map(|value| Complex::new(value, 0.0));
    let (mut q, mut t) = Schur::try_new(complex, f64::EPSILON, SWEEPS_MAX)?.unpack();
    for place in 0..=wanted {
        let smallest = (place..m).min_by(|&i, &j| t[(i, i)].norm().total_cmp(&t[(j, j)].norm()))?;
        (place..smallest).rev().for_each(|i| swap(&mut q, &mut t, i));
    }
    let largest = t[(wanted, wanted)].norm();
    let is_whole = |kept: usize| {
        let left: f64 = (0..kept).map(|i| t[(i, i)].im).sum();
        left.abs() <= IMAGINARY_LEFT * largest
    };
    let kept = (wanted..=wanted + 1).find(|&kept| kept + 2 <= m && is_whole(kept))?;
    // Whole pairs span as many real directions as complex ones.
    let parts = DMatrix::from_fn(m, 2 * kept, |i, j| if j < kept { q[(i, j)].re } else { q[(i, j - kept)].im });
    let svd = SVD::try_new(parts, true, false, f64::EPSILON, SWEEPS_MAX)?;
    let is_of_rank = svd.singular_values.iter().skip(kept).all(|value| *value <= RANK_GAP * svd.singular_values[0]);
    svd.u.filter(|_| is_of_rank).map(|u| u.columns(0, kept).into_owned())
}

/// Exchanges eigenvalues i and i + 1 of a complex Schur form `q t q*` (LAPACK's ztrexc).
fn swap(q: &mut DMatrix<Complex<f64>>, t: &mut DMatrix<Complex<f64>>, i: usize) {
    let m = t.ncols();
    let first = t[(i, i)];
    let second = t[(i + 1, i + 1)];
    let beside = t[(i, i + 1)];
    let length = beside.norm().hypot((second - first).norm());
    if length == 0.0 {
        return;
    }
    // The rotation that takes (beside, second - first) to (length, 0)
    let c = beside / length;
    let s = (second - first) / length;
    for j in i..m {
        let above = t[(i, j)];
        let below = t[(i + 1, j)];
        t[(i, j)] = c.conj() * above + s.conj() * below;
        t[(i + 1, j)] = c * below - s * above;
    }
    let turn = |matrix: &mut DMatrix<Complex<f64>>, rows: usize| {
        for row in 0..rows {
            let left = matrix[(row, i)];
            let right = matrix[(row, i + 1)];
            matrix[(row, i)] = c * left + s * right;
            matrix[(row, i + 1)] = c.conj() * right - s.conj() * left;
        }
    };
    turn(t, i + 2);
    turn(q, m);
    t[(i + 1, i)] = Complex::new(0.0, 0.0);
}

/// The unit vector along the part of `left` outside the space of orthonormal `columns`.
fn outside(columns: &DMatrix<f64>, left: &DVector<f64>) -> Option<DVector<f64>> {
    let mut rest = left.clone();
    for _ in 0..2 {
        rest -= columns * (columns.transpose() * &rest);
    }
    let length = rest.norm();
    (length > DEPENDENT * left.norm()).then(|| rest / length)
}

/// Turns the columns' space so that `small`, k + 1 by k, becomes an upper Hessenberg matrix; the
/// turn, k by k.
fn to_hessenberg(small: &mut DMatrix<f64>) -> DMatrix<f64> {
    let k = small.ncols();
    // Backwards and transposed, the row below is the direction a reduction to Hessenberg form
    // begins with.
    let backwards = DMatrix::from_fn(k, k, |i, j| small[(k - 1 - j, k - 1 - i)]);
    let below = DVector::from_fn(k, |i, _| small[(k, k - 1 - i)]);
    let reflection = reflection(&below);
    let (turn, reduced) = Hessenberg::new(&reflection * backwards * &reflection).unpack();
    let turn = reflection * turn;
    let begin = turn.column(0).dot(&below);
    small.fill(0.0);
    for j in 0..k {
        for i in 0..=(j + 1).min(k - 1) {
            small[(i, j)] = reduced[(k - 1 - j, k - 1 - i)];
        }
    }
    small[(k, k - 1)] = begin;
    DMatrix::from_fn(k, k, |i, j| turn[(k - 1 - i, k - 1 - j)])
}

/// The symmetric reflection that takes e_1 to a multiple of `direction`.
fn reflection(direction: &DVector<f64>) -> DMatrix<f64> {
    let k = direction.len();
    let mut normal = direction.clone();
    normal[0] += normal[0].signum() * direction.norm();
    let squared = normal.norm_squared();
    let identity = DMatrix::identity(k, k);
    if squared == 0.0 { identity } else { identity - &normal * normal.transpose() * (2.0 / squared) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::gmres::least_squares::LeastSquares;

    /// A Hessenberg matrix of one row more than columns with eigenvalues of all kinds.
    fn example(m: usize) -> DMatrix<f64> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
        };
        DMatrix::from_fn(m + 1, m, |i, j| match i {
            _ if i > j + 1 => 0.0,
            _ if i == j => 1.0 + next(),
            _ => next(),
        })
    }

    /// Rest that GMRES leaves of a residual of length 3 along the first vector.
    fn left_of(h: &DMatrix<f64>) -> DVector<f64> {
        let mut small = LeastSquares::new(h.ncols());
        small.restart(&[3.0]);
        for j in 0..h.ncols() {
            assert!(small.push(&h.column(j).as_slice()[..=j], h[(j + 1, j)]));
        }
        small.left()
    }

    #[test]
    fn a_harvest_is_an_arnoldi_relation_with_the_residual_in_it() {
        for (m, wanted) in [(30, 8), (30, 1), (12, 9), (5, 3)] {
            let h = example(m);
            let left = left_of(&h);
            let Harvest { columns, start } = harvest(&h, &left, wanted).unwrap();
            let kept = start.kept();
            assert!(kept == wanted || kept == wanted + 1, "{kept} of {wanted}");
            let identity = DMatrix::identity(kept + 1, kept + 1);
            assert!((columns.transpose() * &columns - identity).norm() < 1e-12, "orthonormal");
            // H P_k = P_(k+1) H_k: exactly what makes it a cycle's beginning. As well as 12 digits
            // of the subspace allow.
            let error = &h * columns.view((0, 0), (m, kept)) - &columns * &start.hessenberg;
            assert!(error.norm() < 1e-10 * h.norm(), "{m} {wanted}: {}", error.norm());
            assert!((0..kept).all(|j| (j + 2..=kept).all(|i| start.hessenberg[(i, j)] == 0.0)), "Hessenberg");
            assert!((&columns * &start.residual - &left).norm() < 1e-12 * left.norm());
        }
    }

    #[test]
    fn the_values_kept_are_the_smallest() {
        let h = example(30);
        let matrix = harmonic(&h).unwrap();
        let mut all: Vec<f64> = matrix.complex_eigenvalues().iter().map(|value| value.norm()).collect();
        all.sort_unstable_by(f64::total_cmp);
        let space = slowest(&matrix, 8).unwrap();
        let mut kept: Vec<f64> =
            (space.transpose() * &matrix * &space).complex_eigenvalues().iter().map(|value| value.norm()).collect();
        kept.sort_unstable_by(f64::total_cmp);
        for (kept, smallest) in kept.iter().zip(&all) {
            assert!((kept - smallest).abs() < 1e-9 * all[29], "{kept} is not {smallest}");
        }
    }

    #[test]
    fn nothing_is_kept_where_nothing_can_be() {
        let h = example(6);
        let left = left_of(&h);
        assert_eq!(harvest(&h, &left, 0), None);
        assert_eq!(harvest(&h, &left, 5), None, "no room for a new vector");
        let mut singular = h.clone();
        singular.column_mut(0).fill(0.0);
        assert_eq!(harvest(&singular, &left, 2), None);
        assert_eq!(harvest(&h.map(|_| f64::NAN), &left, 2), None);
    }

    #[test]
    fn a_start_comes_back_from_its_numbers() {
        let h = example(10);
        let start = harvest(&h, &left_of(&h), 3).unwrap().start;
        let numbers = start.to_vec();
        assert_eq!(Start::from_slice(start.kept(), &numbers), Some(start.clone()));
        assert_eq!(Start::from_slice(start.kept() + 1, &numbers), None);
    }
}
