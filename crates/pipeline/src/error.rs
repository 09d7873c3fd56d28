//! Errors of the pipeline: version, rank and variable are added here, once.

use std::fmt;
use std::io;

use recoup_core::{
    CodecError, CommError, CommonError, DeviceValuesError, DeviceValuesErrorKind, Difference, ErrorKind, KindedError,
    RankFailure, SolveError, StoreError, VariableRecord,
};
use recoup_model::residual_bound::MissingNorm;

use crate::verify::Suspicion;

/// A version that was passed over, and everything found wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The version.
    pub version: u64,
    /// The kind of the first error found.
    pub kind: ErrorKind,
    /// One line per damaged frame, file or manifest.
    pub damage: Vec<String>,
}

/// The reason why a checkpoint or a restore could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The communicator failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The place where the values of a variable rest failed.
    #[error("variable {variable} of rank {rank}, where it is stored: {source}")]
    Device {
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// The error of the place.
        source: DeviceValuesError,
    },
    /// A restore ended before all variables had their values: the solver cannot continue from them.
    #[error("restored in part: variable {variable} of rank {rank} was not overwritten where it is stored: {source}")]
    RestoredInPart {
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// The error of the place.
        source: DeviceValuesError,
    },
    /// The solver refused.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A variable could not be encoded or decoded.
    #[error("variable {variable} of rank {rank}: {source}")]
    Codec {
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// The error of the codec.
        source: CodecError,
    },
    /// A codec is not there.
    #[error(transparent)]
    NoCodec(#[from] CodecError),
    /// Two owners registered the same name, or a name that is none.
    #[error("variable name {name:?}: {what}")]
    Name {
        /// The name.
        name: String,
        /// The fault of the name.
        what: &'static str,
    },
    /// A variable's extents do not multiply to its length.
    #[error("variable {name}: extents multiply to {expected} elements, {found} found")]
    Shape {
        /// The variable.
        name: String,
        /// Product of the extents.
        expected: usize,
        /// Elements given.
        found: usize,
    },
    /// There is nothing to save.
    #[error("no variable is protected: protect or register what a version is to hold, before the first step")]
    NoVariables,
    /// A lossy vector is not one of the session's system.
    #[error(
        "variable {name} has {found} numbers, and the system's vectors {expected} (two for each complex number): save \
         those of this system, or use a fixed bound"
    )]
    NotOfSystem {
        /// The variable.
        name: String,
        /// Length of a vector of the system, on this rank.
        expected: usize,
        /// Length of the variable.
        found: u64,
    },
    /// The rule needs the operator and the session was given none.
    #[error("bound {rule} needs the operator: give the session the system, or use a fixed bound")]
    NeedsOperator {
        /// The rule.
        rule: String,
    },
    /// The rule needs a norm the operator cannot give.
    #[error(transparent)]
    MissingNorm(#[from] MissingNorm),
    /// The versions belong to another problem.
    #[error("version {version} of run {name} belongs to another problem{}", apart(*.here, *.there, .difference))]
    OtherProblem {
        /// The version.
        version: u64,
        /// The name of the run in its manifest.
        name: String,
        /// Size of the problem at hand.
        here: ProblemSize,
        /// Size of the version's problem.
        there: ProblemSize,
        /// The difference between the two problems.
        difference: Difference,
    },
    /// The version belongs to another system of the run than the one being solved.
    #[error(
        "version {version} of run {name} belongs to system {there}, the run is at system {here}: restore before the first \
         system is begun and continue at system {there}, or give another directory or name"
    )]
    OtherSystem {
        /// The version.
        version: u64,
        /// The name of the run.
        name: String,
        /// Number of the system at hand.
        here: u64,
        /// Number of the version's system.
        there: u64,
    },
    /// Systems are begun in ascending order.
    #[error("system {found} begun after system {before}: expected a larger number")]
    SystemOrder {
        /// The number given.
        found: u64,
        /// Number of the system before.
        before: u64,
    },
    /// The counter of iterations went back, and no restore did.
    #[error(
        "iteration {found} after iteration {before}: a run counts its iterations up; one that solves many systems, as a \
         time loop does, is opened with `systems` and begins each of them, which counts from 0 again"
    )]
    IterationOrder {
        /// The iteration given.
        found: u64,
        /// The iteration before, or the one restored.
        before: u64,
    },
    /// A norm of the state that is none.
    #[error(
        "iteration {iteration}: ||r|| is {residual_norm} and ||b|| is {rhs_norm}, expected finite numbers from 0 on"
    )]
    Norm {
        /// The iteration.
        iteration: u64,
        /// The residual norm given.
        residual_norm: f64,
        /// The norm of the right-hand side given.
        rhs_norm: f64,
    },
    /// The version was written by another number of ranks and holds what belongs to each of them
    /// alone.
    #[error(
        "version {version} was written by {found} ranks, this job has {expected}: variable {variable} is each rank's own \
         and cannot be distributed again"
    )]
    RankCount {
        /// The version.
        version: u64,
        /// The variable, registered as rank-local.
        variable: String,
        /// Ranks now.
        expected: usize,
        /// Ranks then.
        found: usize,
    },
    /// The frame that a frame was coded against is missing, or not as it was written.
    #[error("frame {variable}/{run} of rank {rank}, version {version}: needs version {parent}: {source}")]
    Link {
        /// The version.
        version: u64,
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// Position among the variable's frames.
        run: usize,
        /// The older version, in the same chain.
        parent: u64,
        /// The error found in that version.
        source: Box<PipelineError>,
    },
    /// A version does not hold a registered variable, or holds it in another shape.
    #[error("version {version}, variable {variable} of rank {rank}: {what}")]
    Variable {
        /// The version.
        version: u64,
        /// The variable.
        variable: String,
        /// The rank.
        rank: usize,
        /// The part that does not fit.
        what: String,
    },
    /// A version does not hold a registered variable at all.
    #[error(
        "version {version} has no variable {variable}; it has {}: declare a default for {variable}, its former name, or \
         what was dropped",
        held.join(", ")
    )]
    Lacks {
        /// The version.
        version: u64,
        /// The variable.
        variable: String,
        /// The variables that it holds.
        held: Vec<String>,
    },
    /// The store has versions, but none is whole.
    #[error("no usable version: {}", summary(versions))]
    NoUsable {
        /// Each version and what is wrong with it, newest first.
        versions: Vec<Skipped>,
    },
    /// A rank could not do its part; every rank knows.
    #[error(transparent)]
    Rank(#[from] RankFailure),
    /// The iterate is corrupted; found before anything is written, on all ranks alike.
    #[error("{0}")]
    Suspicious(Suspicion),
    /// The state in memory was lost, so what was being made of it no longer counts.
    #[error("lost with the memory it was staged in")]
    Aborted,
    /// The system refused the worker thread.
    #[error("the checkpoint worker cannot be started: {0}")]
    NoWorker(io::Error),
    /// The store panicked in a call of one rank alone.
    #[error("the store panicked")]
    StorePanicked,
    /// The worker thread is gone: it panicked.
    #[error("the checkpoint worker has ended")]
    WorkerGone,
}

impl KindedError for PipelineError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Comm(error) => error.kind(),
            Self::Solve(error) => error.kind(),
            Self::Codec { source, .. } => source.kind(),
            Self::Device { source, .. } | Self::RestoredInPart { source, .. } => source.kind.into(),
            Self::Rank(failure) => failure.kind,
            Self::Link { source, .. } => as_damage(source.kind()),
            Self::NoUsable { versions } => versions.first().map_or(ErrorKind::Damaged, |newest| newest.kind),
            Self::Suspicious(_) => ErrorKind::Damaged,
            Self::Aborted => ErrorKind::GivenUp,
            Self::NoWorker(source) => ErrorKind::of_io(source),
            Self::StorePanicked | Self::WorkerGone => ErrorKind::Panicked,
            Self::NoCodec(_) | Self::NeedsOperator { .. } | Self::MissingNorm(_) => ErrorKind::Refused,
            Self::Name { .. } | Self::Shape { .. } | Self::Norm { .. } => ErrorKind::Refused,
            Self::OtherProblem { .. } | Self::OtherSystem { .. } | Self::RankCount { .. } => ErrorKind::Refused,
            Self::SystemOrder { .. } | Self::IterationOrder { .. } => ErrorKind::Refused,
            Self::Variable { .. } | Self::Lacks { .. } => ErrorKind::Refused,
            Self::NoVariables | Self::NotOfSystem { .. } => ErrorKind::Refused,
        }
    }
}

impl PipelineError {
    /// Returns the loss of the place where the vectors rested, where this is one.
    #[must_use]
    pub fn lost_place(&self) -> Option<&DeviceValuesError> {
        match self {
            Self::Device { source: error, .. }
            | Self::RestoredInPart { source: error, .. }
            | Self::Solve(SolveError::Device(error)) => {
                Some(error).filter(|error| error.kind == DeviceValuesErrorKind::Lost)
            }
            _ => None,
        }
    }
}

/// Size of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProblemSize {
    /// Unknowns.
    pub rows: u64,
    /// Nonzeros of A, where they are known.
    pub nonzeros: Option<u64>,
}

impl fmt::Display for ProblemSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} unknowns", self.rows)?;
        self.nonzeros.map_or(Ok(()), |nonzeros| write!(f, " and {nonzeros} nonzeros"))
    }
}

/// Tells two problems apart, in words: by their sizes first, by their hashes where the sizes agree.
fn apart(here: ProblemSize, there: ProblemSize, difference: &Difference) -> String {
    let has_other_pattern = here.nonzeros.zip(there.nonzeros).is_some_and(|(here, there)| here != there);
    match difference {
        Difference::Size { .. } => format!(": another size, {there} there, {here} here"),
        _ if has_other_pattern => format!(": {there} there, {here} here; {difference}"),
        _ => format!(" of the same size ({here}): {difference}"),
    }
}

impl<E> From<CommonError<E>> for PipelineError
where
    Self: From<E>,
{
    fn from(error: CommonError<E>) -> Self {
        error.into_inner().into()
    }
}

/// Returns the kind of an error that was met while a version was read: what is not there, or cannot
/// be understood, is damaged.
pub(crate) fn as_damage(kind: ErrorKind) -> ErrorKind {
    match kind {
        ErrorKind::Io | ErrorKind::Refused => ErrorKind::Damaged,
        kind => kind,
    }
}

fn summary(versions: &[Skipped]) -> String {
    let line = |s: &Skipped| format!("{}: {}", s.version, s.damage.first().map_or("damaged", String::as_str));
    versions.iter().map(line).collect::<Vec<_>>().join("; ")
}

/// Names the variable whose place failed.
pub(crate) fn device_values_error(record: &VariableRecord) -> impl Fn(DeviceValuesError) -> PipelineError + use<> {
    let variable = record.name.clone();
    let rank = record.rank;
    move |source| PipelineError::Device { variable: variable.clone(), rank, source }
}
