//! The filter of a simulated thread: which of its system calls come to the handler.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::Once;

use super::kernel::recoup_seed_called;

/// The calls that change the disk, take time, wait, or answer by chance. All others change nothing
/// outside of the process that a seed could make different. Waits come from libc's `syscall`.
const MET: [i64; 55] = [
    libc::SYS_access,
    libc::SYS_chmod,
    libc::SYS_clock_nanosleep,
    libc::SYS_copy_file_range,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_fallocate,
    libc::SYS_fchmodat,
    libc::SYS_fdatasync,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_lstat,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_nanosleep,
    libc::SYS_newfstatat,
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_pwrite64,
    libc::SYS_pwritev,
    libc::SYS_pwritev2,
    libc::SYS_read,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_rename,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_rmdir,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendfile,
    libc::SYS_splice,
    libc::SYS_stat,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_symlink,
    libc::SYS_symlinkat,
    libc::SYS_sync_file_range,
    libc::SYS_truncate,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_utimensat,
    libc::SYS_write,
    libc::SYS_writev,
];

/// Offsets in the kernel's `struct seccomp_data`: the call's number, and the instruction's address.
const NUMBER: u32 = 0;
const ADDRESS_LOW: u32 = 8;
const ADDRESS_HIGH: u32 = 12;

/// A handler of a signal that is told the registers of the thread.
type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Prepares the process for filters whose calls come to `handler`, before any thread has one.
pub(super) fn prepare(handler: Handler) {
    static PREPARED: Once = Once::new();
    PREPARED.call_once(|| set_handler(handler));
}

/// Sends the calls of this thread, and of those it starts from now on, to the handler.
pub(super) fn install() {
    thread_local! {
        static IS_INSTALLED: Cell<bool> = const { Cell::new(false) };
    }
    if IS_INSTALLED.replace(true) {
        return;
    }
    let program = program();
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
    // SAFETY: no pointers.
    let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
    // SAFETY: the kernel copies the program, which lives until then.
    let is_set =
        unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, std::ptr::from_ref(&filter)) } == 0;
    assert!(is_bound && is_set, "the kernel has no seccomp filters: {}", std::io::Error::last_os_error());
}

fn set_handler(handler: Handler) {
    // Memory of threads is given back after a look at a file, with the lock held that the handler
    // would take; the memory of the first thread is not. A thread that has its own keeps it.
    // SAFETY: no pointers.
    let is_shared = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) } == 1;
    assert!(is_shared, "all threads share one memory");
    // SAFETY: zeros are an action without flags and with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler as *const () as usize;
    // The handler's own calls of libc may come here, too.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: the handler has the signature of SA_SIGINFO.
    let is_set = unsafe { libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) } == 0;
    assert!(is_set, "a handler of SIGSYS: {}", std::io::Error::last_os_error());
}

fn program() -> Vec<libc::sock_filter> {
    const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    const IS: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let line = |code: u32, k: u32, jt: usize, jf: usize| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: jf as u8,
        k,
    };
    let own = (recoup_seed_called as *const ()).addr();
    let calls = MET.iter().enumerate().map(|(i, &number)| line(IS, number as u32, MET.len() - i, 0));
    let mut lines = vec![line(LOAD, NUMBER, 0, 0)];
    lines.extend(calls);
    lines.extend([
        line(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        // A call of ours comes from one instruction.
        line(LOAD, ADDRESS_LOW, 0, 0),
        line(IS, own as u32, 0, 2),
        line(LOAD, ADDRESS_HIGH, 0, 0),
        line(IS, (own >> 32) as u32, 1, 0),
        line(RETURN, libc::SECCOMP_RET_TRAP, 0, 0),
        line(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
    ]);
    lines
}
