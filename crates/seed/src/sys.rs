//! The border to the operating system: every system call of a simulated thread ends here.
//!
//! A seccomp filter of the thread sends its calls to a signal handler, which asks the world for
//! an answer. So calls made by the standard library, by libc and by assembly are met alike, and the
//! code under test is what users run. Some symbols of libc are defined here instead: the clock,
//! threads and their waits, and the calls that are most frequent, because a signal takes longer
//! than all else. Threads of no world pass through.

#![expect(unsafe_code, reason = "the calls of a program are answered by their registers and addresses")]

mod decode;
mod filter;
mod functions;
pub(crate) mod kernel;
mod streams;
mod switch;
mod thread;

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use recoup_veloc::{Client, Selection};

use self::kernel::enter;
pub(crate) use self::switch::ThreadContext;
pub(crate) use self::thread::current;
use crate::call::CallAnswer;
use crate::world::World;

/// Runs `body` in the first thread of a world. Returns its result once no thread of the world is
/// left; `None` if some wait without end.
pub(crate) fn simulate<T: Send + 'static>(world: &Arc<World>, body: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    functions::name();
    streams::name();
    thread::name();
    filter::prepare(on_call);
    thread::simulate(world, body)
}

/// Calls the kernel for this thread after a signal: the answer is what the call returns.
extern "C" fn on_call(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the registers of the thread, which
    // nothing else uses meanwhile.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let number = registers[libc::REG_RAX as usize];
    let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8, libc::REG_R9]
        .map(|register| registers[register as usize] as usize);
    registers[libc::REG_RAX as usize] = answer(number, arguments) as i64;
}

/// Takes the regions of a client into a checkpoint: `values`, which were just protected.
pub(crate) fn take_all(client: &mut Client, _values: &[u64]) -> Result<(), recoup_veloc::Error> {
    // SAFETY: the values are borrowed, so they are there, and none writes them.
    unsafe { client.checkpoint_take(Selection::All) }
}

/// Restores the regions of a client: `values`, which were just protected.
pub(crate) fn recover_all(client: &Client, _values: &mut [u64]) -> Result<(), recoup_veloc::Error> {
    // SAFETY: the values are borrowed alone.
    unsafe { client.recover(Selection::All) }
}

fn answer(number: i64, mut arguments: [usize; 6]) -> isize {
    let Some(task) = current() else {
        // SAFETY: the call is the program's own.
        return unsafe { enter(number, &arguments) };
    };
    // SAFETY: the call is the program's own, so its pointers are what the kernel would read.
    let mut call = unsafe { decode::call(number, &arguments) };
    let before = match task.before(&mut call) {
        CallAnswer::Done(answer) => return answer,
        CallAnswer::Enter(seen) => seen,
    };
    // SAFETY: as above.
    let moved = unsafe { decode::moved(number, &mut arguments, task.root()) };
    // SAFETY: the call is the program's own, but for its place.
    let result = unsafe { enter(number, &arguments) };
    drop(moved);
    task.after(&call, before, result);
    result
}
