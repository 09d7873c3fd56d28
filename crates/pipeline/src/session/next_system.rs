//! The step from one system to the next, in a run that solves many.

use recoup_core::{CommonError, StoreError, SystemRecord, each, from_rank_0};

use super::step::Session;
use crate::error::PipelineError;
use crate::verify::Reference;
use crate::verify::{ResidualHistory, Verifier};

/// The place of a version among the systems of a run.
pub(crate) enum SystemOfVersion {
    /// The version is of the system at hand, as far as its number says.
    Same,
    /// The version is of a system that this process has left behind.
    LeftBehind,
    /// The version is of a system that this process has not begun.
    Other(SystemRecord),
}

impl Session {
    /// Begins the next system of a run that solves many, one after the other: a time step, say.
    /// Every version belongs to the system it was taken in, with the fingerprint of its A and b.
    /// Iterations count from 0 in each system. Intervals and costs continue. Collective.
    ///
    /// A program that is started again restores the variables that A and b are made from first,
    /// with [`Session::restore_with`], before any system is begun: [`crate::Restored::system`] says
    /// which system to begin. Then [`Session::restore`] finds the state of its solve.
    ///
    /// # Errors
    /// [`PipelineError::SystemOrder`] for a number that is not above that of the system before,
    /// [`PipelineError::Solve`] for right-hand sides of another length, and those of the operator.
    pub fn begin_system(&mut self, index: u64, problem: Reference) -> Result<(), PipelineError> {
        let record = self.systems.next(index).and_then(|record| self.wait().map(|()| record));
        let record = each(self.comm.as_ref(), record)?;
        let verifier = Verifier::new(problem, self.comm.as_ref())?;
        self.problem = Some(verifier.problem(self.same_operator()));
        self.link.begin_system(verifier, record)?;
        self.systems.begin(record);
        self.residuals = ResidualHistory::new(self.residuals.kind);
        self.decisions.registry.forget();
        self.report_columns(&[]);
        self.computing();
        Ok(())
    }

    /// Returns the system being solved; `None` before the first.
    #[must_use]
    pub fn system(&self) -> Option<SystemRecord> {
        self.systems.here
    }

    /// Returns where a version stands among the systems, as rank 0 sees it; one whose manifest
    /// cannot be read is looked at more closely elsewhere. Collective.
    pub(crate) fn system_of(&self, version: u64) -> Result<SystemOfVersion, CommonError<StoreError>> {
        let Some(here) = self.systems.here else { return Ok(SystemOfVersion::Same) };
        let read = || Ok::<_, StoreError>(self.store.manifest(version).ok().and_then(|manifest| manifest.system));
        Ok(match from_rank_0(self.comm.as_ref(), read)? {
            None => SystemOfVersion::Same,
            Some(there) if there.index == here.index => SystemOfVersion::Same,
            Some(there) if self.systems.has_begun(there.index) => SystemOfVersion::LeftBehind,
            Some(there) => SystemOfVersion::Other(there),
        })
    }
}
