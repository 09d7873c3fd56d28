//! Verification: the bound of the iterate, derived from the residual, and measured before a version
//! counts.
//!
//! Others may use the [`Verifier`], and the problem it measures with.

mod direction;
mod problem;
mod suspicion;

use recoup_core::{
    Bound, BoundRule, Comm, CommError, ElementType, ExactSum, Fingerprint, Operator, Progress, ResidualRecord, Role,
    VariableRecord, agreed, summed, vector_fingerprint,
};
use recoup_model::residual_bound::{Norms, Verdict, VerifiedSearch, bound, is_at_attainable_accuracy};

use self::direction::{EnergyJudge, EnergyNorm, RecurrenceBound};
use self::problem::{ResidualOps, fingerprint};
use self::suspicion::explained;
use crate::encode::CheckpointJob;
use crate::encode::{Judge, largest};
use crate::error::PipelineError;
use crate::staging::{Staged, VectorView};

pub use self::problem::{KnownNorms, Reference};
pub(crate) use self::problem::{SessionProblem, is_vector};
pub(crate) use self::suspicion::SolveResiduals;
pub use self::suspicion::Suspicion;

/// Samples of the Frobenius norm where the entries of A are not known.
const RADEMACHER_SAMPLES: u64 = 8;

/// The growth of `||x||` since it was measured up to which a residual far from rounding stays so.
const ITERATE_GROWTH: f64 = 1024.0;

/// Part of a norm that two orders of its sum may differ by.
const NORM_ROUNDING: f64 = 1e-9;

/// The problem of a run, with what is measured of it and of its iterates.
pub(crate) struct Verifier {
    measures: ResidualOps,
    energy: EnergyNorm,
    /// Norms of the problem, and of the iterate measured last.
    norms: Norms,
    columns: Vec<ColumnState>,
    fingerprint: Fingerprint,
    nonzeros: u64,
    /// Largest `1 / |a_ii|` of all ranks, where the diagonal is known.
    inverse_diagonal: Option<f64>,
    /// Largest `||x||` of what was not suspicious.
    iterate_peak: f64,
    /// The version and the column whose iterate the norms are of.
    measured: Option<(u64, usize)>,
}

/// One right-hand side, and what versions have shown of its iterates.
struct ColumnState {
    rhs_norm: f64,
    search: Option<VerifiedSearch>,
    /// The newest version that `||r||` was taken of, and `||r||`.
    residual: Option<(u64, f64)>,
}

impl Verifier {
    /// Takes the norms of the problem. Collective.
    pub(crate) fn new(reference: Reference, comm: &dyn Comm) -> Result<Self, PipelineError> {
        let operator = reference.operator.as_ref();
        agreed(comm, reference.check().map_err(PipelineError::from))?;
        let frobenius = frobenius_squared(operator).map_err(PipelineError::from);
        let [frobenius] = summed(comm, frobenius.map(|squared| [squared]))?;
        let columns = column_states(&reference, comm)?;
        let rows = largest(comm, operator.largest_row_sum())?;
        let column_sum = largest(comm, operator.largest_column_sum())?;
        let norms = Norms {
            residual: 0.0,
            rhs: columns.first().map_or(0.0, |column| column.rhs_norm),
            iterate: 0.0,
            n: operator.global_rows(),
            frobenius: Some(frobenius.sqrt()),
            // ||A||_2 <= sqrt(||A||_inf ||A||_1)
            spectral_bound: rows.zip(column_sum).map(|(rows, columns)| (rows * columns).sqrt()),
            abs_product: None,
        };
        let fingerprint = fingerprint(&reference, comm)?;
        let mut nonzeros = [reference.operator.nonzeros() as f64];
        comm.sum(&mut nonzeros)?;
        let nonzeros = nonzeros[0] as u64;
        let energy = EnergyNorm::new(operator, frobenius.sqrt(), comm)?;
        let diagonal = operator.diagonal().map(|d| d.iter().fold(0.0, |most: f64, a| most.max(1.0 / a.abs())));
        let inverse_diagonal = largest(comm, diagonal)?;
        Ok(Self {
            measures: ResidualOps::new(reference),
            energy,
            norms,
            columns,
            fingerprint,
            nonzeros,
            inverse_diagonal,
            iterate_peak: 0.0,
            measured: None,
        })
    }

    /// Measures the residual norm of a staged iterate of the only column, which is not there
    /// where `brought` is an error. Collective, with the same answer on all ranks.
    pub(crate) fn examine(
        &mut self,
        version: u64,
        x: VectorView<'_>,
        brought: Result<(), PipelineError>,
        comm: &dyn Comm,
    ) -> Result<f64, PipelineError> {
        self.measured = None;
        self.norms.residual = self.residual_norm(x, 0, brought, comm)?;
        self.norms.iterate = self.norm(x, comm)?;
        self.measured = Some((version, 0));
        Ok(self.norms.residual)
    }

    /// Compares the residual norm that a method reports of a state with the one that was measured.
    pub(crate) fn suspect(&mut self, state: &Progress, residuals: &SolveResiduals) -> Option<Suspicion> {
        let norms = Norms { iterate: self.norms.iterate.max(self.iterate_peak), ..self.norms };
        let explained = explained(state, residuals, &norms, self.inverse_diagonal);
        let suspicion = explained.and_then(|explained| Suspicion::of(state, norms.residual, explained));
        if suspicion.is_none() {
            self.iterate_peak = norms.iterate;
        }
        suspicion
    }

    /// Takes `||b - A x||` of a column, as the program knows it or else as measured, and `||x||`
    /// where it may matter, once for each version. Returns whether the former is the program's
    /// word.
    fn take_norms(
        &mut self,
        job: &CheckpointJob,
        x: VectorView<'_>,
        column: usize,
        comm: &dyn Comm,
    ) -> Result<bool, PipelineError> {
        let version = job.progress.iteration;
        let mut is_known = false;
        if self.measured != Some((version, column)) {
            let known = if self.n_columns() == 1 { job.known.residual_norm } else { job.known_column(column) };
            is_known = known.is_some();
            self.norms.residual = match known {
                Some(known) => known,
                None => self.residual_norm(x, column, Ok(()), comm)?,
            };
            // The verified rule asks only whether ||r|| is rounding, next to ||x||.
            let far = Norms { iterate: ITERATE_GROWTH * self.norms.iterate, ..self.norms };
            let is_measured = job.plan.rule == BoundRule::Verified && self.n_columns() == 1 && far.iterate > 0.0;
            if !is_measured || is_at_attainable_accuracy(&far) {
                self.norms.iterate = self.norm(x, comm)?;
            }
        }
        self.norms.rhs = self.columns[column].rhs_norm;
        self.columns[column].residual = Some((version, self.norms.residual));
        // What is encoded next under this number is another iterate.
        self.measured = None;
        Ok(is_known)
    }

    /// Returns the number of right-hand sides.
    pub(crate) fn n_columns(&self) -> usize {
        self.columns.len()
    }

    /// Returns `||b||` of a column.
    pub(crate) fn rhs_norm(&self, column: usize) -> f64 {
        self.columns[column].rhs_norm
    }

    /// Returns how many times the residual norm of the iterate measured last a norm is; 0 where
    /// that was 0. The norm that a method reports may be a preconditioned one.
    pub(crate) fn jump(&self, norm: f64) -> f64 {
        if self.norms.residual > 0.0 { norm / self.norms.residual } else { 0.0 }
    }

    /// Returns the problem and what it is recognised by.
    pub(crate) fn problem(&self) -> SessionProblem {
        SessionProblem {
            reference: self.measures.reference.clone(),
            fingerprint: self.fingerprint,
            nonzeros: self.nonzeros(),
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Returns the nonzeros of A, of all ranks; `None` where the operator counts none.
    pub(crate) fn nonzeros(&self) -> Option<u64> {
        Some(self.nonzeros).filter(|&nonzeros| nonzeros > 0)
    }

    /// Returns the length of a vector of this problem, on this rank.
    pub(crate) fn rows(&self) -> usize {
        self.measures.reference.operator.rows()
    }

    /// Returns whether a variable is a vector of this problem.
    pub(crate) fn has_shape_of(&self, record: &VariableRecord) -> bool {
        self.measures.reference.has_shape_of(record)
    }

    /// Returns whether all ranks measure their part of a staged vector where it is stored, this one
    /// if it can. Collective.
    pub(crate) fn agree_on_place(&self, mine: bool, comm: &dyn Comm) -> Result<bool, CommError> {
        self.measures.agree(mine, comm)
    }

    /// Returns whether all that the judge of a staged vector measures can be measured where it
    /// is stored.
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

    /// Returns the judge of a staged iterate of a column, under the rule of the plan.
    pub(crate) fn iterate_judge<'a>(
        &'a mut self,
        job: &'a CheckpointJob,
        x: VectorView<'a>,
        column: usize,
        comm: &'a dyn Comm,
    ) -> IterateJudge<'a> {
        IterateJudge { verifier: self, job, x, column, comm, is_reported: false, record: ResidualRecord::default() }
    }

    /// Returns the judge of a staged direction, in the energy norm.
    pub(crate) fn direction_judge<'a>(
        &'a mut self,
        job: &'a CheckpointJob,
        p: VectorView<'a>,
        comm: &'a dyn Comm,
    ) -> EnergyJudge<'a> {
        EnergyJudge::new(&self.energy, &mut self.measures, job, p, comm)
    }

    /// Returns the judge of a staged vector of a method's recurrences.
    pub(crate) fn recurrence_judge<'a>(
        &'a self,
        job: &CheckpointJob,
        v: VectorView<'a>,
        column: usize,
        comm: &'a dyn Comm,
    ) -> RecurrenceBound<'a> {
        RecurrenceBound::new(&self.measures, v, job.plan.delta, self.reported_norm(job, column), comm)
    }

    /// Returns `||r||` of a column, as its method reports it, or as it was taken for the version
    /// under way; else 0, under which nothing is lossy.
    fn reported_norm(&self, job: &CheckpointJob, column: usize) -> f64 {
        if self.n_columns() == 1 {
            return job.progress.residual_norm;
        }
        let taken = self.columns[column].residual.filter(|(version, _)| *version == job.progress.iteration);
        let reported = job.column_norms.get(column).copied();
        reported.or(taken.map(|(_, norm)| norm)).unwrap_or(0.0)
    }

    /// Returns the growth allowed to the residual of a column. One of several that has met the
    /// tolerance is to meet it after a recovery, too.
    fn theta(&self, job: &CheckpointJob) -> f64 {
        let target = job.tolerance * self.norms.rhs;
        let has_met = self.n_columns() > 1 && self.norms.residual <= target;
        if has_met && self.norms.residual > 0.0 {
            job.plan.theta.min(target / self.norms.residual - 1.0)
        } else {
            job.plan.theta
        }
    }

    /// Derives the bound to try first.
    fn first_bound(
        &mut self,
        job: &CheckpointJob,
        x: VectorView<'_>,
        column: usize,
        comm: &dyn Comm,
    ) -> Result<Bound, PipelineError> {
        let theta = self.theta(job);
        match job.plan.rule {
            BoundRule::Fixed(Bound::Range(e)) => Ok(Bound::Absolute(e * range(x.doubles(), comm)?)),
            BoundRule::Verified => {
                let search = self.columns[column].search.get_or_insert_with(|| VerifiedSearch::new(theta));
                search.aim(theta);
                Ok(search.first(&self.norms)?)
            }
            rule => {
                if rule == BoundRule::Corrected {
                    self.norms.abs_product = self.abs_product(x.doubles(), comm)?;
                }
                Ok(bound(rule, &self.norms, theta)?)
            }
        }
    }

    /// Judges a bound by the residual norm under it. The verified rule refuses one under which the
    /// residual grows too much; a fixed one is refused where it leaves an iterate no better than
    /// x = 0, from which no solve would continue.
    fn judge(&mut self, job: &CheckpointJob, column: usize, tried: Bound, measured: f64) -> Verdict {
        match &mut self.columns[column].search {
            Some(search) if job.plan.rule == BoundRule::Verified => search.judge(self.norms.residual, tried, measured),
            _ => {
                let rhs = (1.0 - NORM_ROUNDING) * self.columns[column].rhs_norm;
                let has_become_worthless = self.norms.residual < rhs && (measured >= rhs || measured.is_nan());
                let is_fixed = matches!(job.plan.rule, BoundRule::Fixed(_)) && tried != Bound::Lossless;
                if is_fixed && has_become_worthless { Verdict::Retry(Bound::Lossless) } else { Verdict::Accepted }
            }
        }
    }

    /// Measures `||b - A x||` of a column over all ranks. A rank whose `x` is not there, for the
    /// reason of `mine`, takes part in the product, and no rank gets a norm.
    fn residual_norm(
        &mut self,
        x: VectorView<'_>,
        column: usize,
        mine: Result<(), PipelineError>,
        comm: &dyn Comm,
    ) -> Result<f64, PipelineError> {
        let product = self.measures.squared_residual(x, column);
        root_of_sum(mine.and(product), comm)
    }

    /// Measures `||x||` over all ranks.
    fn norm(&self, x: VectorView<'_>, comm: &dyn Comm) -> Result<f64, PipelineError> {
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
    x: VectorView<'a>,
    column: usize,
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

    fn first_bound(&mut self) -> Result<Bound, PipelineError> {
        self.is_reported = self.verifier.take_norms(self.job, self.x, self.column, self.comm)?;
        let norms = &self.verifier.norms;
        self.record = ResidualRecord {
            norm: self.verifier.reported_norm(self.job, self.column),
            rhs_norm: norms.rhs,
            true_norm: Some(norms.residual).filter(|_| !self.is_reported),
            ..ResidualRecord::default()
        };
        self.verifier.first_bound(self.job, self.x, self.column, self.comm)
    }

    fn verdict(&mut self, tried: Bound, decoded: VectorView<'_>) -> Result<Verdict, PipelineError> {
        let verified = self.verifier.residual_norm(decoded, self.column, Ok(()), self.comm)?;
        self.record.tries += 1;
        self.record.verified_norm = Some(verified);
        let verdict = self.verifier.judge(self.job, self.column, tried, verified);
        // The bound failed, or what the program says.
        if matches!(verdict, Verdict::Retry(_)) && std::mem::take(&mut self.is_reported) {
            let true_norm = self.verifier.residual_norm(self.x, self.column, Ok(()), self.comm)?;
            self.verifier.norms.residual = true_norm;
            self.record.true_norm = Some(true_norm);
        }
        Ok(verdict)
    }

    fn residual(&self) -> ResidualRecord {
        self.record
    }
}

/// Takes the norm of each right-hand side. Collective.
fn column_states(reference: &Reference, comm: &dyn Comm) -> Result<Vec<ColumnState>, CommError> {
    let squared = |column| reference.operator.squared_norm(reference.column(column));
    let mut sums: Vec<ExactSum> = (0..reference.columns).map(squared).collect();
    comm.sum_exact(&mut sums)?;
    Ok(sums.into_iter().map(|sum| ColumnState { rhs_norm: sum.sqrt(), search: None, residual: None }).collect())
}

/// Returns the root of a sum over all ranks.
fn root_of_sum(mine: Result<ExactSum, PipelineError>, comm: &dyn Comm) -> Result<f64, PipelineError> {
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
fn frobenius_squared(operator: &dyn Operator) -> Result<ExactSum, CommError> {
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
    Ok(ExactSum::from(sum / RADEMACHER_SAMPLES as f64))
}
