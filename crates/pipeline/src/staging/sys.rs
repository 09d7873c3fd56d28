//! Advice on pages: the one call of the operating system here that safe Rust has no words for. It
//! changes no content.
#![expect(unsafe_code, reason = "madvise takes an address")]

use std::mem::MaybeUninit;

/// Asks for huge pages under this memory, and what shares its first page; a refusal costs speed
/// only.
#[cfg(target_os = "linux")]
pub(crate) fn advise_huge_pages<T>(memory: &mut [MaybeUninit<T>]) {
    use rustix::mm::{Advice, madvise};
    let lead = memory.as_ptr().addr() % rustix::param::page_size();
    let start = memory.as_mut_ptr().wrapping_byte_sub(lead);
    // SAFETY: the pages hold memory of ours, from which `start` was made, and the advice changes no
    // content of any page.
    let _refused = unsafe { madvise(start.cast(), lead + size_of_val(memory), Advice::LinuxHugepage) };
}

/// Other systems choose their pages themselves.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge_pages<T>(_: &mut [MaybeUninit<T>]) {}
