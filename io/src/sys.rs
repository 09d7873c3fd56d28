//! A test whether a file is open anywhere else: the one question here that safe Rust has no words
//! for. It changes no content.
#![expect(unsafe_code, reason = "leases are asked for by fcntl(2)")]

use std::fs::File;

/// Returns whether a file that is open for writing is open nowhere else on this machine, mapped
/// memory included: a write lease, which is given only then, is taken and given back. `false` where
/// the system has none.
#[cfg(target_os = "linux")]
pub(crate) fn is_open_once(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    /// Number of `F_SETSIG`, which libc does not define for all of Linux.
    const F_SETSIG: libc::c_int = 10;
    let command = |command, argument: libc::c_int| {
        // SAFETY: the descriptor is open as long as `file` is borrowed; these commands take an
        // integer and no memory.
        unsafe { libc::fcntl(file.as_raw_fd(), command, argument) == 0 }
    };
    // Who opens the file in between has a signal sent: one that is ignored unless somebody asks for
    // it.
    command(F_SETSIG, libc::SIGURG)
        && command(libc::F_SETLEASE, libc::F_WRLCK)
        && command(libc::F_SETLEASE, libc::F_UNLCK)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn is_open_once(_: &File) -> bool {
    false
}
