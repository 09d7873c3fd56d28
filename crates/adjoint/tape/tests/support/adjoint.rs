//! A forward program and its reverse that know what exists: every action of a schedule is checked.

use std::collections::BTreeSet;

use recoup_tape::schedule::{ScheduleAction, ScheduleLevel};

/// Work of a schedule, and the most states that rested in a level at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) forward_steps: u64,
    pub(crate) writes: [u64; 2],
    pub(crate) reads: [u64; 2],
    pub(crate) states_max: [usize; 2],
    pub(crate) records_max: usize,
}

/// Index of a level.
fn index(level: ScheduleLevel) -> usize {
    usize::from(level == ScheduleLevel::Disk)
}

/// The program.
struct Adjoint {
    steps: u64,
    /// Step whose state the program has.
    at: u64,
    stored: [BTreeSet<u64>; 2],
    records: BTreeSet<u64>,
    /// Steps that are still to be reversed.
    left: u64,
    is_over: bool,
    tally: Tally,
}

impl Adjoint {
    fn advance(&mut self, from: u64, to: u64, record: bool) {
        assert_eq!(from, self.at, "advance from a state that the program does not have");
        assert!(from < to && to <= self.left, "{from}..{to} goes past the steps still to be reversed");
        self.at = to;
        self.tally.forward_steps += to - from;
        if record {
            assert!(self.records.insert(to - 1), "step {} was recorded before", to - 1);
            self.tally.records_max = self.tally.records_max.max(self.records.len());
        }
    }

    fn write(&mut self, step: u64, level: usize) {
        assert_eq!(step, self.at, "write of a state that the program does not have");
        assert!(self.stored[level].insert(step), "step {step} is stored in level {level} already");
        self.tally.writes[level] += 1;
        self.tally.states_max[level] = self.tally.states_max[level].max(self.stored[level].len());
    }

    fn read(&mut self, step: u64, level: usize) {
        assert!(self.stored[level].contains(&step), "step {step} is not stored in level {level}");
        self.at = step;
        self.tally.reads[level] += 1;
    }

    fn reverse(&mut self, step: u64) {
        assert_eq!(step + 1, self.left, "steps are reversed last first");
        assert!(self.records.remove(&step), "step {step} has no forward data");
        self.left = step;
    }

    fn perform(&mut self, action: ScheduleAction) {
        assert!(!self.is_over, "{action:?} after the end");
        match action {
            ScheduleAction::Advance { from, to, record } => self.advance(from, to, record),
            ScheduleAction::Write { step, level } => self.write(step, index(level)),
            ScheduleAction::Read { step, level } => self.read(step, index(level)),
            ScheduleAction::Take { step, level } => {
                self.read(step, index(level));
                self.stored[index(level)].remove(&step);
            }
            ScheduleAction::Reverse { step } => self.reverse(step),
            ScheduleAction::End => self.is_over = true,
        }
    }
}

/// Carries a schedule out.
///
/// # Panics
/// When an action cannot be done, or something is missing or left over at the end.
pub(crate) fn perform(steps: u64, actions: impl Iterator<Item = ScheduleAction>) -> Tally {
    let mut program = Adjoint {
        steps,
        at: 0,
        stored: [BTreeSet::new(), BTreeSet::new()],
        records: BTreeSet::new(),
        left: steps,
        is_over: false,
        tally: Tally::default(),
    };
    // No schedule for a few hundred steps has as many actions as this.
    let limit = 4 * steps * steps + 100;
    let mut n_actions = 0;
    for action in actions {
        n_actions += 1;
        assert!(n_actions < limit, "more than {limit} actions for {} steps", program.steps);
        program.perform(action);
    }
    assert!(program.is_over, "the stream ended without an end");
    assert_eq!(program.left, 0, "steps were not reversed");
    assert!(program.stored.iter().all(BTreeSet::is_empty), "states were left over: {:?}", program.stored);
    assert!(program.records.is_empty(), "records were left over: {:?}", program.records);
    program.tally
}
