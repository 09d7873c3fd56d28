//! Lines for people, on stderr.
//!
//! Nothing depends on them: a terminal that was closed or a disk that is full costs the line, and
//! never the run. The macros of the standard library panic there, and a lint forbids them.

use std::fmt;
use std::io::Write as _;

/// Prints a line on stderr, if it can be.
pub(crate) fn tell(line: impl fmt::Display) {
    // One write for each line: those of several processes stay whole.
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).ok();
}
