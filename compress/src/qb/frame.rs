//! A frame as bytes: header, table of blocks, blocks. FORMAT.md states every byte.
//!
//! | byte | field |
//! |---|---|
//! | 0 | magic `RCQB` |
//! | 4 | version u16: 1, or 2 with predictor 2 |
//! | 6 | dtype u8: 0 f64, 1 f32 |
//! | 7 | mode u8: 0 lossless, 1 absolute, 2 pointwise relative |
//! | 8 | predictor u8: 0 line, 1 tiles, 2 tiles with fitted weights |
//! | 9 | stride u8, 1 to 8 |
//! | 10 | flags u8: 1 coded against a parent, 2 half step |
//! | 11 | zero |
//! | 12 | CRC-32C of header and table, this field being zero |
//! | 16 | bound f64 |
//! | 24 | step: f64 (absolute), u64 (relative), 0 (lossless) |
//! | 32 | n u64 |
//! | 40 | dims 3 x u32, fastest first; zeros for a line |
//! | 52 | zeros |
//! | 56 | hash of the parent's payload, 16 bytes; zeros without |
//! | 72 | bytes of the frame u64 |
//! | 80 | zeros |
//! | 96 | table: words u32, CRC-32C u32 of each block; with predictor 2 the weights behind it |

use recoup_core::{CodecError, CodecId, CodecResult};

use super::fitted::{WEIGHTS, Weights};
use super::mode::{ABSOLUTE, FrameMode, StoredMode};
use super::shape::FrameShape;
use crate::scalar::Scalar;

pub(super) const HEADER: usize = 96;
/// Bytes of a block's line in the table.
pub(super) const ENTRY: usize = 8;
/// Place of the number of the values' type.
pub(super) const DTYPE: usize = 6;
/// The first bytes of each frame.
pub(crate) const MAGIC: [u8; 4] = *b"RCQB";
const VERSION: u16 = 1;
const VERSION_FITTED: u16 = 2;
const CHECKSUM: usize = 12;
/// Numbers of the predictors.
const LINE: u8 = 0;
const TILES: u8 = 1;
const FITTED: u8 = 2;
/// The largest stride.
pub(super) const STRIDES: usize = 8;

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FrameHeader {
    pub(super) mode: FrameMode,
    pub(super) shape: FrameShape,
    pub(super) bound: f64,
    /// The step is half of what the bound allows.
    pub(super) is_halved: bool,
    /// Hash of the parent's payload.
    pub(super) parent: Option<[u8; 16]>,
}

/// One block's line in the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlockEntry {
    pub(super) words: u32,
    pub(super) crc32c: u32,
}

impl FrameHeader {
    /// Writes header and table over the first bytes of `frame`, which is complete but for them.
    pub(super) fn write<T: Scalar>(&self, table: &[BlockEntry], frame: &mut [u8]) {
        let StoredMode { mode, step } = self.mode.to_stored();
        let (predictor, stride, dims) = match self.shape {
            FrameShape::Line { stride, .. } => (LINE, stride as u8, [0; 3]),
            FrameShape::Tiles { dims, fitted } => {
                let predictor = if fitted.is_some() { FITTED } else { TILES };
                (predictor, 1, dims.map(|extent| extent as u32))
            }
        };
        let bytes = frame.len() as u64;
        let mut fields = HeaderWriter { frame, at: 0 };
        fields.put(MAGIC);
        fields.put(if predictor == FITTED { VERSION_FITTED } else { VERSION }.to_le_bytes());
        let flags = u8::from(self.parent.is_some()) | u8::from(self.is_halved) << 1;
        fields.put([T::DTYPE, mode, predictor, stride, flags, 0, 0, 0, 0, 0]);
        fields.put(self.bound.to_le_bytes());
        fields.put(step.to_le_bytes());
        fields.put((self.shape.values() as u64).to_le_bytes());
        dims.iter().for_each(|extent| fields.put(extent.to_le_bytes()));
        fields.put([0; 4]);
        fields.put(self.parent.unwrap_or_default());
        fields.put(bytes.to_le_bytes());
        fields.put([0; 16]);
        for entry in table {
            fields.put(entry.words.to_le_bytes());
            fields.put(entry.crc32c.to_le_bytes());
        }
        if let FrameShape::Tiles { fitted: Some(weights), .. } = self.shape {
            fields.put(weights.to_bytes());
        }
        let end = fields.at;
        let checksum = crc32c::crc32c(&frame[..end]);
        frame[CHECKSUM..CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
    }

    /// Reads header and table of a frame of values of type `T`; the table's words add up to the
    /// rest of it.
    pub(super) fn parse<T: Scalar>(frame: &[u8]) -> CodecResult<(Self, Vec<BlockEntry>)> {
        let header = frame.first_chunk::<HEADER>().ok_or_else(|| damaged("shorter than its header"))?;
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| header[at + i]));
        if header[..4] != MAGIC {
            return Err(damaged("no QB frame"));
        }
        let version = u16::from_le_bytes([header[4], header[5]]);
        if !(VERSION..=VERSION_FITTED).contains(&version) {
            return Err(damaged("a version of QB this build does not know"));
        }
        let are_zero = header[11] == 0 && u32_at(52) == 0 && header[80..].iter().all(|byte| *byte == 0);
        let [dtype, mode, predictor, stride, flags] = std::array::from_fn(|i| header[6 + i]);
        let is_fitted = predictor == FITTED;
        let fits = is_fitted == (version == VERSION_FITTED) && (mode == ABSOLUTE || !is_fitted);
        if dtype != T::DTYPE || !are_zero || !fits || flags > 3 || u64_at(72) != frame.len() as u64 {
            return Err(damaged("header does not fit"));
        }
        let stored = StoredMode { mode, step: u64_at(24) };
        let mode = FrameMode::from_stored::<T>(stored).ok_or_else(|| damaged("no mode and step of QB"))?;
        let dims = [40, 44, 48].map(|at| u32_at(at) as usize);
        let mut shape = shape(predictor, u64_at(32), dims, stride).ok_or_else(|| damaged("no shape of QB"))?;
        let hash: [u8; 16] = std::array::from_fn(|i| header[56 + i]);
        let parent = (flags & 1 != 0).then_some(hash);
        if parent.is_none() && hash != [0; 16] {
            return Err(damaged("header does not fit"));
        }
        let (table, weights) = table(frame, shape.blocks(), is_fitted, u32_at(CHECKSUM))?;
        if let FrameShape::Tiles { fitted, .. } = &mut shape {
            *fitted = weights;
        }
        let bound = f64::from_bits(u64_at(16));
        Ok((Self { mode, shape, bound, is_halved: flags & 2 != 0, parent }, table))
    }
}

/// The shape in a header; `None` for one no encoder writes.
fn shape(predictor: u8, n: u64, dims: [usize; 3], stride: u8) -> Option<FrameShape> {
    let n = usize::try_from(n).ok()?;
    let stride = usize::from(stride);
    match predictor {
        LINE if dims == [0; 3] && (1..=STRIDES).contains(&stride) => Some(FrameShape::Line { n, stride }),
        TILES | FITTED if stride == 1 => {
            let product = dims.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent))?;
            (product == n && n > 0).then_some(FrameShape::Tiles { dims, fitted: None })
        }
        _ => None,
    }
}

/// Bytes of a frame before its blocks.
pub(super) fn preface(shape: FrameShape) -> usize {
    let is_fitted = matches!(shape, FrameShape::Tiles { fitted: Some(_), .. });
    HEADER + shape.blocks() * ENTRY + if is_fitted { WEIGHTS } else { 0 }
}

/// The table and the weights behind it, its checksum and its sum checked. Its length comes from the
/// frame's, so no header makes it larger.
fn table(
    frame: &[u8],
    blocks: usize,
    is_fitted: bool,
    checksum: u32,
) -> CodecResult<(Vec<BlockEntry>, Option<Weights>)> {
    let preface = if is_fitted { HEADER + WEIGHTS } else { HEADER };
    let end = blocks.checked_mul(ENTRY).and_then(|bytes| bytes.checked_add(preface));
    let head = end.and_then(|end| frame.get(..end)).ok_or_else(|| damaged("shorter than its table"))?;
    let sum = crc32c::crc32c(&head[..CHECKSUM]);
    let sum = crc32c::crc32c_append(sum, &[0; 4]);
    if crc32c::crc32c_append(sum, &head[CHECKSUM + 4..]) != checksum {
        return Err(damaged("checksum of header and table"));
    }
    let (table, weights) = head[HEADER..].split_at(blocks * ENTRY);
    let entries = table.as_chunks::<ENTRY>().0.iter().map(|line| {
        let [a, b, c, d, e, f, g, h] = *line;
        BlockEntry { words: u32::from_le_bytes([a, b, c, d]), crc32c: u32::from_le_bytes([e, f, g, h]) }
    });
    let entries: Vec<BlockEntry> = entries.collect();
    let bytes: u64 = entries.iter().map(|entry| u64::from(entry.words) * 4).sum();
    if bytes != (frame.len() - head.len()) as u64 {
        return Err(damaged("table does not add up"));
    }
    if !is_fitted {
        return Ok((entries, None));
    }
    let weights = weights.first_chunk().and_then(Weights::from_bytes);
    weights.map(|weights| (entries, Some(weights))).ok_or_else(|| damaged("weights"))
}

pub(super) fn damaged(what: &'static str) -> CodecError {
    CodecError::Damaged { codec: CodecId::Qb, what }
}

/// Writes fields one after the other.
struct HeaderWriter<'a> {
    frame: &'a mut [u8],
    at: usize,
}

impl HeaderWriter<'_> {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.frame[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }
}
