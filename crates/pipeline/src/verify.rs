//! The bound of the iterate: derived from the residual, and measured before a version counts.

use recoup_core::{
    Bound, BoundRule, Clock, Comm, CommError, Fingerprint, Operator, Plan, ResidualRecord, agreed, summed,
    vector_fingerprint,
};
use recoup_model::residual_bound::{Norms, Verdict, VerifiedSearch, bound};

use crate::PipelineError;
use crate::direction::EnergyNorm;
use crate::encoding::{EncodeBuffers, Encoded, Reference, Request, Times, largest, unpadded};
use crate::fingerprint::fingerprint;
use crate::staging::Staged;
use crate::suspicion::{ReportedResidual, Suspicion, explained};
use crate::version::encode;

/// Samples of the Frobenius norm where the entries of A are not known.
const RADEMACHER_SAMPLES: u64 = 8;

/// Derives, tries and measures bounds.
pub(crate) struct Verifier {
    reference: Reference,
    energy: EnergyNorm,
    norms: Norms,
    fingerprint: Fingerprint,
    nonzeros: u64,
    search: Option<VerifiedSearch>,
    residual: Vec<f64>,
    /// Largest `1 / |a_ii|` of all ranks, where the diagonal is known.
    inverse_diagonal: Option<f64>,
    /// Largest `||x||` of what was not suspicious.
    iterate_peak: f64,
    /// The version whose iterate the norms are of.
    measured: Option<u64>,
}

impl Verifier {
    /// Takes the norms of the problem. Collective.
    pub(crate) fn new(reference: Reference, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let (operator, rhs) = (reference.operator.as_ref(), &reference.rhs);
        let frobenius = frobenius_squared(operator).map_err(PipelineError::from);
        let sums = summed(comm, frobenius.map(|squared| [rhs.iter().map(|b| b * b).sum::<f64>(), squared]))?;
        let rows = largest(comm, operator.largest_row_sum())?;
        let columns = largest(comm, operator.largest_column_sum())?;
        let norms = Norms {
            residual: 0.0,
            rhs: sums[0].sqrt(),
            iterate: 0.0,
            n: operator.global_rows(),
            frobenius: Some(sums[1].sqrt()),
            // ||A||_2 <= sqrt(||A||_inf ||A||_1)
            spectral_bound: rows.zip(columns).map(|(rows, columns)| (rows * columns).sqrt()),
            abs_product: None,
        };
        let fingerprint = fingerprint(&reference, comm)?;
        let mut nonzeros = [reference.operator.nonzeros() as f64];
        comm.sum(&mut nonzeros)?;
        let nonzeros = nonzeros[0] as u64;
        let energy = EnergyNorm::new(operator, sums[1].sqrt(), comm)?;
        let residual = vec![0.0; operator.rows()];
        let diagonal = operator.diagonal().map(|d| d.iter().fold(0.0, |most: f64, a| most.max(1.0 / a.abs())));
        let inverse_diagonal = largest(comm, diagonal)?;
        let (search, iterate_peak, measured) = (None, 0.0, None);
        Ok(Self {
            reference,
            energy,
            norms,
            fingerprint,
            nonzeros,
            search,
            residual,
            inverse_diagonal,
            iterate_peak,
            measured,
        })
    }

    /// Measures a staged iterate, and holds the residual norm its method claims against the true
    /// one. Returns that and what is wrong with it. Collective, with the same answer on all ranks.
    pub(crate) fn examine(
        &mut self,
        claim: &ReportedResidual,
        staged: &Staged,
        comm: &dyn Comm,
    ) -> Result<(f64, Option<Suspicion>), PipelineError> {
        self.measured = None;
        self.measure(claim.iteration, unpadded(&staged.values, staged), comm)?;
        let true_norm = self.norms.residual;
        let norms = Norms { iterate: self.norms.iterate.max(self.iterate_peak), ..self.norms };
        let explained = explained(claim, &norms, self.inverse_diagonal);
        let suspicion = explained.and_then(|explained| Suspicion::of(claim, true_norm, explained));
        if suspicion.is_none() {
            self.iterate_peak = norms.iterate;
        }
        Ok((true_norm, suspicion))
    }

    /// `||b - A x||` and `||x||`, once for each version.
    fn measure(&mut self, version: u64, x: &[f64], comm: &dyn Comm) -> Result<(), PipelineError> {
        if self.measured.replace(version) != Some(version) {
            self.norms.residual = residual_norm(&self.reference, &mut self.residual, x, comm)?;
            self.norms.iterate = norm(x, comm)?;
        }
        Ok(())
    }

    /// `||b - A x||`, as the program knows it or else as measured, and `||x||`. Says whether the
    /// former is the program's word.
    fn take_norms(&mut self, request: &Request<'_>, x: &[f64], comm: &dyn Comm) -> Result<bool, PipelineError> {
        let version = request.progress.iteration;
        match request.known.residual_norm {
            Some(known) if self.measured != Some(version) => {
                self.norms.residual = known;
                self.norms.iterate = norm(x, comm)?;
                Ok(true)
            }
            _ => self.measure(version, x, comm).map(|()| false),
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Nonzeros of A, of all ranks; `None` where the operator counts none.
    pub(crate) fn nonzeros(&self) -> Option<u64> {
        Some(self.nonzeros).filter(|&nonzeros| nonzeros > 0)
    }

    /// Whether a staged variable is an iterate of this problem: doubles, one per row.
    pub(crate) fn fits(&self, staged: &Staged) -> bool {
        unpadded(&staged.values, staged).len() == self.reference.operator.rows()
    }

    /// Encodes the iterate under the plan's rule, and decodes it; a verified bound is tried until
    /// it holds. Collective: every rank tries the same bounds.
    pub(crate) fn encode(
        &mut self,
        request: Request<'_>,
        comm: &dyn Comm,
        clock: &dyn Clock,
        room: &mut EncodeBuffers,
    ) -> Result<Encoded, PipelineError> {
        let mut times = Times::new(clock);
        let x = unpadded(&request.staged.values, request.staged);
        let mut is_claimed = times.verify(|| self.take_norms(&request, x, comm))?;
        // What is encoded next under this number is another iterate.
        self.measured = None;
        let mut record = ResidualRecord {
            norm: request.progress.residual_norm,
            rhs_norm: self.norms.rhs,
            true_norm: Some(self.norms.residual).filter(|_| !is_claimed),
            ..ResidualRecord::default()
        };
        let mut bound = self.first_bound(request.plan, x, comm)?;
        loop {
            let done = times.encode(|| encode(request.staged, request.coding(bound), &mut room.frames));
            let done = done.and_then(|()| times.encode(|| room.decode(&request)));
            agreed(comm, done)?;
            let decoded = unpadded(&room.decoded, request.staged);
            let verified = times.verify(|| residual_norm(&self.reference, &mut self.residual, decoded, comm))?;
            record.tries += 1;
            record.verified_norm = Some(verified);
            match self.judge(request.plan.rule, self.norms.residual, bound, verified) {
                Verdict::Accepted => {
                    return Ok(Encoded { residual: record, ..times.encoded(bound) });
                }
                Verdict::Retry(tighter) => bound = tighter,
            }
            // The bound failed, or what the program says.
            if std::mem::take(&mut is_claimed) {
                let measured = || residual_norm(&self.reference, &mut self.residual, x, comm);
                self.norms.residual = times.verify(measured)?;
                record.true_norm = Some(self.norms.residual);
            }
        }
    }

    /// Encodes a direction under the plan's bound in the energy norm, and decodes it. Collective.
    pub(crate) fn encode_direction(
        &mut self,
        request: Request<'_>,
        comm: &dyn Comm,
        clock: &dyn Clock,
        room: &mut EncodeBuffers,
    ) -> Result<Encoded, PipelineError> {
        self.energy.encode((request, &self.reference), comm, clock, room)
    }

    /// The bound to try first.
    fn first_bound(&mut self, plan: &Plan, x: &[f64], comm: &dyn Comm) -> Result<Bound, PipelineError> {
        match plan.rule {
            BoundRule::Fixed(Bound::Range(e)) => Ok(Bound::Absolute(e * range(x, comm)?)),
            BoundRule::Verified => {
                let search = self.search.get_or_insert_with(|| VerifiedSearch::new(plan.theta));
                search.aim(plan.theta);
                Ok(search.first(&self.norms)?)
            }
            rule => {
                if rule == BoundRule::Corrected {
                    self.norms.abs_product = self.abs_product(x, comm)?;
                }
                Ok(bound(rule, &self.norms, plan.theta)?)
            }
        }
    }

    /// Only the verified rule refuses what was measured.
    fn judge(&mut self, rule: BoundRule, true_norm: f64, tried: Bound, measured: f64) -> Verdict {
        match &mut self.search {
            Some(search) if rule == BoundRule::Verified => search.judge(true_norm, tried, measured),
            _ => Verdict::Accepted,
        }
    }

    /// `|| |A| |x| ||`, where the entries are known.
    fn abs_product(&mut self, x: &[f64], comm: &dyn Comm) -> Result<Option<f64>, PipelineError> {
        let Some(applied) = self.reference.operator.abs_apply(x, &mut self.residual) else { return Ok(None) };
        agreed(comm, applied.map_err(PipelineError::from))?;
        Ok(Some(norm(&self.residual, comm)?))
    }
}

/// `||b - A x||` over all ranks.
fn residual_norm(reference: &Reference, r: &mut [f64], x: &[f64], comm: &dyn Comm) -> Result<f64, PipelineError> {
    let squared = reference.operator.residual(&reference.rhs, x, r).map_err(PipelineError::from);
    let [sum] = summed(comm, squared.map(|squared| [squared]))?;
    Ok(sum.sqrt())
}

fn norm(x: &[f64], comm: &dyn Comm) -> Result<f64, PipelineError> {
    let mut sum = [x.iter().map(|v| v * v).sum::<f64>()];
    comm.sum(&mut sum)?;
    Ok(sum[0].sqrt())
}

/// `max - min` of the finite values of all ranks.
fn range(x: &[f64], comm: &dyn Comm) -> Result<f64, PipelineError> {
    let finite = x.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let low = -largest(comm, Some(-low))?.unwrap_or(0.0);
    let high = largest(comm, Some(high))?.unwrap_or(0.0);
    Ok(if high > low { high - low } else { 0.0 })
}

/// This rank's share of `||A||_F^2`: exact where the entries are known, else the mean of
/// `||A z||^2` over vectors of random signs, whose expectation it is.
fn frobenius_squared(operator: &dyn Operator) -> Result<f64, CommError> {
    if let Some(exact) = operator.frobenius_squared() {
        return Ok(exact);
    }
    let (mut z, mut az) = (vec![0.0; operator.rows()], vec![0.0; operator.rows()]);
    let mut sum = 0.0;
    for sample in 0..RADEMACHER_SAMPLES {
        for (row, z) in z.iter_mut().enumerate() {
            let hash = vector_fingerprint(operator.first_row() + row as u64, &[sample as f64]);
            *z = if hash & 1 == 0 { 1.0 } else { -1.0 };
        }
        operator.apply(&z, &mut az)?;
        sum += az.iter().map(|v| v * v).sum::<f64>();
    }
    Ok(sum / RADEMACHER_SAMPLES as f64)
}
