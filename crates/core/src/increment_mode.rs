//! Increments: whether versions hold only what changed since the version before.

use std::fmt;
use std::str::FromStr;

/// The rule for versions of variables saved exactly that hold only what changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncrementMode {
    /// None: every version holds all values.
    Off,
    /// All that may be coded against a version before. Changes are found by hashes, or told by an
    /// owner that announces its writes.
    Hash,
    /// The versions for which finding the changes costs less than it saves.
    #[default]
    Auto,
}

impl IncrementMode {
    /// All modes.
    pub const ALL: [Self; 3] = [Self::Off, Self::Hash, Self::Auto];

    /// Returns the name on the command line and in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Hash => "hash",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for IncrementMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text names no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("increments {found}: expected off, hash or auto")]
pub struct UnknownIncrementMode {
    /// The text given.
    pub found: String,
}

impl FromStr for IncrementMode {
    type Err = UnknownIncrementMode;

    fn from_str(text: &str) -> Result<Self, UnknownIncrementMode> {
        let found = || UnknownIncrementMode { found: text.to_owned() };
        Self::ALL.into_iter().find(|mode| mode.name() == text).ok_or_else(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_has_one_name_and_another_word_is_named() {
        for mode in IncrementMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        let error = "always".parse::<IncrementMode>().unwrap_err();
        assert_eq!(error.to_string(), "increments always: expected off, hash or auto");
    }
}
