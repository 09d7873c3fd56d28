//! Does a slow storage get the codec with the better ratio, and a fast one the fast codec?

use std::path::Path;

use recoup::core::{CodecId, Scheme};
use recoup::model::failures::Never;

use crate::support::Problem;

/// Codecs of the iterate, version after version.
fn codecs(dir: &Path, bytes_per_second: f64) -> Vec<CodecId> {
    let problem = Problem::poisson(24);
    let builder = recoup::open(dir).system(problem.a.clone(), problem.b.clone()).scheme(Scheme::Lossy);
    let session = builder.every(15).keep(100).bandwidth(bytes_per_second).build().unwrap();
    let run = problem.run("cg", Some(session), Never);
    assert!(run.failed.is_empty() && run.saved.len() > 3, "{:?}", run.failed);
    let reader = recoup::io::Hdf5Store::open(dir, "solve", recoup::io::Access::Read).unwrap();
    let codec = |version: u64| recoup::core::Store::manifest(&reader, version).unwrap().frames[0].codec;
    run.saved.iter().map(|saved| codec(saved.version)).collect()
}

#[test]
fn the_codec_follows_the_bandwidth_from_the_second_version_on() {
    let slow = tempfile::tempdir().unwrap();
    let fast = tempfile::tempdir().unwrap();
    let on_slow = codecs(slow.path(), 5e4);
    assert_eq!(on_slow[0], CodecId::Qb);
    assert!(on_slow[1..].iter().all(|codec| *codec == CodecId::Pco), "{on_slow:?}");
    assert!(codecs(fast.path(), 1e12).iter().all(|codec| *codec == CodecId::Qb));
}
