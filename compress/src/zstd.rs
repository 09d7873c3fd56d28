//! zstd after HDF5's byte shuffle: lossless, and readable by any HDF5 with the registered filters
//! (shuffle, 2; zstd, 32015). The payload is one zstd frame with its content size, RFC 8878.

use recoup_core::{Bound, Codec, CodecError, CodecId, CodecResult, Context, Encoded, Filter, Values, ValuesMut};

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

    fn encode(&self, source: Values<'_>, bound: Bound, context: &Context, target: &mut Vec<u8>) -> CodecResult {
        effective_bound(source, bound)?;
        bytes::check_shape(context, source.len())?;
        let element = source.element().size();
        let mut plain = Vec::new();
        bytes::extend(source, &mut plain);
        compress(&plain, element, target)?;
        Ok(Encoded { filters: filters(element), ..Encoded::under(Bound::Lossless) })
    }

    fn decode(&self, source: &[u8], _: Bound, context: &Context, target: ValuesMut<'_>) -> CodecResult<()> {
        let damaged = |what| CodecError::Damaged { codec: CodecId::Zstd, what };
        bytes::check_shape(context, target.as_values().len())?;
        let element = target.as_values().element().size();
        let plain = unpacked(source, bytes::size(target.as_values()), element)
            .ok_or(damaged("zstd refuses the frame, or it holds too few or too many bytes"))?;
        bytes::fill(&plain, target, CodecId::Zstd)
    }
}

/// Compresses the shuffled bytes of elements into `target`.
fn compress(plain: &[u8], element: usize, target: &mut Vec<u8>) -> CodecResult<()> {
    let mut shuffled = vec![0; plain.len()];
    shuffle(plain, element, &mut shuffled);
    target.clear();
    target.resize(zstd::zstd_safe::compress_bound(shuffled.len()), 0);
    let written = zstd::bulk::compress_to_buffer(&shuffled, &mut target[..], LEVEL)
        .map_err(|error| CodecError::Foreign { codec: CodecId::Zstd, message: error.to_string() })?;
    target.truncate(written);
    Ok(())
}

/// Compresses the bytes of elements; `None` where that takes no fewer bytes, or does not come back.
///
/// # Errors
/// [`CodecError::Foreign`] when zstd refuses.
pub(crate) fn packed(plain: &[u8], element: usize) -> Result<Option<Vec<u8>>, CodecError> {
    let mut packed = Vec::new();
    compress(plain, element, &mut packed)?;
    let pays = packed.len() < plain.len();
    Ok((pays && unpacked(&packed, plain.len(), element).is_some_and(|back| back == plain)).then_some(packed))
}

/// Returns the bytes of elements that were compressed; `None` unless there are exactly this many.
pub(crate) fn unpacked(source: &[u8], plain_bytes: usize, element: usize) -> Option<Vec<u8>> {
    let mut shuffled = vec![0; plain_bytes];
    let read = zstd::bulk::decompress_to_buffer(source, &mut shuffled[..]).ok()?;
    let mut plain = vec![0; plain_bytes];
    unshuffle(&shuffled, element, &mut plain);
    (read == plain_bytes).then_some(plain)
}

/// Shuffle, where an element has more than one byte, then zstd.
fn filters(element: usize) -> Vec<Filter> {
    let shuffle = (element > 1).then(|| Filter { id: 2, values: vec![element as u32] });
    shuffle.into_iter().chain([Filter { id: 32015, values: vec![LEVEL as u32] }]).collect()
}
