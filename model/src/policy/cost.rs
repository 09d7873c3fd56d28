//! What a scheme costs: as measured, else as estimated from sizes and bandwidth.

use recoup_core::{CodecId, Cost, Observation, Resume, Scheme};

use super::PolicyConfig;
use crate::bound::Coding;
use crate::decide::Machine;

impl PolicyConfig {
    /// The cost of a scheme: measured where it was seen, else estimated from sizes and bandwidth;
    /// `None` while neither is possible.
    pub(super) fn cost(&self, scheme: Scheme, seen: &Observation) -> Option<Cost> {
        let measured = measured(scheme, seen);
        let estimated = self.estimate(scheme, seen);
        let Some(cost) = measured else { return estimated };
        let saving = cost.blocking_seconds + cost.drain_seconds;
        let recovery_seconds = match cost.recovery_seconds {
            0.0 => estimated.map_or(saving, |guess| guess.recovery_seconds),
            seconds => seconds,
        };
        let extra_iterations = match cost.extra_iterations {
            0.0 => self.extra_iterations(scheme, seen),
            iterations => iterations,
        };
        Some(Cost { recovery_seconds, extra_iterations, ..cost })
    }

    fn estimate(&self, scheme: Scheme, seen: &Observation) -> Option<Cost> {
        let plan = self.plan(scheme);
        let raw_bytes = raw_bytes(plan.resume, seen)?;
        let bandwidth = bandwidth(seen)?;
        let machine = Machine {
            write_bytes_per_second: bandwidth,
            read_bytes_per_second: bandwidth,
            copy_bytes_per_second: COPY_BYTES_PER_SECOND,
            ranks: 1,
        };
        let coding = match (plan.codec, scheme) {
            (CodecId::Raw, _) => Coding::RAW,
            (_, Scheme::Lossy) => LOSSY_GUESS,
            _ => LOSSLESS_GUESS,
        };
        let cost = machine.cost(raw_bytes, &coding);
        // A solver keeps all its cores busy, so an encoder behind it takes its time from them: until it was measured,
        // all of it.
        let taken = if self.asynchronous { raw_bytes / coding.encode_bytes_per_second } else { 0.0 };
        let blocking_seconds = cost.blocking_seconds + taken;
        Some(Cost { blocking_seconds, extra_iterations: self.extra_iterations(scheme, seen), ..cost })
    }

    /// Extra iterations of a lossy recovery to expect, as a fraction of the iterations done.
    pub(super) fn expected_extra_fraction(&self) -> f64 {
        let is_deflated = self.plan(Scheme::Lossy).resume == Resume::Deflated;
        if is_deflated { self.extra_fraction.min(DEFLATED_FRACTION) } else { self.extra_fraction }
    }

    fn extra_iterations(&self, scheme: Scheme, seen: &Observation) -> f64 {
        if scheme == Scheme::Lossy { self.expected_extra_fraction() * seen.iteration as f64 } else { 0.0 }
    }
}

/// Measured over whole solves of CG on Poisson problems and real matrices, 0.2 to 0.8 %: what a deflated resume costs.
const DEFLATED_FRACTION: f64 = 0.005;

/// What is assumed of a codec until it was seen: the modest end of what solvers' vectors give (ratios of
/// CG iterates under the verified rule about 4, lossless 1.1 to 1.35), its rate with every try of the verified
/// rule in it. A better one is found because schemes that come near are tried once, a worse one is dropped because it is measured.
pub(super) const LOSSY_GUESS: Coding =
    Coding { ratio: 4.0, encode_bytes_per_second: 0.2e9, decode_bytes_per_second: 0.4e9 };
pub(super) const LOSSLESS_GUESS: Coding =
    Coding { ratio: 1.2, encode_bytes_per_second: 0.3e9, decode_bytes_per_second: 0.6e9 };
const COPY_BYTES_PER_SECOND: f64 = 4e9;

pub(super) fn measured(scheme: Scheme, seen: &Observation) -> Option<Cost> {
    let found = seen.costs.iter().find(|(other, cost)| *other == scheme && is_seen(cost));
    found.map(|(_, cost)| *cost)
}

fn is_seen(cost: &Cost) -> bool {
    cost.blocking_seconds + cost.drain_seconds > 0.0
}

/// Bytes of a version that holds enough for `resume`; of the largest kind known when that one is not.
pub(super) fn raw_bytes(resume: Resume, seen: &Observation) -> Option<f64> {
    let known = |wanted: Resume| seen.raw_bytes.iter().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| *bytes);
    let bytes = known(resume).or_else(|| seen.raw_bytes.iter().map(|(_, bytes)| *bytes).max())?;
    (bytes > 0).then_some(bytes as f64)
}

/// Storage bandwidth: as given, or what is left of measured checkpoints when the guessed encoding is taken
/// away. All of a synchronous checkpoint blocks, so blocking and drain count together.
pub(super) fn bandwidth(seen: &Observation) -> Option<f64> {
    if seen.write_bytes_per_second > 0.0 {
        return Some(seen.write_bytes_per_second);
    }
    let rates = seen.costs.iter().filter(|(_, cost)| is_seen(cost) && cost.ratio > 0.0).filter_map(|(scheme, cost)| {
        let (resume, coding) = match scheme {
            Scheme::Lossy => (Resume::Restarted, LOSSY_GUESS),
            Scheme::Traditional => (Resume::Traditional, Coding::RAW),
            _ => (Resume::Traditional, LOSSLESS_GUESS),
        };
        let raw_bytes = raw_bytes(resume, seen)?;
        let seconds = cost.blocking_seconds + cost.drain_seconds;
        // A guess may be wrong: writing took at least half of the time.
        let writing = (seconds - raw_bytes / coding.encode_bytes_per_second).max(seconds / 2.0);
        Some(raw_bytes / cost.ratio / writing)
    });
    rates.reduce(f64::max)
}
