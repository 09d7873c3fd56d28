//! The calls recoup_log_*: a log of finished calls of a solver. They are local: ranks agree in the
//! program, which tests every answer before it uses it.

use std::ffi::{c_char, c_void};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use recoup::io::{CallLog, LogPart, LogRows};

use crate::calls::{answer, out, text};
use crate::numbers::Numbered;
use crate::status::{CallFailure, RECOUP_E_FULL, RECOUP_E_MISMATCH, RECOUP_NO_VERSION, RECOUP_OK, guarded};

/// A log of finished calls, seen from one rank. 0 is none.
pub type RecoupLog = u64;

/// The rows of a vector that a rank has.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecoupLogRows {
    /// The first of them.
    pub first: u64,
    /// Rows of this rank.
    pub count: u64,
    /// Rows of all ranks.
    pub global: u64,
    /// Bytes of one row.
    pub bytes: u32,
}

impl From<RecoupLogRows> for LogRows {
    fn from(rows: RecoupLogRows) -> Self {
        Self { first: rows.first, count: rows.count, global: rows.global, bytes: rows.bytes }
    }
}

static LOGS: Numbered<Mutex<CallLog>> = Numbered::new("log");

fn with_log<R>(number: RecoupLog, body: impl FnOnce(&mut CallLog) -> Result<R, CallFailure>) -> Result<R, CallFailure> {
    body(&mut LOGS.get(number)?.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Returns rows, and the bytes of them in memory.
///
/// # Safety
/// `rows` is NULL or points to such a thing.
unsafe fn rows_of(rows: *const RecoupLogRows) -> Result<(LogRows, usize), CallFailure> {
    // SAFETY: as the caller promises.
    let rows = *unsafe { rows.as_ref() }.ok_or_else(|| CallFailure::argument("rows is NULL"))?;
    let is_inside = rows.first.checked_add(rows.count).is_some_and(|end| end <= rows.global);
    let bytes = rows.count.checked_mul(u64::from(rows.bytes)).and_then(|bytes| usize::try_from(bytes).ok());
    match bytes.filter(|bytes| is_inside && rows.bytes > 0 && *bytes <= isize::MAX as usize) {
        Some(bytes) => Ok((rows.into(), bytes)),
        None => Err(CallFailure::argument(format!("{} rows from row {} of {}", rows.count, rows.first, rows.global))),
    }
}

/// Opens the log of directory `dir` for rank `rank` of `size`, and writes it to `log`. A log may
/// have several streams of calls, each with a name of letters and digits. Nothing is made before
/// the first call is put, and the file of each rank takes `bytes_max` bytes at most.
///
/// RECOUP_E_ARGUMENT, RECOUP_E_STORE.
///
/// # Safety
/// `dir` and `stream` are NULL or C strings; `log` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_log_open(
    dir: *const c_char,
    stream: *const c_char,
    rank: i32,
    size: i32,
    bytes_max: u64,
    log: *mut RecoupLog,
) -> i32 {
    let open = || {
        // SAFETY: as the caller promises.
        let [dir, stream] = unsafe { [text("dir", dir)?, text("stream", stream)?] };
        if stream.is_empty() || !stream.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(CallFailure::argument(format!("stream {stream:?}: letters and digits expected")));
        }
        if !(0..size).contains(&rank) {
            return Err(CallFailure::argument(format!("rank {rank} of {size}")));
        }
        let part = LogPart { stream: stream.to_owned(), rank: rank as u32, size: size as u32 };
        let opened = CallLog::open(Path::new(dir), part, bytes_max)?;
        Ok(LOGS.insert(Mutex::new(opened)))
    };
    // SAFETY: as the caller promises.
    unsafe { answer("log", log, open) }
}

/// Finds call `number`: writes its facts, for which there is room for `facts_bytes` bytes, how many
/// bytes they are to `facts_bytes`, and these rows of its answer to `values`. Ranks may differ in
/// what they find, and agree before they use it.
///
/// RECOUP_NO_VERSION when it is not there, or damaged; RECOUP_E_HANDLE, RECOUP_E_ARGUMENT,
/// RECOUP_E_MISMATCH for facts without room, RECOUP_E_STORE. Then `values` may hold anything.
///
/// # Safety
/// `rows` is NULL or points to such a thing; `facts_bytes` can be written, `facts` and
/// `values` have room, unless they are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_log_find(
    log: RecoupLog,
    number: u64,
    rows: *const RecoupLogRows,
    facts: *mut c_void,
    facts_bytes: *mut u64,
    values: *mut c_void,
) -> i32 {
    guarded(|| {
        let [facts, values] = [out("facts", facts.cast::<u8>())?, out("values", values.cast::<u8>())?];
        let room = out("facts_bytes", facts_bytes)?;
        // SAFETY: as the caller promises.
        let (rows, bytes) = unsafe { rows_of(rows) }?;
        // SAFETY: not NULL, and the caller's to be written.
        let values = unsafe { std::slice::from_raw_parts_mut(values, bytes) };
        let Some(kept) = with_log(log, |log| Ok(log.find(number, rows, values)?))? else {
            return Ok(RECOUP_NO_VERSION);
        };
        let found = kept.len() as u64;
        // SAFETY: not NULL, and the caller's.
        if found > unsafe { room.read() } {
            let what = format!("call {number}: {found} bytes of facts found, more than there is room for");
            return Err(CallFailure::new(RECOUP_E_MISMATCH, what));
        }
        // SAFETY: neither is NULL, both can be written, and there is room for the facts.
        unsafe {
            room.write(found);
            facts.copy_from_nonoverlapping(kept.as_ptr(), kept.len());
        }
        Ok(RECOUP_OK)
    })
}

/// Puts call `number`: `facts_bytes` bytes of facts, alike on all ranks, and this rank's rows of
/// the answer. It replaces what was put under that number.
///
/// RECOUP_E_HANDLE, RECOUP_E_ARGUMENT, RECOUP_E_FULL beyond the bytes of recoup_log_open,
/// RECOUP_E_STORE. Then the call is not in the log.
///
/// # Safety
/// `rows` is NULL or points to such a thing; `facts` and `values` are NULL or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recoup_log_put(
    log: RecoupLog,
    number: u64,
    rows: *const RecoupLogRows,
    facts: *const c_void,
    facts_bytes: u64,
    values: *const c_void,
) -> i32 {
    guarded(|| {
        let facts = out("facts", facts.cast_mut().cast::<u8>())?;
        let values = out("values", values.cast_mut().cast::<u8>())?;
        // SAFETY: as the caller promises.
        let (rows, bytes) = unsafe { rows_of(rows) }?;
        let facts_bytes = usize::try_from(facts_bytes).ok().filter(|bytes| *bytes <= isize::MAX as usize);
        let facts_bytes = facts_bytes.ok_or_else(|| CallFailure::argument("facts_bytes is out of its range"))?;
        // SAFETY: neither is NULL, and both can be read.
        let [facts, values] =
            unsafe { [std::slice::from_raw_parts(facts, facts_bytes), std::slice::from_raw_parts(values, bytes)] };
        let is_kept = with_log(log, |log| Ok(log.put(number, rows, facts, values)?))?;
        let full = || CallFailure::new(RECOUP_E_FULL, "the log has the size it may have");
        is_kept.then_some(RECOUP_OK).ok_or_else(full)
    })
}

/// Closes a log. Its number is never used again.
///
/// RECOUP_E_HANDLE.
#[unsafe(no_mangle)]
pub extern "C" fn recoup_log_close(log: RecoupLog) -> i32 {
    guarded(|| LOGS.remove(log).map(drop))
}
