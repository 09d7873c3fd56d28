//! The forward pass of a shot, and its exact adjoint.
//!
//! The problem: the data `d(k) = R u(k)` of a shot are compared with observed ones. Wanted are the
//! image and the gradient of the misfit `J = 1/2 sum_k ||r(k)||^2`, `r = d - d_observed`, by the
//! squared slowness `m = 1/c^2` of each cell. Source: Plessix, Geophysical Journal International
//! 167(2), 2006, doi:10.1111/j.1365-246X.2006.02978.x.
//!
//! ```text
//! forward   m/dt^2 ((1+s) u(k+1) - 2 u(k) + (1-s) u(k-1)) = L u(k) + f(k),      k = 0 .. n-1
//! adjoint   m/dt^2 ((1+s) l(k) - 2 l(k+1) + (1-s) l(k+2)) = L l(k+1) + R' r(k), k = n .. 1
//! image     sum_k u(k) l(k)
//! gradient  -1/dt^2 sum_k u(k) ((1+s) l(k) - 2 l(k+1) + (1-s) l(k+2))
//! ```
//!
//! The gradient is that of the discrete program, not of the continuous equation. Usually it is
//! written with the second difference of `u`; summed by parts it is that of `l`, which the adjoint
//! step has at hand. So the reverse needs one field of a forward state, and errors of a lossy state
//! are not differentiated. Departure: with a stride above 1, both sums take every `stride`-th `k`
//! only; the gradient is then a sample of the exact one.

use crate::medium::Medium;
use crate::real::Real;
use crate::stencil::Correlation;
use crate::survey::Shot;
use crate::wavefield::Wavefield;

/// A shot to be imaged.
#[derive(Clone, Debug)]
pub(crate) struct ShotProblem<T> {
    /// The medium that is assumed.
    pub(crate) medium: Medium<T>,
    /// Source and receivers.
    pub(crate) shot: Shot,
    /// Values of the source, one for each step.
    pub(crate) wavelet: Vec<T>,
    /// Time steps between sampled states; divides the number of steps.
    pub(crate) stride: usize,
}

/// Data of the receivers, step after step.
pub(crate) type ShotData<T> = Vec<T>;

/// Results of the adjoint pass.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShotImage<T> {
    pub(crate) image: Vec<T>,
    pub(crate) gradient: Vec<T>,
    /// `l(k+1)` at the source for each step `k`: the adjoint applied to the residual.
    pub(crate) at_source: Vec<T>,
}

impl<T: Real> ShotProblem<T> {
    /// Number of time steps.
    pub(crate) fn n_steps(&self) -> usize {
        self.wavelet.len()
    }

    /// Number of blocks of `stride` steps.
    pub(crate) fn n_blocks(&self) -> usize {
        self.n_steps() / self.stride
    }

    /// Bytes of one field.
    pub(crate) fn field_bytes(&self) -> usize {
        self.medium.grid.n_cells() * size_of::<T>()
    }

    /// Takes all forward steps and keeps the data alone.
    pub(crate) fn data(&self) -> ShotData<T> {
        let mut forward = ForwardPass::new(self);
        for _ in 0..self.n_blocks() {
            forward.advance_block();
        }
        forward.data
    }
}

/// The forward program, between two blocks.
#[derive(Clone, Debug)]
pub(crate) struct ForwardPass<'a, T> {
    problem: &'a ShotProblem<T>,
    pub(crate) field: Wavefield<T>,
    /// Blocks behind it.
    pub(crate) block: usize,
    pub(crate) data: ShotData<T>,
}

impl<'a, T: Real> ForwardPass<'a, T> {
    /// Begins at rest.
    pub(crate) fn new(problem: &'a ShotProblem<T>) -> Self {
        let field = Wavefield::at_rest(problem.medium.grid.n_cells());
        let data = vec![T::default(); problem.n_steps() * problem.shot.receivers.len()];
        Self { problem, field, block: 0, data }
    }

    /// Takes the steps of a block, and records data.
    pub(crate) fn advance_block(&mut self) {
        let problem = self.problem;
        let n_receivers = problem.shot.receivers.len();
        let first = self.block * problem.stride;
        for step in first..first + problem.stride {
            self.field.step(&problem.medium);
            self.field.inject(&problem.medium, problem.shot.source, problem.wavelet[step]);
            let samples = &mut self.data[step * n_receivers..(step + 1) * n_receivers];
            for (sample, &receiver) in samples.iter_mut().zip(&problem.shot.receivers) {
                *sample = self.field.now[receiver];
            }
        }
        self.block += 1;
    }
}

/// The adjoint program, between two samples.
#[derive(Clone, Debug)]
pub(crate) struct AdjointPass<'a, T> {
    problem: &'a ShotProblem<T>,
    /// `r(k)` of all receivers, in the place of the data of step `k - 1`.
    residual: &'a [T],
    field: Wavefield<T>,
    /// `k` of the step that was taken last.
    at: usize,
    sums: ShotImage<T>,
}

impl<'a, T: Real> AdjointPass<'a, T> {
    /// Begins behind the last time step.
    pub(crate) fn new(problem: &'a ShotProblem<T>, residual: &'a [T]) -> Self {
        let n_cells = problem.medium.grid.n_cells();
        let zeros = vec![T::default(); n_cells];
        let at_source = vec![T::default(); problem.n_steps()];
        let sums = ShotImage { image: zeros.clone(), gradient: zeros, at_source };
        Self { problem, residual, field: Wavefield::at_rest(n_cells), at: problem.n_steps() + 1, sums }
    }

    /// Takes steps back to the time of the next sample, and adds the state of the forward program
    /// at that time to the sums.
    pub(crate) fn reverse_to_sample(&mut self, state: &[T]) {
        while !(self.at - 1).is_multiple_of(self.problem.stride) {
            self.step();
        }
        let medium = &self.problem.medium;
        let ShotImage { image, gradient, .. } = &mut self.sums;
        self.field.step_and_correlate(medium, &mut Correlation { state, image, gradient });
        self.at -= 1;
        for (&receiver, &residual) in self.problem.shot.receivers.iter().zip(self.sources()) {
            let gain = self.field.inject(medium, receiver, residual);
            self.sums.image[receiver] += state[receiver] * gain;
            self.sums.gradient[receiver] += state[receiver] * (medium.scaled[receiver] * residual);
        }
        self.note();
    }

    /// Takes the steps that are left, of which no sample is wanted: the state before them is 0.
    pub(crate) fn finish(mut self) -> ShotImage<T> {
        while self.at > 1 {
            self.step();
        }
        let scale = T::of(-1.0 / self.problem.medium.time_step.powi(2));
        self.sums.gradient.iter_mut().for_each(|value| *value = *value * scale);
        self.sums
    }

    /// `l(k)` from `l(k+1)`, `l(k+2)` and `r(k)`
    fn step(&mut self) {
        self.field.step(&self.problem.medium);
        self.at -= 1;
        for (&receiver, &residual) in self.problem.shot.receivers.iter().zip(self.sources()) {
            self.field.inject(&self.problem.medium, receiver, residual);
        }
        self.note();
    }

    /// Returns the residual at the time of the last step.
    fn sources(&self) -> &'a [T] {
        let n_receivers = self.problem.shot.receivers.len();
        &self.residual[(self.at - 1) * n_receivers..self.at * n_receivers]
    }

    fn note(&mut self) {
        self.sums.at_source[self.at - 1] = self.field.now[self.problem.shot.source];
    }
}

/// `d - d_observed`
pub(crate) fn residual<T: Real>(data: &[T], observed: &[T]) -> ShotData<T> {
    data.iter().zip(observed).map(|(&data, &observed)| data - observed).collect()
}

/// `1/2 sum ||r||^2`
pub(crate) fn misfit<T: Real>(residual: &[T]) -> f64 {
    0.5 * residual.iter().map(|&value| value.wide() * value.wide()).sum::<f64>()
}
