//! Words of all schedules: actions, levels, and what is refused.

/// Place where a state rests while the program is elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScheduleLevel {
    /// Memory.
    Memory,
    /// Files.
    Disk,
}

impl std::fmt::Display for ScheduleLevel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        })
    }
}

/// One thing that the program has to do. Steps are counted from 0, and "the state of step i" is all
/// that the forward program needs to take step i.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScheduleAction {
    /// Takes the forward steps `from`, `from + 1`, .. `to - 1`. The program has the state of step
    /// `from`, and afterwards that of step `to`.
    Advance {
        /// First step to take.
        from: u64,
        /// First step that is not taken.
        to: u64,
        /// Keeps the forward data of the last of these steps, `to - 1`, for its reverse.
        record: bool,
    },
    /// Stores the state of `step`, which the program has.
    Write {
        /// The step.
        step: u64,
        /// Place it is stored in.
        level: ScheduleLevel,
    },
    /// Gives the program the state of `step` and keeps it stored.
    Read {
        /// The step.
        step: u64,
        /// Place it is stored in.
        level: ScheduleLevel,
    },
    /// Gives the program the state of `step`, which leaves its place.
    Take {
        /// The step.
        step: u64,
        /// Place it is stored in.
        level: ScheduleLevel,
    },
    /// Takes the reverse of `step` with the forward data that was kept, which may then go.
    Reverse {
        /// The step.
        step: u64,
    },
    /// Ends the schedule: all steps were reversed, and nothing is stored any more.
    End,
}

/// Reasons for which there is no schedule.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// The program takes no step.
    #[error("a schedule for 0 steps: expected 1 or more")]
    NoSteps,
    /// No state can be stored. Only a single step needs none.
    #[error("a schedule for {steps} steps with 0 slots: expected 1 or more, or the first state cannot be kept")]
    NoSlots {
        /// Steps of the program.
        steps: u64,
    },
    /// A state has no bytes.
    #[error("a state of 0 bytes: expected 1 or more, raw and coded")]
    NoBytes,
    /// A cost is below 0 or not finite.
    #[error("{name} is {value}, expected a finite number, 0 or above")]
    Cost {
        /// Name of the cost.
        name: &'static str,
        /// The cost.
        value: f64,
    },
    /// The tables of the schedule would be too large.
    #[error(
        "the schedule of {steps} steps needs tables of {entries:.1e} entries, {limit:.1e} are allowed: \
         choose a schedule with a closed formula, or plan for groups of steps"
    )]
    TooLong {
        /// Steps of the program.
        steps: u64,
        /// Entries of the tables.
        entries: f64,
        /// Most that are allowed.
        limit: f64,
    },
    /// The plan would take minutes.
    #[error(
        "planning {steps} steps takes more than {limit} comparisons: choose a schedule with a closed formula, or plan \
         for groups of steps"
    )]
    TooSlow {
        /// Steps of the program.
        steps: u64,
        /// Comparisons that are allowed.
        limit: u64,
    },
}
