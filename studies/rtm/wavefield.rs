//! A wavefield: the two newest of its fields, which are all that the next step needs.

use crate::medium::Medium;
use crate::real::Real;
use crate::stencil::{Correlation, step, step_and_correlate};

/// The newest field and the one before.
#[derive(Clone, Debug)]
pub(crate) struct Wavefield<T> {
    pub(crate) now: Vec<T>,
    pub(crate) older: Vec<T>,
}

impl<T: Real> Wavefield<T> {
    /// A field at rest.
    pub(crate) fn at_rest(n_cells: usize) -> Self {
        Self { now: vec![T::default(); n_cells], older: vec![T::default(); n_cells] }
    }

    /// Takes a step.
    pub(crate) fn step(&mut self, medium: &Medium<T>) {
        step(medium, &self.now, &mut self.older);
        std::mem::swap(&mut self.now, &mut self.older);
    }

    /// Takes a step and adds the new field to the sums.
    pub(crate) fn step_and_correlate(&mut self, medium: &Medium<T>, sums: &mut Correlation<'_, T>) {
        step_and_correlate(medium, &self.now, &mut self.older, sums);
        std::mem::swap(&mut self.now, &mut self.older);
    }

    /// Adds a source to the step that was taken: `v f / (1+s)`. Returns what the field gained.
    pub(crate) fn inject(&mut self, medium: &Medium<T>, index: usize, force: T) -> T {
        let gain = medium.scaled[index] * force / (T::of(1.0) + medium.damping_at(index));
        self.now[index] += gain;
        gain
    }
}
