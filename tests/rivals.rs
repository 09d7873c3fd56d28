//! Does a slow storage get the codec with the better ratio, and a fast one the fast codec?

use std::path::Path;

use recoup::core::{CodecId, Scheme};
use recoup::model::failures::Never;

use crate::support::Problem;

/// Codec and bytes of the iterate, version after version.
fn coded(dir: &Path, bytes_per_second: f64, only: Option<CodecId>) -> Vec<(CodecId, u64)> {
    let problem = Problem::poisson(24);
    let builder = recoup::open(dir).system(problem.a.clone(), problem.b.clone()).scheme(Scheme::Lossy);
    let builder = only.into_iter().fold(builder, recoup::Builder::lossy_codec);
    let session = builder.every(15).keep(100).bandwidth(bytes_per_second).build().unwrap();
    let run = problem.run("cg", Some(session), Never);
    assert!(run.failed.is_empty() && run.saved.len() > 3, "{:?}", run.failed);
    let reader = recoup::io::Hdf5Store::open(dir, "solve", recoup::io::Access::Read).unwrap();
    let frame = |version: u64| recoup::core::Store::manifest(&reader, version).unwrap().frames[0].clone();
    run.saved.iter().map(|saved| frame(saved.version)).map(|frame| (frame.codec, frame.payload_bytes)).collect()
}

/// Bytes of all versions but the first, which the planned codec has.
fn later_bytes(coded: &[(CodecId, u64)]) -> u64 {
    coded[1..].iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn the_codec_follows_the_bandwidth_from_the_second_version_on() {
    const SLOW: f64 = 5e4;
    let dir = || tempfile::tempdir().unwrap();
    let on_slow = coded(dir().path(), SLOW, None);
    assert_eq!(on_slow[0].0, CodecId::Qb);
    assert!(on_slow[1..].iter().all(|(codec, _)| *codec == on_slow[1].0 && *codec != CodecId::Qb), "{on_slow:?}");
    let fixed = [CodecId::Qb, CodecId::Pco, CodecId::Pyramid].map(|id| (id, coded(dir().path(), SLOW, Some(id))));
    let fewest = fixed.iter().map(|(_, coded)| later_bytes(coded)).min().unwrap();
    // A sample decides, in front of versions that are not there yet.
    assert!(later_bytes(&on_slow) as f64 <= 1.02 * fewest as f64, "{on_slow:?}, alone: {fixed:?}");
    assert!(coded(dir().path(), 1e12, None).iter().all(|(codec, _)| *codec == CodecId::Qb));
}
