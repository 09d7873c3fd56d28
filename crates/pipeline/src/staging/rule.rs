//! The choice between a copy and frozen values when a version is staged.

use std::str::FromStr;

/// The smallest variable that is frozen: a copy of fewer bytes takes less than an iteration over
/// them.
const FROZEN_BYTES_MIN: u64 = 64 << 20;

/// The way values are staged whose owner sees all writes to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StagingMode {
    /// Frozen where that takes less of the solver's time: where a core is idle, and the values are
    /// large and last for more than an iteration. Else copied.
    #[default]
    Auto,
    /// Copied at once.
    Copy,
    /// Frozen without a copy, as far as their owner can.
    Touch,
}

impl StagingMode {
    /// All ways, by their names.
    pub const ALL: [(&'static str, Self); 3] = [("auto", Self::Auto), ("copy", Self::Copy), ("touch", Self::Touch)];

    /// Explains that versions are frozen, or copied, from now on.
    pub(crate) fn explain(self, is_frozen: bool) -> String {
        let way = if is_frozen { "touch" } else { "copy" };
        let why = match (self, is_frozen) {
            (Self::Copy | Self::Touch, _) => "it was asked for",
            (Self::Auto, true) => "an iteration leaves most values as they are",
            (Self::Auto, false) => "each iteration writes the values again",
        };
        format!("staging: {way}, as {why}")
    }
}

impl FromStr for StagingMode {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, mode)| mode);
        found.ok_or_else(|| format!("auto, copy or touch expected, {name} found"))
    }
}

/// The choice for one version, on one rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StagingRule {
    pub(crate) mode: StagingMode,
    /// The worker has a core for itself, and the solver does not wait for it.
    pub(crate) is_behind: bool,
}

impl StagingRule {
    /// Copies all values.
    #[cfg(test)]
    pub(crate) const COPY: Self = Self { mode: StagingMode::Copy, is_behind: true };

    /// Returns whether a variable of this many bytes is to be frozen, if its owner can. Values that
    /// do not last are written again while they are fetched: the solver then duplicates them zone
    /// by zone, which takes longer than one copy.
    pub(crate) fn freezes(&self, bytes: u64, is_lasting: bool) -> bool {
        match self.mode {
            StagingMode::Copy => false,
            StagingMode::Touch => true,
            StagingMode::Auto => self.is_behind && is_lasting && bytes >= FROZEN_BYTES_MIN,
        }
    }
}
