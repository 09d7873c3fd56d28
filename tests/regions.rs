//! Is a state that is frozen, and not copied, saved as it was while the program overwrites it?

use recoup::core::{Distribution, IncrementMode, Registered, Role, Scheme, Values, ValuesMut, Variable, VariableMut};
use recoup::pipeline::{Outcome, Session, StagingMode};
use recoup::snapshot::{PageSize, TouchedRegion};
use recoup_testkit::progress;

use crate::support::plan;

/// Two frames and a part of a third.
const LEN: usize = (2 << 20) + 12_345;
const VERSIONS: u64 = 4;

/// The value that a program has computed at a step.
fn value(step: u64, i: usize) -> f64 {
    (step * 1000) as f64 + i as f64
}

struct Program(TouchedRegion<f64>);

impl Program {
    fn new() -> Self {
        Self(TouchedRegion::zeros(LEN, PageSize::Small).unwrap())
    }

    /// Computes the step.
    fn compute(&mut self, step: u64) {
        for first in (0..LEN).step_by(5000) {
            let rows = first..LEN.min(first + 5000);
            self.0.write(rows.clone()).iter_mut().zip(rows).for_each(|(target, i)| *target = value(step, i));
        }
    }
}

impl Registered for Program {
    fn variables(&self) -> Vec<Variable<'_>> {
        let state = Variable::new("state", Role::Dynamic, Values::F64(&self.0), Distribution::RankLocal);
        vec![Variable { zones: Some(&self.0), ..state }]
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        vec![VariableMut::new("state", ValuesMut::F64(&mut self.0))]
    }
}

fn session(dir: &std::path::Path) -> Session {
    let builder = recoup::open(dir).plan(plan(Scheme::Exact)).increments(IncrementMode::Off);
    builder.staging(StagingMode::Touch).keep(100).build().unwrap()
}

/// Each step overwrites all of the state while the version before it is under way. A fresh process
/// restores every version.
#[test]
fn regions_whose_writes_are_announced_are_saved_as_they_were() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = Program::new();
    let mut saving = session(dir.path());
    for step in 1..=VERSIONS {
        program.compute(step);
        saving.checkpoint(plan(Scheme::Exact), progress(step), &[&program]).unwrap();
    }
    program.compute(VERSIONS + 1);
    saving.wait().unwrap();
    let outcomes = saving.take_outcomes();
    let frozen = outcomes.iter().map(|outcome| match outcome {
        Outcome::Saved(saved) => saved.frozen_bytes,
        other => panic!("{other:?}"),
    });
    assert!(frozen.sum::<u64>() >= 8 * LEN as u64, "nothing was frozen");
    drop(saving);
    for version in (1..=VERSIONS).rev() {
        let mut restored = Program::new();
        let found = session(dir.path()).restore_with(&mut [&mut restored]).unwrap().unwrap();
        assert_eq!(found.version, version);
        assert!(restored.0.iter().enumerate().all(|(i, found)| *found == value(version, i)), "{version}");
        std::fs::remove_dir_all(dir.path().join("solve").join(format!("v{version:012}"))).unwrap();
    }
}
