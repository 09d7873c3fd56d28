//! A seccomp filter for one thread (`seccomp(2)`).

#![expect(unsafe_code, reason = "installs a filter of system calls")]

use libc::{BPF_ABS, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};

/// Lets the system answer userfaultfd with `errno` in this thread from now on.
pub(crate) fn answer_userfaultfd(errno: i32) {
    let statement = |code: u32, k: u32| sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let mut filter = [
        // The number of the call is the first word of its data.
        statement(BPF_LD | BPF_W | BPF_ABS, 0),
        sock_filter { jf: 1, ..statement(BPF_JMP | BPF_JEQ | BPF_K, libc::SYS_userfaultfd as u32) },
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32),
        statement(BPF_RET | BPF_K, libc::SECCOMP_RET_ALLOW),
    ];
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: takes numbers only.
    let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: the program and its filter are there during the call.
    let is_set = unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) };
    assert_eq!((is_bound, is_set), (0, 0), "{}", std::io::Error::last_os_error());
}
