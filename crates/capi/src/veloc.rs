//! The calls of VELOC's interface, which leave with this library: here the one that takes a
//! communicator.

use std::ffi::{c_char, c_int};

use crate::callbacks::RecoupComm;
use crate::lent::Lent;

/// What `VELOC_Init` is made of: a communicator of callbacks in place of MPI's, of which a copy is
/// made.
///
/// # Safety
/// `comm` is null or points to a communicator whose callbacks keep their promises on any thread;
/// `cfg` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_init(comm: *const RecoupComm, cfg: *const c_char) -> c_int {
    let copy = || {
        // SAFETY: `comm` is null or points to a communicator.
        let raw = *unsafe { comm.as_ref() }?;
        // SAFETY: its callbacks do what they should.
        Some(unsafe { Lent::new(Some(raw)) }?.comm().dup())
    };
    // SAFETY: `cfg` is null or a string.
    unsafe { recoup_veloc::init(copy, cfg) }
}
