//! The choice of a scheme and its interval, with the numbers behind it.
//!
//! Compares, for the work that remains, the expected overhead without checkpoints with that of each
//! scheme with as many of them as pay, exact for exponential failures ([`crate::horizon`]).

use std::fmt::Write as _;

use recoup_core::{Cost, Scheme};
use serde::{Deserialize, Serialize};

use crate::break_even::CodecRates;
use crate::horizon::{CheckpointSchedule, Horizon};
use crate::overhead::CheckpointTiming;

/// The input of a decision. All times are seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Mean time to interrupt; infinite when nothing ever fails.
    pub mtti_seconds: f64,
    /// Time of one iteration.
    pub iteration_seconds: f64,
    /// Computing still to do; infinite when not known.
    pub remaining_seconds: f64,
    /// Computing done since the last version, or the start.
    pub at_risk_seconds: f64,
    /// Computing between two safe points; 0 where a version can be saved at any time.
    pub safe_point_seconds: f64,
    /// Checkpoints drain behind the solver; otherwise all of their time blocks it.
    pub asynchronous: bool,
    /// The cost of each scheme to choose from. [`Scheme::None`] needs no entry.
    pub costs: Vec<(Scheme, Cost)>,
}

/// The scheme of least expected overhead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The scheme chosen.
    pub scheme: Scheme,
    /// The optimal interval of that scheme; infinite for none.
    pub interval_seconds: f64,
    /// Expected overhead over productive time for [`Scheme::None`] and each scheme asked about.
    pub expected_overhead: Vec<(Scheme, f64)>,
    /// The optimal interval of each of them.
    pub intervals: Vec<(Scheme, f64)>,
    /// Theorem 1: extra iterations up to which lossy beats traditional; `None` when not both were
    /// asked about, or nothing fails.
    pub max_extra_iterations: Option<f64>,
}

impl Answer {
    /// The expected overhead of one scheme; infinite when it was not asked about.
    #[must_use]
    pub fn expected(&self, scheme: Scheme) -> f64 {
        let found = self.expected_overhead.iter().find(|(other, _)| *other == scheme);
        found.map_or(f64::INFINITY, |(_, overhead)| *overhead)
    }

    /// The optimal interval of one scheme; infinite when none of its checkpoints pays, or it was
    /// not asked about.
    #[must_use]
    pub fn interval(&self, scheme: Scheme) -> f64 {
        let found = self.intervals.iter().find(|(other, _)| *other == scheme);
        found.map_or(f64::INFINITY, |(_, interval)| *interval)
    }
}

impl Question {
    /// The model's view of one scheme's costs.
    #[must_use]
    pub fn timing(&self, cost: &Cost) -> CheckpointTiming {
        let timing = CheckpointTiming {
            mtti_seconds: self.mtti_seconds,
            blocking_seconds: cost.blocking_seconds,
            drain_seconds: cost.drain_seconds,
            recovery_seconds: cost.recovery_seconds,
            extra_seconds: cost.extra_iterations * self.iteration_seconds,
            safe_point_seconds: self.safe_point_seconds,
        };
        if self.asynchronous { timing } else { timing.blocking_all() }
    }

    /// The scheme of least expected time until the end of the run, with as many checkpoints as pay
    /// ([`crate::horizon`]); none when nothing is cheaper. `fallback_seconds` is the recovery from
    /// the newest version, 0 for none.
    #[must_use]
    pub fn answer(&self, fallback_seconds: f64) -> Answer {
        let horizon = self.horizon(fallback_seconds);
        let unprotected = CheckpointSchedule::none(horizon.unprotected_overhead_fraction(self.mtti_seconds));
        let mut best = (Scheme::None, unprotected);
        let mut expected_overhead = vec![(Scheme::None, best.1.overhead_fraction)];
        let mut intervals = vec![(Scheme::None, f64::INFINITY)];
        for (scheme, cost) in self.costs.iter().filter(|(scheme, _)| *scheme != Scheme::None) {
            let found = horizon.best(&self.timing(cost));
            expected_overhead.push((*scheme, found.overhead_fraction));
            intervals.push((*scheme, found.interval_seconds));
            if found.overhead_fraction < best.1.overhead_fraction {
                best = (*scheme, found);
            }
        }
        Answer {
            scheme: best.0,
            interval_seconds: best.1.interval_seconds,
            expected_overhead,
            intervals,
            max_extra_iterations: self.max_extra_iterations(),
        }
    }

    /// Returns what saving each scheme at this interval costs until the end.
    #[must_use]
    pub fn overhead_at(&self, interval_seconds: f64) -> Vec<(Scheme, f64)> {
        let horizon = self.horizon(0.0);
        let costs = self.costs.iter().filter(|(scheme, _)| *scheme != Scheme::None);
        let overhead = |cost: &Cost| {
            let timing = self.timing(cost);
            horizon.overhead_fraction_at(&timing, interval_seconds.max(timing.least_interval_seconds()))
        };
        costs.map(|(scheme, cost)| (*scheme, overhead(cost))).collect()
    }

    /// Returns the best schedule of versions of this cost until the end.
    #[must_use]
    pub fn protection(&self, cost: &Cost, fallback_seconds: f64) -> CheckpointSchedule {
        self.horizon(fallback_seconds).best(&self.timing(cost))
    }

    fn horizon(&self, fallback_seconds: f64) -> Horizon {
        let remaining_seconds = self.remaining_seconds;
        let at_risk_seconds = self.at_risk_seconds;
        Horizon { remaining_seconds, at_risk_seconds, fallback_seconds }
    }

    /// Theorem 1 with every cost as given: where both shares are equal,
    /// `N' = (s_traditional - s_lossy without extra iterations) / (lambda T_it)`.
    fn max_extra_iterations(&self) -> Option<f64> {
        if self.mtti_seconds.is_infinite() || self.iteration_seconds <= 0.0 {
            return None;
        }
        let share = |wanted: Scheme| {
            let (_, cost) = self.costs.iter().find(|(scheme, _)| *scheme == wanted)?;
            Some(self.timing(&Cost { extra_iterations: 0.0, ..*cost }).share())
        };
        let gained = share(Scheme::Traditional)? - share(Scheme::Lossy)?;
        Some(gained * self.mtti_seconds / self.iteration_seconds)
    }

    /// Returns the reason for `scheme`, chosen or kept, with the numbers of `answer`, as the report
    /// prints it.
    #[must_use]
    pub fn why_of(&self, answer: &Answer, scheme: Scheme) -> String {
        let mut why = format!("{scheme} costs {} (", percent(answer.expected(scheme)));
        match self.costs.iter().find(|(other, _)| *other == scheme && scheme != Scheme::None) {
            Some((_, cost)) => self.describe(&mut why, cost, answer.interval(scheme)),
            None => {
                let remaining = short(self.remaining_seconds);
                let at_risk = short(self.at_risk_seconds);
                let _ = write!(why, "{remaining} s remain, {at_risk} s at risk");
            }
        }
        let most = answer.max_extra_iterations.filter(|most| *most > 0.0);
        if let (Scheme::Lossy, Some(most)) = (scheme, most) {
            let _ = write!(why, " of at most {}", short(most));
        }
        let _ = write!(why, ", MTTI {} s)", short(self.mtti_seconds));
        let others = answer.expected_overhead.iter().filter(|(other, _)| *other != scheme);
        for (position, (other, overhead)) in others.enumerate() {
            let joint = if position == 0 { ";" } else { "," };
            let _ = write!(why, "{joint} {other} {}", percent(*overhead));
        }
        why
    }

    fn describe(&self, why: &mut String, cost: &Cost, interval_seconds: f64) {
        let timing = self.timing(cost);
        let _ = write!(
            why,
            "every {} s, blocking {} s, drain {} s, recovery {} s, {} extra iterations",
            short(interval_seconds),
            short(timing.blocking_seconds),
            short(timing.drain_seconds),
            short(cost.recovery_seconds),
            short(cost.extra_iterations),
        );
    }
}

/// A fraction in per cent. Overheads grow exponentially with the failure rate, and beyond some size
/// their digits say nothing.
pub(crate) fn percent(fraction: f64) -> String {
    match fraction {
        f64::INFINITY => "more than all time".to_owned(),
        1e4.. => "over 1e6 %".to_owned(),
        _ => format!("{} %", short(100.0 * fraction)),
    }
}

/// A number in three digits.
fn short(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size < 0.001 || (1e6..f64::INFINITY).contains(&size) => format!("{value:.2e}"),
        size if size < 1.0 => format!("{value:.3}"),
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A machine as a checkpoint sees it. All rates are bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineBandwidths {
    /// Storage bandwidth of all ranks together, writing.
    pub write_bytes_per_second: f64,
    /// Storage bandwidth of all ranks together, reading.
    pub read_bytes_per_second: f64,
    /// Copy within memory, per rank.
    pub copy_bytes_per_second: f64,
    /// Ranks.
    pub ranks: u32,
}

impl MachineBandwidths {
    /// Returns the cost of checkpoints of `raw_bytes` (all ranks together) with this codec: the
    /// copy blocks, encoding and writing drain, a recovery reads and decodes. Extra iterations are
    /// left 0.
    #[must_use]
    pub fn cost(&self, raw_bytes: f64, coding: &CodecRates) -> Cost {
        let per_rank = raw_bytes / f64::from(self.ranks);
        let encoded = raw_bytes / coding.ratio;
        Cost {
            blocking_seconds: per_rank / self.copy_bytes_per_second,
            drain_seconds: per_rank / coding.encode_bytes_per_second + encoded / self.write_bytes_per_second,
            recovery_seconds: encoded / self.read_bytes_per_second + per_rank / coding.decode_bytes_per_second,
            ratio: coding.ratio,
            extra_iterations: 0.0,
            residual_jump: 0.0,
        }
    }
}

/// Sizes and codecs of a machine one does not own yet: what [`Question::costs`] is made of.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// The machine.
    pub machine: MachineBandwidths,
    /// Raw bytes of a traditional or lossless version, all ranks together.
    pub raw_bytes: f64,
    /// Raw bytes of a lossy version, the iterate alone.
    pub lossy_raw_bytes: f64,
    /// The lossless codec.
    pub lossless: CodecRates,
    /// The lossy codec at its error bound.
    pub lossy: CodecRates,
    /// N', extra iterations of a lossy recovery.
    pub extra_iterations: f64,
}

impl Rates {
    /// The costs of the three schemes.
    #[must_use]
    pub fn costs(&self) -> Vec<(Scheme, Cost)> {
        let lossy = self.machine.cost(self.lossy_raw_bytes, &self.lossy);
        vec![
            (Scheme::Traditional, self.machine.cost(self.raw_bytes, &CodecRates::RAW)),
            (Scheme::Lossless, self.machine.cost(self.raw_bytes, &self.lossless)),
            (Scheme::Lossy, Cost { extra_iterations: self.extra_iterations, ..lossy }),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Simulation;

    fn synchronous(seconds: f64, extra_iterations: f64) -> Cost {
        Cost { blocking_seconds: seconds, recovery_seconds: seconds, extra_iterations, ..Cost::default() }
    }

    /// GMRES of Tao et al. 2018 on 2,048 ranks: 120 s raw, 25 s lossy, 1.2 s per iteration, 2 h.
    fn paper(extra_iterations: f64) -> Question {
        Question {
            mtti_seconds: 3600.0,
            iteration_seconds: 1.2,
            remaining_seconds: 7200.0,
            at_risk_seconds: 0.0,
            asynchronous: false,
            costs: vec![
                (Scheme::Traditional, synchronous(120.0, 0.0)),
                (Scheme::Lossless, synchronous(90.0, 0.0)),
                (Scheme::Lossy, synchronous(25.0, extra_iterations)),
            ],
            safe_point_seconds: 0.0,
        }
    }

    #[test]
    fn slow_storage_chooses_lossy_and_says_so_in_numbers() {
        let question = paper(10.0);
        let answer = question.answer(0.0);
        assert_eq!(answer.scheme, Scheme::Lossy);
        assert!((answer.max_extra_iterations.unwrap() - 500.2).abs() < 0.05);
        let why = question.why_of(&answer, answer.scheme);
        for part in ["lossy costs", "of at most 500", "traditional 32.7 %", "MTTI 3600 s"] {
            assert!(why.contains(part), "{part} is not in: {why}");
        }
    }

    /// Theorem 1 is first order, for a run without end: the exact limit lies 4 % above it.
    #[test]
    fn lossy_stops_paying_next_to_the_bound_of_theorem_1() {
        let chosen = |extra| {
            let costs = [paper(extra).costs[0], paper(extra).costs[2]].into();
            Question { costs, remaining_seconds: f64::INFINITY, ..paper(0.0) }.answer(0.0).scheme
        };
        assert_eq!((chosen(500.0), chosen(530.0)), (Scheme::Lossy, Scheme::Traditional));
    }

    /// Judged by [`Simulation`]: what the choice costs above the best of all, in parts of the time
    /// of the best.
    #[test]
    fn the_choice_is_the_best_one_when_simulated() {
        let regrets: Vec<f64> = (0..300).map(regret).collect();
        let above = |limit| regrets.iter().filter(|&&regret| regret > limit).count();
        let worst = regrets.iter().fold(0.0, |worst: f64, regret| worst.max(*regret));
        println!("{} {worst}", above(0.01));
        assert!(above(0.01) <= 3 && above(0.1) == 0, "{} above 1 %, worst {worst}", above(0.01));
    }

    fn regret(seed: u64) -> f64 {
        let question = any_question(seed);
        let answer = question.answer(0.0);
        let simulated = |scheme: Scheme, cost: &Cost| {
            // Nothing else is as far off, and such runs hardly end.
            if answer.expected(scheme) > 10.0 * (1.0 + answer.expected(answer.scheme)) {
                return f64::INFINITY;
            }
            let run = Simulation {
                timing: question.timing(cost),
                interval_seconds: answer.interval(scheme),
                work_seconds: question.remaining_seconds,
                trials: 400,
                seed,
            };
            1.0 + run.run().overhead_fraction.mean
        };
        let none = (Scheme::None, Cost::default());
        let times: Vec<(Scheme, f64)> =
            question.costs.iter().chain([&none]).map(|(s, c)| (*s, simulated(*s, c))).collect();
        let best = times.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
        times.iter().find(|(scheme, _)| *scheme == answer.scheme).unwrap().1 / best - 1.0
    }

    /// Iterations of 10 ms to 10 s, 100 to 30,000 of them; an MTTI of a fifth of a solve to a
    /// hundred; checkpoints of a ten-thousandth of the MTTI up to half of it.
    fn any_question(seed: u64) -> Question {
        let mut rng = crate::Rng::new(seed);
        let mut between = |low: f64, high: f64| low * (high / low).powf(rng.uniform());
        let iteration_seconds = between(0.01, 10.0);
        let iterations = between(100.0, 30_000.0);
        let remaining_seconds = iteration_seconds * iterations;
        let mtti_seconds = remaining_seconds * between(0.2, 100.0);
        let raw = mtti_seconds * between(1e-4, 0.5);
        let extra = iterations * between(1e-4, 0.3);
        let cost = |seconds: f64, extra_iterations: f64| Cost {
            blocking_seconds: seconds / 20.0,
            drain_seconds: seconds * 0.95,
            ..synchronous(seconds, extra_iterations)
        };
        let costs = vec![
            (Scheme::Traditional, cost(raw, 0.0)),
            (Scheme::Lossless, cost(raw * between(0.5, 1.1), 0.0)),
            (Scheme::Lossy, cost(raw * between(0.02, 0.6), extra)),
        ];
        let asynchronous = seed % 2 == 1;
        let safe_point_seconds = iteration_seconds;
        Question {
            mtti_seconds,
            iteration_seconds,
            remaining_seconds,
            asynchronous,
            costs,
            safe_point_seconds,
            ..paper(0.0)
        }
    }

    #[test]
    fn fast_local_disk_does_not_choose_lossy() {
        // CG at 128^3 on a disk of 2 GB/s: encoding at 0.2 GB/s costs more than it saves.
        let machine = MachineBandwidths {
            write_bytes_per_second: 2e9,
            read_bytes_per_second: 2e9,
            copy_bytes_per_second: 5e9,
            ranks: 1,
        };
        let coding = CodecRates { ratio: 4.0, encode_bytes_per_second: 0.2e9, decode_bytes_per_second: 0.4e9 };
        let iterate_bytes = 128f64.powi(3) * 8.0;
        let rates = Rates {
            machine,
            raw_bytes: 2.0 * iterate_bytes,
            lossy_raw_bytes: iterate_bytes,
            lossless: CodecRates { ratio: 1.2, ..coding },
            lossy: coding,
            extra_iterations: 0.0,
        };
        let costs = rates.costs();
        let answer = Question { iteration_seconds: 0.02, costs, ..paper(0.0) }.answer(0.0);
        assert_eq!(answer.scheme, Scheme::Traditional, "{answer:?}");
    }

    #[test]
    fn nothing_is_saved_when_the_loss_is_smaller_than_the_price() {
        let short = Question { remaining_seconds: 100.0, ..paper(0.0) };
        let answer = short.answer(0.0);
        assert_eq!(answer.scheme, Scheme::None);
        assert_eq!(answer.interval_seconds, f64::INFINITY);
        let why = short.why_of(&answer, answer.scheme);
        assert!(why.contains("100 s remain"), "{why}");
        assert_eq!(Question { mtti_seconds: f64::INFINITY, ..paper(0.0) }.answer(0.0).scheme, Scheme::None);
        // The same remaining time with an hour of unsaved work behind it is worth a checkpoint.
        assert_ne!(Question { at_risk_seconds: 3600.0, ..short }.answer(0.0).scheme, Scheme::None);
    }

    #[test]
    fn unknown_remaining_time_is_protected() {
        assert_eq!(Question { remaining_seconds: f64::INFINITY, ..paper(0.0) }.answer(0.0).scheme, Scheme::Lossy);
    }

    #[test]
    fn draining_behind_the_solver_lowers_every_overhead() {
        let costs = vec![(
            Scheme::Traditional,
            Cost { blocking_seconds: 1.0, drain_seconds: 119.0, ..synchronous(120.0, 0.0) },
        )];
        let behind = Question { asynchronous: true, costs: costs.clone(), ..paper(0.0) };
        let in_the_way = Question { costs, ..paper(0.0) };
        let expected = |question: &Question| question.answer(0.0).expected(Scheme::Traditional);
        assert_eq!(expected(&in_the_way), paper(0.0).answer(0.0).expected(Scheme::Traditional));
        assert!(expected(&behind) < 0.8 * expected(&in_the_way));
    }

    #[test]
    fn hopeless_regime_takes_the_least_share() {
        let hopeless = Question {
            mtti_seconds: 10.0,
            remaining_seconds: f64::INFINITY,
            costs: vec![(Scheme::Traditional, synchronous(120.0, 0.0)), (Scheme::Lossy, synchronous(25.0, 0.0))],
            ..paper(0.0)
        };
        assert_eq!(hopeless.answer(0.0).scheme, Scheme::Lossy);
    }
}
