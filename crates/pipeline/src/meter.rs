//! What the run has cost so far, for the policy: means over the checkpoints and iterations seen.

use std::collections::BTreeMap;

use recoup_core::{Cost, Scheme};

use crate::Saved;

/// Weight of the newest sample: old costs fade within about five checkpoints.
const NEWEST_WEIGHT: f64 = 0.3;

/// Measured costs.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    costs: BTreeMap<Scheme, Cost>,
    write_bytes_per_second: f64,
    iterations: u64,
    computing_seconds: f64,
}

impl Meter {
    /// Nothing measured yet; the storage bandwidth may be known all the same.
    pub(crate) fn with_bandwidth(bytes_per_second: Option<f64>) -> Self {
        Self { write_bytes_per_second: bytes_per_second.unwrap_or(0.0), ..Self::default() }
    }

    /// One iteration took this long, checkpoints not counted.
    pub(crate) fn iterated(&mut self, seconds: f64) {
        self.iterations += 1;
        self.computing_seconds += seconds;
    }

    pub(crate) fn iteration_seconds(&self) -> f64 {
        if self.iterations == 0 { 0.0 } else { self.computing_seconds / self.iterations as f64 }
    }

    /// A synchronous checkpoint's drain is part of what blocked: it is counted once.
    pub(crate) fn saved(&mut self, saved: &Saved, synchronous: bool) {
        let ratio = saved.raw_bytes as f64 / saved.payload_bytes.max(1) as f64;
        let cost = self.costs.entry(saved.plan.scheme).or_default();
        blend(&mut cost.blocking_seconds, saved.spent.blocking_seconds());
        blend(&mut cost.drain_seconds, if synchronous { 0.0 } else { saved.spent.drain_seconds() });
        blend(&mut cost.ratio, ratio);
        if saved.spent.write_seconds > 0.0 {
            blend(&mut self.write_bytes_per_second, saved.payload_bytes as f64 / saved.spent.write_seconds);
        }
    }

    pub(crate) fn recovered(&mut self, scheme: Scheme, seconds: f64) {
        blend(&mut self.costs.entry(scheme).or_default().recovery_seconds, seconds);
    }

    pub(crate) fn costs(&self) -> Vec<(Scheme, Cost)> {
        self.costs.iter().map(|(&scheme, &cost)| (scheme, cost)).collect()
    }

    pub(crate) fn write_bytes_per_second(&self) -> f64 {
        self.write_bytes_per_second
    }
}

fn blend(mean: &mut f64, sample: f64) {
    *mean = if *mean == 0.0 { sample } else { *mean + NEWEST_WEIGHT * (sample - *mean) };
}
