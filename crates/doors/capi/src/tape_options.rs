//! The options string of a tape: `host=32GiB spill=states codec=qb bound=absolute:1e-6`.

use std::path::PathBuf;
use std::str::FromStr;

use recoup::compress;
use recoup::core::{Bound, BoundRule, CodecId};
use recoup::model::units::{ParseQuantityError, bytes, count};
use recoup::options::{codec, path, words};
use recoup::tape::{PageSize, Tape, TapeBuilder};

use crate::status::{CallFailure, refuse};

/// Every key, for the message about an unknown one.
const KEYS: &str =
    "device, host, spill, spill-bytes, reopen, clear, codec, bound, key-every, threads, grid, pages, lock-memory";

const BOUNDS: &str = "lossless, absolute:V, range:V or pointwise:V, with V above 0";

/// The options given; the others have their defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TapeOptions {
    device_bytes: Option<u64>,
    host_bytes: Option<u64>,
    pub(crate) spill: Option<PathBuf>,
    spill_bytes: Option<u64>,
    reopens: bool,
    clears: bool,
    codec: Option<CodecId>,
    bound: Option<Bound>,
    key_every: Option<usize>,
    threads: Option<usize>,
    dims: Option<[usize; 3]>,
    pages: Option<PageSize>,
    /// The file by which processes take turns.
    lock_memory: Option<PathBuf>,
}

impl FromStr for TapeOptions {
    type Err = CallFailure;

    fn from_str(text: &str) -> Result<Self, CallFailure> {
        let mut options = Self::default();
        for word in words(text)? {
            let (key, value) = word.split_once('=').unwrap_or((&word, ""));
            options.set(key, value)?;
        }
        options.check()?;
        Ok(options)
    }
}

impl TapeOptions {
    fn set(&mut self, key: &str, value: &str) -> Result<(), CallFailure> {
        let expected = |what: &str| refuse(format!("{key}={value}: expected {what}"));
        let quantity = |error: ParseQuantityError| expected(error.expected);
        let is_yes = || match value {
            "" | "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(expected("yes or no")),
        };
        match key.replace('_', "-").as_str() {
            "device" => self.device_bytes = Some(bytes(value).map_err(quantity)?),
            "host" => self.host_bytes = Some(bytes(value).map_err(quantity)?),
            "spill" if !value.is_empty() => self.spill = Some(path(key, value, KEYS)?.into()),
            "spill" => return Err(expected("a directory")),
            "spill-bytes" => self.spill_bytes = Some(bytes(value).map_err(quantity)?),
            "reopen" => self.reopens = is_yes()?,
            "clear" => self.clears = is_yes()?,
            "codec" => self.codec = Some(codec(key, value)?),
            "bound" => self.bound = Some(bound(value).ok_or_else(|| expected(BOUNDS))?),
            "key-every" => self.key_every = Some(count(value).map_err(quantity)?),
            "threads" => self.threads = Some(count(value).map_err(quantity)?),
            "grid" => self.dims = Some(grid(value).ok_or_else(|| expected("up to three extents, as in 100x100x50"))?),
            "pages" => {
                self.pages = Some(match value {
                    "huge" => PageSize::Huge,
                    "small" => PageSize::Small,
                    _ => return Err(expected("huge or small")),
                });
            }
            "lock-memory" if !value.is_empty() => self.lock_memory = Some(path(key, value, KEYS)?.into()),
            "lock-memory" => return Err(expected("a file by which processes take turns")),
            _ => return Err(refuse(format!("unknown key {key:?}: expected one of {KEYS}"))),
        }
        Ok(())
    }

    /// Refuses options that do nothing without others.
    fn check(&self) -> Result<(), CallFailure> {
        let needs_spill =
            [("reopen=yes", self.reopens), ("clear=yes", self.clears), ("spill-bytes", self.spill_bytes.is_some())];
        let needs_codec = [("bound", self.bound.is_some()), ("key-every", self.key_every.is_some())];
        let first = |of: &[(&'static str, bool)]| of.iter().find(|(_, is_given)| *is_given).map(|(key, _)| *key);
        if self.reopens && self.clears {
            return Err(refuse(
                "reopen=yes continues with the states that clear=yes removes: leave one out".to_owned(),
            ));
        }
        match (first(&needs_spill), first(&needs_codec)) {
            (Some(key), _) if self.spill.is_none() => Err(refuse(format!("{key}: spill=DIRECTORY is missing"))),
            (_, Some(key)) if self.codec.is_none() => Err(refuse(format!("{key}: codec=NAME is missing"))),
            _ => Ok(()),
        }
    }

    /// Makes the tape they describe.
    pub(crate) fn build(&self) -> Result<Tape, CallFailure> {
        let mut builder = Tape::builder();
        builder = self.device_bytes.into_iter().fold(builder, TapeBuilder::device);
        builder = self.host_bytes.into_iter().fold(builder, TapeBuilder::host);
        builder = self.spill.iter().fold(builder, TapeBuilder::spill);
        builder = self.spill_bytes.into_iter().fold(builder, TapeBuilder::spill_bytes);
        builder = if self.reopens { builder.reopen() } else { builder };
        builder = if self.clears { builder.clear() } else { builder };
        if let Some(id) = self.codec {
            let codec = compress::codec(id).map_err(|error| refuse(format!("codec={id}: {error}")))?;
            builder = builder.codec(codec, self.bound.unwrap_or(Bound::Lossless));
        }
        builder = self.key_every.into_iter().fold(builder, TapeBuilder::key_every);
        builder = self.threads.into_iter().fold(builder, TapeBuilder::threads);
        builder = self.dims.into_iter().fold(builder, TapeBuilder::grid);
        builder = self.pages.into_iter().fold(builder, TapeBuilder::pages);
        builder = self.lock_memory.iter().fold(builder, TapeBuilder::lock_memory);
        Ok(builder.build()?)
    }
}

fn bound(text: &str) -> Option<Bound> {
    match text.parse() {
        _ if text == "lossless" => Some(Bound::Lossless),
        Ok(BoundRule::Fixed(bound)) => Some(bound),
        _ => None,
    }
}

/// Reads `NX`, `NXxNY` or `NXxNYxNZ`.
fn grid(text: &str) -> Option<[usize; 3]> {
    let extents: Vec<usize> = text.split('x').map(|extent| extent.parse().ok()).collect::<Option<_>>()?;
    let product = extents.iter().try_fold(1_usize, |product, extent| product.checked_mul(*extent));
    let is_grid = extents.len() <= 3 && product.is_some_and(|values| (1..1 << 59).contains(&values));
    is_grid.then(|| std::array::from_fn(|axis| extents.get(axis).copied().unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::RECOUP_E_OPTIONS;

    fn message(text: &str) -> String {
        let failure = text.parse::<TapeOptions>().unwrap_err();
        assert_eq!(failure.code, RECOUP_E_OPTIONS);
        failure.message
    }

    #[test]
    fn every_key_of_a_tape_is_understood() {
        let text = "device=1GiB host=2GiB spill=\"a b\" spill_bytes=1T reopen clear=no codec=qb bound=range:1e-4 key-every=16 \
                    threads=4 grid=100x50 pages=small lock-memory=turns";
        let expected = TapeOptions {
            device_bytes: Some(1 << 30),
            host_bytes: Some(2 << 30),
            spill: Some("a b".into()),
            spill_bytes: Some(1_000_000_000_000),
            reopens: true,
            clears: false,
            codec: Some(CodecId::Qb),
            bound: Some(Bound::Range(1e-4)),
            key_every: Some(16),
            threads: Some(4),
            dims: Some([100, 50, 1]),
            pages: Some(PageSize::Small),
            lock_memory: Some("turns".into()),
        };
        assert_eq!(text.parse(), Ok(expected));
    }

    #[test]
    fn impossible_options_of_a_tape_are_refused_by_name() {
        for bad in [
            "device=0",
            "host=much",
            "host=0",
            "spill=",
            "spill-bytes=-1",
            "reopen=maybe",
            "codec=x",
            "bound=verified",
            "bound=absolute:-1",
            "key-every=0",
            "threads=many",
            "grid=0x3",
            "grid=1x2x3x4",
            "grid=4294967296x4294967296",
            "pages=large",
        ] {
            assert!(message(bad).starts_with(bad), "{bad}: {}", message(bad));
        }
        assert!(message("hots=1G").contains("\"hots\"") && message("hots=1G").contains("lock-memory"));
        assert!(message("host=1G reopen").starts_with("reopen=yes: spill="));
        assert!(message("host=1G bound=absolute:1e-3").starts_with("bound: codec="));
        assert!(message("spill=d clear reopen").contains("leave one out"));
        assert!(message("spill=d,codec=qb").contains("white space separates options"));
    }
}
