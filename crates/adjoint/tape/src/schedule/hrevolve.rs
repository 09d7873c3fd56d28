//! H-Revolve: the least time with slots in memory and slots on disk, if both cost time.
//!
//! The problem: reverse `n` steps with `m` slots in memory and `d` on disk. A forward step takes
//! `u` seconds, a write and a read of level 0 (memory) and 1 (disk) `w0`, `r0`, `w1`, `r1`.
//! Source: Herrmann, Pallez (Aupy), H-Revolve: a framework for adjoint computation on synchronous
//! hierarchical platforms, ACM Transactions on Mathematical Software 46(2), 2020,
//! doi:10.1145/3378672, section 3, for two levels:
//!
//! ```text
//! F0(n, m)  memory alone, see memory_plan.rs
//! S(n, d) = min over j of  j u + F1(n - j, d - 1) + r1 + H1(j, d)   a split, first state on disk
//! H1(n, d) = min(F0(n, m), S(n, d))                                 the first state is on disk
//! F1(n, d) = min(F0(n, m), w1 + S(n, d)),   F1(n, 0) = F0(n, m)     the program alone has it
//! F1(1, d) = H1(1, d) = 0
//! ```
//!
//! The program takes `F1(n, d) + n u` seconds, and those of the `n` reverse steps. Departures: a
//! step counts `u` when its data is made, which is the same for all schedules; and the costs of
//! memory need not be 0.

use std::sync::Arc;

use super::action::{ScheduleAction, ScheduleError, ScheduleLevel};
use super::convex::{ConvexRuns, SplitSearch};
use super::costs::ScheduleCosts;
use super::memory_plan::{MemoryPlan, PlannedMemory, check_entries, check_looks};
use super::revolve::check_sizes;
use super::walk::{FreeSlots, ReverseRule, ReverseWalk, RuleStep, StepSpan};

/// The actions of H-Revolve.
#[derive(Clone, Debug)]
pub struct HRevolve {
    walk: ReverseWalk<Arc<TwoLevelRule>>,
    seconds: f64,
}

impl HRevolve {
    /// Plans `steps` steps with `memory_slots` states in memory and `disk_slots` on disk.
    ///
    /// # Errors
    /// A [`ScheduleError`], also if the tables had more than fifty million entries.
    pub fn new(steps: u64, memory_slots: u64, disk_slots: u64, costs: &ScheduleCosts) -> Result<Self, ScheduleError> {
        costs.check()?;
        check_sizes(steps, memory_slots.saturating_add(disk_slots))?;
        check_entries(steps, 1)?;
        // More slots than states to store change nothing.
        let [memory, disk] = [memory_slots, disk_slots].map(|slots| slots.min(steps - 1) as usize);
        let rule = TwoLevelRule::new(steps as usize, memory, disk, costs)?;
        let seconds = rule.fresh_seconds + steps as f64 * costs.forward_seconds;
        let slots = FreeSlots { level: ScheduleLevel::Disk, n: rule.disk.len() as u64 };
        Ok(Self { walk: ReverseWalk::new(Arc::new(rule), steps, slots), seconds })
    }

    /// Returns the least time: forward steps, writes and reads, without the reverse steps.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.seconds
    }
}

impl Iterator for HRevolve {
    type Item = ScheduleAction;

    fn next(&mut self) -> Option<ScheduleAction> {
        self.walk.next()
    }
}

/// The tables.
#[derive(Clone, Debug)]
struct TwoLevelRule {
    memory: MemoryPlan,
    memory_slots: u64,
    /// By slots on disk (from 1) and steps (from 0).
    disk: Vec<Vec<DiskEntry>>,
    fresh_seconds: f64,
}

/// Decisions on steps whose first state is, or may be, on disk.
#[derive(Clone, Copy, Debug, Default)]
struct DiskEntry {
    /// Steps of the left half; 0 if the state on disk is not used again.
    left: u32,
    /// Storing the state on disk pays.
    is_stored: bool,
}

impl TwoLevelRule {
    fn new(steps: usize, memory_slots: usize, disk_slots: usize, costs: &ScheduleCosts) -> Result<Self, ScheduleError> {
        let PlannedMemory { plan, slots: memory_slots, costs: of_memory } =
            PlannedMemory::new(steps, memory_slots, costs)?;
        let alone = |n: usize| if n <= of_memory.len() { of_memory.get(n) } else { f64::INFINITY };
        let mut fresh = of_memory.clone();
        let mut rows = Vec::new();
        let mut looks = 0;
        for _ in 0..disk_slots {
            let mut held = ConvexRuns::default();
            let mut stored = ConvexRuns::default();
            held.push(0.0);
            stored.push(0.0);
            let mut row = vec![DiskEntry::default(); 2];
            let mut search = SplitSearch::new();
            for n in 2..=steps {
                let best = search.best(n, costs.forward_seconds, &held, &fresh);
                let split = best.cost + costs.disk.read_seconds;
                let with_write = split + costs.disk.write_seconds;
                row.push(DiskEntry {
                    left: if split < alone(n) { best.left as u32 } else { 0 },
                    is_stored: with_write < alone(n),
                });
                held.push(split.min(alone(n)));
                stored.push(with_write.min(alone(n)));
                check_looks(steps as u64, looks + search.looks)?;
            }
            looks += search.looks;
            // A slot that saves nothing is followed by slots that save nothing.
            if stored.is_same(&fresh) {
                break;
            }
            fresh = stored;
            rows.push(row);
            check_entries(steps as u64, rows.len())?;
        }
        Ok(Self { memory: plan, memory_slots: memory_slots as u64, disk: rows, fresh_seconds: fresh.get(steps) })
    }

    fn on_disk(&self, span: &StepSpan) -> RuleStep {
        let in_memory = FreeSlots { level: ScheduleLevel::Memory, n: self.memory_slots };
        let slots = span.slots;
        let Some(row) = slots.n.checked_sub(1) else { return RuleStep::Release(in_memory) };
        let entry = self.disk[row as usize][span.len() as usize];
        match span.held {
            None if entry.is_stored => RuleStep::Store(ScheduleLevel::Disk),
            Some(_) if entry.left > 0 => {
                RuleStep::Split { left: u64::from(entry.left), keeps: slots, right: FreeSlots { n: row, ..slots } }
            }
            _ => RuleStep::Release(in_memory),
        }
    }
}

impl ReverseRule for Arc<TwoLevelRule> {
    fn decide(&self, span: &StepSpan) -> RuleStep {
        match (span.slots.level, span.held) {
            (ScheduleLevel::Disk, _) => self.on_disk(span),
            (ScheduleLevel::Memory, None) => RuleStep::Store(ScheduleLevel::Memory),
            (ScheduleLevel::Memory, Some(_)) => {
                let right = FreeSlots { n: span.slots.n - 1, ..span.slots };
                RuleStep::Split { left: self.memory.split(span.len(), span.slots.n), keeps: span.slots, right }
            }
        }
    }
}
