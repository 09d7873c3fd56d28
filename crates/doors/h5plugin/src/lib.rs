//! The HDF5 filter plugin that opens datasets of QB and pyramid in every HDF5 program.
//!
//! HDF5 finds the library in a folder of `HDF5_PLUGIN_PATH` when it meets filter
//! [`recoup_compress::QB_FILTER`]. It asks the library for a class record and passes it one chunk
//! at a time; `sys` has these calls. It links no libhdf5, so one library serves every release from
//! 1.8.11 on, whoever loads it.
//!
//! Promises: never a panic across the border, never more memory than a frame has a table for. It
//! decodes only, and frames that stand alone only: a frame coded against a parent needs another
//! version's file, which a filter does not get to see; `recoup export` does. Must not know:
//! versions, stores, manifests.
#![deny(clippy::print_stderr, clippy::print_stdout)]

use std::fmt;

use recoup_compress::{Pyramid, PyramidContents, Qb, QbContents};
use recoup_core::{Bound, Codec, CodecError, Context, ElementType, ValuesMut};

mod sys;

/// A reason why a chunk was not opened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FilterRefusal {
    /// HDF5 asked for a chunk to be encoded.
    Encoding,
    /// The frame was coded against a parent.
    Follows,
    /// The frame cannot be decoded.
    Codec(CodecError),
    /// There is no memory for the values.
    Memory {
        /// Their size.
        bytes: usize,
    },
}

impl fmt::Display for FilterRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Encoding => f.write_str("this plugin only reads; versions are written by recoup itself"),
            Self::Follows => f.write_str(
                "this frame was coded against the version before, which a filter cannot see: \
                 `recoup export` writes the version as plain HDF5",
            ),
            Self::Codec(error) => error.fmt(f),
            Self::Memory { bytes } => write!(f, "no memory for a chunk of {bytes} bytes"),
        }
    }
}

impl std::error::Error for FilterRefusal {}

/// A frame of one of the codecs, by its own header.
struct ChunkContents {
    codec: Box<dyn Codec>,
    element: ElementType,
    context: Context<'static>,
}

impl ChunkContents {
    fn of(frame: &[u8]) -> Result<Self, FilterRefusal> {
        let of_pyramid = if frame.starts_with(b"RCPY") { PyramidContents::of(frame) } else { Ok(None) };
        if let Some(PyramidContents { element, dims, stride }) = of_pyramid.map_err(FilterRefusal::Codec)? {
            let context = Context { stride, ..Context::grid(dims) };
            return Ok(Self { codec: Box::new(Pyramid::default()), element, context });
        }
        let contents = QbContents::of(frame).map_err(FilterRefusal::Codec)?;
        if contents.follows {
            return Err(FilterRefusal::Follows);
        }
        let context = Context::flat(contents.len);
        Ok(Self { codec: Box::new(Qb::default()), element: contents.element, context })
    }

    fn len(&self) -> usize {
        self.context.dims.iter().product()
    }
}

/// Bytes the values of a frame take.
///
/// # Errors
/// [`FilterRefusal::Follows`] for a frame that does not stand alone, [`FilterRefusal::Codec`] for
/// one with a damaged header.
pub fn decoded_bytes(frame: &[u8]) -> Result<usize, FilterRefusal> {
    let contents = ChunkContents::of(frame)?;
    // An encoder writes places of values as u32, so this is far below the largest number.
    Ok(contents.len() * if contents.element == ElementType::F32 { size_of::<f32>() } else { size_of::<f64>() })
}

/// Fills `target`, as long as [`decoded_bytes`] says, with the values of a frame, little-endian.
///
/// # Errors
/// As [`decoded_bytes`]; [`FilterRefusal::Codec`] names damaged blocks too.
pub fn decode(frame: &[u8], target: &mut [u8]) -> Result<(), FilterRefusal> {
    let contents = ChunkContents::of(frame)?;
    let len = contents.len();
    let fill =
        |values| contents.codec.decode(frame, Bound::Lossless, &contents.context, values).map_err(FilterRefusal::Codec);
    if contents.element == ElementType::F32 {
        let mut values = vec![0.0f32; len];
        fill(ValuesMut::F32(&mut values))?;
        target.as_chunks_mut().0.iter_mut().zip(values).for_each(|(bytes, x)| *bytes = x.to_le_bytes());
    } else {
        let mut values = vec![0.0f64; len];
        fill(ValuesMut::F64(&mut values))?;
        target.as_chunks_mut().0.iter_mut().zip(values).for_each(|(bytes, x)| *bytes = x.to_le_bytes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use recoup_core::{Chain, Parent, Values};

    use super::*;

    fn encoded(values: Values<'_>, context: &Context) -> Vec<u8> {
        let mut frame = Vec::new();
        let encoded = Qb::default().encode(values, Bound::Absolute(1e-3), context, &mut frame).unwrap();
        assert!(!encoded.stored_raw);
        frame
    }

    fn ramp(n: i16) -> Vec<f64> {
        (0..n).map(|i| f64::from(i) / 64.0).collect()
    }

    #[test]
    fn chunk_of_each_type_comes_back_as_bytes() {
        let doubles = ramp(9000);
        let singles: Vec<f32> = doubles.iter().map(|x| *x as f32).collect();
        for (values, width) in [(Values::F64(&doubles), 8), (Values::F32(&singles), 4)] {
            let frame = encoded(values, &Context::flat(9000));
            let bytes = decoded_bytes(&frame).unwrap();
            assert_eq!(bytes, 9000 * width);
            let mut target = vec![0; bytes];
            decode(&frame, &mut target).unwrap();
            for (i, x) in doubles.iter().enumerate() {
                let bytes = &target[i * width..][..width];
                let found = match width {
                    8 => f64::from_le_bytes(bytes.try_into().unwrap()),
                    _ => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
                };
                assert!((found - x).abs() <= 1e-3, "{i}");
            }
        }
    }

    #[test]
    fn interleaved_grid_of_pyramid_comes_back_as_bytes() {
        let values = ramp(9000);
        let context = Context { stride: 3, ..Context::grid([90, 20, 5]) };
        let mut frame = Vec::new();
        let bound = Bound::Absolute(1e-3);
        assert!(!Pyramid::default().encode(Values::F64(&values), bound, &context, &mut frame).unwrap().stored_raw);
        let mut target = vec![0; decoded_bytes(&frame).unwrap()];
        assert_eq!(target.len(), 9000 * 8);
        decode(&frame, &mut target).unwrap();
        for (x, bytes) in values.iter().zip(target.as_chunks().0) {
            assert!((f64::from_le_bytes(*bytes) - x).abs() <= 1e-3, "{x}");
        }
        frame[20] ^= 1;
        assert!(decoded_bytes(&frame).is_err());
    }

    #[test]
    fn frame_coded_against_a_parent_is_refused_by_a_message_that_names_export() {
        let values = ramp(5000);
        let start = encoded(Values::F64(&values), &Context::flat(5000).chained(Chain::Start));
        let hash = *blake3::hash(&start).as_bytes().first_chunk().unwrap();
        let chain = Chain::Follow(Parent { values: Values::F64(&values), hash });
        let frame = encoded(Values::F64(&values), &Context::flat(5000).chained(chain));
        let refusal = decoded_bytes(&frame).unwrap_err();
        assert_eq!(refusal, FilterRefusal::Follows);
        assert!(refusal.to_string().contains("recoup export"));
    }

    #[test]
    fn damaged_frame_is_refused() {
        let mut frame = encoded(Values::F64(&ramp(5000)), &Context::flat(5000));
        let bytes = decoded_bytes(&frame).unwrap();
        *frame.last_mut().unwrap() ^= 1;
        assert!(matches!(decode(&frame, &mut vec![0; bytes]), Err(FilterRefusal::Codec(CodecError::Blocks { .. }))));
        assert!(decoded_bytes(&frame[..50]).is_err());
        frame[40] ^= 1;
        assert!(decoded_bytes(&frame).is_err());
    }
}
