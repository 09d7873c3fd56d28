//! Messages between a session and its worker.

use recoup_core::SystemRecord;

use super::job::CheckpointJob;
use super::registry::StagingNeed;
use crate::costs::Outcome;
use crate::encode::Base;
use crate::staging::StagingRule;
use crate::staging::StagingSet;
use crate::verify::Verifier;

/// A request to the worker, which serves them in order.
pub(crate) enum Work {
    /// Makes a version.
    Make(Box<CheckpointJob>),
    /// Makes the memory of a staging set.
    Prepare { staging: StagingSet, needs: Vec<StagingNeed>, rule: StagingRule },
    /// Makes versions of another system.
    System { verifier: Box<Verifier>, record: SystemRecord },
    /// Continues from a restored version, or from none.
    Restart(Base),
}

/// The worker's answer: the buffers to be used again, and the outcome of a version.
pub(crate) struct Done {
    /// `None` where only memory was made.
    pub(crate) outcome: Option<Outcome>,
    pub(crate) staging: StagingSet,
}
