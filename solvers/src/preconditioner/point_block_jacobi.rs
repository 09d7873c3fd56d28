//! The diagonal blocks of a few rows of A, each factored densely: for several unknowns a point.
//!
//! Keeps the LU factors of `n / size` dense blocks and their row interchanges: `8 size n + 4 n`
//! bytes. Static: a restore factors again. Threads share the
//! blocks; the bits are the same for any number of them. Source: section 12.2 of Y. Saad,
//! "Iterative Methods for Sparse Linear Systems", 2003, doi 10.1137/1.9780898718003.

use recoup_core::SolveError;

use super::solve::Preconditioner;
use crate::{Csr, Pool};

const NAME: &str = "the point block Jacobi preconditioner";

/// `M = diag(A_11, A_22, ...)` with blocks of `size` consecutive rows, the last one shorter.
#[derive(Clone, Debug)]
pub struct PointBlockJacobi {
    size: usize,
    /// LU factors by rows, one block of `size * size` (the last: its own size squared) after
    /// another.
    factors: Vec<f64>,
    /// Row exchanged with each row when it became the pivot, counted within its block.
    exchanges: Vec<u32>,
}

impl PointBlockJacobi {
    /// Most rows a block may have.
    pub const SIZE_MAX: usize = 1024;

    /// Factors the diagonal blocks of `a` with partial pivoting.
    ///
    /// # Errors
    /// [`SolveError::Diagonal`] with the row whose pivot is zero when a block is singular,
    /// [`SolveError::Parameter`] for a size of 0 or beyond [`PointBlockJacobi::SIZE_MAX`].
    pub fn new(a: &Csr, size: usize) -> Result<Self, SolveError> {
        if size == 0 || size > Self::SIZE_MAX {
            let value = size as f64;
            return Err(SolveError::Parameter { what: "block size", value, expected: "from 1 to 1024" });
        }
        let n = a.n();
        let mut factors = Vec::with_capacity(n * size);
        let mut exchanges = vec![0; n];
        for (first, exchanges) in (0..n).step_by(size).zip(exchanges.chunks_mut(size)) {
            let start = factors.len();
            factors.resize(start + exchanges.len() * exchanges.len(), 0.0);
            let block = &mut factors[start..];
            copy_block(a, first, exchanges.len(), block);
            factor(block, exchanges).map_err(|(row, value)| SolveError::Diagonal {
                what: NAME,
                row: first + row,
                value,
            })?;
        }
        Ok(Self { size, factors, exchanges })
    }

    /// Solves with the blocks that begin at row `first`, in place.
    fn solve(&self, first: usize, z: &mut [f64]) {
        let mut row = first;
        for z in z.chunks_mut(self.size) {
            let block = &self.factors[row * self.size..][..z.len() * z.len()];
            solve_block(block, &self.exchanges[row..row + z.len()], z);
            row += z.len();
        }
    }
}

impl Preconditioner for PointBlockJacobi {
    fn name(&self) -> &'static str {
        "pbjacobi"
    }

    fn apply(&self, pool: &Pool, r: &[f64], z: &mut [f64]) -> Result<(), SolveError> {
        pool.for_slabs(z.len(), self.size, z, &mut [], |rows, z, _scratch| {
            z.copy_from_slice(&r[rows.clone()]);
            self.solve(rows.start, z);
        });
        Ok(())
    }

    fn bytes(&self) -> u64 {
        (8 * self.factors.len() + 4 * self.exchanges.len()) as u64
    }
}

/// The entries of A in rows and columns `first..first + size`, by rows.
fn copy_block(a: &Csr, first: usize, size: usize, block: &mut [f64]) {
    for (row, target) in (first..first + size).zip(block.chunks_mut(size)) {
        let (columns, values) = a.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            if (first..first + size).contains(&(column as usize)) {
                target[column as usize - first] = value;
            }
        }
    }
}

/// `P A = L U` in place; the error is the row and value of a pivot that cannot be divided by.
fn factor(block: &mut [f64], exchanges: &mut [u32]) -> Result<(), (usize, f64)> {
    let size = exchanges.len();
    for k in 0..size {
        // The pivot is the largest value left in column k, the first of equal ones.
        let mut pivot_row = k;
        for row in k + 1..size {
            if block[row * size + k].abs() > block[pivot_row * size + k].abs() {
                pivot_row = row;
            }
        }
        let pivot = block[pivot_row * size + k];
        if pivot == 0.0 || !pivot.recip().is_finite() {
            return Err((k, pivot));
        }
        exchanges[k] = pivot_row as u32;
        if pivot_row != k {
            for column in 0..size {
                block.swap(k * size + column, pivot_row * size + column);
            }
        }
        let (above, below) = block.split_at_mut((k + 1) * size);
        let pivots = &above[k * size..];
        for row in below.chunks_mut(size) {
            // l_ik = a_ik / u_kk, a_ij = a_ij - l_ik u_kj
            row[k] /= pivot;
            let l = row[k];
            for (value, u) in row[k + 1..].iter_mut().zip(&pivots[k + 1..]) {
                *value -= l * u;
            }
        }
    }
    Ok(())
}

/// `z = U^-1 L^-1 P z`.
fn solve_block(block: &[f64], exchanges: &[u32], z: &mut [f64]) {
    let size = z.len();
    for (k, &row) in exchanges.iter().enumerate() {
        z.swap(k, row as usize);
    }
    for i in 1..size {
        z[i] = (0..i).fold(z[i], |sum, j| sum - block[i * size + j] * z[j]);
    }
    for i in (0..size).rev() {
        let row = &block[i * size..(i + 1) * size];
        z[i] = (i + 1..size).fold(z[i], |sum, j| sum - row[j] * z[j]) / row[i];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dense matrix of 5 rows with a zero on the diagonal, so that pivoting is needed.
    fn dense() -> Csr {
        let n = 5;
        let values = (0..n * n).map(|k| if k == 0 { 0.0 } else { ((k * 7 + 3) % 11) as f64 - 4.0 }).collect();
        let columns = (0..n).flat_map(|_| 0..n as u32).collect();
        Csr::new((0..=n).map(|row| row * n).collect(), columns, values).unwrap()
    }

    #[test]
    fn one_block_for_all_rows_is_a_direct_solve() {
        let a = dense();
        let r: Vec<f64> = (0..5)
            .map(|i| {
                let (columns, values) = a.row(i);
                columns.iter().zip(values).map(|(&j, v)| v * f64::from(j + 1)).sum()
            })
            .collect();
        let mut z = vec![0.0; 5];
        PointBlockJacobi::new(&a, 8).unwrap().apply(&Pool::new(1), &r, &mut z).unwrap();
        for (z, expected) in z.iter().zip(1..) {
            // The matrix has a condition number below 100: 5 * 100 eps * 5 with room for growth 4.
            assert!((z - f64::from(expected)).abs() <= 1e4 * f64::EPSILON, "{z}");
        }
    }

    #[test]
    fn size_one_is_jacobi_and_the_last_block_may_be_short() {
        let a = Csr::new(vec![0, 1, 2, 3], vec![0, 1, 2], vec![2.0, 4.0, 8.0]).unwrap();
        for size in [1, 2, 3] {
            let mut z = [0.0; 3];
            PointBlockJacobi::new(&a, size).unwrap().apply(&Pool::new(2), &[2.0, 4.0, 8.0], &mut z).unwrap();
            assert_eq!(z, [1.0; 3]);
        }
    }

    #[test]
    fn a_singular_block_is_named_by_its_row() {
        let a = Csr::new(vec![0, 1, 2, 2], vec![0, 1], vec![2.0, 4.0]).unwrap();
        let expected = SolveError::Diagonal { what: NAME, row: 2, value: 0.0 };
        assert_eq!(PointBlockJacobi::new(&a, 2).unwrap_err(), expected);
        assert!(matches!(PointBlockJacobi::new(&a, 0), Err(SolveError::Parameter { .. })));
    }
}
