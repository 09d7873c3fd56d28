//! How a run is protected: the options `run` and `compare` share, and the plans that follow from
//! them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};
use recoup::core::{BoundRule, Clock, Codec, CodecId, Plan, Policy, Resume, Scheme};
use recoup::model::interval::Interval;
use recoup::model::policy::{AutoPolicy, FixedPolicy, PolicyConfig};
use recoup::solvers::NamedMethod;

use crate::exit::Exit;
use crate::observe::solver::Pace;
use crate::options::tiers::{TierArgs, check_memory_dir};
use crate::options::{FailureChoice, MethodKind, bytes, bytes_per_second, duration, methods_with, positive};

/// Codec of lossy versions when none is named.
pub(crate) const LOSSY_CODEC: CodecId = CodecId::Qb;
/// Codec of lossless and exact versions when none is named.
pub(crate) const LOSSLESS_CODEC: CodecId = CodecId::Zstd;
/// Mean time to interrupt when none is given: a day, as the library has it.
pub(crate) const MTTI_SECONDS: f64 = 86_400.0;
/// Allowed error of lossy directions, unless given.
const DELTA: f64 = 0.05;

/// What is saved, how exactly, when, and what goes wrong meanwhile.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProtectionArgs {
    /// Codec of the iterate in lossy versions, of everything in lossless ones (zstd, pco and raw)
    /// [default: qb, or pco or sz3 where the storage is so slow that their ratio pays; zstd].
    #[arg(long, value_name = "qb|zstd|zfp|sz3|pco|raw", value_parser = codec_id, help_heading = "Checkpoints")]
    pub(crate) codec: Option<CodecId>,

    /// Bound of lossy versions: verified, statistical, guaranteed, corrected, theorem3, absolute:V,
    /// range:V or pointwise:V.
    #[arg(long, value_name = "RULE", default_value = "verified", help_heading = "Checkpoints")]
    pub(crate) bound: BoundRule,

    /// Allowed growth of the residual, ||b - A x'|| <= (1 + T) ||r|| [default: 0.5 for cg, pipecg
    /// and bicgstab, else 3; --scheme auto may take a quarter or four times that].
    #[arg(long, value_name = "T", value_parser = positive, help_heading = "Checkpoints")]
    pub(crate) theta: Option<f64>,

    /// Allowed error of lossy directions in the energy norm, ||p' - p||_A <= D ||p||_A [default:
    /// 0.05; --scheme auto may take a half or twice that].
    #[arg(long, value_name = "D", value_parser = positive, help_heading = "Checkpoints")]
    pub(crate) delta: Option<f64>,

    /// Computing between two checkpoints: auto (optimal for the MTTI), a duration as in 90s or
    /// 10min (a plain number is seconds), or iterations as in 15it.
    #[arg(
        long,
        value_name = "auto|DURATION|Kit",
        default_value = "auto",
        allow_hyphen_values = true,
        help_heading = "Checkpoints"
    )]
    pub(crate) interval: Interval,

    /// What a version holds: the iterate alone; with a direction, from which cg goes on without the
    /// delay of a restart; all that the method's recurrences need, lossy ones with errors so small
    /// that no iteration is lost; or enough for a bitwise continuation [default: by scheme; for
    /// lossy versions x+p of cg and pipecg, recurrence of bicgstab, x of the others].
    #[arg(long, value_enum, help_heading = "Checkpoints")]
    pub(crate) state: Option<StateKind>,

    /// Versions kept, and with each of them those it is coded against.
    #[arg(long, value_name = "K", default_value = "2", value_parser = clap::value_parser!(u16).range(1..),
          help_heading = "Checkpoints")]
    pub(crate) keep: u16,

    /// Fewer versions are kept where they take more bytes than this: 500M, 2GiB. The newest, and
    /// those it is coded against, are always kept. Counts the versions in the directory: the one
    /// being written needs room on top.
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Checkpoints")]
    pub(crate) max_bytes: Option<u64>,

    /// One version of K holds the iterate by itself; those between are coded against the version
    /// before, where the codec can and it pays. 1: every version stands alone.
    #[arg(long, value_name = "K", default_value_t = recoup::KEY_EVERY as u16,
          value_parser = clap::value_parser!(u16).range(1..), help_heading = "Checkpoints")]
    pub(crate) key_every: u16,

    /// The solver waits until a version is durable [default in virtual time, as in published
    /// experiments].
    #[arg(long, conflicts_with = "asynchronous", help_heading = "Checkpoints")]
    pub(crate) sync: bool,

    /// Versions are encoded and written behind the solver [default in real time].
    #[arg(long = "async", help_heading = "Checkpoints")]
    pub(crate) asynchronous: bool,

    /// Do not hold states against the residual their method reports, nor go back after a breakdown.
    #[arg(long, help_heading = "Checkpoints")]
    pub(crate) no_corruption_check: bool,

    #[command(flatten)]
    pub(crate) tiers: TierArgs,

    /// Failures: none, inject (state dropped at exponential times), kill (a child process gets
    /// SIGKILL), kill:node (the same, and what was in memory is gone; with --mpi, all ranks of a
    /// node), kill:rank (with --mpi, ranks get SIGKILL: see --spares), at:IT[,IT...]; or silent
    /// ones: flip:IT or flip:IT:VARIABLE, several by commas (a bit of x, or of the vector named),
    /// flips (any bit, at exponential times).
    #[arg(long, value_name = "KIND", help_heading = "Failures")]
    pub(crate) failures: Option<FailureChoice>,

    /// Mean time to interrupt, as in 20s, 6h or 2d; a plain number is seconds [default: a day].
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Failures")]
    pub(crate) mtti: Option<f64>,

    /// Seed of the failures.
    #[arg(long, value_name = "S", default_value = "0", help_heading = "Failures")]
    pub(crate) seed: u64,

    /// Write and read versions no faster than this, like a busy parallel file system: 100e6, 100M,
    /// 100MiB.
    #[arg(long, value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Machine")]
    pub(crate) pfs_bandwidth: Option<f64>,

    /// Time passes by declared costs. What is not declared (--t-iter, --codec-rate) is measured
    /// once; with all of it a seed repeats exactly.
    #[arg(long, help_heading = "Machine")]
    pub(crate) virtual_time: bool,

    /// Time of one iteration, as in 250ms; a plain number is seconds: in virtual time what it is
    /// charged [default: measured once], in real time what it takes at least, as on a machine with
    /// more to do.
    #[arg(long, value_name = "DURATION", value_parser = duration, help_heading = "Machine")]
    pub(crate) t_iter: Option<f64>,

    /// Virtual speed of encoding and decoding, raw bytes per second [default: measured once].
    #[arg(long, value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Machine")]
    pub(crate) codec_rate: Option<f64>,

    /// The published experiments' machine in virtual time: one vector takes 120 s to write, MTTI 1
    /// h, and the undisturbed solve takes 50 min (jacobi), 120 min (gmres) or 35 min (cg).
    #[arg(long, value_enum, conflicts_with_all = ["virtual_time", "t_iter", "pfs_bandwidth"], help_heading = "Machine")]
    pub(crate) paper_regime: Option<PaperRegime>,

    /// Iterations of the undisturbed solve [default: it is run first].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Failures")]
    pub(crate) baseline_iterations: Option<u64>,
}

/// What a version holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateKind {
    /// The iterate alone.
    X,
    /// The iterate and a direction.
    #[value(name = "x+p")]
    XP,
    /// All that the method's recurrences need.
    Recurrence,
    /// Everything a bitwise continuation needs.
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
    /// Time of the undisturbed solve.
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
    /// Nothing is saved: a failure starts the solve anew.
    None,
    /// Raw values; for CG x, p and rho.
    Traditional,
    /// Lossless, and enough for a bitwise continuation.
    Exact,
    /// As traditional, encoded losslessly.
    Lossless,
    /// The least the method can go on from, under a bound that follows the residual.
    Lossy,
    /// Decided from measured costs, again and again.
    Auto,
}

impl SchemeChoice {
    /// The scheme, unless it is to be decided.
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
        f.write_str(&crate::options::name_of(*self))
    }
}

fn codec_id(text: &str) -> Result<CodecId, String> {
    text.parse().map_err(|error: recoup::core::CodecError| error.to_string())
}

impl ProtectionArgs {
    /// Whether time is virtual, by either option.
    pub(crate) fn is_virtual(&self) -> bool {
        self.virtual_time || self.paper_regime.is_some()
    }

    /// What holds the steps of real time back.
    pub(crate) fn pace(&self, clock: &Arc<dyn Clock>) -> Option<Pace> {
        let seconds = self.t_iter.filter(|_| !self.is_virtual())?;
        Some(Pace { clock: clock.clone(), at_least: Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX) })
    }

    /// Seconds of one undisturbed iteration in real time, of which so many were measured without
    /// being held back.
    pub(crate) fn paced_seconds(&self, measured: Option<f64>) -> Option<f64> {
        measured.into_iter().chain(self.t_iter).reduce(f64::max)
    }

    /// Whether versions rest in the memory of this process alone, and die with it.
    pub(crate) fn is_in_process_memory(&self) -> bool {
        self.tiers.is_memory_alone() && !self.tiers.has_guards() && !self.kills() && !self.kills_ranks()
    }

    /// Whether the solver waits for each version.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.sync || (self.is_virtual() && !self.asynchronous)
    }

    /// Whether failures that lose the memory arrive at random, one per MTTI on average.
    pub(crate) fn has_arrivals(&self) -> bool {
        self.kills() || matches!(self.failures, Some(FailureChoice::Inject | FailureChoice::KillRank))
    }

    /// Whether the solver runs as a child that is killed.
    pub(crate) fn kills(&self) -> bool {
        matches!(self.failures, Some(FailureChoice::Kill | FailureChoice::KillNode))
    }

    /// Whether whole nodes are killed, with what is in their memory.
    pub(crate) fn kills_nodes(&self) -> bool {
        self.failures == Some(FailureChoice::KillNode)
    }

    /// Whether ranks of an MPI job are killed.
    pub(crate) fn kills_ranks(&self) -> bool {
        self.failures == Some(FailureChoice::KillRank)
    }

    /// Whether nothing is to fail.
    pub(crate) fn is_undisturbed(&self) -> bool {
        matches!(self.failures, None | Some(FailureChoice::None))
    }

    /// Mean time to interrupt: given, or the regime's.
    pub(crate) fn mtti_seconds(&self) -> Option<f64> {
        self.mtti.or(self.paper_regime.map(|_| 3600.0))
    }

    /// Refuses what contradicts itself or is not here, before anything long is done.
    ///
    /// # Errors
    /// Exit 2 or 5.
    pub(crate) fn check(&self, schemes: &[SchemeChoice], method: MethodKind) -> Result<()> {
        let usage = |text: &str| Err(Exit::Usage.because(text));
        check_memory_dir(&self.tiers.memory_dir, self.tiers.has_memory() && !self.is_in_process_memory())?;
        if self.is_virtual() && self.tiers.has_memory() && !self.is_in_process_memory() {
            return usage("--virtual-time charges one tier: take --tiers pfs or memory");
        }
        let is_random = self.has_arrivals() || self.failures == Some(FailureChoice::Flips);
        if is_random && self.mtti_seconds().is_none() {
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
        let codec = recoup::compress::codec(id).map_err(|error| Exit::NotAvailable.because(error.to_string()))?;
        if schemes.contains(&SchemeChoice::Lossy) && !Codec::is_lossy(codec.as_ref()) {
            tracing::warn!("codec {id} stores exactly whatever the bound: lossy versions will not be smaller");
        }
        let may_be_lossy = |scheme: &SchemeChoice| matches!(scheme, SchemeChoice::Lossy | SchemeChoice::Auto);
        let exact = schemes.iter().find(|scheme| matches!(scheme, SchemeChoice::Lossless | SchemeChoice::Exact));
        match exact {
            Some(scheme) if needs_bound(id) && !schemes.iter().any(may_be_lossy) => {
                let text = format!(
                    "--codec {id} saves bytes under an error bound only: --scheme {scheme} takes zstd, pco or raw"
                );
                Err(Exit::Usage.because(text))
            }
            _ => Ok(()),
        }
    }

    /// What the policies are told.
    pub(crate) fn policy_config(&self, method: MethodKind) -> PolicyConfig {
        PolicyConfig {
            mtti_seconds: self.mtti_seconds().unwrap_or(MTTI_SECONDS),
            lossy_codec: self.codec.unwrap_or(LOSSY_CODEC),
            lossless_codec: self.codec.filter(|&id| !needs_bound(id)).unwrap_or(LOSSLESS_CODEC),
            rule: self.bound,
            theta: self.theta,
            delta: self.delta.unwrap_or(DELTA),
            has_grains: self.theta.is_none() && self.delta.is_none(),
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

    /// Codecs that may take the place of the default one where the storage is slow.
    pub(crate) fn rivals(&self) -> Vec<CodecId> {
        if self.codec.is_none() { recoup::RIVALS.to_vec() } else { Vec::new() }
    }

    /// The codec that sets the pace of a scheme.
    pub(crate) fn codec_of(&self, scheme: SchemeChoice) -> CodecId {
        let given = |or: CodecId| self.codec.unwrap_or(or);
        match scheme {
            SchemeChoice::Lossy | SchemeChoice::Auto => given(LOSSY_CODEC),
            SchemeChoice::Lossless | SchemeChoice::Exact => {
                self.codec.filter(|&id| !needs_bound(id)).unwrap_or(LOSSLESS_CODEC)
            }
            SchemeChoice::None | SchemeChoice::Traditional => given(CodecId::Raw),
        }
    }

    /// The policy of a scheme.
    pub(crate) fn policy(&self, scheme: SchemeChoice, method: MethodKind) -> Box<dyn Policy> {
        let config = self.policy_config(method);
        match scheme.fixed() {
            Some(fixed) => Box::new(FixedPolicy::new(fixed, self.interval, config)),
            None => Box::new(AutoPolicy::new(config).at(self.interval)),
        }
    }

    /// How to save the state that has converged: the iterate as it is, from which the same solve
    /// ends at once, and which every HDF5 program reads.
    pub(crate) fn last_plan(&self, method: MethodKind) -> Plan {
        let raw = PolicyConfig { resume: None, ..self.policy_config(method) };
        Plan { resume: Resume::Restarted, ..raw.plan(Scheme::Traditional) }
    }

    /// How to save when a run is asked to stop: as ever, or losslessly where the scheme is open.
    pub(crate) fn stop_plan(&self, scheme: SchemeChoice, method: MethodKind) -> Option<Plan> {
        let fixed = scheme.fixed().unwrap_or(Scheme::Lossless);
        (fixed != Scheme::None).then(|| self.policy_config(method).plan(fixed))
    }
}

/// Whether a codec has nothing, or hardly anything, to offer for values that must not change: it is
/// made for bounds.
fn needs_bound(id: CodecId) -> bool {
    match id {
        CodecId::Qb | CodecId::Zfp | CodecId::Sz3 => true,
        CodecId::Raw | CodecId::Zstd | CodecId::Pco => false,
    }
}

/// Whether the method keeps a direction that serves a deflated resume.
fn has_direction(method: &NamedMethod) -> bool {
    method.profile.lossy_resume == Resume::Deflated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_text_of_codec_names_every_codec() {
        let command = ProtectionArgs::augment_args(clap::Command::new("run"));
        let codec = command.get_arguments().find(|argument| argument.get_id() == "codec").unwrap();
        let names = codec.get_value_names().unwrap().join("|");
        for id in CodecId::ALL {
            assert!(names.split('|').any(|name| name == id.name()), "`--codec {names}` lacks {id}");
        }
    }
}
