//! Numbers of an adjoint program and its machine: options, a file of them, and their defaults.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use recoup::tape::schedule::{AccessCost, AdjointProblem, CodedState, PlanRefusal, ReverseNeeds, StateStorage};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::options::{bytes, bytes_per_second, duration, duration_or_zero, positive};
use crate::output;

/// Rate of copies in memory where none is given: that of a process on a small machine.
const MEMORY_RATE: f64 = 5e9;

/// The numbers, as options and in the file of --costs.
#[derive(clap::Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlanNumbers {
    /// Forward steps.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps: Option<u64>,

    /// Size of a state.
    #[arg(long = "state", value_name = "BYTES", value_parser = bytes, help_heading = "Program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    state_bytes: Option<u64>,

    /// Time of a forward step.
    #[arg(long = "t-step", value_name = "DURATION", value_parser = duration, help_heading = "Program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    step_s: Option<f64>,

    /// Time of a reverse step [default: that of a forward step].
    #[arg(long = "t-reverse", value_name = "DURATION", value_parser = duration_or_zero, help_heading = "Program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_s: Option<f64>,

    /// Input of the reverse of a step [default: state].
    #[arg(long, value_enum, help_heading = "Program")]
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_needs: Option<ReverseInput>,

    /// Memory for states.
    #[arg(long = "memory", value_name = "BYTES", value_parser = bytes, help_heading = "Machine")]
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes: Option<u64>,

    /// Copies to memory and back [default: 5G].
    #[arg(long = "memory-rate", value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Machine")]
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_bytes_per_second: Option<f64>,

    /// Disk for states [default: none].
    #[arg(long = "disk", value_name = "BYTES", value_parser = bytes, help_heading = "Machine")]
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_bytes: Option<u64>,

    /// Writes to the disk.
    #[arg(long = "disk-rate", value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Machine")]
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_write_bytes_per_second: Option<f64>,

    /// Reads from the disk [default: --disk-rate].
    #[arg(long = "disk-read-rate", value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Machine")]
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_read_bytes_per_second: Option<f64>,

    /// Raw bytes divided by encoded bytes.
    #[arg(long, value_name = "R", value_parser = positive, help_heading = "Codec")]
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<f64>,

    /// Raw bytes per second that are encoded.
    #[arg(long = "codec-rate", value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Codec")]
    #[serde(skip_serializing_if = "Option::is_none")]
    encode_bytes_per_second: Option<f64>,

    /// Raw bytes per second that are decoded [default: --codec-rate].
    #[arg(long = "decode-rate", value_name = "BYTES/S", value_parser = bytes_per_second, help_heading = "Codec")]
    #[serde(skip_serializing_if = "Option::is_none")]
    decode_bytes_per_second: Option<f64>,
}

/// Data that the reverse of a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ReverseInput {
    /// The state that the step begins with.
    State,
    /// Data that only the forward step makes, as large as a state.
    StepData,
}

impl PlanNumbers {
    /// Reads a file.
    ///
    /// # Errors
    /// Exit 2 for a file that holds anything else than these numbers; when it cannot be read.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let source = || format!("--costs {}", path.display());
        let text = std::fs::read_to_string(path).with_context(source)?;
        let read: Self =
            serde_json::from_str(&text).map_err(|error| Exit::Usage.because(format!("{}: {error}", source())))?;
        read.check().map_err(|what| Exit::Usage.because(format!("{}: {what}", source())))?;
        Ok(read)
    }

    /// Returns these numbers, and others where they are missing.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            steps: self.steps.or(other.steps),
            state_bytes: self.state_bytes.or(other.state_bytes),
            step_s: self.step_s.or(other.step_s),
            reverse_s: self.reverse_s.or(other.reverse_s),
            reverse_needs: self.reverse_needs.or(other.reverse_needs),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            memory_bytes_per_second: self.memory_bytes_per_second.or(other.memory_bytes_per_second),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
            disk_write_bytes_per_second: self.disk_write_bytes_per_second.or(other.disk_write_bytes_per_second),
            disk_read_bytes_per_second: self.disk_read_bytes_per_second.or(other.disk_read_bytes_per_second),
            ratio: self.ratio.or(other.ratio),
            encode_bytes_per_second: self.encode_bytes_per_second.or(other.encode_bytes_per_second),
            decode_bytes_per_second: self.decode_bytes_per_second.or(other.decode_bytes_per_second),
        }
    }

    /// Refuses numbers of a file that an option would refuse; `Err` names the key.
    fn check(&self) -> Result<(), String> {
        let counts = [("steps", self.steps), ("state_bytes", self.state_bytes), ("memory_bytes", self.memory_bytes)];
        if let Some((key, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            return Err(format!("{key} is 0: expected 1 or more"));
        }
        let numbers = [
            ("step_s", self.step_s),
            ("memory_bytes_per_second", self.memory_bytes_per_second),
            ("disk_write_bytes_per_second", self.disk_write_bytes_per_second),
            ("disk_read_bytes_per_second", self.disk_read_bytes_per_second),
            ("ratio", self.ratio),
            ("encode_bytes_per_second", self.encode_bytes_per_second),
            ("decode_bytes_per_second", self.decode_bytes_per_second),
        ];
        let is_above_zero = |value: f64| value.is_finite() && value > 0.0;
        match numbers.into_iter().find(|(_, number)| number.is_some_and(|value| !is_above_zero(value))) {
            Some((key, number)) => Err(format!("{key} is {}: expected a number above 0", number.unwrap_or_default())),
            None if self.reverse_s.is_some_and(|seconds| seconds < 0.0) => {
                Err("reverse_s is below 0: expected seconds, 0 or more".to_owned())
            }
            None => Ok(()),
        }
    }

    /// Returns the numbers with the defaults of those that are missing.
    ///
    /// # Errors
    /// Exit 2 for numbers that are missing and have no default.
    pub(super) fn filled(self) -> Result<Self> {
        let needed = [
            ("--steps N", self.steps.is_some()),
            ("--state BYTES", self.state_bytes.is_some()),
            ("--t-step DURATION", self.step_s.is_some()),
            ("--memory BYTES", self.memory_bytes.is_some()),
        ];
        let missing: Vec<&str> = needed.iter().filter(|(_, is_there)| !is_there).map(|(option, _)| *option).collect();
        if !missing.is_empty() {
            let what = format!("missing: {}; as options, or in the file of --costs", missing.join(", "));
            return Err(Exit::Usage.because(what));
        }
        let pairs = [
            (
                "--disk BYTES",
                self.disk_bytes.is_some(),
                "--disk-rate BYTES/S",
                self.disk_write_bytes_per_second.is_some(),
            ),
            ("--ratio R", self.ratio.is_some(), "--codec-rate BYTES/S", self.encode_bytes_per_second.is_some()),
        ];
        for (first, has_first, second, has_second) in pairs {
            if has_first != has_second {
                let [given, other] = if has_first { [first, second] } else { [second, first] };
                return Err(Exit::Usage.because(format!("{given} without {other}: give both, or none")));
            }
        }
        if self.disk_read_bytes_per_second.is_some() && self.disk_bytes.is_none() {
            return Err(Exit::Usage.because("--disk-read-rate without --disk BYTES: there is nothing to read"));
        }
        if self.decode_bytes_per_second.is_some() && self.ratio.is_none() {
            return Err(Exit::Usage.because("--decode-rate without --ratio R: there is nothing to decode"));
        }
        Ok(Self {
            reverse_s: self.reverse_s.or(self.step_s),
            reverse_needs: self.reverse_needs.or(Some(ReverseInput::State)),
            memory_bytes_per_second: self.memory_bytes_per_second.or(Some(MEMORY_RATE)),
            disk_read_bytes_per_second: self.disk_read_bytes_per_second.or(self.disk_write_bytes_per_second),
            decode_bytes_per_second: self.decode_bytes_per_second.or(self.encode_bytes_per_second),
            ..self
        })
    }

    /// Returns the problem of numbers that are filled.
    ///
    /// # Errors
    /// Exit 2 for numbers that are missing.
    pub(super) fn problem(&self) -> Result<AdjointProblem> {
        let missing = |name: &str| Exit::Usage.because(format!("{name} is missing"));
        let state_bytes = self.state_bytes.ok_or_else(|| missing("--state BYTES"))?;
        let seconds = |rate: Option<f64>| rate.map_or(0.0, |rate| state_bytes as f64 / rate);
        let forward_seconds = self.step_s.ok_or_else(|| missing("--t-step DURATION"))?;
        let coded = self.ratio.map(|ratio| CodedState {
            bytes: (state_bytes as f64 / ratio).ceil().max(1.0) as u64,
            encode_seconds: seconds(self.encode_bytes_per_second),
            decode_seconds: seconds(self.decode_bytes_per_second),
        });
        let in_memory = seconds(self.memory_bytes_per_second);
        let [write_seconds, read_seconds] =
            [self.disk_write_bytes_per_second, self.disk_read_bytes_per_second].map(seconds);
        Ok(AdjointProblem {
            steps: self.steps.ok_or_else(|| missing("--steps N"))?,
            forward_seconds,
            reverse_seconds: self.reverse_s.unwrap_or(forward_seconds),
            reverse_needs: match self.reverse_needs {
                Some(ReverseInput::StepData) => ReverseNeeds::StepData,
                Some(ReverseInput::State) | None => ReverseNeeds::State,
            },
            state_bytes,
            coded,
            memory: StateStorage {
                bytes: self.memory_bytes.ok_or_else(|| missing("--memory BYTES"))?,
                access: AccessCost { write_seconds: in_memory, read_seconds: in_memory },
            },
            disk: StateStorage {
                bytes: self.disk_bytes.unwrap_or(0),
                access: AccessCost { write_seconds, read_seconds },
            },
        })
    }

    /// Returns the error of numbers that no schedule fits.
    pub(super) fn refused(&self, refusal: &PlanRefusal) -> anyhow::Error {
        let readable = |count: Option<u64>| output::bytes(count.unwrap_or(0) as f64);
        Exit::Usage.because(format!(
            "--memory {} and --disk {} for states of {}: {refusal}",
            readable(self.memory_bytes),
            readable(self.disk_bytes),
            readable(self.state_bytes),
        ))
    }
}
