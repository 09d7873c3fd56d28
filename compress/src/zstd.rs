//! zstd after HDF5's byte shuffle: lossless, and readable by any HDF5 with the registered filters
//! (shuffle, 2; zstd, 32015). The payload is one zstd frame with its content size, RFC 8878.

use recoup_core::{Bound, Codec, CodecError, CodecId, Context, Encoded, Filter, Values, ValuesMut};

use crate::shuffle::{shuffle, unshuffle};
use crate::{bytes, effective_bound};

/// zstd's own compression level: solver vectors gain less than a hundredth from higher ones.
const LEVEL: i32 = 1;

/// Byte shuffle and zstd, lossless under every bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Zstd;

impl Codec for Zstd {
    fn id(&self) -> CodecId {
        CodecId::Zstd
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
        let element = source.element().size();
        let mut plain = Vec::new();
        bytes::extend(source, &mut plain);
        let mut shuffled = vec![0; plain.len()];
        shuffle(&plain, element, &mut shuffled);
        target.clear();
        target.resize(zstd::zstd_safe::compress_bound(shuffled.len()), 0);
        let written = zstd::bulk::compress_to_buffer(&shuffled, &mut target[..], LEVEL)
            .map_err(|error| CodecError::Foreign { codec: CodecId::Zstd, message: error.to_string() })?;
        target.truncate(written);
        Ok(Encoded { filters: filters(element), ..Encoded::under(Bound::Lossless) })
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> Result<(), CodecError> {
        let damaged = |what| CodecError::Damaged { codec: CodecId::Zstd, what };
        bytes::check_shape(context, target.as_values().len())?;
        let element = target.as_values().element().size();
        let mut shuffled = vec![0; bytes::size(target.as_values())];
        let read = zstd::bulk::decompress_to_buffer(source, &mut shuffled[..])
            .map_err(|_| damaged("zstd refuses the frame, or it holds too many bytes"))?;
        if read != shuffled.len() {
            return Err(damaged("the frame holds too few bytes"));
        }
        let mut plain = vec![0; shuffled.len()];
        unshuffle(&shuffled, element, &mut plain);
        bytes::fill(&plain, target, CodecId::Zstd)
    }
}

/// Shuffle, where an element has more than one byte, then zstd.
fn filters(element: usize) -> Vec<Filter> {
    let shuffle = (element > 1).then(|| Filter { id: 2, values: vec![element as u32] });
    shuffle.into_iter().chain([Filter { id: 32015, values: vec![LEVEL as u32] }]).collect()
}
