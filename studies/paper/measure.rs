//! Real solves in virtual time: what a scheme's checkpoints cost, how many iterations a recovery
//! adds, and whole runs under random failures.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use recoup::VirtualClock;
use recoup::comm::Solo;
use recoup::core::{Bound, BoundRule, CodecId, FailureSource, Iteration, Phase, Resume, Scheme, SolveError};
use recoup::io::MemoryStore;
use recoup::model::failures::{AtIterations, Exponential};
use recoup::model::overhead::CheckpointTiming as Costs;
use recoup::pipeline::{Ended, RunLimits, RunReport, Runner, Timing};

use crate::Failed;
use crate::problem::{Kind, Problem};
use crate::published;
use crate::tune::tuned;

/// A run that only loses ends after this many times the undisturbed iterations.
const EXECUTED_FACTOR: u64 = 200;
/// Instants of a failure that N' is averaged over.
pub(crate) const INSTANTS: u64 = 24;
/// Codecs that keep a pointwise bound; the one with the best ratio stands for the paper's SZ.
const POINTWISE_CODECS: [CodecId; 4] = [CodecId::Sz3, CodecId::Pco, CodecId::Qb, CodecId::Zfp];

/// The scheme of a run and its bounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Protection {
    pub(crate) scheme: Scheme,
    pub(crate) rule: BoundRule,
    pub(crate) theta: f64,
    pub(crate) delta: f64,
    pub(crate) resume: Resume,
    /// `None` leaves the choice to the session.
    pub(crate) codec: Option<CodecId>,
    pub(crate) key_every: usize,
}

/// The four columns of every comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Traditional,
    Lossless,
    /// The paper's lossy scheme: x alone, pointwise 1e-4 (GMRES: Theorem 3), a restart.
    Paper,
    /// Ours: the verified rule, chains of versions, and for CG a direction for a deflated restart.
    /// Untuned.
    Ours,
}

impl Choice {
    pub(crate) const ALL: [Self; 4] = [Self::Traditional, Self::Lossless, Self::Paper, Self::Ours];

    /// Returns the protection of a method.
    pub(crate) fn of(self, kind: Kind) -> Protection {
        let plain = Protection {
            scheme: Scheme::Traditional,
            rule: BoundRule::Verified,
            theta: kind.theta(),
            delta: DELTA,
            resume: Resume::Traditional,
            codec: None,
            key_every: 1,
        };
        match self {
            Self::Traditional => plain,
            Self::Lossless => Protection { scheme: Scheme::Lossless, ..plain },
            Self::Paper => {
                let fixed = BoundRule::Fixed(Bound::Pointwise(published::ERROR_BOUND));
                let rule = if kind == Kind::Gmres { BoundRule::Theorem3 } else { fixed };
                Protection { scheme: Scheme::Lossy, rule, resume: Resume::Restarted, ..plain }
            }
            Self::Ours => {
                let resume = if kind == Kind::Cg { Resume::Deflated } else { Resume::Restarted };
                Protection { scheme: Scheme::Lossy, resume, key_every: recoup::KEY_EVERY, ..plain }
            }
        }
    }
}

/// Allowed error of CG's saved directions in the energy norm: the library's default.
const DELTA: f64 = 0.05;

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Traditional => "traditional",
            Self::Lossless => "lossless",
            Self::Paper => "paper's lossy",
            Self::Ours => "ours",
        })
    }
}

/// Runs the problem once, under these failures, with checkpoints at Young's interval of their
/// measured cost.
///
/// # Errors
/// When a part of the run fails, or it does not converge.
pub(crate) fn run(
    problem: &Problem,
    protection: &Protection,
    failures: Box<dyn FailureSource>,
) -> Result<RunReport, Failed> {
    let clock = Arc::new(VirtualClock::new());
    let timing = Timing::Virtual(problem.machine());
    let mut session = recoup::open("nowhere")
        .system(problem.operator.clone(), problem.rhs.clone())
        .mtti(Duration::from_secs_f64(published::MTTI_SECONDS))
        .scheme(protection.scheme)
        .bound(protection.rule)
        .theta(protection.theta)
        .delta(protection.delta)
        .lossy_resume(protection.resume)
        .key_every(protection.key_every)
        .synchronous(true)
        .tolerance(problem.rtol())
        .clock(clock.clone(), timing);
    if let Some(codec) = protection.codec {
        session = session.lossy_codec(codec);
    }
    let limits = RunLimits { iterations: u64::MAX, executed: problem.iterations * EXECUTED_FACTOR };
    let session = session.build_with(Arc::new(MemoryStore::new()), &Solo)?;
    let mut runner = Runner { timing, ..Runner::new(Some(session), failures, clock, limits) };
    let mut make = || -> Result<Box<dyn Iteration + '_>, SolveError> { Ok(problem.make()?) };
    let report = runner.run(&mut make)?;
    if report.ended != Ended::Converged {
        return Err(format!("{problem}: {:?} under {protection:?}", report.ended).into());
    }
    Ok(report)
}

/// The costs of checkpoints and recoveries of one choice, measured over whole solves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Profile {
    pub(crate) protection: Protection,
    /// Time of one checkpoint at the published scale.
    pub(crate) checkpoint_seconds: f64,
    /// Time of one recovery, the versions of its chain included.
    pub(crate) recovery_seconds: f64,
    /// Encoded bytes of one checkpoint over those of one raw vector.
    pub(crate) vectors: f64,
    /// Raw bytes over encoded bytes.
    pub(crate) ratio: f64,
    /// N': extra iterations of a recovery, mean.
    pub(crate) extra_iterations: f64,
    /// The worst of them.
    pub(crate) extra_worst: f64,
    /// Largest `||b - A x'|| / ||b - A x||` where both were computed.
    pub(crate) jump: Option<f64>,
}

impl Profile {
    /// The costs Eq. 7 asks for, at an MTTI and as many times the published ranks.
    pub(crate) fn costs(&self, problem: &Problem, mtti_seconds: f64, scale: f64) -> Costs {
        Costs {
            mtti_seconds,
            blocking_seconds: self.checkpoint_seconds * scale,
            drain_seconds: 0.0,
            recovery_seconds: self.recovery_seconds * scale,
            extra_seconds: self.extra_iterations.max(0.0) * problem.iteration_seconds(),
            safe_point_seconds: 0.0,
        }
    }

    /// With one failure at each of [`INSTANTS`].
    pub(crate) fn of(problem: &Problem, protection: Protection) -> Result<Self, Failed> {
        Self::at(problem, protection, INSTANTS)
    }

    /// With one failure in the middle of each of `parts` parts of the solve.
    pub(crate) fn at(problem: &Problem, protection: Protection, parts: u64) -> Result<Self, Failed> {
        let n = problem.iterations;
        let instants: Vec<u64> = (0..parts).map(|i| (2 * i + 1) * n / (2 * parts)).map(|t| t.max(1)).collect();
        let at = |problem: &Problem, &t: &u64| run(problem, &protection, Box::new(AtIterations::new(&[t])));
        let runs = in_parallel(problem, &instants, at)?;
        let saved = || runs.iter().flat_map(|run| &run.saved);
        let sum = |value: fn(&RunReport) -> f64| runs.iter().map(value).sum::<f64>();
        let (raw, payload) =
            saved().fold((0.0, 0.0), |(raw, payload), s| (raw + s.raw_bytes as f64, payload + s.payload_bytes as f64));
        let versions = saved().count().max(1) as f64;
        let recoveries = sum(|run| run.recoveries as f64).max(1.0);
        let recovered = runs.iter().filter(|run| run.recoveries > 0);
        let extra: Vec<f64> = recovered.map(|run| extra_iterations(run, n)).collect();
        let jumps = saved().filter_map(|s| Some(s.residual.verified_norm? / s.residual.true_norm?));
        Ok(Self {
            protection,
            checkpoint_seconds: sum(|run| run.seconds_blocking) / versions,
            recovery_seconds: sum(|run| run.seconds_recovery) / recoveries,
            vectors: payload / versions / (8.0 * problem.n() as f64),
            ratio: raw / payload.max(1.0),
            extra_iterations: extra.iter().sum::<f64>() / extra.len().max(1) as f64,
            extra_worst: extra.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            jump: jumps.reduce(f64::max),
        })
    }
}

/// Iterations beyond the undisturbed ones and the lost ones.
fn extra_iterations(run: &RunReport, undisturbed: u64) -> f64 {
    run.executed as f64 - run.lost as f64 - undisturbed as f64
}

/// Measures a choice; ours tuned for the problem, the paper's with every codec there is, of
/// which the one with the best ratio is kept.
///
/// # Errors
/// As [`run`].
pub(crate) fn profile(problem: &Problem, choice: Choice) -> Result<Profile, Failed> {
    let protection = choice.of(problem.kind);
    match choice {
        Choice::Traditional | Choice::Lossless => return Profile::of(problem, protection),
        Choice::Ours => return Profile::of(problem, tuned(problem)?),
        Choice::Paper => {}
    }
    let built = POINTWISE_CODECS.into_iter().filter(|&id| recoup::compress::codec(id).is_ok());
    let profiles = built.map(|id| Profile::of(problem, Protection { codec: Some(id), ..protection }));
    let profiles: Vec<Profile> = profiles.collect::<Result<_, _>>()?;
    profiles.into_iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)).ok_or_else(|| "no codec".into())
}

/// One run under random failures.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    /// Overhead over productive time, as it ran.
    pub(crate) as_run: f64,
    /// The same where iterations that a restart saved are not credited.
    pub(crate) overhead: f64,
    /// Iterations the solve needed, those lost to rollbacks not counted.
    pub(crate) needed: f64,
    /// Failures that struck.
    pub(crate) failures: f64,
    /// Failures of this seed within the productive time, of which there are as many as the MTTI
    /// says on average.
    pub(crate) due: f64,
    /// Recoveries, and extra iterations of all of them.
    pub(crate) recoveries: f64,
}

/// Runs the problem under exponential failures, seed after seed: all choices meet the same
/// failures.
///
/// # Errors
/// As [`run`].
pub(crate) fn trials(problem: &Problem, protection: &Protection, seeds: &[u64]) -> Result<Vec<Trial>, Failed> {
    let mtti = Duration::from_secs_f64(published::MTTI_SECONDS);
    let productive = Duration::from_secs_f64(problem.kind.published().productive_seconds);
    in_parallel(problem, seeds, |problem, &seed| {
        let mut arrivals = Exponential::new(mtti, seed);
        let due = std::iter::from_fn(|| arrivals.due(productive, 0, Phase::Computing)).count() as f64;
        let report = run(problem, protection, Box::new(Exponential::new(mtti, seed)))?;
        let as_run = report.seconds_total / problem.kind.published().productive_seconds - 1.0;
        let needed = (report.executed - report.lost) as f64;
        Ok(Trial {
            as_run,
            overhead: as_run + (1.0 - needed / problem.iterations as f64).max(0.0),
            needed,
            failures: report.failures as f64,
            due,
            recoveries: report.recoveries as f64,
        })
    })
}

/// Works on all items on two threads, each with a problem of its own; results in the order of the
/// items.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    problem: &Problem,
    items: &[T],
    work: impl Fn(&Problem, &T) -> Result<R, Failed> + Sync,
) -> Result<Vec<R>, Failed> {
    let half = |start: usize| -> Result<Vec<R>, Failed> {
        let problem = problem.twin();
        items.iter().skip(start).step_by(2).map(|item| work(&problem, item)).collect()
    };
    let (even, odd) = std::thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        (half(0), other.join())
    });
    let mut odd = odd.map_err(|_| "a thread panicked")??.into_iter();
    Ok(even?.into_iter().flat_map(|first| std::iter::once(first).chain(odd.next())).collect())
}
