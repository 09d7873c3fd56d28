//! Versioned memory from outside, killed and limited in processes of its own.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod derive;
mod failures;
mod hostile;
mod in_file;
mod kills;
mod mapped;
mod others;
mod regions;
mod saver;
mod versions;
