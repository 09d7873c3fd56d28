//! The decoder of pyramids on any bytes, their checksum made right so that they reach what lies
//! behind: `cargo +nightly fuzz run --fuzz-dir crates/fuzz pyramid`. Vector instructions must find
//! what portable code finds. The example `seeds` writes frames to start from.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_compress::{Pyramid, SimdLevel};
use recoup_core::{Bound, Codec, CodecError, Context, ValuesMut};

/// Values of a frame.
const N: usize = 504;

// The frame comes last: so it stands in the input as it is, and frames of files are seeds behind
// two bytes.
fuzz_target!(|input: (bool, u8, &[u8])| {
    let (is_single, stride, frame) = input;
    let mut frame = frame.to_vec();
    if frame.len() >= 16 {
        // Either version.
        let version = 2 | frame[4] & 1;
        frame[..6].copy_from_slice(&[b'R', b'C', b'P', b'Y', version, 0]);
        frame[12..16].fill(0);
        let sum = crc32c(&frame);
        frame[12..16].copy_from_slice(&sum.to_le_bytes());
    }
    let context = Context { stride: usize::from(stride), ..Context::grid([9, 8, 7]) };
    let found = decoded(&frame, is_single, &context, SimdLevel::best());
    assert_eq!(found, decoded(&frame, is_single, &context, SimdLevel::PORTABLE));
});

/// The bits of the values, at a level of vector instructions.
fn decoded(frame: &[u8], is_single: bool, context: &Context<'_>, level: SimdLevel) -> Result<Vec<u64>, CodecError> {
    let codec = Pyramid::default().at_level(level);
    let mut doubles = [0.0; N];
    let mut singles = [0.0; N];
    let target = if is_single { ValuesMut::F32(&mut singles) } else { ValuesMut::F64(&mut doubles) };
    codec.decode(frame, Bound::Lossless, context, target)?;
    let bits = doubles.iter().map(|x| x.to_bits()).chain(singles.iter().map(|x| u64::from(x.to_bits())));
    Ok(bits.collect())
}

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 0 { 0 } else { 0x82f6_3b78 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
