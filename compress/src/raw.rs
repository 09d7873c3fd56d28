//! Raw: the values as they are, little-endian.

use recoup_core::{Bound, Codec, CodecId, CodecResult, Context, Encoded, Values, ValuesMut};

use crate::{bytes, effective_bound};

/// The values as they are, little-endian.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Codec for Raw {
    fn id(&self) -> CodecId {
        CodecId::Raw
    }

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        target.clear();
        bytes::extend(source, target);
        Ok(Encoded::under(Bound::Lossless))
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        bytes::check_shape(context, target.as_values().len())?;
        bytes::fill(source, target, CodecId::Raw)
    }
}
