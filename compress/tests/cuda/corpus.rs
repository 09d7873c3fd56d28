//! Values that reach every branch of the codec: usual ones of solvers, and unexpected ones.

use std::f64::consts::PI;

use recoup_testkit::Random;

/// Values in a block.
pub(crate) const BLOCK: usize = 4096;

/// Named ways to make the value at a place.
type Kind = (&'static str, fn(usize, &mut Random) -> f64);

const SPECIALS: [f64; 12] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MAX,
    f64::MIN,
    f64::MIN_POSITIVE,
    -f64::MIN_POSITIVE,
    5e-324,
    -5e-324,
    -0.0,
    0.0,
    1e-310,
];

const KINDS: [Kind; 20] = [
    ("zeros", |_, _| 0.0),
    ("a wave", |i, _| (i as f64 * 0.01).sin()),
    (
        "two interleaved waves",
        |i, _| if i % 2 == 0 { (i as f64 * 0.003).sin() } else { 40.0 + (i as f64 * 0.02).cos() },
    ),
    ("a line", |i, _| 0.25 * i as f64),
    ("a noisy wave", |i, random| (i as f64 * 0.01).sin() + 1e-3 * random.unit()),
    ("noise", |_, random| random.unit() - 0.5),
    ("bits", |_, random| f64::from_bits(random.bits())),
    ("subnormals", |_, random| f64::from_bits(random.bits() >> 12 | random.bits() & 1 << 63)),
    ("NaN payloads", |i, random| match i % 5 {
        0 => f64::from_bits(0x7ff0_0000_0000_0000 | random.bits() >> 13 | 1),
        _ => i as f64,
    }),
    ("dense specials", |i, _| SPECIALS[i % SPECIALS.len()]),
    ("sparse specials", |i, _| if i % 97 == 41 { SPECIALS[i / 97 % SPECIALS.len()] } else { (i as f64 * 0.01).cos() }),
    ("NaN first", |i, _| if i < 700 { f64::NAN } else { 7.0 + (i as f64 * 0.01).cos() }),
    ("NaN but for one", |i, _| if i == 100 { 3.0 } else { f64::NAN }),
    (
        "zeros among values",
        |i, random| if i / 256 % 3 == 1 || random.bits() % 9 == 0 { 0.0 } else { -1.5 - random.unit() },
    ),
    ("ties", |i, _| (2.0 * (i % 911) as f64 + 1.0) * 1e-3),
    ("large values", |_, random| 1e6 * (random.unit() + 0.5)),
    ("outliers", |i, random| if i % 31 == 7 { 1e3 * random.unit() } else { 1e-2 * random.unit() }),
    ("far outliers", |i, random| if i % 43 == 7 { 1e9 * random.unit() } else { 1e-3 * random.unit() }),
    ("steps", |i, _| (i / 300) as f64 * 1e7),
    ("magnitudes", |_, random| 10f64.powf(40.0 * random.unit() - 20.0)),
];

/// Values of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    pub(crate) values: Vec<f64>,
}

/// `n` values of every kind, from a seed.
pub(crate) fn each_kind(n: usize, seed: u64) -> Vec<Input> {
    let make = |(name, at): &Kind| {
        let mut random = Random(seed);
        Input { name: format!("{n} of {name}"), values: (0..n).map(|i| at(i, &mut random)).collect() }
    };
    KINDS.iter().map(make).collect()
}

/// A block of each kind, one after the other, and zeros: so it stays smaller than raw, whatever is
/// in it.
pub(crate) fn patchwork(tail: usize) -> Input {
    let mut values: Vec<f64> = each_kind(BLOCK, 11).into_iter().flat_map(|input| input.values).collect();
    values.resize(values.len() + 4 * BLOCK, 0.0);
    values.extend((0..tail).map(|i| (i as f64 * PI / 100.0).sin()));
    Input { name: format!("patchwork and {tail}"), values }
}
