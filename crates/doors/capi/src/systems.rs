//! The calls of recoup.h for runs that solve many systems, one after the other.

use crate::calls::answer_or;
use crate::handle::{Handle, RecoupHandle};
use crate::status::{RECOUP_NO_VERSION, guarded};

/// Brings back the variables of role RECOUP_DYNAMIC alone, from the newest version that holds them
/// whole, and writes the number of its system: A and b of that system can then be made again, and
/// the run continues with recoup_operator, recoup_begin_system and recoup_restore. Before the first
/// recoup_begin_system, in a run with the option systems. Collective.
///
/// RECOUP_NO_VERSION when there is none, and nothing is written; codes as of recoup_restore.
///
/// # Safety
/// `index` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_find_system(handle: RecoupHandle, index: *mut u64) -> i32 {
    let find = || Handle::of(handle)?.with(|this, core| core.find_system(this));
    // SAFETY: as the caller promises.
    unsafe { answer_or("index", index, RECOUP_NO_VERSION, find) }
}

/// Begins the next system of a run with the option systems, a time step, say: with the operator and
/// the right-hand side given last. Its number is above that of the system before. Every version
/// says to which system it belongs, and recoup_restore gives it to no other: RECOUP_E_OTHER_PROBLEM
/// with the number to continue at. Iterations count from 0 in each system; intervals and costs
/// continue. Collective.
///
/// RECOUP_E_HANDLE, RECOUP_E_ORDER, RECOUP_E_OPERATOR, RECOUP_E_STORE, RECOUP_E_COMM,
/// RECOUP_E_CALLBACK.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_begin_system(handle: RecoupHandle, index: u64) -> i32 {
    guarded(|| Handle::of(handle)?.with(|this, core| core.begin_system(this, index)))
}
