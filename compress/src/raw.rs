//! Raw: the values as they are, little-endian.

use recoup_core::{Bound, Codec, CodecError, CodecId, Context, Encoded, Values, ValuesMut};

use crate::{bytes, effective_bound};

/// The values as they are, little-endian.
#[derive(Clone, Copy, Debug, Default)]
pub struct Raw;

impl Codec for Raw {
    fn id(&self) -> CodecId {
        CodecId::Raw
    }

    fn is_lossy(&self) -> bool {
        false
    }

    fn encode(
        &self,
        source: Values<'_>,
        bound: Bound,
        context: &Context,
        target: &mut Vec<u8>,
    ) -> Result<Encoded, CodecError> {
        effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        target.clear();
        bytes::extend(source, target);
        Ok(Encoded::under(Bound::Lossless))
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> Result<(), CodecError> {
        bytes::check_shape(context, target.as_values().len())?;
        bytes::fill(source, target, CodecId::Raw)
    }
}
