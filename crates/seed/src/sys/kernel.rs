//! Calls of the world's own, which no filter meets.

use std::arch::global_asm;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::call::NodeFacts;

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
    pub(super) fn recoup_seed_called();
}

/// Enters the kernel past the filter. Returns what the kernel does: `-errno` for an error.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn enter(number: i64, arguments: &[usize; 6]) -> isize {
    // SAFETY: the caller vouches for the call; the arguments are read only.
    unsafe { recoup_seed_call(number as usize, arguments) }
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

/// Returns the value of the word that a thread waits at.
fn word(address: usize) -> u32 {
    // SAFETY: the program waits at this word, so it is there, and others change it by atomics only.
    unsafe { AtomicU32::from_ptr(std::ptr::with_exposed_provenance_mut(address)) }.load(Ordering::SeqCst)
}

/// Returns whether a waiting thread would find the word as it expects.
pub(crate) fn is_as_expected(address: usize, expected: u32) -> bool {
    word(address) == expected
}
