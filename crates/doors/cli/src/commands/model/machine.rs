//! The machine and the job of a decision, from the command line or a file.

use std::path::PathBuf;

use anyhow::{Context, Result};
use recoup::core::{Cost, Scheme};
use recoup::model::decide::Question;
use recoup::model::units::parse_bytes;

use super::scenario::Scenario;
use crate::exit::Exit;
use crate::options::duration;
use crate::output::check_folder;
use crate::report::plot::grouped_bars;
use crate::target::require_writable;

/// Shown below the help.
pub(super) const EXAMPLES: &str = "\
Sizes take K, M, G, T (powers of 1000) and Ki, Mi, Gi, Ti (powers of 1024).
Examples: 78.8 GB over 2048 ranks, a file system that takes 120 s for it
  recoup model decide --mtti 3600 --t-iter 1.2 --iterations 5875 --ranks 2048 \\
      --bytes 78.8G --bandwidth 657M --ratio-lossless 1.3 --ratio-lossy 20 \\
      --extra-iterations 20
The same from measured times
  recoup model decide --mtti 3600 --t-iter 1.2 --iterations 5875 \\
      --ckpt 120 --ckpt-lossless 95 --ckpt-lossy 25 --extra-iterations 20";

/// The subject of a decision.
pub(super) enum Subject {
    /// Numbers on the command line.
    Numbers(Question),
    /// A file.
    File(Box<Scenario>),
}

/// The machine and the job, from a file or in numbers.
#[derive(Debug, clap::Args)]
pub(super) struct MachineOrScenario {
    /// Read machine, method and schemes from this file (TOML; `--help` shows an example).
    #[arg(long, value_name = "FILE.toml", conflicts_with_all = ["mtti", "t_iter", "iterations", "bytes", "ckpt"])]
    scenario: Option<PathBuf>,
    #[command(flatten)]
    machine: Option<MachineArgs>,
    /// Draw the overheads of the schemes to `overhead.svg` in this directory.
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,
    /// Draw the overheads of the schemes to this file.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

impl MachineOrScenario {
    /// Reads the file, or takes the numbers.
    ///
    /// # Errors
    /// As [`Scenario::read`]; [`Exit::Usage`] where neither is given.
    pub(super) fn subject(&self) -> Result<Subject> {
        check_folder("--report", self.report.as_deref())?;
        if let Some(file) = &self.plot {
            if file.extension().is_none_or(|ending| ending != "svg") {
                return Err(Exit::Usage.because(format!("--plot {}: expected FILE.svg", file.display())));
            }
            require_writable(file, "--plot")?;
        }
        match (&self.scenario, &self.machine) {
            (Some(path), _) => Ok(Subject::File(Box::new(Scenario::read(path)?))),
            (None, Some(machine)) => Ok(Subject::Numbers(machine.question())),
            (None, None) => Err(Exit::Usage
                .because("give --scenario FILE.toml, or --mtti, --t-iter, --iterations and --bytes or --ckpt")),
        }
    }

    /// Draws the overheads of each scheme in percent under these headings, if a report or a plot
    /// was asked for.
    pub(super) fn draw(&self, groups: &[(String, Vec<f64>)], legend: &[&'static str]) -> Result<()> {
        let is_asked = self.report.is_some() || self.plot.is_some();
        let groups: Vec<_> =
            groups.iter().filter(|(_, all)| all.iter().all(|value| value.is_finite())).cloned().collect();
        if !is_asked || groups.is_empty() {
            return Ok(());
        }
        let in_report = match &self.report {
            Some(dir) => {
                std::fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
                Some(dir.join("overhead.svg"))
            }
            None => None,
        };
        let svg = grouped_bars(&groups, legend, "% of the productive time");
        for path in in_report.iter().chain(&self.plot) {
            std::fs::write(path, &svg).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// The machine and the job in numbers.
#[derive(Debug, clap::Args)]
pub(super) struct MachineArgs {
    /// Mean time to interrupt of the job.
    #[arg(long, value_name = "DURATION", value_parser = duration, required = false, required_unless_present = "scenario")]
    mtti: f64,
    /// Time of one iteration.
    #[arg(long, value_name = "DURATION", value_parser = duration, required = false, required_unless_present = "scenario")]
    t_iter: f64,
    /// Iterations to convergence without failures.
    #[arg(long, value_name = "N", value_parser = positive, required = false, required_unless_present = "scenario")]
    iterations: f64,
    /// Extra iterations a lossy recovery costs.
    #[arg(long, value_name = "N", value_parser = at_least_zero, default_value = "0")]
    extra_iterations: f64,

    /// Bytes of all dynamic variables on all ranks, which traditional and lossless versions save.
    #[arg(long, value_name = "SIZE", value_parser = size, requires = "bandwidth", conflicts_with = "ckpt")]
    #[arg(required_unless_present_any = ["ckpt", "scenario"])]
    bytes: Option<f64>,
    /// Bytes of the iterate on all ranks, which lossy versions save [default: as --bytes].
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["ckpt", "scenario"])]
    bytes_lossy: Option<f64>,
    /// Storage bandwidth of all ranks together, per second.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["ckpt", "scenario"])]
    bandwidth: Option<f64>,
    /// Number of ranks, which encode and decode in parallel.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Ratio of raw to encoded bytes of the lossless codec.
    #[arg(long, value_name = "RATIO", value_parser = positive, default_value = "1.2", conflicts_with_all = ["ckpt", "scenario"])]
    ratio_lossless: f64,
    /// Ratio of raw to encoded bytes of the lossy codec.
    #[arg(long, value_name = "RATIO", value_parser = positive, default_value = "10", conflicts_with_all = ["ckpt", "scenario"])]
    ratio_lossy: f64,
    /// Raw bytes that each rank encodes losslessly per second.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "400M", conflicts_with_all = ["ckpt", "scenario"])]
    speed_lossless: f64,
    /// Raw bytes that each rank encodes under a bound per second.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "600M", conflicts_with_all = ["ckpt", "scenario"])]
    speed_lossy: f64,
    /// Raw bytes that each rank decodes per second.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "600M", conflicts_with_all = ["ckpt", "scenario"])]
    speed_decode: f64,
    /// Encode and write while the solver continues; it waits for a copy only.
    #[arg(long)]
    asynchronous: bool,
    /// Bytes that each rank copies per second: an asynchronous checkpoint blocks for the copy.
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "5G", conflicts_with_all = ["ckpt", "scenario"])]
    speed_copy: f64,

    /// Time of a traditional checkpoint, instead of sizes and speeds.
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "asynchronous")]
    ckpt: Option<f64>,
    /// Time of a lossless checkpoint.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "ckpt")]
    ckpt_lossless: Option<f64>,
    /// Time of a lossy checkpoint.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "ckpt")]
    ckpt_lossy: Option<f64>,
}

impl MachineArgs {
    /// Returns the question to the model.
    pub(super) fn question(&self) -> Question {
        let costs = match self.ckpt {
            Some(traditional) => self.measured(traditional),
            None => self.estimated(),
        };
        Question {
            mtti_seconds: self.mtti,
            iteration_seconds: self.t_iter,
            remaining_seconds: self.iterations * self.t_iter,
            at_risk_seconds: 0.0,
            asynchronous: self.asynchronous,
            costs,
            safe_point_seconds: self.t_iter,
        }
    }

    /// Returns costs given as times: a recovery takes as long as its checkpoint.
    fn measured(&self, traditional: f64) -> Vec<(Scheme, Cost)> {
        let cost = |seconds: f64, extra_iterations: f64| Cost {
            blocking_seconds: seconds,
            drain_seconds: 0.0,
            recovery_seconds: seconds,
            ratio: traditional / seconds,
            extra_iterations,
            ..Cost::default()
        };
        let given = [
            (Scheme::Traditional, Some(traditional), 0.0),
            (Scheme::Lossless, self.ckpt_lossless, 0.0),
            (Scheme::Lossy, self.ckpt_lossy, self.extra_iterations),
        ];
        let costs = given.into_iter().filter_map(|(scheme, time, extra)| Some((scheme, cost(time?, extra))));
        std::iter::once((Scheme::None, Cost::default())).chain(costs).collect()
    }

    /// Returns costs from sizes, ratios and speeds: encode on every rank, then write through the
    /// shared bandwidth.
    fn estimated(&self) -> Vec<(Scheme, Cost)> {
        let bytes = self.bytes.unwrap_or(0.0);
        let bytes_lossy = self.bytes_lossy.unwrap_or(bytes);
        let of = |bytes: f64, ratio: f64, encode: f64, decode: f64, extra_iterations: f64| {
            let per_rank = bytes / f64::from(self.ranks);
            let transfer = bytes / ratio / self.bandwidth.unwrap_or(f64::INFINITY);
            let all = per_rank / encode + transfer;
            let copy = per_rank / self.speed_copy;
            let (blocking_seconds, drain_seconds) = if self.asynchronous { (copy, all) } else { (all, 0.0) };
            let recovery_seconds = per_rank / decode + transfer;
            Cost { blocking_seconds, drain_seconds, recovery_seconds, ratio, extra_iterations, ..Cost::default() }
        };
        let now = f64::INFINITY;
        vec![
            (Scheme::None, Cost::default()),
            (Scheme::Traditional, of(bytes, 1.0, now, now, 0.0)),
            (Scheme::Lossless, of(bytes, self.ratio_lossless, self.speed_lossless, self.speed_decode, 0.0)),
            (
                Scheme::Lossy,
                of(bytes_lossy, self.ratio_lossy, self.speed_lossy, self.speed_decode, self.extra_iterations),
            ),
        ]
    }
}

/// Reads a finite number above 0.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    number(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("expected a number above 0".to_owned()) })
}

/// Reads a finite number, 0 or above.
pub(super) fn at_least_zero(text: &str) -> Result<f64, String> {
    number(text).and_then(|value| if value >= 0.0 { Ok(value) } else { Err("expected 0 or above".to_owned()) })
}

/// Reads a number between 0 and 1, both excluded.
pub(super) fn below_one(text: &str) -> Result<f64, String> {
    positive(text).and_then(|value| if value < 1.0 { Ok(value) } else { Err("expected a number below 1".to_owned()) })
}

fn number(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().map_err(|_| "expected a number".to_owned())?;
    if value.is_finite() { Ok(value) } else { Err("expected a finite number".to_owned()) }
}

/// Bytes, with or without a unit: `1e9`, `78.8G`, `64Mi`, `64MiB`.
pub(super) fn size(text: &str) -> Result<f64, &'static str> {
    parse_bytes(text).ok_or("expected bytes above 0, such as 500000, 500k or 2GiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_both_kinds_of_units() {
        assert_eq!(size("1e9"), Ok(1e9));
        assert_eq!(size("78.8G"), Ok(78.8e9));
        assert_eq!(size("64MiB"), Ok(64.0 * 1_048_576.0));
        assert_eq!(size("5 KB"), Ok(5000.0));
        assert!(size("-1").is_err() && size("G").is_err() && size("inf").is_err());
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        assert!(positive("0").is_err() && positive("nan").is_err() && positive("x").is_err());
        assert!(at_least_zero("-0.1").is_err() && at_least_zero("0").is_ok());
        assert!(below_one("1").is_err() && below_one("0.99998").is_ok());
    }
}
