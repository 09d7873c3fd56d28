//! SZ3: interpolation and Lorenzo prediction with entropy coding (Liang et al. 2023,
//! doi:10.1109/TBDATA.2022.3201176). Built with feature `sz3`, which makes the program
//! GPL-3.0-only.
//!
//! Its decoder is not safe on damaged bytes: it may end the process or read and write out of place.
//! Callers verify a payload's checksum before they decode it, as the stores do; unlike with every
//! other codec of this crate, that is a condition here and not a habit.

use recoup_core::{Bound, Codec, CodecError, CodecId, CodecResult, Context, Encoded, Values, ValuesMut};
use sz3::{CompressionAlgorithm, Config, DimensionedData, ErrorBound, SZ3Compressible};

use crate::bytes;
use crate::effective::absolute_only;

/// SZ3 with its default predictors, or its lossless mode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sz3;

impl Codec for Sz3 {
    fn id(&self) -> CodecId {
        CodecId::Sz3
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        let bound = absolute_only(source, bound)?;
        bytes::check_shape(context, source.len())?;
        target.clear();
        if !source.is_empty() {
            match source {
                Values::F64(values) => compress(values, bound, context, target)?,
                Values::F32(values) => compress(values, bound, context, target)?,
                Values::I64(_) | Values::Bytes(_) => {
                    return Err(CodecError::Element { codec: CodecId::Sz3, element: source.element() });
                }
            }
        }
        Ok(Encoded::under(bound))
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        let element = target.as_values().element();
        bytes::check_shape(context, target.as_values().len())?;
        if target.as_values().is_empty() {
            return if source.is_empty() { Ok(()) } else { Err(damaged("bytes where no values are")) };
        }
        match target {
            ValuesMut::F64(values) => decompress(source, context, values),
            ValuesMut::F32(values) => decompress(source, context, values),
            ValuesMut::I64(_) | ValuesMut::Bytes(_) => Err(CodecError::Element { codec: CodecId::Sz3, element }),
        }
    }
}

fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { codec: CodecId::Sz3, what }
}

fn foreign(error: impl ToString) -> CodecError {
    CodecError::Foreign { codec: CodecId::Sz3, message: error.to_string() }
}

/// Extents longer than one value, slowest first, as SZ3 wants them.
fn extents(context: &Context) -> impl Iterator<Item = usize> {
    context.dims.into_iter().rev().filter(|&extent| extent > 1)
}

fn compress<T: SZ3Compressible>(
    values: &[T],
    bound: Bound,
    context: &Context,
    target: &mut Vec<u8>,
) -> CodecResult<()> {
    let config = match bound {
        Bound::Absolute(e) => Config::new(ErrorBound::Absolute(e)),
        _ => Config::new(ErrorBound::Absolute(0.0)).compression_algorithm(CompressionAlgorithm::lossless()),
    };
    let mut builder = DimensionedData::<T, &[T]>::build(&values);
    for extent in extents(context) {
        builder = builder.dim(extent).map_err(foreign)?;
    }
    let data = if values.len() == 1 { builder.dim(1).and_then(|builder| builder.finish()) } else { builder.finish() };
    sz3::compress_into_with_config(&data.map_err(foreign)?, &config, target).map_err(foreign)
}

fn decompress<T: SZ3Compressible>(source: &[u8], context: &Context, target: &mut [T]) -> CodecResult<()> {
    let is_single = target.len() == 1;
    let mut lent = target;
    let mut builder = DimensionedData::<T, &mut [T]>::build_mut(&mut lent);
    for extent in extents(context) {
        builder = builder.dim(extent).map_err(foreign)?;
    }
    let data = if is_single { builder.dim(1).and_then(|builder| builder.finish()) } else { builder.finish() };
    sz3::decompress_into_dimensioned(source, &mut data.map_err(foreign)?)
        .map(|_| ())
        .map_err(|_| damaged("SZ3 refuses the stream"))
}
