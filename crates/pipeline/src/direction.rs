//! The bound of a search direction: what matters of it is measured in the norm the method deflates
//! in.
//!
//! A saved direction serves a deflated resume as well as its error is small in the energy norm,
//! `||p' - p||_A <= delta ||p||_A`. An error spread evenly below e has `||p' - p||_A^2` about `e^2
//! trace(A) / 3`, which gives the first bound to try; the error found decides.

use recoup_core::{Bound, Comm, Operator, summed};
use recoup_model::residual_bound::Verdict;

use crate::PipelineError;
use crate::encoding::{Judge, Stopwatch, largest};
use crate::job::CheckpointJob;

/// Bounds tried before the direction is saved without loss.
const TRIES_MAX: u32 = 4;
/// A bound is chosen for an error this much below the one allowed.
const MARGIN: f64 = 0.95;

/// A bound on `||A||` replaces products where it overestimates the squared error of directions at
/// most by this factor, which costs a bit a value.
const LOOSE_MAX: f64 = 4.0;

/// Measures directions in the energy norm of the operator.
pub(crate) struct EnergyNorm {
    trace: f64,
    /// A bound on `||A||_2`, where products are made in the solver's place and it is near enough.
    spectral: Option<f64>,
    difference: Vec<f64>,
    product: Vec<f64>,
}

impl EnergyNorm {
    /// Takes the trace of the operator, or `sqrt(n) ||A||_F` above it where the diagonal is not
    /// known. Collective.
    pub(crate) fn new(operator: &dyn Operator, frobenius: f64, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let diagonal = operator.diagonal();
        let mut sums = [diagonal.iter().flatten().sum(), f64::from(u8::from(diagonal.is_none()))];
        comm.sum(&mut sums)?;
        let [known, unknown] = sums;
        let n = operator.global_rows() as f64;
        let trace = if unknown == 0.0 { known } else { n.sqrt() * frobenius };
        // A is symmetric where it gives a norm, and then ||A||_2 <= ||A||_inf.
        let spectral = if operator.is_applied_behind() { None } else { largest(comm, operator.largest_row_sum())? };
        let spectral = spectral.filter(|spectral| n * spectral <= LOOSE_MAX * trace);
        let trace = spectral.map_or(trace, |spectral| n * spectral);
        Ok(Self { trace, spectral, difference: Vec::new(), product: vec![0.0; operator.rows()] })
    }

    /// Measures `v . A v` over all ranks.
    fn squared(&mut self, operator: &dyn Operator, v: &[f64], comm: &dyn Comm) -> Result<f64, PipelineError> {
        let dot = operator.apply_dot(v, &mut self.product).map_err(PipelineError::from);
        summed(comm, dot.map(|dot| [dot])).map(|[sum]| sum)
    }

    /// Measures `(p' - p) . A (p' - p)` over all ranks, or a bound on it: `||A||_2 ||p' - p||^2`.
    fn squared_error(
        &mut self,
        operator: &dyn Operator,
        p: &[f64],
        decoded: &[f64],
        comm: &dyn Comm,
    ) -> Result<f64, PipelineError> {
        if let Some(spectral) = self.spectral {
            let mut sum = [decoded.iter().zip(p).map(|(decoded, p)| (decoded - p) * (decoded - p)).sum()];
            comm.sum(&mut sum)?;
            return Ok(spectral * sum[0]);
        }
        let mut difference = std::mem::take(&mut self.difference);
        difference.clear();
        difference.extend(decoded.iter().zip(p).map(|(decoded, p)| decoded - p));
        let squared = self.squared(operator, &difference, comm);
        self.difference = difference;
        squared
    }
}

/// Judges a direction: finds the largest bound that keeps its error in the energy norm below
/// `delta`, or saves it without loss where the operator gives no such norm.
pub(crate) struct EnergyJudge<'a> {
    energy: &'a mut EnergyNorm,
    operator: &'a dyn Operator,
    p: &'a [f64],
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
        energy: &'a mut EnergyNorm,
        operator: &'a dyn Operator,
        job: &CheckpointJob,
        p: &'a [f64],
        comm: &'a dyn Comm,
    ) -> Self {
        Self {
            energy,
            operator,
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

    fn first_bound(&mut self, stopwatch: &mut Stopwatch<'_>) -> Result<Bound, PipelineError> {
        self.squared_norm = match self.known_squared {
            Some(known) => known,
            None => stopwatch.verify(|| self.energy.squared(self.operator, self.p, self.comm))?,
        };
        Ok(first_bound(self.delta, self.squared_norm, self.energy.trace))
    }

    fn verdict(
        &mut self,
        tried: Bound,
        decoded: &[f64],
        stopwatch: &mut Stopwatch<'_>,
    ) -> Result<Verdict, PipelineError> {
        let Bound::Absolute(e) = tried else { return Ok(Verdict::Accepted) };
        let squared = stopwatch.verify(|| self.energy.squared_error(self.operator, self.p, decoded, self.comm))?;
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
    v: &'a [f64],
    delta: f64,
    residual_norm: f64,
    comm: &'a dyn Comm,
}

impl<'a> RecurrenceBound<'a> {
    pub(crate) fn new(job: &CheckpointJob, v: &'a [f64], comm: &'a dyn Comm) -> Self {
        Self { v, delta: job.plan.delta, residual_norm: job.progress.residual_norm, comm }
    }
}

impl Judge for RecurrenceBound<'_> {
    fn comm(&self) -> Option<&dyn Comm> {
        Some(self.comm)
    }

    fn first_bound(&mut self, _: &mut Stopwatch<'_>) -> Result<Bound, PipelineError> {
        let mut sums = [self.v.iter().map(|v| v * v).sum(), self.v.len() as f64];
        self.comm.sum(&mut sums)?;
        let [squared, n] = sums;
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
