//! Frames of the host's codec taken apart, so that blocks can be compared one by one.

use recoup_compress::{Qb, QbArrangement};
use recoup_core::{Bound, Codec, Context, Encoded, Values};

const HEADER: usize = 96;
const ENTRY: usize = 8;
/// Bytes of the weights of fitted tiles, with zeros to a whole word.
const WEIGHTS: usize = 36;
/// Extent of a tile.
const EDGE: usize = 16;

/// A frame, and the parts of it.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) payload: Vec<u8>,
    pub(crate) encoded: Encoded,
    pub(crate) words: Vec<u32>,
    pub(crate) blocks: Vec<u8>,
    /// Bytes of header, table and weights.
    preface: usize,
}

/// `n` values with `stride` interleaved unknowns.
pub(crate) fn context(n: usize, stride: usize) -> Context<'static> {
    Context { stride, ..Context::flat(n) }
}

impl Frame {
    /// The frame that the host's codec makes of a line; `None` where it stores the values raw.
    pub(crate) fn of(values: Values<'_>, bound: Bound, stride: usize) -> Option<Self> {
        Self::arranged(values, bound, &context(values.len(), stride), QbArrangement::default())
    }

    /// The frame that the host's codec makes of `values` in an arrangement; `None` where it stores
    /// them raw.
    pub(crate) fn arranged(
        values: Values<'_>,
        bound: Bound,
        context: &Context<'_>,
        arrangement: QbArrangement,
    ) -> Option<Self> {
        let mut payload = Vec::new();
        let codec = Qb::default().with_arrangement(arrangement);
        let encoded = codec.encode(values, bound, context, &mut payload).expect("the host encodes everything");
        (!encoded.stored_raw).then(|| Self::parse(payload, encoded))
    }

    fn parse(payload: Vec<u8>, encoded: Encoded) -> Self {
        let n = u64_at(&payload, 32) as usize;
        let predictor = payload[8];
        let tiles: usize = (0..3).map(|axis| extent(&payload, axis).div_ceil(EDGE)).product();
        let blocks = if predictor == 0 { n.div_ceil(super::corpus::BLOCK) } else { tiles };
        let words = (0..blocks).map(|b| u64_at(&payload, HEADER + b * ENTRY) as u32).collect();
        let preface = HEADER + blocks * ENTRY + if predictor == 2 { WEIGHTS } else { 0 };
        let blocks = payload[preface..].to_vec();
        Self { words, blocks, encoded, preface, payload }
    }

    /// The frame with other bytes in its blocks, and checksums that hold.
    pub(crate) fn with_blocks(&self, blocks: &[u8]) -> Vec<u8> {
        let mut payload = self.payload.clone();
        payload[self.preface..].copy_from_slice(blocks);
        let mut start = 0;
        for (b, words) in self.words.iter().enumerate() {
            let end = start + *words as usize * 4;
            let checksum = crc32c::crc32c(&blocks[start..end]).to_le_bytes();
            payload[HEADER + b * ENTRY + 4..][..4].copy_from_slice(&checksum);
            start = end;
        }
        payload[12..16].fill(0);
        let checksum = crc32c::crc32c(&payload[..self.preface]).to_le_bytes();
        payload[12..16].copy_from_slice(&checksum);
        payload
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn extent(header: &[u8], axis: usize) -> usize {
    u64_at(header, 40 + 4 * axis) as u32 as usize
}
