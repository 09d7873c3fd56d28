//! Versioned memory from outside, killed and limited in processes of its own.

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
