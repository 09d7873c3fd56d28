//! Work of a schedule, counted from its actions.

use super::action::{ScheduleAction, ScheduleLevel};
use super::costs::ScheduleCosts;

/// Traffic of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTally {
    /// States stored.
    pub writes: u64,
    /// States given to the program, kept or not.
    pub reads: u64,
    /// The most states that are stored at a time.
    pub states_max: u64,
    states: u64,
}

/// Work of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduleTally {
    /// Forward steps, with those that make the data for the reverse.
    pub forward_steps: u64,
    /// Traffic of memory.
    pub memory: LevelTally,
    /// Traffic of the disk.
    pub disk: LevelTally,
}

impl ScheduleTally {
    /// Counts the actions of a stream.
    #[must_use]
    pub fn of(actions: impl IntoIterator<Item = ScheduleAction>) -> Self {
        let mut tally = Self::default();
        for action in actions {
            tally.add(action);
        }
        tally
    }

    /// Adds an action.
    pub fn add(&mut self, action: ScheduleAction) {
        match action {
            ScheduleAction::Advance { from, to, .. } => self.forward_steps += to - from,
            ScheduleAction::Write { level, .. } => {
                let level = self.level(level);
                level.writes += 1;
                level.states += 1;
                level.states_max = level.states_max.max(level.states);
            }
            ScheduleAction::Read { level, .. } => self.level(level).reads += 1,
            ScheduleAction::Take { level, .. } => {
                let level = self.level(level);
                level.reads += 1;
                level.states = level.states.saturating_sub(1);
            }
            ScheduleAction::Reverse { .. } | ScheduleAction::End => {}
        }
    }

    /// Returns the seconds of forward steps, writes and reads.
    #[must_use]
    pub fn seconds(&self, costs: &ScheduleCosts) -> f64 {
        let traffic = [(self.memory, costs.memory), (self.disk, costs.disk)];
        let of_levels = traffic
            .into_iter()
            .map(|pair| pair.0.writes as f64 * pair.1.write_seconds + pair.0.reads as f64 * pair.1.read_seconds);
        self.forward_steps as f64 * costs.forward_seconds + of_levels.sum::<f64>()
    }

    fn level(&mut self, level: ScheduleLevel) -> &mut LevelTally {
        match level {
            ScheduleLevel::Memory => &mut self.memory,
            ScheduleLevel::Disk => &mut self.disk,
        }
    }
}
