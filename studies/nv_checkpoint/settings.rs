//! Settings of all runs, and the places that they use.

use std::path::PathBuf;

use crate::programs::Sizes;

/// The time that is given.
pub(crate) const CLOCK: &str = "Time leaves out what a thread waits for a processor that others hold, where the system \
                                counts that. Memory and disk are shared with them.";

/// Settings of all runs.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Runs of which the fastest counts.
    pub(crate) runs: u32,
    /// Bytes per second of the parallel file system.
    pub(crate) rate: f64,
    pub(crate) sizes: Sizes,
    /// Folder of a file system in memory.
    pub(crate) memory: PathBuf,
    /// Folder on a disk.
    pub(crate) disk: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self { runs: 5, rate: 50e6, sizes: Sizes::Full, memory: "/dev/shm".into(), disk: std::env::temp_dir() }
    }
}
