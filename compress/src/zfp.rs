//! zfp: blocks of four values per axis, transformed and cut at the bound's bit plane (Lindstrom
//! 2014, doi:10.1109/TVCG.2014.2346458; Diffenderfer et al. 2019, doi:10.1137/18M1168832).
//!
//! Accuracy mode under a bound, reversible mode without one. The payload is the bare stream that
//! the registered HDF5 filter 32013 opens; its header travels in the filter's client data, and our
//! decoder makes the same parameters from the bound. zfp rounds the bound down to a power of two
//! and keeps it, but knows no NaN or infinity: the wrapper stores such frames raw. Under an
//! absolute bound every frame goes through the same filter, whatever its values, so that one
//! dataset holds them all.

use recoup_core::{Bound, Codec, CodecError, CodecId, CodecResult, Context, Encoded, Filter, Values, ValuesMut};
use zfp_rs::{ZfpBitStream, ZfpConfig, ZfpField, ZfpFieldMut, ZfpHeaderMask, ZfpScalarType};

use crate::effective::absolute_only;
use crate::{bytes, effective_bound};

/// Registered HDF5 filter number.
const FILTER: u32 = 32013;
/// First word of the filter's client data: zfp 1.0.1, stream version 5, filter plugin 1.1.0.
const FILTER_VERSION: u32 = 0x1010_5110;
/// Bytes reserved for a header: the longest has 148 bits.
const HEADER_BYTES_MAX: usize = 32;

/// zfp, accuracy or reversible mode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Zfp;

impl Codec for Zfp {
    fn id(&self) -> CodecId {
        CodecId::Zfp
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let bound = coded_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        target.clear();
        let extents = extents(context);
        let (field, scalar) = match source {
            Values::F64(values) => (ZfpField::new(values, extents), ZfpScalarType::F64),
            Values::F32(values) => (ZfpField::new(values, extents), ZfpScalarType::F32),
            Values::I64(_) | Values::Bytes(_) => {
                return Err(CodecError::Element { codec: CodecId::Zfp, element: source.element() });
            }
        };
        let mut filters = Vec::new();
        if !source.is_empty() {
            let field = field.map_err(foreign)?;
            let config = config(bound);
            let largest = config.maximum_size(scalar, field.dims()).ok_or_else(|| foreign("too many values"))?;
            let mut stream = ZfpBitStream::new(largest).map_err(foreign)?;
            stream.compress(&config, &field).map_err(foreign)?;
            target.extend_from_slice(stream.as_bytes());
            filters.extend(filter(&config, &field));
        }
        Ok(Encoded { filters, ..Encoded::under(bound) })
    }

    fn decode(&self, source: &[u8], bound: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        let element = target.as_values().element();
        bytes::check_shape(context, target.as_values().len())?;
        if target.as_values().is_empty() {
            return if source.is_empty() { Ok(()) } else { Err(damaged("bytes where no values are")) };
        }
        let field = match target {
            ValuesMut::F64(values) => ZfpFieldMut::new(values, extents(context)),
            ValuesMut::F32(values) => ZfpFieldMut::new(values, extents(context)),
            ValuesMut::I64(_) | ValuesMut::Bytes(_) => {
                return Err(CodecError::Element { codec: CodecId::Zfp, element });
            }
        };
        let mut stream = ZfpBitStream::from_bytes(source).map_err(foreign)?;
        stream
            .decompress(&config(bound), &mut field.map_err(foreign)?)
            .map_err(|_| damaged("zfp refuses the stream"))?;
        if stream.read_pos().div_ceil(64) * 8 == source.len() as u64 {
            Ok(())
        } else {
            Err(damaged("the stream ends elsewhere"))
        }
    }
}

fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { codec: CodecId::Zfp, what }
}

fn foreign(error: impl ToString) -> CodecError {
    CodecError::Foreign { codec: CodecId::Zfp, message: error.to_string() }
}

/// The bound the stream is coded under. An absolute bound stays as it is even where exact storage
/// would do as well or better: in frames of zeros, of NaN or of values too large for it.
fn coded_bound(source: Values<'_>, bound: Bound) -> CodecResult<Bound> {
    match effective_bound(source, bound)? {
        Bound::Absolute(e) if e > f64::MIN_POSITIVE => Ok(Bound::Absolute(e)),
        bound => absolute_only(source, bound),
    }
}

/// Reversible where exact storage is asked for, else accuracy.
fn config(bound: Bound) -> ZfpConfig {
    match bound {
        Bound::Absolute(e) if e > 0.0 => ZfpConfig::fixed_accuracy(e),
        _ => ZfpConfig::reversible(),
    }
}

/// Extents fastest first, as zfp wants them: 0 beyond the last axis longer than one value.
fn extents(context: &Context) -> [usize; 4] {
    let [x, y, z] = context.dims;
    match (y, z) {
        (1, 1) => [x, 0, 0, 0],
        (_, 1) => [x, y, 0, 0],
        _ => [x, y, z, 0],
    }
}

/// The filter that opens the stream: its version, then the full zfp header in words.
fn filter(config: &ZfpConfig, field: &ZfpField<'_>) -> Option<Filter> {
    let mut stream = ZfpBitStream::new(HEADER_BYTES_MAX).ok()?;
    let bits = stream.write_header(config, &field.metadata(), ZfpHeaderMask::FULL).ok()?;
    stream.flush();
    let words = stream.as_bytes().as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
    Some(Filter { id: FILTER, values: [FILTER_VERSION].into_iter().chain(words.take(bits.div_ceil(32))).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verified;

    #[test]
    fn the_filter_carries_a_header_of_three_words() {
        let mut target = Vec::new();
        let context = Context::grid([4, 4, 4]);
        for bound in [Bound::Lossless, Bound::Absolute(1e-3)] {
            let values: Vec<f64> = (0..64).map(|i| f64::from(i).sin()).collect();
            let encoded = Zfp.encode(Values::F64(&values), bound, &context, &mut target).unwrap();
            let [Filter { id: FILTER, values }] = &encoded.filters[..] else { unreachable!("{encoded:?}") };
            // The header begins with the magic "zfp" and the stream version.
            assert_eq!((values.len(), values[0], values[1].to_le_bytes()), (4, FILTER_VERSION, *b"zfp\x05"));
        }
    }

    /// A frame of zeros or of NaN used to bring another filter than its neighbours, and the store
    /// then kept the whole variable where no HDF5 reader saw its values.
    #[test]
    fn under_an_absolute_bound_every_frame_has_the_same_filter() {
        let codec = Verified::new(Zfp);
        let context = Context::flat(64);
        let bound = Bound::Absolute(1e-3);
        let smooth: Vec<f64> = (0..64).map(|i| f64::from(i).sin()).collect();
        let with = |value| smooth.iter().copied().take(63).chain([value]).collect::<Vec<f64>>();
        let encode = |values: &[f64]| codec.encode(Values::F64(values), bound, &context, &mut Vec::new()).unwrap();
        let plain = encode(&smooth);
        assert!(!plain.stored_raw && !plain.filters.is_empty());
        let huge = smooth.iter().map(|x| 1e300 * x).collect();
        let frames = [vec![0.0; 64], vec![-0.0; 64], vec![f64::NAN; 64], huge, with(f64::NAN), with(f64::INFINITY)];
        for values in frames {
            assert_eq!(encode(&values).filters, plain.filters, "{values:?}");
        }
    }
}
