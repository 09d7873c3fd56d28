//! The codec of a tape, wherever states meet it.

use std::sync::Arc;

use recoup_core::{Bound, Codec};

/// The codec of a tape, and its settings.
#[derive(Clone)]
pub(crate) struct CodingSettings {
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) bound: Bound,
    /// Threads that encode and decode a state.
    pub(crate) threads: usize,
    /// Distance of states that are coded alone; the others follow the one before.
    pub(crate) key_every: usize,
}
