//! Copies that leave no dirty line in the caches of the processor, and their checksum.
//!
//! Full lines go past the caches by non-temporal stores. The bytes before and behind them are
//! copied plainly, and their lines are written back by `clwb`. Where the processor has neither, the
//! copy is a plain one, and only a file whose map is no storage is whole after a loss of power.

#![expect(unsafe_code, reason = "stores past the caches")]

/// Bytes whose checksum is taken at a time: they stay in the fastest cache for the copy, which then
/// overlaps the checksum of the next ones. A multiple of the three lanes of 256 bytes in which the
/// checksum of a short piece is taken; longer pieces make a commit 5 to 15 % slower.
const PIECE_BYTES: usize = 1536;
/// Bytes of a line of the caches.
const LINE_BYTES: usize = 64;

/// Copies bytes, and returns their CRC-32C.
///
/// # Safety
/// `bytes.len()` bytes from `target` on may be written, and overlap nothing that is borrowed.
pub(crate) unsafe fn copy_through(target: *mut u8, bytes: &[u8]) -> u32 {
    let mut crc = 0;
    let mut at = 0;
    while at < bytes.len() {
        // Pieces end where a line of the target ends.
        // SAFETY: the offset lies in the target.
        let place = unsafe { target.add(at) };
        let piece_end = (at + PIECE_BYTES - place.addr() % LINE_BYTES).min(bytes.len());
        let piece = &bytes[at..piece_end];
        crc = crc32c::crc32c_append(crc, piece);
        // SAFETY: the piece lies in the target.
        unsafe { copy_piece(place, piece) };
        at = piece_end;
    }
    crc
}

/// Waits until stores past the caches have arrived, in the order of the processor.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of this kind has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// # Safety
/// As for [`copy_through`].
#[cfg(target_arch = "x86_64")]
unsafe fn copy_piece(target: *mut u8, piece: &[u8]) {
    let before = target.align_offset(LINE_BYTES).min(piece.len());
    let lines = (piece.len() - before) / LINE_BYTES * LINE_BYTES;
    let (head, rest) = piece.split_at(before);
    let (body, tail) = rest.split_at(lines);
    // SAFETY: the three parts lie one after the other in the target; the second begins at a line
    // and has whole lines.
    unsafe {
        copy_plainly(target, head);
        if std::arch::is_x86_feature_detected!("avx512f") {
            stream_512(target.add(before), body);
        } else {
            stream_128(target.add(before), body);
        }
        copy_plainly(target.add(before + lines), tail);
    }
}

/// # Safety
/// As for [`copy_through`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_piece(target: *mut u8, piece: &[u8]) {
    // SAFETY: the caller's.
    unsafe { target.copy_from_nonoverlapping(piece.as_ptr(), piece.len()) };
}

/// Copies a part of a line, and has the line written back.
///
/// # Safety
/// As for [`copy_through`].
#[cfg(target_arch = "x86_64")]
unsafe fn copy_plainly(target: *mut u8, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    // SAFETY: the caller's.
    unsafe { target.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    // SAFETY: the line holds a byte that was just written. Both instructions change no byte; the
    // first one is asked for, the second one every processor of this kind has.
    unsafe {
        if has_clwb() {
            std::arch::asm!("clwb [{}]", in(reg) target, options(nostack, preserves_flags));
        } else {
            std::arch::x86_64::_mm_clflush(target);
        }
    }
}

/// Returns whether lines can be written back and stay in the caches.
#[cfg(target_arch = "x86_64")]
fn has_clwb() -> bool {
    use std::sync::OnceLock;
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        #[expect(unused_unsafe, reason = "unsafe only for older compilers")]
        // SAFETY: every processor of this kind has the instruction.
        let leaf = unsafe { std::arch::x86_64::__cpuid_count(7, 0) };
        leaf.ebx & (1 << 24) != 0
    })
}

/// # Safety
/// The target begins at a line, the source has whole lines, and the processor has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn stream_512(target: *mut u8, lines: &[u8]) {
    use std::arch::x86_64::{_mm512_loadu_si512, _mm512_stream_si512};
    for (index, line) in lines.chunks_exact(LINE_BYTES).enumerate() {
        // SAFETY: the caller's: the line lies in the target, at its multiple.
        unsafe {
            let value = _mm512_loadu_si512(line.as_ptr().cast());
            _mm512_stream_si512(target.add(index * LINE_BYTES).cast(), value);
        }
    }
}

/// # Safety
/// The target begins at a line, and the source has whole lines.
#[cfg(target_arch = "x86_64")]
unsafe fn stream_128(target: *mut u8, lines: &[u8]) {
    use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
    for (index, part) in lines.chunks_exact(16).enumerate() {
        // SAFETY: the caller's: the part lies in the target, at its multiple; every processor of
        // this kind has the instructions.
        unsafe {
            let value = _mm_loadu_si128(part.as_ptr().cast());
            _mm_stream_si128(target.add(index * 16).cast(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_and_checksums_are_right_at_every_alignment_and_length() {
        let source: Vec<u8> = (0..20_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let lengths = [0, 1, 7, 8, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097, 12_345];
        for shift in 0..65 {
            for length in lengths {
                let mut target = vec![0xaa_u8; length + 200];
                let bytes = &source[shift / 2..shift / 2 + length];
                // SAFETY: the target has as many bytes from there on.
                let crc = unsafe { copy_through(target.as_mut_ptr().add(shift), bytes) };
                fence();
                assert_eq!(crc, crc32c::crc32c(bytes));
                assert_eq!(&target[shift..shift + length], bytes);
                assert!(target[..shift].iter().chain(&target[shift + length..]).all(|byte| *byte == 0xaa));
            }
        }
    }
}
