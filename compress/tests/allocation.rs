//! Damaged payloads never cost more memory than they earned.

use recoup_compress::codec;
use recoup_core::{Bound, Codec, CodecId, Context, Values, ValuesMut};
use recoup_testkit::allocation::{CountingAllocator, peak_of};

#[global_allocator]
static COUNTING: CountingAllocator = CountingAllocator;

/// Copies of target and payload a decoder may hold: zstd's shuffled and plain bytes, pco's codes.
const COPIES: usize = 4;
/// Tables that do not depend on the payload, pco's batches above all. What zstd takes in C is not
/// seen here: it decodes into a buffer of known size, with one context.
const FIXED_BYTES: usize = 1 << 20;

/// One payload and what it decodes to.
struct Sample {
    codec: std::sync::Arc<dyn Codec>,
    bound: Bound,
    context: Context<'static>,
    payload: Vec<u8>,
}

impl Sample {
    /// Encodes a smooth row far from 0, as an absolute bound for all values of a row is as small as
    /// the smallest value's where the bound is pointwise.
    fn new(id: CodecId, bound: Bound) -> Self {
        let values: Vec<f64> = (0..4000).map(|i| 2.0 + (f64::from(i) * 0.01).sin()).collect();
        let codec = codec(id).expect("built");
        let context = Context::flat(values.len());
        let mut payload = Vec::new();
        let encoded = codec.encode(Values::F64(&values), bound, &context, &mut payload).expect("encodes");
        assert!(!encoded.stored_raw, "{id} at {bound}");
        Self { codec, bound: encoded.bound, context, payload }
    }

    /// Decodes `payload`, to values or an error, within the memory it earned.
    fn check(&self, payload: &[u8], target: &mut [f64], damage: &str) {
        let allowed = COPIES * (size_of_val(target) + payload.len()) + FIXED_BYTES;
        let peak = peak_of(|| drop(self.codec.decode(payload, self.bound, &self.context, ValuesMut::F64(target))));
        assert!(peak <= allowed, "{} at {}, {damage}: {peak} bytes, {allowed} allowed", self.codec.id(), self.bound);
    }

    /// Cuts the payload, flips its bits, and overwrites its words.
    fn check_damaged(&self) {
        let mut target = vec![0.0; self.context.dims[0]];
        let n = self.payload.len();
        let step = (n / 500).max(1);
        self.check(&self.payload, &mut target, "undamaged");
        for length in (0..n).step_by(step).chain(0..n.min(300)) {
            self.check(&self.payload[..length], &mut target, &format!("cut to {length} bytes"));
        }
        let mut damaged = self.payload.clone();
        for bit in (0..n * 8).step_by(step * 8 + 1).chain(0..n.min(300) * 8) {
            damaged[bit / 8] ^= 1 << (bit % 8);
            self.check(&damaged, &mut target, &format!("bit {bit} flipped"));
            damaged[bit / 8] ^= 1 << (bit % 8);
        }
        for start in (0..n.min(256)).chain(n.saturating_sub(64)..n) {
            for width in [2, 4, 8] {
                for forged in [u64::MAX, u64::MAX >> 1, 1 << 40, 1 << 31] {
                    let end = n.min(start + width);
                    damaged[start..end].copy_from_slice(&forged.to_le_bytes()[..end - start]);
                    self.check(&damaged, &mut target, &format!("{forged:x} in bytes {start}..{end}"));
                    damaged.copy_from_slice(&self.payload);
                }
            }
        }
    }
}

/// The only test of this program, as another's allocations would be counted too. Lengths lie as far
/// as a word can: every aligned and unaligned word of the first 256 bytes, and of the last 64, is
/// replaced by the largest numbers.
#[test]
fn damaged_payloads_take_no_more_memory_than_they_earned() {
    // SZ3's decoder is the one that may end the process on damaged bytes.
    for id in CodecId::ALL.into_iter().filter(|id| *id != CodecId::Sz3) {
        let bounds: &[Bound] = match id.is_lossy() {
            // It stores frames without a bound raw: there is nothing to decode.
            true if id == CodecId::Pyramid => &[Bound::Absolute(1e-4), Bound::Pointwise(1e-4)],
            true => &[Bound::Lossless, Bound::Absolute(1e-4), Bound::Pointwise(1e-4)],
            false => &[Bound::Lossless],
        };
        bounds.iter().for_each(|&bound| Sample::new(id, bound).check_damaged());
    }
}
