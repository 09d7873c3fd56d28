//! One rank's part of a version, and the manifest that all parts make.

use recoup_core::{
    Bound, BoundRule, CommError, CommonError, Draft, ErrorKind, FORMAT_VERSION, FileRecord, Fingerprint, Frame,
    FrameRecord, Manifest, NextCall, RankFailure, ResidualRecord, Scheme, StoreError, SystemRecord, VariableRecord,
};
use serde::{Deserialize, Serialize};

use super::context::CheckpointJob;
use crate::error::PipelineError;
use crate::verify::Suspicion;

/// The fields that all manifests of a run share.
pub(crate) struct RunIdentity {
    pub(crate) name: String,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) nonzeros: Option<u64>,
    pub(crate) system: Option<SystemRecord>,
}

/// The residuals of a version.
pub(crate) struct VersionResiduals {
    /// Residual of the only column, or of the one with the most left to do.
    pub(crate) whole: ResidualRecord,
    /// Residuals of the columns of a block.
    pub(crate) columns: Vec<ResidualRecord>,
}

/// The reason why a version was not made.
pub(crate) enum CheckpointFailure {
    /// The version was given up.
    Aborted,
    /// The iterate is corrupted; found before the draft was begun, on all ranks alike.
    Suspicious(Suspicion),
    /// An error.
    Failed(PipelineError),
}

impl From<PipelineError> for CheckpointFailure {
    fn from(error: PipelineError) -> Self {
        match error {
            PipelineError::Aborted => Self::Aborted,
            error => Self::Failed(error),
        }
    }
}

impl From<StoreError> for CheckpointFailure {
    fn from(error: StoreError) -> Self {
        PipelineError::from(error).into()
    }
}

impl<E> From<CommonError<E>> for CheckpointFailure
where
    PipelineError: From<E>,
{
    fn from(error: CommonError<E>) -> Self {
        PipelineError::from(error.into_inner()).into()
    }
}

impl From<CommError> for CheckpointFailure {
    fn from(error: CommError) -> Self {
        PipelineError::from(error).into()
    }
}

/// One rank's part of a manifest.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct VersionPart {
    variables: Vec<VariableRecord>,
    frames: Vec<FrameRecord>,
    files: Vec<FileRecord>,
    state: PartState,
}

/// The state of a rank's part.
#[derive(Default, Serialize, Deserialize)]
enum PartState {
    /// Durable.
    #[default]
    Sealed,
    /// Given up.
    Aborted,
    /// The part was not written, for this reason.
    Failed(RankFailure),
}

impl VersionPart {
    /// Takes the part that a rank has sealed, or why it has none.
    pub(crate) fn of(rank: usize, sealed: Result<Self, CheckpointFailure>) -> Self {
        let state = match sealed {
            Ok(part) => return part,
            Err(CheckpointFailure::Aborted) => PartState::Aborted,
            Err(CheckpointFailure::Suspicious(suspicion)) => {
                PartState::Failed(RankFailure { rank, kind: ErrorKind::Damaged, message: suspicion.to_string() })
            }
            Err(CheckpointFailure::Failed(error)) => PartState::Failed(RankFailure::of(rank, &error)),
        };
        Self { state, ..Self::default() }
    }

    pub(crate) fn payload_bytes(&self) -> u64 {
        self.frames.iter().map(|f| f.payload_bytes).sum()
    }
}

/// This rank's draft of a version. A rank without one continues encoding, as verification is
/// collective.
pub(crate) enum DraftState {
    Open(PartDraft),
    Lost(CheckpointFailure),
}

/// Frames of a variable on their way to a draft, in run order.
pub(crate) struct WrittenFrames<'a, 'f> {
    pub(crate) frames: &'a mut [Frame<'f>],
    /// The variable has more frames behind these.
    pub(crate) has_more: bool,
}

impl<'a, 'f> WrittenFrames<'a, 'f> {
    /// Takes all frames of a variable.
    pub(crate) fn all(frames: &'a mut [Frame<'f>]) -> Self {
        Self { frames, has_more: false }
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

    /// Returns the call that follows the writing of frames of the next variable.
    pub(crate) fn next_call(&self, frames: &WrittenFrames<'_, '_>) -> NextCall {
        if frames.has_more { NextCall::Frames } else { NextCall::after(self.part.variables.len(), self.n_variables) }
    }

    /// Takes note of frames that were written, and of the variable with its last frames.
    pub(crate) fn record(&mut self, variable: &VariableRecord, written: &WrittenFrames<'_, '_>) {
        self.part.frames.extend(written.frames.iter().map(|f| f.record.clone()));
        if !written.has_more {
            self.part.variables.push(variable.clone());
        }
    }

    /// Makes the part durable.
    pub(crate) fn seal(mut self) -> Result<VersionPart, StoreError> {
        self.part.files = self.draft.seal()?.files;
        Ok(self.part)
    }
}

/// Returns why the version of these parts, of all ranks, cannot be published; `None` where every
/// rank has sealed its own.
pub(crate) fn first_failure(parts: &[VersionPart]) -> Option<CheckpointFailure> {
    if parts.iter().any(|part| matches!(part.state, PartState::Aborted)) {
        return Some(CheckpointFailure::Aborted);
    }
    parts.iter().find_map(|part| match &part.state {
        PartState::Failed(failure) => Some(PipelineError::Rank(failure.clone()).into()),
        PartState::Sealed | PartState::Aborted => None,
    })
}

impl RunIdentity {
    /// Makes the manifest of a version from the parts of all ranks.
    pub(crate) fn manifest(
        &self,
        job: &CheckpointJob,
        parts: Vec<VersionPart>,
        residuals: VersionResiduals,
    ) -> Manifest {
        let is_lossy = job.plan.scheme == Scheme::Lossy;
        let is_converged = job.progress.is_converged() && !is_lossy;
        let mut manifest = Manifest {
            format: FORMAT_VERSION,
            name: self.name.clone(),
            version: job.progress.iteration,
            ranks: parts.len(),
            fingerprint: self.fingerprint,
            nonzeros: self.nonzeros.filter(|_| job.method.is_some()),
            method: job.method.map(str::to_owned),
            scheme: job.plan.scheme,
            resume: job.plan.resume,
            rule: if is_lossy { job.plan.rule } else { BoundRule::Fixed(Bound::Lossless) },
            residual: ResidualRecord { is_converged, ..residuals.whole },
            columns: residuals.columns,
            system: self.system,
            extra_iterations_predicted: job.predicted,
            measured: job.measured.clone(),
            variables: Vec::new(),
            frames: Vec::new(),
            files: Vec::new(),
        };
        for part in parts {
            manifest.variables.extend(part.variables);
            manifest.frames.extend(part.frames);
            manifest.files.extend(part.files);
        }
        manifest
    }
}
