//! Frames of the host's codec taken apart, so that blocks can be compared one by one.

use recoup_compress::Qb;
use recoup_core::{Bound, Codec, Context, Encoded, Values};

const HEADER: usize = 96;
const ENTRY: usize = 8;

/// The lattice of a frame, as a device takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLattice {
    pub(crate) mode: u32,
    pub(crate) step: f64,
    pub(crate) inverse: f64,
    pub(crate) bound: f64,
    pub(crate) last: i64,
}

/// A frame, and the parts of it.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) payload: Vec<u8>,
    pub(crate) encoded: Encoded,
    pub(crate) lattice: DeviceLattice,
    pub(crate) words: Vec<u32>,
    pub(crate) blocks: Vec<u8>,
}

/// `n` values with `stride` interleaved unknowns.
pub(crate) fn context(n: usize, stride: usize) -> Context<'static> {
    Context { stride, ..Context::flat(n) }
}

impl Frame {
    /// The frame that the host's codec makes of `values`; `None` where it stores them raw.
    pub(crate) fn of(values: Values<'_>, bound: Bound, stride: usize) -> Option<Self> {
        let mut payload = Vec::new();
        let encoded = Qb::default().encode(values, bound, &context(values.len(), stride), &mut payload);
        let encoded = encoded.expect("the host encodes everything");
        (!encoded.stored_raw).then(|| Self::parse(payload, encoded))
    }

    fn parse(payload: Vec<u8>, encoded: Encoded) -> Self {
        let n = u64_at(&payload, 32) as usize;
        let blocks = n.div_ceil(super::corpus::BLOCK);
        let words = (0..blocks).map(|b| u64_at(&payload, HEADER + b * ENTRY) as u32).collect();
        let blocks = payload[HEADER + blocks * ENTRY..].to_vec();
        Self { lattice: lattice(&payload), words, blocks, encoded, payload }
    }

    /// The frame with other bytes in its blocks, and checksums that hold.
    pub(crate) fn with_blocks(&self, blocks: &[u8]) -> Vec<u8> {
        let mut payload = self.payload.clone();
        let table = self.words.len() * ENTRY;
        payload[HEADER + table..].copy_from_slice(blocks);
        let mut start = 0;
        for (b, words) in self.words.iter().enumerate() {
            let end = start + *words as usize * 4;
            let checksum = crc32c::crc32c(&blocks[start..end]).to_le_bytes();
            payload[HEADER + b * ENTRY + 4..][..4].copy_from_slice(&checksum);
            start = end;
        }
        payload[12..16].fill(0);
        let checksum = crc32c::crc32c(&payload[..HEADER + table]).to_le_bytes();
        payload[12..16].copy_from_slice(&checksum);
        payload
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The lattice a header states, as the encoder has it.
fn lattice(header: &[u8]) -> DeviceLattice {
    const ABSOLUTE_MAX: f64 = f64::from_bits((1023 + 1021) << 52);
    let is_wide = header[6] == 0;
    let mode = u32::from(header[7]);
    let step = u64_at(header, 24);
    let bound = f64::from_bits(u64_at(header, 16)).min(ABSOLUTE_MAX);
    match mode {
        0 => DeviceLattice { mode, step: 0.0, inverse: 0.0, bound: 0.0, last: 0 },
        1 => DeviceLattice { mode, step: f64::from_bits(step), inverse: 1.0 / f64::from_bits(step), bound, last: 0 },
        _ => {
            let infinity: u64 = if is_wide { 0x7ff << 41 } else { 0xff << 23 };
            let last = ((infinity - 1) / step) as i64;
            DeviceLattice { mode, step: step as f64, inverse: 1.0 / step as f64, bound, last }
        }
    }
}
