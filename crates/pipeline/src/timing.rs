//! What a checkpoint costs on the run's clock: as measured, or by a model of the machine.

use std::time::Duration;

use recoup_core::{CodecId, FrameRecord};

use crate::Spent;

/// Whether time passes by itself or by declared costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Timing {
    /// Costs are what the clock shows.
    Real,
    /// Costs follow from bytes and rates; the run repeats exactly.
    Virtual(VirtualCosts),
}

/// The machine of a virtual run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VirtualCosts {
    /// Time of one iteration.
    pub iteration_seconds: f64,
    /// Time of one product with the operator, of which a verification makes one per try and one
    /// more.
    pub product_seconds: f64,
    /// Copying into the staging buffer.
    pub stage_bytes_per_second: f64,
    /// Encoding, raw bytes per second; raw storage is free.
    pub encode_bytes_per_second: f64,
    /// Decoding, raw bytes per second; raw storage is free.
    pub decode_bytes_per_second: f64,
    /// Writing to and reading from the store.
    pub store_bytes_per_second: f64,
}

impl VirtualCosts {
    /// Time of one checkpoint of `raw_bytes` that became `payload_bytes`, verified by `products`
    /// products with the operator.
    #[must_use]
    pub fn checkpoint(&self, codec: CodecId, raw_bytes: u64, payload_bytes: u64, products: u32) -> Spent {
        Spent {
            stage_seconds: raw_bytes as f64 / self.stage_bytes_per_second,
            wait_seconds: 0.0,
            encode_seconds: coding_seconds(codec, raw_bytes, self.encode_bytes_per_second),
            verify_seconds: f64::from(products) * self.product_seconds,
            write_seconds: payload_bytes as f64 / self.store_bytes_per_second,
        }
    }

    /// Time to read and decode the frames a version is restored from.
    #[must_use]
    pub fn recovery_seconds(&self, frames: &[FrameRecord]) -> f64 {
        let coded = frames.iter().map(|f| (f.codec, f.len * 8));
        let decode: f64 = coded.map(|(codec, bytes)| coding_seconds(codec, bytes, self.decode_bytes_per_second)).sum();
        let payload_bytes: u64 = frames.iter().map(|f| f.payload_bytes).sum();
        payload_bytes as f64 / self.store_bytes_per_second + decode
    }
}

fn coding_seconds(codec: CodecId, raw_bytes: u64, bytes_per_second: f64) -> f64 {
    if codec == CodecId::Raw { 0.0 } else { raw_bytes as f64 / bytes_per_second }
}

/// Seconds since `start`.
pub(crate) fn since(now: Duration, start: Duration) -> f64 {
    now.saturating_sub(start).as_secs_f64()
}
