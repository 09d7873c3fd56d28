//! System calls by their numbers: what they mean, and where their paths are.

use std::ffi::{CStr, CString, c_int};
use std::time::Duration;

use crate::call::{CallPlace, SystemCall, TOP, Until};

/// The calendar's time at which the clock of a world is 0.
pub(super) const SINCE_1970: Duration = Duration::from_secs(1_700_000_000);

/// Reads the call.
///
/// # Safety
/// The arguments are those of a call that the program makes, and the world does not outlive it.
pub(super) unsafe fn call<'a>(number: i64, arguments: &[usize; 6]) -> SystemCall<'a> {
    // SAFETY: each helper reads what the kernel would read for the same argument.
    unsafe {
        on_paths(number, arguments).or_else(|| on_files(number, arguments)).unwrap_or_else(|| other(number, arguments))
    }
}

unsafe fn on_paths<'a>(number: i64, arguments: &[usize; 6]) -> Option<SystemCall<'a>> {
    let [a, b, c, d, e, _] = *arguments;
    // SAFETY: the caller's promise.
    let here = |path| CallPlace { directory: libc::AT_FDCWD, path: unsafe { text(path) } };
    // SAFETY: the caller's promise.
    let at = |directory: usize, path| CallPlace { directory: directory as c_int, path: unsafe { text(path) } };
    Some(match number {
        // Quotas of the machine: the seed says how many cores there are.
        libc::SYS_openat if at(a, b).path == b"/proc/self/cgroup" => SystemCall::Known(-(libc::ENOENT as isize)),
        libc::SYS_open => SystemCall::Open { at: here(a), flags: b as c_int },
        libc::SYS_openat => SystemCall::Open { at: at(a, b), flags: c as c_int },
        libc::SYS_mkdir => SystemCall::MakeDirectory { at: here(a) },
        libc::SYS_mkdirat => SystemCall::MakeDirectory { at: at(a, b) },
        libc::SYS_unlink | libc::SYS_rmdir => SystemCall::Remove { at: here(a) },
        libc::SYS_unlinkat => SystemCall::Remove { at: at(a, b) },
        libc::SYS_rename => SystemCall::Rename { from: here(a), to: here(b), is_exchange: false },
        libc::SYS_renameat => SystemCall::Rename { from: at(a, b), to: at(c, d), is_exchange: false },
        libc::SYS_renameat2 => {
            SystemCall::Rename { from: at(a, b), to: at(c, d), is_exchange: e as u32 & libc::RENAME_EXCHANGE != 0 }
        }
        libc::SYS_link => SystemCall::Link { from: here(a), to: here(b) },
        libc::SYS_linkat => SystemCall::Link { from: at(a, b), to: at(c, d) },
        _ => return None,
    })
}

unsafe fn on_files<'a>(number: i64, arguments: &[usize; 6]) -> Option<SystemCall<'a>> {
    let [a, b, c, d, ..] = *arguments;
    let file = a as c_int;
    // SAFETY: the caller's promise.
    let one = || vec![unsafe { bytes(b, c) }];
    // SAFETY: the caller's promise.
    let many = || unsafe { parts(b, c) };
    Some(match number {
        libc::SYS_write => SystemCall::Write { file, parts: one(), offset: None },
        libc::SYS_pwrite64 => SystemCall::Write { file, parts: one(), offset: Some(d as u64) },
        libc::SYS_writev => SystemCall::Write { file, parts: many(), offset: None },
        libc::SYS_pwritev | libc::SYS_pwritev2 => SystemCall::Write { file, parts: many(), offset: Some(d as u64) },
        libc::SYS_ftruncate => SystemCall::Resize { file, bytes: b as u64 },
        libc::SYS_fallocate if b == 0 => SystemCall::Allocate { file, bytes: (c + d) as u64 },
        libc::SYS_fallocate | libc::SYS_copy_file_range | libc::SYS_splice | libc::SYS_sendfile => {
            SystemCall::Known(-(libc::EOPNOTSUPP as isize))
        }
        libc::SYS_fsync | libc::SYS_fdatasync => SystemCall::Sync { file },
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_readv | libc::SYS_preadv | libc::SYS_getdents64 => {
            SystemCall::Read
        }
        _ => return None,
    })
}

unsafe fn other<'a>(number: i64, arguments: &[usize; 6]) -> SystemCall<'a> {
    let [a, b, c, ..] = *arguments;
    // SAFETY: the caller's promise, for all arms.
    unsafe {
        match number {
            libc::SYS_futex => futex(arguments),
            libc::SYS_sched_yield => SystemCall::Yield,
            libc::SYS_nanosleep => SystemCall::Sleep { until: Until::After(time(a).unwrap_or_default()) },
            libc::SYS_clock_nanosleep => {
                let time = time(c).unwrap_or_default();
                let is_absolute = b as c_int & libc::TIMER_ABSTIME != 0;
                SystemCall::Sleep {
                    until: if is_absolute { Until::CallPlace(on_clock(time, a == 0)) } else { Until::After(time) },
                }
            }
            libc::SYS_getrandom => SystemCall::Random { target: bytes_mut(a, b) },
            libc::SYS_sched_getaffinity => SystemCall::Cores { target: bytes_mut(c, b) },
            libc::SYS_sched_setaffinity => SystemCall::Known(0),
            libc::SYS_getpid => SystemCall::Process,
            // A link would lead out of the world's disk.
            libc::SYS_symlink | libc::SYS_symlinkat => SystemCall::Known(-(libc::EPERM as isize)),
            _ => SystemCall::Other,
        }
    }
}

unsafe fn futex<'a>(arguments: &[usize; 6]) -> SystemCall<'a> {
    let [address, operation, value, limit, ..] = *arguments;
    let is_calendar = operation as c_int & libc::FUTEX_CLOCK_REALTIME != 0;
    // SAFETY: a wait has a time or none; a wake has none.
    let limit = |is_wait: bool| if is_wait { unsafe { time(limit) } } else { None };
    match operation as c_int & libc::FUTEX_CMD_MASK {
        libc::FUTEX_WAIT => SystemCall::Wait { address, expected: value as u32, until: limit(true).map(Until::After) },
        libc::FUTEX_WAIT_BITSET => {
            let until = limit(true).map(|time| Until::CallPlace(on_clock(time, is_calendar)));
            SystemCall::Wait { address, expected: value as u32, until }
        }
        libc::FUTEX_WAKE | libc::FUTEX_WAKE_BITSET => SystemCall::Wake { address, count: value as i32 as usize },
        _ => SystemCall::Known(-(libc::ENOSYS as isize)),
    }
}

/// A time of the calendar or of the clock, on the clock.
fn on_clock(time: Duration, is_calendar: bool) -> Duration {
    if is_calendar { time.saturating_sub(SINCE_1970) } else { time }
}

/// Positions of the paths among the arguments of a call.
fn paths(number: i64) -> &'static [usize] {
    match number {
        libc::SYS_open
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_access
        | libc::SYS_readlink
        | libc::SYS_statfs
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_unlink
        | libc::SYS_truncate
        | libc::SYS_chmod => &[0],
        libc::SYS_openat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_readlinkat
        | libc::SYS_mkdirat
        | libc::SYS_unlinkat
        | libc::SYS_fchmodat
        | libc::SYS_utimensat => &[1],
        libc::SYS_rename | libc::SYS_link => &[0, 1],
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => &[1, 3],
        _ => &[],
    }
}

/// Leads the paths of the world's disk to `root`. Returns the memory of the new paths, which the
/// call needs.
///
/// # Safety
/// As for [`call`].
pub(super) unsafe fn moved(number: i64, arguments: &mut [usize; 6], root: &[u8]) -> Vec<CString> {
    let mut made = Vec::new();
    for &position in paths(number) {
        // SAFETY: the caller's promise.
        let path = unsafe { text(arguments[position]) };
        let Some(rest) = path.strip_prefix(TOP.as_bytes()).filter(|rest| matches!(rest.first(), None | Some(b'/')))
        else {
            continue;
        };
        let Ok(path) = CString::new([root, rest].concat()) else { continue };
        arguments[position] = path.as_ptr().expose_provenance();
        made.push(path);
    }
    made
}

unsafe fn text<'a>(address: usize) -> &'a [u8] {
    if address == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for a path that ends with a zero.
    unsafe { CStr::from_ptr(std::ptr::with_exposed_provenance(address)) }.to_bytes()
}

unsafe fn bytes<'a>(address: usize, length: usize) -> &'a [u8] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller vouches for this many bytes.
    unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), length) }
}

unsafe fn bytes_mut<'a>(address: usize, length: usize) -> &'a mut [u8] {
    if length == 0 {
        return &mut [];
    }
    // SAFETY: the caller vouches for this much room, which the kernel would fill.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::with_exposed_provenance_mut(address), length) }
}

unsafe fn parts<'a>(address: usize, count: usize) -> Vec<&'a [u8]> {
    // SAFETY: the caller vouches for this many parts, each with its bytes.
    unsafe {
        let parts: &[libc::iovec] = std::slice::from_raw_parts(std::ptr::with_exposed_provenance(address), count);
        parts.iter().map(|part| bytes(part.iov_base.addr(), part.iov_len)).collect()
    }
}

unsafe fn time(address: usize) -> Option<Duration> {
    // SAFETY: the caller vouches for a time, or for none.
    let time = unsafe { std::ptr::with_exposed_provenance::<libc::timespec>(address).as_ref() }?;
    Some(Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32))
}
