//! Many systems in one run: a time loop solves one after the other, and every version says of which
//! it is.
//!
//! Promises: versions are numbered through the whole run, so that the newest has the largest
//! number; an iterate of one system is never restored into another. Must not know where A and b
//! come from.

use recoup_core::{Progress, SystemRecord};

use crate::error::PipelineError;

/// The systems of a run, as far as this process has met them.
#[derive(Debug, Default)]
pub(crate) struct Systems {
    /// The system being solved; `None` where the run has one system only, or none yet.
    pub(crate) here: Option<SystemRecord>,
    /// The first system that this process has begun.
    first: Option<u64>,
    /// The system of the version that was restored last.
    restored: Option<SystemRecord>,
    /// The largest number of a version or a state so far.
    newest: u64,
    /// The number of the last state, or of the one that the solve went back to.
    latest: u64,
}

impl Systems {
    /// Returns a state of the solve under its number in the run.
    ///
    /// # Errors
    /// [`PipelineError::IterationOrder`] for a counter that began again.
    pub(crate) fn numbered(&mut self, progress: Progress) -> Result<Progress, PipelineError> {
        let iteration = progress.iteration.saturating_add(self.start());
        if iteration < self.latest {
            let before = self.latest.saturating_sub(self.start());
            return Err(PipelineError::IterationOrder { found: progress.iteration, before });
        }
        self.latest = iteration;
        self.newest = self.newest.max(iteration);
        Ok(Progress { iteration, ..progress })
    }

    /// Takes note that the solve continues from the state of this number: later ones follow it.
    pub(crate) fn went_back(&mut self, number: u64) {
        self.latest = number;
    }

    /// Returns the number of the state that the solve started from.
    pub(crate) fn start(&self) -> u64 {
        self.here.map_or(0, |system| system.start)
    }

    /// Returns whether nothing was restored, and no system begun: versions that are there are not
    /// known yet.
    pub(crate) fn is_fresh(&self) -> bool {
        self.here.is_none() && self.newest == 0
    }

    /// Takes note of the newest version that is there: later ones have larger numbers.
    pub(crate) fn found(&mut self, version: u64) {
        self.newest = self.newest.max(version);
    }

    /// Takes note of a restored version.
    pub(crate) fn restored(&mut self, version: u64, system: Option<SystemRecord>) {
        self.found(version);
        self.restored = system;
    }

    /// Continues with a system.
    pub(crate) fn begin(&mut self, record: SystemRecord) {
        self.first.get_or_insert(record.index);
        self.went_back(record.start);
        self.here = Some(record);
    }

    /// Returns whether this process has begun a system.
    pub(crate) fn has_begun(&self, index: u64) -> bool {
        self.first.zip(self.here).is_some_and(|(first, here)| (first..=here.index).contains(&index))
    }

    /// Returns the record of a system that is begun now.
    pub(crate) fn next(&self, index: u64) -> Result<SystemRecord, PipelineError> {
        if let Some(here) = self.here.filter(|here| here.index >= index) {
            return Err(PipelineError::SystemOrder { found: index, before: here.index });
        }
        let again = self.restored.filter(|restored| restored.index == index);
        Ok(again.unwrap_or(SystemRecord { index, start: self.newest }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(iteration: u64) -> Progress {
        Progress::running(iteration, 1.0, 1.0)
    }

    #[test]
    fn versions_are_numbered_through_all_systems() {
        let mut systems = Systems::default();
        systems.begin(systems.next(0).unwrap());
        assert_eq!(systems.numbered(at(7)).unwrap().iteration, 7);
        systems.begin(systems.next(3).unwrap());
        assert_eq!(systems.here, Some(SystemRecord { index: 3, start: 7 }));
        assert_eq!(systems.numbered(at(2)).unwrap().iteration, 9);
        assert!(matches!(systems.next(3), Err(PipelineError::SystemOrder { found: 3, before: 3 })));
        assert!(matches!(systems.next(1), Err(PipelineError::SystemOrder { found: 1, before: 3 })));
    }

    #[test]
    fn a_system_that_is_gone_on_with_keeps_its_numbers() {
        let mut systems = Systems::default();
        systems.restored(40, Some(SystemRecord { index: 5, start: 30 }));
        assert_eq!(systems.next(5).unwrap(), SystemRecord { index: 5, start: 30 });
        assert_eq!(systems.next(6).unwrap(), SystemRecord { index: 6, start: 40 });
        systems.begin(systems.next(5).unwrap());
        assert!(systems.has_begun(5) && !systems.has_begun(4) && !systems.has_begun(6));
    }

    /// A time loop that counted from 1 in each step saved nothing after its first one, without a
    /// word: no version was ever due again.
    #[test]
    fn a_counter_that_begins_again_is_refused_unless_the_solve_went_back() {
        let mut systems = Systems::default();
        for iteration in [1, 2, 2, 6] {
            assert_eq!(systems.numbered(at(iteration)).unwrap().iteration, iteration);
        }
        let refused = systems.numbered(at(1)).unwrap_err();
        assert!(matches!(refused, PipelineError::IterationOrder { found: 1, before: 6 }));
        assert!(refused.to_string().contains("`systems`"), "{refused}");
        systems.went_back(3);
        assert!(systems.numbered(at(2)).is_err() && systems.numbered(at(4)).is_ok());
        systems.begin(systems.next(0).unwrap());
        assert_eq!(systems.numbered(at(1)).unwrap().iteration, 7);
        assert!(matches!(systems.numbered(at(0)), Err(PipelineError::IterationOrder { found: 0, before: 1 })));
    }
}
