//! A tape's choices, as the Python half hands them over.

use std::path::PathBuf;

use pyo3::prelude::*;
use recoup::compress;
use recoup::core::{Bound, BoundRule, CodecId};
use recoup::model::units::bytes;
use recoup::tape::{PageSize, Tape, TapeBuilder};

use crate::options::quantity;
use crate::refused;

/// Keyword arguments of `Tape` that the library takes, by their names.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TapeArguments {
    device: String,
    host: String,
    spill: Option<PathBuf>,
    spill_bytes: Option<String>,
    codec: Option<String>,
    bound: Option<String>,
    key_every: usize,
    /// Extents, the fastest first.
    grid: Option<[usize; 3]>,
    threads: usize,
    reopen: bool,
    clear: bool,
    pages: String,
}

impl TapeArguments {
    /// Describes the tape.
    ///
    /// # Errors
    /// [`crate::Error`] for the first value that is out of its range.
    pub(crate) fn builder(self) -> PyResult<TapeBuilder> {
        if self.key_every == 0 {
            return Err(refused("key_every is 0: expected a count of at least 1"));
        }
        let [device, host] = [room("device", &self.device)?, room("host", &self.host)?];
        let mut builder = Tape::builder().device(device).host(host).threads(self.threads).key_every(self.key_every);
        builder = builder.pages(page_size(&self.pages)?);
        if let Some(directory) = &self.spill {
            builder = builder.spill(directory);
        } else if self.spill_bytes.is_some() || self.reopen || self.clear {
            return Err(refused("spill_bytes, reopen and clear belong to a directory: give spill"));
        }
        if let Some(size) = &self.spill_bytes {
            builder = builder.spill_bytes(quantity("spill_bytes", size, bytes)?);
        }
        builder = match (self.reopen, self.clear) {
            (true, true) => {
                return Err(refused("reopen keeps the states that are there, clear removes them: give one"));
            }
            (true, false) => builder.reopen(),
            (false, true) => builder.clear(),
            (false, false) => builder,
        };
        if let Some(dims) = self.grid {
            builder = builder.grid(dims);
        }
        match &self.codec {
            Some(name) => coded(builder, name, self.bound.as_deref()),
            None if self.bound.is_some() => Err(refused("a bound needs a codec: give codec=\"qb\"")),
            None if self.key_every > 1 => Err(refused("key_every needs a codec: give codec=\"qb\"")),
            None => Ok(builder),
        }
    }
}

fn coded(builder: TapeBuilder, name: &str, bound: Option<&str>) -> PyResult<TapeBuilder> {
    let codec = CodecId::chosen(name).and_then(compress::codec).map_err(refused)?;
    Ok(builder.codec(codec, bound.map_or(Ok(Bound::Lossless), state_bound)?))
}

/// Reads the bytes of a memory, 0 for none.
fn room(name: &str, size: &str) -> PyResult<u64> {
    if size == "0" { Ok(0) } else { quantity(name, size, bytes) }
}

/// Returns the bound of each state, which does not follow a residual: there is none.
fn state_bound(text: &str) -> PyResult<Bound> {
    match text.parse::<BoundRule>() {
        Ok(BoundRule::Fixed(bound)) => Ok(bound),
        Ok(_) => Err(refused(format!("bound {text} follows a residual: expected absolute:V, range:V or pointwise:V"))),
        Err(error) => Err(refused(error)),
    }
}

fn page_size(name: &str) -> PyResult<PageSize> {
    match name {
        "huge" => Ok(PageSize::Huge),
        "small" => Ok(PageSize::Small),
        other => Err(refused(format!("pages {other}: expected huge or small"))),
    }
}
