//! Functions of libc that answer without a signal: those of the calls that are most frequent.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::time::Duration;

use super::decode::SINCE_1970;
use super::kernel::enter;
use super::{answer, current};

/// Answers a call as libc does: -1 and a number of the error where it fails.
pub(super) fn called(number: i64, given: &[usize]) -> isize {
    let mut arguments = [0; 6];
    arguments[..given.len()].copy_from_slice(given);
    as_libc(answer(number, arguments))
}

fn as_libc(result: isize) -> isize {
    if result >= 0 {
        return result;
    }
    // SAFETY: each thread has a place for the number.
    unsafe { *libc::__errno_location() = -result as c_int };
    -1
}

/// Defines functions of libc by the number of their system call, and what they give to it.
macro_rules! functions {
    ($($name:ident($($argument:ident),*) is $number:expr, [$($given:expr),*];)*) => {
        $(
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: usize),*) -> isize {
                called($number as i64, &[$($given),*])
            }
        )*

        /// Makes the linker take these functions in place of libc's, because it names them.
        pub(super) fn name() {
            std::hint::black_box([clock_gettime as *const (), fstat64 as *const (), geteuid as *const (), sched_getaffinity as *const (), $($name as *const ()),*]);
        }
    };
}

functions! {
    read(file, target, bytes) is libc::SYS_read, [file, target, bytes];
    write(file, source, bytes) is libc::SYS_write, [file, source, bytes];
    pread64(file, target, bytes, offset) is libc::SYS_pread64, [file, target, bytes, offset];
    pwrite64(file, source, bytes, offset) is libc::SYS_pwrite64, [file, source, bytes, offset];
    open64(path, flags, mode) is libc::SYS_openat, [libc::AT_FDCWD as usize, path, flags, mode];
    openat64(directory, path, flags, mode) is libc::SYS_openat, [directory, path, flags, mode];
    fstatat64(directory, path, target, flags) is libc::SYS_newfstatat, [directory, path, target, flags];
    mkdirat(directory, path, mode) is libc::SYS_mkdirat, [directory, path, mode];
    mkdir(path, mode) is libc::SYS_mkdir, [path, mode];
    unlinkat(directory, path, flags) is libc::SYS_unlinkat, [directory, path, flags];
    unlink(path) is libc::SYS_unlink, [path];
    rename(from, to) is libc::SYS_rename, [from, to];
    renameat(from, name, to, new_name) is libc::SYS_renameat, [from, name, to, new_name];
    ftruncate64(file, bytes) is libc::SYS_ftruncate, [file, bytes];
    flock(file, operation) is libc::SYS_flock, [file, operation];
    getpid() is libc::SYS_getpid, [];
    statx(directory, path, flags, mask, target) is libc::SYS_statx, [directory, path, flags, mask, target];
    fsync(file) is libc::SYS_fsync, [file];
    fdatasync(file) is libc::SYS_fdatasync, [file];
    syscall(number, a, b, c, d, e, f) is number, [a, b, c, d, e, f];
}

/// The clock of the program: the world's in a simulated thread.
///
/// # Safety
/// As libc's: `target` has room for a time.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, target: *mut libc::timespec) -> c_int {
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

/// The facts that the kernel has of an open file, which no seed makes different. The function of
/// libc asks by a path, and such calls are met.
///
/// # Safety
/// As libc's: `target` has room for the answer.
#[unsafe(no_mangle)]
unsafe extern "C" fn fstat64(file: usize, target: usize) -> isize {
    // SAFETY: the caller's call.
    as_libc(unsafe { enter(libc::SYS_fstat, &[file, target, 0, 0, 0, 0]) })
}

/// The cores that the program may use. Libc counts no bytes, as the kernel does.
///
/// # Safety
/// As libc's: `target` has room for `bytes`.
#[unsafe(no_mangle)]
unsafe extern "C" fn sched_getaffinity(process: usize, bytes: usize, target: usize) -> c_int {
    called(libc::SYS_sched_getaffinity, &[process, bytes, target]).min(0) as c_int
}

/// The user of the process, who does not change.
#[unsafe(no_mangle)]
extern "C" fn geteuid() -> libc::uid_t {
    static USER: OnceLock<libc::uid_t> = OnceLock::new();
    // SAFETY: the call has no pointers.
    *USER.get_or_init(|| unsafe { enter(libc::SYS_geteuid, &[0; 6]) } as libc::uid_t)
}
