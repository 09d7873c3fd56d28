//! Frames of the codec pyramid damaged on purpose, their checksums made right again, so that damage
//! reaches what lies behind them.
//!
//! `RECOUP_EXECUTIONS=10000000 cargo test --release -p recoup-compress --test main --
//! --nocapture pyramid_fuzz` tries ten million.

use recoup_compress::Pyramid;
use recoup_core::{Bound, Codec, Context, Values, ValuesMut};
use recoup_testkit::Random;

/// Executions when none are asked for.
const EXECUTIONS: u64 = 40_000;
const HEADER: usize = 96;
const N: usize = 700;

/// A whole frame and what decodes it.
struct Seed {
    frame: Vec<u8>,
    context: Context<'static>,
    is_single: bool,
}

fn jumping(i: usize) -> f64 {
    (i as f64 * 0.07).sin() * if i % 200 == 3 { 1e5 } else { 1.0 }
}

/// Equals its reflection on a line.
fn reflected(i: usize) -> f64 {
    jumping(i.min(N - 1 - i))
}

/// Rough along the slowest axis of a box alone.
fn layered(i: usize) -> f64 {
    jumping(i / 100 * 177) + (i % 100) as f64 * 1e-3
}

/// Frames of version 2, of 340 values, which are read but not written.
fn frozen_seeds() -> [Seed; 3] {
    let seed = |frame: &[u8], dims, is_single| Seed { frame: frame.to_vec(), context: Context::grid(dims), is_single };
    [
        seed(include_bytes!("../../tests/golden/pyramid2/f64-arcs.pyr"), [17, 5, 4], false),
        seed(include_bytes!("../../tests/golden/pyramid2/f64-odd.pyr"), [340, 1, 1], false),
        seed(include_bytes!("../../tests/golden/pyramid2/f32-line.pyr"), [340, 1, 1], true),
    ]
}

fn special(i: usize) -> f64 {
    if i % 90 == 7 { f64::NAN } else { jumping(i) }
}

fn seeds() -> Vec<Seed> {
    let mut seeds = Vec::from(frozen_seeds());
    for (dims, stride) in [([N, 1, 1], 1), ([N, 1, 1], 7), ([10, 10, 7], 1), ([35, 20, 1], 1)] {
        for bound in [1e-1, 1e-3, 1e-6] {
            for values in [jumping as fn(usize) -> f64, special, reflected, layered] {
                let x: Vec<f64> = (0..N).map(values).collect();
                let singles: Vec<f32> = x.iter().map(|x| *x as f32).collect();
                for (is_single, source) in [(false, Values::F64(&x)), (true, Values::F32(&singles))] {
                    let context = Context { stride, ..Context::grid(dims) };
                    let mut frame = Vec::new();
                    let bound = Bound::Absolute(bound);
                    let encoded = Pyramid::default().encode(source, bound, &context, &mut frame).expect("encodes");
                    if !encoded.stored_raw {
                        seeds.push(Seed { frame, context, is_single });
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
        // Header and tables are short and decide much.
        let place = if random.below(2) == 0 { random.below(n.min(HEADER + 120)) } else { random.below(n) };
        match random.below(5) {
            0 | 1 => frame[place] ^= 1 << random.below(8),
            2 => frame[place] = random.bits() as u8,
            3 => {
                let length = random.below(9).min(n - place);
                let forged = [u64::MAX, u64::MAX >> 1, 1 << 31, 1 << 40, random.bits()][random.below(5)].to_le_bytes();
                frame[place..place + length].copy_from_slice(&forged[..length]);
            }
            _ => frame.truncate(n.saturating_sub(random.below(20)).max(HEADER)),
        }
    }
}

/// Makes magic, version and checksum right.
fn make_right(frame: &mut [u8], version: u8) {
    frame[..6].copy_from_slice(&[b'R', b'C', b'P', b'Y', version, 0]);
    frame[12..16].fill(0);
    let sum = crc32c::crc32c(frame);
    frame[12..16].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn damaged_pyramids_decode_to_an_error_or_to_values() {
    let executions = std::env::var("RECOUP_EXECUTIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(EXECUTIONS);
    let seeds = seeds();
    assert!(seeds.len() > 20, "{} seeds", seeds.len());
    assert!(seeds.iter().any(|seed| seed.frame[8] != 0) && seeds.iter().any(|seed| seed.frame[38] != 0));
    let mut doubles = vec![0.0; N];
    let mut singles = vec![0.0f32; N];
    let mut random = Random(executions);
    let mut decoded = 0u64;
    for _ in 0..executions {
        let seed = &seeds[random.below(seeds.len())];
        let mut frame = seed.frame.clone();
        damage(&mut frame, &mut random);
        make_right(&mut frame, seed.frame[4]);
        let n = seed.context.dims.iter().product();
        let target = if seed.is_single { ValuesMut::F32(&mut singles[..n]) } else { ValuesMut::F64(&mut doubles[..n]) };
        decoded += u64::from(Pyramid::default().decode(&frame, Bound::Absolute(1.0), &seed.context, target).is_ok());
    }
    // Damage of low bits, exceptions and the lattice cannot be seen once the checksum is right.
    // Such frames show how deep the rest came.
    println!("{executions} damaged frames of {} seeds, {decoded} of them decoded to something", seeds.len());
    assert!(decoded * 50 > executions, "only {decoded} of {executions} came past the checks");
}
