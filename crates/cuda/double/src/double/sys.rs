//! Loading the library, and its calls for tests.

#![expect(unsafe_code, reason = "loads a library and calls into it")]

use std::path::Path;
use std::sync::OnceLock;

/// The functions of the library for tests.
#[derive(Debug)]
pub(super) struct Library {
    reset: extern "C" fn(*const u64, usize) -> u32,
    change: extern "C" fn(*const u64, usize) -> u32,
    report: extern "C" fn(*mut u8, usize) -> usize,
}

/// Loads the library once and keeps it.
pub(super) fn library(path: &Path) -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        // SAFETY: the library is that of this crate, whose initialisers do nothing.
        let library = unsafe { libloading::Library::new(path) };
        let library: &'static libloading::Library = Box::leak(Box::new(library.expect("the library loads")));
        // SAFETY: the function has this type in `driver/control/sys.rs`.
        let reset = unsafe { library.get(b"recoup_double_reset\0") };
        // SAFETY: the function has this type in `driver/control/sys.rs`.
        let change = unsafe { library.get(b"recoup_double_change\0") };
        // SAFETY: the function has this type in `driver/control/sys.rs`.
        let report = unsafe { library.get(b"recoup_double_report\0") };
        Library {
            reset: *reset.expect("it resets"),
            change: *change.expect("it changes"),
            report: *report.expect("it reports"),
        }
    })
}

impl Library {
    /// Passes settings on; whether they were understood.
    pub(super) fn reset(&self, values: &[u64]) -> bool {
        (self.reset)(values.as_ptr(), values.len()) == 0
    }

    /// Passes settings on that are to hold from now on; whether they were understood.
    pub(super) fn change(&self, values: &[u64]) -> bool {
        (self.change)(values.as_ptr(), values.len()) == 0
    }

    /// Returns the text of the account.
    pub(super) fn report(&self) -> String {
        let mut bytes = vec![0; 1 << 20];
        let len = (self.report)(bytes.as_mut_ptr(), bytes.len());
        bytes.truncate(len);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
