//! Disk-Revolve: the least time with slots in memory that cost nothing, and a disk without end.
//!
//! The problem: reverse `n` steps with `m` slots in memory and any number of states on disk. A
//! forward step takes `u` seconds, a write to disk `w` and a read `r`. Source: Aupy, Herrmann,
//! Hovland, Robert, Optimal multistage algorithm for adjoint computation, SIAM Journal on
//! Scientific Computing 38(3), 2016, doi:10.1137/15M1019222:
//!
//! ```text
//! M(n) = u t(n, m)                                                  memory alone, Revolve
//! P(n) = min(M(n), min over j of  j u + M(n - j) + r + P(j))        the first state is on disk
//! D(n) = min(M(n), w + min over j of  j u + D(n - j) + r + P(j))    the program alone has it
//! M(1) = P(1) = D(1) = 0
//! ```
//!
//! So a state that was read from disk is read again for other steps, but nothing is written to disk
//! while steps left of the last state on disk are reversed. The program takes `D(n) + n u` seconds,
//! and those of the `n` reverse steps. Departure: a step counts `u` when its data is made, which is
//! the same for all schedules.

use std::sync::Arc;

use super::action::{ScheduleAction, ScheduleError, ScheduleLevel};
use super::binomial::split;
use super::convex::{ConvexRuns, SplitSearch};
use super::costs::{AccessCost, ScheduleCosts};
use super::memory_plan::{PlannedMemory, check_entries, check_looks};
use super::revolve::check_sizes;
use super::walk::{FreeSlots, ReverseRule, ReverseWalk, RuleStep, StepSpan};

/// The actions of Disk-Revolve.
#[derive(Clone, Debug)]
pub struct DiskRevolve {
    walk: ReverseWalk<Arc<EndlessDiskRule>>,
    seconds: f64,
}

impl DiskRevolve {
    /// Plans `steps` steps with `memory_slots` states in memory. Costs of memory are taken as 0.
    ///
    /// # Errors
    /// A [`ScheduleError`], also for more than 25 million steps.
    pub fn new(steps: u64, memory_slots: u64, costs: &ScheduleCosts) -> Result<Self, ScheduleError> {
        costs.check()?;
        check_sizes(steps, memory_slots)?;
        check_entries(steps, 2)?;
        let memory_slots = memory_slots.min(steps - 1);
        let rule = EndlessDiskRule::new(steps as usize, memory_slots, costs)?;
        let seconds = rule.fresh_seconds + steps as f64 * costs.forward_seconds;
        Ok(Self { walk: ReverseWalk::new(Arc::new(rule), steps, STILL_WRITING), seconds })
    }

    /// Returns the least time: forward steps, writes and reads, without the reverse steps.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl Iterator for DiskRevolve {
    type Item = ScheduleAction;

    fn next(&mut self) -> Option<ScheduleAction> {
        self.walk.next()
    }
}

/// Slots of steps from which states may still go to disk. It has no end, so the number only tells
/// them from the others.
const STILL_WRITING: FreeSlots = FreeSlots { level: ScheduleLevel::Disk, n: 1 };
/// Slots of steps to the left of a state that was written after the one they begin with.
const WRITTEN: FreeSlots = FreeSlots { level: ScheduleLevel::Disk, n: 0 };

/// The tables: steps of the left half by steps, 0 where memory alone is better.
#[derive(Clone, Debug)]
struct EndlessDiskRule {
    memory_slots: u64,
    fresh: Vec<u32>,
    held: Vec<u32>,
    fresh_seconds: f64,
}

impl EndlessDiskRule {
    fn new(steps: usize, memory_slots: u64, costs: &ScheduleCosts) -> Result<Self, ScheduleError> {
        let free = ScheduleCosts { memory: AccessCost::default(), ..*costs };
        let alone = PlannedMemory::new(steps, memory_slots.max(1) as usize, &free)?.costs;
        let mut rule = Self { memory_slots, fresh: vec![0; 2], held: vec![0; 2], fresh_seconds: 0.0 };
        let mut on_disk = ConvexRuns::default();
        let mut in_program = ConvexRuns::default();
        on_disk.push(0.0);
        in_program.push(0.0);
        let mut searches = [SplitSearch::new(), SplitSearch::new()];
        for n in 2..=steps {
            let again = searches[0].best(n, costs.forward_seconds, &on_disk, &alone);
            let first = searches[1].best(n, costs.forward_seconds, &on_disk, &in_program);
            let read = again.cost + costs.disk.read_seconds;
            let written = first.cost + costs.disk.read_seconds + costs.disk.write_seconds;
            rule.held.push(if read < alone.get(n) { again.left as u32 } else { 0 });
            rule.fresh.push(if written < alone.get(n) { first.left as u32 } else { 0 });
            on_disk.push(read.min(alone.get(n)));
            in_program.push(written.min(alone.get(n)));
            check_looks(steps as u64, searches[0].looks + searches[1].looks)?;
        }
        rule.fresh_seconds = in_program.get(steps);
        Ok(rule)
    }
}

impl ReverseRule for Arc<EndlessDiskRule> {
    fn decide(&self, span: &StepSpan) -> RuleStep {
        let in_memory = FreeSlots { level: ScheduleLevel::Memory, n: self.memory_slots };
        let n = span.len() as usize;
        match (span.slots, span.held) {
            (FreeSlots { level: ScheduleLevel::Memory, .. }, None) => RuleStep::Store(ScheduleLevel::Memory),
            (slots @ FreeSlots { level: ScheduleLevel::Memory, .. }, Some(_)) => RuleStep::Split {
                left: split(span.len(), slots.n),
                keeps: slots,
                right: FreeSlots { n: slots.n - 1, ..slots },
            },
            (_, None) if self.fresh[n] > 0 => RuleStep::Store(ScheduleLevel::Disk),
            (STILL_WRITING, Some(_)) => {
                RuleStep::Split { left: u64::from(self.fresh[n]), keeps: WRITTEN, right: STILL_WRITING }
            }
            (WRITTEN, Some(_)) if self.held[n] > 0 => {
                RuleStep::Split { left: u64::from(self.held[n]), keeps: WRITTEN, right: in_memory }
            }
            _ => RuleStep::Release(in_memory),
        }
    }
}
