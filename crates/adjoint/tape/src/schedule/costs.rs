//! Seconds that a schedule counts: a forward step, and the traffic of each level.

use super::action::{ScheduleError, ScheduleLevel};

/// Seconds that one state costs in a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AccessCost {
    /// Storing the state.
    pub write_seconds: f64,
    /// Giving the state to the program.
    pub read_seconds: f64,
}

/// Seconds that a schedule tries to save. Any other unit serves as well, if all costs have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleCosts {
    /// One forward step.
    pub forward_seconds: f64,
    /// A state in memory.
    pub memory: AccessCost,
    /// A state on disk.
    pub disk: AccessCost,
}

impl ScheduleCosts {
    /// Returns the costs of a level.
    #[must_use]
    pub fn of(&self, level: ScheduleLevel) -> AccessCost {
        match level {
            ScheduleLevel::Memory => self.memory,
            ScheduleLevel::Disk => self.disk,
        }
    }

    /// Refuses costs that no program has.
    pub(super) fn check(&self) -> Result<(), ScheduleError> {
        let costs = [
            ("the cost of a forward step", self.forward_seconds),
            ("the cost of a write to memory", self.memory.write_seconds),
            ("the cost of a read from memory", self.memory.read_seconds),
            ("the cost of a write to disk", self.disk.write_seconds),
            ("the cost of a read from disk", self.disk.read_seconds),
        ];
        match costs.into_iter().find(|cost| !(cost.1.is_finite() && cost.1 >= 0.0)) {
            Some(cost) => Err(ScheduleError::Cost { name: cost.0, value: cost.1 }),
            None => Ok(()),
        }
    }
}
