//! Store all: the forward data of every step is kept, and nothing is computed again.
//!
//! The problem: reverse `n` steps if all their data fits. The program takes `n` forward steps. Each
//! is recorded, and the records are used last first, so they may be stored on a tape: a push for an
//! advance, a pop for a reverse.

use super::action::{ScheduleAction, ScheduleError};

/// The actions of a program that keeps everything.
#[derive(Clone, Debug)]
pub struct StoreAll {
    steps: u64,
    /// Actions given out.
    n_given: u64,
}

impl StoreAll {
    /// Plans `steps` steps.
    ///
    /// # Errors
    /// [`ScheduleError::NoSteps`].
    pub fn new(steps: u64) -> Result<Self, ScheduleError> {
        if steps == 0 { Err(ScheduleError::NoSteps) } else { Ok(Self { steps, n_given: 0 }) }
    }
}

impl Iterator for StoreAll {
    type Item = ScheduleAction;

    fn next(&mut self) -> Option<ScheduleAction> {
        let at = self.n_given;
        let turned = at.saturating_sub(self.steps);
        let action = if at < self.steps {
            ScheduleAction::Advance { from: at, to: at + 1, record: true }
        } else if turned < self.steps {
            ScheduleAction::Reverse { step: self.steps - 1 - turned }
        } else if turned == self.steps {
            ScheduleAction::End
        } else {
            return None;
        };
        self.n_given += 1;
        Some(action)
    }
}
