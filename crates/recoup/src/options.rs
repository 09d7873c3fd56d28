//! The options string of a session: `dir=ckpt name=solve scheme=lossy interval=20it`, the words of
//! the program's flags. The C interface opens sessions by it.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use recoup_cache::{ParseTiersError, TierList};
use recoup_core::{BoundRule, CodecError, CodecId, IncrementMode, MethodProfile, Resume, Scheme};
use recoup_model::Interval;
use recoup_model::units::{ParseQuantityError, bytes, bytes_per_second, count, duration};
use recoup_solvers::METHODS;

use crate::roll_call::{HANG_LIMIT_VARIABLE, hang_limit, hang_limit_of_environment};
use crate::{Builder, Drain, JobEnd, Nodes, PfsEvery, RTOL, TierOptions, default_scheme};

/// The keys of an options string that describes a session, as messages list them.
pub const OPTION_KEYS: &str = "dir, name, scheme, codec, bound, theta, delta, interval, state, keep, max-bytes, \
                               key-every, increments, threads, sync, stay, systems, same-operator, mtti, rtol, \
                               pfs-bandwidth, tiers, memory-dir, node-ranks, pfs-every, drain, method, \
                               time-limit, hang-limit";

/// Returns the first part of a path that reads like an option of `keys`, which a list separates by
/// commas. `dir=x,interval=10it` would otherwise make a directory of the name `x,interval=10it`.
/// What exists under that name is taken.
///
/// ```
/// use recoup::options::{OPTION_KEYS, option_in_path};
///
/// assert_eq!(option_in_path("x,interval=10it", OPTION_KEYS), Some("interval=10it"));
/// assert_eq!(option_in_path("runs/n=32,dt=0.1", OPTION_KEYS), None);
/// ```
#[must_use]
pub fn option_in_path<'a>(path: &'a str, keys: &str) -> Option<&'a str> {
    let is_key = |text: &str| keys.split(", ").any(|key| key == text.replace('_', "-"));
    let is_option = |part: &&str| part.split_once('=').is_some_and(|(key, _)| is_key(key));
    let found = path.split([',', ';', ' ', '\t', '\n']).find(is_option);
    found.filter(|_| !Path::new(path).exists())
}

/// The reason why an options string is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(pub String);

/// The options of a session that are given; the others have their defaults.
///
/// ```
/// use recoup::options::ParsedOptions;
///
/// let options: ParsedOptions = "dir=ckpt scheme=lossy interval=20it".parse()?;
/// assert_eq!(options.dir, "ckpt");
/// assert!("dir=ckpt scheme=best".parse::<ParsedOptions>().is_err());
/// # Ok::<(), recoup::options::OptionsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParsedOptions {
    /// The directory of versions.
    pub dir: String,
    name: Option<String>,
    /// `Some(None)`: decided from measured costs.
    scheme: Option<Option<Scheme>>,
    codec: Option<CodecId>,
    bound: Option<BoundRule>,
    theta: Option<f64>,
    delta: Option<f64>,
    interval: Option<Interval>,
    state: Option<Resume>,
    keep: Option<usize>,
    max_bytes: Option<u64>,
    key_every: Option<usize>,
    increments: Option<IncrementMode>,
    threads: Option<usize>,
    /// The program waits for every checkpoint.
    pub is_synchronous: bool,
    /// The worker stays on the process' only core.
    stays: bool,
    /// Versions of another problem are first guesses.
    has_other_operators: bool,
    /// The run solves many systems, each of which is begun.
    pub has_systems: bool,
    mtti_seconds: Option<f64>,
    rtol: Option<f64>,
    bytes_per_second: Option<f64>,
    /// The effect of lossy versions on the method.
    method: Option<MethodProfile>,
    tiers: Option<TierList>,
    memory_dir: Option<PathBuf>,
    /// Ranks in a row that share a node.
    node_ranks: Option<usize>,
    pfs_every: Option<PfsEvery>,
    drain: Option<Drain>,
    /// Time that the program has from the opening on.
    time_limit_seconds: Option<f64>,
    /// Time that ranks may wait for each other.
    hang_limit_seconds: Option<f64>,
}

impl FromStr for ParsedOptions {
    type Err = OptionsError;

    fn from_str(text: &str) -> Result<Self, OptionsError> {
        let mut options = Self::default();
        for word in words(text)? {
            let (key, value) = word.split_once('=').unwrap_or((&word, ""));
            options.set(key, value)?;
        }
        if options.hang_limit_seconds.is_none() && options.has_directory() {
            let wrong = |error| refuse(format!("{HANG_LIMIT_VARIABLE}: {error}"));
            options.hang_limit_seconds = hang_limit_of_environment().map_err(wrong)?;
        }
        if options.dir.is_empty() {
            return Err(refuse("dir=DIRECTORY is missing".to_owned()));
        }
        options.check()?;
        Ok(options)
    }
}

impl ParsedOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), OptionsError> {
        let expected = |what: &str| refuse(format!("{key}={value}: expected {what}"));
        let quantity = |error: ParseQuantityError| expected(error.expected);
        match key.replace('_', "-").as_str() {
            "dir" => path(key, value, OPTION_KEYS)?.clone_into(&mut self.dir),
            "name" => self.name = Some(value.to_owned()),
            "scheme" => self.scheme = Some(scheme(value).ok_or_else(|| expected(SCHEMES))?),
            "codec" => self.codec = Some(codec(key, value)?),
            "bound" => self.bound = Some(value.parse().map_err(|e| refuse(format!("{key}={value}: {e}")))?),
            "theta" => self.theta = Some(positive(value).ok_or_else(|| expected(POSITIVE))?),
            "delta" => self.delta = Some(positive(value).ok_or_else(|| expected(POSITIVE))?),
            "interval" => self.interval = Some(value.parse().map_err(|_| expected(INTERVAL))?),
            "state" => self.state = Some(state(value).ok_or_else(|| expected("x, x+p, recurrence or exact"))?),
            "keep" => self.keep = Some(count(value).map_err(quantity)?),
            "max-bytes" => self.max_bytes = Some(bytes(value).map_err(quantity)?),
            "key-every" => self.key_every = Some(count(value).map_err(quantity)?),
            "increments" => self.increments = Some(value.parse().map_err(|_| expected("off, hash or auto"))?),
            "threads" => self.threads = Some(count(value).map_err(quantity)?),
            "sync" if matches!(value, "" | "yes" | "no") => self.is_synchronous = value != "no",
            "stay" if matches!(value, "" | "yes" | "no") => self.stays = value != "no",
            "systems" if matches!(value, "" | "yes" | "no") => self.has_systems = value != "no",
            "same-operator" if matches!(value, "yes" | "no") => self.has_other_operators = value == "no",
            "sync" | "stay" | "systems" | "same-operator" => return Err(expected("yes or no")),
            "time-limit" => self.time_limit_seconds = Some(duration(value).map_err(quantity)?),
            "hang-limit" => self.hang_limit_seconds = Some(hang_limit(value).map_err(quantity)?),
            "mtti" => self.mtti_seconds = Some(duration(value).map_err(quantity)?),
            "rtol" => self.rtol = Some(positive(value).ok_or_else(|| expected(POSITIVE))?),
            "pfs-bandwidth" => self.bytes_per_second = Some(bytes_per_second(value).map_err(quantity)?),
            "method" => self.method = Some(profile(value).ok_or_else(|| expected(&methods()))?),
            "tiers" => {
                self.tiers = Some(value.parse().map_err(|e: ParseTiersError| refuse(format!("{key}={value}: {e}")))?)
            }
            "memory-dir" if !value.is_empty() => self.memory_dir = Some(path(key, value, OPTION_KEYS)?.into()),
            "memory-dir" => return Err(expected("a directory in memory, such as /dev/shm")),
            "node-ranks" => self.node_ranks = Some(count(value).map_err(quantity)?),
            "pfs-every" => self.pfs_every = Some(value.parse().map_err(|_| expected("auto or a count"))?),
            "drain" => self.drain = Some(value.parse().map_err(|_| expected("skip, wait or off"))?),
            _ => return Err(refuse(format!("unknown key {key:?}: expected one of {OPTION_KEYS}"))),
        }
        Ok(())
    }

    /// Refuses options that contradict each other, or do nothing without others.
    fn check(&self) -> Result<(), OptionsError> {
        let of_tiers =
            [self.memory_dir.is_some(), self.node_ranks.is_some(), self.pfs_every.is_some(), self.drain.is_some()];
        if self.tiers.is_none() && of_tiers.contains(&true) {
            let what = "memory-dir, node-ranks, pfs-every and drain belong to tiers: give tiers=memory,pfs";
            return Err(refuse(what.to_owned()));
        }
        if self.hang_limit_seconds.is_some() && !self.has_directory() {
            let what = "hang-limit needs the directory, in which ranks say that they wait: give tiers=memory,pfs";
            return Err(refuse(what.to_owned()));
        }
        let Some(codec) = self.codec else { return Ok(()) };
        let refused = |what: String| move |error: CodecError| refuse(format!("{what}: {error}"));
        if let Some(BoundRule::Fixed(bound)) = self.bound {
            codec.check_bound(bound).map_err(refused(format!("bound={bound}")))?;
        }
        match self.scheme {
            Some(Some(scheme @ (Scheme::Lossless | Scheme::Exact))) => {
                codec.check_exact().map_err(refused(format!("scheme={scheme}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the scheme asked for. Otherwise it is lossy, or decided from costs, if there is an
    /// operator to verify a bound with, and lossless if there is none.
    fn scheme(&self, has_operator: bool) -> Option<Scheme> {
        let interval = self.interval.unwrap_or(Interval::Auto);
        self.scheme.unwrap_or_else(|| default_scheme(interval, has_operator))
    }

    /// Returns whether nothing can be decided, or the bound cannot be kept, without an operator.
    #[must_use]
    pub fn needs_operator(&self) -> bool {
        let is_fixed = matches!(self.bound, Some(BoundRule::Fixed(_)));
        matches!(self.scheme, Some(None)) || (!is_fixed && self.scheme == Some(Some(Scheme::Lossy)))
    }

    /// Returns the end of the program's time, if one is known. Its time limit begins now.
    #[must_use]
    pub fn job_end(&self) -> Option<JobEnd> {
        JobEnd::known(
            self.time_limit_seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)),
        )
    }

    /// Returns the time that ranks may wait for each other before the job ends with code 75.
    #[must_use]
    pub fn hang_limit(&self) -> Option<Duration> {
        self.hang_limit_seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Returns whether versions are written to the directory, at once or behind memory.
    #[must_use]
    pub fn has_directory(&self) -> bool {
        self.tiers.as_ref().is_none_or(|tiers| tiers.pfs)
    }

    /// Returns the name of the run.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("solve")
    }

    /// Returns the builder of the session they describe.
    #[must_use]
    pub fn builder(&self, has_operator: bool) -> Builder {
        let interval = self.interval.unwrap_or(Interval::Auto);
        let mut builder = crate::open(&self.dir).name(self.name()).interval(interval).pin_worker(self.stays);
        builder = builder.same_operator(!self.has_other_operators);
        builder = match self.scheme(has_operator) {
            Some(scheme) => builder.scheme(scheme),
            None => builder.auto(),
        };
        if self.has_systems {
            builder = builder.systems();
        }
        if let Some(codec) = self.codec {
            builder = builder.codec(codec);
        }
        if let Some(resume) = self.state {
            builder = builder.resume(resume);
        }
        if let Some(seconds) = self.mtti_seconds {
            builder = builder.mtti(Duration::from_secs_f64(seconds.min(1e15)));
        }
        if let Some(rate) = self.bytes_per_second {
            builder = builder.bandwidth(rate);
        }
        builder = self.method.into_iter().fold(builder, Builder::method);
        if let Some(tiers) = self.tier_options() {
            builder = builder.tier_options(tiers);
        }
        builder = self.bound.into_iter().fold(builder, Builder::bound);
        builder = self.theta.into_iter().fold(builder, Builder::theta);
        builder = self.delta.into_iter().fold(builder, Builder::delta);
        builder = self.keep.into_iter().fold(builder, Builder::keep);
        builder = self.max_bytes.into_iter().fold(builder, Builder::max_bytes);
        builder = self.key_every.into_iter().fold(builder, Builder::key_every);
        builder = self.increments.into_iter().fold(builder, Builder::increments);
        builder = self.threads.into_iter().fold(builder, Builder::threads);
        self.rtol.into_iter().fold(builder, Builder::tolerance)
    }

    /// Returns the tiers, if some are named.
    fn tier_options(&self) -> Option<TierOptions> {
        let mut tiers = TierOptions::from(self.tiers.clone()?);
        if let Some(directory) = &self.memory_dir {
            tiers.memory_dir.clone_from(directory);
        }
        if let Some(ranks) = self.node_ranks {
            tiers.nodes = Nodes::Ranks(ranks);
        }
        tiers.pfs_every = self.pfs_every.unwrap_or_default();
        tiers.drain = self.drain;
        Some(tiers)
    }

    /// Lets versions count once the directory has them: drains behind a version make collective
    /// calls of their own, which no call of the program would serve.
    pub fn drain_at_once(&mut self) {
        self.drain = Some(Drain::Off);
    }

    /// Returns whether memory that outlives the process is among the tiers.
    #[must_use]
    pub fn has_memory(&self) -> bool {
        self.tiers.as_ref().is_some_and(|tiers| tiers.memory)
    }

    /// Returns the relative residual at which a solve has converged.
    #[must_use]
    pub fn rtol(&self) -> f64 {
        self.rtol.unwrap_or(RTOL)
    }

    /// Returns the scheme of a checkpoint for which nothing was decided.
    #[must_use]
    pub fn scheme_now(&self, has_operator: bool) -> Scheme {
        self.scheme(has_operator).unwrap_or(Scheme::Lossless)
    }
}

const SCHEMES: &str = "none, traditional, exact, lossless, lossy or auto";
const POSITIVE: &str = "a number above 0";
const INTERVAL: &str = "auto, a duration above 0 as in 30s or 10min, or iterations above 0 as in 15it";

pub(crate) fn refuse(message: String) -> OptionsError {
    OptionsError(message)
}

fn scheme(text: &str) -> Option<Option<Scheme>> {
    Some(match text {
        "none" => Some(Scheme::None),
        "traditional" => Some(Scheme::Traditional),
        "exact" => Some(Scheme::Exact),
        "lossless" => Some(Scheme::Lossless),
        "lossy" => Some(Scheme::Lossy),
        "auto" => None,
        _ => return None,
    })
}

/// The profile of a method that the library knows by name.
fn profile(text: &str) -> Option<MethodProfile> {
    METHODS.iter().find(|method| method.name == text).map(|method| method.profile)
}

fn methods() -> String {
    let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    format!("one of {}", names.join(", "))
}

fn state(text: &str) -> Option<Resume> {
    match text {
        "x" => Some(Resume::Restarted),
        "x+p" => Some(Resume::Deflated),
        "recurrence" => Some(Resume::Traditional),
        "exact" => Some(Resume::Exact),
        _ => None,
    }
}

fn positive(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| *value > 0.0 && value.is_finite())
}

/// Reads a path of an options string, which is no place for the options behind it.
///
/// # Errors
/// [`OptionsError`] where it reads like an option of `keys`, as [`option_in_path`] has it.
pub fn path<'a>(key: &str, value: &'a str, keys: &str) -> Result<&'a str, OptionsError> {
    let Some(option) = option_in_path(value, keys) else { return Ok(value) };
    let how = format!("white space separates options, as in \"{key}=PATH {option}\"");
    Err(refuse(format!("{key}={value}: {how}; make it first if this is its name")))
}

/// Reads the name of a codec.
///
/// # Errors
/// [`OptionsError`] with the names that there are.
pub fn codec(key: &str, value: &str) -> Result<CodecId, OptionsError> {
    CodecId::chosen(value).map_err(|error| refuse(format!("{key}={value}: {error}")))
}

/// Returns the words between white space, which double quotes keep together.
///
/// # Errors
/// [`OptionsError`] where a quote is not closed.
pub fn words(text: &str) -> Result<Vec<String>, OptionsError> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut is_quoted = false;
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    if is_quoted { Err(refuse("a double quote is not closed".to_owned())) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        text.parse::<ParsedOptions>().unwrap_err().0
    }

    #[test]
    fn every_key_is_understood() {
        let text = "dir=\"a b\" name=n scheme=lossy codec=qb bound=verified theta=0.5 delta=0.1 interval=20it state=x+p \
                    keep=3 key-every=5 increments=hash threads=2 sync=yes stay same_operator=no mtti=3600 rtol=1e-8 pfs_bandwidth=1e8 \
                    tiers=memory,partner:ring1,pfs memory-dir=/dev/shm node-ranks=2 pfs-every=4 drain=wait time-limit=2h hang-limit=10min";
        let options: ParsedOptions = text.parse().unwrap();
        assert_eq!((options.dir.as_str(), options.name.as_deref()), ("a b", Some("n")));
        assert_eq!(options.scheme, Some(Some(Scheme::Lossy)));
        assert_eq!(
            (options.keep, options.key_every, options.threads, options.is_synchronous),
            (Some(3), Some(5), Some(2), true)
        );
        assert!(options.stays && options.has_other_operators);
    }

    /// The bytes of a directory were read as a count of versions: more than 65535 were refused.
    #[test]
    fn directories_may_take_more_than_65535_bytes() {
        for (text, expected) in [("70000", 70_000), ("2GiB", 2 << 30)] {
            let options: ParsedOptions = format!("dir=d max-bytes={text}").parse().unwrap();
            assert_eq!(options.max_bytes, Some(expected));
        }
        assert!(message("dir=d max-bytes=many").starts_with("max-bytes=many: expected bytes"));
    }

    #[test]
    fn unknown_keys_and_impossible_values_are_refused_by_name() {
        assert!(message("dir=d intervall=3").contains("\"intervall\""));
        assert!(message("name=n").contains("dir="));
        for bad in [
            "theta=-1",
            "theta=nan",
            "keep=0",
            "interval=0it",
            "scheme=lossyy",
            "codec=x",
            "state=y",
            "bound=z",
            "same-operator=maybe",
            "tiers=disk",
            "tiers=pfs,memory",
            "drain=never",
            "pfs-every=0",
            "hang-limit=1ms",
        ] {
            assert!(message(&format!("dir=d {bad}")).starts_with(bad), "{bad}");
        }
        assert!(message("dir=\"d").contains("quote"));
        assert!(message("dir=d tiers=memory hang-limit=1h").contains("needs the directory"));
    }

    /// `mtti=12h` was refused here, as the page for PETSc recommends it, and an interval with the
    /// scheme auto.
    #[test]
    fn options_strings_take_and_refuse_what_the_other_doors_do() {
        for line in include_str!("../../../tests/data/option_values.txt").lines().filter(|l| !l.starts_with('#')) {
            let (verdict, options) = line.split_once(' ').unwrap();
            let parsed = format!("dir=d {options}").parse::<ParsedOptions>();
            assert_eq!(parsed.is_ok(), verdict == "takes", "{line}: {parsed:?}");
        }
        let options: ParsedOptions = "dir=d mtti=12h pfs-bandwidth=1GB/s".parse().unwrap();
        assert_eq!((options.mtti_seconds, options.bytes_per_second), (Some(43_200.0), Some(1e9)));
    }

    /// QB, named for lossy versions, coded lossless ones too, which the program leaves to zstd.
    #[test]
    fn a_codec_for_bounds_leaves_lossless_versions_to_zstd() {
        let of = |text: &str, scheme| text.parse::<ParsedOptions>().unwrap().builder(true).plan_of(scheme).codec;
        assert_eq!(of("dir=d codec=qb", Scheme::Lossless), CodecId::Zstd);
        assert_eq!(of("dir=d codec=pco", Scheme::Lossless), CodecId::Pco);
        assert!(message("dir=d codec=qb scheme=lossless").contains("under an error bound only"));
        assert!(message("dir=d drain=wait").contains("belong to tiers"));
    }

    /// `dir=x,interval=10it` made a directory of that name.
    #[test]
    fn options_with_commas_between_are_no_path() {
        let refused = message("dir=x,interval=10it");
        assert!(refused.contains("white space separates options, as in \"dir=PATH interval=10it\""), "{refused}");
        assert!(message("dir=d tiers=memory memory-dir=/dev/shm;pfs_every=2").contains("pfs_every=2"));
        assert!("dir=runs/n=32,dt=0.1".parse::<ParsedOptions>().is_ok());
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("x,theta=1");
        assert!(format!("dir={}", there.display()).parse::<ParsedOptions>().is_err());
        std::fs::create_dir(&there).unwrap();
        assert!(format!("dir={}", there.display()).parse::<ParsedOptions>().is_ok());
    }

    /// Every method got the numbers of CG, whatever it was.
    #[test]
    fn a_method_brings_its_own_numbers_and_a_given_one_wins() {
        let plan = |text: &str| text.parse::<ParsedOptions>().unwrap().builder(true).plan_of(Scheme::Lossy);
        for method in METHODS {
            let plan = plan(&format!("dir=d method={}", method.name));
            assert_eq!((plan.theta, plan.resume), (method.profile.theta, method.profile.lossy_resume), "{method:?}");
        }
        assert_eq!(plan("dir=d").theta, MethodProfile::UNKNOWN.theta);
        assert_eq!(plan("dir=d method=gmres theta=0.25").theta, 0.25);
        assert!(message("dir=d method=cgs").contains("gmres"));
    }

    #[test]
    fn scheme_follows_from_what_is_there() {
        let of = |text: &str| text.parse::<ParsedOptions>().unwrap();
        assert_eq!(of("dir=d").scheme(false), Some(Scheme::Lossless));
        assert_eq!(of("dir=d").scheme(true), None);
        assert_eq!(of("dir=d interval=5it").scheme(true), Some(Scheme::Lossy));
        assert!(of("dir=d scheme=lossy").needs_operator());
        assert!(!of("dir=d scheme=lossy bound=absolute:1e-6").needs_operator());
    }
}
