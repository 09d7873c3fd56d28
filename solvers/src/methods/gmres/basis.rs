//! The basis vectors of a cycle as they are stored: in doubles, or in floats computed with as
//! doubles.
//!
//! Source: J. I. Aliaga, H. Anzt, T. Gruetzmacher, E. S. Quintana-Orti, A. E. Tomas 2023, doi
//! 10.1177/10943420221115140. Departure: a vector is rounded in the pass that orthogonalises it,
//! and the product is made of the rounded vector. So the solver never has more digits than it
//! stores, and a version of the floats resumes bit for bit. By inexact Krylov theory (V. Simoncini,
//! D. B. Szyld 2003, doi 10.1137/S1064827502406415) column j may err by a share that grows as the
//! residual falls; that of the first column limits what a cycle can gain, [`BasisStorage::floor`].

use recoup_core::{ExactSum, SolveError};

use super::passes::GmresPasses;
use crate::Vector;

/// The numbers in which GMRES stores its basis vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BasisStorage {
    /// In doubles.
    #[default]
    Double,
    /// In floats, in host memory: half the bytes. For operators whose norm, preconditioned, lies
    /// between 1e-25 and 1e25.
    Float,
}

impl BasisStorage {
    /// Fraction of a cycle's first residual below which its small problem says nothing of the true
    /// one.
    pub(super) fn floor(self) -> f64 {
        match self {
            Self::Double => 0.0,
            Self::Float => 4.0 * f64::from(f32::EPSILON),
        }
    }

    /// Bytes of a value.
    pub(super) fn value_bytes(self) -> f64 {
        match self {
            Self::Double => 8.0,
            Self::Float => 4.0,
        }
    }

    /// Squared lengths of basis vectors outside this range are brought back to 1.
    pub(super) fn lengths_squared(self) -> std::ops::Range<f64> {
        match self {
            Self::Double => 1e-100..1e100,
            Self::Float => 1e-20..1e20,
        }
    }
}

/// Room for the vectors of a cycle. Vector j becomes part of it in its slot: it is written there,
/// made orthogonal to those before, and accepted.
pub(super) struct Basis<S: GmresPasses> {
    pub(super) storage: BasisStorage,
    /// All vectors; of a basis in floats the newest one, with the same values, and the slot of the
    /// next.
    pub(super) doubles: Vec<S::Vector>,
    /// All vectors of a basis in floats.
    pub(super) floats: Vec<Vector<f32>>,
}

impl<S: GmresPasses> Basis<S> {
    /// Room for `len` vectors.
    pub(super) fn new(system: &S, len: usize, storage: BasisStorage) -> Result<Self, SolveError> {
        let zeros = |count: usize| (0..count).map(|slot| system.zeros(slot)).collect::<Result<_, _>>();
        let floats = (0..len).map(|slot| system.floats(slot));
        Ok(match storage {
            BasisStorage::Double => Self { storage, doubles: zeros(len)?, floats: Vec::new() },
            BasisStorage::Float => Self { storage, doubles: zeros(2)?, floats: floats.collect::<Result<_, _>>()? },
        })
    }

    /// The name of vector `j` as a variable: another one for each storage, so that neither is
    /// restored into the other.
    pub(super) fn name(storage: BasisStorage, j: usize) -> String {
        match storage {
            BasisStorage::Double => format!("v{j}"),
            BasisStorage::Float => format!("f{j}"),
        }
    }

    /// Vector `j`, which was recalled or accepted last, and the slot of vector `next`.
    pub(super) fn newest_and_slot(&mut self, j: usize, next: usize) -> (&S::Vector, &mut S::Vector) {
        let [j, next] = if self.storage == BasisStorage::Double { [j, next] } else { [0, 1] };
        let (known, rest) = self.doubles.split_at_mut(next);
        (&known[j], &mut rest[0])
    }

    /// The slot of vector `j`.
    pub(super) fn slot(&mut self, j: usize) -> &mut S::Vector {
        &mut self.doubles[if self.storage == BasisStorage::Double { j } else { 1 }]
    }

    /// Makes vector `j`, restored, the newest one.
    pub(super) fn recall(&mut self, system: &S, j: usize) -> Result<(), SolveError> {
        match self.storage {
            BasisStorage::Double => Ok(()),
            BasisStorage::Float => system.widen(&self.floats[j], &mut self.doubles[0]),
        }
    }

    /// Rounds what stands in the slot of vector `j` to what is stored.
    pub(super) fn round(&mut self, system: &S, j: usize) -> Result<(), SolveError> {
        if self.storage == BasisStorage::Float {
            system.subtract_rounded(&[], &[], &mut self.doubles[1], &mut self.floats[j])?;
        }
        Ok(())
    }

    /// Makes the vector that stands rounded in its slot the newest one.
    pub(super) fn accept(&mut self) {
        if self.storage == BasisStorage::Float {
            self.doubles.swap(0, 1);
        }
    }

    /// Local parts of the products of the slot of vector `h.len()` with the vectors before.
    pub(super) fn dot(&self, system: &S, h: &mut [ExactSum]) -> Result<(), SolveError> {
        let j = h.len();
        match self.storage {
            BasisStorage::Double => system.multi_dot(&self.doubles[j], &self.doubles[..j], h),
            BasisStorage::Float => system.dot_floats(&self.doubles[1], &self.floats[..j], h),
        }
    }

    /// `w -= sum_j h_j v_j` for the slot w of vector `h.len()`, rounded to what is stored, and the
    /// local part of the new `w . w`.
    pub(super) fn subtract(&mut self, system: &S, h: &[f64]) -> Result<ExactSum, SolveError> {
        match self.storage {
            BasisStorage::Double => {
                let (known, rest) = self.doubles.split_at_mut(h.len());
                system.multi_axpy_norm(-1.0, known, h, &mut rest[0])
            }
            BasisStorage::Float => {
                let (known, rest) = self.floats.split_at_mut(h.len());
                system.subtract_rounded(known, h, &mut self.doubles[1], &mut rest[0])
            }
        }
    }

    /// `target += sum_j h_j v_j`.
    pub(super) fn add(&self, system: &S, h: &[f64], target: &mut S::Vector) -> Result<(), SolveError> {
        match self.storage {
            BasisStorage::Double => system.multi_axpy(1.0, &self.doubles[..h.len()], h, target),
            BasisStorage::Float => system.add_floats(&self.floats[..h.len()], h, target),
        }
    }
}
