//! What the frozen streams of QB hold: small inputs, made by exact arithmetic alone, that reach
//! every part of the format.

use recoup::compress::QbArrangement;
use recoup::core::Bound;
use recoup_testkit::OwnedValues as Floats;

/// Pattern, and value as a double, of each; QB takes doubles and singles.
fn patterns(values: &Floats) -> Vec<(u64, f64)> {
    match values {
        Floats::F64(v) => v.iter().map(|x| (x.to_bits(), *x)).collect(),
        Floats::F32(v) => v.iter().map(|x| (u64::from(x.to_bits()), f64::from(*x))).collect(),
        other => panic!("floats expected, {other:?} found"),
    }
}

/// One frozen stream.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) values: Floats,
    pub(crate) bound: Bound,
    pub(crate) dims: [usize; 3],
    pub(crate) stride: usize,
    pub(crate) arrangement: QbArrangement,
    /// The case whose frame is the parent.
    pub(crate) parent: Option<&'static str>,
    pub(crate) is_chained: bool,
}

impl Case {
    fn new(name: &'static str, values: Floats, bound: Bound) -> Self {
        let dims = [values.lend().len(), 1, 1];
        Self {
            name,
            values,
            bound,
            dims,
            stride: 1,
            arrangement: QbArrangement::default(),
            parent: None,
            is_chained: false,
        }
    }

    fn interleaved(self, stride: usize) -> Self {
        Self { stride, ..self }
    }

    fn in_tiles(self, dims: [usize; 3]) -> Self {
        Self { dims, arrangement: QbArrangement { in_tiles: true, ..self.arrangement }, ..self }
    }

    fn fitted(self, dims: [usize; 3]) -> Self {
        Self { dims, arrangement: QbArrangement { in_tiles: true, is_fitted: true, ..self.arrangement }, ..self }
    }

    fn starting(self) -> Self {
        Self { is_chained: true, ..self }
    }

    fn following(self, parent: &'static str) -> Self {
        Self { parent: Some(parent), arrangement: QbArrangement { follows: true, ..self.arrangement }, ..self }
    }

    fn halved(self) -> Self {
        Self { arrangement: QbArrangement { is_halved: true, ..self.arrangement }, ..self }
    }

    /// Asserts that each value is within the bound, or the same by bits where it must be.
    pub(crate) fn check(&self, decoded: &Floats) {
        let pairs = patterns(&self.values).into_iter().zip(patterns(decoded));
        for (i, ((bits, x), (decoded_bits, decoded))) in pairs.enumerate() {
            let allowed = match self.bound {
                Bound::Absolute(e) if x != 0.0 || x.is_sign_positive() => e,
                // A product of the bound and a value may round up, by a part of 2^-53; 2^-50 is far
                // below any slack used.
                Bound::Pointwise(e) if x.is_normal() => e * x.abs() * (1.0 + f64::EPSILON),
                _ => 0.0,
            };
            let holds = bits == decoded_bits || (allowed > 0.0 && (decoded - x).abs() <= allowed);
            assert!(holds, "{}[{i}]: {x:e} came back as {decoded:e}, bound {:?}", self.name, self.bound);
        }
    }
}

const ABSOLUTE: Bound = Bound::Absolute(1e-3);
const RELATIVE: Bound = Bound::Pointwise(1e-3);
const GRID: [usize; 3] = [17, 5, 4];
const GRID_VALUES: usize = 340;

/// Whole numbers below `2^32` in no order (Knuth's multiplier, and the high bits of what it makes).
pub(crate) fn scattered(n: usize) -> impl Iterator<Item = u64> {
    let next =
        |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
    std::iter::successors(Some(1), next).skip(1).take(n).map(|state| state >> 32)
}

/// Parabolas of both signs with a little noise, moved by `shift`.
pub(crate) fn arcs(n: usize, shift: f64) -> Vec<f64> {
    let arc = |(i, noise): (usize, u64)| {
        let x = (i % 120) as f64 / 120.0;
        let sign = if i / 120 % 2 == 0 { 1.0 } else { -1.0 };
        sign * 4.0 * x * (1.0 - x) + shift * x + noise as f64 / 2f64.powi(43)
    };
    scattered(n).enumerate().map(arc).collect()
}

pub(crate) fn doubles(n: usize, shift: f64) -> Floats {
    Floats::F64(arcs(n, shift))
}

pub(crate) fn singles(n: usize, shift: f64) -> Floats {
    Floats::F32(arcs(n, shift).iter().map(|x| *x as f32).collect())
}

/// Three unknowns a point, of different size.
pub(crate) fn interleaved(n: usize) -> Vec<f64> {
    arcs(n, 0.0).iter().enumerate().map(|(i, x)| x * [1.0, 100.0, 0.01][i % 3] + [0.0, 5.0, 7.0][i % 3]).collect()
}

/// A format's folder, and what is frozen there.
pub(crate) type Format = (&'static str, fn() -> Vec<Case>);

/// The formats this build writes.
pub(crate) const FORMATS: [Format; 2] = [("qb1", first), ("qb2", fitted)];

/// All streams of format 1; parents come before those coded against them.
fn first() -> Vec<Case> {
    let mut all = plain();
    all.extend(chained());
    all.extend(special());
    all.extend(fields());
    all.extend(lengths());
    all
}

/// Every type in every mode and arrangement.
fn plain() -> Vec<Case> {
    let n = GRID_VALUES;
    let three = interleaved(300);
    let three_singles = Floats::F32(three.iter().map(|x| *x as f32).collect());
    let three = Floats::F64(three);
    let case = Case::new;
    vec![
        case("f64-absolute-line", doubles(n, 0.0), ABSOLUTE),
        case("f64-absolute-stride", three.clone(), ABSOLUTE).interleaved(3),
        case("f64-absolute-tiles", doubles(n, 0.0), ABSOLUTE).in_tiles(GRID),
        case("f64-relative-line", doubles(n, 0.0), RELATIVE),
        case("f64-relative-stride", three, RELATIVE).interleaved(3),
        case("f64-relative-tiles", doubles(n, 0.0), RELATIVE).in_tiles(GRID),
        case("f64-lossless-line", steps(n), Bound::Lossless),
        case("f64-lossless-stride", steps_of_three(n), Bound::Lossless).interleaved(3),
        case("f64-lossless-tiles", steps(20 * 16 * 5), Bound::Lossless).in_tiles([20, 16, 5]),
        case("f32-absolute-line", singles(n, 0.0), ABSOLUTE),
        case("f32-absolute-stride", three_singles.clone(), ABSOLUTE).interleaved(3),
        case("f32-absolute-tiles", singles(n, 0.0), ABSOLUTE).in_tiles(GRID),
        case("f32-relative-line", singles(n, 0.0), RELATIVE),
        case("f32-relative-stride", three_singles, RELATIVE).interleaved(3),
        case("f32-relative-tiles", singles(1600, 0.0), RELATIVE).in_tiles([20, 16, 5]),
        case("f32-lossless-line", singles(1000, 0.0), Bound::Lossless),
        case("f32-lossless-stride", steps_of_three_in_single(n), Bound::Lossless).interleaved(3),
        case("f32-lossless-tiles", steps_in_single(20 * 16 * 5), Bound::Lossless).in_tiles([20, 16, 5]),
    ]
}

/// Values whose patterns are close together, each eight times.
fn steps(n: usize) -> Floats {
    Floats::F64((0..n).map(|i| 1.0 + (i / 8) as f64 / 2f64.powi(30)).collect())
}

/// Three unknowns a point.
fn steps_of_three(n: usize) -> Floats {
    Floats::F64((0..n).map(|i| [1.0, -300.0, 0.01][i % 3] * (1.0 + (i / 24) as f64 / 2f64.powi(30))).collect())
}

fn steps_of_three_in_single(n: usize) -> Floats {
    Floats::F32((0..n).map(|i| [1.0, -300.0, 0.01][i % 3] * (1.0 + (i / 24) as f32 / 2f32.powi(20))).collect())
}

fn steps_in_single(n: usize) -> Floats {
    Floats::F32((0..n).map(|i| -1.0 - (i / 8) as f32 / 2f32.powi(20)).collect())
}

/// Frames against a parent: coded alone, with half the step, unchanged, and with a parent no code
/// fits.
fn chained() -> Vec<Case> {
    let n = GRID_VALUES;
    let case = Case::new;
    vec![
        case("f64-absolute-start", doubles(n, 0.0), ABSOLUTE).starting(),
        case("f64-absolute-follow", doubles(n, 0.01), ABSOLUTE).following("f64-absolute-start"),
        case("f64-absolute-finer", doubles(n, 0.02), Bound::Absolute(2e-5)).following("f64-absolute-follow"),
        case("f64-absolute-follow-tiles", doubles(n, 0.01), ABSOLUTE).in_tiles(GRID).following("f64-absolute-start"),
        case("f64-absolute-half", doubles(n, 0.0003), ABSOLUTE).following("f64-absolute-start").halved(),
        case("f64-absolute-half-tiles", doubles(n, 0.01), ABSOLUTE)
            .in_tiles(GRID)
            .following("f64-absolute-start")
            .halved(),
        case("f64-absolute-unchanged", doubles(n, 0.0), ABSOLUTE).following("f64-absolute-start"),
        case("f64-absolute-unchanged-tiles", doubles(n, 0.0), ABSOLUTE).in_tiles(GRID).following("f64-absolute-start"),
        case("f64-relative-start", doubles(n, 0.0), RELATIVE).starting(),
        case("f64-relative-follow", doubles(n, 0.01), RELATIVE).following("f64-relative-start"),
        case("f64-relative-follow-tiles", doubles(n, 0.01), RELATIVE).in_tiles(GRID).following("f64-relative-start"),
        case("f64-relative-turned", negated(doubles(n, 0.0)), RELATIVE).following("f64-relative-start"),
        case("f64-relative-unchanged", doubles(n, 0.0), RELATIVE).following("f64-relative-start"),
        case("f64-lossless-start", steps(n), Bound::Lossless).starting(),
        case("f64-lossless-follow", shifted(steps(n)), Bound::Lossless).following("f64-lossless-start"),
        case("f64-lossless-follow-tiles", shifted(steps(n)), Bound::Lossless)
            .in_tiles(GRID)
            .following("f64-lossless-start"),
        case("f32-absolute-start", singles(n, 0.0), ABSOLUTE).starting(),
        case("f32-absolute-follow", singles(n, 0.01), ABSOLUTE).following("f32-absolute-start"),
        case("f32-absolute-follow-tiles", singles(n, 0.01), ABSOLUTE).in_tiles(GRID).following("f32-absolute-start"),
        case("f32-absolute-half", singles(n, 0.0003), ABSOLUTE).following("f32-absolute-start").halved(),
        case("f32-absolute-half-tiles", singles(n, 0.01), ABSOLUTE)
            .in_tiles(GRID)
            .following("f32-absolute-start")
            .halved(),
        case("f32-relative-start", singles(n, 0.0), RELATIVE).starting(),
        case("f32-relative-follow", singles(n, 0.01), RELATIVE).following("f32-relative-start"),
        case("f32-relative-follow-tiles", singles(n, 0.01), RELATIVE).in_tiles(GRID).following("f32-relative-start"),
        case("f32-lossless-start", singles(n, 0.0), Bound::Lossless).starting(),
        case("f32-lossless-follow", shifted(singles(n, 0.0)), Bound::Lossless).following("f32-lossless-start"),
        case("f32-lossless-follow-tiles", shifted(singles(n, 0.0)), Bound::Lossless)
            .in_tiles(GRID)
            .following("f32-lossless-start"),
        case("f64-odd-start", odd_doubles(), ABSOLUTE).starting(),
        case("f64-absolute-after-odd", doubles(n, 0.0), ABSOLUTE).following("f64-odd-start"),
        case("f64-relative-after-odd", doubles(n, 0.0), RELATIVE).following("f64-odd-start"),
        case("f64-odd-after-odd", odd_doubles(), RELATIVE).following("f64-odd-start"),
    ]
}

fn negated(values: Floats) -> Floats {
    match values {
        Floats::F64(v) => Floats::F64(v.iter().map(|x| -x).collect()),
        Floats::F32(v) => Floats::F32(v.iter().map(|x| -x).collect()),
        other => panic!("floats expected, {other:?} found"),
    }
}

/// Every fifth value by one unit in the last place.
fn shifted(values: Floats) -> Floats {
    match values {
        Floats::F64(v) => {
            Floats::F64(v.iter().enumerate().map(|(i, x)| if i % 5 == 0 { x.next_up() } else { *x }).collect())
        }
        Floats::F32(v) => {
            Floats::F32(v.iter().enumerate().map(|(i, x)| if i % 5 == 0 { x.next_up() } else { *x }).collect())
        }
        other => panic!("floats expected, {other:?} found"),
    }
}

/// Arcs with what has no code among them.
pub(crate) fn odd_doubles() -> Floats {
    let payloads = [0x7ff8_0000_0000_beef, 0xfff0_0000_0000_0001].map(f64::from_bits);
    let odd =
        [payloads[0], payloads[1], f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, f64::MAX, f64::MIN, 5e-324, -1e-310];
    let mut values = arcs(GRID_VALUES, 0.0);
    odd.iter().enumerate().for_each(|(i, x)| values[i * 29] = *x);
    Floats::F64(values)
}

pub(crate) fn odd_singles() -> Floats {
    let payloads = [0x7fc0_beef, 0xff80_0001].map(f32::from_bits);
    let odd =
        [payloads[0], payloads[1], f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, f32::MAX, f32::MIN, 1e-45, -1e-40];
    let mut values: Vec<f32> = arcs(GRID_VALUES, 0.0).iter().map(|x| *x as f32).collect();
    odd.iter().enumerate().for_each(|(i, x)| values[i * 29] = *x);
    Floats::F32(values)
}

/// Exceptions, blocks stored exactly and raw, signs and zeros.
fn special() -> Vec<Case> {
    let case = Case::new;
    let far = |n: usize| Floats::F64((0..n).map(|i| 1e30 * (1.0 + i as f64 / 2f64.powi(45))).collect());
    let pattern = |(i, x): (usize, u64)| if i % 20 < 16 { f64::from_bits((x << 32) | (x * 7)) } else { 1.0 };
    let raw_tile = scattered(20 * 4 * 4).enumerate().map(pattern).collect();
    let raw_line =
        std::iter::repeat_n(2.5, 4096).chain(scattered(200).map(|bits| f32::from_bits(bits as u32))).collect();
    let signed = |i: usize| [0.0, -0.0, 3.0, -3.0, 1e-3][i * 7 % 5];
    let classes = (0..6 * 256).map(|i| match i / 256 {
        0 => 2.5,
        1 => -2.5,
        2 => {
            if i % 3 == 0 {
                2.5
            } else {
                -2.5
            }
        }
        3 => {
            if i % 3 == 0 {
                2.5
            } else {
                0.0
            }
        }
        4 => {
            if i % 3 == 0 {
                -2.5
            } else {
                -0.0
            }
        }
        _ => signed(i),
    });
    let classes: Vec<f64> = classes.collect();
    let classes_in_single = classes.iter().map(|x| *x as f32).collect();
    vec![
        case("f64-absolute-odd", odd_doubles(), ABSOLUTE),
        case("f64-relative-odd", odd_doubles(), RELATIVE),
        case("f64-relative-odd-tiles", odd_doubles(), RELATIVE).in_tiles(GRID),
        case("f32-absolute-odd", odd_singles(), ABSOLUTE),
        case("f32-relative-odd", odd_singles(), RELATIVE),
        case("f64-relative-classes", Floats::F64(classes), RELATIVE),
        case("f32-relative-classes", Floats::F32(classes_in_single), RELATIVE),
        case("f64-exact-line", far(600), ABSOLUTE),
        case("f64-exact-tiles", far(GRID_VALUES), ABSOLUTE).in_tiles(GRID),
        case("f32-raw-line", Floats::F32(raw_line), ABSOLUTE),
        case("f64-raw-tiles", Floats::F64(raw_tile), ABSOLUTE).in_tiles([20, 4, 4]),
        case("f64-zero", Floats::F64(vec![0.0; 300]), ABSOLUTE),
        case("f64-bound-below-all", steps(GRID_VALUES), Bound::Absolute(1e-305)),
        case("f64-bound-above-all", doubles(GRID_VALUES, 0.0), Bound::Absolute(1e308)),
    ]
}

/// Groups of every kind of field.
fn fields() -> Vec<Case> {
    let case = Case::new;
    let unit = Bound::Absolute(0.5);
    let near = |i: u64, x: u64| (x % 4 + if i % 41 == 40 { x % 200 * 16 } else { 0 }) as f64;
    let middle = |i: u64, x: u64| (x % 4 + if i % 61 == 60 { x % 50_000 * 64 } else { 0 }) as f64;
    let large = |i: u64, x: u64| (x % 4 + if i % 61 == 60 { x % (1 << 27) } else { 0 }) as f64;
    let huge = |i: u64, x: u64| (x % 4) as f64 + if i % 83 == 82 { x as f64 * 65536.0 } else { 0.0 };
    let wide_near = |i: u64, x: u64| (x << 8) as f64 + if i % 83 == 82 { x as f64 * 8192.0 } else { 0.0 };
    let wide = |_: u64, x: u64| x as f64 * 4096.0 + 2f64.powi(45);
    let bent = |i: u64, x: u64| (i * i * 100_000_000 + x % 8) as f64;
    let sloped = |i: u64, x: u64| (i * 1_000_000_000 + x % 1_000_000) as f64;
    let wide_place = |(i, x): (usize, u64)| (i % 16) as f64 * 1e10 + (x % 256) as f64;
    let wide_grid = Floats::F64(scattered(1024).enumerate().map(wide_place).collect());
    let made =
        |f: &dyn Fn(u64, u64) -> f64| Floats::F64(scattered(600).enumerate().map(|(i, x)| f(i as u64, x)).collect());
    vec![
        case("f64-patches-u8", made(&near), unit),
        case("f64-patches-u16", made(&middle), unit),
        case("f64-patches-u32", made(&large), unit),
        case("f64-patches-wide", made(&huge), unit),
        case("f64-patches-wide-near", made(&wide_near), unit),
        case("f64-wide", made(&wide), unit),
        case("f64-wide-bent", made(&bent), unit),
        case("f64-wide-sloped", made(&sloped), unit),
        case("f64-wide-tiles", wide_grid, unit).in_tiles([16, 16, 4]),
    ]
}

/// Lengths around groups, blocks and tiles.
fn lengths() -> Vec<Case> {
    let case = Case::new;
    vec![
        case("f64-255", doubles(255, 0.0), ABSOLUTE),
        case("f64-256", doubles(256, 0.0), ABSOLUTE),
        case("f64-257", doubles(257, 0.0), ABSOLUTE),
        case("f32-4096", singles(4096, 0.0), ABSOLUTE),
        case("f32-4097", singles(4097, 0.0), ABSOLUTE),
        case("f32-4097-stride", singles(4097, 0.0), RELATIVE).interleaved(8),
        case("f32-tiles-of-three-axes", singles(18 * 17 * 19, 0.0), ABSOLUTE).in_tiles([18, 17, 19]),
    ]
}

/// A grid of two tiles.
const TWO_TILES: [usize; 3] = [20, 16, 12];

/// Parabolas along the axes of a grid with a little noise, sloped by `slope`.
fn field([nx, ny, nz]: [usize; 3], slope: f64) -> Vec<f64> {
    let arch = |i: usize, n: usize| (i * (2 * n - i)) as f64 / 64.0;
    let at = |(i, noise): (usize, u64)| {
        let x = i % nx;
        let y = i / nx % ny;
        let z = i / (nx * ny);
        arch(x, 2 * nx) + arch(y, 2 * ny) - arch(z, 2 * nz) + slope * x as f64 + noise as f64 / 2f64.powi(38)
    };
    scattered(nx * ny * nz).enumerate().map(at).collect()
}

/// Values of a field, in the second of [`TWO_TILES`] other ones.
fn beside(others: impl Fn(usize) -> f64) -> Vec<f64> {
    let mixed = field(TWO_TILES, 0.0).into_iter().enumerate();
    mixed.map(|(i, x)| if i % TWO_TILES[0] < 16 { x } else { others(i) }).collect()
}

fn in_double(values: Vec<f64>) -> Floats {
    Floats::F64(values)
}

fn in_single(values: Vec<f64>) -> Floats {
    Floats::F32(values.iter().map(|x| *x as f32).collect())
}

/// Streams of format 2: fitted tiles.
fn fitted() -> Vec<Case> {
    let case = |name, values, bound| Case::new(name, values, bound).fitted(TWO_TILES);
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 5e-324, -1e-310];
    let odd = || field(TWO_TILES, 0.0).into_iter().enumerate().map(|(i, x)| if i % 97 == 3 { odd[i % 7] } else { x });
    let sloped = field(TWO_TILES, 0.1);
    let patterns: Vec<f64> = scattered(sloped.len()).map(|x| f64::from_bits((x << 32) | (x * 7))).collect();
    let far = |i: usize| 1e30 * (1.0 + i as f64 / 2f64.powi(45));
    let huge = field(TWO_TILES, 1e4).into_iter().map(|x| x * 1e3).collect();
    let axes = [18, 17, 19];
    vec![
        case("f64-fitted", in_double(field(TWO_TILES, 0.0)), ABSOLUTE),
        case("f32-fitted", in_single(field(TWO_TILES, 0.0)), ABSOLUTE),
        case("f32-fitted-of-three-axes", in_single(field(axes, 0.0)), ABSOLUTE).fitted(axes),
        case("f64-fitted-odd", in_double(odd().collect()), ABSOLUTE),
        case("f32-fitted-odd", in_single(odd().collect()), ABSOLUTE),
        case("f64-fitted-exact", in_double(beside(far)), ABSOLUTE),
        case("f64-fitted-raw", in_double(beside(|i| patterns[i])), ABSOLUTE),
        case("f64-fitted-wide", in_double(huge), ABSOLUTE),
        case("f64-fitted-start", in_double(field(TWO_TILES, 0.0)), ABSOLUTE).starting(),
        case("f64-fitted-follow", in_double(sloped.clone()), ABSOLUTE).following("f64-fitted-start"),
        case("f64-fitted-half", in_double(sloped.clone()), ABSOLUTE).following("f64-fitted-start").halved(),
        case("f64-fitted-unchanged", in_double(beside(|i| sloped[i])), ABSOLUTE).following("f64-fitted-start"),
        case("f32-fitted-start", in_single(field(TWO_TILES, 0.0)), ABSOLUTE).starting(),
        case("f32-fitted-follow", in_single(sloped.clone()), ABSOLUTE).following("f32-fitted-start"),
        case("f32-fitted-half", in_single(sloped), ABSOLUTE).following("f32-fitted-start").halved(),
    ]
}
