//! The bound of the iterate: derived from the residual, and measured before a version counts.

use recoup_core::{
    Bound, BoundRule, Comm, CommError, ElementType, Fingerprint, Operator, Plan, ResidualRecord, Role, summed,
    vector_fingerprint,
};
use recoup_model::residual_bound::{Norms, Verdict, VerifiedSearch, bound};

use crate::PipelineError;
use crate::direction::{EnergyJudge, EnergyNorm, RecurrenceBound};
use crate::encoding::{Judge, Stopwatch, largest};
use crate::fingerprint::{SessionProblem, fingerprint};
use crate::job::CheckpointJob;
use crate::measures::{JudgedVector, Measures};
use crate::near::{EncoderSource, is_vector};
use crate::reference::Reference;
use crate::staging::Staged;
use crate::suspicion::{ReportedResidual, Suspicion, explained};

/// Samples of the Frobenius norm where the entries of A are not known.
const RADEMACHER_SAMPLES: u64 = 8;

/// The problem of a run, with what is measured of it and of its iterates.
pub(crate) struct Verifier {
    measures: Measures,
    energy: EnergyNorm,
    norms: Norms,
    fingerprint: Fingerprint,
    nonzeros: u64,
    search: Option<VerifiedSearch>,
    /// Largest `1 / |a_ii|` of all ranks, where the diagonal is known.
    inverse_diagonal: Option<f64>,
    /// Largest `||x||` of what was not suspicious.
    iterate_peak: f64,
    /// The version whose iterate the norms are of.
    measured: Option<u64>,
}

/// An iterate whose residual was measured before it is saved.
pub(crate) struct ExaminedIterate {
    pub(crate) true_norm: f64,
    /// The fault of the iterate, if one was found.
    pub(crate) suspicion: Option<Suspicion>,
}

impl Verifier {
    /// Takes the norms of the problem. Collective.
    pub(crate) fn new(reference: Reference, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let operator = reference.operator.as_ref();
        let rhs = &reference.rhs;
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
        let diagonal = operator.diagonal().map(|d| d.iter().fold(0.0, |most: f64, a| most.max(1.0 / a.abs())));
        let inverse_diagonal = largest(comm, diagonal)?;
        Ok(Self {
            measures: Measures::new(reference),
            energy,
            norms,
            fingerprint,
            nonzeros,
            search: None,
            inverse_diagonal,
            iterate_peak: 0.0,
            measured: None,
        })
    }

    /// Measures a staged iterate, and holds the residual norm its method reports against the true
    /// one. Collective, with the same answer on all ranks.
    pub(crate) fn examine(
        &mut self,
        reported: &ReportedResidual,
        source: &EncoderSource<'_>,
        comm: &dyn Comm,
    ) -> Result<ExaminedIterate, PipelineError> {
        self.measured = None;
        let measured = self.residual_norm(source.vector(), source.check(), comm);
        self.norms.residual = measured?;
        self.norms.iterate = self.norm(source.vector(), comm)?;
        self.measured = Some(reported.iteration);
        let true_norm = self.norms.residual;
        let norms = Norms { iterate: self.norms.iterate.max(self.iterate_peak), ..self.norms };
        let explained = explained(reported, &norms, self.inverse_diagonal);
        let suspicion = explained.and_then(|explained| Suspicion::of(reported, true_norm, explained));
        if suspicion.is_none() {
            self.iterate_peak = norms.iterate;
        }
        Ok(ExaminedIterate { true_norm, suspicion })
    }

    /// Measures `||b - A x||` and `||x||`, once for each version.
    fn measure(&mut self, version: u64, x: JudgedVector<'_>, comm: &dyn Comm) -> Result<(), PipelineError> {
        if self.measured.replace(version) != Some(version) {
            self.norms.residual = self.residual_norm(x, Ok(()), comm)?;
            self.norms.iterate = self.norm(x, comm)?;
        }
        Ok(())
    }

    /// Takes `||b - A x||`, as the program knows it or else as measured, and `||x||`. Returns
    /// whether the former is the program's word.
    fn take_norms(&mut self, job: &CheckpointJob, x: JudgedVector<'_>, comm: &dyn Comm) -> Result<bool, PipelineError> {
        let version = job.progress.iteration;
        match job.known.residual_norm {
            Some(known) if self.measured != Some(version) => {
                self.norms.residual = known;
                self.norms.iterate = self.norm(x, comm)?;
                Ok(true)
            }
            _ => self.measure(version, x, comm).map(|()| false),
        }
    }

    /// Returns the problem and what it is recognised by; `is_fixed` where versions of another one
    /// are refused.
    pub(crate) fn problem(&self, is_fixed: bool) -> SessionProblem {
        SessionProblem {
            reference: self.measures.reference.clone(),
            fingerprint: self.fingerprint,
            nonzeros: self.nonzeros(),
            is_fixed,
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the nonzeros of A, of all ranks; `None` where the operator counts none.
    pub(crate) fn nonzeros(&self) -> Option<u64> {
        Some(self.nonzeros).filter(|&nonzeros| nonzeros > 0)
    }

    /// Returns whether a staged variable is a vector of this problem: real numbers, one per row.
    pub(crate) fn has_shape_of(&self, staged: &Staged) -> bool {
        is_vector(&staged.record, self.measures.operator().rows())
    }

    /// Returns whether all ranks measure their part of a staged vector where it rests, this one if
    /// it can. Collective.
    pub(crate) fn agree_on_place(&self, mine: bool, comm: &dyn Comm) -> Result<bool, CommError> {
        self.measures.agree(mine, comm)
    }

    /// Returns whether all that the judge of a staged vector measures can be measured where it
    /// rests.
    pub(crate) fn reaches(&self, staged: &Staged, rule: BoundRule) -> bool {
        let is_product = match staged.record.role {
            Role::Iterate => !matches!(rule, BoundRule::Corrected | BoundRule::Fixed(Bound::Range(_))),
            Role::Direction => self.energy.is_measured(),
            _ => true,
        };
        // Elsewhere products are those of doubles.
        let is_product = is_product && staged.record.element == ElementType::F64;
        is_product && staged.held().is_some_and(|held| self.measures.reaches(held))
    }

    /// Returns the judge of a staged iterate, under the rule of the plan.
    pub(crate) fn iterate_judge<'a>(
        &'a mut self,
        job: &'a CheckpointJob,
        x: JudgedVector<'a>,
        comm: &'a dyn Comm,
    ) -> IterateJudge<'a> {
        IterateJudge { verifier: self, job, x, comm, is_reported: false, record: ResidualRecord::default() }
    }

    /// Returns the judge of a staged direction, in the energy norm.
    pub(crate) fn direction_judge<'a>(
        &'a mut self,
        job: &'a CheckpointJob,
        p: JudgedVector<'a>,
        comm: &'a dyn Comm,
    ) -> EnergyJudge<'a> {
        EnergyJudge::new(&self.energy, &mut self.measures, job, p, comm)
    }

    /// Returns the judge of a staged vector of a method's recurrences.
    pub(crate) fn recurrence_judge<'a>(
        &'a self,
        job: &CheckpointJob,
        v: JudgedVector<'a>,
        comm: &'a dyn Comm,
    ) -> RecurrenceBound<'a> {
        RecurrenceBound::new(&self.measures, job, v, comm)
    }

    /// Derives the bound to try first.
    fn first_bound(&mut self, plan: &Plan, x: JudgedVector<'_>, comm: &dyn Comm) -> Result<Bound, PipelineError> {
        match plan.rule {
            BoundRule::Fixed(Bound::Range(e)) => Ok(Bound::Absolute(e * range(x.doubles(), comm)?)),
            BoundRule::Verified => {
                let search = self.search.get_or_insert_with(|| VerifiedSearch::new(plan.theta));
                search.aim(plan.theta);
                Ok(search.first(&self.norms)?)
            }
            rule => {
                if rule == BoundRule::Corrected {
                    self.norms.abs_product = self.abs_product(x.doubles(), comm)?;
                }
                Ok(bound(rule, &self.norms, plan.theta)?)
            }
        }
    }

    /// Judges a bound by the residual norm under it; only the verified rule refuses one.
    fn judge(&mut self, rule: BoundRule, true_norm: f64, tried: Bound, measured: f64) -> Verdict {
        match &mut self.search {
            Some(search) if rule == BoundRule::Verified => search.judge(true_norm, tried, measured),
            _ => Verdict::Accepted,
        }
    }

    /// Measures `||b - A x||` over all ranks. A rank whose `x` is not there, for the reason of
    /// `mine`, takes part in the product, and no rank gets a norm.
    fn residual_norm(
        &mut self,
        x: JudgedVector<'_>,
        mine: Result<(), PipelineError>,
        comm: &dyn Comm,
    ) -> Result<f64, PipelineError> {
        let product = self.measures.squared_residual(x);
        root_of_sum(mine.and(product), comm)
    }

    /// Measures `||x||` over all ranks.
    fn norm(&self, x: JudgedVector<'_>, comm: &dyn Comm) -> Result<f64, PipelineError> {
        root_of_sum(self.measures.squared_norm(x), comm)
    }

    /// Measures `|| |A| |x| ||`, where the entries are known.
    fn abs_product(&mut self, x: &[f64], comm: &dyn Comm) -> Result<Option<f64>, PipelineError> {
        let squared = self.measures.squared_abs_product(x);
        squared.map(|squared| root_of_sum(squared, comm)).transpose()
    }
}

/// Judges an iterate: derives its bound from the residual norm, and tries it until it holds.
pub(crate) struct IterateJudge<'a> {
    verifier: &'a mut Verifier,
    job: &'a CheckpointJob,
    x: JudgedVector<'a>,
    comm: &'a dyn Comm,
    /// The residual norm is the program's word.
    is_reported: bool,
    record: ResidualRecord,
}

impl Judge for IterateJudge<'_> {
    fn comm(&self) -> Option<&dyn Comm> {
        Some(self.comm)
    }

    fn needs_decoded(&self) -> bool {
        true
    }

    fn first_bound(&mut self, stopwatch: &mut Stopwatch<'_>) -> Result<Bound, PipelineError> {
        self.is_reported = stopwatch.verify(|| self.verifier.take_norms(self.job, self.x, self.comm))?;
        // What is encoded next under this number is another iterate.
        self.verifier.measured = None;
        let norms = &self.verifier.norms;
        self.record = ResidualRecord {
            norm: self.job.progress.residual_norm,
            rhs_norm: norms.rhs,
            true_norm: Some(norms.residual).filter(|_| !self.is_reported),
            ..ResidualRecord::default()
        };
        self.verifier.first_bound(&self.job.plan, self.x, self.comm)
    }

    fn verdict(
        &mut self,
        tried: Bound,
        decoded: JudgedVector<'_>,
        stopwatch: &mut Stopwatch<'_>,
    ) -> Result<Verdict, PipelineError> {
        let verified = stopwatch.verify(|| self.verifier.residual_norm(decoded, Ok(()), self.comm))?;
        self.record.tries += 1;
        self.record.verified_norm = Some(verified);
        let true_norm = self.verifier.norms.residual;
        let verdict = self.verifier.judge(self.job.plan.rule, true_norm, tried, verified);
        // The bound failed, or what the program says.
        if matches!(verdict, Verdict::Retry(_)) && std::mem::take(&mut self.is_reported) {
            let true_norm = stopwatch.verify(|| self.verifier.residual_norm(self.x, Ok(()), self.comm))?;
            self.verifier.norms.residual = true_norm;
            self.record.true_norm = Some(true_norm);
        }
        Ok(verdict)
    }

    fn residual(&self) -> ResidualRecord {
        self.record
    }
}

/// Returns the root of a sum over all ranks.
fn root_of_sum(mine: Result<f64, PipelineError>, comm: &dyn Comm) -> Result<f64, PipelineError> {
    let [sum] = summed(comm, mine.map(|mine| [mine]))?;
    Ok(sum.sqrt())
}

/// Returns `max - min` of the finite values of all ranks.
fn range(x: &[f64], comm: &dyn Comm) -> Result<f64, PipelineError> {
    let finite = x.iter().copied().filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let low = -largest(comm, Some(-low))?.unwrap_or(0.0);
    let high = largest(comm, Some(high))?.unwrap_or(0.0);
    Ok(if high > low { high - low } else { 0.0 })
}

/// Returns this rank's share of `||A||_F^2`: exact where the entries are known, else the mean of
/// `||A z||^2` over vectors of random signs, whose expectation it is.
fn frobenius_squared(operator: &dyn Operator) -> Result<f64, CommError> {
    if let Some(exact) = operator.frobenius_squared() {
        return Ok(exact);
    }
    let mut z = vec![0.0; operator.rows()];
    let mut az = vec![0.0; operator.rows()];
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
