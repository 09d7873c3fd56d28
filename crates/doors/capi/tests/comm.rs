//! The communicator of callbacks, on callbacks that end in ranks as threads.
#![expect(clippy::disallowed_methods, reason = "the program behind a lent communicator")]

use std::ffi::{CString, c_int, c_void};
use std::slice::{from_raw_parts, from_raw_parts_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ThreadId;

use recoup::comm::Threads;
use recoup::core::{Comm, CommError};
use recoup_c::{
    RECOUP_COMM_ANY_THREAD, RECOUP_E_ORDER, RECOUP_F64, RECOUP_I64, RECOUP_ITERATE, RECOUP_OK, RECOUP_STATIC,
    RecoupComm, RecoupPart, lent_comm, recoup_close, recoup_open, recoup_operator, recoup_protect, recoup_step,
    recoup_veloc_init,
};
use recoup_testkit::{comm_suite, watched};

/// What `ctx` points to: one communicator for collective calls, one for each tag.
struct Context {
    comm: Box<dyn Comm>,
    tags: Vec<Box<dyn Comm>>,
    /// The only thread that may call, where there is such a thing.
    only: Option<ThreadId>,
}

impl Context {
    fn lend(comm: &dyn Comm, only: Option<ThreadId>) -> Result<RecoupComm, CommError> {
        let tags = (0..4).map(|_| comm.dup()).collect::<Result<_, _>>()?;
        let rank = comm.rank() as i32;
        let size = comm.size() as i32;
        let context = Box::new(Self { comm: comm.dup()?, tags, only });
        Ok(RecoupComm {
            ctx: Box::into_raw(context).cast(),
            rank,
            size,
            flags: if only.is_some() { 0 } else { RECOUP_COMM_ANY_THREAD },
            broadcast: Some(broadcast),
            allgatherv: Some(allgatherv),
            exchange: Some(exchange),
            dup: Some(dup),
            free: Some(free),
        })
    }

    /// # Safety
    /// `ctx` comes from [`Context::lend`] and was not freed.
    unsafe fn of<'a>(ctx: *mut c_void) -> &'a Self {
        // SAFETY: as the caller promises.
        let context = unsafe { &*ctx.cast::<Self>() };
        assert!(context.only.is_none_or(|only| only == std::thread::current().id()), "called on another thread");
        context
    }
}

fn code(result: Result<(), CommError>) -> c_int {
    c_int::from(result.is_err())
}

unsafe extern "C" fn broadcast(ctx: *mut c_void, data: *mut c_void, bytes: u64, root: i32) -> c_int {
    // SAFETY: the library hands in slices.
    let (context, data) = unsafe { (Context::of(ctx), from_raw_parts_mut(data.cast::<u8>(), bytes as usize)) };
    let mut buffer = data.to_vec();
    let done = context.comm.broadcast(root as usize, &mut buffer);
    data.copy_from_slice(&buffer);
    code(done)
}

unsafe extern "C" fn allgatherv(ctx: *mut c_void, mine: *const c_void, all: *mut c_void, bytes: *const u64) -> c_int {
    // SAFETY: the library hands in slices of these lengths.
    unsafe {
        let context = Context::of(ctx);
        let bytes = from_raw_parts(bytes, context.comm.size());
        let mine = from_raw_parts(mine.cast::<u8>(), bytes[context.comm.rank()] as usize);
        let all = from_raw_parts_mut(all.cast::<u8>(), bytes.iter().sum::<u64>() as usize);
        code(context.comm.gather(mine).map(|parts| all.copy_from_slice(&parts.concat())))
    }
}

unsafe extern "C" fn exchange(
    ctx: *mut c_void,
    sends: *const RecoupPart,
    n_sends: u64,
    receives: *const RecoupPart,
    n_receives: u64,
) -> c_int {
    // SAFETY: the library hands in slices, and each part describes one.
    unsafe {
        let context = Context::of(ctx);
        let sends = parts(sends, n_sends);
        let receives = parts(receives, n_receives);
        for (tag, comm) in context.tags.iter().enumerate() {
            let of_tag = |part: &&RecoupPart| part.tag as usize == tag;
            let bytes = |part: &RecoupPart| match part.bytes {
                0 => &[],
                bytes => from_raw_parts(part.data.cast(), bytes as usize),
            };
            let data = |part: &RecoupPart| (part.rank as usize, bytes(part));
            let sends: Vec<(usize, &[u8])> = sends.iter().filter(of_tag).map(data).collect();
            let from: Vec<usize> = receives.iter().filter(of_tag).map(|part| part.rank as usize).collect();
            let Ok(found) = comm.exchange_bytes(&sends, &from) else { return 1 };
            for (part, found) in receives.iter().filter(of_tag).zip(found).filter(|(part, _)| part.bytes > 0) {
                from_raw_parts_mut(part.data.cast::<u8>(), part.bytes as usize).copy_from_slice(&found);
            }
        }
    }
    0
}

/// # Safety
/// There are as many.
unsafe fn parts<'a>(parts: *const RecoupPart, count: u64) -> &'a [RecoupPart] {
    // SAFETY: as the caller promises.
    unsafe { from_raw_parts(parts, count as usize) }
}

unsafe extern "C" fn dup(ctx: *mut c_void, copy: *mut RecoupComm) -> c_int {
    // SAFETY: the library hands in a struct to fill.
    unsafe {
        let context = Context::of(ctx);
        match Context::lend(context.comm.as_ref(), context.only) {
            Ok(made) => *copy = made,
            Err(_) => return 1,
        }
    }
    0
}

unsafe extern "C" fn free(ctx: *mut c_void) {
    // SAFETY: made by `lend`, freed once.
    drop(unsafe { Box::from_raw(ctx.cast::<Context>()) });
}

#[test]
fn callbacks_of_any_thread_pass_the_suite() {
    for ranks in 1..=4 {
        Threads::launch(ranks, |comm| {
            let raw = Context::lend(&comm, None).unwrap();
            // SAFETY: the context lives until `free` below.
            let lent = unsafe { lent_comm(Some(raw)) }.unwrap();
            comm_suite::run(lent.comm());
            drop(lent);
            // SAFETY: nothing uses it any more.
            unsafe { free(raw.ctx) };
        });
    }
}

#[test]
fn callbacks_of_one_thread_serve_the_worker_in_rounds() {
    for ranks in 1..=3 {
        Threads::launch(ranks, |comm| {
            let raw = Context::lend(&comm, Some(std::thread::current().id())).unwrap();
            // SAFETY: the context lives until `free` below.
            let lent = unsafe { lent_comm(Some(raw)) }.unwrap();
            let inside = lent.enter();
            let theirs = [lent.comm().dup().unwrap(), lent.comm().dup().unwrap()];
            comm_suite::run(lent.comm());
            let done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for comm in theirs {
                        comm_suite::run(comm.as_ref());
                    }
                    done.store(true, Ordering::Release);
                });
                lent.finish(|| done.load(Ordering::Acquire)).unwrap();
            });
            drop(inside);
            drop(lent);
            // SAFETY: nothing uses it any more.
            unsafe { free(raw.ctx) };
        });
    }
}

#[test]
fn worker_that_waits_is_let_go_when_its_handle_closes() {
    Threads::launch(2, |comm| {
        let raw = Context::lend(&comm, Some(std::thread::current().id())).unwrap();
        // SAFETY: the context lives until `free` below.
        let lent = unsafe { lent_comm(Some(raw)) }.unwrap();
        let theirs = {
            let _inside = lent.enter();
            lent.comm().dup().unwrap()
        };
        std::thread::scope(|scope| {
            let worker = scope.spawn(move || theirs.barrier());
            lent.abandon();
            assert_eq!(worker.join().unwrap(), Err(CommError::Closed));
        });
        drop(lent);
        // SAFETY: nothing uses it any more.
        unsafe { free(raw.ctx) };
    });
}

#[test]
fn communicators_with_something_missing_are_refused() {
    Threads::launch(1, |comm| {
        let whole = Context::lend(&comm, None).unwrap();
        let broken = [
            RecoupComm { broadcast: None, ..whole },
            RecoupComm { allgatherv: None, ..whole },
            RecoupComm { exchange: None, ..whole },
            RecoupComm { dup: None, ..whole },
            RecoupComm { free: None, ..whole },
            RecoupComm { rank: 1, ..whole },
            RecoupComm { rank: -1, ..whole },
            RecoupComm { size: 0, ..whole },
            RecoupComm { flags: 2, ..whole },
        ];
        for raw in broken {
            // SAFETY: no callback is made.
            assert!(unsafe { lent_comm(Some(raw)) }.is_none());
        }
        // SAFETY: nothing uses it.
        unsafe { free(whole.ctx) };
    });
}

unsafe extern "C" fn never(_: *mut c_void, _: *const f64, _: *mut f64) -> c_int {
    1
}

/// The call opens the session: the others waited for the rank that returned from it before.
#[test]
fn program_that_is_out_of_order_on_one_rank_is_told_so_on_all() {
    // Nothing is protected, another role, and an operator that the others do not give.
    for fault in 0..3 {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("dir={} scheme=lossless interval=1it", dir.path().display());
        let codes = watched(&format!("fault {fault}"), 2, move |comm| {
            let raw = Context::lend(comm, None).unwrap();
            let options = CString::new(options.clone()).unwrap();
            let is_odd_one = comm.rank() == 1;
            let mut x = [1.0_f64; 8];
            let mut count = [3_i64];
            let mut handle = 0;
            let first = 8 * comm.rank() as u64;
            // SAFETY: all that is lent lives until the handle is closed.
            unsafe {
                assert_eq!(recoup_open(options.as_ptr(), &raw, &mut handle), RECOUP_OK);
                if !is_odd_one || fault > 0 {
                    let place = x.as_mut_ptr().cast();
                    let role = RECOUP_ITERATE;
                    assert_eq!(recoup_protect(handle, c"x".as_ptr(), role, RECOUP_F64, place, 8, first, 16), RECOUP_OK);
                }
                if is_odd_one && fault == 1 {
                    let place = count.as_mut_ptr().cast();
                    let role = RECOUP_STATIC;
                    assert_eq!(recoup_protect(handle, c"n".as_ptr(), role, RECOUP_I64, place, 1, 0, 1), RECOUP_OK);
                }
                if is_odd_one && fault == 2 {
                    let ctx = std::ptr::null_mut();
                    let given = recoup_operator(handle, Some(never), ctx, 8, first, 16, x.as_ptr(), 0.0, 0);
                    assert_eq!(given, RECOUP_OK);
                }
            }
            let code = recoup_step(handle, 1, 1.0, 1.0);
            assert_eq!(recoup_close(handle), RECOUP_OK);
            // SAFETY: nothing uses it any more.
            unsafe { free(raw.ctx) };
            code
        });
        assert_eq!(codes, [RECOUP_E_ORDER; 2], "fault {fault}");
    }
}

/// The client calls its communicator from any thread, and waited without end for a program's thread
/// that never came by.
#[test]
fn veloc_refuses_a_communicator_that_one_thread_alone_may_call() {
    Threads::launch(2, |comm| {
        let raw = Context::lend(&comm, Some(std::thread::current().id())).unwrap();
        // SAFETY: the callbacks end in `comm`; there is no configuration.
        assert_eq!(unsafe { recoup_veloc_init(&raw, std::ptr::null()) }, -1);
        // SAFETY: nothing uses it.
        unsafe { free(raw.ctx) };
    });
}
