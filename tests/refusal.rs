//! Is a checkpoint that does not fit refused by name, before anything is overwritten?

use recoup::core::Scheme;
use recoup::pipeline::PipelineError;

use crate::support::{Problem, plan};

#[test]
fn another_problems_checkpoint_is_refused_by_fingerprint() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Problem::poisson(8);
    let mut session = ours.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    let mut solver = ours.solver("cg").unwrap();
    for _ in 0..6 {
        solver.step().unwrap();
        session.step(solver.as_ref()).unwrap();
    }
    drop(session);

    let mut theirs = Problem::poisson(8);
    theirs.b = theirs.b.iter().map(|b| b * 2.0).collect();
    let mut session = theirs.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    let mut solver = theirs.solver("cg").unwrap();
    let before = theirs.true_residual(solver.as_ref());
    let refused = session.restore(solver.as_mut());
    assert!(matches!(refused, Err(PipelineError::OtherProblem { version: 5, .. })), "{refused:?}");
    assert_eq!(theirs.true_residual(solver.as_ref()).to_bits(), before.to_bits());
}

#[test]
fn a_version_without_a_registered_variable_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let problem = Problem::poisson(8);
    let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 3).build().unwrap();
    let mut solver = problem.solver("jacobi").unwrap();
    for _ in 0..4 {
        solver.step().unwrap();
        session.step(solver.as_ref()).unwrap();
    }
    drop(session);
    let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 3).build().unwrap();
    let refused = session.restore(problem.solver("cg").unwrap().as_mut());
    assert!(matches!(&refused, Err(PipelineError::Variable { variable, .. }) if variable == "p"), "{refused:?}");
}
