//! A session's choices, as the Python half hands them over.

use std::str::FromStr;
use std::time::Duration;

use pyo3::prelude::*;
use recoup::Builder;
use recoup::core::{BoundRule, CodecId, Resume, Scheme};
use recoup::model::Interval;

use crate::refused;

/// Keyword arguments of `Session`, all of them, by their names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    name: String,
    scheme: Option<String>,
    interval: Option<String>,
    mtti: f64,
    bound: String,
    theta: f64,
    delta: f64,
    resume: Option<String>,
    lossy_codec: Option<String>,
    lossless_codec: Option<String>,
    keep: usize,
    max_bytes: Option<u64>,
    key_every: usize,
    threads: Option<usize>,
    rtol: f64,
    synchronous: bool,
    same_operator: bool,
    bandwidth: Option<f64>,
}

impl Options {
    fn interval(&self) -> PyResult<Interval> {
        self.interval.as_deref().map_or(Ok(Interval::Auto), parsed)
    }

    /// The scheme that is always used; `None` where costs decide.
    ///
    /// # Errors
    /// [`crate::Error`] for a word that names none, and for `auto` where it cannot decide.
    pub(crate) fn scheme(&self, has_operator: bool) -> PyResult<Option<Scheme>> {
        let interval = self.interval()?;
        let Some(asked) = self.scheme.as_deref() else { return Ok(recoup::default_scheme(interval, has_operator)) };
        Ok(Some(match asked {
            "auto" if interval != Interval::Auto => {
                return Err(refused("scheme auto chooses the interval too: leave one of them out"));
            }
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
        above_zero("mtti", self.mtti)?;
        above_zero("rtol", self.rtol)?;
        above_zero("theta", self.theta)?;
        above_zero("delta", self.delta)?;
        let mut builder = builder
            .name(&self.name)
            .mtti(Duration::try_from_secs_f64(self.mtti).map_err(refused)?)
            .bound(parsed::<BoundRule>(&self.bound)?)
            .theta(self.theta)
            .delta(self.delta)
            .keep(self.keep)
            .key_every(self.key_every)
            .tolerance(self.rtol)
            .synchronous(self.synchronous)
            .same_operator(self.same_operator)
            .interval(self.interval()?);
        if let Some(scheme) = self.scheme(has_operator)? {
            builder = builder.scheme(scheme);
        }
        if let Some(resume) = &self.resume {
            builder = builder.lossy_resume(resume_of(resume)?);
        }
        if let Some(codec) = &self.lossy_codec {
            builder = builder.lossy_codec(parsed::<CodecId>(codec)?);
        }
        if let Some(codec) = &self.lossless_codec {
            builder = builder.lossless_codec(parsed::<CodecId>(codec)?);
        }
        if let Some(bytes) = self.max_bytes {
            builder = builder.max_bytes(bytes);
        }
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if let Some(bandwidth) = self.bandwidth {
            builder = builder.bandwidth(above_zero("bandwidth", bandwidth)?);
        }
        Ok(builder)
    }
}

fn resume_of(name: &str) -> PyResult<Resume> {
    match name {
        "restarted" => Ok(Resume::Restarted),
        "deflated" => Ok(Resume::Deflated),
        other => Err(refused(format!("resume {other}: expected restarted or deflated"))),
    }
}

fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(refused)
}

/// The value, where it is a finite number above 0.
///
/// # Errors
/// [`crate::Error`] that names it.
pub(crate) fn above_zero(name: &str, value: f64) -> PyResult<f64> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(refused(format!("{name} is {value}, expected a finite number above 0")))
    }
}
