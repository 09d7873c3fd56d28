//! The account of a run: calls, and all that was wrong.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// The account of a run on the double, since it was last reset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoubleReport {
    /// Number of calls of each function; the names of errors are not asked for in vain, and not
    /// counted.
    pub calls: BTreeMap<String, u64>,
    /// Things that were destroyed with their context and had not been given back before.
    pub leaks: Vec<String>,
    /// Pairs of operations that touch the same bytes in no order.
    pub races: Vec<String>,
    /// Rules that were broken, and faults of kernels.
    pub faults: Vec<String>,
    /// Things that are alive: contexts, memory, streams, events, modules.
    pub live: Vec<String>,
    /// Number of operations that have run, and a sum of their order.
    pub trace: Trace,
}

/// The order in which operations ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Operations that have run.
    pub operations: u64,
    /// Depends on their kinds and their order.
    pub digest: u64,
}

impl DoubleReport {
    /// Number of calls of all functions.
    pub fn total_calls(&self) -> u64 {
        self.calls.values().sum()
    }

    /// Number of calls of one function.
    pub fn count(&self, function: &str) -> u64 {
        self.calls.get(function).copied().unwrap_or(0)
    }

    /// Returns whether no rule was broken, nothing raced or leaked, and nothing is alive.
    pub fn is_clean(&self) -> bool {
        let lists = [&self.leaks, &self.races, &self.faults, &self.live];
        lists.into_iter().all(Vec::is_empty)
    }

    /// Reads back what [`Display`] writes; lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        let mut report = Self::default();
        for line in text.lines() {
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            match kind {
                "call" => report.read_call(rest),
                "trace" => report.read_trace(rest),
                "leak" => report.leaks.push(rest.to_owned()),
                "race" => report.races.push(rest.to_owned()),
                "fault" => report.faults.push(rest.to_owned()),
                "live" => report.live.push(rest.to_owned()),
                _ => (),
            }
        }
        report
    }

    fn read_call(&mut self, rest: &str) {
        if let Some((count, name)) = rest.split_once(' ') {
            self.calls.insert(name.to_owned(), count.parse().unwrap_or(0));
        }
    }

    fn read_trace(&mut self, rest: &str) {
        if let Some((operations, digest)) = rest.split_once(' ') {
            let operations = operations.parse().unwrap_or(0);
            self.trace = Trace { operations, digest: digest.parse().unwrap_or(0) };
        }
    }
}

impl Display for DoubleReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.calls {
            writeln!(f, "call {count} {name}")?;
        }
        let lists = [("leak", &self.leaks), ("race", &self.races), ("fault", &self.faults), ("live", &self.live)];
        for (kind, list) in lists {
            for text in list {
                writeln!(f, "{kind} {}", text.replace('\n', " "))?;
            }
        }
        writeln!(f, "trace {} {}", self.trace.operations, self.trace.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_back_from_its_text() {
        let report = DoubleReport {
            calls: BTreeMap::from([("cuInit".to_owned(), 3)]),
            leaks: vec!["8 bytes".to_owned()],
            races: vec!["a and b".to_owned()],
            trace: Trace { operations: 2, digest: u64::MAX },
            ..DoubleReport::default()
        };
        assert_eq!(DoubleReport::parse(&report.to_string()), report);
        assert!(!report.is_clean() && report.total_calls() == 3 && report.count("cuInit") == 3);
    }
}
