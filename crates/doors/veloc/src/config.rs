//! The configuration: the keys of VELOC's INI file, each of which the environment overrides as
//! `VELOC_<KEY>`.
//!
//! Keys that name a part recoup does not have, or does always, are accepted; where that makes a
//! difference, one line on standard error says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use recoup_core::{Bound, BoundRule};

use crate::Error;

/// The configuration: the places of versions, and how long they are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The fast directory, which is lost with its node.
    pub scratch: PathBuf,
    /// The directory that outlives the job, shared by all ranks.
    pub persistent: PathBuf,
    /// Copies to persistent storage are made behind the program.
    pub asynchronous: bool,
    /// Versions kept in scratch; `None` for all.
    pub scratch_versions: Option<usize>,
    /// Versions kept in persistent storage; `None` for all.
    pub max_versions: Option<usize>,
    /// Least time between two copies to persistent storage; `None` for no copies.
    pub persistent_interval: Option<Duration>,
    /// Longest wait for another rank's part of a copy.
    pub watchdog_interval: Duration,
    /// Bounds of the regions that may be stored with an error.
    pub lossy: BTreeMap<i32, Bound>,
}

/// A configuration, and warnings about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The configuration.
    pub config: Config,
    /// One line for each key without the effect of its name.
    pub warnings: Vec<String>,
}

/// The treatment of a key that changes nothing.
enum Idle {
    /// The same thing happens without it.
    Silent,
    /// Warned of, with the reason, unless the value asks for nothing.
    Said(&'static str),
}

/// The longest wait for another rank's part of a copy, long enough for any file system: its process
/// is lost then, and the job with it.
const WATCHDOG_DEFAULT: Duration = Duration::from_secs(3600);

/// Values that switch a part off, in any case.
const OFF: [&str; 6] = ["", "-1", "0", "false", "no", "off"];

/// Keys with a meaning here.
const KEYS: [&str; 8] = [
    "scratch",
    "persistent",
    "mode",
    "scratch_versions",
    "max_versions",
    "persistent_interval",
    "watchdog_interval",
    "lossy",
];

/// Keys of VELOC without one.
const IDLE: [(&str, Idle); 11] = [
    ("meta", Idle::Silent),
    ("threaded", Idle::Silent),
    ("max_parallelism", Idle::Silent),
    ("log_prefix", Idle::Said("messages go to standard error")),
    (
        "ec_interval",
        Idle::Said("there is no erasure coding between nodes; versions in persistent storage take its place"),
    ),
    ("failure_domain", Idle::Said("there is no erasure coding between nodes")),
    ("axl_type", Idle::Said("files are copied by recoup itself")),
    ("aggregated", Idle::Said("a version is one directory with a file per rank")),
    ("daos_pool", Idle::Said("DAOS is not supported")),
    ("daos_cont", Idle::Said("DAOS is not supported")),
    ("chksum", Idle::Silent),
];

impl Config {
    /// Reads a file, in which the environment overrides the file.
    ///
    /// # Errors
    /// [`Error::Config`] for a file that cannot be read, a line that is neither `key = value` nor
    /// `key: value`, a key that is missing, a value that is none, and the same directory for
    /// scratch and persistent.
    pub fn read(path: &Path) -> Result<Parsed, Error> {
        let refuse = |what: String| Error::Config { path: path.display().to_string(), what };
        let text = std::fs::read_to_string(path).map_err(|e| refuse(e.to_string()))?;
        let overrides = |key: &str| std::env::var(format!("VELOC_{}", key.to_ascii_uppercase())).ok();
        let parsed = Self::parse(&text, overrides).map_err(refuse)?;
        let Self { scratch, persistent, .. } = &parsed.config;
        if resolved(scratch) == resolved(persistent) {
            let same = "scratch and persistent are the same directory: two directories expected, so that no version is lost with scratch";
            return Err(refuse(format!("{same}; {}", scratch.display())));
        }
        Ok(parsed)
    }

    fn parse(text: &str, overrides: impl Fn(&str) -> Option<String>) -> Result<Parsed, String> {
        let (mut values, mut warnings) = pairs(text)?;
        for key in KEYS.iter().chain(IDLE.iter().map(|(key, _)| key)) {
            if let Some(value) = overrides(key) {
                values.insert((*key).to_owned(), value.trim().to_owned());
            }
        }
        warnings.extend(values.iter().filter_map(|(key, value)| warning(key, value)));
        let get = |key: &str| values.get(key).map(String::as_str).filter(|value| !value.is_empty());
        let need = |key: &str| get(key).ok_or_else(|| format!("key {key} is missing"));
        let config = Self {
            scratch: absolute(need("scratch")?)?,
            persistent: absolute(need("persistent")?)?,
            asynchronous: match need("mode")? {
                mode if mode.eq_ignore_ascii_case("async") => true,
                mode if mode.eq_ignore_ascii_case("sync") => false,
                other => return Err(format!("mode = {other}: sync or async expected")),
            },
            scratch_versions: versions("scratch_versions", get("scratch_versions"))?,
            max_versions: versions("max_versions", get("max_versions"))?,
            persistent_interval: match seconds("persistent_interval", get("persistent_interval"))? {
                None => Some(Duration::ZERO),
                Some(interval) => interval,
            },
            watchdog_interval: match seconds("watchdog_interval", get("watchdog_interval"))? {
                Some(Some(interval)) if !interval.is_zero() => interval,
                _ => WATCHDOG_DEFAULT,
            },
            lossy: get("lossy").map_or(Ok(BTreeMap::new()), bounds)?,
        };
        Ok(Parsed { config, warnings })
    }
}

/// Reads the pairs of a file, which may begin with the mark that editors put before UTF-8. The last
/// of a key counts; a section's name has no meaning.
fn pairs(text: &str) -> Result<(BTreeMap<String, String>, Vec<String>), String> {
    let mut values = BTreeMap::new();
    let mut warnings = Vec::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = without_comment(line);
        if line.starts_with('[') && line.ends_with(']') {
            warnings.push(format!("section {line} has no meaning"));
        } else if !line.is_empty() {
            let pair = line.split_once(['=', ':']);
            let pair = pair.ok_or_else(|| format!("line {}: neither key = value nor key: value", index + 1))?;
            let key = pair.0.trim().to_ascii_lowercase();
            let before = values.insert(key.clone(), pair.1.trim().to_owned());
            if before.is_some() && KEYS.contains(&key.as_str()) {
                warnings.push(format!("line {}: {key} is given a second time, and counts from here", index + 1));
            }
        }
    }
    Ok((values, warnings))
}

/// Removes a comment, which starts a line or follows a blank.
fn without_comment(line: &str) -> &str {
    let starts = |at: usize| line[..at].chars().next_back().is_none_or(char::is_whitespace);
    let comment = line.char_indices().find(|&(at, c)| matches!(c, '#' | ';') && starts(at));
    comment.map_or(line, |(at, _)| &line[..at]).trim()
}

fn warning(key: &str, value: &str) -> Option<String> {
    let is_off = OFF.contains(&value.to_ascii_lowercase().as_str());
    if key == "chksum" && is_off {
        return Some("chksum: checksums are always on".to_owned());
    }
    match IDLE.iter().find(|(name, _)| *name == key) {
        Some((_, Idle::Silent)) => None,
        Some((_, Idle::Said(why))) => (!is_off).then(|| format!("{key} has no effect: {why}")),
        None if KEYS.contains(&key) => None,
        None => Some(format!("unknown key {key}")),
    }
}

/// Makes a path absolute: the program may change its directory later.
fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|e| format!("{path}: {e}"))
}

/// Follows the links of a path as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    existing.map_or_else(|| path.to_owned(), |(above, real)| real.join(path.strip_prefix(above).unwrap_or(path)))
}

/// Reads a number of versions to keep; 0 keeps all.
fn versions(key: &str, value: Option<&str>) -> Result<Option<usize>, String> {
    let Some(value) = value else { return Ok(None) };
    let refuse = |_| format!("{key} = {value}: a number of versions expected, or 0 for all");
    let count: usize = value.parse().map_err(refuse)?;
    Ok(Some(count).filter(|&count| count > 0))
}

/// Reads an interval: not given, off (less than 0), or a number of seconds.
fn seconds(key: &str, value: Option<&str>) -> Result<Option<Option<Duration>>, String> {
    let Some(value) = value else { return Ok(None) };
    let seconds: i64 = value.parse().map_err(|_| format!("{key} = {value}: whole seconds or -1 expected"))?;
    Ok(Some(u64::try_from(seconds).ok().map(Duration::from_secs)))
}

/// Reads `id:bound` pairs with commas between; a bare number is an absolute bound.
fn bounds(text: &str) -> Result<BTreeMap<i32, Bound>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let refuse = || format!("lossy = {part}: id:bound expected, such as 3:1e-6 or 3:range:1e-4");
            let (id, rule) = part.split_once(':').ok_or_else(refuse)?;
            let rule = if rule.contains(':') { rule.trim().to_owned() } else { format!("absolute:{}", rule.trim()) };
            match (id.trim().parse(), rule.parse()) {
                (Ok(id), Ok(BoundRule::Fixed(bound))) => Ok((id, bound)),
                _ => Err(refuse()),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAST: &str = "scratch = /s\npersistent = /p\nmode = async\n";

    fn parse(text: &str) -> Result<Parsed, String> {
        Config::parse(text, |_| None)
    }

    #[test]
    fn least_configuration_keeps_all_and_copies_all() {
        let Parsed { config, warnings } = parse(LEAST).unwrap();
        assert_eq!((config.scratch, config.persistent), ("/s".into(), "/p".into()));
        assert!(config.asynchronous && warnings.is_empty());
        assert_eq!((config.scratch_versions, config.max_versions), (None, None));
        assert_eq!(config.persistent_interval, Some(Duration::ZERO));
    }

    #[test]
    fn every_key_is_read_and_comments_are_not() {
        let text = "# both\nscratch=/s # fast\n; no\npersistent =\t/p#1\nmode= sync\nmax_versions = 3\n\
                    scratch_versions = 0\npersistent_interval = -1\nlossy = 1:1e-3, -2:range:1e-4,\n";
        let Parsed { config, warnings } = parse(text).unwrap();
        assert_eq!((config.persistent.to_str(), config.asynchronous), (Some("/p#1"), false));
        assert_eq!((config.max_versions, config.scratch_versions, config.persistent_interval), (Some(3), None, None));
        assert_eq!(config.lossy, BTreeMap::from([(1, Bound::Absolute(1e-3)), (-2, Bound::Range(1e-4))]));
        assert_eq!(warnings, [""; 0]);
    }

    /// The first of two directories was dropped without a word, with the versions looked for there.
    #[test]
    fn key_given_twice_is_said_and_the_last_one_counts() {
        let Parsed { config, warnings } = parse(&format!("{LEAST}scratch = /other\n")).unwrap();
        assert_eq!(config.scratch, Path::new("/other"));
        assert_eq!(warnings, ["line 4: scratch is given a second time, and counts from here"]);
    }

    /// As the reader of VELOC takes them: whichever of the two signs comes first ends the key.
    #[test]
    fn colon_separates_as_an_equals_sign_does() {
        let text = "scratch: /s\npersistent : /p=1:2\nmode:async\nlossy: 1:range:1e-4\nmax_versions = 2\n";
        let Parsed { config, warnings } = parse(text).unwrap();
        assert_eq!((config.scratch, config.persistent), ("/s".into(), "/p=1:2".into()));
        assert_eq!((config.lossy, config.max_versions), (BTreeMap::from([(1, Bound::Range(1e-4))]), Some(2)));
        assert!(config.asynchronous && warnings.is_empty());
    }

    /// The two layouts met there: a process alone waited for its own lock, and versions
    /// overwrote each other.
    #[test]
    fn one_directory_for_scratch_and_persistent_is_refused_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        let read = |scratch: &str, persistent: &str| {
            let scratch = root.join(scratch);
            let persistent = root.join(persistent);
            let text = format!("scratch = {}\npersistent = {}\nmode = sync\n", scratch.display(), persistent.display());
            std::fs::write(root.join("cfg"), text).unwrap();
            Config::read(&root.join("cfg")).map(drop).map_err(|e| e.to_string())
        };
        for [scratch, persistent] in [["real", "real"], ["real/", "./real"], ["real", "link"], ["link/new", "real/new"]]
        {
            let error = read(scratch, persistent).unwrap_err();
            assert!(error.contains("scratch and persistent are the same directory"), "{error}");
        }
        read("real", "other").unwrap();
        read("real/a", "real/b").unwrap();
    }

    #[test]
    fn environment_overrides_the_file() {
        let overrides = |key: &str| (key == "mode").then(|| "sync".to_owned());
        assert!(!Config::parse(LEAST, overrides).unwrap().config.asynchronous);
    }

    /// Editors on Windows write the mark, and the first key was unknown for it.
    #[test]
    fn mark_before_the_text_and_case_of_the_mode_have_no_meaning() {
        for mode in ["sync", "SYNC", "Sync"] {
            let text = format!("\u{feff}scratch = /s\r\npersistent = /p\r\nmode = {mode}\r\nEC_INTERVAL = Off\r\n");
            let Parsed { config, warnings } = parse(&text).unwrap();
            assert_eq!((config.scratch, config.asynchronous), ("/s".into(), false));
            assert_eq!(warnings, [""; 0]);
        }
        assert!(parse("scratch = /s\npersistent = /p\nmode = ASYNC\n").unwrap().config.asynchronous);
    }

    #[test]
    fn keys_without_effect_are_named_once_and_only_where_they_ask_for_something() {
        let text = format!("{LEAST}ec_interval = 5\nec_interval = 6\naxl_type=\nfailure_domain = rack\nspeed = 9\n");
        let warnings = parse(&text).unwrap().warnings;
        assert_eq!(warnings.len(), 3, "{warnings:?}");
        assert!(parse(&format!("{LEAST}ec_interval = -1\nchksum = true\n")).unwrap().warnings.is_empty());
        assert_eq!(parse(&format!("{LEAST}chksum = false\n")).unwrap().warnings.len(), 1);
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        for (text, word) in [
            ("scratch = /s\nmode = sync\n", "persistent"),
            ("scratch = /s\npersistent = /p\n", "mode"),
            ("scratch = /s\npersistent = /p\nmode = later\n", "later"),
            ("scratch\n", "line 1"),
            (&format!("{LEAST}max_versions = many\n"), "many"),
            (&format!("{LEAST}max_versions = -1\n"), "max_versions = -1: a number of versions expected"),
            (&format!("{LEAST}scratch_versions = -3\n"), "scratch_versions = -3"),
            (&format!("{LEAST}lossy = 1\n"), "lossy"),
            (&format!("{LEAST}lossy = 1:-1e-3\n"), "lossy"),
            (&format!("{LEAST}lossy = 1:verified\n"), "lossy"),
        ] {
            assert!(parse(text).unwrap_err().contains(word), "{text}");
        }
    }
}
