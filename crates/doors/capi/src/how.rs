//! The ways in which a solver continues from a version, as constants of C.

use recoup::core::Resume;

/// Value of `how`: the version belongs to another problem, and its iterate came back only if its
/// residual for this one is not above that of the program's own. Directions and recurrences are as
/// they were. Only with the option same_operator=no.
pub const RECOUP_FIRST_GUESS: i32 = -1;
/// Value of `how`: only the iterate is back; the method restarts from it.
pub const RECOUP_RESTARTED: i32 = 0;
/// Value of `how`: the directions are back too, for a deflated restart.
pub const RECOUP_DEFLATED: i32 = 1;
/// Value of `how`: all that the recurrence needs is back; the residual is recomputed.
pub const RECOUP_TRADITIONAL: i32 = 2;
/// Value of `how`: everything is back, bit for bit.
pub const RECOUP_EXACT: i32 = 3;

const _: () = assert!(Resume::Restarted as i32 == RECOUP_RESTARTED && Resume::Deflated as i32 == RECOUP_DEFLATED);
const _: () = assert!(Resume::Traditional as i32 == RECOUP_TRADITIONAL && Resume::Exact as i32 == RECOUP_EXACT);
