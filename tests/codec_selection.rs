//! Does a slow storage get the codec with the better ratio, and a fast one the fast codec?

use std::sync::Arc;

use recoup::core::{CodecId, Resume, Scheme};
use recoup::model::failures::Never;
use recoup::pipeline::{Timing, VirtualCosts};
use recoup::solvers::RightHandSide;
use recoup::{Builder, VirtualClock};

use crate::support::Problem;

/// A storage so slow that bytes decide, in time that passes only where it is waited for.
fn slow(builder: Builder) -> Builder {
    const BYTES_PER_SECOND: f64 = 5e4;
    let costs = VirtualCosts {
        iteration_seconds: 0.0,
        product_seconds: 0.0,
        stage_bytes_per_second: f64::INFINITY,
        encode_bytes_per_second: f64::INFINITY,
        decode_bytes_per_second: f64::INFINITY,
        store_bytes_per_second: BYTES_PER_SECOND,
    };
    builder.clock(Arc::new(VirtualClock::new()), Timing::Virtual(costs)).bandwidth(BYTES_PER_SECOND)
}

/// Codec and bytes of the iterate, version after version, with options for the run.
fn coded(method: &str, problem: &Problem, options: impl Fn(Builder) -> Builder) -> Vec<(CodecId, u64)> {
    let dir = tempfile::tempdir().unwrap();
    let builder = recoup::open(dir.path()).system(problem.a.clone(), problem.b.clone()).scheme(Scheme::Lossy);
    let session = options(builder.every(10).keep(100)).build().unwrap();
    let run = problem.run(method, Some(session), Never);
    assert!(run.failed.is_empty() && run.saved.len() > 2, "{:?}, {}", run.failed, run.saved.len());
    let reader = recoup::io::Hdf5Store::open(dir.path(), "solve", recoup::io::Access::Read).unwrap();
    let frame = |version: u64| recoup::core::Store::manifest(&reader, version).unwrap().frames[0].clone();
    run.saved.iter().map(|saved| frame(saved.version)).map(|frame| (frame.codec, frame.payload_bytes)).collect()
}

/// Bytes of all versions but the first, which the planned codec has.
fn later_bytes(coded: &[(CodecId, u64)]) -> u64 {
    coded[1..].iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn the_codec_follows_the_bandwidth_from_the_second_version_on() {
    let cg = |options: &dyn Fn(Builder) -> Builder| coded("cg", &Problem::poisson(24), options);
    let on_slow = cg(&slow);
    assert_eq!(on_slow[0].0, CodecId::Qb);
    assert!(on_slow[1..].iter().all(|(codec, _)| *codec == on_slow[1].0 && *codec != CodecId::Qb), "{on_slow:?}");
    let alone = |id: CodecId| (id, cg(&|builder| slow(builder).lossy_codec(id)));
    let fixed = [CodecId::Qb, CodecId::Pco, CodecId::Pyramid].map(alone);
    let fewest = fixed.iter().map(|(_, coded)| later_bytes(coded)).min().unwrap();
    // A sample decides, in front of versions that are not there yet.
    assert!(later_bytes(&on_slow) as f64 <= 1.02 * fewest as f64, "{on_slow:?}, alone: {fixed:?}");
    assert!(cg(&|builder| builder.bandwidth(1e12)).iter().all(|(codec, _)| *codec == CodecId::Qb));
}

#[test]
fn a_symmetric_state_is_kept_so_for_methods_that_gain_by_it() {
    let problem = Problem::poisson_with(24, RightHandSide::Ones);
    let has_pyramids = |method: &str| coded(method, &problem, slow).iter().any(|(codec, _)| *codec == CodecId::Pyramid);
    assert_eq!(["cg", "gmres", "jacobi"].map(has_pyramids), [false, true, true]);
}

#[test]
fn smooth_errors_are_kept_from_the_iterate_of_a_deflated_restart() {
    let problem = Problem::poisson_with(40, RightHandSide::Smooth);
    let has_pyramids = |resume: Resume| {
        let versions = coded("cg", &problem, |builder| slow(builder).lossy_resume(resume));
        versions.iter().any(|(codec, _)| *codec == CodecId::Pyramid)
    };
    assert_eq!([Resume::Deflated, Resume::Restarted].map(has_pyramids), [false, true]);
}
