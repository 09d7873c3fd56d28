//! The machine of a run: its clock, and in virtual time what everything costs on it.
//!
//! Costs are given, or measured once on the problem itself and reported, so that a run with all of
//! them given repeats exactly.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result};
use recoup::core::{Bound, Clock, CodecId, Context, Values, ValuesMut};
use recoup::pipeline::{Timing, VirtualCosts};
use recoup::{SystemClock, VirtualClock};
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::options::protection::ProtectionArgs;
use crate::output::{bytes, seconds};
use crate::solved::Solved;

/// Copying to memory, which blocks the solver: about a quarter of one core's bandwidth.
const STAGE_BYTES_PER_SECOND: f64 = 4e9;
/// Time to write one raw vector in the published experiments (doi 10.1145/3208040.3208050).
const PAPER_VECTOR_SECONDS: f64 = 120.0;
/// Values are coded repeatedly until this much time has passed.
const MEASURE_SECONDS: f64 = 0.02;
/// Bound, relative to the largest value, at which a lossy codec is timed.
const MEASURE_BOUND: f64 = 1e-4;

/// Speeds of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MachineRates {
    /// Time of one iteration.
    pub(crate) iteration_seconds: f64,
    /// Time of one product with the operator.
    pub(crate) product_seconds: f64,
    /// Writing and reading versions.
    pub(crate) store_bytes_per_second: f64,
    /// Copying into the staging buffer.
    pub(crate) stage_bytes_per_second: f64,
    /// Encoding, raw bytes.
    pub(crate) encode_bytes_per_second: f64,
    /// Decoding, raw bytes.
    pub(crate) decode_bytes_per_second: f64,
}

impl MachineRates {
    /// The pipeline's form of the same.
    fn costs(self) -> VirtualCosts {
        VirtualCosts {
            iteration_seconds: self.iteration_seconds,
            product_seconds: self.product_seconds,
            stage_bytes_per_second: self.stage_bytes_per_second,
            encode_bytes_per_second: self.encode_bytes_per_second,
            decode_bytes_per_second: self.decode_bytes_per_second,
            store_bytes_per_second: self.store_bytes_per_second,
        }
    }
}

/// A clock and how costs come about on it.
#[derive(Clone)]
pub(crate) struct Machine {
    /// The run's clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Measured or declared costs.
    pub(crate) timing: Timing,
    /// The declared ones, for the report.
    pub(crate) rates: Option<MachineRates>,
    /// Set while the memory of a run is lost: no throttled write is waited for then.
    pub(crate) abort: Arc<AtomicBool>,
}

impl Machine {
    /// This machine, in real time.
    pub(crate) fn real() -> Self {
        Self { clock: Arc::new(SystemClock::new()), timing: Timing::Real, rates: None, abort: Arc::default() }
    }

    /// The same machine with its clock at zero.
    pub(crate) fn again(&self) -> Self {
        self.rates.map_or_else(Self::real, Self::of)
    }

    /// A machine of these rates, at time zero.
    pub(crate) fn of(rates: MachineRates) -> Self {
        Self {
            clock: Arc::new(VirtualClock::new()),
            timing: Timing::Virtual(rates.costs()),
            rates: Some(rates),
            abort: Arc::default(),
        }
    }
}

impl fmt::Display for MachineRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |value: f64| format!("{}/s", bytes(value));
        write!(
            f,
            "virtual time: {} per iteration, storage {}, copy {}, encode {}, decode {}",
            seconds(self.iteration_seconds),
            rate(self.store_bytes_per_second),
            rate(self.stage_bytes_per_second),
            rate(self.encode_bytes_per_second),
            rate(self.decode_bytes_per_second)
        )
    }
}

/// Facts about the machine from the undisturbed solve.
pub(crate) struct SolveMeasurement<'a> {
    /// Unknowns.
    pub(crate) n: usize,
    /// Iterations of the undisturbed solve.
    pub(crate) iterations: u64,
    /// Bytes a product with the operator moves, as a part of those an iteration moves.
    pub(crate) product_share: f64,
    /// The solve itself, where it was run.
    pub(crate) solved: Option<&'a Solved>,
}

/// The rates of the virtual machine that options and measurements describe.
pub(crate) fn rates(args: &ProtectionArgs, codec: CodecId, measured: &SolveMeasurement<'_>) -> Result<MachineRates> {
    let vector_bytes = 8.0 * measured.n as f64;
    let regime = args.paper_regime.map(|r| r.productive_seconds() / measured.iterations.max(1) as f64);
    let paper_bandwidth = vector_bytes / PAPER_VECTOR_SECONDS;
    let (encode, decode) = match (args.codec_rate, measured.solved) {
        (Some(rate), _) => (rate, rate),
        (None, Some(solved)) => codec_rates(codec, &solved.iterate)?,
        (None, None) => return Err(Exit::Usage.because("--codec-rate is needed where no undisturbed solve is run")),
    };
    let real = measured.solved.map_or(0.0, |solved| solved.report.seconds_per_iteration);
    let iteration_seconds = args.t_iter.or(regime).unwrap_or(real);
    Ok(MachineRates {
        iteration_seconds,
        product_seconds: measured.product_share * iteration_seconds,
        store_bytes_per_second: args.pfs_bandwidth.unwrap_or(paper_bandwidth),
        stage_bytes_per_second: STAGE_BYTES_PER_SECOND,
        encode_bytes_per_second: encode,
        decode_bytes_per_second: decode,
    })
}

/// Raw bytes per second this codec encodes and decodes of these values.
fn codec_rates(id: CodecId, values: &[f64]) -> Result<(f64, f64)> {
    let codec = recoup::compress::codec(id)?;
    let largest = values.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
    let bound =
        if codec.id().is_lossy() && largest > 0.0 { Bound::Absolute(MEASURE_BOUND * largest) } else { Bound::Lossless };
    let context = Context::flat(values.len());
    let mut payload = Vec::new();
    let mut decoded = vec![0.0; values.len()];
    let mut encoded = codec.encode(Values::F64(values), bound, &context, &mut payload).context("timing the codec")?;
    let encode = rate(values.len(), || {
        encoded = codec.encode(Values::F64(values), bound, &context, &mut payload)?;
        Ok(())
    })?;
    if encoded.stored_raw {
        return Ok((encode, encode));
    }
    let decode =
        rate(values.len(), || Ok(codec.decode(&payload, encoded.bound, &context, ValuesMut::F64(&mut decoded))?))?;
    Ok((encode, decode))
}

fn rate(values: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let clock = SystemClock::new();
    let mut bytes = 0.0;
    while clock.now().as_secs_f64() < MEASURE_SECONDS {
        work()?;
        bytes += 8.0 * values as f64;
    }
    Ok(bytes / clock.now().as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_timed_on_real_values() {
        let values: Vec<f64> = (0..4096).map(|i| f64::from(i).sin()).collect();
        for id in [CodecId::Qb, CodecId::Zstd, CodecId::Raw] {
            let (encode, decode) = codec_rates(id, &values).unwrap();
            assert!(encode > 0.0 && encode.is_finite() && decode > 0.0, "{id}: {encode} {decode}");
        }
    }
}
