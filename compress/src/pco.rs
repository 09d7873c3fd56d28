//! Pcodec, alone for lossless storage and, under a bound, on integer codes from a lattice.
//!
//! Payload, little-endian: the 48-byte header below, in version 2 the 17 coefficients of a fitted
//! predictor (f32, in the order of `pco/fitted.rs`), `coded_bytes` of a standalone pco file, then
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
use self::grid::{Axes, difference, fitted_pays, sum};
use self::lattice::{Absolute, Lattice, Real, Relative, dequantise, quantise};
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
        let payload = Payload::parse(source, values.element(), values.len())?;
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
fn encode_bounded<T: Real>(
    values: &[T],
    bound: Bound,
    context: &Context,
    target: &mut Vec<u8>,
) -> Result<bool, CodecError>
where
    Absolute: Lattice<T>,
    Relative: Lattice<T>,
{
    let (mode, (mut codes, exceptions)) = match bound {
        Bound::Absolute(e) => match Absolute::new(e) {
            Some(lattice) => (Mode::Absolute { step: lattice.step() }, quantise(&lattice, values)),
            None => return Ok(false),
        },
        Bound::Pointwise(e) => match T::relative(e) {
            Some(lattice) => (Mode::Relative { divisor: lattice.divisor() }, quantise(&lattice, values)),
            None => return Ok(false),
        },
        _ => return Ok(false),
    };
    if exceptions.indices.len() * EXCEPTION_BYTES > size_of_val(values) / 2 {
        return Ok(false);
    }
    let prediction = Prediction::choose(&codes, context, mode);
    prediction.remove(&mut codes, context);
    let (n, n_exceptions) = (values.len(), exceptions.indices.len());
    let header = Header { mode, element: T::ELEMENT, prediction, n, n_exceptions, ..Header::EMPTY };
    target.resize(HEADER_BYTES, 0);
    if let Prediction::Fitted(fitted) = prediction {
        target.extend_from_slice(&fitted.to_bytes());
    }
    let start = target.len();
    let width = compress_codes(&codes, target)?;
    let header = Header { width, coded_bytes: target.len() - start, ..header };
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
    let header = Header { element: source.element(), n: source.len(), coded_bytes, ..Header::EMPTY };
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

/// How the values became what pco stores.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    /// They are stored themselves.
    Lossless,
    /// Multiples of a step.
    Absolute { step: f64 },
    /// Multiples of a distance of bit patterns.
    Relative { divisor: u64 },
}

/// What was taken from the codes before pco stores them.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Prediction {
    /// Neighbours along axes.
    Axes(Axes),
    /// A fitted sum of neighbours.
    Fitted(Fitted),
}

impl Prediction {
    /// The one that leaves the shortest codes, judged on a sample. Multiples of a distance of bit
    /// patterns are logarithms with a jump at every change of sign: no sum of neighbours fits them.
    fn choose(codes: &[i64], context: &Context, mode: Mode) -> Self {
        let axes = Axes::choose(codes, context);
        let is_linear = matches!(mode, Mode::Absolute { .. });
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
struct Header {
    mode: Mode,
    element: ElementType,
    width: u8,
    prediction: Prediction,
    n: usize,
    n_exceptions: usize,
    coded_bytes: usize,
}

impl Header {
    const EMPTY: Self = Self {
        mode: Mode::Lossless,
        element: ElementType::F64,
        width: 0,
        prediction: Prediction::Axes(Axes::NONE),
        n: 0,
        n_exceptions: 0,
        coded_bytes: 0,
    };

    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let (mode, step) = match self.mode {
            Mode::Lossless => (0, 0),
            Mode::Absolute { step } => (1, step.to_bits()),
            Mode::Relative { divisor } => (2, divisor),
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        let (version, axes) = match self.prediction {
            Prediction::Axes(axes) => (VERSION, axes.bits()),
            Prediction::Fitted(_) => (VERSION_FITTED, Axes::NONE.bits()),
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
        if header.prediction != Prediction::Axes(Axes::NONE) || header.mode == Mode::Lossless {
            return Err(damaged("axes"));
        }
        Ok((Self { prediction: Prediction::Fitted(Fitted::from_bytes(fitted)), ..header }, rest))
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
            (0, 0) => Mode::Lossless,
            (1, step) => Mode::Absolute { step: f64::from_bits(step) },
            (2, divisor) => Mode::Relative { divisor },
            _ => return Err(damaged("mode")),
        };
        let prediction = Prediction::Axes(Axes::from_bits(bytes[8]).ok_or_else(|| damaged("axes"))?);
        let (n, n_exceptions, coded_bytes) = (length(24)?, length(32)?, length(40)?);
        Ok(Self { mode, element, width: bytes[7], prediction, n, n_exceptions, coded_bytes })
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
struct Payload<'a> {
    header: Header,
    coded: &'a [u8],
    exceptions: &'a [[u8; EXCEPTION_BYTES]],
}

impl<'a> Payload<'a> {
    fn parse(source: &'a [u8], element: ElementType, n: usize) -> Result<Self, CodecError> {
        let (header, rest) = Header::parse(source, element)?;
        let (coded, pairs) = rest.split_at_checked(header.coded_bytes).ok_or_else(|| damaged("cut short"))?;
        let (exceptions, trailing) = pairs.as_chunks();
        if header.n != n || header.n_exceptions != exceptions.len() || !trailing.is_empty() {
            return Err(damaged("lengths contradict each other"));
        }
        Ok(Self { header, coded, exceptions })
    }

    fn decode_lossless<T: Number>(&self, target: &mut [T]) -> Result<(), CodecError> {
        if self.header.mode != Mode::Lossless || !self.exceptions.is_empty() {
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
        if let Prediction::Fitted(_) = self.header.prediction
            && codes.len() != context.dims.iter().product::<usize>()
        {
            return Err(damaged("a predictor of another grid"));
        }
        self.header.prediction.add(&mut codes, context);
        Ok(codes)
    }
}

fn decode_floats<T: Real + Number>(payload: &Payload<'_>, context: &Context, target: &mut [T]) -> Result<(), CodecError>
where
    Absolute: Lattice<T>,
    Relative: Lattice<T>,
{
    match payload.header.mode {
        Mode::Lossless => return payload.decode_lossless(target),
        Mode::Absolute { step } => {
            let lattice = Absolute::with_step(step).ok_or_else(|| damaged("step"))?;
            dequantise(&lattice, &payload.codes(context)?, target);
        }
        Mode::Relative { divisor } => {
            let lattice = T::relative_with(divisor).ok_or_else(|| damaged("step"))?;
            dequantise(&lattice, &payload.codes(context)?, target);
        }
    }
    for pair in payload.exceptions {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| pair[at + i]));
        let place = usize::try_from(word(0)).ok().and_then(|index| target.get_mut(index));
        *place.ok_or_else(|| damaged("exception out of place"))? = T::from_low_bits(word(8));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_from_its_bytes() {
        let prediction = Prediction::Axes(Axes::from_bits(6).unwrap());
        for mode in [Mode::Lossless, Mode::Absolute { step: 2.5e-4 }, Mode::Relative { divisor: 77 }] {
            let header = Header { mode, prediction, width: 4, n: 9, n_exceptions: 2, coded_bytes: 51, ..Header::EMPTY };
            assert_eq!(Header::parse(&header.to_bytes(), ElementType::F64), Ok((header, &[][..])));
            assert!(Header::parse(&header.to_bytes(), ElementType::F32).is_err());
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
