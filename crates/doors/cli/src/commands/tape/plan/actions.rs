//! The actions of a schedule, one in a line or as JSON. They are made while they are printed.

use std::fmt;

use recoup::tape::schedule::{AdjointProblem, ScheduleAction, ScheduleLevel, SchedulePlan};
use serde::ser::{Error, Serialize, Serializer};

/// The actions of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActionStream {
    pub(super) problem: AdjointProblem,
    pub(super) plan: SchedulePlan,
}

/// An action, as JSON.
#[derive(serde::Serialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
enum ActionLine {
    Advance { from: u64, to: u64, record: bool },
    Write { step: u64, level: String },
    Read { step: u64, level: String },
    Take { step: u64, level: String },
    Reverse { step: u64 },
    End,
}

impl From<ScheduleAction> for ActionLine {
    fn from(action: ScheduleAction) -> Self {
        let name = |level: ScheduleLevel| level.to_string();
        match action {
            ScheduleAction::Advance { from, to, record } => Self::Advance { from, to, record },
            ScheduleAction::Write { step, level } => Self::Write { step, level: name(level) },
            ScheduleAction::Read { step, level } => Self::Read { step, level: name(level) },
            ScheduleAction::Take { step, level } => Self::Take { step, level: name(level) },
            ScheduleAction::Reverse { step } => Self::Reverse { step },
            ScheduleAction::End => Self::End,
        }
    }
}

impl fmt::Display for ActionLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Advance { from, to, record: true } => write!(f, "advance {from} {to} record"),
            Self::Advance { from, to, record: false } => write!(f, "advance {from} {to}"),
            Self::Write { step, level } => write!(f, "write {level} {step}"),
            Self::Read { step, level } => write!(f, "read {level} {step}"),
            Self::Take { step, level } => write!(f, "take {level} {step}"),
            Self::Reverse { step } => write!(f, "reverse {step}"),
            Self::End => f.write_str("end"),
        }
    }
}

impl Serialize for ActionStream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let actions = self.problem.actions(&self.plan).map_err(S::Error::custom)?;
        serializer.collect_seq(actions.map(ActionLine::from))
    }
}

impl fmt::Display for ActionStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions = self.problem.actions(&self.plan).map_err(|_| fmt::Error)?;
        actions.map(ActionLine::from).try_for_each(|line| writeln!(f, "{line}"))
    }
}
