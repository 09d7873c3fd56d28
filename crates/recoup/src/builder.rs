//! The builder of a session on a directory, with a default for every choice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use recoup_cache::{Dispensable, ParseTiersError, RunPlace, TierList};
use recoup_comm::Solo;
use recoup_core::{
    BoundRule, Clock, CodecId, Comm, CommonError, ErrorKind, IncrementMode, KindedError, MethodProfile, Operator, Plan,
    Policy, ProblemOnDevice, Resume, Scheme, Store, StoreError, each,
};
use recoup_io::{Access, Hdf5Store, SystemClock, Throttle};
use recoup_model::{AutoPolicy, FixedPolicy, Interval, PolicyConfig};
use recoup_pipeline::{Codecs, PipelineError, Reference, Session, SessionConfig, StagingMode, Timing};

use crate::{Drain, PfsEvery, TierCosts, TierOptions};

/// Default of [`Builder::key_every`]: versions from one that stands alone to the next.
pub const KEY_EVERY: usize = 10;

/// Default of [`Builder::tolerance`], on the relative residual.
pub const RTOL: f64 = 1e-6;

/// Codecs that compete with QB for lossy variables if no codec is named: slower ones, often with
/// better ratios, that win on slow storage. One that is not in the build does not compete. Pyramid
/// and SZ3 do not where an iterate is its own reflection: their errors are not, and a recovery of
/// CG takes more iterations.
pub const CANDIDATE_CODECS: [CodecId; 3] = [CodecId::Pco, CodecId::Pyramid, CodecId::Sz3];

/// Returns the scheme if none is named. With an operator to verify bounds, it is lossy at the
/// interval asked for, or decided from measured costs (`None`) if no interval is. Without an
/// operator it is lossless.
#[must_use]
pub fn default_scheme(interval: Interval, has_operator: bool) -> Option<Scheme> {
    match (has_operator, interval) {
        (false, _) => Some(Scheme::Lossless),
        (true, Interval::Auto) => None,
        (true, _) => Some(Scheme::Lossy),
    }
}

/// Starts a session on a directory: `recoup::open(dir)`, a few choices, `build()`.
///
/// Without further choices, the scheme and the interval are decided from measured costs. Lossy
/// versions keep `||b - A x'|| <= 1.5 ||r||` by measurement, the two newest versions are kept, and
/// failures are expected once a day.
#[must_use]
pub fn open(dir: impl AsRef<Path>) -> Builder {
    Builder {
        dir: dir.as_ref().to_owned(),
        name: "solve".to_owned(),
        policy: PolicyConfig { mtti_is_assumed: true, ..PolicyConfig::default() },
        candidates: CANDIDATE_CODECS.to_vec(),
        scheme: None,
        interval: Interval::Auto,
        keep: 2,
        max_bytes: None,
        key_every: KEY_EVERY,
        staging: StagingMode::Auto,
        increments: IncrementMode::Auto,
        pin_worker: false,
        checks_corruption: true,
        tolerance: RTOL,
        bytes_per_second: None,
        reference: None,
        has_systems: false,
        on_device: None,
        same_operator: true,
        threads: None,
        clock: Arc::new(SystemClock::new()),
        timing: Timing::Real,
        abort: Arc::default(),
        tiers: None,
    }
}

/// The choices of a session.
pub struct Builder {
    dir: PathBuf,
    name: String,
    policy: PolicyConfig,
    /// `Some(None)`: decided from measured costs.
    scheme: Option<Option<Scheme>>,
    interval: Interval,
    keep: usize,
    max_bytes: Option<u64>,
    key_every: usize,
    staging: StagingMode,
    increments: IncrementMode,
    pin_worker: bool,
    checks_corruption: bool,
    tolerance: f64,
    bytes_per_second: Option<f64>,
    candidates: Vec<CodecId>,
    reference: Option<Reference>,
    /// Problems are given later.
    has_systems: bool,
    on_device: Option<Arc<dyn ProblemOnDevice>>,
    same_operator: bool,
    threads: Option<usize>,
    clock: Arc<dyn Clock>,
    timing: Timing,
    abort: Arc<AtomicBool>,
    tiers: Option<Result<TierOptions, ParseTiersError>>,
}

/// The error of a session that could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The directory is not usable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The session could not start.
    #[error(transparent)]
    Pipeline(#[from] PipelineError),
    /// The words of [`Builder::tiers`] name no row of tiers.
    #[error("tiers: {0}")]
    Tiers(#[from] ParseTiersError),
}

impl KindedError for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Store(error) => error.kind(),
            Self::Pipeline(error) => error.kind(),
            Self::Tiers(_) => ErrorKind::Refused,
        }
    }
}

impl From<CommonError<StoreError>> for Error {
    fn from(error: CommonError<StoreError>) -> Self {
        error.into_inner().into()
    }
}

impl Builder {
    /// Gives the problem `A x = b`, this rank's rows. Every bound that follows the residual needs
    /// it, and it is needed to refuse the checkpoint of another problem.
    #[must_use]
    pub fn system(mut self, operator: Arc<dyn Operator + Send + Sync>, rhs: Arc<[f64]>) -> Self {
        self.reference = Some(Reference::new(operator, rhs));
        self
    }

    /// Gives the problem `A X = B` with this many right-hand sides: this rank's rows of one column
    /// after the other. Each column has a bound of its own.
    #[must_use]
    pub fn block(mut self, operator: Arc<dyn Operator + Send + Sync>, columns: Arc<[f64]>, n_columns: usize) -> Self {
        self.reference = Some(Reference { columns: n_columns, ..Reference::new(operator, columns) });
        self
    }

    /// Declares that the run solves many systems, one after the other, each given to
    /// `Session::begin_system` once its A and b are made.
    #[must_use]
    pub fn systems(mut self) -> Self {
        self.has_systems = true;
        self
    }

    /// Gives the same problem where the solver's vectors are stored, if that is elsewhere: on a
    /// device `DeviceProblem::of` the solver's system. Bounds are then verified there, and vectors
    /// that QB codes there are not fetched. On all ranks, or on none.
    #[must_use]
    pub fn device_system(mut self, problem: Arc<dyn ProblemOnDevice>) -> Self {
        self.on_device = Some(problem);
        self
    }

    /// Says whether all solves of this run have the same `A x = b` [default: true]. Then a version
    /// of another problem is refused. Otherwise its iterate is a first guess: it is restored if its
    /// residual is not above that of the iterate at hand, and nothing that belongs to the other
    /// operator is.
    #[must_use]
    pub fn same_operator(mut self, same_operator: bool) -> Self {
        self.same_operator = same_operator;
        self
    }

    /// Names the run inside the directory [default: `solve`].
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the mean time to interrupt of the job [default: one day, until a failure is seen].
    #[must_use]
    pub fn mtti(mut self, mtti: Duration) -> Self {
        self.policy.mtti_seconds = mtti.as_secs_f64();
        self.policy.mtti_is_assumed = false;
        self
    }

    /// Uses this scheme always, instead of deciding from measured costs.
    #[must_use]
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.scheme = Some(Some(scheme));
        self
    }

    /// Decides the scheme from measured costs, and the interval too if none is given. It needs A
    /// and b [default where neither a scheme nor an interval is given].
    #[must_use]
    pub fn auto(mut self) -> Self {
        self.scheme = Some(None);
        self
    }

    /// Chooses the codec of all versions; lossless ones keep theirs if this one needs a bound.
    #[must_use]
    pub fn codec(self, codec: CodecId) -> Self {
        let builder = self.lossy_codec(codec);
        if codec.needs_bound() { builder } else { builder.lossless_codec(codec) }
    }

    /// Chooses the codec of lossy versions [default: QB, or one of [`CANDIDATE_CODECS`] if the
    /// storage is so slow that its ratio pays].
    #[must_use]
    pub fn lossy_codec(mut self, codec: CodecId) -> Self {
        self.candidates.clear();
        self.policy.lossy_codec = codec;
        self
    }

    /// Sets the threads that work while the solver waits, at most 256: they copy the variables of a
    /// version, decode in a restore, and encode versions that the solver waits for. The bytes do
    /// not depend on them [default: the cores of this process divided by the ranks].
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Chooses the codec of lossless and exact versions [default: zstd].
    #[must_use]
    pub fn lossless_codec(mut self, codec: CodecId) -> Self {
        self.policy.lossless_codec = codec;
        self
    }

    /// Chooses the rule by which the bound of lossy versions follows the residual [default:
    /// verified].
    #[must_use]
    pub fn bound(mut self, rule: BoundRule) -> Self {
        self.policy.rule = rule;
        self
    }

    /// Sets the allowed growth of the residual, `||b - A x'|| <= (1 + theta) ||r||` [default: the
    /// method's, or a quarter or four times that if the scheme is decided from measured costs].
    #[must_use]
    pub fn theta(mut self, theta: f64) -> Self {
        self.policy.theta = Some(theta);
        self.policy.varies_bounds = false;
        self
    }

    /// Chooses the resume that lossy versions hold enough for [default: the method's: the iterate
    /// and, where they serve, its directions].
    #[must_use]
    pub fn lossy_resume(mut self, resume: Resume) -> Self {
        self.policy.lossy_resume = Some(resume);
        self
    }

    /// Sets the allowed error of lossy directions in the energy norm, `||p' - p||_A <= delta
    /// ||p||_A` [default: 0.05].
    #[must_use]
    pub fn delta(mut self, delta: f64) -> Self {
        self.policy.delta = delta;
        self.policy.varies_bounds = false;
        self
    }

    /// Chooses the resume that every version must hold enough for [default: the scheme's].
    #[must_use]
    pub fn resume(mut self, resume: Resume) -> Self {
        self.policy.resume = Some(resume);
        self
    }

    /// Makes all choices about a checkpoint at once.
    #[must_use]
    pub fn plan(mut self, plan: Plan) -> Self {
        self.candidates.clear();
        self.policy.lossy_codec = plan.codec;
        self.policy.lossless_codec = plan.codec;
        self.policy.rule = plan.rule;
        self.theta(plan.theta).delta(plan.delta).resume(plan.resume).scheme(plan.scheme)
    }

    /// Chooses the interval: from measured costs, in seconds or in iterations. Without a scheme,
    /// [`default_scheme`] applies.
    #[must_use]
    pub fn interval(mut self, interval: Interval) -> Self {
        self.interval = interval;
        self
    }

    /// Saves every `iterations` iterations.
    #[must_use]
    pub fn every(self, iterations: u64) -> Self {
        self.interval(Interval::Iterations(iterations))
    }

    /// Sets the number of versions kept, at least one [default: 2].
    #[must_use]
    pub fn keep(mut self, versions: usize) -> Self {
        self.keep = versions.max(1);
        self
    }

    /// Keeps fewer versions if they take more than `bytes` together. The newest, and those it is
    /// coded against, are always kept. The limit covers the files of versions that count; the
    /// version being written comes on top.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Codes the iterate alone in one lossy version of `versions` [default: 10], and otherwise
    /// against the version before it, if the codec can and it pays. With 1 all versions stand
    /// alone, which saves a copy of the iterate in memory. The versions that a kept version is
    /// coded against are kept with it.
    #[must_use]
    pub fn key_every(mut self, versions: usize) -> Self {
        self.key_every = versions.max(1);
        self
    }

    /// Stages vectors whose owner sees all writes to them by a copy, or freezes them without one
    /// [default: freezes those that outlast an iteration]. The library's solvers see theirs.
    #[must_use]
    pub fn staging(mut self, mode: StagingMode) -> Self {
        self.staging = mode;
        self
    }

    /// Lets versions of variables that are saved exactly hold only what changed since the version
    /// before [default: where that pays]. Changes are found by hashes of 64 KiB, or told by the
    /// owner ([`Variable::zones`](recoup_core::Variable::zones)). [`Builder::key_every`] applies.
    #[must_use]
    pub fn increments(mut self, mode: IncrementMode) -> Self {
        self.increments = mode;
        self
    }

    /// Lets the solver wait until each version counts [default: no].
    #[must_use]
    pub fn synchronous(mut self, synchronous: bool) -> Self {
        self.policy.asynchronous = !synchronous;
        self
    }

    /// Keeps the thread that makes versions on the core the process is bound to, if it is bound to
    /// a single one. Otherwise that thread may run on all cores the system allows the process, if
    /// they are more than the ranks on the machine. For nodes shared with other jobs whose cores
    /// are kept apart by such bindings alone [default: no].
    #[must_use]
    pub fn pin_worker(mut self, stays: bool) -> Self {
        self.pin_worker = stays;
        self
    }

    /// Checks states for corruption before a version counts [default: yes]. It takes one product
    /// with the operator for each version, for methods whose residual tells about the iterate.
    #[must_use]
    pub fn corruption_check(mut self, checks: bool) -> Self {
        self.checks_corruption = checks;
        self
    }

    /// Sets the solver's tolerance on the relative residual, from which the remaining work is
    /// predicted, if the solver itself does not know it ([`recoup_core::Iteration::tolerance`]).
    #[must_use]
    pub fn tolerance(mut self, rtol: f64) -> Self {
        self.tolerance = rtol;
        self
    }

    /// Sets the extra iterations to expect of a lossy recovery until one was seen, as a fraction of
    /// those done [default: the method's].
    #[must_use]
    pub fn extra_fraction(mut self, fraction: f64) -> Self {
        self.policy.extra_fraction = Some(fraction);
        self
    }

    /// Sets the cost of lossy recoveries for the method of a program whose solver does not know it:
    /// theta, the content of versions, the extra iterations to expect. [`Session::step`] asks the
    /// solver.
    #[must_use]
    pub fn method(mut self, profile: MethodProfile) -> Self {
        self.policy.profile = profile;
        self
    }

    /// Reads and writes no faster than this, to stand for a busy parallel file system.
    #[must_use]
    pub fn bandwidth(mut self, bytes_per_second: f64) -> Self {
        self.bytes_per_second = Some(bytes_per_second);
        self
    }

    /// Names the tiers that versions are stored in, fastest first [default: `pfs`, the directory]:
    /// `memory` that outlives the process, `partner:ringD` or `partner:R/R/..` (copies on other
    /// nodes), `rs:K+M` (erasure sets), `pfs`. Without `pfs` no directory is written; its name
    /// still identifies the run. A killed program that opens the same directory and name again
    /// continues from memory.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// let session = recoup::open(&dir).tiers("memory,pfs").build()?;
    /// # drop(session);
    /// // The solve has converged: the directory gets the newest version, and memory is freed.
    /// recoup::open(&dir).tiers("memory,pfs").forget_memory(&recoup::comm::Solo)?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn tiers(mut self, words: &str) -> Self {
        self.tiers = Some(words.parse().map(|list: TierList| list.into()));
        self
    }

    /// Sets the tiers as [`Builder::tiers`] does, with all their options.
    #[must_use]
    pub fn tier_options(mut self, options: TierOptions) -> Self {
        self.tiers = Some(Ok(options));
        self
    }

    /// Replaces the clock, and says whether costs are measured on it or declared.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>, timing: Timing) -> Self {
        self.clock = clock;
        self.timing = timing;
        self
    }

    /// Returns the plan of a checkpoint of `scheme`.
    #[must_use]
    pub fn plan_of(&self, scheme: Scheme) -> Plan {
        self.policy.plan(scheme)
    }

    /// Opens the session of a job of one rank.
    ///
    /// # Errors
    /// [`Error`] when the directory is not ours, not writable or in use.
    pub fn build(self) -> Result<Session, Error> {
        self.build_on(&Solo)
    }

    /// Opens the session on all ranks of `comm`. Collective.
    ///
    /// # Errors
    /// As [`Builder::build`], on every rank.
    pub fn build_on(self, comm: &dyn Comm) -> Result<Session, Error> {
        let store = self.store_on(comm)?;
        Ok(Session::open(self.config(store, comm.size()), comm)?)
    }

    /// Removes the versions that the run has in memory tiers: its solve has converged. If the
    /// directory is among the tiers, it gets the newest version first. If it is not, the program
    /// has the solution, and no version is left. Collective, with no session of the run open.
    ///
    /// # Errors
    /// [`Error`], on every rank, when the newest version cannot be brought to the directory:
    /// memory then stays as it is ([`StoreError::InMemoryAlone`]). Also when it cannot be removed.
    pub fn forget_memory(&self, comm: &dyn Comm) -> Result<(), Error> {
        let Some(tiers) = self.memory_tiers()? else { return Ok(()) };
        // Every version that is drained now is drained at once.
        let tiers = TierOptions { pfs_every: PfsEvery::Given(1), drain: Some(Drain::Off), ..tiers };
        let proof = Dispensable::drained(self.tiers_on(&tiers, comm)?.as_ref(), comm)?;
        Ok(tiers.clear(self.place(), &proof, comm)?)
    }

    fn place(&self) -> RunPlace<'_> {
        RunPlace { dir: Some(&self.dir), name: &self.name }
    }

    /// Returns the tiers, if memory is among them.
    fn memory_tiers(&self) -> Result<Option<TierOptions>, ParseTiersError> {
        Ok(self.tiers.clone().transpose()?.filter(|tiers| tiers.list.memory))
    }

    /// Opens the tiers that were asked for, or the directory alone.
    fn store_on(&self, comm: &dyn Comm) -> Result<Arc<dyn Store>, Error> {
        match self.memory_tiers()? {
            Some(tiers) => self.tiers_on(&tiers, comm),
            None => self.directory_on(comm),
        }
    }

    /// Opens the tiers. Collective.
    fn tiers_on(&self, tiers: &TierOptions, comm: &dyn Comm) -> Result<Arc<dyn Store>, Error> {
        let pfs = if tiers.list.pfs { Some(self.directory_on(comm)?) } else { None };
        let values = |reference: &Reference| reference.operator.global_rows() * reference.columns as u64;
        let rows = self.reference.as_ref().map(values);
        let costs = TierCosts {
            mtti_seconds: self.policy.mtti_seconds,
            bytes: rows.map(|rows| 8.0 * rows as f64),
            pfs_bytes_per_second: self.bytes_per_second,
            keep: self.keep,
            max_bytes: self.max_bytes,
            synchronous: !self.policy.asynchronous,
        };
        Ok(tiers.open(pfs, self.place(), costs, comm)?)
    }

    /// Opens the directory. Rank 0 takes the lock before the others join it; its error is every
    /// rank's.
    fn directory_on(&self, comm: &dyn Comm) -> Result<Arc<dyn Store>, Error> {
        let open = |access| Hdf5Store::open(&self.dir, &self.name, access);
        let first = if comm.rank() == 0 { open(Access::Write).map(Some) } else { Ok(None) };
        let first = each(comm, first)?;
        let store = each(comm, first.map_or_else(|| open(Access::Join), Ok))?;
        let tiers = self.tiers.clone().transpose()?.unwrap_or_else(|| TierList::default().into());
        let store = store.with_ranks_per_file(tiers.ranks_per_file(comm)?);
        Ok(match self.bytes_per_second {
            Some(rate) => {
                let throttle = Throttle::new(rate, self.clock.clone()).bypassed_by(self.abort.clone());
                Arc::new(store.with_throttle(throttle))
            }
            None => Arc::new(store),
        })
    }

    /// Opens the session on a store of the caller's own. Collective.
    ///
    /// # Errors
    /// [`Error::Pipeline`].
    pub fn build_with(self, store: Arc<dyn Store>, comm: &dyn Comm) -> Result<Session, Error> {
        Ok(Session::open(self.config(store, comm.size()), comm)?)
    }

    fn config(self, store: Arc<dyn Store>, ranks: usize) -> SessionConfig {
        let codecs = Codecs::shared(recoup_compress::codec, ranks);
        let synchronous = !self.policy.asynchronous;
        // Versions do not wait for a directory behind memory.
        let is_behind_memory = matches!(&self.tiers, Some(Ok(tiers)) if tiers.list.memory && tiers.list.pfs);
        let has_operator = self.has_systems || self.reference.is_some();
        let scheme = self.scheme.unwrap_or_else(|| default_scheme(self.interval, has_operator));
        let policy: Box<dyn Policy> = match scheme {
            Some(scheme) => Box::new(FixedPolicy::new(scheme, self.interval, self.policy)),
            None => Box::new(AutoPolicy::new(self.policy).at(self.interval)),
        };
        SessionConfig {
            name: self.name,
            store,
            codecs: Codecs { threads: self.threads.unwrap_or(codecs.threads).max(1), ..codecs },
            policy,
            clock: self.clock,
            timing: self.timing,
            keep: self.keep,
            max_bytes: self.max_bytes,
            candidates: self.candidates,
            key_every: self.key_every,
            increments: self.increments,
            synchronous,
            staging: self.staging,
            pin_worker: self.pin_worker,
            checks_corruption: self.checks_corruption,
            tolerance: self.tolerance,
            bytes_per_second: self.bytes_per_second.filter(|_| !is_behind_memory),
            reference: self.reference.map(|reference| Reference { on_device: self.on_device, ..reference }),
            same_operator: self.same_operator,
            abort: self.abort,
        }
    }
}
