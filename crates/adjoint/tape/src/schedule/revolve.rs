//! Revolve: the fewest forward steps that `s` slots in memory allow.
//!
//! The problem: reverse `n` steps if at most `s` states are stored in memory at a time, that of
//! step 0 among them. Reading and writing costs nothing. Source: Griewank, Walther, Algorithm 799:
//! revolve, ACM Transactions on Mathematical Software 26(1), 2000, doi:10.1145/347837.347846.
//!
//! ```text
//! t(n, s) = min over k of  k + t(n - k, s - 1) + t(k, s),   t(1, s) = 0
//!         = r n - beta(s + 1, r - 1)   with beta(s, r - 1) < n <= beta(s, r)
//! ```
//!
//! The program takes `n + t(n, s)` forward steps. Of the splits with that many, the schedule takes
//! those that store the fewest states. Departure: the state of step 0 is stored by an action, too.

use super::action::{ScheduleAction, ScheduleError, ScheduleLevel};
use super::binomial::extra_steps;
use super::binomial_rule::BinomialRule;
use super::walk::{FreeSlots, ReverseWalk};

/// The actions of Revolve.
#[derive(Clone, Debug)]
pub struct Revolve(ReverseWalk<BinomialRule>);

impl Revolve {
    /// Plans `steps` steps with `slots` states in memory.
    ///
    /// # Errors
    /// [`ScheduleError::NoSteps`], and [`ScheduleError::NoSlots`] for several steps without a slot.
    pub fn new(steps: u64, slots: u64) -> Result<Self, ScheduleError> {
        check_sizes(steps, slots)?;
        let slots = FreeSlots { level: ScheduleLevel::Memory, n: slots };
        Ok(Self(ReverseWalk::new(BinomialRule::in_memory(slots.n), steps, slots)))
    }

    /// Returns the forward steps of the whole schedule by the closed formula, for `slots` of 1 or
    /// more.
    #[must_use]
    pub fn forward_steps(steps: u64, slots: u64) -> u64 {
        steps.saturating_add(extra_steps(steps, slots))
    }
}

impl Iterator for Revolve {
    type Item = ScheduleAction;

    fn next(&mut self) -> Option<ScheduleAction> {
        self.0.next()
    }
}

/// Refuses a program that takes no step, or several that no slot allows to restart.
pub(super) fn check_sizes(steps: u64, slots: u64) -> Result<(), ScheduleError> {
    match steps {
        0 => Err(ScheduleError::NoSteps),
        1 => Ok(()),
        _ if slots == 0 => Err(ScheduleError::NoSlots { steps }),
        _ => Ok(()),
    }
}
