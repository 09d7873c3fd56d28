//! Freezing writers, and what a kill leaves.

mod kills;
mod writers;
