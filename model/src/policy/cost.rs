//! The cost of a scheme: as measured, else as estimated from sizes and bandwidth.

use recoup_core::{BoundScale, Choice, CodecId, Cost, Observation, Resume, Scheme};

use super::config::PolicyConfig;
use crate::break_even::CodecRates;
use crate::decide::MachineBandwidths;
use crate::residual_bound::growth;

impl PolicyConfig {
    /// The cost of a choice: measured where it was seen, else estimated from sizes and bandwidth,
    /// and from what was seen of others; `None` while neither is possible. Extra iterations are
    /// those measured, or left 0.
    pub(super) fn cost(&self, choice: Choice, seen: &Observation) -> Option<Cost> {
        let estimated = || self.estimate(choice, seen);
        let Some(cost) = measured(choice, seen) else {
            let like = self.beside_another_grain(choice, seen).or_else(|| self.beside_its_like(choice, seen));
            return like.or_else(|| Some(self.beside_others(estimated()?, seen)));
        };
        let saving = cost.blocking_seconds + cost.drain_seconds;
        let recovery_seconds = match cost.recovery_seconds {
            0.0 => estimated().map_or(saving, |guess| guess.recovery_seconds),
            seconds => seconds,
        };
        Some(Cost { recovery_seconds, ..cost })
    }

    /// Part of the interval after which a version is taken: half of it while the cost of lossy ones
    /// is a guess. Where the guess C is right, that costs `C / 4` more; waiting costs all of C
    /// where they turn out to cost next to nothing.
    pub(super) fn first_part(&self, choice: Choice, seen: &Observation) -> f64 {
        let is_guess = choice.scheme == Scheme::Lossy && measured(choice, seen).is_none();
        if is_guess { FIRST_PART } else { 1.0 }
    }

    /// The cost measured of the same versions under finer or coarser bounds, and the bits of a
    /// value that these are expected to add or save.
    fn beside_another_grain(&self, choice: Choice, seen: &Observation) -> Option<Cost> {
        let is_like = |(other, cost): &&(Choice, Cost)| {
            (other.scheme, other.resume) == (choice.scheme, choice.resume) && is_seen(cost) && cost.ratio > 0.0
        };
        let (other, _) = seen.costs.iter().find(is_like)?;
        let cost = self.cost(*other, seen)?;
        let part = self.grain_part(cost.ratio, other.grain, choice.grain);
        let added = raw_bytes(choice.resume, seen)? / cost.ratio * (part - 1.0) / bandwidth(seen)?;
        // Between what it was and what it were if all of it were bytes.
        let moved = |seconds: f64| (seconds + added).clamp(seconds * part.min(1.0), seconds * part.max(1.0));
        let mut found = Cost { ratio: cost.ratio / part, extra_iterations: 0.0, residual_jump: 0.0, ..cost };
        found.recovery_seconds = moved(cost.recovery_seconds);
        if self.asynchronous {
            found.drain_seconds = moved(cost.drain_seconds);
        } else {
            let all = cost.blocking_seconds + cost.drain_seconds;
            found.blocking_seconds = moved(all);
            found.drain_seconds = 0.0;
        }
        Some(found)
    }

    /// Bytes under bounds this coarse over those under others, which gave `ratio`: each value takes
    /// `log2 (1 + c / e)` bits under a bound e. Of what coarser bounds save only a part is
    /// expected: in a chain the version before is as coarse, and the next one has to make up for
    /// it.
    fn grain_part(&self, ratio: f64, from: BoundScale, to: BoundScale) -> f64 {
        let coarser = growth(self.theta_of(to)) / growth(self.theta_of(from));
        let bits = VALUE_BITS / ratio;
        let part = (1.0 + (bits.exp2() - 1.0) / coarser).log2() / bits;
        if part < 1.0 { 1.0 - COARSE_CREDIT * (1.0 - part) } else { part }
    }

    /// The cost measured of a version of the same scheme that holds more or less, and the
    /// difference expected of the bytes; exact versions are encoded as lossless ones are.
    fn beside_its_like(&self, choice: Choice, seen: &Observation) -> Option<Cost> {
        let like = |scheme: Scheme| if scheme == Scheme::Exact { Scheme::Lossless } else { scheme };
        let is_like = |(other, cost): &&(Choice, Cost)| like(other.scheme) == like(choice.scheme) && is_seen(cost);
        let (other, cost) = seen.costs.iter().find(is_like)?;
        let ours = self.estimate(choice, seen)?;
        let theirs = self.estimate(*other, seen)?;
        let part = self.encoded_bytes(choice, seen) / self.encoded_bytes(*other, seen);
        let moved = |seconds: f64, ours: f64, theirs: f64| {
            // Less than the bytes alone would make it is more than a guess should say.
            (seconds + ours - theirs).max(part.min(1.0) * seconds)
        };
        let recovery = moved(cost.recovery_seconds, ours.recovery_seconds, theirs.recovery_seconds);
        let mut found = Cost {
            recovery_seconds: if cost.recovery_seconds > 0.0 { recovery } else { ours.recovery_seconds },
            ratio: cost.ratio * ours.ratio / theirs.ratio,
            extra_iterations: 0.0,
            ..*cost
        };
        if self.asynchronous {
            found.blocking_seconds = moved(cost.blocking_seconds, ours.blocking_seconds, theirs.blocking_seconds);
            found.drain_seconds = moved(cost.drain_seconds, ours.drain_seconds, theirs.drain_seconds);
        } else {
            let all = |cost: &Cost| cost.blocking_seconds + cost.drain_seconds;
            found.blocking_seconds = moved(all(cost), all(&ours), all(&theirs));
            found.drain_seconds = 0.0;
        }
        Some(found)
    }

    /// An estimate, and what every version has been seen to cost beside encoding and writing: the
    /// product that checks it, and what it takes to make one at all.
    fn beside_others(&self, estimate: Cost, seen: &Observation) -> Cost {
        if seen.write_bytes_per_second <= 0.0 {
            return estimate;
        }
        let all = |cost: &Cost| cost.blocking_seconds + cost.drain_seconds;
        let beside = |(choice, cost): &(Choice, Cost)| Some((all(cost) - all(&self.estimate(*choice, seen)?)).max(0.0));
        let seconds = seen.costs.iter().filter(|(_, cost)| is_seen(cost)).filter_map(beside).reduce(f64::min);
        let seconds = seconds.unwrap_or(0.0);
        if self.asynchronous {
            Cost { drain_seconds: estimate.drain_seconds + seconds, ..estimate }
        } else {
            Cost { blocking_seconds: estimate.blocking_seconds + seconds, ..estimate }
        }
    }

    fn estimate(&self, choice: Choice, seen: &Observation) -> Option<Cost> {
        self.estimate_at(bandwidth(seen)?, choice, seen)
    }

    /// Returns the expected cost of a version on storage of this bandwidth; `None` while its bytes
    /// are not known.
    pub(super) fn estimate_at(&self, bytes_per_second: f64, choice: Choice, seen: &Observation) -> Option<Cost> {
        let raw_bytes = raw_bytes(choice.resume, seen)?;
        let machine = MachineBandwidths {
            write_bytes_per_second: bytes_per_second,
            read_bytes_per_second: bytes_per_second,
            copy_bytes_per_second: COPY_BYTES_PER_SECOND,
            ranks: 1,
        };
        let coding = match (self.plan(choice.scheme).codec, choice.scheme) {
            (CodecId::Raw, _) => CodecRates::RAW,
            (_, Scheme::Lossy) => CodecRates { ratio: raw_bytes / self.encoded_bytes(choice, seen), ..LOSSY_GUESS },
            _ => LOSSLESS_GUESS,
        };
        let cost = machine.cost(raw_bytes, &coding);
        // A solver keeps all its cores busy, so an encoder behind it takes its time from them:
        // until it was measured, all of it.
        let taken = if self.asynchronous { raw_bytes / coding.encode_bytes_per_second } else { 0.0 };
        Some(Cost { blocking_seconds: cost.blocking_seconds + taken, ..cost })
    }

    /// Bytes of a version on the storage, by the guessed ratios: a direction bears a coarser bound
    /// than the iterate.
    fn encoded_bytes(&self, choice: Choice, seen: &Observation) -> f64 {
        let bytes = |resume| raw_bytes(resume, seen).unwrap_or(0.0);
        let lossy = |bytes: f64, ratio: f64| bytes / ratio * self.grain_part(ratio, BoundScale::Usual, choice.grain);
        // Finer bounds add their bits to each value.
        let most = self.profile.continued_share * seen.tolerance / seen.relative_residual;
        let finer = |bytes: f64, ratio: f64, times: f64| {
            bytes * (1.0 / ratio + times.log2().max(0.0) / VALUE_BITS).min(1.0 / LOSSLESS_GUESS.ratio)
        };
        match (choice.scheme, choice.resume) {
            (Scheme::Lossy, Resume::Deflated) => {
                let iterate = bytes(Resume::Restarted).min(bytes(Resume::Deflated));
                lossy(iterate, LOSSY_GUESS.ratio) + lossy(bytes(Resume::Deflated) - iterate, DIRECTION_RATIO)
            }
            (Scheme::Lossy, Resume::Restarted) => lossy(bytes(choice.resume), LOSSY_GUESS.ratio),
            (Scheme::Lossy, resume) => {
                let iterate = bytes(Resume::Restarted).min(bytes(resume));
                finer(iterate, LOSSY_GUESS.ratio, growth(self.theta()) / most)
                    + finer(bytes(resume) - iterate, DIRECTION_RATIO, self.delta / most)
            }
            (Scheme::Traditional, resume) => bytes(resume),
            (_, resume) => bytes(resume) / LOSSLESS_GUESS.ratio,
        }
    }
}

/// The assumed rates of a codec until it was measured: the modest end of what solvers' vectors give
/// (ratios of CG iterates under the verified rule about 4, lossless 1.1 to 1.35). The rate includes
/// every try of the verified rule. A better one is found because schemes that come near are tried
/// once, a worse one is dropped because it is measured.
pub(super) const LOSSY_GUESS: CodecRates =
    CodecRates { ratio: 4.0, encode_bytes_per_second: 0.2e9, decode_bytes_per_second: 0.4e9 };
pub(super) const LOSSLESS_GUESS: CodecRates =
    CodecRates { ratio: 1.2, encode_bytes_per_second: 0.3e9, decode_bytes_per_second: 0.6e9 };
/// Ratio of a direction at its bound in the energy norm, a twentieth, which CG's bear at about ten.
const DIRECTION_RATIO: f64 = 10.0;
/// The part of the bits saved by coarser bounds that is expected before it was measured.
const COARSE_CREDIT: f64 = 0.5;
/// Bits of a value of the iterate.
const VALUE_BITS: f64 = 64.0;
/// The part of the interval to wait for a version whose cost is a guess.
const FIRST_PART: f64 = 0.5;
const COPY_BYTES_PER_SECOND: f64 = 4e9;

pub(super) fn measured(choice: Choice, seen: &Observation) -> Option<Cost> {
    let found = seen.costs.iter().find(|(other, cost)| *other == choice && is_seen(cost));
    found.map(|(_, cost)| *cost)
}

fn is_seen(cost: &Cost) -> bool {
    cost.blocking_seconds + cost.drain_seconds > 0.0
}

/// Bytes of a version that holds enough for `resume`; of the largest kind known when that one is
/// not.
pub(super) fn raw_bytes(resume: Resume, seen: &Observation) -> Option<f64> {
    let known = |wanted: Resume| seen.raw_bytes.iter().find(|(kind, _)| *kind == wanted).map(|(_, bytes)| *bytes);
    let bytes = known(resume).or_else(|| seen.raw_bytes.iter().map(|(_, bytes)| *bytes).max())?;
    (bytes > 0).then_some(bytes as f64)
}

/// Storage bandwidth: as given, or what is left of measured checkpoints when the guessed encoding
/// is taken away. All of a synchronous checkpoint blocks, so blocking and drain count together.
pub(super) fn bandwidth(seen: &Observation) -> Option<f64> {
    if seen.write_bytes_per_second > 0.0 {
        return Some(seen.write_bytes_per_second);
    }
    let rates = seen.costs.iter().filter(|(_, cost)| is_seen(cost) && cost.ratio > 0.0).filter_map(|(choice, cost)| {
        let coding = match choice.scheme {
            Scheme::Lossy => LOSSY_GUESS,
            Scheme::Traditional => CodecRates::RAW,
            _ => LOSSLESS_GUESS,
        };
        let raw_bytes = raw_bytes(choice.resume, seen)?;
        let seconds = cost.blocking_seconds + cost.drain_seconds;
        // A guess may be wrong: writing took at least half of the time.
        let writing = (seconds - raw_bytes / coding.encode_bytes_per_second).max(seconds / 2.0);
        Some(raw_bytes / cost.ratio / writing)
    });
    rates.reduce(f64::max)
}
