//! One rank's part of a version, on its way to the store and to its part of the manifest.

use recoup_core::{
    Comm, CommError, Draft, ErrorKind, FileRecord, Frame, FrameRecord, NextCall, RankFailure, StoreError,
    VariableRecord, gather_json,
};

/// One rank's part of a manifest.
#[derive(Default)]
pub(crate) struct VersionPart {
    pub(crate) variables: Vec<VariableRecord>,
    pub(crate) frames: Vec<FrameRecord>,
    pub(crate) files: Vec<FileRecord>,
}

impl VersionPart {
    pub(crate) fn payload_bytes(&self) -> u64 {
        self.frames.iter().map(|f| f.payload_bytes).sum()
    }
}

/// One rank's part of a version, on its way to the store.
pub(crate) struct PartDraft {
    pub(crate) draft: Box<dyn Draft>,
    /// Variables the version holds.
    n_variables: usize,
    part: VersionPart,
}

impl PartDraft {
    pub(crate) fn new(draft: Box<dyn Draft>, n_variables: usize) -> Self {
        Self { draft, n_variables, part: VersionPart::default() }
    }

    /// Returns the call that follows the writing of frames of the next variable, which may have
    /// more behind these.
    pub(crate) fn next_call(&self, has_more: bool) -> NextCall {
        if has_more { NextCall::Frames } else { NextCall::after(self.part.variables.len(), self.n_variables) }
    }

    /// Takes note of frames that were written, and of the variable with its last frames.
    pub(crate) fn record(&mut self, variable: &VariableRecord, frames: &[Frame<'_>], has_more: bool) {
        self.part.frames.extend(frames.iter().map(|f| f.record.clone()));
        if !has_more {
            self.part.variables.push(variable.clone());
        }
    }

    /// Makes the part durable.
    pub(crate) fn seal(mut self) -> Result<VersionPart, StoreError> {
        self.part.files = self.draft.seal()?.files;
        Ok(self.part)
    }
}

/// Returns this rank's part if every rank has sealed its own, else why the version cannot be
/// published: it was given up, or the first rank failed. Collective.
pub(crate) fn all_sealed(
    comm: &dyn Comm,
    part: Result<VersionPart, RankFailure>,
) -> Result<Result<VersionPart, RankFailure>, CommError> {
    let failure = part.as_ref().err().cloned();
    if comm.max(i64::from(failure.is_some()))? == 0 {
        return Ok(part);
    }
    let failures: Vec<RankFailure> = gather_json(comm, &failure)?.into_iter().flatten().collect();
    let given_up = failures.iter().find(|failure| failure.kind == ErrorKind::GivenUp);
    Ok(given_up.or(failures.first()).cloned().map_or(part, Err))
}
