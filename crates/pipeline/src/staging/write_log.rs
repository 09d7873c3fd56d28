//! The log of announced writes: what the owners of variables say was written since the last
//! versions were staged. It is asked while the solver waits, so that the worker need not look at
//! values that did not change.
//!
//! Stagings have numbers of their own: a run that returns to an older version counts iterations
//! again, and a version that failed has no successor.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use recoup_core::{Mark, Variable};

/// Stagings that are remembered. The parent of a version is the newest that counts: the one staged
/// before, or one of those before it where that failed or is under way.
const REMEMBERED: usize = 3;

/// Writes to one variable up to a staging.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AnnouncedWrites {
    since: Vec<(u64, Vec<Range<usize>>)>,
}

impl AnnouncedWrites {
    /// Returns the values written since an earlier staging: ascending and disjoint ranges that
    /// cover them. `None` where that is not known.
    pub(crate) fn since(&self, staging: u64) -> Option<&[Range<usize>]> {
        self.since.iter().find(|(number, _)| *number == staging).map(|(_, written)| written.as_slice())
    }
}

/// The marks of the last stagings.
#[derive(Debug, Default)]
pub(crate) struct WriteLog {
    number: u64,
    /// Oldest first; the last one is under way.
    stagings: VecDeque<StagingMarks>,
}

#[derive(Debug)]
struct StagingMarks {
    number: u64,
    marks: BTreeMap<String, Mark>,
}

impl WriteLog {
    /// Begins a staging; returns its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.number += 1;
        if self.stagings.len() > REMEMBERED {
            self.stagings.pop_front();
        }
        self.stagings.push_back(StagingMarks { number: self.number, marks: BTreeMap::new() });
        self.number
    }

    /// Asks the owner of a variable that is staged for the writes to it; `None` where it does not
    /// announce them.
    pub(crate) fn enter(&mut self, variable: &Variable<'_>) -> Option<AnnouncedWrites> {
        let zones = variable.zones?;
        let now = self.stagings.pop_back();
        let since = |staging: &StagingMarks| {
            let mark = staging.marks.get(variable.name)?;
            Some((staging.number, zones.written_since(*mark)?))
        };
        let writes = AnnouncedWrites { since: self.stagings.iter().filter_map(since).collect() };
        if let Some(mut now) = now {
            now.marks.insert(variable.name.to_owned(), zones.mark());
            self.stagings.push_back(now);
        }
        Some(writes)
    }
}

#[cfg(test)]
mod tests {
    use recoup_core::{Distribution, HeldValues, Role, Values, Zones};

    use super::*;

    /// An owner of four values that wrote value `n` in its `n`th write.
    struct Writing {
        memory: u64,
        writes: u64,
    }

    impl Zones for Writing {
        fn mark(&self) -> Mark {
            Mark { memory: self.memory, write: self.writes }
        }

        fn written_since(&self, since: Mark) -> Option<Vec<Range<usize>>> {
            let values = (since.write..self.writes).map(|write| write as usize..write as usize + 1);
            (since.memory == self.memory).then(|| values.collect())
        }

        fn freeze(&self, _: usize) -> Option<Box<dyn HeldValues>> {
            None
        }
    }

    fn enter(log: &mut WriteLog, zones: &Writing) -> AnnouncedWrites {
        let x = Variable::new("x", Role::Dynamic, Values::F64(&[0.0; 9]), Distribution::RankLocal);
        log.enter(&Variable { zones: Some(zones), ..x }).unwrap()
    }

    #[test]
    fn writes_are_known_since_each_of_the_last_stagings_of_the_same_memory() {
        let mut log = WriteLog::default();
        for writes in 0..6_u64 {
            let number = log.begin();
            let known = enter(&mut log, &Writing { memory: 1, writes });
            for back in 1..=writes {
                let expected: Vec<_> = (writes - back..writes).map(|w| w as usize..w as usize + 1).collect();
                let found = known.since(number - back);
                assert_eq!(found, (back <= REMEMBERED as u64).then_some(expected.as_slice()), "{writes} {back}");
            }
        }
        let last = log.number;
        log.begin();
        assert_eq!(enter(&mut log, &Writing { memory: 2, writes: 9 }).since(last), None);
    }
}
