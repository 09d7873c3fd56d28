//! The costs of the run so far, for the policy: means over the checkpoints and iterations seen.

use std::collections::{BTreeMap, VecDeque};

use recoup_core::{Choice, Cost, Grain, Measured, Resume, Scheme};
use recoup_model::staging::StagingMeasured;

use super::outcome::Saved;

/// Weight of the newest sample: old costs fade within about five checkpoints.
const NEWEST_WEIGHT: f64 = 0.3;
/// Versions remembered by how coarse they are: more than are kept.
const GRAINS_MAX: usize = 64;

/// Measured costs.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    costs: BTreeMap<Choice, Cost>,
    write_bytes_per_second: f64,
    /// Iterations with nothing running behind them, and the time they took.
    undisturbed: (u64, f64),
    /// All iterations, and the time they took.
    all: (u64, f64),
    /// Extra time that the iterations next to the drain under way took, compared with undisturbed
    /// ones.
    slowdown_seconds: f64,
    /// Time that versions took from the solver by the way in which they were staged.
    staging: StagingMeasured,
    drain_bytes_per_second: f64,
    /// The newest versions, and how coarse their bounds are.
    grains: VecDeque<(u64, Grain)>,
}

impl Meter {
    /// Makes a meter that has measured nothing yet; the storage bandwidth may be known all the
    /// same.
    pub(crate) fn with_bandwidth(bytes_per_second: Option<f64>) -> Self {
        Self { write_bytes_per_second: bytes_per_second.unwrap_or(0.0), ..Self::default() }
    }

    /// Takes the time of one iteration, checkpoints not counted, with or without a drain beside it.
    pub(crate) fn iterated(&mut self, seconds: f64, beside_drain: bool) {
        self.all = (self.all.0 + 1, self.all.1 + seconds);
        if beside_drain {
            self.slowdown_seconds += seconds - self.iteration_seconds();
        } else {
            self.undisturbed = (self.undisturbed.0 + 1, self.undisturbed.1 + seconds);
        }
    }

    /// Returns the mean time of an iteration that nothing disturbs, as far as there were any.
    pub(crate) fn iteration_seconds(&self) -> f64 {
        let (iterations, seconds) = if self.undisturbed.0 > 0 { self.undisturbed } else { self.all };
        if iterations == 0 { 0.0 } else { seconds / iterations as f64 }
    }

    /// Takes the costs of a version. A synchronous checkpoint's drain is part of what blocked: it
    /// is counted once. A drain that takes cores or memory bandwidth from the solver blocks it too,
    /// by what the iterations beside it lost.
    pub(crate) fn saved(&mut self, saved: &Saved, synchronous: bool) {
        let ratio = saved.raw_bytes as f64 / saved.payload_bytes.max(1) as f64;
        if self.grains.len() == GRAINS_MAX {
            self.grains.pop_front();
        }
        self.grains.push_back((saved.version, saved.plan.grain));
        let cost = self.costs.entry(saved.plan.choice()).or_default();
        let slowdown_seconds = std::mem::take(&mut self.slowdown_seconds).max(0.0);
        if !synchronous {
            self.staging = staged(self.staging, saved, slowdown_seconds);
        }
        blend(&mut cost.blocking_seconds, saved.spent.blocking_seconds() + slowdown_seconds);
        blend(&mut cost.drain_seconds, if synchronous { 0.0 } else { saved.spent.drain_seconds() });
        blend(&mut cost.ratio, ratio);
        if let Some(verified) = saved.residual.verified_norm.filter(|_| saved.residual.norm > 0.0) {
            blend(&mut cost.residual_jump, verified / saved.residual.norm);
        }
        if saved.spent.drain_seconds() > 0.0 {
            blend(&mut self.drain_bytes_per_second, saved.raw_bytes as f64 / saved.spent.drain_seconds());
        }
        if saved.spent.write_seconds > 0.0 {
            blend(&mut self.write_bytes_per_second, saved.payload_bytes as f64 / saved.spent.write_seconds);
        }
    }

    /// Takes the cost of reading a version; how coarse its bounds are is known of versions saved
    /// here.
    pub(crate) fn recovered(&mut self, version: u64, scheme: Scheme, resume: Resume, seconds: f64) {
        let grain = self.grains.iter().rev().find(|(saved, _)| *saved == version).map(|(_, grain)| *grain);
        let choice = Choice { scheme, resume, grain: grain.unwrap_or_default() };
        blend(&mut self.costs.entry(choice).or_default().recovery_seconds, seconds);
    }

    pub(crate) fn costs(&self) -> Vec<(Choice, Cost)> {
        self.costs.iter().map(|(&choice, &cost)| (choice, cost)).collect()
    }

    /// Returns what JSON can hold of the costs, for the process that goes on.
    pub(crate) fn measured(&self) -> Measured {
        let is_finite = |cost: &Cost| {
            let times = [cost.blocking_seconds, cost.drain_seconds, cost.recovery_seconds];
            let others = [cost.ratio, cost.extra_iterations, cost.residual_jump];
            times.iter().chain(&others).all(|number| number.is_finite())
        };
        let costs = self.costs().into_iter().filter(|(_, cost)| is_finite(cost)).collect();
        Measured { write_bytes_per_second: self.write_bytes_per_second, costs }
    }

    /// Takes over what the process before had measured, where this one has measured nothing.
    pub(crate) fn recall(&mut self, before: Option<&Measured>) {
        let Some(before) = before.filter(|_| self.costs.is_empty()) else { return };
        self.costs.extend(before.costs.iter().copied());
        if self.write_bytes_per_second == 0.0 {
            self.write_bytes_per_second = before.write_bytes_per_second;
        }
    }

    pub(crate) fn write_bytes_per_second(&self) -> f64 {
        self.write_bytes_per_second
    }

    /// Returns the rate at which versions drain, in bytes of values: measured, else that of the
    /// storage, else infinite.
    pub(crate) fn drain_bytes_per_second(&self) -> f64 {
        let known = [self.drain_bytes_per_second, self.write_bytes_per_second];
        known.into_iter().find(|rate| *rate > 0.0).unwrap_or(f64::INFINITY)
    }

    /// Returns what versions took from the solver by the way in which they were staged.
    pub(crate) fn staging(&self) -> StagingMeasured {
        self.staging
    }
}

/// Takes the time that a version took from the solver, if nine tenths of it were staged in one way.
/// A version most of which was staged before says nothing: its drain disturbs the solver all the
/// same.
fn staged(mut measured: StagingMeasured, saved: &Saved, slowdown_seconds: f64) -> StagingMeasured {
    let Saved { copied_bytes, frozen_bytes, .. } = *saved;
    let bytes = copied_bytes + frozen_bytes;
    if bytes == 0 || bytes < saved.raw_bytes / 2 {
        return measured;
    }
    let way = if 10 * copied_bytes <= bytes {
        &mut measured.frozen_seconds_per_byte
    } else if 10 * frozen_bytes <= bytes {
        &mut measured.copy_seconds_per_byte
    } else {
        return measured;
    };
    let sample = (saved.spent.stage_seconds + slowdown_seconds) / bytes as f64;
    blend(way.get_or_insert(sample), sample);
    measured
}

fn blend(mean: &mut f64, sample: f64) {
    *mean = if *mean == 0.0 { sample } else { *mean + NEWEST_WEIGHT * (sample - *mean) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::outcome::Spent;

    fn saved(stage_seconds: f64) -> Saved {
        Saved::of_one_value(1, Spent { stage_seconds, ..Spent::default() })
    }

    #[test]
    fn what_was_measured_before_counts_until_something_is_measured() {
        let mut before = Meter::default();
        let mut after = Meter::default();
        let mut other = Meter::with_bandwidth(Some(7.0));
        before.saved(&saved(0.25), false);
        let Choice { scheme, resume, .. } = before.costs()[0].0;
        before.recovered(1, scheme, resume, 3.0);
        let text = serde_json::to_string(&before.measured()).unwrap();
        let measured: Measured = serde_json::from_str(&text).unwrap();
        after.recall(Some(&measured));
        other.recall(Some(&measured));
        assert_eq!((after.costs(), other.costs()), (before.costs(), before.costs()));
        assert_eq!(other.write_bytes_per_second(), 7.0);
        after.saved(&saved(1.0), false);
        let blended = after.costs();
        after.recall(Some(&measured));
        assert_eq!(after.costs(), blended);
    }

    #[test]
    fn a_way_of_staging_costs_its_wait_and_what_iterations_lost() {
        let mut meter = Meter::default();
        (0..10).for_each(|_| meter.iterated(1.0, false));
        meter.saved(&saved(0.5), false);
        (0..4).for_each(|_| meter.iterated(1.5, true));
        // A scalar is always copied.
        let frozen = Saved { raw_bytes: 80, copied_bytes: 8, frozen_bytes: 72, ..saved(0.0) };
        meter.saved(&frozen, false);
        meter.saved(&Saved { copied_bytes: 72, ..frozen.clone() }, false);
        meter.saved(&Saved { frozen_bytes: 0, ..frozen }, false);
        let StagingMeasured { copy_seconds_per_byte, frozen_seconds_per_byte } = meter.staging();
        assert_eq!((copy_seconds_per_byte, frozen_seconds_per_byte), (Some(0.5 / 8.0), Some(2.0 / 80.0)));
    }

    #[test]
    fn what_a_drain_takes_from_the_solver_is_part_of_what_it_blocks() {
        let mut meter = Meter::default();
        (0..10).for_each(|_| meter.iterated(1.0, false));
        (0..4).for_each(|_| meter.iterated(1.5, true));
        meter.saved(&saved(0.25), false);
        assert_eq!(meter.iteration_seconds(), 1.0);
        assert_eq!(meter.costs()[0].1.blocking_seconds, 0.25 + 4.0 * 0.5);
    }
}
