//! Options for the protection of a run, which `run` and `compare` share, and the plans that follow
//! from them.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use recoup::core::{BoundRule, Clock, CodecId, IncrementMode, Plan, Policy, Resume, Scheme};
use recoup::model::interval::Interval;
use recoup::model::policy::{AutoPolicy, FixedPolicy, PolicyConfig};
use recoup::pipeline::StagingMode;
use recoup::solvers::NamedMethod;

use crate::exit::Exit;
use crate::observe::solver::StepPace;
use crate::options::help::LABORATORY;
use crate::options::tiers::{TierArgs, check_memory_dir};
use crate::options::{
    FailureChoice, MethodKind, by_method, bytes, bytes_per_second, duration, listed, methods_with, name_of, positive,
};

/// Default codec of lossy versions.
pub(crate) const LOSSY_CODEC: CodecId = CodecId::Qb;
/// Default codec of lossless and exact versions.
pub(crate) const LOSSLESS_CODEC: CodecId = CodecId::Zstd;
/// Default mean time to interrupt: a day, as in the library.
pub(crate) const MTTI_SECONDS: f64 = 86_400.0;
/// Default allowed error of lossy directions.
const DELTA: f64 = 0.05;

/// Options for what is saved, how exactly and when, and for failures.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProtectionArgs {
    #[arg(long, value_name = CODEC_NAMES.as_str(), value_parser = codec_id, help_heading = "What is saved",
          help = format!("Codec of the iterate in lossy versions, and of all variables in lossless ones ({}) \
                          [default: {LOSSY_CODEC}, or {} where the storage is so slow that the ratio pays; \
                          {LOSSLESS_CODEC} in lossless versions]",
                         CodecId::exact_names(), listed(names(&recoup::CANDIDATE_CODECS), "or")))]
    pub(crate) codec: Option<CodecId>,

    /// Error bound of lossy versions: verified, statistical, guaranteed, corrected, theorem3,
    /// absolute:V, range:V or pointwise:V.
    #[arg(long, value_name = "RULE", default_value = "verified", help_heading = "What is saved")]
    pub(crate) bound: BoundRule,

    #[arg(long, value_name = "T", value_parser = positive, help_heading = "What is saved",
          help = format!("Allowed growth of the residual, ||b - A x'|| <= (1 + T) ||r|| [default: {}; --scheme auto \
                          may take a quarter or four times that]",
                         by_method(|method| method.profile.theta.to_string())))]
    pub(crate) theta: Option<f64>,

    /// Allowed error of lossy directions in the energy norm, ||p' - p||_A <= D ||p||_A [default:
    /// 0.05; --scheme auto may take a half or twice that].
    #[arg(long, value_name = "D", value_parser = positive, help_heading = "What is saved")]
    pub(crate) delta: Option<f64>,

    /// Time between two checkpoints: auto, 10min, 15it.
    ///
    /// auto is optimal for the MTTI. A plain number is seconds, 15it is every 15 iterations.
    #[arg(long, value_name = "T", default_value = "auto", allow_hyphen_values = true)]
    pub(crate) interval: Interval,

    #[arg(long, value_enum, help_heading = "What is saved",
          help = format!("Contents of a version: the iterate alone; the iterate and a direction, with which {} avoid \
                          the delay of a restart; all that the method's recurrences need, in lossy versions with \
                          errors so small that no iteration is lost; or enough for a bitwise continuation [default: \
                          by scheme; in lossy versions {}]",
                         methods_with(has_direction), by_method(|method| name_of(lossy_state(method)))))]
    pub(crate) state: Option<StateKind>,

    /// Number of versions kept. Versions they are coded against are kept in addition.
    #[arg(long, value_name = "K", default_value = "2", value_parser = clap::value_parser!(u16).range(1..),
          help_heading = "Where versions are kept")]
    pub(crate) keep: u16,

    /// Keep fewer versions if they take more bytes than this: 500M, 2GiB. The newest version, and
    /// those it is coded against, are always kept. The limit covers the versions in the directory;
    /// the one being written needs additional room.
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Where versions are kept")]
    pub(crate) max_bytes: Option<u64>,

    /// Every K-th version stands alone. Those between are coded against the version before, if the
    /// codec can and it pays. 1: every version stands alone.
    #[arg(long, value_name = "K", default_value_t = recoup::KEY_EVERY as u16,
          value_parser = clap::value_parser!(u16).range(1..), help_heading = "What is saved")]
    pub(crate) key_every: u16,

    /// Staging of the vectors of a version: copied at once; frozen without a copy, while the solver
    /// keeps what it overwrites until it is saved; or (auto) frozen if they outlast an iteration.
    #[arg(long, value_name = "auto|copy|touch", default_value = "auto", help_heading = "When it is saved")]
    pub(crate) staging: StagingMode,

    /// Versions of variables saved exactly that hold only what changed since the version before:
    /// off (none), hash (all, by hashes of 64 KiB), auto (where that pays). None with --key-every
    /// 1.
    #[arg(long, value_name = "MODE", default_value_t = IncrementMode::Auto, help_heading = "What is saved")]
    pub(crate) increments: IncrementMode,

    /// Wait until each version is durable [default in virtual time, as in published experiments].
    #[arg(long, conflicts_with = "asynchronous", help_heading = "When it is saved")]
    pub(crate) sync: bool,

    /// Encode and write versions while the solver continues [default in real time].
    #[arg(long = "async", help_heading = "When it is saved")]
    pub(crate) asynchronous: bool,

    /// Do not compare states with the residual their method reports, and do not roll back after a
    /// breakdown.
    #[arg(long, help_heading = "What is saved")]
    pub(crate) no_corruption_check: bool,

    #[command(flatten)]
    pub(crate) tiers: TierArgs,

    /// Failures to rehearse: at:40,70, inject or kill.
    ///
    /// none; at:IT[,IT...] (state lost after these iterations); inject (state lost inside the
    /// process at exponential times); kill (SIGKILL to a child process); kill:node (the same, with
    /// the loss of its memory; with --mpi, all ranks of a node); kill:rank (with --mpi, SIGKILL to
    /// ranks: see --spares).
    #[arg(long, value_name = "HOW")]
    pub(crate) failures: Option<FailureChoice>,

    /// Mean time to interrupt, such as 6h [default: a day, until a failure is seen].
    ///
    /// A plain number is seconds.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) mtti: Option<f64>,

    /// Seed of the failures.
    #[arg(long, value_name = "S", default_value = "0", help_heading = "Failures")]
    pub(crate) seed: u64,

    /// Limit on the bandwidth of writing and reading versions, as on a busy parallel file system:
    /// 100e6, 100M, 100MiB.
    #[arg(long, value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = LABORATORY)]
    pub(crate) pfs_bandwidth: Option<f64>,

    /// Use a virtual clock, which advances by declared costs. Costs that are not declared
    /// (--t-iter, --codec-rate) are measured once. If all are declared, a seed repeats exactly.
    #[arg(long, help_heading = LABORATORY)]
    pub(crate) virtual_time: bool,

    /// Time of one iteration, for example 250ms; a plain number is seconds. In virtual time, what
    /// an iteration is charged [default: measured once]; in real time, what it takes at least, as
    /// on a machine with more to do.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = LABORATORY)]
    pub(crate) t_iter: Option<f64>,

    /// Virtual speed of encoding and decoding in raw bytes per second [default: measured once].
    #[arg(long, value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = LABORATORY)]
    pub(crate) codec_rate: Option<f64>,

    /// Use the machine of the published experiments in virtual time: one vector takes 120 s to
    /// write, the MTTI is 1 h, and the undisturbed solve takes 50 min (jacobi), 120 min (gmres) or
    /// 35 min (cg).
    #[arg(long, value_enum, conflicts_with_all = ["virtual_time", "t_iter", "pfs_bandwidth"], help_heading = LABORATORY)]
    pub(crate) paper_regime: Option<PaperRegime>,

    /// Iterations of the undisturbed solve [default: measured by a solve before the run].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = LABORATORY)]
    pub(crate) baseline_iterations: Option<u64>,
}

/// Contents of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateKind {
    /// The iterate alone.
    X,
    /// The iterate and a direction.
    #[value(name = "x+p")]
    XP,
    /// All that the method's recurrences need.
    Recurrence,
    /// All that a bitwise continuation needs.
    Exact,
}

/// A solve of the published experiments (doi 10.1145/3208040.3208050), by its productive time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaperRegime {
    /// 50 minutes.
    Jacobi,
    /// 120 minutes.
    Gmres,
    /// 35 minutes.
    Cg,
}

impl PaperRegime {
    /// Returns the time of the undisturbed solve.
    pub(crate) fn productive_seconds(self) -> f64 {
        match self {
            Self::Jacobi => 50.0 * 60.0,
            Self::Gmres => 120.0 * 60.0,
            Self::Cg => 35.0 * 60.0,
        }
    }
}

/// Schemes by their names on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemeChoice {
    /// No versions: after a failure the solve starts from the beginning.
    None,
    /// Raw values; for CG x, p and rho.
    Traditional,
    /// Lossless, with all that a bitwise continuation needs.
    Exact,
    /// The values of traditional versions, losslessly encoded.
    Lossless,
    /// The least the method can resume from, under a bound that follows the residual.
    Lossy,
    /// Chosen from measured costs, throughout the run.
    Auto,
}

impl SchemeChoice {
    /// Returns the scheme, unless it is to be decided.
    pub(crate) fn fixed(self) -> Option<Scheme> {
        match self {
            Self::None => Some(Scheme::None),
            Self::Traditional => Some(Scheme::Traditional),
            Self::Exact => Some(Scheme::Exact),
            Self::Lossless => Some(Scheme::Lossless),
            Self::Lossy => Some(Scheme::Lossy),
            Self::Auto => None,
        }
    }
}

impl fmt::Display for SchemeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&name_of(*self))
    }
}

/// Reads the name of a codec.
pub(crate) fn codec_id(text: &str) -> Result<CodecId, String> {
    match text.parse() {
        Ok(CodecId::Increment) => {
            Err(format!("--increments of a run chooses it: expected {}", listed(names(&choices()), "or")))
        }
        parsed => parsed.map_err(|error: recoup::core::CodecError| error.to_string()),
    }
}

impl ProtectionArgs {
    /// Returns whether time is virtual, by either option.
    pub(crate) fn is_virtual(&self) -> bool {
        self.virtual_time || self.paper_regime.is_some()
    }

    /// Returns the least time of a step in real time.
    pub(crate) fn pace(&self, clock: &Arc<dyn Clock>) -> Option<StepPace> {
        let seconds = self.t_iter.filter(|_| !self.is_virtual())?;
        Some(StepPace { clock: clock.clone(), at_least: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX) })
    }

    /// Returns the seconds of one undisturbed iteration in real time, given the seconds measured
    /// without a least time.
    pub(crate) fn paced_seconds(&self, measured: Option<f64>) -> Option<f64> {
        measured.into_iter().chain(self.t_iter).reduce(f64::max)
    }

    /// Returns whether versions are stored in the memory of this process alone, and are lost with
    /// it.
    pub(crate) fn is_in_process_memory(&self) -> bool {
        self.tiers.is_memory_alone() && !self.tiers.has_guards() && !self.kills() && !self.kills_ranks()
    }

    /// Returns whether the solver waits for each version.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.sync || (self.is_virtual() && !self.asynchronous)
    }

    /// Returns whether failures that lose the memory arrive at random, one per MTTI on average.
    pub(crate) fn has_arrivals(&self) -> bool {
        self.kills() || matches!(self.failures, Some(FailureChoice::Inject | FailureChoice::KillRank))
    }

    /// Returns whether failures or silent errors strike at random.
    pub(crate) fn is_random(&self) -> bool {
        self.has_arrivals() || self.failures == Some(FailureChoice::Flips)
    }

    /// Returns whether the solver runs as a child that is killed.
    pub(crate) fn kills(&self) -> bool {
        matches!(self.failures, Some(FailureChoice::Kill | FailureChoice::KillNode))
    }

    /// Returns whether whole nodes are killed, with what is in their memory.
    pub(crate) fn kills_nodes(&self) -> bool {
        self.failures == Some(FailureChoice::KillNode)
    }

    /// Returns whether ranks of an MPI job are killed.
    pub(crate) fn kills_ranks(&self) -> bool {
        self.failures == Some(FailureChoice::KillRank)
    }

    /// Returns whether no failures are asked for.
    pub(crate) fn is_undisturbed(&self) -> bool {
        matches!(self.failures, None | Some(FailureChoice::None))
    }

    /// Returns the mean time to interrupt: as given, or the regime's.
    pub(crate) fn mtti_seconds(&self) -> Option<f64> {
        self.mtti.or(self.paper_regime.map(|_| 3600.0))
    }

    /// Refuses options that contradict each other or parts that are not available, before anything
    /// long is done.
    ///
    /// # Errors
    /// Exit 2 or 5.
    pub(crate) fn check(&self, schemes: &[SchemeChoice], method: MethodKind) -> Result<()> {
        let usage = |text: &str| Err(Exit::Usage.because(text));
        check_memory_dir(&self.tiers.memory_dir, self.tiers.has_memory() && !self.is_in_process_memory())?;
        if self.is_virtual() && self.tiers.has_memory() && !self.is_in_process_memory() {
            return usage("--virtual-time charges one tier: take --tiers pfs or memory");
        }
        if self.is_random() && self.mtti_seconds().is_none() {
            return usage("--failures inject, kill, kill:rank and flips need --mtti DURATION");
        }
        if self.kills() && self.is_virtual() {
            return usage("--failures kill happens in real time; use --failures inject with --virtual-time");
        }
        if self.virtual_time && self.pfs_bandwidth.is_none() {
            return usage("--virtual-time needs --pfs-bandwidth BYTES/S, as I/O follows from bytes and bandwidth");
        }
        if self.codec_rate.is_some() && !self.is_virtual() {
            return usage("--codec-rate needs --virtual-time");
        }
        match self.state {
            Some(StateKind::XP) if !has_direction(&method) => {
                let meant = methods_with(has_direction);
                usage(&format!("--state x+p is for --method {meant}: other methods keep no direction"))
            }
            Some(StateKind::Exact) if schemes.contains(&SchemeChoice::Lossy) => {
                usage("--state exact and --scheme lossy exclude each other: no bit of an exact version may change")
            }
            _ => self.check_codec(schemes),
        }
    }

    fn check_codec(&self, schemes: &[SchemeChoice]) -> Result<()> {
        let Some(id) = self.codec else { return Ok(()) };
        if let BoundRule::Fixed(bound) = self.bound {
            id.check_bound(bound).map_err(|error| Exit::Usage.because(format!("--bound {bound}: --{error}")))?;
        }
        recoup::compress::codec(id).map_err(|error| Exit::NotAvailable.because(error.to_string()))?;
        if schemes.contains(&SchemeChoice::Lossy) && !id.is_lossy() {
            tracing::warn!("codec {id} stores exactly whatever the bound: lossy versions will not be smaller");
        }
        let may_be_lossy = |scheme: &SchemeChoice| matches!(scheme, SchemeChoice::Lossy | SchemeChoice::Auto);
        let exact = schemes.iter().find(|scheme| matches!(scheme, SchemeChoice::Lossless | SchemeChoice::Exact));
        match exact {
            Some(scheme) if id.needs_bound() && !schemes.iter().any(may_be_lossy) => {
                let text = format!(
                    "--codec {id} saves bytes under an error bound only: --scheme {scheme} takes {}",
                    CodecId::exact_names()
                );
                Err(Exit::Usage.because(text))
            }
            _ => Ok(()),
        }
    }

    /// Returns the configuration of the policies.
    pub(crate) fn policy_config(&self, method: MethodKind) -> PolicyConfig {
        PolicyConfig {
            mtti_seconds: self.mtti_seconds().unwrap_or(MTTI_SECONDS),
            mtti_is_assumed: self.mtti_seconds().is_none(),
            lossy_codec: self.codec.unwrap_or(LOSSY_CODEC),
            lossless_codec: self.codec.filter(|&id| !id.needs_bound()).unwrap_or(LOSSLESS_CODEC),
            rule: self.bound,
            theta: self.theta,
            delta: self.delta.unwrap_or(DELTA),
            varies_bounds: self.theta.is_none() && self.delta.is_none(),
            lossy_resume: None,
            resume: self.state.map(|state| match state {
                StateKind::X => Resume::Restarted,
                StateKind::XP => Resume::Deflated,
                StateKind::Recurrence => Resume::Traditional,
                StateKind::Exact => Resume::Exact,
            }),
            asynchronous: !self.is_synchronous(),
            extra_fraction: None,
            profile: method.profile,
        }
    }

    /// Returns the codecs that may replace the default one on slow storage.
    pub(crate) fn candidates(&self) -> Vec<CodecId> {
        if self.codec.is_none() { recoup::CANDIDATE_CODECS.to_vec() } else { Vec::new() }
    }

    /// Returns the codec that sets the pace of a scheme.
    pub(crate) fn codec_of(&self, scheme: SchemeChoice) -> CodecId {
        let given = |or: CodecId| self.codec.unwrap_or(or);
        match scheme {
            SchemeChoice::Lossy | SchemeChoice::Auto => given(LOSSY_CODEC),
            SchemeChoice::Lossless | SchemeChoice::Exact => {
                self.codec.filter(|&id| !id.needs_bound()).unwrap_or(LOSSLESS_CODEC)
            }
            SchemeChoice::None | SchemeChoice::Traditional => given(CodecId::Raw),
        }
    }

    /// Returns the policy of a scheme.
    pub(crate) fn policy(&self, scheme: SchemeChoice, method: MethodKind) -> Box<dyn Policy> {
        let config = self.policy_config(method);
        match scheme.fixed() {
            Some(fixed) => Box::new(FixedPolicy::new(fixed, self.interval, config)),
            None => Box::new(AutoPolicy::new(config).at(self.interval)),
        }
    }

    /// Returns the plan for the converged state: the iterate as it is, from which the same solve
    /// ends at once, and which every HDF5 program reads.
    pub(crate) fn last_plan(&self, method: MethodKind) -> Plan {
        let raw = PolicyConfig { resume: None, ..self.policy_config(method) };
        Plan { resume: Resume::Restarted, ..raw.plan(Scheme::Traditional) }
    }

    /// Returns the plan for a run that is asked to stop: that of the scheme, or lossless if the
    /// scheme is to be decided.
    pub(crate) fn stop_plan(&self, scheme: SchemeChoice, method: MethodKind) -> Option<Plan> {
        let fixed = scheme.fixed().unwrap_or(Scheme::Lossless);
        (fixed != Scheme::None).then(|| self.policy_config(method).plan(fixed))
    }
}

/// The names of the codecs to choose from, as the command line shows them.
pub(crate) static CODEC_NAMES: LazyLock<String> = LazyLock::new(|| names(&choices()).join("|"));

/// Returns the codecs to choose from: all that code a version on its own.
fn choices() -> Vec<CodecId> {
    CodecId::ALL.into_iter().filter(|&id| id != CodecId::Increment).collect()
}

fn names(codecs: &[CodecId]) -> Vec<&'static str> {
    codecs.iter().map(|id| id.name()).collect()
}

/// Returns whether the method keeps a direction that serves a deflated resume.
fn has_direction(method: &NamedMethod) -> bool {
    method.profile.lossy_resume == Resume::Deflated
}

/// Returns the contents of a lossy version of this method.
fn lossy_state(method: &NamedMethod) -> StateKind {
    match method.profile.lossy_resume {
        Resume::Restarted => StateKind::X,
        Resume::Deflated => StateKind::XP,
        Resume::Traditional => StateKind::Recurrence,
        Resume::Exact => StateKind::Exact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help(option: &str) -> String {
        let command = ProtectionArgs::augment_args(clap::Command::new("run"));
        let argument = command.get_arguments().find(|argument| argument.get_id() == option).unwrap();
        argument.get_help().unwrap().to_string()
    }

    #[test]
    fn help_texts_state_the_defaults_of_every_method() {
        let theta = help("theta");
        let state = help("state");
        assert!(theta.contains("0.5 for cg, "), "{theta}");
        assert!(theta.contains("3 for the others"), "{theta}");
        assert!(state.contains("recurrence for ") && state.contains("x for the others"), "{state}");
    }

    #[test]
    fn help_text_of_codec_tells_lossless_codecs_from_those_that_need_a_bound() {
        let codec = help("codec");
        let lossless = "lossless ones (raw, zstd";
        assert!(codec.contains(lossless) && codec.contains("pco, pyramid or sz3 where"), "{codec}");
    }
}
