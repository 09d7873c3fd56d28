//! The promises of QB, on values chosen to break them.

use recoup_compress::{Qb, QbArrangement, SimdLevel, bound_holds, decode_raw};
use recoup_core::{Bound, Chain, Codec, Context, Encoded, Parent, Values, ValuesMut};
use recoup_testkit::Random;

const HASH: [u8; 16] = [7; 16];
/// A grid of as many values as a part of the corpus has at least.
const GRID: [usize; 3] = [20, 18, 25];
/// Wherever it is possible.
const FITTED: QbArrangement = QbArrangement { in_tiles: true, is_fitted: true, follows: false, is_halved: false };

/// Values, and what they are.
fn corpus() -> Vec<(&'static str, Vec<f64>)> {
    let mut random = Random(3);
    let wave = |i: usize| (i as f64 * 0.013).sin();
    let specials = [
        f64::MAX,
        f64::MIN,
        f64::MIN_POSITIVE,
        -f64::MIN_POSITIVE,
        5e-324,
        -0.0,
        0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::from_bits(0x7ff0_0000_0000_0001),
        f64::from_bits(0xfff8_dead_beef_0001),
        f64::from_bits((1 << 52) - 1),
    ];
    let tie = |k: i64, e: f64, ulps: i64| {
        let tie = k as f64 * 2.0 * e + e;
        f64::from_bits((tie.to_bits() as i64 + ulps) as u64)
    };
    let mut ties = Vec::new();
    let mut exponents = Vec::new();
    for k in -700..700 {
        for ulps in -2..=2 {
            ties.extend([1e-3, 0.5, 1e-10].map(|e| tie(k, e, ulps)));
        }
    }
    for _ in 0..9000 {
        let exponent = random.bits() % 2046;
        exponents.push(f64::from_bits(random.bits() >> 12 | exponent << 52 | random.bits() << 63));
    }
    vec![
        ("specials", (0..9000).map(|i| specials[i % specials.len()]).collect()),
        (
            "specials among waves",
            (0..9000).map(|i| if i % 31 == 0 { specials[i / 31 % 12] } else { wave(i) }).collect(),
        ),
        ("ties and their neighbours", ties),
        ("random bits", (0..9000).map(|_| f64::from_bits(random.bits())).collect()),
        ("random exponents", exponents),
        ("subnormals", (0..9000).map(|_| f64::from_bits(random.bits() >> 13 | random.bits() << 63)).collect()),
        ("millions", (0..9000).map(|i| 1e6 * (1.0 + 1e-5 * wave(i)) + random.unit()).collect()),
        ("smooth", (0..20_000).map(wave).collect()),
        ("mostly zeros", (0..9000).map(|i| if i % 50 == 0 { wave(i) } else { 0.0 }).collect()),
        ("both signs of zero", (0..9000).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect()),
        ("a jump in every block", (0..20_000).map(|i| if i / 1000 % 2 == 0 { 1e12 } else { wave(i) }).collect()),
    ]
}

fn bounds() -> Vec<Bound> {
    let two = |exponent: i32| 2f64.powi(exponent);
    let absolute = [two(-1001), two(-1000), 1e-300, 1e-10, 1e-3, 0.5, 1e5, 1e300, two(1021), two(1022), f64::MAX];
    let pointwise = [two(-52), two(-39), two(-38), 1e-8, 1e-4, 0.1, 0.499, 0.5, 1.0, 7.0];
    let lossless = [Bound::Lossless];
    let absolute = absolute.into_iter().map(Bound::Absolute);
    lossless.into_iter().chain(absolute).chain(pointwise.into_iter().map(Bound::Pointwise)).collect()
}

/// Encodes, checks the size promised, and decodes.
fn there_and_back(codec: &Qb, x: &[f64], bound: Bound, context: &Context) -> (Vec<f64>, Encoded, Vec<u8>) {
    let mut payload = Vec::new();
    let mut decoded = vec![1.5; x.len()];
    let encoded = codec.encode(Values::F64(x), bound, context, &mut payload).expect("encodes");
    assert!(payload.len() <= size_of_val(x) + size_of_val(x) * 3 / 1000 + 256, "{bound}: {} bytes", payload.len());
    if encoded.stored_raw {
        decode_raw(&payload, ValuesMut::F64(&mut decoded)).expect("decodes");
    } else {
        codec.decode(&payload, encoded.bound, context, ValuesMut::F64(&mut decoded)).expect("decodes");
    }
    (decoded, encoded, payload)
}

/// The bound itself, in real arithmetic, and bits where bits are promised.
fn assert_holds(x: &[f64], decoded: &[f64], what: &str, bound: Bound) {
    let violator = bound_holds(Values::F64(x), Values::F64(decoded), bound);
    assert_eq!(violator.map(|i| (i, x[i], decoded[i])), None, "{what} at {bound}: first value out of bounds");
    let exactly = |x: f64| match bound {
        Bound::Lossless => true,
        Bound::Pointwise(_) => !x.is_normal(),
        _ => !x.is_finite() || (x == 0.0 && x.is_sign_negative()),
    };
    let changed = x.iter().zip(decoded).position(|(x, y)| exactly(*x) && x.to_bits() != y.to_bits());
    assert_eq!(changed.map(|i| (i, x[i], decoded[i])), None, "{what} at {bound}: bits that were promised");
}

#[test]
fn every_bound_holds_on_every_kind_of_value_in_every_shape() {
    let codec = Qb::default();
    for (what, x) in corpus() {
        for bound in bounds() {
            for stride in [1, 2, 3, 8] {
                let context = Context { stride, ..Context::flat(x.len()) };
                let (decoded, ..) = there_and_back(&codec, &x, bound, &context);
                assert_holds(&x, &decoded, what, bound);
            }
            for dims in [GRID, [16, 16, 33], [4, 4, 500]] {
                let n = dims.iter().product();
                let x: Vec<f64> = x.iter().copied().cycle().take(n).collect();
                for codec in [codec.clone(), codec.clone().with_arrangement(FITTED)] {
                    let (decoded, ..) = there_and_back(&codec, &x, bound, &Context::grid(dims));
                    assert_holds(&x, &decoded, what, bound);
                }
            }
        }
    }
}

#[test]
fn every_bound_holds_against_any_parent() {
    let mut random = Random(9);
    for (what, mut x) in corpus() {
        x.truncate(GRID.iter().product());
        let near = x.iter().map(|x| x * (1.0 + 1e-6 * random.unit())).collect();
        let unrelated = x.iter().rev().copied().collect();
        let parents: [Vec<f64>; 4] = [x.clone(), near, unrelated, vec![f64::NAN; x.len()]];
        let fitted = QbArrangement { follows: true, ..FITTED };
        let cases = [
            (Qb::default(), Context::flat(x.len())),
            (Qb::default().with_arrangement(fitted), Context::grid(GRID)),
            (Qb::default().with_arrangement(QbArrangement { is_halved: true, ..fitted }), Context::grid(GRID)),
        ];
        for bound in bounds() {
            for (codec, context) in &cases {
                let (first, ..) = there_and_back(codec, &x, bound, &context.chained(Chain::Start));
                assert_holds(&x, &first, what, bound);
                for parent in parents.iter().chain([&first]) {
                    let follow = Chain::Follow(Parent { values: Values::F64(parent), hash: HASH });
                    let (decoded, ..) = there_and_back(codec, &x, bound, &context.chained(follow));
                    assert_holds(&x, &decoded, what, bound);
                }
            }
        }
    }
}

#[test]
fn the_same_values_against_their_own_decoding_cost_next_to_nothing() {
    let x: Vec<f64> = (0..100_000).map(|i| (f64::from(i) * 0.01).sin()).collect();
    let codec = Qb::default();
    let bound = Bound::Absolute(1e-4);
    let context = Context::flat(x.len());
    let (first, ..) = there_and_back(&codec, &x, bound, &context.chained(Chain::Start));
    let parent = Parent { values: Values::F64(&first), hash: HASH };
    let (again, encoded, payload) = there_and_back(&codec, &x, bound, &context.chained(Chain::Follow(parent)));
    assert!(encoded.follows && payload.len() < 96 + 25 * 12 + 64, "{} bytes", payload.len());
    assert_eq!(again, first);
}

#[test]
fn a_frame_is_not_decoded_against_another_parent_nor_without_one() {
    let x: Vec<f64> = (0..5000).map(|i| (f64::from(i) * 0.01).sin()).collect();
    let codec = Qb::default();
    let bound = Bound::Absolute(1e-4);
    let context = Context::flat(x.len());
    let follow = |hash| context.chained(Chain::Follow(Parent { values: Values::F64(&x), hash }));
    let (_, encoded, payload) = there_and_back(&codec, &x, bound, &follow(HASH));
    assert!(encoded.follows);
    let mut decoded = vec![0.0; x.len()];
    for context in [context, follow([8; 16])] {
        let error = codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut decoded)).unwrap_err();
        assert!(error.to_string().contains("parent"), "{error}");
    }
}

#[test]
fn bytes_depend_neither_on_threads_nor_on_vector_instructions() {
    let levels = SimdLevel::available();
    println!("levels of this processor: {:?}", levels.iter().map(|level| level.name()).collect::<Vec<_>>());
    for (what, x) in corpus() {
        let x: Vec<f64> = x.iter().copied().cycle().take(64 * 64 * 70).collect();
        for bound in [Bound::Lossless, Bound::Absolute(1e-3), Bound::Pointwise(1e-4)] {
            let flat = Context::flat(x.len());
            let grid = Context::grid([64, 64, 70]);
            for (context, arrangement) in [(flat, None), (grid, None), (grid, Some(FITTED))] {
                let arranged = |codec: Qb| match arrangement {
                    Some(arrangement) => codec.with_arrangement(arrangement),
                    None => codec,
                };
                let (values, _, expected) = there_and_back(&arranged(Qb::default()), &x, bound, &context);
                let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                let others = levels.iter().map(|level| (Qb::default().at_level(*level), 1));
                let threaded = (2..=8).map(|threads| (Qb::default(), threads));
                for (codec, threads) in others.chain(threaded) {
                    let context = Context { threads, ..context };
                    let (decoded, _, payload) = there_and_back(&arranged(codec.clone()), &x, bound, &context);
                    let is_same = payload == expected && bits(&decoded) == bits(&values);
                    assert!(is_same, "{what} at {bound} on {threads} threads: {codec:?}");
                }
            }
        }
    }
}

/// Small enough for an emulator of a processor that is not here.
#[test]
fn every_level_gives_the_same_bytes_and_values_under_every_bound() {
    let levels = SimdLevel::available();
    println!("levels of this processor: {:?}", levels.iter().map(|level| level.name()).collect::<Vec<_>>());
    let grid = [20, 18, 5];
    let n: usize = grid.iter().product();
    for (what, x) in corpus() {
        let [x, parent] = [&x[..n], &x[n..2 * n]];
        let follow = Chain::Follow(Parent { values: Values::F64(parent), hash: HASH });
        let flat = Context::flat(n);
        let grid = Context::grid(grid);
        let tiles = QbArrangement { in_tiles: true, ..QbArrangement::default() };
        let cases = [
            (QbArrangement::default(), flat),
            (QbArrangement::default(), Context { stride: 3, ..flat }),
            (QbArrangement { follows: true, ..QbArrangement::default() }, flat.chained(follow)),
            (QbArrangement { follows: true, is_halved: true, ..QbArrangement::default() }, flat.chained(follow)),
            (tiles, grid),
            (FITTED, grid),
            (QbArrangement { follows: true, ..FITTED }, grid.chained(follow)),
        ];
        for bound in bounds() {
            for (arrangement, context) in &cases {
                let coded = levels.iter().map(|level| {
                    let codec = Qb::default().at_level(*level).with_arrangement(*arrangement);
                    let (decoded, _, payload) = there_and_back(&codec, x, bound, context);
                    (payload, decoded.into_iter().map(f64::to_bits).collect::<Vec<_>>())
                });
                let coded: Vec<_> = coded.collect();
                assert!(coded.iter().all(|one| *one == coded[0]), "{what} at {bound}: {arrangement:?}");
            }
        }
    }
}

#[test]
fn a_damaged_block_is_named_and_all_others_are_decoded() {
    let x: Vec<f64> = (0..40_000).map(|i| (f64::from(i) * 0.01).sin()).collect();
    let codec = Qb::default();
    let bound = Bound::Absolute(1e-6);
    let context = Context::flat(x.len());
    let (decoded, encoded, payload) = there_and_back(&codec, &x, bound, &context);
    let blocks = x.len().div_ceil(4096);
    let words = |block: usize| u32::from_le_bytes(std::array::from_fn(|i| payload[96 + 8 * block + i])) as usize;
    let mut start = 96 + 8 * blocks;
    for block in 0..blocks {
        let mut damaged = payload.clone();
        damaged[start + words(block) * 2] ^= 4;
        start += words(block) * 4;
        let mut found = vec![0.0; x.len()];
        let error = codec.decode(&damaged, encoded.bound, &context, ValuesMut::F64(&mut found)).unwrap_err();
        assert_eq!(error.to_string(), format!("codec qb: damaged payload, 1 of {blocks} blocks, the first is {block}"),);
        let inside = block * 4096..x.len().min(block * 4096 + 4096);
        for i in (0..x.len()).filter(|i| !inside.contains(i)) {
            assert_eq!(found[i].to_bits(), decoded[i].to_bits(), "value {i} with block {block} damaged");
        }
    }
}

#[test]
fn what_no_encoder_writes_behind_heads_and_classes_is_damage() {
    let x: Vec<f64> = (0..200).map(|i| (f64::from(i) * 0.07).sin()).collect();
    let context = Context::flat(x.len());
    for (bound, padding) in
        [(Bound::Absolute(1e-6), 2..4), (Bound::Pointwise(1e-6), 2..4), (Bound::Pointwise(1e-6), 5..8)]
    {
        let (_, encoded, payload) = there_and_back(&Qb::default(), &x, bound, &context);
        let heads = 96 + 8 + 4 + 4 * (payload[96 + 8] as usize >> 4);
        for bit in padding.start * 8..padding.end * 8 {
            let mut damaged = payload.clone();
            damaged[heads + bit / 8] ^= 1 << (bit % 8);
            let checksum = crc32c::crc32c(&damaged[96 + 8..]);
            damaged[96 + 4..96 + 8].copy_from_slice(&checksum.to_le_bytes());
            damaged[12..16].fill(0);
            let checksum = crc32c::crc32c(&damaged[..96 + 8]);
            damaged[12..16].copy_from_slice(&checksum.to_le_bytes());
            let mut target = vec![0.0; x.len()];
            let error = codec_error(&damaged, encoded.bound, &context, &mut target);
            assert!(error.contains("1 of 1 blocks"), "{bound}: bit {bit} behind the heads: {error}");
        }
    }
}

fn codec_error(payload: &[u8], bound: Bound, context: &Context, target: &mut [f64]) -> String {
    Qb::default()
        .decode(payload, bound, context, ValuesMut::F64(target))
        .map_or_else(|error| error.to_string(), |()| String::new())
}

#[test]
fn a_dead_band_is_for_absolute_lattices_alone() {
    let x: Vec<f64> = (0..600).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect();
    let parent = Parent { values: Values::F64(&vec![0.0; x.len()]), hash: HASH };
    let context = Context::flat(x.len()).chained(Chain::Follow(parent));
    let codec =
        Qb::default().with_arrangement(QbArrangement { follows: true, is_halved: true, ..QbArrangement::default() });
    for e in [2.0f64.powi(-1000), 2.0f64.powi(-1001), 2.0f64.powi(-1074)] {
        let (decoded, ..) = there_and_back(&codec, &x, Bound::Absolute(e), &context);
        assert_holds(&x, &decoded, "zeros", Bound::Absolute(e));
    }
}

#[test]
fn what_is_cut_or_flipped_is_an_error_in_every_kind_of_frame() {
    let wave = |i: usize| (i as f64 * 0.07).sin();
    let x: Vec<f64> = (0..700).map(|i| if i % 90 == 7 { f64::NAN } else { wave(i) }).collect();
    let parent: Vec<f64> = x.iter().map(|x| x + 1e-3).collect();
    let follow = Chain::Follow(Parent { values: Values::F64(&parent), hash: HASH });
    let flat = Context::flat(x.len());
    let grid = Context::grid([10, 10, 7]);
    let codec = Qb::default();
    let fitted = codec.clone().with_arrangement(FITTED);
    let following = codec.clone().with_arrangement(QbArrangement { follows: true, ..FITTED });
    let cases = [
        (flat, &codec),
        (Context { stride: 3, ..flat }, &codec),
        (grid, &codec),
        (flat.chained(follow), &codec),
        (grid, &fitted),
        (grid.chained(follow), &following),
    ];
    for (context, codec) in cases {
        for bound in [Bound::Lossless, Bound::Absolute(1e-3), Bound::Pointwise(1e-3)] {
            let mut payload = Vec::new();
            let encoded = codec.encode(Values::F64(&x), bound, &context, &mut payload).unwrap();
            if encoded.stored_raw {
                continue;
            }
            let mut target = vec![0.0; x.len()];
            let mut fails =
                |bytes: &[u8]| codec.decode(bytes, encoded.bound, &context, ValuesMut::F64(&mut target)).is_err();
            assert!((0..payload.len()).all(|length| fails(&payload[..length])), "{bound}: a shorter frame");
            for bit in 0..payload.len() * 8 {
                payload[bit / 8] ^= 1 << (bit % 8);
                assert!(fails(&payload), "{bound}: bit {bit} flipped");
                payload[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }
}
