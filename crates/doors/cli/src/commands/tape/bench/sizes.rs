//! Sizes of states: all equal, or those of a trace.

use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::exit::Exit;
use crate::options::bytes;

/// Processes at most.
const PROCESSES_MAX: usize = 64;
/// States of a process at most.
const STATES_MAX: usize = 100_000;

/// States of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UniformStates {
    pub(super) n_states: usize,
    pub(super) state_bytes: u64,
}

impl FromStr for UniformStates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("expected states and bytes of each, as in 256x128MiB; states at most {STATES_MAX}");
        let (n_states, size) = text.split_once('x').ok_or_else(refused)?;
        let n_states = n_states.parse().ok().filter(|n| (1..=STATES_MAX).contains(n)).ok_or_else(refused)?;
        let state_bytes = bytes(size).map_err(|error| error.to_string())?;
        Ok(Self { n_states, state_bytes })
    }
}

/// Numbers of processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProcessCounts(pub(super) Vec<usize>);

impl FromStr for ProcessCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("expected numbers from 1 to {PROCESSES_MAX}, as in 4 or 1,2,4,8 or 1..8");
        let count = |word: &str| word.parse().ok().filter(|n| (1..=PROCESSES_MAX).contains(n));
        let counts: Option<Vec<usize>> = match text.split_once("..") {
            Some((first, last)) => count(first).zip(count(last)).map(|(first, last)| (first..=last).collect()),
            None => text.split(',').map(count).collect(),
        };
        counts.filter(|counts| !counts.is_empty()).map(Self).ok_or_else(refused)
    }
}

impl ProcessCounts {
    /// Returns the greatest of them.
    pub(super) fn most(&self) -> usize {
        self.0.iter().copied().max().unwrap_or(1)
    }
}

/// Bytes of the states of each process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StateSizes {
    /// Option that states the sizes.
    pub(super) source: String,
    pub(super) of_process: Vec<Vec<u64>>,
}

impl StateSizes {
    pub(super) fn of_uniform(states: UniformStates, n_processes: usize) -> Self {
        let UniformStates { n_states, state_bytes } = states;
        let source = format!("--uniform {n_states}x{state_bytes}");
        Self { source, of_process: vec![vec![state_bytes; n_states]; n_processes] }
    }

    /// Reads a table: a row for each state, a column for each process.
    ///
    /// # Errors
    /// Exit 2 for a file that is no such table, or has fewer columns than there are processes.
    pub(super) fn of_trace(path: &Path, n_processes: usize) -> Result<Self> {
        let source = format!("--trace {}", path.display());
        let text = std::fs::read_to_string(path).with_context(|| source.clone())?;
        let refused = |what: String| Exit::Usage.because(format!("{source}{what}"));
        let columns = parse_columns(&text).map_err(refused)?;
        let n_columns = columns.len();
        if n_columns < n_processes {
            let what = format!(": {n_columns} columns, a process each, and {n_processes} processes; ask for fewer");
            return Err(refused(what));
        }
        Ok(Self { source, of_process: columns.into_iter().take(n_processes).collect() })
    }

    pub(super) fn repeated(self, times: usize) -> Self {
        Self { of_process: self.of_process.into_iter().map(|sizes| sizes.repeat(times)).collect(), ..self }
    }

    /// Bytes of the greatest state.
    pub(super) fn greatest_bytes(&self) -> u64 {
        self.of_process.iter().flatten().copied().max().unwrap_or(0)
    }

    /// Bytes of all states of the first `n_processes` processes.
    pub(super) fn total_bytes(&self, n_processes: usize) -> u64 {
        self.of_process.iter().take(n_processes).flatten().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }

    /// Number of states of a process.
    pub(super) fn n_states(&self) -> usize {
        self.of_process.first().map_or(0, Vec::len)
    }
}

/// Returns the columns; `Err` names the place and says what is wrong.
fn parse_columns(text: &str) -> Result<Vec<Vec<u64>>, String> {
    let mut columns: Vec<Vec<u64>> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if columns.is_empty() {
            columns.resize(cells.len(), Vec::new());
        }
        if cells.len() != columns.len() {
            return Err(format!(", line {}: {} columns expected, {} found", index + 1, columns.len(), cells.len()));
        }
        for (column, cell) in cells.iter().enumerate() {
            let expected = || {
                let place = format!(", line {}, column {}", index + 1, column + 1);
                format!("{place}: expected bytes of a state, a whole number above 0, found '{}'", cell.escape_debug())
            };
            columns[column].push(cell.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(expected)?);
        }
    }
    match columns.first().map_or(0, Vec::len) {
        0 => Err(": no sizes are in it; expected a row for each state, a column for each process".to_owned()),
        n if n > STATES_MAX => Err(format!(": {n} states, {STATES_MAX} are allowed")),
        _ => Ok(columns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_a_number_a_list_or_a_range() {
        for (text, expected) in [("4", vec![4]), ("1,2,8", vec![1, 2, 8]), ("1..3", vec![1, 2, 3])] {
            assert_eq!(text.parse(), Ok(ProcessCounts(expected)), "{text}");
        }
        for text in ["", "0", "1,", "3..1", "65", "..4", "many"] {
            assert!(text.parse::<ProcessCounts>().is_err(), "{text}");
        }
    }

    #[test]
    fn uniform_states_have_a_number_and_a_size() {
        assert_eq!("2x1KiB".parse(), Ok(UniformStates { n_states: 2, state_bytes: 1024 }));
        for text in ["", "2", "2x", "x3", "0x3", "100001x1", "2xbig"] {
            assert!(text.parse::<UniformStates>().is_err(), "{text}");
        }
    }

    #[test]
    fn columns_of_a_trace_are_processes_and_faults_have_a_place() {
        assert_eq!(parse_columns("1,2\n\n 3 ,4\n"), Ok(vec![vec![1, 3], vec![2, 4]]));
        for (text, words) in [
            ("1,2\n3", "line 2: 2 columns expected, 1 found"),
            ("1,2\n3,x", "line 2, column 2: expected bytes of a state"),
            ("0", "line 1, column 1: "),
            ("\n", "no sizes are in it"),
        ] {
            let found = parse_columns(text).unwrap_err();
            assert!(found.contains(words), "{text}: {found}");
        }
    }
}
