//! Frames damaged on purpose, their checksums made right again, so that damage reaches what lies
//! behind them.
//!
//! `RECOUP_EXECUTIONS=10000000 cargo test --release -p recoup-compress --test main --
//! --nocapture qb_fuzz` tries ten million.

use recoup_compress::{Qb, QbArrangement};
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values, ValuesMut};
use recoup_testkit::Random;

/// Executions when none are asked for.
const EXECUTIONS: u64 = 60_000;
const HASH: [u8; 16] = [5; 16];
const HEADER: usize = 96;
const GRID: [usize; 3] = [10, 10, 7];
/// Bytes of the weights of fitted tiles, behind the table.
const WEIGHTS: usize = 36;

/// A whole frame and what decodes it.
struct Seed {
    frame: Vec<u8>,
    dims: [usize; 3],
    stride: usize,
    follows: bool,
    is_single: bool,
}

fn jumping(i: usize) -> f64 {
    (i as f64 * 0.07).sin() * if i % 200 == 3 { 1e9 } else { 1.0 }
}

fn special(i: usize) -> f64 {
    match i % 90 {
        7 => f64::NAN,
        30 => 0.0,
        _ => jumping(i),
    }
}

fn seeds(parent: &[f64], single_parent: &[f32]) -> Vec<Seed> {
    let bounds = [Bound::Lossless, Bound::Absolute(1e-3), Bound::Absolute(1e-12), Bound::Pointwise(1e-3)];
    let mut seeds = Vec::new();
    for bound in bounds {
        let line = [700, 1, 1];
        for (dims, stride, follows, is_fitted) in [
            (line, 1, false, false),
            (line, 3, false, false),
            (GRID, 1, false, false),
            (line, 1, true, false),
            (GRID, 1, false, true),
            (GRID, 1, true, true),
        ] {
            let arrangement = QbArrangement { in_tiles: true, is_fitted, follows, is_halved: false };
            let codec = if is_fitted { Qb::default().with_arrangement(arrangement) } else { Qb::default() };
            for values in [jumping as fn(usize) -> f64, special] {
                let x: Vec<f64> = (0..700).map(values).collect();
                let singles: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                for is_single in [false, true] {
                    let source = if is_single { Values::F32(&singles) } else { Values::F64(&x) };
                    let parent = if is_single { Values::F32(single_parent) } else { Values::F64(parent) };
                    let follow = Chain::Follow(Parent { values: parent, hash: HASH });
                    let chain = if follows { follow } else { Chain::Alone };
                    let mut frame = Vec::new();
                    let context = Context { stride, ..Context::grid(dims).chained(chain) };
                    let encoded = codec.encode(source, bound, &context, &mut frame).expect("a bound and a shape");
                    if !encoded.stored_raw {
                        seeds.push(Seed { frame, dims, stride, follows, is_single });
                    }
                }
            }
        }
    }
    seeds
}

/// Damages a frame in one to four places.
fn damage(frame: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let n = frame.len();
        // Header, table and block heads are short and decide much.
        let place = if random.below(2) == 0 { random.below(n.min(HEADER + WEIGHTS + 60)) } else { random.below(n) };
        match random.below(6) {
            0 | 1 => frame[place] ^= 1 << random.below(8),
            2 => frame[place] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
            3 => frame[place] = random.bits() as u8,
            4 => {
                let length = random.below(9).min(n - place);
                let forged = [u64::MAX, u64::MAX >> 1, 1 << 31, 1 << 40, random.bits()][random.below(5)].to_le_bytes();
                frame[place..place + length].copy_from_slice(&forged[..length]);
            }
            _ => {
                let words = random.below(5) * 4;
                if random.below(2) == 0 {
                    frame.truncate(n.saturating_sub(words).max(HEADER));
                } else {
                    frame.extend(std::iter::repeat_n(random.bits() as u8, words));
                }
            }
        }
    }
}

/// Makes lengths and checksums fit the bytes, as far as the frame has one block.
fn make_right(frame: &mut [u8]) {
    let bytes = (frame.len() as u64).to_le_bytes();
    frame[72..80].copy_from_slice(&bytes);
    let preface = if frame.get(8) == Some(&2) { HEADER + 8 + WEIGHTS } else { HEADER + 8 };
    if let Some(block) = frame.get(preface..) {
        let words = (block.len() / 4) as u32;
        let sum = crc32c::crc32c(block);
        frame[HEADER..HEADER + 4].copy_from_slice(&words.to_le_bytes());
        frame[HEADER + 4..HEADER + 8].copy_from_slice(&sum.to_le_bytes());
    }
    frame[12..16].fill(0);
    let end = frame.len().min(preface);
    let sum = crc32c::crc32c(&frame[..end]).to_le_bytes();
    frame[12..16].copy_from_slice(&sum);
}

#[test]
fn no_damage_makes_the_decoder_panic() {
    let executions = std::env::var("RECOUP_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(EXECUTIONS);
    let parent: Vec<f64> = (0..700).map(|i| (f64::from(i) * 0.07).sin()).collect();
    let single_parent: Vec<f32> = parent.iter().map(|x| *x as f32).collect();
    let seeds = seeds(&parent, &single_parent);
    let mut doubles = vec![0.0; 700];
    let mut singles = vec![0.0f32; 700];
    let mut random = Random(executions);
    let codec = Qb::default();
    let mut decoded = 0u64;
    for _ in 0..executions {
        let seed = &seeds[random.below(seeds.len())];
        let mut frame = seed.frame.clone();
        damage(&mut frame, &mut random);
        if random.below(8) > 0 {
            make_right(&mut frame);
        }
        let values = if seed.is_single { Values::F32(&single_parent) } else { Values::F64(&parent) };
        let chain = if seed.follows { Chain::Follow(Parent { values, hash: HASH }) } else { Chain::Alone };
        let context = Context { stride: seed.stride, ..Context::grid(seed.dims).chained(chain) };
        let target = if seed.is_single { ValuesMut::F32(&mut singles) } else { ValuesMut::F64(&mut doubles) };
        decoded += u64::from(codec.decode(&frame, Bound::Lossless, &context, target).is_ok());
    }
    // Damage of values alone cannot be seen once the checksums are right: such frames show how deep
    // the rest came.
    println!("{executions} damaged frames of {} seeds, {decoded} of them decoded to something", seeds.len());
    assert!(decoded * 20 > executions, "only {decoded} of {executions} came past the checks");
}
