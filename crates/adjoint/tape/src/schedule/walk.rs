//! The walk that all schedules with restarts share: store a state, continue, come back, continue
//! from it.
//!
//! A rule says, of each span of steps that is still to be reversed, whether its first state is
//! stored, where the span is split, and which slots its halves may use. The right half is
//! reversed first. Only left halves wait, each with a stored state, so the walk takes memory for
//! the slots and not for the steps.

use std::collections::VecDeque;

use super::action::{ScheduleAction, ScheduleLevel};

/// Slots that a span may use: those of a level that are free, and all of the faster level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FreeSlots {
    /// The level.
    pub(super) level: ScheduleLevel,
    /// Its slots, with that of the first state of the span if the state is stored.
    pub(super) n: u64,
}

/// Steps `first` .. `end - 1`, which are still to be reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepSpan {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) slots: FreeSlots,
    /// Place of the state of `first`, once it is stored.
    pub(super) held: Option<ScheduleLevel>,
}

impl StepSpan {
    pub(super) fn len(&self) -> u64 {
        self.end - self.first
    }
}

/// One decision of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleStep {
    /// The first state is stored. A split must follow.
    Store(ScheduleLevel),
    /// The first state leaves its place, and the span continues with these slots.
    Release(FreeSlots),
    /// The span is split: the first `left` steps continue with `keeps`, the others get `right`.
    Split { left: u64, keeps: FreeSlots, right: FreeSlots },
}

/// The decisions of a schedule.
pub(super) trait ReverseRule {
    /// Decides on a span of 2 steps or more.
    fn decide(&self, span: &StepSpan) -> RuleStep;
}

/// The actions of a rule.
#[derive(Clone, Debug)]
pub(super) struct ReverseWalk<R> {
    rule: R,
    /// The span at whose first step the program stands.
    current: Option<StepSpan>,
    /// Left halves, each with its first state stored.
    waiting: Vec<StepSpan>,
    /// Actions that were decided and not given out yet: three at most.
    ready: VecDeque<ScheduleAction>,
    is_over: bool,
}

impl<R: ReverseRule> ReverseWalk<R> {
    /// Begins at step 0 of `steps`.
    pub(super) fn new(rule: R, steps: u64, slots: FreeSlots) -> Self {
        let current = Some(StepSpan { first: 0, end: steps, slots, held: None });
        Self { rule, current, waiting: Vec::new(), ready: VecDeque::new(), is_over: false }
    }

    /// Continues with a span whose first state the program has.
    fn proceed(&mut self, span: StepSpan) {
        if span.len() == 1 {
            self.reverse_last(&span, span.first);
            return;
        }
        match self.rule.decide(&span) {
            RuleStep::Store(level) => {
                self.ready.push_back(ScheduleAction::Write { step: span.first, level });
                self.current = Some(StepSpan { held: Some(level), ..span });
            }
            RuleStep::Release(slots) => self.current = Some(StepSpan { slots, held: None, ..span }),
            RuleStep::Split { left, keeps, right } => {
                let middle = span.first + left;
                self.waiting.push(StepSpan { end: middle, slots: keeps, ..span });
                let rest = StepSpan { first: middle, slots: right, held: None, ..span };
                if rest.len() == 1 {
                    self.reverse_last(&rest, span.first);
                } else {
                    self.ready.push_back(ScheduleAction::Advance { from: span.first, to: middle, record: false });
                    self.current = Some(rest);
                }
            }
        }
    }

    /// Advances from a step over the one step of a span, and reverses it.
    fn reverse_last(&mut self, span: &StepSpan, from: u64) {
        self.ready.push_back(ScheduleAction::Advance { from, to: span.end, record: true });
        self.ready.push_back(ScheduleAction::Reverse { step: span.first });
    }

    /// Gives the program the first state of a left half. The state leaves its place unless it is
    /// read again.
    fn recall(&mut self, span: StepSpan) -> StepSpan {
        let Some(level) = span.held else { return span };
        let step = span.first;
        let released = match (span.len() > 1).then(|| self.rule.decide(&span)) {
            None => Some(span.slots),
            Some(RuleStep::Release(slots)) => Some(slots),
            Some(RuleStep::Store(_) | RuleStep::Split { .. }) => None,
        };
        if let Some(slots) = released {
            self.ready.push_back(ScheduleAction::Take { step, level });
            return StepSpan { slots, held: None, ..span };
        }
        self.ready.push_back(ScheduleAction::Read { step, level });
        span
    }
}

impl<R: ReverseRule> Iterator for ReverseWalk<R> {
    type Item = ScheduleAction;

    fn next(&mut self) -> Option<ScheduleAction> {
        loop {
            if let Some(action) = self.ready.pop_front() {
                return Some(action);
            }
            if let Some(span) = self.current.take() {
                self.proceed(span);
            } else if let Some(left) = self.waiting.pop() {
                let span = self.recall(left);
                self.proceed(span);
            } else if self.is_over {
                return None;
            } else {
                self.is_over = true;
                return Some(ScheduleAction::End);
            }
        }
    }
}
