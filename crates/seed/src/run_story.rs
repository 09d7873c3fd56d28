//! A run, as it tells of itself.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of a program on one rank.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankState {
    /// Bits of the values.
    pub(crate) x: Vec<u64>,
    /// The local part of `||b - A x||^2`; 0 where nothing is solved.
    pub(crate) residual_squared: f64,
}

/// States that the ranks of a run went through, by iteration and rank.
pub(crate) type States = BTreeMap<(u64, usize), Vec<RankState>>;

/// The things that a run tells of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunStory {
    pub(crate) states: States,
    /// The version that each rank restored, and its state then.
    pub(crate) restored: BTreeMap<usize, Option<(u64, RankState)>>,
    /// Versions that failed, and why.
    pub(crate) failures: Vec<String>,
    /// Values that were given out and are none that were taken.
    pub(crate) untrue: Vec<String>,
    /// Versions that are not whole.
    pub(crate) damaged: BTreeMap<u64, String>,
}

/// A story that all threads of a run tell.
pub(crate) type SharedStory = Arc<Mutex<RunStory>>;

pub(crate) fn told(story: &SharedStory) -> MutexGuard<'_, RunStory> {
    story.lock().unwrap_or_else(PoisonError::into_inner)
}
