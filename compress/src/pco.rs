//! Pcodec, alone for lossless storage and, under a bound, on integer codes from a lattice.
//!
//! Payload, little-endian: the 48-byte header below; the f32 coefficients of a fitted predictor, in
//! version 2 the 17 of `neighbours.rs`, in version 3 the 84 of `wide.rs`; then `coded_bytes` of a
//! standalone pco file; then `n_exceptions` pairs (index u64, bits u64).
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic `RPCO` |
//! | 4 | version u8: 1, or 2 or 3 where the codes are what a fitted predictor leaves |
//! | 5 | mode u8: 0 lossless, 1 absolute, 2 pointwise relative |
//! | 6 | element u8: 0 f64, 1 f32, 2 i64, 3 bytes |
//! | 7 | bytes of a code u8: 4 or 8; 0 when lossless |
//! | 8 | axes differences were taken along u8: 1 fastest, 2, 4 slowest; 0 in versions 2 and 3 |
//! | 9 | zeros |
//! | 16 | step u64: bits of an f64 (absolute), distance of patterns (relative), 0 (lossless) |
//! | 24 | n u64 |
//! | 32 | n_exceptions u64 |
//! | 40 | coded_bytes u64 |

mod fitted;
mod grid;
mod lattice;
mod wide;

use ::pco::data_types::Number;
use ::pco::{ChunkConfig, standalone};
use recoup_core::{Bound, Codec, CodecError, CodecId, CodecResult, Context, ElementType, Encoded, Values, ValuesMut};

use self::fitted::{FITTED_BYTES, Fitted};
use self::grid::{DifferencedAxes, SlabCosts, difference, sum};
use self::lattice::{Quantised, SignedRelative, dequantise, quantise};
use self::wide::{WIDE_BYTES, Wide};
use crate::lattice::{Absolute, StepRule};
use crate::scalar::Scalar;
use crate::{bytes, effective_bound};

/// pco's level for codes: its default, up to a quarter better than 4 on 3D grids at the same CPU
/// time.
const CODES_LEVEL: usize = 8;
/// pco's level for values themselves: a third faster than its default at 1 % less ratio.
const LOSSLESS_LEVEL: usize = 4;
/// The part of its bytes that a wide predictor has to save; or, where the bandwidth of the storage
/// is known, the time it takes: for each value, both ways, and for the fit.
const WIDE_PAYS: f64 = 0.05;
const WIDE_SECONDS: f64 = 4e-8;
const WIDE_FIT_SECONDS: f64 = 0.01;
const HEADER_BYTES: usize = 48;
const EXCEPTION_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"RPCO";
const VERSION: u8 = 1;
const VERSION_FITTED: u8 = 2;
const VERSION_WIDE: u8 = 3;
/// Absolute bounds above this are taken as if they were this one, which is tighter.
const LARGEST_BOUND: f64 = f64::from_bits((1023 + 1000) << 52);

/// Pcodec; under a bound, on an integer lattice first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pco;

impl Codec for Pco {
    fn id(&self) -> CodecId {
        CodecId::Pco
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let bound = effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        target.clear();
        let is_coded = match source {
            Values::F64(values) => encode_bounded(values, bound, context, target)?,
            Values::F32(values) => encode_bounded(values, bound, context, target)?,
            Values::I64(_) | Values::Bytes(_) => false,
        };
        if !is_coded {
            encode_lossless(source, target)?;
        }
        let bound = if is_coded { bound } else { Bound::Lossless };
        Ok(Encoded::under(bound))
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        let values = target.as_values();
        bytes::check_shape(context, values.len())?;
        let payload = PcoPayload::parse(source, values.element(), values.len())?;
        match target {
            ValuesMut::F64(target) => decode_floats(&payload, context, target),
            ValuesMut::F32(target) => decode_floats(&payload, context, target),
            ValuesMut::I64(target) => payload.decode_lossless(target),
            ValuesMut::Bytes(target) => payload.decode_lossless(target),
        }
    }
}

fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { codec: CodecId::Pco, what }
}

/// Writes `values` as codes; `false`, with nothing written, where exact storage is needed or
/// shorter.
fn encode_bounded<T: Scalar>(values: &[T], bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult<bool> {
    let Some(BoundedCodes { mode, quantised }) = BoundedCodes::new(values, bound) else { return Ok(false) };
    let Quantised { mut codes, exceptions } = quantised;
    if exceptions.indices.len() * EXCEPTION_BYTES > size_of_val(values) / 2 {
        return Ok(false);
    }
    let prediction = CodePrediction::choose(&codes, context, mode);
    prediction.remove(&mut codes, context);
    target.resize(HEADER_BYTES, 0);
    match &prediction {
        CodePrediction::Axes(_) => {}
        CodePrediction::Fitted(fitted) => target.extend_from_slice(&fitted.to_bytes()),
        CodePrediction::Wide(wide) => target.extend_from_slice(&wide.to_bytes()),
    }
    let start = target.len();
    let width = compress_codes(&codes, target)?;
    let header = PcoHeader {
        mode,
        element: T::ELEMENT,
        width,
        prediction,
        n: values.len(),
        n_exceptions: exceptions.indices.len(),
        coded_bytes: target.len() - start,
    };
    target[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    for (index, bits) in exceptions.indices.iter().zip(&exceptions.bits) {
        target.extend_from_slice(&index.to_le_bytes());
        target.extend_from_slice(&bits.to_le_bytes());
    }
    Ok(true)
}

/// Appends the codes, as 32-bit ones where all fit, and returns the bytes of a code.
fn compress_codes(codes: &[i64], target: &mut Vec<u8>) -> CodecResult<u8> {
    // Two's complement: a code fits when its high half only repeats the sign of the low one.
    let excess = codes.iter().fold(0u64, |excess, &code| excess | (code ^ (code >> 63)) as u64);
    if excess >> 31 == 0 {
        let narrow: Vec<i32> = codes.iter().map(|&code| code as i32).collect();
        compress(&narrow, CODES_LEVEL, target)?;
        Ok(4)
    } else {
        compress(codes, CODES_LEVEL, target)?;
        Ok(8)
    }
}

/// Writes every value exactly.
fn encode_lossless(source: Values<'_>, target: &mut Vec<u8>) -> CodecResult<()> {
    target.clear();
    target.resize(HEADER_BYTES, 0);
    match source {
        Values::F64(values) => compress(values, LOSSLESS_LEVEL, target)?,
        Values::F32(values) => compress(values, LOSSLESS_LEVEL, target)?,
        Values::I64(values) => compress(values, LOSSLESS_LEVEL, target)?,
        Values::Bytes(values) => compress(values, LOSSLESS_LEVEL, target)?,
    }
    let coded_bytes = target.len() - HEADER_BYTES;
    let header = PcoHeader { element: source.element(), n: source.len(), coded_bytes, ..PcoHeader::EMPTY };
    target[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    Ok(())
}

/// Appends a standalone pco file.
fn compress<T: Number>(values: &[T], level: usize, target: &mut Vec<u8>) -> CodecResult<()> {
    let config = ChunkConfig::default().with_compression_level(level).with_enable_8_bit(true);
    standalone::simple_compress_into(values, &config, target)
        .map(|_| ())
        .map_err(|error| CodecError::Foreign { codec: CodecId::Pco, message: error.to_string() })
}

/// Fills `target` from a standalone pco file of exactly as many numbers.
fn decompress<T: Number>(source: &[u8], target: &mut [T]) -> CodecResult<()> {
    let progress = standalone::simple_decompress_into(source, target).map_err(|_| damaged("pco refuses its part"))?;
    if progress.finished && progress.n_processed == target.len() {
        Ok(())
    } else {
        Err(damaged("pco's part holds another number of values"))
    }
}

/// The numbers pco stores.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PcoMode {
    /// The values themselves.
    Lossless,
    /// Multiples of a step.
    Absolute { step: f64 },
    /// Multiples of a distance of bit patterns.
    Relative { divisor: u64 },
}

/// Values as codes.
struct BoundedCodes {
    mode: PcoMode,
    quantised: Quantised,
}

impl BoundedCodes {
    /// The codes under a bound; `None` when only exact storage holds it.
    fn new<T: Scalar>(values: &[T], bound: Bound) -> Option<Self> {
        match bound {
            Bound::Absolute(e) => {
                let lattice = Absolute::new(e.min(LARGEST_BOUND), StepRule::default())?;
                Some(Self { mode: PcoMode::Absolute { step: lattice.step() }, quantised: quantise(&lattice, values) })
            }
            Bound::Pointwise(e) => {
                let lattice = SignedRelative::new::<T>(e)?;
                Some(Self {
                    mode: PcoMode::Relative { divisor: lattice.divisor() },
                    quantised: quantise(&lattice, values),
                })
            }
            Bound::Lossless | Bound::Range(_) => None,
        }
    }
}

/// The prediction that is taken from the codes before pco stores them.
#[derive(Clone, Debug, PartialEq)]
enum CodePrediction {
    /// Neighbours along axes.
    Axes(DifferencedAxes),
    /// A fitted sum of the nearest neighbours.
    Fitted(Fitted),
    /// A fitted sum of more of them.
    Wide(Box<Wide>),
}

impl CodePrediction {
    /// Returns the prediction that leaves the shortest codes, judged on a sample; a wide one where
    /// that is worth its time. Multiples of a distance of bit patterns are logarithms with a jump
    /// at every change of sign: no sum of neighbours fits them.
    fn choose(codes: &[i64], context: &Context, mode: PcoMode) -> Self {
        let axes = DifferencedAxes::choose(codes, context);
        let is_linear = matches!(mode, PcoMode::Absolute { .. });
        let Some(fitted) = is_linear.then(|| Fitted::fit(codes, context)).flatten() else { return Self::Axes(axes) };
        let costs = SlabCosts { codes, context, ignored: 1 };
        if costs.of(|slab, context| fitted.remove(slab, context))
            >= costs.of(|slab, context| difference(slab, context, axes))
        {
            return Self::Axes(axes);
        }
        let costs = SlabCosts { ignored: wide::REACH, ..costs };
        let near = costs.of(|slab, context| fitted.remove(slab, context));
        let may_pay = wide_pays(near, 0.0, context);
        let wide = may_pay.then(|| Wide::fit(codes, context)).flatten().filter(|wide| {
            let wide = costs.of(|slab, context| wide.remove(slab, context));
            wide_pays(near, wide, context)
        });
        wide.map_or(Self::Fitted(fitted), |wide| Self::Wide(Box::new(wide)))
    }

    fn remove(&self, codes: &mut [i64], context: &Context) {
        match self {
            Self::Axes(axes) => difference(codes, context, *axes),
            Self::Fitted(fitted) => fitted.remove(codes, context),
            Self::Wide(wide) => wide.remove(codes, context),
        }
    }

    fn add(&self, codes: &mut [i64], context: &Context) {
        match self {
            Self::Axes(axes) => sum(codes, context, *axes),
            Self::Fitted(fitted) => fitted.add(codes, context),
            Self::Wide(wide) => wide.add(codes, context),
        }
    }
}

/// Returns whether a wide predictor pays that takes `wide` bits a code and not `near`: if it saves
/// a twentieth, or, where the bandwidth of the storage is known, more time than it takes.
fn wide_pays(near: f64, wide: f64, context: &Context) -> bool {
    let n = context.dims.iter().product::<usize>() as f64;
    let saved = (near - wide) / 8.0 - (WIDE_BYTES - FITTED_BYTES) as f64 / n;
    context
        .bandwidth
        .map_or(saved > WIDE_PAYS * near / 8.0, |bandwidth| saved > (WIDE_SECONDS + WIDE_FIT_SECONDS / n) * bandwidth)
}

/// The first bytes of a payload.
#[derive(Clone, Debug, PartialEq)]
struct PcoHeader {
    mode: PcoMode,
    element: ElementType,
    width: u8,
    prediction: CodePrediction,
    n: usize,
    n_exceptions: usize,
    coded_bytes: usize,
}

impl PcoHeader {
    const EMPTY: Self = Self {
        mode: PcoMode::Lossless,
        element: ElementType::F64,
        width: 0,
        prediction: CodePrediction::Axes(DifferencedAxes::NONE),
        n: 0,
        n_exceptions: 0,
        coded_bytes: 0,
    };

    fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let (mode, step) = match self.mode {
            PcoMode::Lossless => (0, 0),
            PcoMode::Absolute { step } => (1, step.to_bits()),
            PcoMode::Relative { divisor } => (2, divisor),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let (version, axes) = match &self.prediction {
            CodePrediction::Axes(axes) => (VERSION, *axes),
            CodePrediction::Fitted(_) => (VERSION_FITTED, DifferencedAxes::NONE),
            CodePrediction::Wide(_) => (VERSION_WIDE, DifferencedAxes::NONE),
        };
        bytes[4..9].copy_from_slice(&[version, mode, element_code(self.element), self.width, axes.bits()]);
        let words = [step, self.n as u64, self.n_exceptions as u64, self.coded_bytes as u64];
        for (field, word) in bytes[16..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *field = word.to_le_bytes();
        }
        bytes
    }

    /// The header, and what follows it and its predictor.
    fn parse(source: &[u8], element: ElementType) -> CodecResult<(Self, &[u8])> {
        let (bytes, rest) = source.split_first_chunk().ok_or_else(|| damaged("shorter than a header"))?;
        let header = Self::from_bytes(bytes, element)?;
        if bytes[4] == VERSION {
            return Ok((header, rest));
        }
        if header.prediction != CodePrediction::Axes(DifferencedAxes::NONE) || header.mode == PcoMode::Lossless {
            return Err(damaged("axes"));
        }
        let cut = || damaged("cut short");
        let (prediction, rest) = if bytes[4] == VERSION_FITTED {
            let (fitted, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (CodePrediction::Fitted(Fitted::from_bytes(fitted)), rest)
        } else {
            let (wide, rest) = rest.split_first_chunk().ok_or_else(cut)?;
            (CodePrediction::Wide(Box::new(Wide::from_bytes(wide))), rest)
        };
        Ok((Self { prediction, ..header }, rest))
    }

    fn from_bytes(bytes: &[u8; HEADER_BYTES], element: ElementType) -> CodecResult<Self> {
        if bytes[..4] != MAGIC || !(VERSION..=VERSION_WIDE).contains(&bytes[4]) || bytes[9..16] != [0; 7] {
            return Err(damaged("no header of this version"));
        }
        if bytes[6] != element_code(element) {
            return Err(damaged("other element type"));
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let length = |at: usize| usize::try_from(word(at)).map_err(|_| damaged("length"));
        let mode = match (bytes[5], word(16)) {
            (0, 0) => PcoMode::Lossless,
            (1, step) => PcoMode::Absolute { step: f64::from_bits(step) },
            (2, divisor) => PcoMode::Relative { divisor },
            _ => return Err(damaged("mode")),
        };
        let prediction = CodePrediction::Axes(DifferencedAxes::from_bits(bytes[8]).ok_or_else(|| damaged("axes"))?);
        Ok(Self {
            mode,
            element,
            width: bytes[7],
            prediction,
            n: length(24)?,
            n_exceptions: length(32)?,
            coded_bytes: length(40)?,
        })
    }
}

fn element_code(element: ElementType) -> u8 {
    match element {
        ElementType::F64 => 0,
        ElementType::F32 => 1,
        ElementType::I64 => 2,
        ElementType::Bytes => 3,
    }
}

/// A payload taken apart, its lengths checked against each other and against the values wanted.
struct PcoPayload<'a> {
    header: PcoHeader,
    coded: &'a [u8],
    exceptions: &'a [[u8; EXCEPTION_BYTES]],
}

impl<'a> PcoPayload<'a> {
    fn parse(source: &'a [u8], element: ElementType, n: usize) -> CodecResult<Self> {
        let (header, rest) = PcoHeader::parse(source, element)?;
        let (coded, pairs) = rest.split_at_checked(header.coded_bytes).ok_or_else(|| damaged("cut short"))?;
        let (exceptions, trailing) = pairs.as_chunks();
        if header.n != n || header.n_exceptions != exceptions.len() || !trailing.is_empty() {
            return Err(damaged("lengths contradict each other"));
        }
        Ok(Self { header, coded, exceptions })
    }

    fn decode_lossless<T: Number>(&self, target: &mut [T]) -> CodecResult<()> {
        if self.header.mode != PcoMode::Lossless || !self.exceptions.is_empty() {
            return Err(damaged("mode"));
        }
        decompress(self.coded, target)
    }

    /// The codes, differences undone.
    fn codes(&self, context: &Context) -> CodecResult<Vec<i64>> {
        let mut codes = vec![0i64; self.header.n];
        match self.header.width {
            4 => {
                let mut narrow = vec![0i32; self.header.n];
                decompress(self.coded, &mut narrow)?;
                codes.iter_mut().zip(&narrow).for_each(|(code, &x)| *code = i64::from(x));
            }
            8 => decompress(self.coded, &mut codes)?,
            _ => return Err(damaged("bytes of a code")),
        }
        let fills_grid = codes.len() == context.dims.iter().product::<usize>();
        let is_of_this_grid = match &self.header.prediction {
            CodePrediction::Axes(_) => true,
            CodePrediction::Fitted(_) => fills_grid,
            CodePrediction::Wide(_) => fills_grid && Wide::covers(context),
        };
        if !is_of_this_grid {
            return Err(damaged("a predictor of another grid"));
        }
        self.header.prediction.add(&mut codes, context);
        Ok(codes)
    }
}

fn decode_floats<T: Scalar + Number>(payload: &PcoPayload<'_>, context: &Context, target: &mut [T]) -> CodecResult<()> {
    match payload.header.mode {
        PcoMode::Lossless => return payload.decode_lossless(target),
        PcoMode::Absolute { step } => {
            let lattice = Absolute::of_step(step).ok_or_else(|| damaged("step"))?;
            dequantise(&lattice, &payload.codes(context)?, target);
        }
        PcoMode::Relative { divisor } => {
            let lattice = SignedRelative::of_divisor::<T>(divisor).ok_or_else(|| damaged("step"))?;
            dequantise(&lattice, &payload.codes(context)?, target);
        }
    }
    for pair in payload.exceptions {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| pair[at + i]));
        let place = usize::try_from(word(0)).ok().and_then(|index| target.get_mut(index));
        *place.ok_or_else(|| damaged("exception out of place"))? = T::from_bits(word(8));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_from_its_bytes() {
        for mode in [PcoMode::Lossless, PcoMode::Absolute { step: 2.5e-4 }, PcoMode::Relative { divisor: 77 }] {
            let prediction = CodePrediction::Axes(DifferencedAxes::from_bits(6).unwrap());
            let header =
                PcoHeader { mode, prediction, width: 4, n: 9, n_exceptions: 2, coded_bytes: 51, ..PcoHeader::EMPTY };
            let bytes = header.to_bytes();
            assert_eq!(PcoHeader::parse(&bytes, ElementType::F64), Ok((header, &[][..])));
            assert!(PcoHeader::parse(&bytes, ElementType::F32).is_err());
        }
    }

    /// Twelve waves of different lengths and directions.
    fn waves([nx, ny, nz]: [usize; 3]) -> Vec<f64> {
        let at = |i: usize| [i % nx, i / nx % ny, i / nx / ny].map(|place| place as f64);
        let wave = |[x, y, z]: [f64; 3], k: f64| (k.sin() * x + (2.0 * k).cos() * y + (3.0 * k).sin() * z + k).sin();
        (0..nx * ny * nz).map(|i| (1..=12).map(|k| wave(at(i), f64::from(k))).sum()).collect()
    }

    #[test]
    fn wide_predictor_is_taken_where_it_pays_and_refused_on_another_grid() {
        let context = Context::grid([40, 30, 20]);
        let values = waves(context.dims);
        let encoded = |bandwidth| {
            let mut target = Vec::new();
            let context = Context { bandwidth, ..context };
            Pco.encode(Values::F64(&values), Bound::Absolute(0.03), &context, &mut target).unwrap();
            target
        };
        let [wide, on_slow, on_fast] = [None, Some(1e5), Some(1e9)].map(encoded);
        assert_eq!([wide[4], on_slow[4], on_fast[4]], [VERSION_WIDE, VERSION_WIDE, VERSION_FITTED]);
        assert!(wide == on_slow && wide.len() * 10 < on_fast.len() * 9, "{} and {}", wide.len(), on_fast.len());
        let mut target = vec![0.0; values.len()];
        for (dims, is_whole) in [([40, 30, 20], true), ([8, 150, 20], false), ([3000, 8, 1], false)] {
            let context = Context::grid(dims);
            let decoded = Pco.decode(&wide, Bound::Lossless, &context, ValuesMut::F64(&mut target));
            assert_eq!(decoded.is_ok(), is_whole, "{dims:?}");
        }
        let context = Context::grid([40, 30, 20]);
        Pco.decode(&wide, Bound::Lossless, &context, ValuesMut::F64(&mut target)).unwrap();
        assert!(values.iter().zip(&target).all(|(x, decoded)| (x - decoded).abs() <= 0.03));
        for cut in [HEADER_BYTES, HEADER_BYTES + FITTED_BYTES, HEADER_BYTES + WIDE_BYTES - 1, wide.len() - 1] {
            assert!(Pco.decode(&wide[..cut], Bound::Lossless, &context, ValuesMut::F64(&mut target)).is_err());
        }
    }

    #[test]
    fn smooth_grids_gain_from_their_slower_axes() {
        let n = 32;
        let context = Context::grid([n, n, n]);
        let wave = |i: usize| (i as f64 * 0.1).sin();
        let values: Vec<f64> = (0..n * n * n).map(|i| wave(i % n) * wave(i / n % n) * wave(i / n / n)).collect();
        let encoded_bytes = |context: &Context| {
            let mut target = Vec::new();
            Pco.encode(Values::F64(&values), Bound::Absolute(1e-4), context, &mut target).unwrap();
            target.len()
        };
        assert!(encoded_bytes(&context) < encoded_bytes(&Context::flat(n * n * n)));
    }
}
