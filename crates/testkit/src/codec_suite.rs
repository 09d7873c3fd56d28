//! The suite that every codec must pass: its bound on every kind of value, refusal of nonsense, the
//! same bytes twice, and no panic whatever the payload holds.
//!
//! Values come from a fixed generator, so a failure repeats; each message names input, bound and
//! position.

use recoup_core::{Bound, Codec, CodecError, Context, Encoded, Values, ValuesMut};

use crate::random::Random;

/// The checks a codec crate lends to the suite.
#[derive(Clone, Copy, Debug)]
pub struct CodecJudge {
    /// The first value that breaks a bound, in real arithmetic.
    pub bound_holds: fn(Values<'_>, Values<'_>, Bound) -> Option<usize>,
    /// Decodes a payload that was stored raw.
    pub decode_raw: fn(&[u8], ValuesMut<'_>) -> Result<(), CodecError>,
}

/// Values to encode, and their arrangement.
#[derive(Clone, Debug)]
struct Input {
    name: &'static str,
    values: Vec<f64>,
    context: Context<'static>,
}

/// All of the suite but the damage tests, which a codec of foreign unsafe code cannot pass.
///
/// # Panics
/// When the codec breaks a promise.
pub fn keeps_its_promises(codec: &dyn Codec, judge: CodecJudge) {
    keeps_every_bound_on_doubles(codec, judge);
    keeps_every_bound_on_singles(codec, judge);
    keeps_integers_and_bytes(codec, judge);
    refuses_what_is_no_bound_and_no_shape(codec);
    writes_the_same_bytes_twice(codec);
}

/// Every bound the suite asks for.
pub fn bounds() -> Vec<Bound> {
    vec![
        Bound::Lossless,
        Bound::Absolute(0.0),
        Bound::Absolute(1e-310),
        Bound::Absolute(1e-10),
        Bound::Absolute(1e-3),
        Bound::Absolute(0.5),
        Bound::Absolute(1e300),
        Bound::Absolute(f64::MAX),
        Bound::Range(1e-12),
        Bound::Range(1e-4),
        Bound::Range(2.0),
        Bound::Pointwise(1e-300),
        Bound::Pointwise(1e-12),
        Bound::Pointwise(1e-5),
        Bound::Pointwise(0.3),
        Bound::Pointwise(5.0),
    ]
}

/// Each bound on each input, as doubles.
///
/// # Panics
/// When a value breaks its bound, or the error said to be achieved is exceeded.
pub fn keeps_every_bound_on_doubles(codec: &dyn Codec, judge: CodecJudge) {
    for input in inputs() {
        for bound in bounds() {
            let mut decoded = vec![1.5; input.values.len()];
            let source = Values::F64(&input.values);
            let encoded =
                CodecTrial { codec, judge, bound }.there_and_back(source, &input.context, ValuesMut::F64(&mut decoded));
            CodecTrial { codec, judge, bound }.assert_holds(input.name, source, Values::F64(&decoded));
            let pairs = input.values.iter().zip(&decoded).filter(|(x, _)| x.is_finite());
            let largest = pairs.fold(0.0, |largest: f64, (x, y)| largest.max((x - y).abs()));
            assert_eq!(largest, encoded.achieved_error, "{} of {} at {bound}: achieved error", codec.id(), input.name);
        }
    }
}

/// Each bound on each input, as singles.
///
/// # Panics
/// When a value breaks its bound.
pub fn keeps_every_bound_on_singles(codec: &dyn Codec, judge: CodecJudge) {
    for input in inputs() {
        let values: Vec<f32> = input.values.iter().map(|&x| x as f32).collect();
        for bound in bounds() {
            let mut decoded = vec![1.5f32; values.len()];
            let source = Values::F32(&values);
            CodecTrial { codec, judge, bound }.there_and_back(source, &input.context, ValuesMut::F32(&mut decoded));
            CodecTrial { codec, judge, bound }.assert_holds(input.name, source, Values::F32(&decoded));
        }
    }
}

/// Integers and bytes come back exactly under every bound.
///
/// # Panics
/// When they do not.
pub fn keeps_integers_and_bytes(codec: &dyn Codec, judge: CodecJudge) {
    let mut random = Random(7);
    let integers: Vec<i64> = (0..300).map(|i| if i % 3 == 0 { random.bits() as i64 } else { i }).collect();
    let bytes: Vec<u8> = (0..301).map(|i| if i % 2 == 0 { random.bits() as u8 } else { 65 }).collect();
    for bound in bounds() {
        let mut decoded = vec![1; integers.len()];
        let source = Values::I64(&integers);
        CodecTrial { codec, judge, bound }.there_and_back(source, &Context::flat(300), ValuesMut::I64(&mut decoded));
        assert_eq!(decoded, integers, "{} at {bound}", codec.id());
        let mut decoded = vec![1; bytes.len()];
        let source = Values::Bytes(&bytes);
        CodecTrial { codec, judge, bound }.there_and_back(source, &Context::flat(301), ValuesMut::Bytes(&mut decoded));
        assert_eq!(decoded, bytes, "{} at {bound}", codec.id());
    }
}

/// A bound that is none and extents that do not multiply to the number of values are errors.
///
/// # Panics
/// When one is accepted.
pub fn refuses_what_is_no_bound_and_no_shape(codec: &dyn Codec) {
    let values = [1.0, 2.0, 3.0];
    let mut target = Vec::new();
    for value in [-1.0, f64::NAN, f64::INFINITY] {
        for bound in [Bound::Absolute(value), Bound::Range(value), Bound::Pointwise(value)] {
            let result = codec.encode(Values::F64(&values), bound, &Context::flat(3), &mut target);
            assert!(matches!(result, Err(CodecError::Bound { .. })), "{} at {bound}: {result:?}", codec.id());
        }
    }
    for dims in [[2, 1, 1], [3, 2, 1], [usize::MAX, 3, 3]] {
        let context = Context::grid(dims);
        let result = codec.encode(Values::F64(&values), Bound::Lossless, &context, &mut target);
        assert!(matches!(result, Err(CodecError::Shape { .. })), "{} of {dims:?}: {result:?}", codec.id());
    }
}

/// The bytes depend on values and parameters alone, not on what the target held.
///
/// # Panics
/// When they differ.
pub fn writes_the_same_bytes_twice(codec: &dyn Codec) {
    for input in inputs() {
        for bound in [Bound::Lossless, Bound::Absolute(1e-3)] {
            let mut first = Vec::new();
            let mut second = vec![0xa5; 100];
            let source = Values::F64(&input.values);
            let one = codec.encode(source, bound, &input.context, &mut first).expect("encodes");
            let two = codec.encode(source, bound, &input.context, &mut second).expect("encodes again");
            assert!(one == two && first == second, "{} of {} at {bound}", codec.id(), input.name);
        }
    }
}

/// Every truncation and every flipped bit of small payloads, and payloads of random bytes, decode
/// to an error or to some values.
///
/// # Panics
/// When the decoder does.
pub fn survives_damage(codec: &dyn Codec) {
    let mut random = Random(3);
    for (payload, bound, input) in small_payloads(codec) {
        let mut decoded = vec![0.0; input.values.len()];
        let mut decode = |bytes: &[u8]| codec.decode(bytes, bound, &input.context, ValuesMut::F64(&mut decoded));
        for length in 0..payload.len() {
            let result = decode(&payload[..length]);
            assert!(result.is_err(), "{} of {} at {bound}: {length} bytes were enough", codec.id(), input.name);
        }
        let mut damaged = payload.clone();
        for bit in 0..payload.len() * 8 {
            damaged[bit / 8] ^= 1 << (bit % 8);
            // Some values or an error: which of the two is the checksum's business.
            drop(decode(&damaged));
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        for _ in 0..200 {
            let start = random.bits() as usize % (payload.len() + 1);
            damaged[start..].iter_mut().for_each(|byte| *byte = random.bits() as u8);
            drop(decode(&damaged));
            damaged.copy_from_slice(&payload);
        }
        damaged.push(0);
        drop(decode(&damaged));
    }
}

/// Payloads of a few hundred bytes that the codec coded itself.
fn small_payloads(codec: &dyn Codec) -> Vec<(Vec<u8>, Bound, Input)> {
    let mut payloads = Vec::new();
    for input in inputs().into_iter().filter(|input| (2..=400).contains(&input.values.len())) {
        for bound in [Bound::Lossless, Bound::Absolute(1e-3), Bound::Pointwise(1e-4)] {
            let mut payload = Vec::new();
            let encoded =
                codec.encode(Values::F64(&input.values), bound, &input.context, &mut payload).expect("encodes");
            if !encoded.stored_raw {
                payloads.push((payload, encoded.bound, input.clone()));
            }
        }
    }
    assert!(!payloads.is_empty(), "{} coded nothing", codec.id());
    payloads
}

/// A codec under one bound.
struct CodecTrial<'a> {
    codec: &'a dyn Codec,
    judge: CodecJudge,
    bound: Bound,
}

impl CodecTrial<'_> {
    /// Encodes, then decodes into `target`, and checks the returned description of the payload.
    fn there_and_back(&self, source: Values<'_>, context: &Context, target: ValuesMut<'_>) -> Encoded {
        let Self { codec, judge, bound } = *self;
        let mut payload = vec![9; 5];
        let encoded = codec
            .encode(source, bound, context, &mut payload)
            .unwrap_or_else(|error| panic!("{} at {bound}: {error}", codec.id()));
        let raw_bytes = source.len() * source.element().size();
        assert!(payload.len() <= raw_bytes, "{} at {bound}: {} bytes from {raw_bytes}", codec.id(), payload.len());
        let decoded = if encoded.stored_raw {
            (judge.decode_raw)(&payload, target)
        } else {
            codec.decode(&payload, encoded.bound, context, target)
        };
        decoded.unwrap_or_else(|error| panic!("{} at {bound}: {error}", codec.id()));
        encoded
    }

    fn assert_holds(&self, name: &str, source: Values<'_>, decoded: Values<'_>) {
        let Self { codec, judge, bound } = *self;
        let violator = (judge.bound_holds)(source, decoded, bound);
        assert_eq!(violator, None, "{} of {name} at {bound}: first value out of bounds", codec.id());
    }
}

/// The inputs: each kind of value a solver, or a bug in one, may hand over.
fn inputs() -> Vec<Input> {
    let mut random = Random(1);
    let flat = |name, values: Vec<f64>| Input { name, context: Context::flat(values.len()), values };
    let wave = |i: usize| (i as f64 * 0.13).sin();
    let grid = Context::grid([7, 6, 5]);
    let mut inputs = vec![
        flat("nothing", vec![]),
        flat("one value", vec![0.1]),
        flat("one NaN", vec![f64::NAN]),
        flat("two values", vec![-1.0, 1e-9]),
        flat("zeros", vec![0.0; 300]),
        flat("a constant", vec![-3.7; 300]),
        flat("subnormals", (0..300).map(|i| f64::from_bits(i * 7_919)).collect()),
        flat("smallest normals", (0..300).map(|i| f64::from_bits((1 << 52) - 150 + i)).collect()),
        flat("NaN payloads", (0..300).map(|i| f64::from_bits(0x7ff0_0000_0000_0001 + i * 0x11_0000_0001)).collect()),
        flat("special values among smooth ones", (0..600).map(|i| special(i).unwrap_or(wave(i))).collect()),
        flat("signed zeros", (0..300).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect()),
        flat("huge values", (0..300).map(|i| if i % 2 == 0 { 1e308 } else { -1.7e308 } * wave(i)).collect()),
        flat("ties of the lattice", (-150..150).map(|k| f64::from(k) * 2e-3 + 1e-3).collect()),
        flat("ties of powers of two", (-150..150).map(|k| f64::from(k) + 0.5).collect()),
        flat("random bits", (0..1000).map(|_| f64::from_bits(random.bits())).collect()),
        flat("millions", (0..600).map(|i| 1e6 * (1.0 + 1e-4 * wave(i))).collect()),
        flat("smooth", (0..5000).map(wave).collect()),
    ];
    inputs.push(Input {
        name: "a smooth grid",
        values: (0..210).map(|i| wave(i % 7) * wave(i / 7)).collect(),
        context: grid,
    });
    inputs.push(Input {
        name: "three interleaved unknowns",
        values: (0..300).map(|i| wave(i / 3) * [1.0, 1e3, 1e-3][i % 3]).collect(),
        context: Context { stride: 3, ..Context::flat(300) },
    });
    inputs
}

/// A value that is special now and then.
fn special(i: usize) -> Option<f64> {
    match i % 97 {
        5 => Some(f64::INFINITY),
        31 => Some(f64::from_bits(0xfff8_0000_dead_beef)),
        57 => Some(-0.0),
        58 => Some(f64::NEG_INFINITY),
        70 => Some(5e-324),
        _ => None,
    }
}
