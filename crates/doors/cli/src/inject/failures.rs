//! The failures of one run: at named iterations, at random times, as losses or flipped bits.

use std::time::Duration;

use recoup::core::{Bit, FailureKind, FailureSource, FlipTarget};
use recoup::model::Rng;
use recoup::model::failures::{AtIterations, Exponential, Flips, Never};

use crate::options::FailureChoice;
use crate::options::protection::ProtectionArgs;

/// Returns failures as the options ask for them. Those of a killed process come from outside.
pub(crate) fn source(args: &ProtectionArgs, seed: u64) -> Box<dyn FailureSource> {
    let mtti = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    match (&args.failures, args.mtti_seconds()) {
        (Some(FailureChoice::At(iterations)), _) => Box::new(AtIterations::new(iterations)),
        (Some(FailureChoice::FlipAt(flips)), _) => Box::new(AtIterations::with_kinds(drawn(flips, seed))),
        (Some(FailureChoice::Inject), Some(seconds)) => Box::new(Exponential::new(mtti(seconds), seed)),
        (Some(FailureChoice::Flips), Some(seconds)) => Box::new(Flips::new(mtti(seconds), seed)),
        _ => Box::new(Never),
    }
}

/// Draws a bit for each flip from the seed.
fn drawn(flips: &[(u64, Option<String>)], seed: u64) -> Vec<(u64, FailureKind)> {
    let mut rng = Rng::new(seed);
    let kind = |(iteration, variable): &(u64, Option<String>)| {
        let target = variable.clone().map_or(FlipTarget::Iterate, FlipTarget::Named);
        (*iteration, FailureKind::BitFlip { target, bit: Bit::Drawn(rng.next_u64()) })
    };
    flips.iter().map(kind).collect()
}
