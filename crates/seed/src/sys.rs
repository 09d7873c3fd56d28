//! The border to the operating system: every system call of a simulated thread ends here.
//!
//! A seccomp filter of the thread sends its calls to a signal handler, which asks the world for
//! an answer. So calls made by the standard library, by libc and by assembly are met alike, and the
//! code under test is what users run. Two calls never reach the kernel, or only through more than
//! libc promises: the clock and the start of threads. Their symbols are defined here instead.
//! Threads of no world pass through.

#![expect(unsafe_code, reason = "the calls of a program are answered by their registers and addresses")]

mod decode;
mod filter;
mod thread;

use std::arch::global_asm;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::call::{CallAnswer, NodeFacts};
pub(crate) use decode::is_as_expected;
pub(crate) use thread::{current, simulate};

// One instruction that enters the kernel, at an address that the filter lets through.
global_asm!(
    ".global recoup_seed_call",
    ".global recoup_seed_called",
    "recoup_seed_call:",
    "mov rax, rdi",
    "mov rdi, [rsi]",
    "mov rdx, [rsi + 16]",
    "mov r10, [rsi + 24]",
    "mov r8, [rsi + 32]",
    "mov r9, [rsi + 40]",
    "mov rsi, [rsi + 8]",
    "syscall",
    "recoup_seed_called:",
    "ret",
);

unsafe extern "C" {
    fn recoup_seed_call(number: usize, arguments: *const [usize; 6]) -> isize;
    fn recoup_seed_called();
}

/// Enters the kernel past the filter. Returns what the kernel does: `-errno` for an error.
///
/// # Safety
/// As for the system call.
unsafe fn enter(number: i64, arguments: &[usize; 6]) -> isize {
    // SAFETY: the caller vouches for the call; the arguments are read only.
    unsafe { recoup_seed_call(number as usize, arguments) }
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

/// Waits until the word is not 0, and makes it 0.
pub(crate) fn await_turn(turn: &AtomicU32) {
    while turn.compare_exchange(1, 0, Ordering::Acquire, Ordering::Relaxed).is_err() {
        let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word lives as long as the borrow.
        unsafe { enter(libc::SYS_futex, &[turn.as_ptr().expose_provenance(), wait as usize, 0, 0, 0, 0]) };
    }
}

/// Lets the one who waits for this word go on.
pub(crate) fn give_turn(turn: &AtomicU32) {
    turn.store(1, Ordering::Release);
    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives as long as the borrow.
    unsafe { enter(libc::SYS_futex, &[turn.as_ptr().expose_provenance(), wake as usize, 1, 0, 0, 0]) };
}

/// Returns what the kernel knows of an open file.
pub(crate) fn facts_of(file: i32) -> Option<NodeFacts> {
    facts(|found| [file as usize, found, 0, 0, 0, 0], libc::SYS_fstat)
}

/// Returns what the kernel knows of a file by its place.
pub(crate) fn facts_at(path: &CStr) -> Option<NodeFacts> {
    let follow_none = libc::AT_SYMLINK_NOFOLLOW as usize;
    let arguments = |found| [libc::AT_FDCWD as usize, path.as_ptr().expose_provenance(), found, follow_none, 0, 0];
    facts(arguments, libc::SYS_newfstatat)
}

fn facts(arguments: impl Fn(usize) -> [usize; 6], number: i64) -> Option<NodeFacts> {
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel fills the structure; the path of the caller, if any, ends with a zero.
    let result = unsafe { enter(number, &arguments(found.as_mut_ptr().expose_provenance())) };
    // SAFETY: a call that succeeds has filled it.
    let found = (result == 0).then(|| unsafe { found.assume_init() })?;
    Some(NodeFacts { inode: found.st_ino, bytes: found.st_size as u64, mode: found.st_mode & 0o7777 })
}

/// Returns where the next plain read or write of an open file begins.
pub(crate) fn position_of(file: i32) -> u64 {
    // SAFETY: the call has no pointers.
    let position = unsafe { enter(libc::SYS_lseek, &[file as usize, 0, libc::SEEK_CUR as usize, 0, 0, 0]) };
    u64::try_from(position).unwrap_or(0)
}

/// Returns the name of this thread, as the system has it.
pub(crate) fn name_of_thread() -> String {
    let mut name = [0_u8; 16];
    let get = libc::PR_GET_NAME as usize;
    // SAFETY: the kernel writes 16 bytes, the last of them 0.
    unsafe { enter(libc::SYS_prctl, &[get, name.as_mut_ptr().expose_provenance(), 0, 0, 0, 0]) };
    CStr::from_bytes_until_nul(&name).map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Returns the value of the word that a thread waits at.
fn word(address: usize) -> u32 {
    // SAFETY: the program waits at this word, so it is there, and others change it by atomics only.
    unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }.load(Ordering::SeqCst)
}

/// The clock of the program: the world's in a simulated thread.
///
/// # Safety
/// As libc's: `target` has room for a time.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, target: *mut libc::timespec) -> c_int {
    let Some(task) = current() else {
        // SAFETY: the caller's call.
        return unsafe { enter(libc::SYS_clock_gettime, &[clock as usize, target.expose_provenance(), 0, 0, 0, 0]) }
            as c_int;
    };
    let now = task.now() + if clock == libc::CLOCK_REALTIME { SINCE_1970 } else { Duration::ZERO };
    // SAFETY: the caller gives room for a time.
    unsafe { *target = libc::timespec { tv_sec: now.as_secs() as i64, tv_nsec: i64::from(now.subsec_nanos()) } };
    0
}

/// The calendar's time at which the clock of a world is 0.
const SINCE_1970: Duration = Duration::from_secs(1_700_000_000);
