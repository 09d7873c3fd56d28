//! Two things that safe Rust has no words for: a test whether a file is open anywhere else, which
//! changes no content, and writes that no limit of the size of files ends with a signal.
#![expect(unsafe_code, reason = "leases are asked for by fcntl(2), signals held back by sigmask(2)")]

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

/// A guard of a thread that writes. A file that grows beyond the limit of the process (`ulimit -f`)
/// is an error of the system (`EFBIG`) then, and not the end of the process: the signal that comes
/// with it is held back, and dropped. The program's own handling of signals stays.
#[derive(Debug)]
pub struct HeldSizeSignal {
    /// The signal, and the mask of the thread before; `None` if it could not be changed.
    #[cfg(target_os = "linux")]
    before: Option<(libc::sigset_t, libc::sigset_t)>,
}

#[cfg(target_os = "linux")]
impl HeldSizeSignal {
    /// Holds the signal back until this is dropped.
    #[must_use]
    pub fn begin() -> Self {
        // SAFETY: a set of signals is plain data, for which zeros are a value; the calls write to
        // these two sets alone.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGXFSZ);
            let is_held = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before) == 0;
            Self { before: is_held.then_some((set, before)) }
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for HeldSizeSignal {
    fn drop(&mut self) {
        let Some((set, before)) = &self.before else { return };
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the calls read sets and a time that live here. The signal of a write goes to the
        // thread that wrote, so what is taken here is its own.
        unsafe {
            libc::sigtimedwait(set, std::ptr::null_mut(), &raw const at_once);
            libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
        }
    }
}

#[cfg(not(target_os = "linux"))]
impl HeldSizeSignal {
    /// Holds nothing back: only Linux takes back a signal of one thread.
    #[must_use]
    pub fn begin() -> Self {
        Self {}
    }
}
