//! `recoup tape bench`: seconds that an adjoint program waits for its states, by way to keep them.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod device_states;
mod host;
mod keepers;
mod rounds;
mod scratch;
mod simulated;
mod sizes;
mod ways;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use recoup::core::CodecId;

use self::sizes::{ProcessCounts, StateSizes, UniformStates};
use crate::exit::Exit;
use crate::options::protection::{CODEC_NAMES, codec_id};
use crate::options::{above_one, bytes, bytes_per_second, duration_or_zero, positive};
use crate::output::Output;

/// The end of the help.
pub(super) const EXAMPLES: &str = "Examples, from the root of the repository:
  recoup tape bench --on host --uniform 16x4MiB --interval 1ms --rounds 2
  recoup tape bench --on cuda --uniform 16x4MiB || echo no GPU can be used
  recoup tape bench --on simulated:a100 --processes 1,8 --interval 20ms
  recoup tape bench --on simulated:a100 --repeat 6 \\
      --trace crates/adjoint/tape/tests/data/rtm-sizes.csv --processes 8

A process computes for the interval, pushes a state, and so on. Then it computes
and pops in reverse. What it waits for is counted.

On simulated:a100, in virtual time, each process has a device:
  direct       all memory is allocated and registered before the first push
  memset       small pages are touched while states are copied
  published    memory grows; one registration when all of it was touched
  chunked      memory grows, and is registered by chunks meanwhile
  coded        the same, and devices encode states first (--codec)

On host, with memory of this machine:
  vec          a new Vec for each state
  direct       all memory is made and locked before the first push
  small-pages  the tape, with pages of 4 KiB
  huge-pages   the tape, with pages of 2 MiB
  untouched    the tape, with no page touched ahead
  spill        the tape, a part of its memory, and --spill DIR
  tmpfs        the same with files in /dev/shm
  coded        the tape, which encodes states (--codec)

On cuda, with states in the memory of device 0. A push or pop ends when the
program may use its memory again:
  direct       all memory is mapped and registered before the first push
  grown        memory is mapped, and registered by chunks, meanwhile
  no-device    a tape in memory of the host, which fetches each state
  spill        as grown, with a part of the host's memory, and --spill DIR
  coded        as grown, and states are encoded on the device (--codec)

Ways take turns. Each round measures all of them, and figures are medians of the
rounds. Processes are threads, each with a tape of its own. Popped states are
compared with what was pushed.";

/// The machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BenchMachine {
    /// Eight A100 in virtual time, by published rates.
    #[value(name = "simulated:a100")]
    SimulatedA100,
    /// This machine.
    Host,
    /// A CUDA device of this machine.
    Cuda,
}

/// Sizes of pages to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PagesChoice {
    /// 2 MiB.
    Huge,
    /// 4 KiB.
    Small,
    /// One after the other.
    Both,
}

/// Options of `recoup tape bench`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Machine.
    #[arg(long, value_enum)]
    on: BenchMachine,

    /// States of one size [default: 256x128MiB; 64x16MiB on host and cuda].
    #[arg(long, value_name = "NxBYTES", conflicts_with = "trace", help_heading = "States")]
    uniform: Option<UniformStates>,

    /// Sizes of states in bytes, as CSV without a head: a row for each state, a column for each
    /// process.
    #[arg(long, value_name = "FILE", help_heading = "States")]
    trace: Option<PathBuf>,

    /// Repetitions of these states.
    #[arg(long, value_name = "K", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=1000),
          help_heading = "States")]
    repeat: u16,

    /// Numbers of processes to compare, as in 1,2,4,8 or 1..8 [default: 1,2,4,8; on host and cuda,
    /// where each is a thread, 1].
    #[arg(long, value_name = "N[,N...]", help_heading = "States")]
    processes: Option<ProcessCounts>,

    /// Time for which a process computes before each push and each pop.
    #[arg(long, value_name = "DURATION", default_value = "5ms", value_parser = duration_or_zero,
          help_heading = "States")]
    interval: f64,

    /// Memory of the host for each process [default: 32GiB; on host and cuda, where it is that of
    /// spill and tmpfs, a quarter of the states].
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Machine")]
    host: Option<u64>,

    /// Memory of the device for each process [default: 4GiB; on cuda, an eighth of the states].
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Machine")]
    device: Option<u64>,

    /// On host and cuda: add a tape that spills to a new folder in DIR, removed at the end.
    #[arg(long, value_name = "DIR", help_heading = "Machine")]
    spill: Option<PathBuf>,

    /// On host: pages of the tape [default: both].
    #[arg(long, value_enum, help_heading = "Machine")]
    pages: Option<PagesChoice>,

    /// On host and cuda: rounds [default: 5].
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=1000), help_heading = "Machine")]
    rounds: Option<u16>,

    /// Add a tape that encodes states.
    #[arg(long, value_name = CODEC_NAMES.as_str(), value_parser = codec_id, help_heading = "Codec")]
    codec: Option<CodecId>,

    /// On host and cuda: absolute error bound of the codec. States are waves of height 1.
    #[arg(long, value_name = "E", value_parser = positive, requires = "codec", help_heading = "Codec")]
    error_bound: Option<f64>,

    /// Simulated: raw bytes divided by encoded bytes.
    #[arg(long, value_name = "R", value_parser = above_one, requires = "codec", help_heading = "Codec")]
    ratio: Option<f64>,

    /// Simulated: raw bytes per second that a device encodes or decodes.
    #[arg(long, value_name = "BYTES/S", value_parser = bytes_per_second, requires = "codec", help_heading = "Codec")]
    codec_rate: Option<f64>,
}

/// Compares the ways.
///
/// # Errors
/// Exit 2 for options that make no sense together; when a way fails, or stdout cannot be written
/// to.
pub(crate) fn run(args: &Args, output: &Output) -> Result<Exit> {
    args.check()?;
    match args.on {
        BenchMachine::SimulatedA100 => output.emit(&simulated::measure(args)?, simulated::table)?,
        BenchMachine::Host => output.emit(&host::measure(args)?, host::table)?,
        #[cfg(feature = "cuda")]
        BenchMachine::Cuda => output.emit(&cuda::measure(args)?, host::table)?,
        #[cfg(not(feature = "cuda"))]
        BenchMachine::Cuda => {
            return Err(Exit::NotAvailable.because("--on cuda: this program was built without feature cuda"));
        }
    }
    Ok(Exit::Done)
}

impl Args {
    /// Refuses options of other machines.
    fn check(&self) -> Result<()> {
        let of_host = [
            ("--spill", self.spill.is_some(), "the simulated machine has no directory"),
            ("--pages", self.pages.is_some(), "the simulated machine has the pages of its rates"),
            ("--rounds", self.rounds.is_some(), "virtual time repeats exactly"),
            ("--error-bound", self.error_bound.is_some(), "nothing is encoded; state what is reached with --ratio"),
        ];
        let of_simulation = [
            ("--device", self.device.is_some(), "no device takes part"),
            ("--ratio", self.ratio.is_some(), "the ratio is measured"),
            ("--codec-rate", self.codec_rate.is_some(), "the codec is timed"),
        ];
        let of_others = [
            ("--pages", self.pages.is_some(), "memory that a device copies to has huge pages"),
            ("--ratio", self.ratio.is_some(), "the ratio is measured"),
            ("--codec-rate", self.codec_rate.is_some(), "the codec is timed"),
        ];
        let foreign: &[_] = match self.on {
            BenchMachine::SimulatedA100 => &of_host,
            BenchMachine::Host => &of_simulation,
            BenchMachine::Cuda => &of_others,
        };
        match foreign.iter().find(|(_, is_given, _)| *is_given) {
            Some((option, _, why)) => Err(Exit::Usage.because(format!("{option} with --on {}: {why}", self.machine()))),
            None => Ok(()),
        }
    }

    fn machine(&self) -> String {
        crate::options::name_of(self.on)
    }

    /// Returns the sizes of the states of each process, for the greatest number of them.
    fn sizes(&self, uniform: UniformStates, n_processes: usize) -> Result<StateSizes> {
        let sizes = match &self.trace {
            Some(path) => StateSizes::of_trace(path, n_processes)?,
            None => StateSizes::of_uniform(self.uniform.unwrap_or(uniform), n_processes),
        };
        Ok(sizes.repeated(usize::from(self.repeat)))
    }
}
