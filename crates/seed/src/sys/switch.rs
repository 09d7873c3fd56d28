//! Switches of threads without the kernel: one of its threads carries all threads of a world.
//!
//! Each thread of a world has the stack and the thread-locals that libc made for it. The kernel's
//! thread that began it parks, and continues only to end it.

use std::arch::global_asm;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::kernel::{await_turn, enter, give_turn};

/// A thread that does not run: the place where it continues.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct ThreadContext {
    stack: AtomicUsize,
    /// The address that its thread-locals are found by: what libc calls the thread.
    locals: AtomicUsize,
    is_parked: AtomicU32,
    may_end: AtomicU32,
}

/// The bit by which Linux says that programs may set the place of thread-locals themselves.
const HWCAP2_FSGSBASE: u64 = 2;

// Registers that a call leaves alone are on the stack of a thread that does not run. A parked
// thread of the kernel uses no stack, because that of its thread is in use.
global_asm!(
    "recoup_seed_switch:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, [rsi]",
    "mov rsi, [rsi + 8]",
    "test rdx, {has_instruction}",
    "jz 5f",
    "wrfsbase rsi",
    "jmp 4f",
    "5:",
    "mov edi, {set_locals}",
    "mov eax, {arch_prctl}",
    "syscall",
    "jmp 4f",
    "recoup_seed_park:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov r12, rdi",
    "mov [r12], rsp",
    "mov dword ptr [r12 + 16], 1",
    "lea rdi, [r12 + 16]",
    "mov esi, {wake}",
    "mov edx, 1",
    "mov eax, {futex}",
    "syscall",
    "2:",
    "cmp dword ptr [r12 + 20], 0",
    "jne 3f",
    "lea rdi, [r12 + 20]",
    "mov esi, {wait}",
    "xor edx, edx",
    "xor r10d, r10d",
    "mov eax, {futex}",
    "syscall",
    "jmp 2b",
    "3:",
    "mov rsp, [r12]",
    "4:",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
    has_instruction = const HWCAP2_FSGSBASE,
    set_locals = const 0x1002,
    arch_prctl = const libc::SYS_arch_prctl,
    futex = const libc::SYS_futex,
    wake = const libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
    wait = const libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
);

unsafe extern "C" {
    fn recoup_seed_switch(from: &ThreadContext, to: &ThreadContext, facts: u64);
    fn recoup_seed_park(own: &ThreadContext);
}

impl ThreadContext {
    /// Takes note of the thread-locals of this thread.
    pub(super) fn begin(&self) {
        // SAFETY: the call has no requirements.
        self.locals.store(unsafe { libc::pthread_self() } as usize, Ordering::Relaxed);
    }

    /// Gives this thread to the one of the kernel that carries the world. Returns there when
    /// another thread switches to it.
    pub(super) fn park(&self) {
        // A signal would come to the stack; the filter's own is needed at the end.
        let all = !(1_u64 << (libc::SIGSYS - 1));
        let block = [libc::SIG_BLOCK as usize, (&raw const all).expose_provenance(), 0, 8, 0, 0];
        // SAFETY: the kernel reads the mask.
        unsafe { enter(libc::SYS_rt_sigprocmask, &block) };
        // SAFETY: the context outlives the thread, and was begun.
        unsafe { recoup_seed_park(self) };
    }

    /// Waits until the thread has parked.
    pub(crate) fn await_parked(&self) {
        await_turn(&self.is_parked);
    }

    /// Runs `next` in place of this thread. Returns when another one switches to it; or, once it
    /// may end, in its own thread of the kernel.
    pub(crate) fn switch_to(&self, next: &Self) {
        // SAFETY: the call has no requirements. `next` has parked or has switched to another
        // thread, and is kept while it waits.
        unsafe { recoup_seed_switch(self, next, libc::getauxval(libc::AT_HWCAP2)) };
    }

    /// Lets the kernel's thread continue from the last switch, to end.
    pub(crate) fn let_end(&self) {
        give_turn(&self.may_end);
    }
}
