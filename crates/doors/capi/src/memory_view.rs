//! The calls recoup_view_*: one version of a memory, read and not restored.

use std::ffi::{c_char, c_void};

use recoup::core::{BorrowedMut, ValuesMut};
use recoup::memory::{StructureSummary, VersionView};

use crate::calls::{answer, out, text};
use crate::memory::{MEMORIES, RecoupMemory};
use crate::memory_array::{LentValues, code_of, kind_of};
use crate::numbers::Numbered;
use crate::status::{CallFailure, RECOUP_E_MISMATCH, RECOUP_E_NAME, RECOUP_OK, guarded};

/// A view: one version of a memory, to be read. 0 is none. Views are not used again after
/// recoup_view_close.
pub type RecoupView = u64;

static VIEWS: Numbered<VersionView> = Numbered::new("view");

/// Finds an array of a version.
fn structure(view: &VersionView, name: &str) -> Result<StructureSummary, CallFailure> {
    let found = view.structures().find(|structure| structure.name == name);
    found.ok_or_else(|| CallFailure::new(RECOUP_E_NAME, format!("version {} has no array {name:?}", view.number())))
}

/// Looks at a version, and writes the view to `view`. The arrays of the program stay as they are,
/// and the view keeps its version until it is closed, however many commits follow.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, also for a version that is not kept.
///
/// # Safety
/// `view` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_view_open(memory: RecoupMemory, number: u64, view: *mut RecoupView) -> i32 {
    let open = || MEMORIES.with(memory, |open| Ok(VIEWS.insert(open.memory.view(number)?)));
    // SAFETY: as the caller promises.
    unsafe { answer("view", view, open) }
}

/// Writes type and number of the values of an array in the version of a view.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_NAME.
///
/// # Safety
/// `name` is NULL or a C string; `type` and `count` are NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_view_shape(
    view: RecoupView,
    name: *const c_char,
    r#type: *mut i32,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let view = VIEWS.get(view)?;
        let type_target = out("type", r#type)?;
        let count_target = out("count", count)?;
        // SAFETY: as the caller promises.
        let found = structure(&view, unsafe { text("name", name) }?)?;
        // SAFETY: neither is NULL, and both are the caller's to be written.
        unsafe {
            type_target.write(code_of(found.kind));
            count_target.write(found.len);
        }
        Ok(RECOUP_OK)
    })
}

/// Reads `count` values of `type` from value `first` of an array, in the version of a view, to
/// `into`. Every block is checked, and nothing is written if one is damaged.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, also for values that the array does not have, RECOUP_E_NAME,
/// RECOUP_E_MISMATCH for another type, RECOUP_E_DAMAGED, RECOUP_E_STORE.
///
/// # Safety
/// `name` is NULL or a C string; `into` has room for `count` values of `type`, unless it is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_view_read(
    view: RecoupView,
    name: *const c_char,
    r#type: i32,
    first: u64,
    into: *mut c_void,
    count: u64,
) -> i32 {
    guarded(|| {
        let view = VIEWS.get(view)?;
        // SAFETY: as the caller promises.
        let name = unsafe { text("name", name) }?;
        let kind = kind_of(r#type)?;
        let found = structure(&view, name)?;
        let mut memory = LentValues { kind, start: into, count }.memory(name)?;
        if kind != found.kind {
            let what = format!("array {name}: values of type {} expected, {} found", kind.name(), found.kind.name());
            return Err(CallFailure::new(RECOUP_E_MISMATCH, what));
        }
        if first.checked_add(count).is_none_or(|end| end > found.len) {
            let what = format!("array {name}: {count} values from value {first} of {}", found.len);
            return Err(CallFailure::argument(what));
        }
        let mut values = vec![0; count as usize * kind.bytes()];
        view.read_kind(name, kind, first as usize, &mut values)?;
        match memory.lend_mut() {
            BorrowedMut::Host(ValuesMut::Bytes(bytes)) => bytes.copy_from_slice(&values),
            _ => unreachable!("it was lent as bytes of the host"),
        }
        Ok(RECOUP_OK)
    })
}

/// Closes a view. Its number is never used again.
///
/// RECOUP_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_view_close(view: RecoupView) -> i32 {
    guarded(|| VIEWS.remove(view).map(drop))
}
