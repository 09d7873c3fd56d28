//! The speed of memory, measured as STREAM does, and a solver's share of it.
//!
//! Source: J. D. McCalpin, Memory Bandwidth and Machine Balance in Current High Performance
//! Computers, IEEE TCCA Newsletter 1995, <https://www.cs.virginia.edu/stream/>. The triad counts 24
//! bytes per element: two reads and one write, the line fetched before a write not counted; solvers
//! count the same way ([`Method::bytes_per_iteration`]). Triad and solver take turns, so that a
//! busy machine slows both; medians count.

use std::time::Duration;

use recoup_core::{Clock, SolveError, Status};

use crate::{Method, Pool, Vector};

/// Bytes the triad moves per element.
const BYTES_PER_ELEMENT: f64 = 24.0;
/// Passes of the triad timed as one.
const PASSES: u32 = 4;

/// `a = b + 3 c` on arrays far larger than the caches.
pub struct Triad<'a> {
    pool: &'a Pool,
    vectors: [Vector; 3],
}

impl<'a> Triad<'a> {
    /// Three arrays of `n` values; STREAM asks for at least four times the last cache in each.
    #[must_use]
    pub fn new(pool: &'a Pool, n: usize) -> Self {
        Self { pool, vectors: Vector::several(pool, n) }
    }

    /// Bytes per second of a few passes.
    #[must_use]
    pub fn bytes_per_second(&mut self, clock: &dyn Clock) -> f64 {
        let start = clock.now();
        for _ in 0..PASSES {
            self.pass();
        }
        let bytes = BYTES_PER_ELEMENT * f64::from(PASSES) * self.vectors[0].len() as f64;
        bytes / seconds(clock.now().saturating_sub(start))
    }

    /// a = b + 3 c
    fn pass(&mut self) {
        let [a, b, c] = &mut self.vectors;
        let b = &b[..];
        let c = &c[..];
        self.pool.for_rows(b.len(), &mut a[..], |rows, a| {
            for ((a, b), c) in a.iter_mut().zip(&b[rows.clone()]).zip(&c[rows]) {
                *a = b + 3.0 * c;
            }
        });
    }
}

/// The speed of a solver and of the triad, medians of all repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roofline {
    /// Speed of the triad, on the same threads in the same run.
    pub triad_bytes_per_second: f64,
    /// Time of one iteration.
    pub seconds_per_iteration: f64,
    /// [`Method::bytes_per_iteration`].
    pub bytes_per_iteration: f64,
    /// Model bytes over time and triad, the median of the repeats' own fractions.
    pub fraction: f64,
}

/// Number and length of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Turns of triad and solver; 5 at least for a median worth its name.
    pub count: usize,
    /// Iterations of the solver in each turn.
    pub iterations: u32,
}

/// Measures triad and solver in turns. The solver continues from where it stands and keeps what
/// it wins.
///
/// # Errors
/// What a step reports; [`SolveError::Parameter`] when the solver stops before the repeats are
/// through.
pub fn measure(
    triad: &mut Triad<'_>,
    method: &mut dyn Method,
    repeats: Repeats,
    clock: &dyn Clock,
) -> Result<Roofline, SolveError> {
    let mut turns = Vec::with_capacity(repeats.count);
    for _ in 0..repeats.count {
        let before = triad.bytes_per_second(clock);
        let step = seconds_per_step(method, repeats.iterations, clock)?;
        let after = triad.bytes_per_second(clock);
        turns.push([(before + after) / 2.0, step]);
    }
    let bytes = method.bytes_per_iteration();
    Ok(Roofline {
        triad_bytes_per_second: median(turns.iter().map(|turn| turn[0])),
        seconds_per_iteration: median(turns.iter().map(|turn| turn[1])),
        bytes_per_iteration: bytes,
        fraction: median(turns.iter().map(|[triad, step]| bytes / step / triad)),
    })
}

/// Mean seconds of `iterations` steps.
fn seconds_per_step(method: &mut dyn Method, iterations: u32, clock: &dyn Clock) -> Result<f64, SolveError> {
    let start = clock.now();
    for _ in 0..iterations {
        let progress = method.step()?;
        if progress.status != Status::Running {
            let expected = "more than the repeats take";
            return Err(SolveError::Parameter { what: "iterations", value: progress.iteration as f64, expected });
        }
    }
    Ok(seconds(clock.now().saturating_sub(start)) / f64::from(iterations))
}

/// Seconds, never zero, so that a coarse clock gives no infinite speed.
fn seconds(duration: Duration) -> f64 {
    duration.max(Duration::from_nanos(1)).as_secs_f64()
}

/// The middle value, the upper one of two; NaN of none.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}
