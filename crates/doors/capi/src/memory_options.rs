//! The options string of a versioned memory: `file=/dev/shm/heat.memory keep=4 interval=10it`.

use std::path::PathBuf;
use std::str::FromStr;

use recoup::memory::{MediumKind, Memory, MemoryOptions, SavePolicy};
use recoup::model::units::{ParseQuantityError, bytes, count, duration};
use recoup::options::{path, words};

use crate::memory_pace::{MemoryPace, PaceRule};
use crate::status::{CallFailure, refuse};

/// Every key, for the message about an unknown one.
const KEYS: &str = "file, keep, block, medium, interval, mtti";

/// The options given; the others have their defaults.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileOptions {
    file: PathBuf,
    memory: MemoryOptions,
    interval: PaceRule,
    mtti_seconds: Option<f64>,
}

impl FromStr for FileOptions {
    type Err = CallFailure;

    fn from_str(text: &str) -> Result<Self, CallFailure> {
        let mut options = Self {
            file: PathBuf::new(),
            memory: MemoryOptions::default(),
            interval: PaceRule::Policy(SavePolicy::default()),
            mtti_seconds: None,
        };
        for word in words(text)? {
            let (key, value) = word.split_once('=').unwrap_or((&word, ""));
            options.set(key, value)?;
        }
        if options.file.as_os_str().is_empty() {
            return Err(refuse("file=FILE is missing".to_owned()));
        }
        Ok(options)
    }
}

impl FileOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), CallFailure> {
        let expected = |what: &str| refuse(format!("{key}={value}: expected {what}"));
        let quantity = |error: ParseQuantityError| expected(error.expected);
        match key {
            "file" => self.file = path(key, value, KEYS)?.into(),
            "keep" => self.memory.keep = count(value).map_err(quantity)?,
            "block" => {
                self.memory.block_bytes = usize::try_from(bytes(value).map_err(quantity)?).unwrap_or(usize::MAX);
            }
            "medium" => self.memory.medium = medium(value).ok_or_else(|| expected("auto, file or map"))?,
            "interval" => {
                let what = "auto, young, daly, greedy, a duration above 0 as in 30s or 10min, or steps as in 20it";
                self.interval = value.parse().map_err(|_| expected(what))?;
            }
            "mtti" => self.mtti_seconds = Some(duration(value).map_err(quantity)?),
            _ => return Err(refuse(format!("unknown key {key:?}: expected one of {KEYS}"))),
        }
        Ok(())
    }

    /// Opens the file they describe.
    pub(crate) fn open(&self) -> Result<Memory, CallFailure> {
        let opened = Memory::open(&self.file, self.memory).map_err(CallFailure::from);
        opened.map_err(|failure| CallFailure {
            message: format!("{}: {}", self.file.display(), failure.message),
            ..failure
        })
    }

    /// Returns the pace of the versions they describe.
    pub(crate) fn pace(&self) -> MemoryPace {
        MemoryPace::new(match (self.interval, self.mtti_seconds) {
            (PaceRule::Policy(policy), Some(mtti_seconds)) => PaceRule::Policy(policy.with_mtti(mtti_seconds)),
            (rule, _) => rule,
        })
    }
}

fn medium(text: &str) -> Option<MediumKind> {
    match text {
        "auto" => Some(MediumKind::Auto),
        "file" => Some(MediumKind::File),
        "map" => Some(MediumKind::Map),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::RECOUP_E_OPTIONS;

    #[test]
    fn every_key_of_a_memory_is_understood() {
        let text = "file=\"a b\" keep=20 block=4KiB medium=map interval=10it mtti=1h";
        let expected = FileOptions {
            file: "a b".into(),
            memory: MemoryOptions { keep: 20, block_bytes: 4096, medium: MediumKind::Map },
            interval: PaceRule::Steps(10),
            mtti_seconds: Some(3600.0),
        };
        assert_eq!(text.parse(), Ok(expected));
    }

    #[test]
    fn impossible_options_of_a_memory_are_refused_by_name() {
        let message = |text: &str| {
            let failure = text.parse::<FileOptions>().unwrap_err();
            assert_eq!(failure.code, RECOUP_E_OPTIONS);
            failure.message
        };
        for bad in ["keep=0", "block=much", "medium=tape", "interval=0it", "mtti=-1"] {
            assert!(message(&format!("file=f {bad}")).starts_with(bad), "{bad}");
        }
        assert!(message("keep=3").starts_with("file=FILE is missing"));
        assert!(message("file=f blocks=3").contains("\"blocks\""));
    }
}
