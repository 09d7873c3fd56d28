//! The model's formulas, for numbers.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use recoup::core::{Cost, Scheme};
use recoup::model::break_even::LossyBreakEven;
use recoup::model::decide::Question;
use recoup::model::extra_iterations::Stationary;
use recoup::model::interval::Checkpointing;
use recoup::model::overhead::CheckpointTiming;
use recoup::model::simulate::Simulation;

use crate::options::above_zero;
use crate::refused;

/// Returns Young's, Daly's and the exact interval, in seconds.
#[pyfunction]
pub(crate) fn interval(mtti: f64, ckpt: f64) -> PyResult<(f64, f64, f64)> {
    let of = checkpointing(mtti, ckpt)?;
    Ok((of.young_seconds(), of.daly_seconds(), of.exact_seconds()))
}

fn checkpointing(mtti: f64, ckpt: f64) -> PyResult<Checkpointing> {
    Ok(Checkpointing { mtti_seconds: above_zero("mtti", mtti)?, checkpoint_seconds: above_zero("ckpt", ckpt)? })
}

/// Returns the overhead as a fraction of the productive time, at Young's interval.
#[pyfunction]
pub(crate) fn overhead(mtti: f64, ckpt: f64, recover: f64, extra_seconds: f64) -> PyResult<f64> {
    checkpointing(mtti, ckpt)?;
    let timing = CheckpointTiming {
        mtti_seconds: mtti,
        blocking_seconds: ckpt,
        drain_seconds: 0.0,
        recovery_seconds: at_least_zero("recover", recover)?,
        extra_seconds: at_least_zero("extra_iterations * t_iter", extra_seconds)?,
        safe_point_seconds: 0.0,
    };
    Ok(timing.overhead_fraction())
}

fn at_least_zero(name: &str, value: f64) -> PyResult<f64> {
    if value >= 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(refused(format!("{name} is {}, expected a finite number, 0 or above", recoup::core::short_number(value))))
    }
}

/// Returns the extra iterations up to which lossy pays (Theorem 1).
#[pyfunction]
pub(crate) fn max_extra_iterations(mtti: f64, ckpt_traditional: f64, ckpt_lossy: f64, t_iter: f64) -> PyResult<f64> {
    let of = LossyBreakEven {
        mtti_seconds: above_zero("mtti", mtti)?,
        traditional_seconds: above_zero("ckpt_traditional", ckpt_traditional)?,
        lossy_seconds: above_zero("ckpt_lossy", ckpt_lossy)?,
        iteration_seconds: above_zero("t_iter", t_iter)?,
    };
    Ok(of.max_extra_iterations())
}

/// Returns the extra iterations of a stationary method, low and high (Theorem 2).
#[pyfunction]
pub(crate) fn stationary(iterations: f64, spectral_radius: f64, error_bound: f64) -> PyResult<(f64, f64)> {
    if above_zero("spectral_radius", spectral_radius)? >= 1.0 {
        return Err(refused(format!("spectral_radius is {spectral_radius}, expected a number below 1")));
    }
    let iterations = above_zero("iterations", iterations)?;
    let error_bound = above_zero("error_bound", error_bound)?;
    let found = Stationary { iterations, spectral_radius, error_bound }.extra_iterations();
    Ok((found.low, found.high))
}

/// A job and the times of its checkpoints, by the names of the Python half.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ModelJob {
    mtti: f64,
    t_iter: f64,
    iterations: f64,
    ckpt_traditional: f64,
    ckpt_lossless: Option<f64>,
    ckpt_lossy: Option<f64>,
    extra_iterations: f64,
}

impl ModelJob {
    fn question(&self) -> PyResult<Question> {
        let given = [
            (Scheme::Traditional, "ckpt_traditional", Some(self.ckpt_traditional), 0.0),
            (Scheme::Lossless, "ckpt_lossless", self.ckpt_lossless, 0.0),
            (Scheme::Lossy, "ckpt_lossy", self.ckpt_lossy, self.extra_iterations),
        ];
        let mut costs = vec![(Scheme::None, Cost::default())];
        for (scheme, name, seconds, extra_iterations) in given {
            let Some(seconds) = seconds else { continue };
            above_zero(name, seconds)?;
            let cost = Cost {
                blocking_seconds: seconds,
                recovery_seconds: seconds,
                ratio: self.ckpt_traditional / seconds,
                extra_iterations: at_least_zero("extra_iterations", extra_iterations)?,
                ..Cost::default()
            };
            costs.push((scheme, cost));
        }
        let iteration_seconds = above_zero("t_iter", self.t_iter)?;
        Ok(Question {
            mtti_seconds: above_zero("mtti", self.mtti)?,
            iteration_seconds,
            remaining_seconds: above_zero("iterations", self.iterations)? * iteration_seconds,
            at_risk_seconds: 0.0,
            asynchronous: false,
            costs,
            safe_point_seconds: iteration_seconds,
        })
    }
}

/// The cheapest scheme, its interval, and the reasons, by the names of the Python half.
#[derive(IntoPyObject)]
pub(crate) struct ModelDecision {
    scheme: String,
    interval_seconds: f64,
    expected_overhead: BTreeMap<String, f64>,
    max_extra_iterations: Option<f64>,
    why: String,
}

/// Decides which scheme to save with.
#[pyfunction]
pub(crate) fn decide(job: ModelJob) -> PyResult<ModelDecision> {
    let question = job.question()?;
    let answer = question.answer(0.0);
    Ok(ModelDecision {
        scheme: answer.scheme.to_string(),
        interval_seconds: answer.interval_seconds,
        expected_overhead: answer.expected_overhead.iter().map(|(scheme, of)| (scheme.to_string(), *of)).collect(),
        max_extra_iterations: answer.max_extra_iterations,
        why: question.why_of(&answer, answer.scheme),
    })
}

/// The result of simulating one scheme, by the names of the Python half.
#[derive(IntoPyObject)]
pub(crate) struct SimulatedOverhead {
    interval_seconds: f64,
    expected_overhead: f64,
    overhead: f64,
    half_width: f64,
    failures_mean: f64,
    checkpoints_mean: f64,
    unfinished: u32,
}

/// Simulates each scheme under failures.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    job: ModelJob,
    trials: u32,
    seed: u64,
) -> PyResult<BTreeMap<String, SimulatedOverhead>> {
    if trials < 2 {
        return Err(refused(format!("trials is {trials}, expected 2 or more")));
    }
    let question = job.question()?;
    let answer = question.answer(0.0);
    let run = |(scheme, cost): &(Scheme, Cost)| {
        let timing = question.timing(cost);
        let interval_seconds = answer.interval(*scheme);
        let work_seconds = question.remaining_seconds;
        let outcome = Simulation { timing, interval_seconds, work_seconds, trials, seed }.run();
        let found = SimulatedOverhead {
            interval_seconds,
            expected_overhead: answer.expected(*scheme),
            overhead: outcome.overhead_fraction.mean,
            half_width: outcome.overhead_fraction.half_width,
            failures_mean: outcome.failures_mean,
            checkpoints_mean: outcome.checkpoints_mean,
            unfinished: outcome.unfinished,
        };
        (scheme.to_string(), found)
    };
    Ok(py.detach(|| question.costs.iter().map(run).collect()))
}
