//! A cycle of GMRES: the basis of its space, and the small problem over it.
//!
//! The cycle knows no preconditioner and no iterate: [`super::Gmres`] hands it one new vector after
//! another and asks for the combination that leaves the smallest residual.

use nalgebra::DVectorView;
use recoup_core::{ExactSum, SolveError};

use super::basis::{Basis, BasisStorage, BitPlan, StoredPlan};
use super::harvest::{Start, harvest};
use super::least_squares::LeastSquares;
use super::passes::GmresPasses;
use super::state::CycleState;
use crate::methods::shared::sum_over_ranks;

/// A new basis vector shorter than this part of `A v` is orthogonalised again.
const REORTHOGONALISE_BELOW: f64 = 0.1;
/// Largest relative difference of a product from that of a cycle under way that is the same one:
/// with the newest vector in doubles or floats, and in halves. Rounding leaves it smaller, on any
/// number of ranks; another preconditioner changes the first digits.
const PRODUCT_GAPS: [f64; 2] = [1e-6, 1e-3];
/// Squared lengths of vectors stored in doubles, outside of which they are brought back to 1.
const LENGTHS_SQUARED: std::ops::Range<f64> = 1e-100..1e100;
/// Upper end of the lengths, an octave of them, that other vectors are stretched to.
const LENGTH: f64 = 32768.0;
/// The name of the numbers that only a cycle under way has, as a variable.
pub(super) const ESTIMATE: &str = "estimate";
/// Letters before the numbers of basis vectors: in doubles, floats and halves. A cycle in one of
/// them is not restored into another.
const LETTERS: [char; 3] = ['v', 'f', 's'];

/// The basis of a cycle, and the least-squares problem over it.
pub(super) struct Cycle<S: GmresPasses> {
    /// `v_j / scales_j`, orthogonal; the scales make them unit vectors.
    pub(super) basis: Basis<S>,
    pub(super) scales: Vec<f64>,
    /// Products of the newest vector with those before, in units of the stored vectors.
    products: Vec<f64>,
    coefficients: Vec<f64>,
    /// Room for the sums of the coefficients.
    sums: Vec<ExactSum>,
    pub(super) small: LeastSquares,
    pub(super) state: CycleState,
    /// Names of the basis vectors as variables: in doubles, floats and halves.
    pub(super) names: [Vec<String>; 3],
    /// Vectors in doubles, floats and halves that there is room for, one kind behind the other.
    pub(super) kinds: [usize; 3],
    /// The plan by which vectors are stored, as a version holds it.
    pub(super) plan: StoredPlan,
}

/// Squared lengths of the two parts of a new vector.
#[derive(Clone, Copy)]
struct SplitNorms {
    /// Squared length of the part orthogonal to the basis.
    left: f64,
    /// Squared length of the part removed, along the basis.
    removed: f64,
}

impl<S: GmresPasses> Cycle<S> {
    /// Room for cycles of `m` steps.
    pub(super) fn new(system: &S, m: usize, storage: BasisStorage) -> Result<Self, SolveError> {
        system.reserve_sums(m + 1)?;
        Ok(Self {
            basis: Basis::new(system, m + 1, storage)?,
            scales: vec![1.0; m + 1],
            products: vec![0.0; m + 1],
            coefficients: vec![0.0; m + 1],
            sums: vec![ExactSum::ZERO; m + 1],
            small: LeastSquares::new(m),
            state: CycleState::Plain,
            names: LETTERS.map(|letter| (0..=m).map(|j| format!("{letter}{j}")).collect()),
            kinds: BitPlan::first(storage, m + 1).counts(m + 1),
            plan: BitPlan::first(storage, m + 1).to_numbers(),
        })
    }

    /// Steps of a whole cycle.
    pub(super) fn length_max(&self) -> usize {
        self.scales.len() - 1
    }

    /// Steps done.
    pub(super) fn columns(&self) -> usize {
        self.small.columns()
    }

    /// Returns whether no further step fits.
    pub(super) fn is_full(&self) -> bool {
        self.columns() == self.length_max()
    }

    /// Smallest residual norm over the space so far, preconditioned from the left.
    pub(super) fn residual_norm(&self) -> f64 {
        self.small.residual_norm()
    }

    /// Starts with the vector v alone, which changes places with the first basis vector: a vector
    /// whose squared length is given.
    pub(super) fn start_from_vector(&mut self, system: &S, v: &mut S::Vector, squared: f64) -> Result<(), SolveError> {
        self.state = CycleState::Plain;
        std::mem::swap(self.basis.slot(0), v);
        self.small.restart(&[squared.sqrt()]);
        self.set_length(system, 0, squared, v)?;
        self.basis.accept();
        Ok(())
    }

    /// Starts with the first basis vectors, of unit length, and the small problem `start` over
    /// them. Returns false where that problem is singular; the cycle must be started again then.
    pub(super) fn start_from_carried(&mut self, start: &Start) -> bool {
        self.small.restart(start.residual.as_slice());
        let h = &start.hessenberg;
        if !(0..start.kept()).all(|j| self.small.push(&h.column(j).as_slice()[..=j], h[(j + 1, j)])) {
            return false;
        }
        self.scales[..=start.kept()].fill(1.0);
        self.state = CycleState::deflated(start);
        true
    }

    /// Continues with a cycle under way, whose vectors and numbers were written in place of those
    /// here. Returns false where its small problem is singular, or its last product is not `op` of
    /// its vector: another operator or preconditioner has made it. It must not continue then.
    pub(super) fn recall(
        &mut self,
        system: &S,
        columns: usize,
        op: impl FnOnce(&S::Vector, &mut S::Vector) -> Result<(), SolveError>,
    ) -> Result<bool, SolveError> {
        let is_regular = self.small.recall(columns);
        let last = columns - 1;
        self.basis.recall(system, last)?;
        let (v, w) = self.basis.newest_and_slot(last, columns + 1);
        op(v, w)?;
        let whole = system.dot(w, w)?;
        // c_i = h_ij scale_i / scale_j turns unit vectors into stored ones.
        let column = self.small.hessenberg_column(last);
        for ((c, h), scale) in self.coefficients.iter_mut().zip(column).zip(&self.scales) {
            *c = h * scale / self.scales[last];
        }
        // w = A v_j - sum_i c_i v_i
        let left = self.basis.subtract(system, &self.coefficients[..=columns])?;
        self.basis.recall(system, columns)?;
        let [whole, left] = sum_over_ranks(system, [whole, left])?;
        let [doubles, floats, _] = self.kinds;
        let gap = PRODUCT_GAPS[usize::from(columns >= doubles + floats)];
        Ok(is_regular && left <= gap.powi(2) * whole)
    }

    /// The newest basis vector, and room for the next one.
    pub(super) fn newest_and_next(&mut self) -> (&S::Vector, &mut S::Vector) {
        let j = self.columns();
        self.basis.newest_and_slot(j, j + 1)
    }

    /// Adds the product that stands in the next basis vector: orthogonalises it, and adds a column
    /// to the small problem. Returns false when the basis cannot grow further.
    pub(super) fn extend(&mut self, system: &S, work: &mut S::Vector) -> Result<bool, SolveError> {
        let j = self.columns();
        self.products[..=j].fill(0.0);
        let SplitNorms { mut left, removed } = self.orthogonalise(system)?;
        let whole = left + removed;
        if left < REORTHOGONALISE_BELOW.powi(2) * whole {
            left = self.orthogonalise(system)?.left;
        }
        // A breakdown that is a success: A v lies in the space already.
        let is_exhausted = left <= (f64::EPSILON * f64::EPSILON) * whole;
        let length = self.set_length(system, j + 1, left, work)?;
        self.basis.accept();
        // h_ij = scale_j c_i / scale_i turns stored vectors into unit vectors.
        let scale = self.scales[j];
        for (product, own) in self.products[..=j].iter_mut().zip(&self.scales) {
            *product *= scale / own;
        }
        let below = if is_exhausted { 0.0 } else { length };
        let is_regular = self.small.push(&self.products[..=j], scale * below);
        self.state = CycleState::Within { columns: self.columns() };
        Ok(is_regular && !is_exhausted)
    }

    /// Removes from the next vector its part along the basis, and adds that part to `products`.
    fn orthogonalise(&mut self, system: &S) -> Result<SplitNorms, SolveError> {
        let j = self.columns();
        let coefficients = &mut self.coefficients[..=j];
        // c_i = (w . v_i) / (v_i . v_i)
        let sums = &mut self.sums[..=j];
        self.basis.dot(system, sums)?;
        system.host().comm.sum_exact(sums)?;
        coefficients.iter_mut().zip(&*sums).for_each(|(c, sum)| *c = sum.rounded());
        let mut removed = 0.0;
        for ((c, scale), product) in coefficients.iter_mut().zip(&self.scales).zip(&mut self.products) {
            removed += (*c * scale).powi(2);
            *c *= scale * scale;
            *product += *c;
        }
        // w = w - sum_i c_i v_i
        let [left] = sum_over_ranks(system, [self.basis.subtract(system, coefficients)?])?;
        Ok(SplitNorms { left, removed })
    }

    /// Notes the length of basis vector `j`, whose square is given, and stores it; in doubles as it
    /// is, unless its square might over- or underflow. Returns the length it has now, before it is
    /// stretched.
    fn set_length(&mut self, system: &S, j: usize, squared: f64, work: &mut S::Vector) -> Result<f64, SolveError> {
        let length = squared.sqrt();
        self.scales[j] = 1.0 / length;
        let is_usable = length > 0.0 && length.is_finite();
        if self.basis.storage != BasisStorage::Double {
            let stretch = if is_usable { power_of_two(LENGTH / length) } else { 1.0 };
            let [stored] = sum_over_ranks(system, [self.basis.store(system, j, stretch)?])?;
            if is_usable {
                self.scales[j] = 1.0 / stored.sqrt();
                return Ok(stored.sqrt() / stretch);
            }
        } else if is_usable && !LENGTHS_SQUARED.contains(&squared) {
            system.scaled_copy(self.scales[j], self.basis.slot(j), work)?;
            std::mem::swap(self.basis.slot(j), work);
            self.scales[j] = 1.0;
        }
        Ok(length)
    }

    /// Chooses the numbers in which the vectors of the next cycle are stored, by this one, which
    /// has ended: with a true residual far above that of its small problem where `is_off`.
    pub(super) fn plan_next(&mut self, system: &S, is_off: bool) -> Result<(), SolveError> {
        let k = self.columns();
        if self.basis.storage != BasisStorage::Auto || k == 0 {
            return Ok(());
        }
        let len = self.scales.len();
        let beta = self.small.c[0].abs();
        self.small.solve(&mut self.coefficients);
        // weight_(j+1) = max_(i >= j) h_(i+1)i |y_i|, and of vector 0 that of vector 1 or beta
        let mut largest = 0.0;
        for j in (0..k).rev() {
            let below = self.small.hessenberg_column(j)[j + 1];
            largest = f64::max(largest, (below * self.coefficients[j]).abs());
            self.coefficients[j + 1] = largest;
        }
        self.coefficients[0] = largest.max(beta);
        let plan = BitPlan::of_numbers(self.plan, len).filter(|_| !is_off);
        let next = plan.map_or(BitPlan::first(BasisStorage::Auto, len), |plan| {
            plan.after(len, [beta, self.residual_norm()], &self.coefficients[..=k])
        });
        self.set_plan(system, next)
    }

    /// Stores the vectors of the next cycle as the first one's.
    pub(super) fn forget_plan(&mut self, system: &S) -> Result<(), SolveError> {
        self.set_plan(system, BitPlan::first(self.basis.storage, self.scales.len()))
    }

    /// Stores vectors as the restored plan says. Returns false where there is none that fits.
    pub(super) fn recall_plan(&mut self, system: &S) -> Result<bool, SolveError> {
        let Some(plan) = BitPlan::of_numbers(self.plan, self.scales.len()) else { return Ok(false) };
        let vectors = self.state.vectors();
        let restored = self.basis.mixed.counts(vectors);
        self.set_plan(system, plan)?;
        Ok(self.basis.mixed.counts(vectors) == restored)
    }

    fn set_plan(&mut self, system: &S, plan: BitPlan) -> Result<(), SolveError> {
        self.plan = plan.to_numbers();
        self.kinds = plan.counts(self.scales.len());
        self.basis.fit(system, self.kinds)
    }

    /// Returns whether the cycle has gained all that its stored vectors allow.
    pub(super) fn is_spent(&self, beta: f64) -> bool {
        let [.., floor] = self.plan;
        self.residual_norm() <= floor * beta
    }

    /// `target = target + V y`, for the y that leaves the smallest residual.
    pub(super) fn add_minimiser(&mut self, system: &S, target: &mut S::Vector) -> Result<(), SolveError> {
        let k = self.columns();
        self.small.solve(&mut self.coefficients);
        for (y, scale) in self.coefficients[..k].iter_mut().zip(&self.scales) {
            *y *= scale;
        }
        self.basis.add(system, &self.coefficients[..k], target)
    }

    /// Replaces the first basis vectors by those the next cycle begins with, and returns the small
    /// problem over them. `None` where this cycle leaves none.
    pub(super) fn carry_over(&mut self, system: &S, wanted: usize) -> Result<Option<Start>, SolveError> {
        if wanted == 0 || !self.is_full() || self.basis.storage != BasisStorage::Double {
            return Ok(None);
        }
        let Some(found) = harvest(&self.small.hessenberg(), &self.small.left(), wanted) else { return Ok(None) };
        let column =
            |column: DVectorView<'_, f64>| column.iter().zip(&self.scales).map(|(c, scale)| c * scale).collect();
        let columns: Vec<Vec<f64>> = found.columns.column_iter().map(column).collect();
        system.combine(&columns, &mut self.basis.doubles)?;
        Ok(Some(found.start))
    }

    /// Makes room for the state that a version with these names holds.
    pub(super) fn make_room(&mut self, system: &S, saved: &[&str]) {
        let is_saved = |letter: usize, j: usize| saved.contains(&self.names[letter][j].as_str());
        let letters = match self.basis.storage {
            BasisStorage::Double => 0..1,
            BasisStorage::Float => 1..2,
            BasisStorage::Auto => 0..3,
        };
        let mut found = [0; 3];
        let mut vectors = 0;
        for letter in letters {
            let before = vectors;
            vectors += (before..self.scales.len()).take_while(|&j| is_saved(letter, j)).count();
            found[letter] = vectors - before;
        }
        self.state = CycleState::room(vectors, saved.contains(&ESTIMATE), self.length_max());
        if self.basis.storage == BasisStorage::Auto {
            self.kinds = found;
            if self.basis.fit(system, found).is_err() {
                self.state = CycleState::Misfit;
            }
        }
    }
}

/// The names of those of the first `vectors` vectors that are of one kind: doubles, floats or
/// halves, of which there are `kinds`.
pub(super) fn names_of(names: &[Vec<String>; 3], kinds: [usize; 3], vectors: usize, kind: usize) -> &[String] {
    let first: usize = kinds[..kind].iter().sum();
    let end = (first + kinds[kind]).min(vectors);
    &names[kind][first.min(end)..end]
}

/// The power of two at or below a positive number, which lies between 2^-1000 and 2^1000.
fn power_of_two(value: f64) -> f64 {
    f64::from_bits(value.clamp(1e-300, 1e300).to_bits() & !((1 << 52) - 1))
}
