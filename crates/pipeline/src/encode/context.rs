//! The surroundings of every step of the worker: codecs, store, ranks, clock, and the sign to give
//! up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use recoup_core::{Clock, Comm, Store};

use super::codecs::Codecs;
use crate::error::PipelineError;

/// The surroundings of the worker, the same for all versions.
pub(crate) struct WorkerContext {
    pub(crate) codecs: Codecs,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) comm: Box<dyn Comm>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Set from outside to give up between two frames.
    pub(crate) abort: Arc<AtomicBool>,
}

impl WorkerContext {
    /// Returns whether the version under way is to be given up.
    pub(crate) fn is_aborted(&self) -> bool {
        self.abort.load(Ordering::Acquire)
    }

    /// Refuses to continue with a version that is to be given up: what is sealed or written after
    /// the memory is lost counts for nothing.
    pub(crate) fn check_abort(&self) -> Result<(), PipelineError> {
        if self.is_aborted() { Err(PipelineError::Aborted) } else { Ok(()) }
    }
}
