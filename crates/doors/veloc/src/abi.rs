//! The C functions. Each takes its arguments apart, and turns an error into a line on standard
//! error and -1. librecoup exports them, and `shim/veloc_calls.c` gives them the names of VELOC.
//!
//! One client serves the process; calls from several threads are made one after another. No panic
//! leaves a call.

use std::ffi::{CStr, c_char, c_int, c_longlong, c_uint, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_comm::{CommCallbacks, LentComm};
use recoup_core::Comm;
use recoup_io::SystemClock;

use crate::{Client, Config, Error, MemoryRegion, Parsed, Selection, say};

/// The code of a call that succeeded.
pub const CODE_SUCCESS: c_int = 0;

/// The code of a call that failed.
pub const CODE_FAILURE: c_int = -1;

/// Bytes of a routed file's name, its end included.
pub const MAX_NAME: usize = 1024;

/// The client of this process.
static OPEN: Mutex<Option<Client>> = Mutex::new(None);

fn open() -> MutexGuard<'static, Option<Client>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a call that needs no client, and returns its code.
fn code(work: impl FnOnce() -> Result<c_int, Error>) -> c_int {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => {
            say(None, &error.to_string());
            CODE_FAILURE
        }
        Err(_) => CODE_FAILURE,
    }
}

/// Runs a call that needs a client, and returns its code.
fn with(call: &'static str, work: impl FnOnce(&mut Client) -> Result<c_int, Error>) -> c_int {
    code(|| {
        let mut open = open();
        let Some(client) = open.as_mut() else {
            return Err(Error::Order { call, what: "VELOC_Init or VELOC_Init_single comes first" });
        };
        match work(client) {
            // The rank that failed has said why.
            Err(Error::Rank { .. }) => Ok(CODE_FAILURE),
            Err(error) => {
                client.say(&error);
                Ok(CODE_FAILURE)
            }
            code => code,
        }
    })
}

fn code_ok(_done: ()) -> c_int {
    CODE_SUCCESS
}

/// Reads a string of the program. Null and invalid UTF-8 give the empty string, which is no valid
/// name, so that collective calls fail together.
///
/// # Safety
/// `text` is null or ends with a zero byte, and stays as it is meanwhile.
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // SAFETY: as the caller promises.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or_default()
}

/// # Safety
/// `ids` is null or holds `n` numbers.
unsafe fn selection<'a>(call: &'static str, mode: c_int, ids: *const c_int, n: c_int) -> Result<Selection<'a>, Error> {
    let refuse = |what: String| Err(Error::Argument { call, what });
    let ids = match usize::try_from(n) {
        _ if mode == 0 => &[],
        Ok(0) => &[],
        // SAFETY: as the caller promises.
        Ok(n) if !ids.is_null() => unsafe { std::slice::from_raw_parts(ids, n) },
        _ => return refuse(format!("{n} numbers at {ids:?}")),
    };
    match mode {
        0 => Ok(Selection::All),
        1 => Ok(Selection::Some(ids)),
        2 => Ok(Selection::Rest(ids)),
        _ => refuse(format!("mode {mode}: 0 (all), 1 (some) or 2 (rest) expected")),
    }
}

fn config(path: &str, warns: bool) -> Result<Config, Error> {
    let Parsed { config, warnings } = Config::read(Path::new(path))?;
    warnings.iter().filter(|_| warns).for_each(|warning| say(None, &format!("configuration {path}: {warning}")));
    Ok(config)
}

fn start(call: &'static str, make: impl FnOnce() -> Result<Client, Error>) -> c_int {
    code(|| {
        let mut open = open();
        if open.is_some() {
            return Err(Error::Order { call, what: "called a second time" });
        }
        *open = Some(make()?);
        Ok(CODE_SUCCESS)
    })
}

/// Starts a client on all ranks, with a copy of the communicator that the program lends as
/// callbacks; `None` is refused. `VELOC_Init` calls this: it needs an MPI, which nothing here
/// knows.
///
/// # Safety
/// `cfg` is null or a string.
pub unsafe fn init(callbacks: Option<Box<dyn CommCallbacks>>, cfg: *const c_char) -> c_int {
    start("VELOC_Init", || {
        let comm = lent_copy(callbacks)?;
        // SAFETY: `cfg` is null or a string.
        let config = config(unsafe { text(cfg) }, comm.rank() == 0);
        Ok(Client::of_ranks(comm, config)?)
    })
}

/// Copies the program's communicator, which clients call from any thread of the program.
fn lent_copy(callbacks: Option<Box<dyn CommCallbacks>>) -> Result<Box<dyn Comm>, Error> {
    let refuse = |what: &str| Error::Argument { call: "VELOC_Init", what: what.to_owned() };
    let lent = LentComm::new(Some(callbacks.ok_or_else(|| refuse("no communicator"))?), Arc::new(SystemClock::new()));
    if !lent.is_free_threaded() {
        return Err(refuse("the communicator's callbacks must be allowed on any thread"));
    }
    Ok(lent.comm().dup()?)
}

/// Starts a client alone.
///
/// # Safety
/// `cfg` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_init_single(unique_id: c_uint, cfg: *const c_char) -> c_int {
    start("VELOC_Init_single", || {
        // SAFETY: as the caller promises.
        let config = config(unsafe { text(cfg) }, true)?;
        Ok(Client::single(unique_id, config))
    })
}

/// Returns 1 from a start that worked to the end, and 0 before and after.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_initialized() -> c_int {
    c_int::from(open().is_some())
}

/// Ends the client; with `drain` only when all copies have arrived.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_finalize(drain: c_int) -> c_int {
    code(|| {
        let taken = open().take();
        let first = Error::Order { call: "VELOC_Finalize", what: "VELOC_Init or VELOC_Init_single comes first" };
        taken.ok_or(first)?.finalize(drain != 0).map(code_ok)
    })
}

/// Protects `count` elements of `base_size` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_mem_protect(id: c_int, ptr: *mut c_void, count: usize, base_size: usize) -> c_int {
    with("VELOC_Mem_protect", |client| {
        let region = MemoryRegion::new(ptr.cast(), count, base_size)?;
        client.protect(None, id, region).map(code_ok)
    })
}

/// Protects memory for checkpoints of one name.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_region_protect(
    id: c_int,
    ptr: *mut c_void,
    count: usize,
    base_size: usize,
    name: *const c_char,
) -> c_int {
    with("VELOC_Region_protect", |client| {
        let region = MemoryRegion::new(ptr.cast(), count, base_size)?;
        // SAFETY: as the caller promises.
        client.protect(Some(unsafe { text(name) }), id, region).map(code_ok)
    })
}

/// Forgets a region.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_mem_unprotect(id: c_int) -> c_int {
    with("VELOC_Mem_unprotect", |client| client.unprotect(None, id).map(code_ok))
}

/// Forgets all regions that have no name.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_mem_clear() -> c_int {
    with("VELOC_Mem_clear", |client| {
        client.clear(None);
        Ok(CODE_SUCCESS)
    })
}

/// Forgets a region of one name.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_region_unprotect(id: c_int, name: *const c_char) -> c_int {
    with("VELOC_Region_unprotect", |client| {
        // SAFETY: as the caller promises.
        client.unprotect(Some(unsafe { text(name) }), id).map(code_ok)
    })
}

/// Forgets all regions of one name.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_region_clear(name: *const c_char) -> c_int {
    with("VELOC_Region_clear", |client| {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name) };
        if name.is_empty() {
            return Err(Error::Argument { call: "VELOC_Region_clear", what: "no name".to_owned() });
        }
        client.clear(Some(name));
        Ok(CODE_SUCCESS)
    })
}

/// Allows a region of doubles an error of at most `bound`. Not one of VELOC's calls.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_region_lossy(id: c_int, bound: f64) -> c_int {
    with("VELOC_Region_lossy", |client| client.allow_error(id, bound).map(code_ok))
}

/// Returns the path to write a file to, or to read it back from.
///
/// # Safety
/// `original` is null or a string; `routed` is null or has room for `VELOC_MAX_NAME` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_route_file(original: *const c_char, routed: *mut c_char) -> c_int {
    with("VELOC_Route_file", |client| {
        let refuse = |what: String| Error::Argument { call: "VELOC_Route_file", what };
        if routed.is_null() {
            return Err(refuse("no room for the name".to_owned()));
        }
        // SAFETY: as the caller promises.
        let path = client.route(unsafe { text(original) })?;
        let bytes = path.as_os_str().as_encoded_bytes();
        if bytes.len() >= MAX_NAME {
            return Err(refuse(format!("{} is longer than VELOC_MAX_NAME, {MAX_NAME}", path.display())));
        }
        // SAFETY: the caller promises room for these bytes; a path of ours is no
        // memory of theirs.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), routed.cast(), bytes.len());
            routed.add(bytes.len()).write(0);
        }
        Ok(CODE_SUCCESS)
    })
}

/// Removes this rank's versions of one name from scratch.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_cleanup(name: *const c_char) -> c_int {
    // SAFETY: as the caller promises.
    with("VELOC_Cleanup", |client| client.clean_up(unsafe { text(name) }).map(code_ok))
}

/// Begins a checkpoint.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_checkpoint_begin(name: *const c_char, version: c_int) -> c_int {
    // SAFETY: as the caller promises.
    with("VELOC_Checkpoint_begin", |client| Ok(code_ok(client.checkpoint_begin(unsafe { text(name) }, version)?)))
}

/// Takes the regions selected.
///
/// # Safety
/// `ids` is null or holds `no_ids` numbers; protected memory is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_checkpoint_selective(mode: c_int, ids: *const c_int, no_ids: c_int) -> c_int {
    with("VELOC_Checkpoint_selective", |client| {
        // SAFETY: as the caller promises.
        unsafe {
            let selection = selection("VELOC_Checkpoint_selective", mode, ids, no_ids)?;
            client.checkpoint_take(selection).map(code_ok)
        }
    })
}

/// Takes all regions.
///
/// # Safety
/// Protected memory is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_checkpoint_mem() -> c_int {
    // SAFETY: as the caller promises.
    with("VELOC_Checkpoint_mem", |client| unsafe { client.checkpoint_take(Selection::All) }.map(code_ok))
}

/// Ends a checkpoint.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_checkpoint_end(success: c_int) -> c_int {
    with("VELOC_Checkpoint_end", |client| Ok(code_ok(client.checkpoint_end(success != 0)?)))
}

/// Waits for the copy under way.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_checkpoint_wait() -> c_int {
    with("VELOC_Checkpoint_wait", |client| client.wait().map(code_ok))
}

/// Returns 1 when no copy is under way and 0 while one is, as VELOC 1.8 does.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_checkpoint_finished() -> c_int {
    with("VELOC_Checkpoint_finished", |client| Ok(c_int::from(client.is_finished())))
}

/// Returns 0 when no copy is under way and -1 while one is, as VELOC after 1.8 does.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_checkpoint_finished_head() -> c_int {
    let answer = |client: &mut Client| Ok(if client.is_finished() { CODE_SUCCESS } else { CODE_FAILURE });
    with("VELOC_Checkpoint_finished", answer)
}

/// Takes a whole checkpoint of all regions.
///
/// # Safety
/// `name` is null or a string; protected memory is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_checkpoint(name: *const c_char, version: c_int) -> c_int {
    with("VELOC_Checkpoint", |client| {
        // SAFETY: as the caller promises.
        client.checkpoint_begin(unsafe { text(name) }, version)?;
        // SAFETY: as the caller promises.
        let taken = unsafe { client.checkpoint_take(Selection::All) };
        let ended = client.checkpoint_end(taken.is_ok());
        taken.and(ended.map_err(Error::from)).map(code_ok)
    })
}

/// Returns the newest version below `version`, or of all for 0, that is whole on all ranks; -1 if
/// there is none.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_restart_test(name: *const c_char, version: c_int) -> c_int {
    with("VELOC_Restart_test", |client| {
        // SAFETY: as the caller promises.
        let found = client.restart_test(unsafe { text(name) }, version)?;
        Ok(found.and_then(|version| c_int::try_from(version).ok()).unwrap_or(CODE_FAILURE))
    })
}

/// Opens a version to take its values back.
///
/// # Safety
/// `name` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_restart_begin(name: *const c_char, version: c_int) -> c_int {
    // SAFETY: as the caller promises.
    with("VELOC_Restart_begin", |client| Ok(code_ok(client.restart_begin(unsafe { text(name) }, version)?)))
}

/// Restores the regions selected.
///
/// # Safety
/// `ids` is null or holds `no_ids` numbers; protected memory is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_recover_selective(mode: c_int, ids: *const c_int, no_ids: c_int) -> c_int {
    with("VELOC_Recover_selective", |client| {
        // SAFETY: as the caller promises.
        unsafe {
            let selection = selection("VELOC_Recover_selective", mode, ids, no_ids)?;
            client.recover(selection).map(code_ok)
        }
    })
}

/// Returns the bytes of a region of the version being restored.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_recover_size(id: c_int) -> c_int {
    with("VELOC_Recover_size", |client| {
        let bytes = client.recover_size(id)?;
        let refuse =
            |_| Error::Argument { call: "VELOC_Recover_size", what: format!("{bytes} bytes do not fit an int") };
        c_int::try_from(bytes).map_err(refuse)
    })
}

/// Returns the bytes of a region of the version being restored, and -1, without a message, for one
/// that is not in it.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_recover_bytes(id: c_int) -> c_longlong {
    let bytes = open().as_ref().and_then(|client| client.recover_size(id).ok());
    bytes.and_then(|bytes| c_longlong::try_from(bytes).ok()).unwrap_or(-1)
}

/// Restores all regions.
///
/// # Safety
/// Protected memory is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_recover_mem() -> c_int {
    // SAFETY: as the caller promises.
    with("VELOC_Recover_mem", |client| unsafe { client.recover(Selection::All) }.map(code_ok))
}

/// Ends a restart.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_veloc_restart_end(success: c_int) -> c_int {
    with("VELOC_Restart_end", |client| Ok(code_ok(client.restart_end(success != 0)?)))
}

/// Makes a whole restart of all regions.
///
/// # Safety
/// `name` is null or a string; protected memory is there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_veloc_restart(name: *const c_char, version: c_int) -> c_int {
    with("VELOC_Restart", |client| {
        // SAFETY: as the caller promises.
        client.restart_begin(unsafe { text(name) }, version)?;
        // SAFETY: as the caller promises.
        let recovered = unsafe { client.recover(Selection::All) };
        let ended = client.restart_end(recovered.is_ok());
        recovered.and(ended.map_err(Error::from)).map(code_ok)
    })
}
