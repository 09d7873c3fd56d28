//! QB's decoder on any bytes, their lengths and checksums made right so that they reach what lies
//! behind: `cargo +nightly fuzz run --fuzz-dir crates/fuzz qb`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use recoup_compress::Qb;
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values, ValuesMut};

/// Values of a frame: a block and a bit.
const N: usize = 343;
const HEADER: usize = 96;
/// Bytes of the weights of fitted tiles, behind the table.
const WEIGHTS: usize = 36;

// The frame comes last: so it stands in the input as it is, and frames of files are seeds behind
// three bytes.
fuzz_target!(|input: (bool, bool, u8, &[u8])| {
    let (is_single, follows, stride, frame) = input;
    let mut frame = frame.to_vec();
    if frame.len() >= HEADER + 8 + WEIGHTS {
        make_right(&mut frame);
    }
    let doubles = [0.5f64; N];
    let singles = [0.5f32; N];
    let values = if is_single { Values::F32(&singles) } else { Values::F64(&doubles) };
    let chain = if follows { Chain::Follow(Parent { values, hash: [0; 16] }) } else { Chain::Alone };
    let context = Context { stride: usize::from(stride), ..Context::grid([7; 3]).chained(chain) };
    let mut doubles = [0.0; N];
    let mut singles = [0.0; N];
    let target = if is_single { ValuesMut::F32(&mut singles) } else { ValuesMut::F64(&mut doubles) };
    drop(Qb::default().decode(&frame, Bound::Lossless, &context, target));
});

/// Number of values, length, table and checksums of a frame of one block.
fn make_right(frame: &mut [u8]) {
    let bytes = (frame.len() as u64).to_le_bytes();
    let is_fitted = frame[8] == 2;
    frame[..6].copy_from_slice(if is_fitted { b"RCQB\x02\0" } else { b"RCQB\x01\0" });
    frame[32..40].copy_from_slice(&(N as u64).to_le_bytes());
    frame[56..72].fill(0);
    frame[72..80].copy_from_slice(&bytes);
    frame[80..HEADER].fill(0);
    let preface = HEADER + 8 + if is_fitted { WEIGHTS } else { 0 };
    let block = &frame[preface..];
    let words = (block.len() / 4) as u32;
    let sum = crc32c(block);
    frame[HEADER..HEADER + 4].copy_from_slice(&words.to_le_bytes());
    frame[HEADER + 4..HEADER + 8].copy_from_slice(&sum.to_le_bytes());
    frame[12..16].fill(0);
    let sum = crc32c(&frame[..preface]);
    frame[12..16].copy_from_slice(&sum.to_le_bytes());
}

/// CRC-32C (Castagnoli), bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| crc >> 1 ^ if crc & 1 == 0 { 0 } else { 0x82f6_3b78 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}
