//! The communicator of a C program, as crates/comm takes one.

use std::ffi::c_int;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use recoup::comm::{CommCallbacks, LentComm};
use recoup::core::CommError;
use recoup::io::SystemClock;

use crate::callbacks::{RECOUP_COMM_ANY_THREAD, RecoupComm, RecoupPart};

/// Takes the communicator of a program, or none for a job of one rank. `None` if callbacks are
/// missing or ranks are out of order.
///
/// # Safety
/// The callbacks do what [`RecoupComm`] says, as long as the result and its copies live.
#[must_use]
pub unsafe fn lent_comm(raw: Option<RecoupComm>) -> Option<LentComm> {
    let callbacks = match raw {
        // SAFETY: as the caller promises.
        Some(raw) => Some(unsafe { callbacks(raw) }?),
        None => None,
    };
    Some(LentComm::new(callbacks, Arc::new(SystemClock::new())))
}

/// Takes the callbacks of a program. `None` if some are missing or ranks are out of order.
///
/// # Safety
/// They do what [`RecoupComm`] says, as long as the result and its copies live.
pub(crate) unsafe fn callbacks(raw: RecoupComm) -> Option<Box<dyn CommCallbacks>> {
    raw.is_whole().then(|| Box::new(CCallbacks(raw)) as Box<dyn CommCallbacks>)
}

/// A whole communicator whose callbacks keep their promises.
struct CCallbacks(RecoupComm);

// SAFETY: the struct is plain data; its flags say from which thread the callbacks may be made, and
// `LentComm` makes them there.
unsafe impl Send for CCallbacks {}
// SAFETY: as above; calls of one handle exclude each other.
unsafe impl Sync for CCallbacks {}

/// The result of the callback `what`; `None` for one that is not there.
fn checked(what: &'static str, code: Option<c_int>) -> Result<(), CommError> {
    match code {
        Some(0) => Ok(()),
        code => Err(CommError::Callback { what, code: code.unwrap_or(-1) }),
    }
}

impl CommCallbacks for CCallbacks {
    fn rank(&self) -> usize {
        self.0.rank as usize
    }

    fn size(&self) -> usize {
        self.0.size as usize
    }

    fn is_free_threaded(&self) -> bool {
        self.0.flags & RECOUP_COMM_ANY_THREAD != 0
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        let Self(raw) = self;
        // SAFETY: the slice has as many bytes as it says, and as many on every rank.
        let code =
            raw.broadcast.map(|f| unsafe { f(raw.ctx, bytes.as_mut_ptr().cast(), bytes.len() as u64, root as i32) });
        checked("broadcast", code)
    }

    fn gather(&self, mine: &[u8], lengths: &[u64], all: &mut [u8]) -> Result<(), CommError> {
        let Self(raw) = self;
        let expected = lengths.get(self.rank()).copied().unwrap_or(0) as usize;
        if expected != mine.len() {
            return Err(CommError::Length { rank: self.rank(), expected, found: mine.len() });
        }
        assert!(lengths.len() == self.size() && lengths.iter().sum::<u64>() == all.len() as u64, "{lengths:?}");
        // An empty slice may have an address that means something else to an MPI (1 is Open MPI's
        // MPI_IN_PLACE).
        let mut place = [0];
        let mine = if mine.is_empty() { &[0] } else { mine };
        let all: &mut [u8] = if all.is_empty() { &mut place } else { all };
        // SAFETY: `all` has the sum of `lengths` bytes, of which this rank's are those of `mine`.
        let code = raw
            .allgatherv
            .map(|f| unsafe { f(raw.ctx, mine.as_ptr().cast(), all.as_mut_ptr().cast(), lengths.as_ptr()) });
        checked("allgatherv", code)
    }

    fn exchange(&self, tag: i32, sends: &[(usize, &[u8])], receives: &mut [(usize, Vec<u8>)]) -> Result<(), CommError> {
        let Self(raw) = self;
        let part = |rank: usize, data: *const u8, bytes: usize| {
            let data = if bytes == 0 { null() } else { data };
            RecoupPart { rank: rank as i32, tag, bytes: bytes as u64, data: data.cast_mut().cast() }
        };
        let sends: Vec<RecoupPart> = sends.iter().map(|(to, m)| part(*to, m.as_ptr(), m.len())).collect();
        let receives: Vec<RecoupPart> =
            receives.iter_mut().map(|(from, m)| part(*from, m.as_mut_ptr(), m.len())).collect();
        // SAFETY: every part describes a slice that lives until the callback returns; those
        // received into are ours alone.
        let code = raw.exchange.map(|f| unsafe {
            f(raw.ctx, sends.as_ptr(), sends.len() as u64, receives.as_ptr(), receives.len() as u64)
        });
        checked("exchange", code)
    }

    fn dup(&self) -> Result<Box<dyn CommCallbacks>, CommError> {
        let Self(raw) = self;
        let mut copy = RecoupComm { ctx: null_mut(), ..*raw };
        // SAFETY: `copy` is a whole struct for the program to fill.
        checked("dup", raw.dup.map(|f| unsafe { f(raw.ctx, &raw mut copy) }))?;
        // SAFETY: the program's copy keeps the promises of its original.
        unsafe { callbacks(copy) }.ok_or(CommError::Callback { what: "dup", code: -1 })
    }

    fn free(self: Box<Self>) {
        let Self(raw) = *self;
        if let Some(free) = raw.free {
            // SAFETY: the program made `ctx` for its own callbacks; ours is the only copy and is
            // used no more.
            unsafe { free(raw.ctx) }
        }
    }
}
