//! A trial of the system's monitor, never a guess by version.

use crate::no_monitor::NoMonitor;

/// The monitor of the system, and why it does not work here. Owners that say what they write do not
/// need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitors {
    /// Tells which values were written.
    pub track: Result<(), NoMonitor>,
}

impl Monitors {
    /// Tries the monitor on memory of its own: writes a value, and looks for the notes.
    #[must_use]
    pub fn probe() -> Self {
        #[cfg(target_os = "linux")]
        let track = crate::track::probe();
        #[cfg(not(target_os = "linux"))]
        let track = Err(NoMonitor::NotThere);
        Self { track }
    }
}
