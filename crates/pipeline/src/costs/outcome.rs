//! Outcomes of checkpoints, and where their time went.

use recoup_core::{Bound, ErrorKind, Plan, Prediction, ResidualRecord};
#[cfg(test)]
use recoup_core::{CodecId, Resume, Scheme};

use crate::verify::Suspicion;

/// The time of one checkpoint, by the work it was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spent {
    /// The copy into the staging buffer; blocks the solver.
    pub stage_seconds: f64,
    /// Waiting for a free staging buffer, and for the whole drain when checkpoints are
    /// synchronous; blocks the solver.
    pub wait_seconds: f64,
    /// Encoding and decoding again, behind the solver.
    pub encode_seconds: f64,
    /// Products with the operator for the verified bound, behind the solver.
    pub verify_seconds: f64,
    /// Writing, syncing and publishing, behind the solver.
    pub write_seconds: f64,
}

impl Spent {
    /// Returns what the solver waited for.
    #[must_use]
    pub fn blocking_seconds(&self) -> f64 {
        self.stage_seconds + self.wait_seconds
    }

    /// Returns what ran behind it.
    #[must_use]
    pub fn drain_seconds(&self) -> f64 {
        self.encode_seconds + self.verify_seconds + self.write_seconds
    }
}

/// The use a version made of values that are stored elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Frames of this rank that were encoded where their values are stored.
    pub device_frames: u64,
    /// Bytes of values that were fetched to be encoded, measured or written here.
    pub fetched_bytes: u64,
}

impl DeviceUse {
    /// Adds the use that one variable made.
    pub(crate) fn add(&mut self, other: Self) {
        self.device_frames += other.device_frames;
        self.fetched_bytes += other.fetched_bytes;
    }
}

/// A version that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// The version, and the iteration it was taken at.
    pub version: u64,
    /// The way it was saved.
    pub plan: Plan,
    /// The bound of the iterate.
    pub bound: Bound,
    /// Largest error of the iterate found on this rank.
    pub achieved_error: f64,
    /// Bytes of this rank's values.
    pub raw_bytes: u64,
    /// Bytes of this rank's values that were copied while the solver waited. The others had been
    /// copied for the version before, and were not written since.
    pub copied_bytes: u64,
    /// Bytes of this rank's values that were frozen without a copy, and saved behind the solver.
    pub frozen_bytes: u64,
    /// Bytes of this rank's payloads.
    pub payload_bytes: u64,
    /// The residual, before and after.
    pub residual: ResidualRecord,
    /// `||b - A x'|| / ||b - A x||` of what was encoded and what was staged; 0 where not measured.
    pub residual_jump: f64,
    /// Extra iterations that a recovery from it was expected to cost.
    pub extra_iterations: Option<Prediction>,
    /// The time it took, by the work it was spent on.
    pub spent: Spent,
    /// The use it made of values that are stored elsewhere; all zero where none do.
    pub on_device: DeviceUse,
    /// Older versions that were removed to stay within the limit on bytes; the same on all ranks.
    pub dropped: Vec<u64>,
    /// Reasons for the begin or the end of increments on this rank, by variable; none where nothing
    /// changes.
    pub increment_reasons: Vec<String>,
}

#[cfg(test)]
impl Saved {
    /// Makes a version of one raw value, for tests.
    pub(crate) fn of_one_value(version: u64, spent: Spent) -> Self {
        Self {
            version,
            plan: Plan::new(Scheme::Traditional, CodecId::Raw, Resume::Traditional),
            bound: Bound::Lossless,
            achieved_error: 0.0,
            raw_bytes: 8,
            copied_bytes: 8,
            frozen_bytes: 0,
            payload_bytes: 8,
            residual: ResidualRecord::default(),
            residual_jump: 0.0,
            extra_iterations: None,
            spent,
            on_device: DeviceUse::default(),
            dropped: Vec::new(),
            increment_reasons: Vec::new(),
        }
    }
}

/// The end of a checkpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The version counts.
    Saved(Box<Saved>),
    /// The version does not count, and the version before it is untouched.
    Failed {
        /// The version that is not.
        version: u64,
        /// The kind of the error, the same on all ranks unless one is lost.
        kind: ErrorKind,
        /// The error of the first rank that failed.
        message: String,
    },
    /// The version does not count: memory was corrupted before it was staged.
    Suspicious(Suspicion),
    /// The version was dropped because the state in memory was lost.
    Aborted {
        /// The version that is not.
        version: u64,
    },
}

/// Returns whether the last version that failed did so for the same reason, whatever numbers stand
/// in it.
pub(crate) fn is_repeated_failure(outcomes: &[Outcome], message: &str) -> bool {
    let words = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
    let last = outcomes.iter().rev().find_map(|outcome| match outcome {
        Outcome::Failed { message, .. } => Some(words(message)),
        _ => None,
    });
    last.is_some_and(|last| last == words(message))
}
