//! Seccomp user notification: chosen system calls of a thread, and of all it starts, wait for an
//! answer. Linux 5.5 and newer.
#![expect(unsafe_code, reason = "seccomp has no safe interface")]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A system call that waits for its answer.
pub(super) struct WaitingCall {
    id: u64,
    pub(super) thread: u32,
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// The news of a listener.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited {
    Call,
    /// Nothing, within the time.
    Nothing,
    /// No process is left whose calls could come.
    Ended,
}

/// Makes these system calls of the calling thread, and of all it starts from now on, wait for
/// answers from the reader of the returned listener. There is no way back for the thread.
pub(super) fn listen(numbers: &[i64]) -> io::Result<OwnedFd> {
    let filter = filter(numbers)?;
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: this option of prctl takes numbers alone.
    if unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the program and its instructions outlive the call, which copies them.
    let listener = unsafe {
        let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    };
    if listener < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

/// Instructions that ask about these calls and let all others pass.
fn filter(numbers: &[i64]) -> io::Result<Vec<libc::sock_filter>> {
    let n = u8::try_from(numbers.len()).map_err(io::Error::other)?;
    let instruction = |code: u32, jt: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf: 0, k };
    // The number of a call is the first field of what a filter sees.
    let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    let is_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    filter.extend(numbers.iter().zip((1..=n).rev()).map(|(number, left)| instruction(is_equal, left, *number as u32)));
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    filter.push(instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_USER_NOTIF));
    Ok(filter)
}

/// Waits for a call.
pub(super) fn wait(listener: &OwnedFd, milliseconds: i32) -> io::Result<Waited> {
    let mut polled = libc::pollfd { fd: listener.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one descriptor, which is open.
    match unsafe { libc::poll(&raw mut polled, 1, milliseconds) } {
        0 => Ok(Waited::Nothing),
        1 if polled.revents & libc::POLLIN != 0 => Ok(Waited::Call),
        1 => Ok(Waited::Ended),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes the call that waits; `None` if its thread was killed meanwhile.
pub(super) fn receive(listener: &OwnedFd) -> io::Result<Option<WaitingCall>> {
    // SAFETY: a structure of numbers, which the kernel wants zeroed.
    let mut notification: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes a structure of this size.
    if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) } != 0 {
        return unless_killed(None);
    }
    let libc::seccomp_notif { id, pid, data, .. } = notification;
    Ok(Some(WaitingCall { id, thread: pid, number: data.nr.into(), arguments: data.args }))
}

/// Lets a call continue, or makes it fail with an error.
pub(super) fn answer(listener: &OwnedFd, call: &WaitingCall, error: Option<i32>) -> io::Result<()> {
    let flags = if error.is_none() { libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32 } else { 0 };
    let mut response = libc::seccomp_notif_resp { id: call.id, val: 0, error: -error.unwrap_or(0), flags };
    // SAFETY: the kernel reads a structure of this size.
    if unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut response) } != 0 {
        return unless_killed(());
    }
    Ok(())
}

/// Returns the last error, or a value if it says that the thread of a call is gone.
fn unless_killed<T>(value: T) -> io::Result<T> {
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOENT) { Ok(value) } else { Err(error) }
}

/// Kills a process and all of its group.
pub(super) fn kill_group(leader: u32) {
    // SAFETY: kill takes numbers alone. A group that has ended is no error here.
    unsafe { libc::kill(-(leader as i32), libc::SIGKILL) };
}
