//! Least squares with a few coefficients, by the normal equations.
//!
//! Promises: the same coefficients on every machine: IEEE additions, multiplications, divisions and
//! square roots in one order.

/// The normal equations of a fit with `N` coefficients.
#[derive(Debug)]
pub(crate) struct Normal<const N: usize> {
    matrix: [[f64; N]; N],
    right: [f64; N],
}

impl<const N: usize> Normal<N> {
    /// No equations.
    pub(crate) const EMPTY: Self = Self { matrix: [[0.0; N]; N], right: [0.0; N] };

    /// Adds the equation that the coefficients make `value` of `near`.
    #[inline]
    pub(crate) fn count(&mut self, near: &[f64; N], value: f64) {
        for i in 0..N {
            self.right[i] += near[i] * value;
            for j in 0..=i {
                self.matrix[i][j] += near[i] * near[j];
            }
        }
    }

    /// Adds the equations of several `values`, each neighbour of which is in a column.
    pub(crate) fn count_columns(&mut self, near: &[&[f64]; N], values: &[f64]) {
        for i in 0..N {
            self.right[i] += dot(near[i], values);
            for j in 0..=i {
                self.matrix[i][j] += dot(near[i], near[j]);
            }
        }
    }

    /// The equations of both.
    pub(crate) fn add(mut self, other: &Self) -> Self {
        for i in 0..N {
            self.right[i] += other.right[i];
            for j in 0..=i {
                self.matrix[i][j] += other.matrix[i][j];
            }
        }
        self
    }

    /// Solves the equations by Cholesky's factors, with a ridge that keeps collinear neighbours
    /// apart; `None` where the values determine no coefficients.
    pub(crate) fn solve(&self) -> Option<[f32; N]> {
        let trace: f64 = (0..N).map(|i| self.matrix[i][i]).sum();
        if !trace.is_finite() || trace == 0.0 {
            return None;
        }
        let mut l = self.matrix;
        let mut x = self.right;
        for i in 0..N {
            l[i][i] += 1e-9 * trace + 1e-3;
            for j in 0..=i {
                let sum: f64 = (0..j).map(|k| l[i][k] * l[j][k]).sum();
                let rest = l[i][j] - sum;
                l[i][j] = if i == j { rest.sqrt() } else { rest / l[j][j] };
            }
            x[i] = (x[i] - (0..i).map(|k| l[i][k] * x[k]).sum::<f64>()) / l[i][i];
        }
        for i in (0..N).rev() {
            x[i] = (x[i] - (i + 1..N).map(|k| l[k][i] * x[k]).sum::<f64>()) / l[i][i];
        }
        let coefficients = x.map(|c| c as f32);
        coefficients.iter().all(|c| c.is_finite()).then_some(coefficients)
    }
}

/// The sum of the products, in eight sums of which each takes every eighth.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}
