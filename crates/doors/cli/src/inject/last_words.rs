//! The activity of this process, for the last words of one that is about to be killed.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::ranks;

static HAS_STEPPED: AtomicBool = AtomicBool::new(false);
static HAS_EVER_STEPPED: AtomicBool = AtomicBool::new(false);
static COMMITS: AtomicU32 = AtomicU32::new(0);

/// The activity of a process; the first one, if there are several at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activity {
    /// A life has begun, and not yet stepped.
    Recovering,
    /// A version is published, behind the solver.
    Committing,
    /// Messages of an operator travel.
    Exchanging,
    /// Anything else.
    Computing,
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recovering => "recovering",
            Self::Committing => "committing",
            Self::Exchanging => "exchanging",
            Self::Computing => "computing",
        })
    }
}

impl Activity {
    /// Returns the activity at this moment.
    pub(crate) fn now() -> Self {
        if !HAS_STEPPED.load(Ordering::Relaxed) {
            Self::Recovering
        } else if COMMITS.load(Ordering::Relaxed) > 0 {
            Self::Committing
        } else if ranks::waits().has_exchange() {
            Self::Exchanging
        } else {
            Self::Computing
        }
    }
}

/// A life begins, or its first step.
pub(crate) fn has_stepped(has_stepped: bool) {
    HAS_STEPPED.store(has_stepped, Ordering::Relaxed);
    if has_stepped {
        HAS_EVER_STEPPED.store(true, Ordering::Relaxed);
    }
}

/// Returns whether a step of any life has begun.
pub(crate) fn has_ever_stepped() -> bool {
    HAS_EVER_STEPPED.load(Ordering::Relaxed)
}

/// Calls `work` as part of a commit.
pub(crate) fn committing<T>(work: impl FnOnce() -> T) -> T {
    COMMITS.fetch_add(1, Ordering::Relaxed);
    let done = work();
    COMMITS.fetch_sub(1, Ordering::Relaxed);
    done
}
