//! A test for the symmetry that CG needs, from two products.
//!
//! `u . A v = v . A u` for all u and v if and only if A is symmetric. For u and v of independent
//! values uniform in [-1, 1), the difference has the root mean square `||A - A^T||_F / 3`, and `||A
//! v||` that of `||A||_F / sqrt(3)`. What rounding makes of the difference is below [`SPREAD`]` nnz
//! eps ||A||_F`: a sum of N products is off by the order of `sqrt(N) eps` times the sum of their
//! magnitudes (N. J. Higham, T. Mary 2019, doi 10.1137/18M1226312), there are N = nnz of them in
//! each of two sums, and `sum |a_ij| <= sqrt(nnz) ||A||_F`.

use recoup_core::{ExactSum, SolveError};

use crate::System;
use crate::kernels::vector::dot;
use crate::methods::shared::sum_over_ranks;
use crate::rhs::random_value;

/// Seeds of u and v.
const SEEDS: [u64; 2] = [0x5359_4d4d, 0x4554_5259];

/// Twice the factor that rounding errors of a sum exceed with a probability below 1e-13.
const SPREAD: f64 = 16.0;

impl System<'_> {
    /// An estimate of `||A - A^T||_F / ||A||_F` from two products with fixed vectors, the same for
    /// any partition of the rows; 0 where rounding explains all that was found. Collective.
    ///
    /// # Errors
    /// [`SolveError::Comm`] when a rank is lost.
    pub fn symmetry_defect(&self) -> Result<f64, SolveError> {
        let first = self.a.first_row();
        let n = self.a.rows();
        let vector = |seed| (first..first + n as u64).map(|row| random_value(seed, row)).collect::<Vec<f64>>();
        let [u, v] = SEEDS.map(vector);
        let [mut au, mut av] = [vec![0.0; n], vec![0.0; n]];
        self.a.apply(&u, &mut au)?;
        self.a.apply(&v, &mut av)?;
        let dot = |x: &[f64], y: &[f64]| dot(self.pool, self.rows(), x, y);
        let squares = dot(&au, &au) + dot(&av, &av);
        let local = [dot(&u, &av), dot(&v, &au), squares, ExactSum::from(self.a.nonzeros() as f64)];
        let [uav, vau, squares, nonzeros] = sum_over_ranks(self, local)?;
        let difference = (uav - vau).abs();
        let frobenius = (1.5 * squares).sqrt();
        let rounding = SPREAD * nonzeros * f64::EPSILON * frobenius;
        Ok(if difference > rounding { 3.0 * difference / frobenius } else { 0.0 })
    }
}
