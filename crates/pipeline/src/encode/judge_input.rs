//! The vectors of one version as judges see them: where they rest, or brought near once, singles as
//! doubles.

use recoup_core::{AfarError, HeldValues, VariableRecord};

use crate::error::PipelineError;
use crate::error::afar_error;
use crate::staging::Buffer;
use crate::staging::Staged;
use crate::staging::padded_len;
use crate::verify::{HeldVector, JudgedVector};

/// A variable brought near, in memory that is used again.
#[derive(Debug)]
pub(crate) struct NearCopy {
    /// The variable that was brought near for this version.
    name: Option<String>,
    values: Buffer,
    /// The values of a vector of singles as doubles.
    widened: Vec<f64>,
    fault: Option<AfarError>,
    /// Bytes fetched since the version was begun.
    fetched_bytes: u64,
}

impl NearCopy {
    pub(crate) fn new() -> Self {
        Self { name: None, values: Buffer::F64(Vec::new()), widened: Vec::new(), fault: None, fetched_bytes: 0 }
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

    /// Returns the values of a staged vector, brought near once for each version.
    ///
    /// A rank whose fetch fails gets zeros and takes part in what all ranks measure;
    /// [`EncoderSource::check`] is its error, which goes into the next agreement of the ranks.
    pub(crate) fn of<'a>(&'a mut self, staged: &'a Staged) -> EncoderSource<'a> {
        let record = &staged.record;
        let is_new = self.name.as_ref() != Some(&record.name);
        if is_new {
            self.name = Some(record.name.clone());
            self.fault = None;
            if let Some(held) = staged.held() {
                self.fetch(held, record);
            }
        }
        let near = staged.near().unwrap_or(&self.values);
        let len = record.len as usize;
        let doubles = match near {
            Buffer::F32(_) if !is_new => &self.widened,
            near => near.doubles(len, &mut self.widened),
        };
        EncoderSource { staged, near: Some(near), doubles, fault: self.fault.clone() }
    }

    fn fetch(&mut self, held: &dyn HeldValues, record: &VariableRecord) {
        let len = padded_len(record);
        self.values.retype(record.element);
        self.values.resize(len);
        self.fault = held.fetch(0, self.values.slice_mut(0, len)).err();
        if self.fault.is_some() {
            self.values.zero();
        }
        self.fetched_bytes += (len * record.element.size()) as u64;
    }
}

/// A staged variable as its encoder and its judge see it.
#[derive(Clone, Debug)]
pub(crate) struct EncoderSource<'a> {
    pub(crate) staged: &'a Staged,
    /// All values, padded; `None` where they rest elsewhere and nothing here needs all of them.
    pub(crate) near: Option<&'a Buffer>,
    /// The values of a vector without their padding, for judges; none where it is not brought near.
    doubles: &'a [f64],
    fault: Option<AfarError>,
}

impl<'a> EncoderSource<'a> {
    /// Takes a staged variable as it is.
    pub(crate) fn staged(staged: &'a Staged) -> Self {
        Self { staged, near: staged.near(), doubles: &[], fault: None }
    }

    /// Returns the vector as a judge sees it: where it rests, or as [`NearCopy`] has it.
    pub(crate) fn vector(&self) -> JudgedVector<'a> {
        match (self.near, self.staged.held()) {
            (None, Some(values)) => JudgedVector::Held(HeldVector { values, record: &self.staged.record }),
            _ => JudgedVector::Near(self.doubles),
        }
    }

    /// Returns whether the values could be brought near.
    ///
    /// # Errors
    /// [`PipelineError::Afar`] where not; the values are zeros then.
    pub(crate) fn check(&self) -> Result<(), PipelineError> {
        self.fault.clone().map_or(Ok(()), |fault| Err(afar_error(&self.staged.record)(fault)))
    }
}
