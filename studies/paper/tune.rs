//! Ours, tuned as a site would: the bounds and the codec that cost least by Eq. 7 on the problem at
//! hand.
//!
//! Candidates are compared at instants of failure of their own; what the winner is worth is
//! measured at others.

use recoup::core::CodecId;

use crate::Failed;
use crate::measure::{Choice, INSTANTS, Profile, Protection};
use crate::problem::{Kind, Problem};
use crate::published;

/// Instants of a failure that candidates are compared at: none of them is one of [`INSTANTS`].
const SEARCH_INSTANTS: u64 = INSTANTS / 2;
/// Allowed growth of the residual, `||b - A x'|| <= (1 + theta) ||r||`.
const THETAS: [f64; 6] = [0.5, 2.0, 4.0, 10.0, 30.0, 100.0];
/// Allowed errors of CG's directions in the energy norm.
const DELTAS: [f64; 3] = [0.05, 0.1, 0.14];
/// Versions from one that stands alone to the next: a long chain is small to write and long to
/// read.
const KEYS: [usize; 4] = [recoup::KEY_EVERY, 4, 20, 40];
/// `None`: what the session chooses.
const CODECS: [Option<CodecId>; 3] = [None, Some(CodecId::Pco), Some(CodecId::Pyramid)];

/// The cheapest protection found by changing one setting at a time, in this order: codec, theta,
/// delta, the length of chains.
///
/// # Errors
/// When a run fails.
pub(crate) fn tuned(problem: &Problem) -> Result<Protection, Failed> {
    let start = Choice::Ours.of(problem.kind);
    let best = cheapest(problem, CODECS.map(|codec| Protection { codec, ..start }))?;
    let best = with_best_bounds(problem, best)?;
    cheapest(problem, KEYS.map(|key_every| Protection { key_every, ..best }))
}

/// The same protection with another codec. CG has its bounds tuned again: their best depends on
/// what a codec's errors do to its directions.
///
/// # Errors
/// When a run fails.
pub(crate) fn with_codec(
    problem: &Problem,
    protection: Protection,
    codec: Option<CodecId>,
) -> Result<Protection, Failed> {
    let own = Protection { codec, ..protection };
    match problem.kind {
        Kind::Cg => with_best_bounds(problem, own),
        Kind::Jacobi | Kind::Gmres => Ok(own),
    }
}

/// Only CG saves directions.
fn with_best_bounds(problem: &Problem, protection: Protection) -> Result<Protection, Failed> {
    let best = cheapest(problem, THETAS.map(|theta| Protection { theta, ..protection }))?;
    match problem.kind {
        Kind::Cg => cheapest(problem, DELTAS.map(|delta| Protection { delta, ..best })),
        Kind::Jacobi | Kind::Gmres => Ok(best),
    }
}

fn cheapest<const N: usize>(problem: &Problem, candidates: [Protection; N]) -> Result<Protection, Failed> {
    let mut best = (f64::INFINITY, candidates[0]);
    for candidate in candidates {
        let profile = Profile::at(problem, candidate, SEARCH_INSTANTS)?;
        let overhead = profile.costs(problem, published::MTTI_SECONDS, 1.0).overhead_fraction();
        if overhead < best.0 {
            best = (overhead, candidate);
        }
    }
    Ok(best.1)
}
