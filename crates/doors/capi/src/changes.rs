//! The calls for variables that have changed since older versions.

use std::ffi::c_char;

use crate::calls::{answer, check_name, text};
use crate::handle::{Handle, RecoupHandle};
use crate::status::{CallFailure, RECOUP_E_NAME, guarded};

/// Declares that versions may lack a variable, which the program has added since: recoup_restore
/// then leaves its values as they are. Before the restore, as the two calls below. The same on all
/// ranks.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_default(handle: RecoupHandle, name: *const c_char) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { variable(name) }?;
        handle.with(|_, core| {
            core.check_protected(name)?;
            core.changes.may_lack(name);
            Ok(())
        })
    })
}

/// Declares that versions which lack a variable hold it under its former name, `former`:
/// recoup_restore brings it back from there.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` and `former` are NULL or C strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_renamed(handle: RecoupHandle, name: *const c_char, former: *const c_char) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { variable(name) }?;
        // SAFETY: as the caller promises.
        let former = unsafe { variable(former) }?;
        handle.with(|_, core| {
            core.check_protected(name)?;
            core.changes.renamed(name, former);
            Ok(())
        })
    })
}

/// Declares that versions may hold a variable that the program has no more: nothing is restored
/// from it.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT; RECOUP_E_NAME, also if it is protected.
///
/// # Safety
/// `name` is NULL or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_dropped(handle: RecoupHandle, name: *const c_char) -> i32 {
    guarded(|| {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { variable(name) }?;
        handle.with(|_, core| {
            if core.check_protected(name).is_ok() {
                return Err(CallFailure::new(RECOUP_E_NAME, format!("variable {name}: dropped, but protected")));
            }
            core.changes.dropped(name);
            Ok(())
        })
    })
}

/// Writes 1 to `is_default` if the version restored last lacked the variable, whose values are the
/// program's own, else 0.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string, `is_default` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_is_default(handle: RecoupHandle, name: *const c_char, is_default: *mut i32) -> i32 {
    let found = || {
        let handle = Handle::of(handle)?;
        // SAFETY: as the caller promises.
        let name = unsafe { variable(name) }?;
        handle.with(|_, core| {
            core.check_protected(name)?;
            Ok(i32::from(core.defaults.iter().any(|default| default == name)))
        })
    };
    // SAFETY: as the caller promises.
    unsafe { answer("is_default", is_default, found) }
}

/// Reads the name of a variable.
///
/// # Safety
/// `name` is NULL or a C string that lives as long as the call.
unsafe fn variable<'a>(name: *const c_char) -> Result<&'a str, CallFailure> {
    // SAFETY: as the caller promises.
    let name = unsafe { text("name", name) }?;
    check_name(name).map(|()| name)
}
