//! Is a state that is frozen, and not copied, saved as it was while the program overwrites it?

use std::sync::Arc;

use recoup::core::{
    Distribution, IncrementMode, Registered, Role, Scheme, Values, ValuesMut, Variable, VariableMut, Zones,
};
use recoup::pipeline::{Outcome, Session, StagingMode};
use recoup::snapshot::{Monitors, PageSize, TouchedRegion, WatchedRegion, WriteWatch};
use recoup_testkit::progress;

use crate::support::plan;

/// Two frames and a part of a third.
const LEN: usize = (2 << 20) + 12_345;
const VERSIONS: u64 = 4;

/// The value that a program has computed at a step.
fn value(step: u64, i: usize) -> f64 {
    (step * 1000) as f64 + i as f64
}

/// A program's state in one region.
trait Region: Zones {
    fn values(&self) -> &[f64];
    fn values_mut(&mut self) -> &mut [f64];
    /// Computes the step.
    fn compute(&mut self, step: u64);
}

impl Region for TouchedRegion<f64> {
    fn values(&self) -> &[f64] {
        self
    }

    fn values_mut(&mut self) -> &mut [f64] {
        self
    }

    fn compute(&mut self, step: u64) {
        for first in (0..LEN).step_by(5000) {
            let rows = first..LEN.min(first + 5000);
            self.write(rows.clone()).iter_mut().zip(rows).for_each(|(target, i)| *target = value(step, i));
        }
    }
}

impl Region for WatchedRegion<f64> {
    fn values(&self) -> &[f64] {
        self
    }

    fn values_mut(&mut self) -> &mut [f64] {
        self.as_mut_slice()
    }

    fn compute(&mut self, step: u64) {
        self.cells().iter().enumerate().for_each(|(i, cell)| cell.set(value(step, i)));
    }
}

struct Program<R>(R);

impl<R: Region> Registered for Program<R> {
    fn variables(&self) -> Vec<Variable<'_>> {
        let state = Variable::new("state", Role::Dynamic, Values::F64(self.0.values()), Distribution::RankLocal);
        vec![Variable { zones: Some(&self.0), ..state }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("state", ValuesMut::F64(self.0.values_mut()))]
    }
}

fn session(dir: &std::path::Path) -> Session {
    let builder = recoup::open(dir).plan(plan(Scheme::Exact)).increments(IncrementMode::Off);
    builder.staging(StagingMode::Touch).keep(100).build().unwrap()
}

/// Each step overwrites all of the state while the version before it is under way. A fresh process
/// restores every version.
fn saves_and_restores<R: Region>(make: impl Fn() -> R) {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program(make());
    let mut saving = session(dir.path());
    for step in 1..=VERSIONS {
        program.0.compute(step);
        saving.checkpoint(plan(Scheme::Exact), progress(step), &[&program]).unwrap();
    }
    program.0.compute(VERSIONS + 1);
    saving.wait().unwrap();
    let outcomes = saving.take_outcomes();
    let frozen = outcomes.iter().map(|outcome| match outcome {
        Outcome::Saved(saved) => saved.frozen_bytes,
        other => panic!("{other:?}"),
    });
    assert!(frozen.sum::<u64>() >= 8 * LEN as u64, "nothing was frozen");
    drop(saving);
    for version in (1..=VERSIONS).rev() {
        let mut restored = Program(make());
        let found = session(dir.path()).restore_with(&mut [&mut restored]).unwrap().unwrap();
        assert_eq!(found.version, version);
        assert!(restored.0.values().iter().enumerate().all(|(i, found)| *found == value(version, i)), "{version}");
        std::fs::remove_dir_all(dir.path().join("solve").join(format!("v{version:012}"))).unwrap();
    }
}

#[test]
fn regions_whose_writes_are_announced_are_saved_as_they_were() {
    saves_and_restores(|| TouchedRegion::zeros(LEN, PageSize::Small).unwrap());
}

#[test]
fn regions_whose_writes_the_system_sees_are_saved_as_they_were() {
    if let Err(reason) = Monitors::probe().watch {
        return println!("SKIPPED: {reason}");
    }
    let watch: Arc<WriteWatch> = WriteWatch::new().unwrap();
    saves_and_restores(|| WatchedRegion::zeros(&watch, LEN, PageSize::Small).unwrap());
}
