//! The last version of a run: of a solve that has converged, or of one that is asked to stop.

use recoup_core::{Plan, Progress, Registered};

use super::step::Checkpointed;
use super::step::Session;
use crate::error::PipelineError;

impl Session {
    /// Takes the last checkpoint of a run: as [`Session::checkpoint`], once all before it have an
    /// outcome, and into every tier, because any of them may be missing when the run goes
    /// on. Collective.
    ///
    /// # Errors
    /// As [`Session::step`].
    pub fn checkpoint_last(
        &mut self,
        plan: Plan,
        progress: Progress,
        owners: &[&dyn Registered],
    ) -> Result<Checkpointed, PipelineError> {
        self.wait()?;
        if let Some(tiered) = self.store.as_tiered() {
            tiered.finish();
            tiered.next_everywhere();
        }
        self.checkpoint(plan, progress, owners)
    }
}
