//! The communicator a program lends: a small struct of callbacks, so that librecoup links no MPI.

use std::ffi::{c_int, c_void};

/// Callbacks of a communicator may be made from a thread of the library, at the same time as the
/// program's own calls of other communicators: `MPI_THREAD_MULTIPLE`.
///
/// Without it, they are made inside calls of the library only, on the thread that makes the call:
/// versions then advance a piece at a time, in each recoup_step.
pub const RECOUP_COMM_ANY_THREAD: u32 = 1;

/// One message of an exchange.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecoupPart {
    /// The other rank.
    pub rank: i32,
    /// From 0 to 3: messages of different tags never take each other's place.
    pub tag: i32,
    /// Bytes of the message; both sides know them.
    pub bytes: u64,
    /// Address they are read from, or written to; NULL for none.
    pub data: *mut c_void,
}

/// A communicator. Callbacks return 0, or a code of the program's own, which makes the call of the
/// library fail with RECOUP_E_COMM. They must not call the library. All but `exchange` and `free`
/// are collective, and made in the same order on all ranks.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RecoupComm {
    /// Handed to every callback.
    pub ctx: *mut c_void,
    /// Number of this rank, from 0.
    pub rank: i32,
    /// Number of ranks.
    pub size: i32,
    /// 0 or RECOUP_COMM_ANY_THREAD.
    pub flags: u32,
    /// Gives every rank the `bytes` bytes at `data` of `root`.
    pub broadcast: Option<unsafe extern "C" fn(ctx: *mut c_void, data: *mut c_void, bytes: u64, root: i32) -> c_int>,
    /// Fills `all`, on every rank, with the bytes of all ranks in rank order; rank r gives
    /// `bytes[r]` of them, from `mine`.
    pub allgatherv: Option<
        unsafe extern "C" fn(ctx: *mut c_void, mine: *const c_void, all: *mut c_void, bytes: *const u64) -> c_int,
    >,
    /// Sends and receives at the same time; a rank may be its own partner. Several messages between
    /// two ranks arrive in order.
    pub exchange: Option<
        unsafe extern "C" fn(
            ctx: *mut c_void,
            sends: *const RecoupPart,
            n_sends: u64,
            receives: *const RecoupPart,
            n_receives: u64,
        ) -> c_int,
    >,
    /// Fills `copy` with a communicator of the same ranks whose calls never mix with this one's.
    pub dup: Option<unsafe extern "C" fn(ctx: *mut c_void, copy: *mut RecoupComm) -> c_int>,
    /// Frees a communicator made by `dup`; the one given to recoup_open remains the program's.
    pub free: Option<unsafe extern "C" fn(ctx: *mut c_void)>,
}

impl RecoupComm {
    /// Returns whether rank and size are in order and every callback is there.
    pub(crate) fn is_whole(&self) -> bool {
        let in_order = 0 <= self.rank && self.rank < self.size && self.flags & !RECOUP_COMM_ANY_THREAD == 0;
        let transfers = self.broadcast.is_some() && self.allgatherv.is_some() && self.exchange.is_some();
        in_order && transfers && self.dup.is_some() && self.free.is_some()
    }
}
