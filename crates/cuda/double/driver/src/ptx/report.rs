//! Words for threads that wait.

use std::collections::BTreeMap;

use super::instruction::Instruction;
use super::thread::{ThreadState, ThreadStatus};

/// The lines where threads wait, and the numbers of the threads.
pub(super) fn waiting(lanes: &[ThreadState], code: &[Instruction]) -> String {
    let mut by_line = BTreeMap::<usize, Vec<usize>>::new();
    for (thread, lane) in lanes.iter().enumerate() {
        if lane.status != ThreadStatus::Ended {
            by_line.entry(code[lane.position].line).or_default().push(thread);
        }
    }
    let lines = by_line.iter().map(|(line, threads)| format!("line {line}: threads {}", ranges(threads)));
    lines.collect::<Vec<_>>().join("; ")
}

/// Ascending numbers, those in a row by the first and the last.
fn ranges(numbers: &[usize]) -> String {
    let rows = numbers.chunk_by(|a, b| a + 1 == *b);
    let words = rows.map(|row| match row {
        [only] => only.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_are_told_by_their_ends() {
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0 to 2, 5, 7 to 8");
    }
}
