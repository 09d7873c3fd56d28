//! Trials of the system's monitors, never a guess by version.

use crate::no_monitor::NoMonitor;

/// The monitors of the system that work here, and why others do not. Owners that say what they
/// write need none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitors {
    /// Freezes values whose owner does not say what it writes.
    pub watch: Result<(), NoMonitor>,
    /// Tells which values were written.
    pub track: Result<(), NoMonitor>,
}

impl Monitors {
    /// Tries each monitor on memory of its own: freezes and overwrites a value, and looks for what
    /// the monitor promises.
    #[must_use]
    pub fn probe() -> Self {
        #[cfg(target_os = "linux")]
        let monitors = Self { watch: crate::watch::probe(), track: crate::track::probe() };
        #[cfg(not(target_os = "linux"))]
        let monitors = Self { watch: Err(NoMonitor::NotThere), track: Err(NoMonitor::NotThere) };
        monitors
    }
}
