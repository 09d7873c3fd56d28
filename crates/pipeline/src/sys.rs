//! Advice on pages: the calls of the operating system here that safe Rust has no words for. They
//! change no content.
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

/// Makes the pages under this memory, so that the first copy to it finds them; kernels before Linux
/// 5.14 make them with that copy.
#[cfg(target_os = "linux")]
pub(crate) fn make_pages<T>(memory: &mut [MaybeUninit<T>]) {
    use rustix::mm::{Advice, madvise};
    let lead = memory.as_ptr().addr() % rustix::param::page_size();
    let start = memory.as_mut_ptr().wrapping_byte_sub(lead);
    // SAFETY: the pages hold memory of ours, from which `start` was made, and populating changes no
    // content of any page.
    let _refused = unsafe { madvise(start.cast(), lead + size_of_val(memory), Advice::LinuxPopulateWrite) };
}

/// Other systems make their pages with the first copy.
#[cfg(not(target_os = "linux"))]
pub(crate) fn make_pages<T>(_: &mut [MaybeUninit<T>]) {}

/// Other systems choose their pages themselves.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise_huge_pages<T>(_: &mut [MaybeUninit<T>]) {}
