//! `--roofline`: the solver's share of the memory bandwidth, both measured in turns.

use anyhow::{Result, bail};
use recoup::SystemClock;
use recoup::solvers::roofline::{Repeats, Triad, measure as measure_turns};
use serde::Serialize;

use crate::method::Setup;
use crate::solved::SolveReport;

/// Values in each array of the triad: 128 MiB, beyond the caches.
const TRIAD_VALUES: usize = 1 << 24;
/// Turns of triad and solver.
const TURNS: usize = 7;
/// Time of a turn of the solver.
const TURN_SECONDS: f64 = 0.25;
/// A tolerance no solver reaches while it is timed.
const NEVER: f64 = 1e-250;

/// The keys `--roofline` adds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RooflineReport {
    /// Bandwidth of the triad, the median of all turns.
    pub(crate) triad_bytes_per_second: f64,
    /// Model bytes over time and triad.
    pub(crate) roofline_fraction: f64,
    /// Time of one iteration in the turns.
    pub(crate) roofline_seconds_per_iteration: f64,
    /// Turns taken.
    pub(crate) roofline_turns: usize,
}

/// Measures; `solved` tells how many iterations there are to time.
pub(crate) fn measure(setup: &Setup<'_>, solved: &SolveReport) -> Result<RooflineReport> {
    let mut solver = setup.make_to(NEVER)?;
    let cycle = solver.cycle_length();
    let wanted = (TURN_SECONDS / solved.seconds_per_iteration.max(1e-9)).ceil() as u64;
    let available = solved.iterations / TURNS as u64 / cycle * cycle;
    let iterations = wanted.next_multiple_of(cycle).min(available);
    if iterations == 0 {
        let needed = TURNS as u64 * cycle;
        bail!("--roofline needs a solve of {needed} iterations or more, {} found: lower --rtol", solved.iterations);
    }
    let mut triad = Triad::new(&setup.problem().pool, TRIAD_VALUES);
    let repeats = Repeats { count: TURNS, iterations: iterations as u32 };
    let found = measure_turns(&mut triad, solver.as_mut(), repeats, &SystemClock::new())?;
    Ok(RooflineReport {
        triad_bytes_per_second: found.triad_bytes_per_second,
        roofline_fraction: found.fraction,
        roofline_seconds_per_iteration: found.seconds_per_iteration,
        roofline_turns: TURNS,
    })
}
