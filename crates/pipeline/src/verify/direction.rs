//! The bound of a search direction: what matters of it is measured in the norm the method deflates
//! in.
//!
//! A saved direction serves a deflated resume as well as its error is small in the energy norm,
//! `||p' - p||_A <= delta ||p||_A`. An error spread evenly below e has `||p' - p||_A^2` about `e^2
//! trace(A) / 3`, which gives the first bound to try; the error found decides.

use recoup_core::{Bound, Comm, ExactSum, Operator, summed};
use recoup_model::residual_bound::Verdict;

use super::problem::ResidualOps;
use crate::encode::{CheckpointJob, Judge, largest};
use crate::error::PipelineError;
use crate::staging::VectorView;

/// Bounds tried before the direction is saved without loss.
const TRIES_MAX: u32 = 4;
/// A bound is chosen for an error this much below the one allowed.
const MARGIN: f64 = 0.95;

/// A bound on `||A||` replaces products where it overestimates the squared error of directions at
/// most by this factor, which costs a bit a value.
const LOOSE_MAX: f64 = 4.0;

/// The energy norm of the operator.
pub(crate) struct EnergyNorm {
    trace: f64,
    /// A bound on `||A||_2`, where products are made in the solver's place and it is near enough.
    spectral: Option<f64>,
}

impl EnergyNorm {
    /// Takes the trace of the operator, or `sqrt(n) ||A||_F` above it where the diagonal is not
    /// known. Collective.
    pub(crate) fn new(operator: &dyn Operator, frobenius: f64, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let diagonal = operator.diagonal();
        let mut sums = [diagonal.iter().flatten().copied().collect(), f64::from(u8::from(diagonal.is_none())).into()];
        comm.sum_exact(&mut sums)?;
        let [known, unknown] = sums.map(|sum: ExactSum| sum.rounded());
        let n = operator.global_rows() as f64;
        let trace = if unknown == 0.0 { known } else { n.sqrt() * frobenius };
        // A is symmetric where it gives a norm, and then ||A||_2 <= ||A||_inf.
        let spectral = if operator.is_applied_behind() { None } else { largest(comm, operator.largest_row_sum())? };
        let spectral = spectral.filter(|spectral| n * spectral <= LOOSE_MAX * trace);
        let trace = spectral.map_or(trace, |spectral| n * spectral);
        Ok(Self { trace, spectral })
    }

    /// Returns whether errors are measured by a product, which a place elsewhere can make.
    pub(crate) fn is_measured(&self) -> bool {
        self.spectral.is_none()
    }

    /// Measures `(p' - p) . A (p' - p)` over all ranks, or a bound on it: `||A||_2 ||p' -
    /// p||^2`.
    fn squared_error(
        &self,
        measures: &mut ResidualOps,
        p: VectorView<'_>,
        decoded: VectorView<'_>,
        comm: &dyn Comm,
    ) -> Result<f64, PipelineError> {
        if let Some(spectral) = self.spectral {
            let pairs = decoded.doubles().iter().zip(p.doubles());
            let mut sum = [pairs.map(|(decoded, p)| (decoded - p) * (decoded - p)).sum()];
            comm.sum(&mut sum)?;
            return Ok(spectral * sum[0]);
        }
        over_ranks(measures.squared_energy_of_error(p, decoded), comm)
    }
}

/// Sums a measure over all ranks.
fn over_ranks(mine: Result<ExactSum, PipelineError>, comm: &dyn Comm) -> Result<f64, PipelineError> {
    let [sum] = summed(comm, mine.map(|mine| [mine]))?;
    Ok(sum)
}

/// Judges a direction: finds the largest bound that keeps its error in the energy norm below
/// `delta`, or saves it without loss where the operator gives no such norm.
pub(crate) struct EnergyJudge<'a> {
    energy: &'a EnergyNorm,
    measures: &'a mut ResidualOps,
    p: VectorView<'a>,
    delta: f64,
    /// `p . A p`, where the program knows it.
    known_squared: Option<f64>,
    /// `p . A p`.
    squared_norm: f64,
    tries: u32,
    comm: &'a dyn Comm,
}

impl<'a> EnergyJudge<'a> {
    pub(crate) fn new(
        energy: &'a EnergyNorm,
        measures: &'a mut ResidualOps,
        job: &CheckpointJob,
        p: VectorView<'a>,
        comm: &'a dyn Comm,
    ) -> Self {
        Self {
            energy,
            measures,
            p,
            delta: job.plan.delta,
            known_squared: job.direction_squared(),
            squared_norm: 0.0,
            tries: 0,
            comm,
        }
    }
}

impl Judge for EnergyJudge<'_> {
    fn comm(&self) -> Option<&dyn Comm> {
        Some(self.comm)
    }

    fn needs_decoded(&self) -> bool {
        true
    }

    fn first_bound(&mut self) -> Result<Bound, PipelineError> {
        self.squared_norm = match self.known_squared {
            Some(known) => known,
            None => over_ranks(self.measures.squared_energy(self.p), self.comm)?,
        };
        Ok(first_bound(self.delta, self.squared_norm, self.energy.trace))
    }

    fn verdict(&mut self, tried: Bound, decoded: VectorView<'_>) -> Result<Verdict, PipelineError> {
        let Bound::Absolute(e) = tried else { return Ok(Verdict::Accepted) };
        let squared = self.energy.squared_error(self.measures, self.p, decoded, self.comm)?;
        self.tries += 1;
        // ||p' - p||_A / ||p||_A
        let error = (squared.max(0.0) / self.squared_norm).sqrt();
        if error <= self.delta {
            return Ok(Verdict::Accepted);
        }
        let can_retry = self.tries < TRIES_MAX && error.is_finite();
        let tighter = Bound::Absolute(e * (MARGIN * self.delta / error).min(0.5));
        Ok(Verdict::Retry(if can_retry { tighter } else { Bound::Lossless }))
    }
}

/// Bounds a vector of a method's recurrences: an error of at most `delta` times its norm and times
/// that of the residual, `||v' - v|| <= delta min(||v||, ||r||)`. A direction grows far beyond the
/// residual it is to reduce where the operator is indefinite.
pub(crate) struct RecurrenceBound<'a> {
    measures: &'a ResidualOps,
    v: VectorView<'a>,
    delta: f64,
    residual_norm: f64,
    comm: &'a dyn Comm,
}

impl<'a> RecurrenceBound<'a> {
    /// `residual_norm` is `||r||` of the column that the vector belongs to.
    pub(crate) fn new(
        measures: &'a ResidualOps,
        v: VectorView<'a>,
        delta: f64,
        residual_norm: f64,
        comm: &'a dyn Comm,
    ) -> Self {
        Self { measures, v, delta, residual_norm, comm }
    }
}

impl Judge for RecurrenceBound<'_> {
    fn comm(&self) -> Option<&dyn Comm> {
        Some(self.comm)
    }

    fn first_bound(&mut self) -> Result<Bound, PipelineError> {
        let rows = self.measures.operator().rows() as f64;
        let mine = self.measures.squared_norm(self.v).map(|squared| [squared, rows.into()]);
        let [squared, n] = summed(self.comm, mine)?;
        // e = delta min(||v||, ||r||) / sqrt(n)
        let e = self.delta * squared.sqrt().min(self.residual_norm) / n.sqrt();
        Ok(if e.is_normal() { Bound::Absolute(e) } else { Bound::Lossless })
    }
}

/// Returns the bound under which errors spread evenly come to `MARGIN * delta`.
fn first_bound(delta: f64, squared_norm: f64, trace: f64) -> Bound {
    let e = MARGIN * delta * (3.0 * squared_norm / trace).sqrt();
    if e.is_normal() { Bound::Absolute(e) } else { Bound::Lossless }
}
