//! Calls that no driver has, and the account that a process leaves when it ends.

#![expect(unsafe_code, reason = "the functions are exported, and one of them runs when the process ends")]

use recoup_cuda_double::Settings;

use super::super::host_memory::HostAddress;
use super::super::state::{change, report, reset};

/// Reads `count` numbers in the order of [`recoup_cuda_double::NAMES`].
fn settings(values: HostAddress, count: usize) -> Option<Settings> {
    let value = |index: usize| {
        let mut bytes = [0; size_of::<u64>()];
        values.later(index * size_of::<u64>()).read(&mut bytes);
        u64::from_ne_bytes(bytes)
    };
    let values: Vec<u64> = (0..count).map(value).collect();
    Settings::from_values(&values)
}

/// Begins again with other settings. Returns 0, or 1 for settings that are not understood.
#[unsafe(no_mangle)]
extern "C" fn recoup_double_reset(values: HostAddress, count: usize) -> u32 {
    settings(values, count).map_or(1, |settings| {
        reset(settings);
        0
    })
}

/// Continues with other settings. Returns 0, or 1 for settings that are not understood.
#[unsafe(no_mangle)]
extern "C" fn recoup_double_change(values: HostAddress, count: usize) -> u32 {
    settings(values, count).map_or(1, |settings| {
        change(settings);
        0
    })
}

/// Writes the account so far, as text, into `capacity` bytes; returns its length, of which as much
/// is written as fits.
#[unsafe(no_mangle)]
extern "C" fn recoup_double_report(target: HostAddress, capacity: usize) -> usize {
    let text = report().unwrap_or_default().to_string();
    target.write(&text.as_bytes()[..text.len().min(capacity)]);
    text.len()
}

/// Writes the account to the file that `RECOUP_DOUBLE_REPORT` names. A program that links this
/// crate has a copy of its own, which was never called and writes nothing.
extern "C" fn leave_report() {
    let Some(path) = std::env::var_os("RECOUP_DOUBLE_REPORT") else { return };
    let Some(report) = report() else { return };
    if let Err(error) = std::fs::write(&path, report.to_string()) {
        eprintln!("RECOUP_DOUBLE_REPORT: {}: {error}", path.display());
    }
}

// SAFETY: the section holds functions without arguments that run when the library is unloaded or
// the process ends.
#[cfg_attr(target_os = "linux", unsafe(link_section = ".fini_array"))]
#[used]
static LEAVE_REPORT: extern "C" fn() = leave_report;
