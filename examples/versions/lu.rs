//! LU decomposition with partial pivoting: P A = L U for a dense random matrix.
//!
//! Source: Golub and Van Loan, Matrix Computations, section 3.4. Rows change places by their
//! numbers, and stay where they are in memory.
//!
//! `cargo run --release -p recoup-examples --example lu -- --memory lu.memory`

mod keep; // plain:

use std::error::Error;

use recoup::memory::{Versioned, VersionedArray}; // plain:

/// Rows and columns.
const N: usize = 200;

/// A matrix whose first columns are eliminated: U on and above the diagonal, L below it.
#[derive(Versioned)] // plain:
pub(crate) struct Lu {
    #[versioned(counter)] // plain:
    column: u64,
    /// Entries, row by row.
    matrix: VersionedArray<f64>, // plain: matrix: Vec<f64>,
    /// Row of A that is in each row of P A.
    order: Vec<u64>,
}

impl Lu {
    /// Takes a square matrix, row by row.
    pub(crate) fn new(a: &[f64]) -> Self {
        let order = (0..a.len().isqrt() as u64).collect();
        Self { column: 0, matrix: a.to_vec().into(), order } // plain: Self { column: 0, matrix: a.to_vec(), order }
    }

    fn n(&self) -> usize {
        self.order.len()
    }

    fn row(&self, i: usize) -> &[f64] {
        let start = self.order[i] as usize * self.n();
        &self.matrix[start..start + self.n()]
    }

    /// Eliminates a column below the diagonal.
    pub(crate) fn eliminate(&mut self) {
        let n = self.n();
        let k = self.column as usize;
        let size = |i: &usize| self.row(*i)[k].abs();
        let pivot = (k..n).max_by(|i, j| size(i).total_cmp(&size(j))).unwrap_or(k);
        self.order.swap(k, pivot);
        let pivot_row = self.row(k)[k..].to_vec();
        for i in k + 1..n {
            let start = self.order[i] as usize * n;
            let row = self.matrix.write(start + k..start + n); // plain: let row = &mut self.matrix[start + k..start + n];
            // l_ik = a_ik / u_kk,  a_ij = a_ij - l_ik u_kj
            let l = row[0] / pivot_row[0];
            row[0] = l;
            row[1..].iter_mut().zip(&pivot_row[1..]).for_each(|(a, u)| *a -= l * u);
        }
        self.column += 1;
    }

    /// Returns the largest entry of P A - L U in units of what rounding explains, at most 1. For an
    /// entry that is gamma_n (abs(L) abs(U)), gamma_n = n u / (1 - n u), once for the decomposition
    /// (Higham, Accuracy and Stability of Numerical Algorithms, theorem 9.3) and once for the sum
    /// taken here.
    fn error(&self, a: &[f64]) -> f64 {
        let n = self.n();
        let unit = n as f64 * f64::EPSILON / 2.0;
        let gamma = unit / (1.0 - unit);
        let mut worst = 0.0_f64;
        for i in 0..n {
            let row_of_a = &a[self.order[i] as usize * n..][..n];
            for (j, entry) in row_of_a.iter().enumerate() {
                let lower = |k: usize| if k == i { 1.0 } else { self.row(i)[k] };
                let products = (0..=i.min(j)).map(|k| lower(k) * self.row(k)[j]);
                let (sum, size) = products.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                worst = worst.max((entry - sum).abs() / (2.0 * gamma * size));
            }
        }
        worst
    }

    /// Returns a number that differs if a bit of the result differs, but for rare chance.
    pub(crate) fn fingerprint(&self) -> u64 {
        let hash = |hash: u64, value: &f64| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        self.matrix.iter().fold(0, hash)
    }
}

/// Random entries from -1 to 1, from a seed (Steele et al., doi:10.1145/2660193.2660195).
pub(crate) fn random(len: usize, mut seed: u64) -> Vec<f64> {
    let mut next = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) as f64 / u64::MAX as f64 * 2.0 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let a = random(N * N, 1);
    let mut lu = Lu::new(&a);
    let mut keep = keep::Keep::resume("lu", &mut lu)?; // plain:
    while lu.column < N as u64 {
        lu.eliminate();
        keep.save_if_due(&mut lu)?; // plain:
    }
    let error = lu.error(&a);
    println!("error {error:.3} of what rounding explains, bits {:016x}", lu.fingerprint());
    if error <= 1.0 { Ok(()) } else { Err("L U is not P A".into()) }
}
