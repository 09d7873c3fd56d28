//! A matrix and its right-hand side, and the threads that solve it.

use std::path::{Path, PathBuf};

use recoup_comm::Solo;
use recoup_solvers::{Csr, Pool, RightHandSide, System, read_matrix};

pub(crate) struct Problem {
    pub(crate) a: Csr,
    pub(crate) b: Vec<f64>,
    pub(crate) pool: Pool,
}

/// The file of a matrix.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/data/{name}.mtx.gz"))
}

impl Problem {
    pub(crate) fn with_rhs(a: Csr, rhs: RightHandSide) -> Self {
        let b = rhs.build(&a).unwrap();
        Self { a, b, pool: Pool::new(1) }
    }

    /// With the right-hand side of a smooth solution.
    pub(crate) fn new(a: Csr) -> Self {
        Self::with_rhs(a, RightHandSide::Smooth)
    }

    pub(crate) fn read(name: &str) -> Self {
        Self::new(read_matrix(&data(name)).unwrap())
    }

    pub(crate) fn with_threads(self, threads: usize) -> Self {
        Self { pool: Pool::new(threads), ..self }
    }

    pub(crate) fn system(&self) -> System<'_> {
        System { a: &self.a, b: &self.b, comm: &Solo, pool: &self.pool }
    }

    pub(crate) fn zeros(&self) -> Vec<f64> {
        vec![0.0; self.b.len()]
    }
}
