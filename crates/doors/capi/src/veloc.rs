//! The call of VELOC's interface that takes a communicator; the others are in crates/doors/veloc.

use std::ffi::{c_char, c_int};

use crate::callbacks::RecoupComm;
use crate::lent::callbacks;

/// Implements `VELOC_Init`, on a copy of a communicator of callbacks in place of MPI's. Its
/// callbacks must be allowed on any thread.
///
/// # Safety
/// `comm` is null or points to a communicator whose callbacks keep their promises on any thread;
/// `cfg` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_init(comm: *const RecoupComm, cfg: *const c_char) -> c_int {
    // SAFETY: `comm` is null or points to a communicator.
    let raw = unsafe { comm.as_ref() }.copied();
    // SAFETY: its callbacks do what they should.
    let callbacks = raw.and_then(|raw| unsafe { callbacks(raw) });
    // SAFETY: `cfg` is null or a string.
    unsafe { recoup_veloc::init(callbacks, cfg) }
}
