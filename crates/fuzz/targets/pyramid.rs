//! The decoder of pyramids on any bytes, their checksum made right so that they reach what lies
//! behind: `cargo +nightly fuzz run --fuzz-dir crates/fuzz pyramid`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_compress::Pyramid;
use recoup_core::{Bound, Codec, Context, ValuesMut};

/// Values of a frame.
const N: usize = 504;

// The frame comes last: so it stands in the input as it is, and frames of files are seeds behind
// two bytes.
fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_single, stride, frame) = input;
    let mut frame = frame.to_vec();
    if frame.len() >= 16 {
        frame[..6].copy_from_slice(b"RCPY\x02\0");
        frame[12..16].fill(0);
        let sum = crc32c(&frame);
        frame[12..16].copy_from_slice(&sum.to_le_bytes());
    }
    let context = Context { stride: usize::from(stride), ..Context::grid([9, 8, 7]) };
    let mut doubles = [0.0; N];
    let mut singles = [0.0; N];
    let target = if is_single { ValuesMut::F32(&mut singles) } else { ValuesMut::F64(&mut doubles) };
    drop(Pyramid::default().decode(&frame, Bound::Lossless, &context, target));
});

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 0 { 0 } else { 0x82f6_3b78 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
