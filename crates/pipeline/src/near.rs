//! Values that rest elsewhere, brought near: a whole variable for a judge that measures here, or
//! one frame for a codec that encodes here.
//!
//! Promises: what is brought near is padded as staging pads, so the bytes made of it are the same.

use recoup_core::{AfarError, ElementType, HeldValues, VariableRecord};

use crate::PipelineError;
use crate::staging::{Buffer, Staged, afar_error, frame_len, frames};

/// A variable brought near, in memory that is used again.
#[derive(Debug)]
pub(crate) struct NearCopy {
    /// The variable that was brought near for this version.
    name: Option<String>,
    values: Buffer,
    fault: Option<AfarError>,
    /// Bytes fetched since the version was begun.
    fetched_bytes: u64,
}

impl NearCopy {
    pub(crate) fn new() -> Self {
        Self { name: None, values: Buffer::F64(Vec::new()), fault: None, fetched_bytes: 0 }
    }

    /// Forgets what was brought near: another version begins.
    pub(crate) fn begin(&mut self) {
        self.name = None;
        self.fault = None;
        self.fetched_bytes = 0;
    }

    /// Returns the bytes fetched for this version.
    pub(crate) fn fetched_bytes(&self) -> u64 {
        self.fetched_bytes
    }

    /// Returns the values of a staged variable, brought near once for each version.
    ///
    /// A rank whose fetch fails gets zeros and takes part in what all ranks measure;
    /// [`EncoderSource::check`] is its error, which goes into the next agreement of the ranks.
    pub(crate) fn of<'a>(&'a mut self, staged: &'a Staged) -> EncoderSource<'a> {
        let record = &staged.record;
        let Some(held) = staged.held() else { return EncoderSource::staged(staged) };
        if self.name.as_ref() != Some(&record.name) {
            self.name = Some(record.name.clone());
            self.fault = fetch_padded(held, 0, frames(record) * frame_len(record), &mut self.values).err();
            self.fetched_bytes += bytes(record, held.len());
        }
        EncoderSource { staged, near: Some(&self.values), fault: self.fault.clone() }
    }
}

/// A staged variable as its encoder and its judge see it here.
#[derive(Clone, Debug)]
pub(crate) struct EncoderSource<'a> {
    pub(crate) staged: &'a Staged,
    /// All values, padded; `None` where they rest elsewhere and nothing here needs all of them.
    pub(crate) near: Option<&'a Buffer>,
    fault: Option<AfarError>,
}

impl<'a> EncoderSource<'a> {
    /// Takes a staged variable as it is.
    pub(crate) fn staged(staged: &'a Staged) -> Self {
        Self { staged, near: staged.near(), fault: None }
    }

    /// Returns the doubles of the variable without their padding; none when they are no doubles.
    pub(crate) fn doubles(&self) -> &'a [f64] {
        self.near.map_or(&[], |values| values.doubles(self.staged.record.len as usize))
    }

    /// Returns whether the values could be brought near.
    ///
    /// # Errors
    /// [`PipelineError::Afar`] where not; the values are zeros then.
    pub(crate) fn check(&self) -> Result<(), PipelineError> {
        self.fault.clone().map_or(Ok(()), |fault| Err(afar_error(&self.staged.record)(fault)))
    }
}

/// Returns whether a variable is a vector of doubles, this many.
pub(crate) fn is_vector(record: &VariableRecord, rows: usize) -> bool {
    record.element == ElementType::F64 && record.len as usize == rows
}

/// Fetches one frame of a held variable, padded; returns the bytes fetched.
pub(crate) fn fetch_frame(
    held: &dyn HeldValues,
    record: &VariableRecord,
    run: usize,
    target: &mut Buffer,
) -> Result<u64, PipelineError> {
    let len = frame_len(record);
    fetch_padded(held, run * len, len, target).map_err(afar_error(record))?;
    Ok(bytes(record, len.min(held.len() - run * len)))
}

/// Fetches values from `start` on, and repeats the last one up to `len`. After an error all are
/// zeros.
fn fetch_padded(held: &dyn HeldValues, start: usize, len: usize, target: &mut Buffer) -> Result<(), AfarError> {
    let there = len.min(held.len() - start);
    target.retype(held.element());
    target.resize(len);
    let fetched = held.fetch(start, target.slice_mut(0, there));
    match fetched {
        Ok(()) => target.pad(there),
        Err(_) => target.zero(),
    }
    fetched
}

fn bytes(record: &VariableRecord, len: usize) -> u64 {
    (len * record.element.size()) as u64
}
