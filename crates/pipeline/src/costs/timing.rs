//! Costs of a checkpoint on the run's clock: as measured, or by a model of the machine.

use std::sync::Arc;
use std::time::Duration;

use recoup_core::{Clock, CodecId, FrameRecord};

use super::outcome::{Saved, Spent};

/// The passing of time: by itself, or by declared costs.
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
    /// Returns the time of one checkpoint of `raw_bytes` that became `payload_bytes`, verified by
    /// `products` products with the operator.
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

    /// Returns the time to read and decode the frames a version is restored from.
    #[must_use]
    pub fn recovery_seconds(&self, frames: &[FrameRecord]) -> f64 {
        let coded = frames.iter().map(|f| (f.codec, f.len * 8));
        let decode: f64 = coded.map(|(codec, bytes)| coding_seconds(codec, bytes, self.decode_bytes_per_second)).sum();
        let payload_bytes: u64 = frames.iter().map(|f| f.payload_bytes).sum();
        payload_bytes as f64 / self.store_bytes_per_second + decode
    }
}

/// The run's clock, and how costs come about on it.
#[derive(Clone)]
pub(crate) struct RunClock {
    clock: Arc<dyn Clock>,
    timing: Timing,
}

impl RunClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, timing: Timing) -> Self {
        Self { clock, timing }
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.now()
    }

    pub(crate) fn seconds_since(&self, start: Duration) -> f64 {
        since(self.now(), start)
    }

    pub(crate) fn sleep_until(&self, instant: Duration) {
        self.clock.sleep_until(instant);
    }

    fn costs(&self) -> Option<VirtualCosts> {
        match self.timing {
            Timing::Real => None,
            Timing::Virtual(costs) => Some(costs),
        }
    }

    /// Returns whether costs are declared, so that the clock stands still until they are charged.
    pub(crate) fn is_virtual(&self) -> bool {
        self.costs().is_some()
    }

    /// Returns how much of a cost the clock has yet to show: nothing of a measured one.
    pub(crate) fn uncharged_seconds(&self, cost_seconds: f64) -> f64 {
        if self.is_virtual() { cost_seconds } else { 0.0 }
    }

    /// Returns the declared time of one iteration.
    pub(crate) fn declared_iteration_seconds(&self) -> Option<f64> {
        self.costs().map(|costs| costs.iteration_seconds)
    }

    /// Returns the storage bandwidth as far as it is known before anything is written: a declared
    /// one always is.
    pub(crate) fn known_bandwidth(&self, given: Option<f64>) -> Option<f64> {
        self.costs().map_or(given, |costs| Some(costs.store_bytes_per_second))
    }

    /// Replaces the measured times of a version by the declared ones.
    pub(crate) fn charge(&self, saved: &mut Saved) {
        if let Some(costs) = self.costs() {
            let products = saved.residual.tries + u32::from(saved.residual.true_norm.is_some());
            saved.spent = costs.checkpoint(saved.plan.codec, saved.raw_bytes, saved.payload_bytes, products);
        }
    }

    /// Returns the time of a recovery that began at `start` and read these frames.
    pub(crate) fn recovery_seconds(&self, start: Duration, frames_read: &[FrameRecord]) -> f64 {
        self.costs().map_or_else(|| self.seconds_since(start), |costs| costs.recovery_seconds(frames_read))
    }
}

fn coding_seconds(codec: CodecId, raw_bytes: u64, bytes_per_second: f64) -> f64 {
    if codec == CodecId::Raw { 0.0 } else { raw_bytes as f64 / bytes_per_second }
}

/// Returns the seconds since `start`.
pub(crate) fn since(now: Duration, start: Duration) -> f64 {
    now.saturating_sub(start).as_secs_f64()
}
