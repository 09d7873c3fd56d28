//! Operations that touch the same bytes in no order.

use super::advance::Advance;
use super::execute::Touched;
use super::ranges::Ranges;

/// Races that a report lists; later ones are counted only by it being full.
const RACES_MAX: usize = 100;
/// Operations in the history before a look at which of them are past.
const HISTORY_MIN: usize = 64;

/// The name of an operation: its number in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) stream: u64,
    pub(crate) count: u64,
}

/// An operation that has run and may still race with one that has not.
#[derive(Debug)]
struct RanOperation {
    turn: Turn,
    label: String,
    touched: Touched,
}

/// Operations that have run, and the races found.
#[derive(Debug, Default)]
pub(crate) struct History {
    past: Vec<RanOperation>,
    races: Vec<String>,
    /// Length at which the history is looked through next.
    look_at: usize,
}

impl History {
    /// Adds an operation that has just run. `before` is what is ordered before it.
    pub(crate) fn add(&mut self, turn: Turn, label: &str, touched: Touched, before: &Advance) {
        if touched.reads == Ranges::default() && touched.writes == Ranges::default() {
            return;
        }
        self.compare(label, &touched, before);
        self.past.push(RanOperation { turn, label: label.to_owned(), touched });
    }

    /// Compares an access with all operations that are not ordered before it.
    pub(crate) fn compare(&mut self, label: &str, touched: &Touched, before: &Advance) {
        for past in &self.past {
            if self.races.len() >= RACES_MAX {
                return;
            }
            if before.covers(past.turn.stream, past.turn.count) {
                continue;
            }
            let theirs = &past.touched;
            let common = touched.writes.overlap(&theirs.writes);
            let common = common.or_else(|| touched.writes.overlap(&theirs.reads));
            if let Some(common) = common.or_else(|| touched.reads.overlap(&theirs.writes)) {
                let n = common.end - common.start;
                self.races.push(format!("{label} and {}: the same {n} bytes in no order", past.label));
            }
        }
    }

    /// Returns whether it is time for [`History::forget`].
    pub(crate) fn is_long(&self) -> bool {
        self.past.len() >= self.look_at.max(HISTORY_MIN)
    }

    /// Forgets operations that are ordered before all that can still come.
    pub(crate) fn forget(&mut self, is_past: impl Fn(Turn) -> bool) {
        self.past.retain(|past| !is_past(past.turn));
        self.look_at = self.past.len() * 2;
    }

    /// The races found, in words.
    pub(crate) fn races(&self) -> &[String] {
        &self.races
    }
}
