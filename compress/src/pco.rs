//! Pcodec, alone for lossless storage and, under a bound, on integer codes from a lattice.
//!
//! Payload, little-endian: the 48-byte header below; in version 2 the 17 coefficients of a fitted
//! predictor (f32, in the order of `neighbours.rs`); `coded_bytes` of a standalone pco file; then
//! `n_exceptions` pairs (index u64, bits u64).
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic `RPCO` |
//! | 4 | version u8: 1, or 2 where the codes are what a fitted predictor leaves |
//! | 5 | mode u8: 0 lossless, 1 absolute, 2 pointwise relative |
//! | 6 | element u8: 0 f64, 1 f32, 2 i64, 3 bytes |
//! | 7 | bytes of a code u8: 4 or 8; 0 when lossless |
//! | 8 | axes differences were taken along u8: 1 fastest, 2, 4 slowest; 0 in version 2 |
//! | 9 | zeros |
//! | 16 | step u64: bits of an f64 (absolute), distance of patterns (relative), 0 (lossless) |
//! | 24 | n u64 |
//! | 32 | n_exceptions u64 |
//! | 40 | coded_bytes u64 |

mod fitted;
mod grid;
mod lattice;

use ::pco::data_types::Number;
use ::pco::{ChunkConfig, standalone};
use recoup_core::{Bound, Codec, CodecError, CodecId, Context, ElementType, Encoded, Values, ValuesMut};

use self::fitted::{FITTED_BYTES, Fitted};
use self::grid::{DifferencedAxes, difference, fitted_pays, sum};
use self::lattice::{Quantised, SignedRelative, dequantise, quantise};
use crate::lattice::{Absolute, StepRule};
use crate::scalar::Scalar;
use crate::{bytes, effective_bound};

/// pco's level for codes: its default, up to a quarter better than 4 on 3D grids at the same CPU
/// time.
const CODES_LEVEL: usize = 8;
/// pco's level for values themselves: a third faster than its default at 1 % less ratio.
const LOSSLESS_LEVEL: usize = 4;
const HEADER_BYTES: usize = 48;
const EXCEPTION_BYTES: usize = 16;
const MAGIC: [u8; 4] = *b"RPCO";
const VERSION: u8 = 1;
const VERSION_FITTED: u8 = 2;
/// Absolute bounds above this are taken as if they were this one, which is tighter.
const LARGEST_BOUND: f64 = f64::from_bits((1023 + 1000) << 52);

/// Pcodec; under a bound, on an integer lattice first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pco;

impl Codec for Pco {
    fn id(&self) -> CodecId {
        CodecId::Pco
    }

    fn is_lossy(&self) -> bool {
        true
    }

    fn encode(
        &self,
        source: Values<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Result<Encoded, CodecError> {
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

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> Result<(), CodecError> {
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
fn encode_bounded<T: Scalar>(
    values: &[T],
    bound: Bound,
    context: &Context,
    target: &mut Vec<u8>,
) -> Result<bool, CodecError> {
    let Some(BoundedCodes { mode, quantised }) = BoundedCodes::new(values, bound) else { return Ok(false) };
    let Quantised { mut codes, exceptions } = quantised;
    if exceptions.indices.len() * EXCEPTION_BYTES > size_of_val(values) / 2 {
        return Ok(false);
    }
    let prediction = CodePrediction::choose(&codes, context, mode);
    prediction.remove(&mut codes, context);
    let header = PcoHeader {
        mode,
        element: T::ELEMENT,
        prediction,
        n: values.len(),
        n_exceptions: exceptions.indices.len(),
        ..PcoHeader::EMPTY
    };
    target.resize(HEADER_BYTES, 0);
    if let CodePrediction::Fitted(fitted) = prediction {
        target.extend_from_slice(&fitted.to_bytes());
    }
    let start = target.len();
    let width = compress_codes(&codes, target)?;
    let header = PcoHeader { width, coded_bytes: target.len() - start, ..header };
    target[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    for (index, bits) in exceptions.indices.iter().zip(&exceptions.bits) {
        target.extend_from_slice(&index.to_le_bytes());
        target.extend_from_slice(&bits.to_le_bytes());
    }
    Ok(true)
}

/// Appends the codes, as 32-bit ones where all fit, and returns the bytes of a code.
fn compress_codes(codes: &[i64], target: &mut Vec<u8>) -> Result<u8, CodecError> {
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
fn encode_lossless(source: Values<'_>, target: &mut Vec<u8>) -> Result<(), CodecError> {
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
fn compress<T: Number>(values: &[T], level: usize, target: &mut Vec<u8>) -> Result<(), CodecError> {
    let config = ChunkConfig::default().with_compression_level(level).with_enable_8_bit(true);
    standalone::simple_compress_into(values, &config, target)
        .map(|_| ())
        .map_err(|error| CodecError::Foreign { codec: CodecId::Pco, message: error.to_string() })
}

/// Fills `target` from a standalone pco file of exactly as many numbers.
fn decompress<T: Number>(source: &[u8], target: &mut [T]) -> Result<(), CodecError> {
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
#[derive(Clone, Copy, Debug, PartialEq)]
enum CodePrediction {
    /// Neighbours along axes.
    Axes(DifferencedAxes),
    /// A fitted sum of neighbours.
    Fitted(Fitted),
}

impl CodePrediction {
    /// Returns the prediction that leaves the shortest codes, judged on a sample. Multiples of a
    /// distance of bit patterns are logarithms with a jump at every change of sign: no sum of
    /// neighbours fits them.
    fn choose(codes: &[i64], context: &Context, mode: PcoMode) -> Self {
        let axes = DifferencedAxes::choose(codes, context);
        let is_linear = matches!(mode, PcoMode::Absolute { .. });
        let fitted = is_linear.then(|| Fitted::fit(codes, context)).flatten();
        let fitted = fitted.filter(|fitted| fitted_pays(codes, context, fitted, axes));
        fitted.map_or(Self::Axes(axes), Self::Fitted)
    }

    fn remove(self, codes: &mut [i64], context: &Context) {
        match self {
            Self::Axes(axes) => difference(codes, context, axes),
            Self::Fitted(fitted) => fitted.remove(codes, context),
        }
    }

    fn add(self, codes: &mut [i64], context: &Context) {
        match self {
            Self::Axes(axes) => sum(codes, context, axes),
            Self::Fitted(fitted) => fitted.add(codes, context),
        }
    }
}

/// The first bytes of a payload.
#[derive(Clone, Copy, Debug, PartialEq)]
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

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let (mode, step) = match self.mode {
            PcoMode::Lossless => (0, 0),
            PcoMode::Absolute { step } => (1, step.to_bits()),
            PcoMode::Relative { divisor } => (2, divisor),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let (version, axes) = match self.prediction {
            CodePrediction::Axes(axes) => (VERSION, axes.bits()),
            CodePrediction::Fitted(_) => (VERSION_FITTED, DifferencedAxes::NONE.bits()),
        };
        bytes[4..9].copy_from_slice(&[version, mode, element_code(self.element), self.width, axes]);
        let words = [step, self.n as u64, self.n_exceptions as u64, self.coded_bytes as u64];
        for (field, word) in bytes[16..].as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *field = word.to_le_bytes();
        }
        bytes
    }

    /// The header, and what follows it and its predictor.
    fn parse(source: &[u8], element: ElementType) -> Result<(Self, &[u8]), CodecError> {
        let (bytes, rest) = source.split_first_chunk().ok_or_else(|| damaged("shorter than a header"))?;
        let header = Self::from_bytes(bytes, element)?;
        if bytes[4] == VERSION {
            return Ok((header, rest));
        }
        let (fitted, rest) = rest.split_first_chunk::<FITTED_BYTES>().ok_or_else(|| damaged("cut short"))?;
        if header.prediction != CodePrediction::Axes(DifferencedAxes::NONE) || header.mode == PcoMode::Lossless {
            return Err(damaged("axes"));
        }
        Ok((Self { prediction: CodePrediction::Fitted(Fitted::from_bytes(fitted)), ..header }, rest))
    }

    fn from_bytes(bytes: &[u8; HEADER_BYTES], element: ElementType) -> Result<Self, CodecError> {
        if bytes[..4] != MAGIC || !(VERSION..=VERSION_FITTED).contains(&bytes[4]) || bytes[9..16] != [0; 7] {
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
    fn parse(source: &'a [u8], element: ElementType, n: usize) -> Result<Self, CodecError> {
        let (header, rest) = PcoHeader::parse(source, element)?;
        let (coded, pairs) = rest.split_at_checked(header.coded_bytes).ok_or_else(|| damaged("cut short"))?;
        let (exceptions, trailing) = pairs.as_chunks();
        if header.n != n || header.n_exceptions != exceptions.len() || !trailing.is_empty() {
            return Err(damaged("lengths contradict each other"));
        }
        Ok(Self { header, coded, exceptions })
    }

    fn decode_lossless<T: Number>(&self, target: &mut [T]) -> Result<(), CodecError> {
        if self.header.mode != PcoMode::Lossless || !self.exceptions.is_empty() {
            return Err(damaged("mode"));
        }
        decompress(self.coded, target)
    }

    /// The codes, differences undone.
    fn codes(&self, context: &Context) -> Result<Vec<i64>, CodecError> {
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
        if let CodePrediction::Fitted(_) = self.header.prediction
            && codes.len() != context.dims.iter().product::<usize>()
        {
            return Err(damaged("a predictor of another grid"));
        }
        self.header.prediction.add(&mut codes, context);
        Ok(codes)
    }
}

fn decode_floats<T: Scalar + Number>(
    payload: &PcoPayload<'_>,
    context: &Context,
    target: &mut [T],
) -> Result<(), CodecError> {
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
        let prediction = CodePrediction::Axes(DifferencedAxes::from_bits(6).unwrap());
        for mode in [PcoMode::Lossless, PcoMode::Absolute { step: 2.5e-4 }, PcoMode::Relative { divisor: 77 }] {
            let header =
                PcoHeader { mode, prediction, width: 4, n: 9, n_exceptions: 2, coded_bytes: 51, ..PcoHeader::EMPTY };
            assert_eq!(PcoHeader::parse(&header.to_bytes(), ElementType::F64), Ok((header, &[][..])));
            assert!(PcoHeader::parse(&header.to_bytes(), ElementType::F32).is_err());
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
