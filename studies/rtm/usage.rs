//! Time and memory that a piece of work takes.

use std::time::Duration;

use recoup::SystemClock;
use recoup::core::Clock as _;

/// Ticks of `/proc/self/stat` in a second, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Usage of a piece of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) elapsed: Duration,
    /// Seconds of all processors; 0 where the system does not count them.
    pub(crate) processor_seconds: f64,
    /// Growth of the process's memory at its peak; 0 where the system does not count it. Memory
    /// that the allocator has kept from work before is not in it.
    pub(crate) resident_bytes: u64,
}

impl Usage {
    /// Measures a piece of work.
    pub(crate) fn of<R>(clock: &SystemClock, work: impl FnOnce() -> R) -> (Self, R) {
        // Resets the peak; not allowed everywhere, and then the peak of the run counts.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let resident = status_bytes("VmRSS:");
        let processor = processor_seconds();
        let begun = clock.now();
        let result = work();
        let elapsed = clock.now() - begun;
        let processor_seconds = processor_seconds() - processor;
        let resident_bytes = status_bytes("VmHWM:").saturating_sub(resident);
        (Self { elapsed, processor_seconds, resident_bytes }, result)
    }
}

/// A line of `/proc/self/status`, in bytes.
fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or_default() * 1024
}

fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may have spaces; user and system time are the 12th and 13th word
    // behind it.
    let words = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    words.filter_map(|word| word.parse::<f64>().ok()).sum::<f64>() / TICKS_PER_SECOND
}
