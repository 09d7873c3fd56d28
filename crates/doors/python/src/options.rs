//! A session's choices, as the Python half hands them over.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use pyo3::prelude::*;
use recoup::cache::TierList;
use recoup::core::{BoundRule, CodecId, MethodProfile, Resume, Scheme, short_number};
use recoup::model::Interval;
use recoup::model::units::{ParseQuantityError, bytes, bytes_per_second, count, duration};
use recoup::options::{OPTION_KEYS, option_in_path};
use recoup::solvers::METHODS;
use recoup::{Builder, Drain, TierOptions};

use crate::refused;

/// Keyword arguments of `Session`, all of them, by their names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SessionOptions {
    name: String,
    scheme: Option<String>,
    interval: Option<String>,
    mtti: String,
    bound: String,
    theta: Option<f64>,
    delta: Option<f64>,
    resume: Option<String>,
    lossy_codec: Option<String>,
    lossless_codec: Option<String>,
    keep: String,
    max_bytes: Option<String>,
    key_every: String,
    increments: String,
    threads: Option<String>,
    rtol: f64,
    synchronous: bool,
    same_operator: bool,
    systems: bool,
    bandwidth: Option<String>,
    method: Option<String>,
    tiers: Option<String>,
    memory_dir: Option<PathBuf>,
    pfs_every: Option<String>,
    drain: Option<String>,
}

impl SessionOptions {
    /// Returns whether A and b of each system are given later.
    pub(crate) fn has_systems(&self) -> bool {
        self.systems
    }

    fn interval(&self) -> PyResult<Interval> {
        self.interval.as_deref().map_or(Ok(Interval::Auto), parsed)
    }

    /// Returns the scheme that is always used; `None` if costs decide.
    ///
    /// # Errors
    /// [`crate::Error`] for a word that names none, and for `auto` where it cannot decide.
    pub(crate) fn scheme(&self, has_operator: bool) -> PyResult<Option<Scheme>> {
        let interval = self.interval()?;
        let Some(asked) = self.scheme.as_deref() else { return Ok(recoup::default_scheme(interval, has_operator)) };
        Ok(Some(match asked {
            "auto" if !has_operator => return Err(refused("scheme auto needs A and b: give them, or name a scheme")),
            "auto" => return Ok(None),
            "none" => Scheme::None,
            "traditional" => Scheme::Traditional,
            "exact" => Scheme::Exact,
            "lossless" => Scheme::Lossless,
            "lossy" => Scheme::Lossy,
            other => {
                let expected = "expected auto, none, traditional, exact, lossless or lossy";
                return Err(refused(format!("scheme {other}: {expected}")));
            }
        }))
    }

    /// Makes these choices.
    ///
    /// # Errors
    /// [`crate::Error`] for the first value that is out of its range.
    pub(crate) fn choose(&self, builder: Builder, has_operator: bool) -> PyResult<Builder> {
        above_zero("rtol", self.rtol)?;
        let mtti = quantity("mtti", &self.mtti, duration)?;
        let mut builder = builder
            .name(&self.name)
            .mtti(Duration::try_from_secs_f64(mtti).unwrap_or(Duration::MAX))
            .bound(parsed::<BoundRule>(&self.bound)?)
            .keep(quantity("keep", &self.keep, count)?)
            .key_every(quantity("key_every", &self.key_every, count)?)
            .increments(parsed(&self.increments)?)
            .tolerance(self.rtol)
            .synchronous(self.synchronous)
            .same_operator(self.same_operator)
            .interval(self.interval()?);
        if self.systems {
            builder = builder.systems();
        }
        if let Some(theta) = self.theta {
            builder = builder.theta(above_zero("theta", theta)?);
        }
        if let Some(delta) = self.delta {
            builder = builder.delta(above_zero("delta", delta)?);
        }
        if let Some(method) = &self.method {
            builder = builder.method(profile(method)?);
        }
        if let Some(tiers) = self.tier_options()? {
            builder = builder.tier_options(tiers);
        }
        builder = match self.scheme(has_operator)? {
            Some(scheme) => builder.scheme(scheme),
            None => builder.auto(),
        };
        if let Some(resume) = &self.resume {
            builder = builder.lossy_resume(resume_of(resume)?);
        }
        if let Some(codec) = &self.lossy_codec {
            let codec = CodecId::chosen(codec).map_err(refused)?;
            if let BoundRule::Fixed(bound) = parsed(&self.bound)? {
                codec.check_bound(bound).map_err(refused)?;
            }
            builder = builder.lossy_codec(codec);
        }
        if let Some(codec) = &self.lossless_codec {
            let codec = CodecId::chosen(codec).map_err(refused)?;
            codec.check_exact().map_err(refused)?;
            builder = builder.lossless_codec(codec);
        }
        if let Some(size) = &self.max_bytes {
            builder = builder.max_bytes(quantity("max_bytes", size, bytes)?);
        }
        if let Some(threads) = &self.threads {
            builder = builder.threads(quantity("threads", threads, count)?);
        }
        if let Some(bandwidth) = &self.bandwidth {
            builder = builder.bandwidth(quantity("bandwidth", bandwidth, bytes_per_second)?);
        }
        Ok(builder)
    }

    /// The tiers, where some are named.
    ///
    /// # Errors
    /// [`crate::Error`] for words that are no tiers, and for options of tiers without any.
    fn tier_options(&self) -> PyResult<Option<TierOptions>> {
        let Some(words) = &self.tiers else {
            let options = [self.memory_dir.is_some(), self.pfs_every.is_some(), self.drain.is_some()];
            if options.contains(&true) {
                return Err(refused("memory_dir, pfs_every and drain belong to tiers: give tiers=\"memory,pfs\""));
            }
            return Ok(None);
        };
        let list: TierList = words.parse().map_err(|error| refused(format!("tiers: {error}")))?;
        let mut tiers = TierOptions::from(list);
        if let Some(directory) = &self.memory_dir {
            tiers.memory_dir.clone_from(directory);
        }
        if let Some(every) = &self.pfs_every {
            tiers.pfs_every = every.parse().map_err(|error| refused(format!("pfs_every {error}")))?;
        }
        tiers.drain = self.drain.as_deref().map(parsed::<Drain>).transpose()?;
        Ok(Some(tiers))
    }

    /// Returns the relative residual at which a solve has converged.
    pub(crate) fn rtol(&self) -> f64 {
        self.rtol
    }

    /// Returns the run whose memory may be forgotten, where it has tiers; opens nothing.
    ///
    /// # Errors
    /// [`crate::Error`] as of [`SessionOptions::choose`].
    pub(crate) fn memory_of(&self, dir: &Path) -> PyResult<Option<Builder>> {
        let builder = recoup::open(dir).name(&self.name);
        Ok(self.tier_options()?.map(|tiers| builder.tier_options(tiers)))
    }
}

/// Returns the numbers of a method that the library knows by name.
///
/// # Errors
/// [`crate::Error`] with the names.
pub(crate) fn profile(name: &str) -> PyResult<MethodProfile> {
    let found = METHODS.iter().find(|method| method.name == name).map(|method| method.profile);
    let names: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
    found.ok_or_else(|| refused(format!("method {name}: expected one of {}", names.join(", "))))
}

fn resume_of(name: &str) -> PyResult<Resume> {
    match name {
        "restarted" => Ok(Resume::Restarted),
        "deflated" => Ok(Resume::Deflated),
        "recurrence" => Ok(Resume::Traditional),
        other => Err(refused(format!("resume {other}: expected restarted, deflated or recurrence"))),
    }
}

/// Refuses a directory whose name is a string of options.
///
/// # Errors
/// [`crate::Error`] with the way options are given.
pub(crate) fn check_directory(dir: &Path) -> PyResult<()> {
    let name = dir.to_string_lossy();
    let Some(option) = option_in_path(&name, OPTION_KEYS) else { return Ok(()) };
    let how = format!("{option} reads like an option, and options are arguments, as in Session(\"ckpt\", keep=3)");
    Err(refused(format!("directory {name}: {how}; make it first if this is its name")))
}

/// Reads a quantity as Python gave it: a number in the unit of the argument, or one with a unit.
///
/// # Errors
/// [`crate::Error`] that names it.
pub(crate) fn quantity<T>(
    name: &str,
    text: &str,
    read: impl FnOnce(&str) -> Result<T, ParseQuantityError>,
) -> PyResult<T> {
    read(text).map_err(|error| refused(format!("{name} is {text}: {error}")))
}

/// Reads the seconds of a duration in words.
#[pyfunction]
pub(crate) fn seconds_of(name: &str, text: &str) -> PyResult<f64> {
    quantity(name, text, duration)
}

/// Reads the bytes of a size in words.
#[pyfunction]
pub(crate) fn bytes_of(name: &str, text: &str) -> PyResult<u64> {
    quantity(name, text, bytes)
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(refused)
}

/// Returns the value, if it is a finite number above 0.
///
/// # Errors
/// [`crate::Error`] that names it.
pub(crate) fn above_zero(name: &str, value: f64) -> PyResult<f64> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(refused(format!("{name} is {}, expected a finite number above 0", short_number(value))))
    }
}
