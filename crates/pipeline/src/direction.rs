//! The bound of a search direction: what matters of it is measured in the norm the method deflates
//! in.
//!
//! A saved direction serves a deflated resume as well as its error is small in the energy norm,
//! `||p' - p||_A <= delta ||p||_A`. An error spread evenly below e has `||p' - p||_A^2` about `e^2
//! trace(A) / 3`, which gives the first bound to try; the error found decides.

use recoup_core::{Bound, Clock, Comm, Operator, agreed, summed};

use crate::PipelineError;
use crate::encoding::{EncodeBuffers, Encoded, Reference, Request, Times, largest, unpadded};
use crate::version::encode;

/// Bounds tried before the direction is saved without loss.
const TRIES_MAX: u32 = 4;
/// A bound is chosen for an error this much below the one allowed.
const MARGIN: f64 = 0.95;

/// A bound on `||A||` that costs directions no more than so many times their squared error, a bit a
/// value, stands for products.
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

    /// `v . A v` over all ranks.
    fn squared(&mut self, operator: &dyn Operator, v: &[f64], comm: &dyn Comm) -> Result<f64, PipelineError> {
        let dot = operator.apply_dot(v, &mut self.product).map_err(PipelineError::from);
        summed(comm, dot.map(|dot| [dot])).map(|[sum]| sum)
    }

    /// `(p' - p) . A (p' - p)` over all ranks, or a bound on it: `||A||_2 ||p' - p||^2`.
    fn squared_error(
        &mut self,
        operator: &dyn Operator,
        [p, decoded]: [&[f64]; 2],
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

    /// Encodes a direction, and decodes it, under the largest bound that keeps its error in the
    /// energy norm below `delta`; without loss where the operator gives no such norm. Collective:
    /// every rank tries the same bounds.
    pub(crate) fn encode(
        &mut self,
        (request, reference): (Request<'_>, &Reference),
        comm: &dyn Comm,
        clock: &dyn Clock,
        room: &mut EncodeBuffers,
    ) -> Result<Encoded, PipelineError> {
        let operator = reference.operator.as_ref();
        let (mut times, delta) = (Times::new(clock), request.plan.delta);
        let p = unpadded(&request.staged.values, request.staged);
        let whole = match request.known.direction_squared {
            Some(known) => known,
            None => times.verify(|| self.squared(operator, p, comm))?,
        };
        let mut bound = first_bound(delta, whole, self.trace);
        for attempt in 1.. {
            let done = times.encode(|| encode(request.staged, request.coding(bound), &mut room.frames));
            let done = done.and_then(|()| times.encode(|| room.decode(&request)));
            agreed(comm, done)?;
            let Bound::Absolute(e) = bound else { break };
            let decoded = unpadded(&room.decoded, request.staged);
            let error = times.verify(|| self.squared_error(operator, [p, decoded], comm))?;
            let error = (error.max(0.0) / whole).sqrt();
            if error <= delta {
                break;
            }
            let tighter = Bound::Absolute(e * (MARGIN * delta / error).min(0.5));
            bound = if attempt < TRIES_MAX && error.is_finite() { tighter } else { Bound::Lossless };
        }
        Ok(times.encoded(bound))
    }
}

/// Encodes a vector of a method's recurrences with an error of at most `delta` times its norm and
/// times that of the residual, `||v' - v|| <= delta min(||v||, ||r||)`: a direction grows far
/// beyond the residual it is to reduce where the operator is indefinite. Collective.
pub(crate) fn encode_recurrence(
    request: Request<'_>,
    comm: &dyn Comm,
    clock: &dyn Clock,
    room: &mut EncodeBuffers,
) -> Result<Encoded, PipelineError> {
    let mut times = Times::new(clock);
    let v = unpadded(&request.staged.values, request.staged);
    let mut sums = [v.iter().map(|v| v * v).sum(), v.len() as f64];
    comm.sum(&mut sums)?;
    let [squared, n] = sums;
    let e = request.plan.delta * squared.sqrt().min(request.progress.residual_norm) / n.sqrt();
    let bound = if e.is_normal() { Bound::Absolute(e) } else { Bound::Lossless };
    let mut done = times.encode(|| encode(request.staged, request.coding(bound), &mut room.frames));
    if done.is_ok() && request.follow.is_chained() {
        done = times.encode(|| room.decode(&request));
    }
    agreed(comm, done)?;
    Ok(times.encoded(bound))
}

/// The bound under which errors spread evenly come to `MARGIN * delta`.
fn first_bound(delta: f64, squared_norm: f64, trace: f64) -> Bound {
    let e = MARGIN * delta * (3.0 * squared_norm / trace).sqrt();
    if e.is_normal() { Bound::Absolute(e) } else { Bound::Lossless }
}
