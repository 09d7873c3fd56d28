//! The small least-squares problem of GMRES: `min || c - H y ||`, one column at a time; `c = beta
//! e_1` unless a cycle begins with more than its residual.
//!
//! Promises: no allocation after `new`, except for [`LeastSquares::hessenberg`] and
//! [`LeastSquares::left`]. Source: section 3 of Y. Saad, M. H. Schultz 1986, doi 10.1137/0907058.

use nalgebra::{DMatrix, DVector};

/// H turned into an upper triangle R by Givens rotations as its columns arrive.
#[derive(Debug)]
pub(crate) struct LeastSquares {
    /// R by columns: column j has its j + 1 entries at `j (j + 1) / 2`.
    triangle: Vec<f64>,
    /// H by columns: column j has its j + 2 entries at `j (j + 3) / 2`.
    pub(crate) hessenberg: Vec<f64>,
    /// c, with zeros behind.
    pub(crate) c: Vec<f64>,
    /// Cosine and sine of each rotation.
    rotations: Vec<(f64, f64)>,
    /// c, rotated; behind all columns comes the residual.
    g: Vec<f64>,
    columns: usize,
}

impl LeastSquares {
    /// Room for `columns_max` columns.
    pub(crate) fn new(columns_max: usize) -> Self {
        Self {
            triangle: vec![0.0; columns_max * (columns_max + 1) / 2],
            hessenberg: vec![0.0; hessenberg_len(columns_max)],
            c: vec![0.0; columns_max + 1],
            rotations: vec![(1.0, 0.0); columns_max],
            g: vec![0.0; columns_max + 1],
            columns: 0,
        }
    }

    /// Forgets all columns; the right-hand side is c, with zeros behind.
    pub(crate) fn restart(&mut self, c: &[f64]) {
        self.c.fill(0.0);
        self.c[..c.len()].copy_from_slice(c);
        self.forget_columns();
    }

    /// Takes over a problem of this many columns, whose H and c were written in place of those
    /// here. Returns false where its R is singular.
    pub(crate) fn recall(&mut self, columns: usize) -> bool {
        self.c[columns + 1..].fill(0.0);
        self.forget_columns();
        (0..columns).all(|_| self.rotate_next_column())
    }

    fn forget_columns(&mut self) {
        self.columns = 0;
        self.g.copy_from_slice(&self.c);
    }

    /// Columns so far.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// `min || c - H y ||` over the columns so far, of which there are as many as c has entries
    /// behind its first.
    pub(crate) fn residual_norm(&self) -> f64 {
        self.g[self.columns].abs()
    }

    /// Adds the column `(h_0 .. h_j, below)`. False when it makes R singular; it is left out then.
    pub(crate) fn push(&mut self, h: &[f64], below: f64) -> bool {
        let j = self.columns;
        assert_eq!(h.len(), j + 1, "column j of a Hessenberg matrix has j + 1 entries above the last");
        let whole = &mut self.hessenberg[hessenberg_len(j)..][..j + 2];
        whole[..=j].copy_from_slice(h);
        whole[j + 1] = below;
        self.rotate_next_column()
    }

    /// Adds the column of H that stands behind those added so far.
    fn rotate_next_column(&mut self) -> bool {
        let j = self.columns;
        let whole = &self.hessenberg[hessenberg_len(j)..][..j + 2];
        let below = whole[j + 1];
        let column = &mut self.triangle[j * (j + 1) / 2..][..=j];
        column.copy_from_slice(&whole[..=j]);
        for (i, &(c, s)) in self.rotations[..j].iter().enumerate() {
            (column[i], column[i + 1]) = (c * column[i] + s * column[i + 1], c * column[i + 1] - s * column[i]);
        }
        let length = column[j].hypot(below);
        let largest = whole.iter().fold(0.0_f64, |largest, h| largest.max(h.abs()));
        if length <= f64::EPSILON * largest {
            return false;
        }
        let c = column[j] / length;
        let s = below / length;
        column[j] = length;
        self.rotations[j] = (c, s);
        (self.g[j], self.g[j + 1]) = (c * self.g[j] + s * self.g[j + 1], c * self.g[j + 1] - s * self.g[j]);
        self.columns += 1;
        true
    }

    /// Column j of H down to its last entry that may not be 0.
    pub(crate) fn hessenberg_column(&self, j: usize) -> &[f64] {
        &self.hessenberg[hessenberg_len(j)..][..j + 2]
    }

    /// H, of one row more than it has columns.
    pub(crate) fn hessenberg(&self) -> DMatrix<f64> {
        let entry = |i: usize, j: usize| if i <= j + 1 { self.hessenberg_column(j)[i] } else { 0.0 };
        DMatrix::from_fn(self.columns + 1, self.columns, entry)
    }

    /// `c - H y` for the minimiser y.
    pub(crate) fn left(&self) -> DVector<f64> {
        let mut left = DVector::zeros(self.columns + 1);
        left[self.columns] = self.g[self.columns];
        for (i, &(c, s)) in self.rotations[..self.columns].iter().enumerate().rev() {
            (left[i], left[i + 1]) = (c * left[i] - s * left[i + 1], s * left[i] + c * left[i + 1]);
        }
        left
    }

    /// The minimiser, into the first values of `y`.
    pub(crate) fn solve(&self, y: &mut [f64]) {
        let k = self.columns;
        y[..k].copy_from_slice(&self.g[..k]);
        for j in (0..k).rev() {
            let column = &self.triangle[j * (j + 1) / 2..][..=j];
            y[j] /= column[j];
            let solved = y[j];
            for (y, r) in y[..j].iter_mut().zip(column) {
                *y -= r * solved;
            }
        }
    }
}

/// Entries of the first columns of H.
pub(crate) fn hessenberg_len(columns: usize) -> usize {
    columns * (columns + 3) / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_residual_is_what_the_minimiser_leaves() {
        let h = [[3.0, 1.0, -2.0], [1.0, 4.0, 0.5], [0.0, 2.0, 5.0], [0.0, 0.0, 1.5]];
        let mut problem = LeastSquares::new(3);
        problem.restart(&[2.0]);
        for j in 0..3 {
            let column: Vec<f64> = h[..=j].iter().map(|row| row[j]).collect();
            assert!(problem.push(&column, h[j + 1][j]));
        }
        let mut y = [0.0; 3];
        problem.solve(&mut y);
        let left: Vec<f64> = h
            .iter()
            .zip([2.0, 0.0, 0.0, 0.0])
            .map(|(row, g)| row.iter().zip(y).fold(g, |sum, (h, y)| sum - h * y))
            .collect();
        let norm = left.iter().map(|r| r * r).sum::<f64>().sqrt();
        assert!(problem.left().iter().zip(&left).all(|(ours, left)| (ours - left).abs() <= 60.0 * f64::EPSILON));
        assert!((0..4).all(|i| (0..3).all(|j| problem.hessenberg()[(i, j)] == h[i][j])));
        // A dozen operations on numbers up to 5.
        assert!((norm - problem.residual_norm()).abs() <= 60.0 * f64::EPSILON, "{norm}");
        // It is the minimum: the rest is orthogonal to the columns of H.
        for j in 0..3 {
            let product: f64 = h.iter().zip(&left).map(|(row, left)| row[j] * left).sum();
            assert!(product.abs() <= 60.0 * f64::EPSILON, "{product}");
        }
    }

    #[test]
    fn a_zero_column_is_left_out() {
        let mut problem = LeastSquares::new(2);
        problem.restart(&[1.0]);
        assert!(!problem.push(&[0.0], 0.0));
        assert_eq!((problem.columns(), problem.residual_norm()), (0, 1.0));
    }
}
