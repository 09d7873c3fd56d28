//! The basis vectors of a cycle as they are stored: in doubles, or in fewer bits computed with as
//! doubles.
//!
//! Source: J. I. Aliaga, H. Anzt, T. Gruetzmacher, E. S. Quintana-Orti, A. E. Tomas 2023, doi
//! 10.1177/10943420221115140. Departures: a vector is rounded once it is orthogonal, and the next
//! product is made of the rounded vector. So the solver never has more digits than it stores, and a
//! version of the stored numbers resumes bit for bit. Lengths are stretched by powers of two to
//! between 2^14 and 2^15, where halves neither overflow nor lose small values.
//!
//! By inexact Krylov theory (V. Simoncini, D. B. Szyld 2003, doi 10.1137/S1064827502406415; L.
//! Giraud, S. Gratton, J. Langou 2007, doi 10.1137/050637698) an error of vector j + 1 moves the
//! residual by itself times `h_(j+1)j y_j`, which falls as the residual does. So the first vectors
//! of a cycle need most digits, and the first of all limits what a cycle can gain. `Auto` takes y
//! from the cycle before, and the numbers of each vector from that ([`BitPlan`]).

use recoup_core::{ExactSum, SolveError};

use super::passes::GmresPasses;
use crate::kernels::simd::pack::Half;
use crate::kernels::vector::MixedVectors;
use crate::{Vector, VectorElement};

/// The numbers in which GMRES stores its basis vectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BasisStorage {
    /// In doubles.
    #[default]
    Double,
    /// In floats, in host memory: half the bytes.
    Float,
    /// In doubles, floats or halves, in host memory: vector by vector, as few bits as the last
    /// cycle says the next one needs.
    Auto,
}

/// Relative error of a vector in floats, and in halves, as the root of its mean square.
const FLOAT_ERROR: f64 = 3e-8;
const HALF_ERROR: f64 = 2e-4;
/// Share of the residual at the end of a cycle, or of what it gained where that is less, that
/// rounded vectors may move.
const GAP_SHARE: f64 = 0.2;
/// A cycle in fewer bits ends once it has gained this much more than the one its bits are from.
const GAIN_AHEAD: f64 = 100.0;
/// Vectors that keep more bits than they need, so that memory is seldom given back and taken.
const SLACK: usize = 3;

/// The numbers of the vectors of a cycle: first doubles, then floats, then halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BitPlan {
    pub(super) doubles: usize,
    pub(super) floats: usize,
    /// Fraction of a cycle's first residual below which its small problem says nothing of the true
    /// one.
    pub(super) floor: f64,
}

/// A plan as a version holds it.
pub(super) type StoredPlan = [f64; 3];

impl BitPlan {
    /// The plan of the first cycle, of `len` vectors.
    pub(super) fn first(storage: BasisStorage, len: usize) -> Self {
        match storage {
            BasisStorage::Float => Self { doubles: 0, floats: len, floor: 4.0 * f64::from(f32::EPSILON) },
            BasisStorage::Double | BasisStorage::Auto => Self { doubles: len, floats: 0, floor: 0.0 },
        }
    }

    /// The plan for `len` vectors after a cycle that took the residual norm from `beta` to `rho`,
    /// and whose vectors weigh `weights`, falling from the first to the last. Gives up bits only
    /// where it gives up enough of them.
    pub(super) fn after(self, len: usize, [beta, rho]: [f64; 2], weights: &[f64]) -> Self {
        let allowed = GAP_SHARE * rho.min(beta - rho) / (len as f64).sqrt();
        let needing = |error: f64, then: usize| {
            let now = weights.partition_point(|weight| error * weight > allowed);
            // Vectors that this cycle did not reach weigh no more than its last one.
            let now = if now == weights.len() { len } else { now };
            if (now..=now + SLACK).contains(&then) { then } else { now }
        };
        let doubles = needing(FLOAT_ERROR, self.doubles);
        let wide = needing(HALF_ERROR, self.doubles + self.floats).max(doubles);
        let floor = if doubles == len { 0.0 } else { rho / (beta * GAIN_AHEAD) };
        Self { doubles, floats: wide - doubles, floor }
    }

    pub(super) fn to_numbers(self) -> StoredPlan {
        [self.doubles as f64, self.floats as f64, self.floor]
    }

    /// Reads a plan for `len` vectors; `None` where there is none, or it has more.
    pub(super) fn of_numbers([doubles, floats, floor]: StoredPlan, len: usize) -> Option<Self> {
        let plan = Self { doubles: doubles as usize, floats: floats as usize, floor };
        (floor.is_finite() && plan.doubles.saturating_add(plan.floats) <= len).then_some(plan)
    }

    /// Vectors in doubles, floats and halves, of `len` in all.
    pub(super) fn counts(self, len: usize) -> [usize; 3] {
        [self.doubles, self.floats, len - self.doubles - self.floats]
    }
}

/// Stored vectors: first those in doubles, then those in floats, then those in halves.
#[derive(Default)]
pub(super) struct MixedColumns {
    pub(super) doubles: Vec<Vector>,
    pub(super) floats: Vec<Vector<f32>>,
    pub(super) halves: Vec<Vector<Half>>,
}

impl MixedColumns {
    /// The first vectors.
    fn first(&self, count: usize) -> MixedVectors<'_> {
        let [doubles, floats, halves] = self.counts(count);
        MixedVectors {
            doubles: &self.doubles[..doubles],
            floats: &self.floats[..floats],
            halves: &self.halves[..halves],
        }
    }

    /// Number of the first vectors that are of each kind.
    pub(super) fn counts(&self, count: usize) -> [usize; 3] {
        let doubles = count.min(self.doubles.len());
        let floats = (count - doubles).min(self.floats.len());
        [doubles, floats, count - doubles - floats]
    }
}

/// Makes `count` vectors of those there are.
fn fit<E: VectorElement>(
    system: &impl GmresPasses,
    vectors: &mut Vec<Vector<E>>,
    count: usize,
) -> Result<(), SolveError> {
    vectors.truncate(count);
    for slot in vectors.len()..count {
        vectors.push(system.zeros_of(slot)?);
    }
    Ok(())
}

/// Room for the vectors of a cycle. Vector j becomes part of it in its slot: it is written there,
/// made orthogonal to those before, stored, and accepted.
pub(super) struct Basis<S: GmresPasses> {
    pub(super) storage: BasisStorage,
    /// All vectors of a basis in doubles; of another one the newest, with the same values as
    /// stored, and the slot of the next.
    pub(super) doubles: Vec<S::Vector>,
    /// All vectors of another basis.
    pub(super) mixed: MixedColumns,
}

impl<S: GmresPasses> Basis<S> {
    /// Room for `len` vectors.
    pub(super) fn new(system: &S, len: usize, storage: BasisStorage) -> Result<Self, SolveError> {
        let slots = if storage == BasisStorage::Double { len } else { 2 };
        let doubles = (0..slots).map(|slot| system.zeros(slot)).collect::<Result<_, _>>()?;
        let mut basis = Self { storage, doubles, mixed: MixedColumns::default() };
        basis.fit(system, BitPlan::first(storage, len).counts(len))?;
        Ok(basis)
    }

    /// Makes room for as many vectors in doubles, floats and halves; those there are stay.
    pub(super) fn fit(&mut self, system: &S, [doubles, floats, halves]: [usize; 3]) -> Result<(), SolveError> {
        if self.storage == BasisStorage::Double {
            return Ok(());
        }
        fit(system, &mut self.mixed.doubles, doubles)?;
        fit(system, &mut self.mixed.floats, floats)?;
        fit(system, &mut self.mixed.halves, halves)
    }

    /// Mean bytes of a value.
    pub(super) fn value_bytes(&self) -> f64 {
        let MixedColumns { doubles, floats, halves } = &self.mixed;
        let vectors = doubles.len() + floats.len() + halves.len();
        if vectors == 0 {
            8.0
        } else {
            (8 * doubles.len() + 4 * floats.len() + 2 * halves.len()) as f64 / vectors as f64
        }
    }

    /// Vector `j`, which was recalled or accepted last, and the slot of vector `next`.
    pub(super) fn newest_and_slot(&mut self, j: usize, next: usize) -> (&S::Vector, &mut S::Vector) {
        let [j, next] = if self.storage == BasisStorage::Double { [j, next] } else { [0, 1] };
        let (known, others) = self.doubles.split_at_mut(next);
        (&known[j], &mut others[0])
    }

    /// The slot of vector `j`.
    pub(super) fn slot(&mut self, j: usize) -> &mut S::Vector {
        &mut self.doubles[if self.storage == BasisStorage::Double { j } else { 1 }]
    }

    /// Makes vector `j`, restored, the newest one.
    pub(super) fn recall(&mut self, system: &S, j: usize) -> Result<(), SolveError> {
        let target = &mut self.doubles[0];
        let MixedColumns { doubles, floats, halves } = &self.mixed;
        match self.mixed.counts(j) {
            _ if self.storage == BasisStorage::Double => Ok(()),
            [at, ..] if at < doubles.len() => system.widen(&doubles[at], target),
            [_, at, _] if at < floats.len() => system.widen(&floats[at], target),
            [_, _, at] => system.widen(&halves[at], target),
        }
    }

    /// Stores vector `j`, which stands in its slot, stretched and rounded, there, too. Returns the
    /// local part of its new squared length.
    pub(super) fn store(&mut self, system: &S, j: usize, stretch: f64) -> Result<ExactSum, SolveError> {
        let w = &mut self.doubles[1];
        let counts = self.mixed.counts(j);
        let MixedColumns { doubles, floats, halves } = &mut self.mixed;
        match counts {
            [at, ..] if at < doubles.len() => system.round(stretch, w, &mut doubles[at]),
            [_, at, _] if at < floats.len() => system.round(stretch, w, &mut floats[at]),
            [_, _, at] => system.round(stretch, w, &mut halves[at]),
        }
    }

    /// Makes the vector that was stored last the newest one.
    pub(super) fn accept(&mut self) {
        if self.storage != BasisStorage::Double {
            self.doubles.swap(0, 1);
        }
    }

    /// Local parts of the products of the slot of vector `h.len()` with the vectors before.
    pub(super) fn dot(&self, system: &S, h: &mut [ExactSum]) -> Result<(), SolveError> {
        let j = h.len();
        match self.storage {
            BasisStorage::Double => system.multi_dot(&self.doubles[j], &self.doubles[..j], h),
            _ => system.dot_mixed(&self.doubles[1], self.mixed.first(j), h),
        }
    }

    /// `w -= sum_j h_j v_j` for the slot w of vector `h.len()`, and the local part of the new
    /// `w . w`.
    pub(super) fn subtract(&mut self, system: &S, h: &[f64]) -> Result<ExactSum, SolveError> {
        if self.storage != BasisStorage::Double {
            return system.axpy_mixed(-1.0, self.mixed.first(h.len()), h, &mut self.doubles[1]);
        }
        let (known, others) = self.doubles.split_at_mut(h.len());
        system.multi_axpy_norm(-1.0, known, h, &mut others[0])
    }

    /// `target += sum_j h_j v_j`.
    pub(super) fn add(&self, system: &S, h: &[f64], target: &mut S::Vector) -> Result<(), SolveError> {
        match self.storage {
            BasisStorage::Double => system.multi_axpy(1.0, &self.doubles[..h.len()], h, target),
            _ => system.axpy_mixed(1.0, self.mixed.first(h.len()), h, target).map(|_| ()),
        }
    }
}
