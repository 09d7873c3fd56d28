//! Splits of steps whose states are stored in memory: binomial where memory costs nothing, and by
//! the recurrence where it does.
//!
//! With `u` for a forward step, `w` and `r` for a write and a read of memory, and `m` slots:
//!
//! ```text
//! H(n, m) = min over j of  j u + F(n - j, m - 1) + r + H(j, m)   the first state is in memory
//! F(n, m) = w + H(n, m)                                          the program alone has it
//! F(1, m) = H(1, m) = 0
//! ```

use super::action::ScheduleError;
use super::binomial::{extra_steps, split};
use super::convex::{ConvexRuns, SplitSearch};
use super::costs::ScheduleCosts;

/// Entries of the tables that are allowed, eight bytes each at most.
const ENTRIES_MAX: f64 = 5e7;
/// Pairs of runs that a plan may look at: a quarter of a minute. At most costs the runs are long;
/// where costs are convex on short runs only, each step looks at thousands of pairs.
const LOOKS_MAX: u64 = 1_000_000_000;

/// Splits by steps and slots.
#[derive(Clone, Debug)]
pub(super) enum MemoryPlan {
    /// The splits of Revolve.
    Binomial,
    /// Steps of the left half by slots (from 1) and steps (from 0).
    Table(Vec<Vec<u32>>),
}

/// The plan, and the cost `F(n, m)` of all `n` with all slots.
#[derive(Clone, Debug)]
pub(super) struct PlannedMemory {
    pub(super) plan: MemoryPlan,
    /// Slots that save something.
    pub(super) slots: usize,
    /// Without slots the cost of one step only.
    pub(super) costs: ConvexRuns,
}

impl PlannedMemory {
    /// Plans up to `steps` steps with `slots` slots.
    pub(super) fn new(steps: usize, slots: usize, costs: &ScheduleCosts) -> Result<Self, ScheduleError> {
        if slots > 0 && costs.memory.write_seconds == 0.0 && costs.memory.read_seconds == 0.0 {
            return Ok(Self::binomial(steps, slots, costs.forward_seconds));
        }
        let mut rows = Vec::new();
        let mut looks = 0;
        let mut fresh = ConvexRuns::default();
        fresh.push(0.0);
        for _ in 0..slots {
            let mut held = ConvexRuns::default();
            let mut stored = ConvexRuns::default();
            held.push(0.0);
            stored.push(0.0);
            let mut row = vec![0; 2];
            let mut search = SplitSearch::new();
            for n in 2..=steps {
                let best = search.best(n, costs.forward_seconds, &held, &fresh);
                row.push(best.left as u32);
                held.push(best.cost + costs.memory.read_seconds);
                stored.push(best.cost + costs.memory.read_seconds + costs.memory.write_seconds);
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
        Ok(Self { slots: rows.len(), plan: MemoryPlan::Table(rows), costs: fresh })
    }

    fn binomial(steps: usize, slots: usize, forward: f64) -> Self {
        let mut costs = ConvexRuns::default();
        for n in 1..=steps {
            costs.push(forward * extra_steps(n as u64, slots as u64) as f64);
        }
        Self { plan: MemoryPlan::Binomial, slots, costs }
    }
}

/// Refuses tables that take too much memory and time.
pub(super) fn check_entries(steps: u64, rows: usize) -> Result<(), ScheduleError> {
    let entries = steps as f64 * rows as f64;
    if entries > ENTRIES_MAX {
        return Err(ScheduleError::TooLong { steps, entries, limit: ENTRIES_MAX });
    }
    Ok(())
}

/// Refuses plans that take minutes.
pub(super) fn check_looks(steps: u64, looks: u64) -> Result<(), ScheduleError> {
    if looks > LOOKS_MAX {
        return Err(ScheduleError::TooSlow { steps, limit: LOOKS_MAX });
    }
    Ok(())
}

impl MemoryPlan {
    /// Returns the steps of the left half of `n` steps, the first of which is held in one of `m`
    /// slots.
    pub(super) fn split(&self, n: u64, m: u64) -> u64 {
        match self {
            Self::Binomial => split(n, m),
            Self::Table(rows) => u64::from(rows[m as usize - 1][n as usize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of 200,000 steps took more than ten minutes, and nothing was said.
    #[test]
    fn plans_that_take_minutes_are_refused() {
        assert_eq!(check_looks(7, LOOKS_MAX), Ok(()));
        let error = check_looks(7, LOOKS_MAX + 1).unwrap_err().to_string();
        assert!(error.starts_with(&format!("planning 7 steps takes more than {LOOKS_MAX} comparisons")), "{error}");
    }
}
