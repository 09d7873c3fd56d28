//! The choice between a copy and frozen values when a version is staged.

use std::str::FromStr;

use recoup_model::staging::{StagingChoice, StagingConditions, StagingWay, WriteMonitor};

/// The way values are staged whose owner sees all writes to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StagingMode {
    /// The way that is predicted to take less of the solver's time.
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
    mode: StagingMode,
    /// The solver and the machine; `None` where all of a version's costs are declared.
    conditions: Option<StagingConditions>,
}

impl StagingRule {
    /// Copies all values.
    #[cfg(test)]
    pub(crate) const COPY: Self = Self { mode: StagingMode::Copy, conditions: None };

    /// Returns the rule for a version of this many bytes.
    pub(crate) fn for_version(self, version_bytes: u64) -> Self {
        let conditions = self.conditions.map(|conditions| StagingConditions { version_bytes, ..conditions });
        Self { conditions, ..self }
    }

    pub(crate) fn new(mode: StagingMode, conditions: Option<StagingConditions>) -> Self {
        Self { mode, conditions }
    }

    /// Returns whether a variable of this many bytes is to be frozen, if its owner can.
    pub(crate) fn freezes(&self, bytes: u64) -> bool {
        match self.mode {
            StagingMode::Copy => false,
            StagingMode::Touch => true,
            StagingMode::Auto => self.choice(bytes).is_some_and(|choice| choice.way != StagingWay::Copy),
        }
    }

    /// Explains the choice for a variable of this many bytes, in a version of `version_bytes`.
    pub(crate) fn explain(&self, bytes: u64, version_bytes: u64) -> String {
        let rule = self.for_version(version_bytes);
        let why = match self.mode {
            StagingMode::Auto => "",
            StagingMode::Copy | StagingMode::Touch => ", as it was asked for",
        };
        let way = if rule.freezes(bytes) { "touch" } else { "copy" };
        let Some(choice) = rule.choice(bytes) else { return format!("staging: {way}{why}") };
        let why = if why.is_empty() { format!(", {}", choice.why) } else { why.to_owned() };
        let frozen = choice.frozen_seconds.map_or(String::new(), |seconds| format!(", touch {:.1} ms", 1e3 * seconds));
        format!("staging: {way}{why}; expected: copy {:.1} ms{frozen}", 1e3 * choice.copy_seconds)
    }

    fn choice(&self, bytes: u64) -> Option<StagingChoice> {
        self.conditions.map(|conditions| conditions.choose(bytes, WriteMonitor::Owner))
    }
}
