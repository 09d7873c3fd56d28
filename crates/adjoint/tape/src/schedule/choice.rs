//! The choice between keeping all states, encoding them, and computing some again.
//!
//! Each schedule is planned twice, with raw and with encoded states, for the slots that memory and
//! disk have for them. The candidates that fit are compared by their seconds. Promise: a pure
//! function of the numbers; the cheapest candidate is chosen, of equals the simplest, and each
//! other one has a reason. The prediction adds all times up: no copy runs next to a step. It is too
//! high where the program overlaps them.

use super::action::ScheduleError;
use super::kind::{ScheduleActions, ScheduleKind, ScheduleSizes};
use super::problem::{AdjointProblem, ReverseNeeds, StateForm};
use super::tally::ScheduleTally;

/// Steps up to which the actions of a schedule are counted.
const COUNTED_MAX: u64 = 10_000_000;

/// A schedule with its predicted work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SchedulePlan {
    /// The schedule.
    pub kind: ScheduleKind,
    /// Form of the states it stores.
    pub form: StateForm,
    /// Slots it was planned for.
    pub sizes: ScheduleSizes,
    /// Predicted seconds of the whole program, forward and reverse.
    pub seconds: f64,
    /// Forward steps in all.
    pub forward_steps: u64,
    /// Forward steps beyond those of a program that stores everything.
    pub recomputed_steps: u64,
    /// The most bytes of states in memory at a time, without those the program works on.
    pub memory_bytes_max: u64,
    /// The most bytes of states on disk at a time.
    pub disk_bytes_max: u64,
}

/// Reasons for which a schedule is not possible.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum PlanRefusal {
    /// There is no codec.
    #[error("no codec was measured")]
    NoCodec,
    /// There is no disk.
    #[error("there is no room for a state on disk")]
    NoDisk,
    /// All states together take more than there is.
    #[error("needs {} for states, memory and disk have room for {}", readable_bytes(*.needed), readable_bytes(*.available))]
    TooLarge {
        /// Bytes needed.
        needed: u64,
        /// Bytes of whole states that fit.
        available: u64,
    },
    /// The schedule counts on a larger disk.
    #[error("needs {} of disk, {} are there", readable_bytes(*.needed), readable_bytes(*.available))]
    DiskTooSmall {
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// The actions would take long to count.
    #[error("its actions are counted for up to {limit} steps, the program has {steps}: plan for groups of steps")]
    Uncounted {
        /// Steps of the program.
        steps: u64,
        /// Most steps that are counted.
        limit: u64,
    },
    /// The schedule does not exist.
    #[error(transparent)]
    Impossible(#[from] ScheduleError),
}

/// A schedule that was looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScheduleCandidate {
    /// The schedule.
    pub kind: ScheduleKind,
    /// Form of the states it stores.
    pub form: StateForm,
    /// Its predicted work, or the reason for which it is not possible.
    pub outcome: Result<SchedulePlan, PlanRefusal>,
}

/// The cheapest schedule, and all that were looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleChoice {
    /// The schedule chosen.
    pub best: SchedulePlan,
    /// All candidates, from the simplest.
    pub candidates: Vec<ScheduleCandidate>,
}

impl AdjointProblem {
    /// Chooses the schedule with the least predicted seconds.
    ///
    /// # Errors
    /// Numbers that no program has; if no schedule is possible, the reason of H-Revolve, which
    /// needs the least room.
    pub fn choose(&self) -> Result<ScheduleChoice, PlanRefusal> {
        self.check()?;
        let candidate = |kind, form| ScheduleCandidate { kind, form, outcome: self.plan(kind, form) };
        let candidates: Vec<_> = ScheduleKind::ALL
            .into_iter()
            .flat_map(|kind| [StateForm::Raw, StateForm::Coded].map(|form| candidate(kind, form)))
            .collect();
        let plans = candidates.iter().filter_map(|candidate| candidate.outcome.ok());
        // The first of equals stays.
        let best = plans.reduce(|best, plan| if plan.seconds < best.seconds { plan } else { best });
        match best {
            Some(best) => Ok(ScheduleChoice { best, candidates }),
            None => self.plan(ScheduleKind::HRevolve, StateForm::Raw).map(|best| ScheduleChoice { best, candidates }),
        }
    }

    /// Plans one schedule.
    ///
    /// # Errors
    /// The reason for which it is not possible.
    pub fn plan(&self, kind: ScheduleKind, form: StateForm) -> Result<SchedulePlan, PlanRefusal> {
        let bytes = self.bytes(form).ok_or(PlanRefusal::NoCodec)?;
        let sizes = ScheduleSizes {
            steps: self.steps,
            memory_slots: self.memory.bytes / bytes,
            disk_slots: self.disk.bytes / bytes,
        };
        let needs_disk = matches!(kind, ScheduleKind::Multistage | ScheduleKind::DiskRevolve);
        if needs_disk && sizes.disk_slots == 0 {
            return Err(PlanRefusal::NoDisk);
        }
        let tally = match kind {
            ScheduleKind::StoreAll => self.store_all(sizes, bytes)?,
            _ => self.restarts(kind, form, sizes)?,
        };
        if tally.disk.states_max > sizes.disk_slots {
            let needed = tally.disk.states_max.saturating_mul(bytes);
            return Err(PlanRefusal::DiskTooSmall { needed, available: self.disk.bytes });
        }
        Ok(SchedulePlan {
            kind,
            form,
            sizes,
            seconds: tally.seconds(&self.costs(form)) + self.steps as f64 * self.reverse_seconds,
            forward_steps: tally.forward_steps,
            recomputed_steps: tally.forward_steps - self.least_steps(),
            memory_bytes_max: tally.memory.states_max * bytes,
            disk_bytes_max: tally.disk.states_max * bytes,
        })
    }

    /// Returns the actions of a schedule that was planned for this problem.
    ///
    /// # Errors
    /// None that its plan did not have.
    pub fn actions(&self, plan: &SchedulePlan) -> Result<ScheduleActions, ScheduleError> {
        plan.kind.actions(plan.sizes, &self.costs(plan.form))
    }

    /// Counts the work of a program that stores a state for each step, in memory as far as it goes.
    fn store_all(&self, sizes: ScheduleSizes, bytes: u64) -> Result<ScheduleTally, PlanRefusal> {
        let in_memory = self.steps.min(sizes.memory_slots);
        let on_disk = self.steps - in_memory;
        if on_disk > sizes.disk_slots {
            let available = sizes.memory_slots.saturating_add(sizes.disk_slots).saturating_mul(bytes);
            return Err(PlanRefusal::TooLarge { needed: self.steps.saturating_mul(bytes), available });
        }
        let mut tally = ScheduleTally { forward_steps: self.least_steps(), ..ScheduleTally::default() };
        for (level, n) in [(&mut tally.memory, in_memory), (&mut tally.disk, on_disk)] {
            level.writes = n;
            level.reads = n;
            level.states_max = n;
        }
        Ok(tally)
    }

    /// Counts the work of a schedule that restarts the program.
    fn restarts(
        &self,
        kind: ScheduleKind,
        form: StateForm,
        sizes: ScheduleSizes,
    ) -> Result<ScheduleTally, PlanRefusal> {
        if self.steps > COUNTED_MAX {
            return Err(PlanRefusal::Uncounted { steps: self.steps, limit: COUNTED_MAX });
        }
        let mut tally = ScheduleTally::of(kind.actions(sizes, &self.costs(form))?);
        if self.reverse_needs == ReverseNeeds::State {
            // The last step of an advance that makes data is not taken.
            tally.forward_steps -= self.steps;
        }
        Ok(tally)
    }
}

/// Returns bytes with a binary unit.
pub(super) fn readable_bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = bytes as f64;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{scaled:.1} {}", UNITS[unit]) }
}
