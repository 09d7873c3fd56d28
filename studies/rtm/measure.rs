//! Rounds of all ways in turn, and what each costs and changes.

use recoup::SystemClock;

use crate::Failed;
use crate::experiment::Experiment;
use crate::options::Options;
use crate::usage::Usage;
use crate::ways::{self, Way};

/// Sums of all shots.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stack {
    pub(crate) image: Vec<f64>,
    pub(crate) gradient: Vec<f64>,
    pub(crate) misfit: f64,
}

/// A way, measured.
#[derive(Clone, Debug)]
pub(crate) struct WayFigures {
    pub(crate) way: Way,
    pub(crate) stack: Stack,
    /// Most bytes of states in memory at a time.
    pub(crate) state_bytes_max: u64,
    /// Forward steps of all shots.
    pub(crate) forward_steps: usize,
    /// Medians, least and greatest of the rounds.
    pub(crate) seconds: Spread,
    /// Seconds over those of all in memory, in the same round.
    pub(crate) time_ratio: Spread,
    pub(crate) processor_seconds: f64,
    pub(crate) resident_bytes: u64,
    /// Relative 2-norms of the differences from all in memory.
    pub(crate) errors: Errors,
}

/// Relative 2-norms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Errors {
    pub(crate) image: f64,
    /// The image below half of the depth, where the sources are far.
    pub(crate) image_deep: f64,
    pub(crate) gradient: f64,
}

/// Median and extremes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) greatest: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let (Some(&least), Some(&greatest)) = (values.first(), values.last()) else { return Self::default() };
        let half = values.len() / 2;
        let median = if values.len() % 2 == 1 { values[half] } else { 0.5 * (values[half - 1] + values[half]) };
        Self { median, least, greatest }
    }
}

/// One run of a way.
struct WayRun {
    usage: Usage,
    stack: Stack,
    state_bytes_max: u64,
    forward_steps: usize,
}

/// Measures all ways, each round in another order.
///
/// # Errors
/// When a way fails, or changes a bit that it must keep.
pub(crate) fn measure(experiment: &Experiment, options: &Options) -> Result<Vec<WayFigures>, Failed> {
    let ways = ways::all(experiment, options)?;
    let clock = SystemClock::new();
    let mut runs: Vec<Vec<WayRun>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for position in 0..ways.len() {
            let index = (round + position) % ways.len();
            runs[index].push(run(&clock, experiment, &ways[index])?);
        }
    }
    let figures: Vec<WayFigures> =
        ways.iter().zip(&runs).map(|pair| figures(experiment, *pair.0, pair.1, &runs[0])).collect();
    match figures.iter().find(|of_way| of_way.way.is_exact() && of_way.stack != figures[0].stack) {
        Some(figures) => Err(format!("{}: its image is not that of all in memory", figures.way.name()).into()),
        None => Ok(figures),
    }
}

/// Images all shots.
fn run(clock: &SystemClock, experiment: &Experiment, way: &Way) -> Result<WayRun, Failed> {
    let zeros = vec![0.0; experiment.grid.n_cells()];
    let stack = Stack { image: zeros.clone(), gradient: zeros, misfit: 0.0 };
    let mut sum = WayRun { usage: Usage::default(), stack, state_bytes_max: 0, forward_steps: 0 };
    for shot in &experiment.shots {
        let (usage, imaged) = Usage::of(clock, || way.image(shot));
        let imaged = imaged?;
        sum.usage.elapsed += usage.elapsed;
        sum.usage.processor_seconds += usage.processor_seconds;
        sum.usage.resident_bytes = sum.usage.resident_bytes.max(usage.resident_bytes);
        sum.state_bytes_max = sum.state_bytes_max.max(imaged.state_bytes_max);
        sum.forward_steps += imaged.forward_steps;
        sum.stack.misfit += imaged.misfit;
        add(&mut sum.stack.image, &imaged.sums.image);
        add(&mut sum.stack.gradient, &imaged.sums.gradient);
    }
    Ok(sum)
}

fn add(sum: &mut [f64], values: &[f32]) {
    for (sum, &value) in sum.iter_mut().zip(values) {
        *sum += f64::from(value);
    }
}

fn figures(experiment: &Experiment, way: Way, runs: &[WayRun], of_memory: &[WayRun]) -> WayFigures {
    let seconds = |run: &WayRun| run.usage.elapsed.as_secs_f64();
    let ratios = runs.iter().zip(of_memory).map(|pair| seconds(pair.0) / seconds(pair.1));
    let exact = &of_memory[0].stack;
    let stack = &runs[0].stack;
    let deep = experiment.grid.plane() * (experiment.grid.extents[2] / 2);
    let errors = Errors {
        image: relative_difference(&stack.image, &exact.image),
        image_deep: relative_difference(&stack.image[deep..], &exact.image[deep..]),
        gradient: relative_difference(&stack.gradient, &exact.gradient),
    };
    WayFigures {
        way,
        stack: stack.clone(),
        state_bytes_max: runs[0].state_bytes_max,
        forward_steps: runs[0].forward_steps,
        seconds: Spread::of(runs.iter().map(seconds).collect()),
        time_ratio: Spread::of(ratios.collect()),
        processor_seconds: Spread::of(runs.iter().map(|run| run.usage.processor_seconds).collect()).median,
        resident_bytes: runs.iter().map(|run| run.usage.resident_bytes).max().unwrap_or_default(),
        errors,
    }
}

/// `||a - b|| / ||b||`
fn relative_difference(a: &[f64], b: &[f64]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|pair| (pair.0 - pair.1).powi(2)).sum();
    (apart / b.iter().map(|value| value * value).sum::<f64>()).sqrt()
}
