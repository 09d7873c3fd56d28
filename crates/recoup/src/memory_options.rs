//! The options string of a versioned memory: `file=/dev/shm/heat.memory keep=4 interval=10it`. The
//! C interface opens memories by it, and annotated programs carry it.

use std::path::PathBuf;
use std::str::FromStr;

use recoup_memory::{MediumKind, MemoryOptions, SavePolicy, first_bytes};
use recoup_model::units::{ParseQuantityError, bytes, count, duration};

use crate::options::{OptionsError, path, refuse, words};

/// Every key, for the message about an unknown one.
const KEYS: &str = "file, keep, block, medium, interval, mtti";

/// The rule by which a version is due, as the options say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PaceRule {
    /// After this number of steps.
    Steps(u64),
    /// By a policy.
    Policy(SavePolicy),
}

impl FromStr for PaceRule {
    type Err = ();

    /// Understands steps as in `20it`, and what [`SavePolicy`] understands: also seconds without
    /// their unit.
    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(steps) = text.strip_suffix("it") {
            return steps.parse().ok().filter(|steps| *steps > 0).map(Self::Steps).ok_or(());
        }
        let text = if text.parse::<f64>().is_ok() { format!("{text}s") } else { text.to_owned() };
        text.parse().map(Self::Policy).map_err(|_| ())
    }
}

/// The options of a memory that are given; the others have their defaults.
///
/// ```
/// use recoup::memory_options::FileOptions;
///
/// let options: FileOptions = "file=heat.memory keep=4 interval=10it".parse()?;
/// assert_eq!(options.memory.keep, 4);
/// assert!("file=heat.memory interval=often".parse::<FileOptions>().is_err());
/// # Ok::<(), recoup::options::OptionsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct FileOptions {
    /// The file.
    pub file: PathBuf,
    /// Settings of it.
    pub memory: MemoryOptions,
    interval: PaceRule,
    mtti_seconds: Option<f64>,
}

impl FromStr for FileOptions {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
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
    fn set(&mut self, key: &str, value: &str) -> Result<(), OptionsError> {
        let expected = |what: &str| refuse(format!("{key}={value}: expected {what}"));
        let quantity = |error: ParseQuantityError| expected(error.expected);
        match key {
            "file" => self.file = path(key, value, KEYS)?.into(),
            "keep" => self.memory.keep = count(value).map_err(quantity)?,
            "block" => {
                let size = usize::try_from(bytes(value).map_err(quantity)?).unwrap_or(usize::MAX);
                first_bytes(size).map_err(|error| refuse(format!("{key}={value}: {error}")))?;
                self.memory.block_bytes = size;
            }
            "medium" => self.memory.medium = medium(value).ok_or_else(|| expected("auto, file or map"))?,
            "interval" => {
                let what = "auto, young, daly, greedy, a duration above 0 as in 30s or 10min, or steps as in 20it";
                self.interval = value.parse().map_err(|()| expected(what))?;
            }
            "mtti" => self.mtti_seconds = Some(duration(value).map_err(quantity)?),
            _ => return Err(refuse(format!("unknown key {key:?}: expected one of {KEYS}"))),
        }
        Ok(())
    }

    /// Returns the rule by which versions are due.
    #[must_use]
    pub fn pace(&self) -> PaceRule {
        match (self.interval, self.mtti_seconds) {
            (PaceRule::Policy(policy), Some(mtti_seconds)) => PaceRule::Policy(policy.with_mtti(mtti_seconds)),
            (rule, _) => rule,
        }
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

    #[test]
    fn rules_are_understood() {
        let rule = |text: &str| text.parse::<PaceRule>();
        assert_eq!(rule("20it"), Ok(PaceRule::Steps(20)));
        let every = |interval_seconds| Ok(PaceRule::Policy(SavePolicy::Every { interval_seconds }));
        assert_eq!([rule("90"), rule("1.5min")], [every(90.0), every(90.0)]);
        assert_eq!(rule("greedy"), Ok(PaceRule::Policy(SavePolicy::Greedy)));
        for bad in ["0it", "it", "-3", "often", ""] {
            assert_eq!(rule(bad), Err(()), "{bad}");
        }
    }

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
        let message = |text: &str| text.parse::<FileOptions>().unwrap_err().to_string();
        for bad in ["keep=0", "block=much", "block=5", "medium=tape", "interval=0it", "mtti=-1"] {
            assert!(message(&format!("file=f {bad}")).starts_with(bad), "{bad}");
        }
        assert!(message("keep=3").starts_with("file=FILE is missing"));
        assert!(message("file=f blocks=3").contains("\"blocks\""));
    }
}
