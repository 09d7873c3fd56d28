//! Do all ranks restore the same version, or refuse with the same verdict?

use std::path::{Path, PathBuf};

use recoup::comm::Threads;
use recoup::core::{CodecId, Comm, Distribution, Role, ValuesMut};
use recoup::pipeline::{PipelineError, Session, Variables};
use recoup_testkit::progress;

use crate::support::fixed;

const RANKS: usize = 3;

/// Each rank's part of a global vector, different at every iteration.
fn values(rank: usize, iteration: u64) -> Vec<f64> {
    (0..1000 + rank).map(|i| (i as f64 * 0.01 + iteration as f64).sin() + rank as f64).collect()
}

fn owner<'a>(rank: usize, x: &'a mut [f64], step: &'a mut [i64]) -> Variables<'a> {
    let first = (0..rank).map(|r| 1000 + r as u64).sum();
    let rows = Distribution::Rows { first, global: 3003 };
    Variables::new().with("x", Role::Iterate, ValuesMut::F64(x), rows).counter("step", step)
}

fn session(dir: &Path, comm: &dyn Comm) -> Result<Session, PipelineError> {
    let builder = recoup::open(dir).plan(fixed(CodecId::Pco, 1e-9)).every(5).keep(3);
    builder.build_on(comm).map_err(|e| match e {
        recoup::Error::Pipeline(e) => e,
        other => panic!("{other}"),
    })
}

/// Saves versions 5, 10 and 15 on every rank.
fn save(dir: &Path) {
    Threads::launch(RANKS, |comm| {
        let mut session = session(dir, &comm).unwrap();
        for iteration in 1..=15 {
            let mut x = values(comm.rank(), iteration);
            let mut step = [iteration as i64];
            session.step_with(progress(iteration), &[&owner(comm.rank(), &mut x, &mut step)]).unwrap();
        }
        session.wait().unwrap();
    });
}

/// What each rank of a job of `ranks` ranks restores: (version, step counter), or the refusal.
fn restore(dir: &Path, ranks: usize) -> Vec<Result<(u64, i64), String>> {
    Threads::launch(ranks, |comm| {
        let mut session = session(dir, &comm).map_err(|e| e.to_string())?;
        let mut x = values(comm.rank(), 0);
        let mut step = [0];
        let restored = {
            let mut owner = owner(comm.rank(), &mut x, &mut step);
            session.restore_with(&mut [&mut owner]).map_err(|e| e.to_string())?.unwrap()
        };
        let expected = values(comm.rank(), restored.version);
        assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() <= 1e-9));
        Ok((restored.version, step[0]))
    })
}

fn rank_file(dir: &Path, version: u64, rank: usize) -> PathBuf {
    dir.join("solve").join(format!("v{version:012}")).join(format!("rank-{rank:06}.h5"))
}

#[test]
fn ranks_agree_on_the_newest_version_whole_on_all_of_them() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path());
    let newest = std::fs::read(rank_file(dir.path(), 15, 1)).unwrap();
    assert_eq!(restore(dir.path(), RANKS), vec![Ok((15, 15)); RANKS]);
    // One rank's newest file is cut short: all ranks fall back together.
    std::fs::write(rank_file(dir.path(), 15, 1), &newest[..60]).unwrap();
    assert_eq!(restore(dir.path(), RANKS), vec![Ok((10, 10)); RANKS]);
}

#[test]
fn a_version_missing_on_one_rank_is_no_version() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path());
    std::fs::remove_file(rank_file(dir.path(), 15, 2)).unwrap();
    assert_eq!(restore(dir.path(), RANKS), vec![Ok((10, 10)); RANKS]);
}

#[test]
fn another_rank_count_is_refused_on_every_rank_with_both_numbers() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path());
    for ranks in [2, 4] {
        for refused in restore(dir.path(), ranks) {
            let message = refused.unwrap_err();
            assert!(message.contains("3 ranks") && message.contains(&format!("has {ranks}")), "{message}");
        }
    }
}

#[test]
fn all_versions_damaged_is_the_same_verdict_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    save(dir.path());
    for version in [5, 10, 15] {
        std::fs::write(rank_file(dir.path(), version, 0), b"gone").unwrap();
    }
    let refusals: Vec<String> = restore(dir.path(), RANKS).into_iter().map(Result::unwrap_err).collect();
    assert!(refusals[0].contains("no usable version"), "{}", refusals[0]);
    assert!(refusals.iter().all(|r| r == &refusals[0]), "{refusals:?}");
}
