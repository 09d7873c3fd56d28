//! Frames damaged on purpose, their checksums made right again, so that damage reaches what lies
//! behind them.
//!
//! `RECOUP_EXECUTIONS=10000000 cargo test --release -p recoup-compress --test main --
//! --nocapture damaged_frames` tries ten million of each codec.

use recoup_compress::{Pyramid, Qb, QbArrangement};
use recoup_core::{Bound, Chain, Codec, Context, Parent, Values, ValuesMut};
use recoup_testkit::Random;

const HASH: [u8; 16] = [5; 16];
const HEADER: usize = 96;
const N: usize = 700;
const LINE: [usize; 3] = [N, 1, 1];
const GRID: [usize; 3] = [10, 10, 7];
/// Bytes of the weights of fitted tiles of QB, behind the table.
const WEIGHTS: usize = 36;

/// A whole frame and what decodes it.
struct Seed<'a> {
    frame: Vec<u8>,
    context: Context<'a>,
    is_single: bool,
}

fn jumping(i: usize, height: f64) -> f64 {
    (i as f64 * 0.07).sin() * if i % 200 == 3 { height } else { 1.0 }
}

/// Adds the frame of values, unless it holds them raw.
fn add<'a>(seeds: &mut Vec<Seed<'a>>, codec: &dyn Codec, values: Values<'_>, bound: Bound, context: Context<'a>) {
    let mut frame = Vec::new();
    let encoded = codec.encode(values, bound, &context, &mut frame).expect("a bound and a shape");
    if !encoded.stored_raw {
        seeds.push(Seed { frame, context, is_single: matches!(values, Values::F32(_)) });
    }
}

/// Damages a frame in one to four places; the first bytes of it are short and decide much.
fn damage(frame: &mut Vec<u8>, n_first: usize, random: &mut Random) {
    for _ in 0..1 + random.below(4) {
        let n = frame.len();
        let place = if random.below(2) == 0 { random.below(n.min(n_first)) } else { random.below(n) };
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

/// Decodes damaged frames, as many as are asked for; none may panic. Damage of values alone cannot
/// be seen once the checksums are right: at least one frame of `share` comes so far.
fn decode_damaged(codec: &dyn Codec, seeds: &[Seed<'_>], usual: u64, share: u64, spoil: fn(&mut Vec<u8>, &mut Random)) {
    let executions = std::env::var("RECOUP_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let mut doubles = vec![0.0; N];
    let mut singles = vec![0.0f32; N];
    let mut random = Random(executions);
    let mut decoded = 0u64;
    for _ in 0..executions {
        let Seed { frame, context, is_single } = &seeds[random.below(seeds.len())];
        let mut frame = frame.clone();
        spoil(&mut frame, &mut random);
        let n = context.dims.iter().product();
        let target = if *is_single { ValuesMut::F32(&mut singles[..n]) } else { ValuesMut::F64(&mut doubles[..n]) };
        decoded += u64::from(codec.decode(&frame, Bound::Absolute(1.0), context, target).is_ok());
    }
    println!("{executions} damaged frames of {} seeds, {decoded} of them decoded to something", seeds.len());
    assert!(decoded * share > executions, "only {decoded} of {executions} came past the checks");
}

/// Makes lengths and checksums of QB fit the bytes, as far as the frame has one block.
fn make_qb_right(frame: &mut [u8]) {
    let bytes = (frame.len() as u64).to_le_bytes();
    frame[72..80].copy_from_slice(&bytes);
    let preface = if frame.get(8) == Some(&2) { HEADER + 8 + WEIGHTS } else { HEADER + 8 };
    if let Some(block) = frame.get(preface..) {
        let words = (block.len() / 4) as u32;
        let sum = crc32c::crc32c(block);
        frame[HEADER..HEADER + 4].copy_from_slice(&words.to_le_bytes());
        frame[HEADER + 4..HEADER + 8].copy_from_slice(&sum.to_le_bytes());
    }
    let end = frame.len().min(preface);
    seal(frame, end);
}

/// Makes the checksum of the first bytes right.
fn seal(frame: &mut [u8], end: usize) {
    frame[12..16].fill(0);
    let sum = crc32c::crc32c(&frame[..end]).to_le_bytes();
    frame[12..16].copy_from_slice(&sum);
}

#[test]
fn no_damage_makes_the_decoder_of_qb_panic() {
    let parent: Vec<f64> = (0..N).map(|i| (i as f64 * 0.07).sin()).collect();
    let single_parent: Vec<f32> = parent.iter().map(|x| *x as f32).collect();
    let special = |i: usize| match i % 90 {
        7 => f64::NAN,
        30 => 0.0,
        _ => jumping(i, 1e9),
    };
    let both: [Vec<f64>; 2] = [(0..N).map(|i| jumping(i, 1e9)).collect(), (0..N).map(special).collect()];
    let mut seeds = Vec::new();
    for bound in [Bound::Lossless, Bound::Absolute(1e-3), Bound::Absolute(1e-12), Bound::Pointwise(1e-3)] {
        for (dims, stride, follows, is_fitted) in [
            (LINE, 1, false, false),
            (LINE, 3, false, false),
            (GRID, 1, false, false),
            (LINE, 1, true, false),
            (GRID, 1, false, true),
            (GRID, 1, true, true),
        ] {
            let arrangement = QbArrangement { in_tiles: true, is_fitted, follows, is_halved: false };
            let codec = if is_fitted { Qb::default().with_arrangement(arrangement) } else { Qb::default() };
            let context = |values| {
                let follow = Chain::Follow(Parent { values, hash: HASH });
                Context { stride, ..Context::grid(dims).chained(if follows { follow } else { Chain::Alone }) }
            };
            for x in &both {
                let singles: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                add(&mut seeds, &codec, Values::F64(x), bound, context(Values::F64(&parent)));
                add(&mut seeds, &codec, Values::F32(&singles), bound, context(Values::F32(&single_parent)));
            }
        }
    }
    decode_damaged(&Qb::default(), &seeds, 60_000, 20, |frame, random| {
        damage(frame, HEADER + WEIGHTS + 60, random);
        if random.below(8) > 0 {
            make_qb_right(frame);
        }
    });
}

#[test]
fn damaged_pyramids_decode_to_an_error_or_to_values() {
    // Frames of version 2, of 340 values, which are read but not written.
    let frozen =
        |frame: &[u8], dims, is_single| Seed { frame: frame.to_vec(), context: Context::grid(dims), is_single };
    let mut seeds = vec![
        frozen(include_bytes!("../../tests/golden/pyramid2/f64-arcs.pyr"), [17, 5, 4], false),
        frozen(include_bytes!("../../tests/golden/pyramid2/f64-odd.pyr"), [340, 1, 1], false),
        frozen(include_bytes!("../../tests/golden/pyramid2/f32-line.pyr"), [340, 1, 1], true),
    ];
    let kinds: [fn(usize) -> f64; 4] = [
        |i| jumping(i, 1e5),
        |i| if i % 90 == 7 { f64::NAN } else { jumping(i, 1e5) },
        // Equals its reflection on a line.
        |i| jumping(i.min(N - 1 - i), 1e5),
        // Rough along the slowest axis of a box alone.
        |i| jumping(i / 100 * 177, 1e5) + (i % 100) as f64 * 1e-3,
    ];
    for (dims, stride) in [(LINE, 1), (LINE, 7), (GRID, 1), ([35, 20, 1], 1)] {
        for bound in [1e-1, 1e-3, 1e-6].map(Bound::Absolute) {
            for values in kinds {
                let x: Vec<f64> = (0..N).map(values).collect();
                let singles: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                for source in [Values::F64(&x), Values::F32(&singles)] {
                    add(&mut seeds, &Pyramid::default(), source, bound, Context { stride, ..Context::grid(dims) });
                }
            }
        }
    }
    assert!(seeds.len() > 20, "{} seeds", seeds.len());
    assert!(seeds.iter().any(|seed| seed.frame[8] != 0) && seeds.iter().any(|seed| seed.frame[38] != 0));
    decode_damaged(&Pyramid::default(), &seeds, 40_000, 50, |frame, random| {
        let version = frame[4];
        damage(frame, HEADER + 120, random);
        frame[..6].copy_from_slice(&[b'R', b'C', b'P', b'Y', version, 0]);
        let end = frame.len();
        seal(frame, end);
    });
}
