//! Frames of the host's codec taken apart, so that blocks can be compared one by one.

use recoup_compress::{Qb, QbArrangement};
use recoup_core::{Bound, Codec, Context, ElementType, Encoded, Values};

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
    /// Mode of the lattice.
    pub(crate) mode: u32,
    pub(crate) is_tiled: bool,
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
        let mode = u32::from(payload[7]);
        let blocks = payload[preface..].to_vec();
        Self { mode, is_tiled: predictor > 0, words, blocks, encoded, preface, payload }
    }

    /// The type of the values.
    pub(crate) fn element(&self) -> ElementType {
        if self.payload[6] == 0 { ElementType::F64 } else { ElementType::F32 }
    }

    pub(crate) fn follows(&self) -> bool {
        self.payload[10] & 1 != 0
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

    /// `Parameters` of the kernels: the lattice a header states, as the encoder has it.
    pub(crate) fn parameters(&self) -> Vec<u8> {
        const ABSOLUTE_MAX: f64 = f64::from_bits((1023 + 1021) << 52);
        let header = &self.payload;
        let step = u64_at(header, 24);
        let asked = f64::from_bits(u64_at(header, 16));
        let is_halved = header[10] & 2 != 0;
        let dead_band = if is_halved { asked * (1.0 - 4.0 * f64::EPSILON) } else { -1.0 };
        let infinity: u64 = if header[6] == 0 { 0x7ff << 41 } else { 0xff << 23 };
        let (step, bound, last) = match self.mode {
            0 => (0.0, 0.0, 0),
            1 => (f64::from_bits(step), asked.min(ABSOLUTE_MAX), 0),
            _ => (step as f64, 0.0, (infinity - 1) / step),
        };
        let inverse = if step == 0.0 { 0.0 } else { 1.0 / step };
        let mut bytes: Vec<u8> = [step, inverse, bound].into_iter().flat_map(f64::to_le_bytes).collect();
        bytes.extend(last.to_le_bytes());
        bytes.extend(dead_band.to_le_bytes());
        bytes
    }

    /// `Window` of the kernels: all values of the frame.
    pub(crate) fn window(&self) -> Vec<u8> {
        let header = &self.payload;
        let n = u64_at(header, 32);
        let [x, y, z] = [0, 1, 2].map(|axis| extent(header, axis));
        let mut bytes: Vec<u8> = [n, x as u64, (x * y) as u64].into_iter().flat_map(u64::to_le_bytes).collect();
        let stride = usize::from(header[9]);
        bytes.extend([x, y, z, stride].into_iter().flat_map(|number| (number as u32).to_le_bytes()));
        let is_fitted = header[8] == 2;
        match is_fitted {
            true => bytes.extend_from_slice(&header[self.preface - WEIGHTS..self.preface]),
            false => bytes.extend([0; WEIGHTS]),
        }
        bytes.extend(u32::from(is_fitted).to_le_bytes());
        bytes
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn extent(header: &[u8], axis: usize) -> usize {
    u64_at(header, 40 + 4 * axis) as u32 as usize
}
