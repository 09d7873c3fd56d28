//! All schedules by name.

use std::fmt;
use std::str::FromStr;

use super::action::{ScheduleAction, ScheduleError};
use super::costs::ScheduleCosts;
use super::disk_revolve::DiskRevolve;
use super::hrevolve::HRevolve;
use super::multistage::Multistage;
use super::revolve::Revolve;
use super::store_all::StoreAll;

/// A schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScheduleKind {
    /// [`StoreAll`].
    StoreAll,
    /// [`Revolve`].
    Revolve,
    /// [`Multistage`].
    Multistage,
    /// [`DiskRevolve`].
    DiskRevolve,
    /// [`HRevolve`].
    HRevolve,
}

/// Sizes of a schedule, in states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleSizes {
    /// Forward steps of the program.
    pub steps: u64,
    /// States that memory holds.
    pub memory_slots: u64,
    /// States that the disk holds.
    pub disk_slots: u64,
}

/// The actions of any schedule.
pub type ScheduleActions = Box<dyn Iterator<Item = ScheduleAction> + Send + Sync>;

impl ScheduleKind {
    /// All schedules, from the simplest.
    pub const ALL: [Self; 5] = [Self::StoreAll, Self::Revolve, Self::Multistage, Self::DiskRevolve, Self::HRevolve];

    /// Returns the name, as [`FromStr`] reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::StoreAll => "store-all",
            Self::Revolve => "revolve",
            Self::Multistage => "multistage",
            Self::DiskRevolve => "disk-revolve",
            Self::HRevolve => "h-revolve",
        }
    }

    /// Plans the schedule. Each reads the sizes and costs that its own constructor takes.
    ///
    /// # Errors
    /// Those of the constructor.
    pub fn actions(self, sizes: ScheduleSizes, costs: &ScheduleCosts) -> Result<ScheduleActions, ScheduleError> {
        let ScheduleSizes { steps, memory_slots, disk_slots } = sizes;
        Ok(match self {
            Self::StoreAll => Box::new(StoreAll::new(steps)?),
            Self::Revolve => Box::new(Revolve::new(steps, memory_slots)?),
            Self::Multistage => Box::new(Multistage::new(steps, memory_slots, disk_slots)?),
            Self::DiskRevolve => Box::new(DiskRevolve::new(steps, memory_slots, costs)?),
            Self::HRevolve => Box::new(HRevolve::new(steps, memory_slots, disk_slots, costs)?),
        })
    }
}

impl fmt::Display for ScheduleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for ScheduleKind {
    type Err = UnknownSchedule;

    fn from_str(name: &str) -> Result<Self, UnknownSchedule> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| UnknownSchedule { name: name.to_owned() })
    }
}

/// Error of a name that no schedule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("schedule {name:?}: expected {}", ScheduleKind::ALL.map(ScheduleKind::name).join(", "))]
pub struct UnknownSchedule {
    /// The name.
    pub name: String,
}
