//! Binomial splits as a rule of the walk, with a place for each slot.

use super::action::ScheduleLevel;
use super::binomial::split;
use super::walk::{FreeSlots, ReverseRule, RuleStep, StepSpan};

/// Binomial splits. States are stored in slots by depth: the state of step 0 in the first one.
#[derive(Clone, Debug)]
pub(super) struct BinomialRule {
    /// Place of each slot, the last of them repeated as often as needed.
    pub(super) places: Vec<ScheduleLevel>,
    /// Number of slots.
    pub(super) n: u64,
}

impl BinomialRule {
    /// Returns the rule of `n` slots in memory.
    pub(super) fn in_memory(n: u64) -> Self {
        Self { places: vec![ScheduleLevel::Memory], n }
    }
}

impl ReverseRule for BinomialRule {
    fn decide(&self, span: &StepSpan) -> RuleStep {
        let slots = span.slots;
        if span.held.is_none() {
            let depth = usize::try_from(self.n - slots.n).unwrap_or(usize::MAX);
            let place = self.places.get(depth).or(self.places.last());
            return RuleStep::Store(place.copied().unwrap_or(ScheduleLevel::Memory));
        }
        let right = FreeSlots { n: slots.n - 1, ..slots };
        RuleStep::Split { left: split(span.len(), slots.n), keeps: slots, right }
    }
}
