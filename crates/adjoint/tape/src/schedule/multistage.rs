//! Multistage: binomial splits whose most used slots are in memory, the others on disk.
//!
//! The problem: reverse `n` steps with the fewest forward steps that `m` slots in memory and `d` on
//! disk allow, and then with as little traffic of the disk as these splits allow. Source: Stumm,
//! Walther, MultiStage approaches for optimal offline checkpointing, SIAM Journal on Scientific
//! Computing 31(3), 2009, doi:10.1137/080718036.
//!
//! ```text
//! forward steps   n + t(n, m + d)            as for Revolve, see binomial.rs
//! uses of slot i  writes(i) + reads(i)       over the whole schedule, i = 0 holds step 0
//! ```
//!
//! The `m` slots with the most uses are in memory. Of slots with as many uses, the later ones are:
//! their states live shorter. The uses are counted by one walk through the schedule, where the
//! paper has formulas for its own splits.

use super::action::{ScheduleAction, ScheduleError, ScheduleLevel};
use super::binomial_rule::BinomialRule;
use super::revolve::check_sizes;
use super::walk::{FreeSlots, ReverseWalk};

/// The actions of Multistage.
#[derive(Clone, Debug)]
pub struct Multistage(ReverseWalk<BinomialRule>);

impl Multistage {
    /// Plans `steps` steps with `memory_slots` states in memory and `disk_slots` on disk.
    ///
    /// # Errors
    /// [`ScheduleError::NoSteps`], and [`ScheduleError::NoSlots`] for several steps without a slot.
    pub fn new(steps: u64, memory_slots: u64, disk_slots: u64) -> Result<Self, ScheduleError> {
        let total = memory_slots.saturating_add(disk_slots);
        check_sizes(steps, total)?;
        // More slots than states to store change nothing.
        let n = total.min(steps - 1);
        let places = places(steps, n, memory_slots.min(n));
        let slots = FreeSlots { level: ScheduleLevel::Memory, n };
        Ok(Self(ReverseWalk::new(BinomialRule { places, n }, steps, slots)))
    }
}

impl Iterator for Multistage {
    type Item = ScheduleAction;

    fn next(&mut self) -> Option<ScheduleAction> {
        self.0.next()
    }
}

/// Returns the place of each of `n` slots.
fn places(steps: u64, n: u64, in_memory: u64) -> Vec<ScheduleLevel> {
    if in_memory == n {
        return vec![ScheduleLevel::Memory];
    }
    if in_memory == 0 {
        return vec![ScheduleLevel::Disk];
    }
    let uses = uses(steps, n);
    let mut order: Vec<usize> = (0..uses.len()).collect();
    order.sort_by_key(|&slot| std::cmp::Reverse((uses[slot], slot)));
    let mut places = vec![ScheduleLevel::Disk; uses.len()];
    for &slot in order.iter().take(usize::try_from(in_memory).unwrap_or(usize::MAX)) {
        places[slot] = ScheduleLevel::Memory;
    }
    places
}

/// Counts the writes and reads of each of `n` slots. States are stored and given back as on a
/// stack, so the number of states that rest tells the slot.
fn uses(steps: u64, n: u64) -> Vec<u64> {
    let slots = FreeSlots { level: ScheduleLevel::Memory, n };
    let mut uses = Vec::new();
    let mut depth = 0;
    for action in ReverseWalk::new(BinomialRule::in_memory(n), steps, slots) {
        match action {
            ScheduleAction::Write { .. } => {
                if depth == uses.len() {
                    uses.push(0);
                }
                uses[depth] += 1;
                depth += 1;
            }
            ScheduleAction::Read { .. } => uses[depth - 1] += 1,
            ScheduleAction::Take { .. } => {
                depth -= 1;
                uses[depth] += 1;
            }
            ScheduleAction::Advance { .. } | ScheduleAction::Reverse { .. } | ScheduleAction::End => {}
        }
    }
    uses
}
