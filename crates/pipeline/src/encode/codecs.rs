//! The codecs of a session.

use std::num::NonZero;
use std::sync::Arc;

use recoup_core::{Codec, CodecError, CodecId};

/// The source of codecs: a codec wrapped to keep its bound, or the reason why there is none.
pub type CodecTable = fn(CodecId) -> Result<Arc<dyn Codec>, CodecError>;

/// Codecs, and the threads they may work on.
#[derive(Clone, Copy, Debug)]
pub struct Codecs {
    /// The source of codecs.
    pub table: CodecTable,
    /// Threads they may work on while the solver waits; behind its back they take one. The copy of
    /// the variables takes as many.
    pub threads: usize,
}

impl Codecs {
    /// Makes codecs that work on this rank's part of the process' cores, which all `ranks` share.
    #[must_use]
    pub fn shared(table: CodecTable, ranks: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self { table, threads: (cores / ranks.max(1)).max(1) }
    }

    pub(crate) fn find(self, id: CodecId) -> Result<Arc<dyn Codec>, CodecError> {
        (self.table)(id)
    }
}
