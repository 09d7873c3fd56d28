//! Is a checkpoint that does not fit refused by name, before anything is overwritten?

use recoup::core::{Difference, Evidence, Registered, Resume, Scheme};
use recoup::pipeline::PipelineError;
use recoup::solvers::{Csr, RightHandSide};

use crate::support::{Problem, plan};

#[test]
fn another_problems_checkpoint_is_refused_by_fingerprint() {
    let dir = tempfile::tempdir().unwrap();
    Problem::poisson(8).save("cg", dir.path(), plan(Scheme::Exact), 5, 6);
    let mut theirs = Problem::poisson(8);
    theirs.b = theirs.b.iter().map(|b| b * 2.0).collect();
    let mut session = theirs.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    let mut solver = theirs.solver("cg").unwrap();
    let before = theirs.true_residual(solver.as_ref());
    let refused = session.restore(solver.as_mut());
    assert!(matches!(refused, Err(PipelineError::OtherProblem { version: 5, .. })), "{refused:?}");
    assert_eq!(theirs.true_residual(solver.as_ref()).to_bits(), before.to_bits());
}

/// `A + shift I` for the Laplacian A, and the right-hand side of `of`.
fn shifted(of: &Problem, shift: f64) -> Problem {
    let mut starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in 0..of.a.n() {
        let (ours, entries) = of.a.row(row);
        columns.extend_from_slice(ours);
        values.extend(ours.iter().zip(entries).map(|(&column, a)| if column as usize == row { a + shift } else { *a }));
        starts.push(columns.len());
    }
    let mut problem = Problem::of(Csr::new(starts, columns, values).unwrap(), RightHandSide::Random { seed: 7 });
    problem.b = of.b.clone();
    problem
}

#[test]
fn another_matrix_of_the_same_size_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Problem::poisson(8);
    ours.save("cg", dir.path(), plan(Scheme::Exact), 5, 6);
    let theirs = shifted(&ours, 50.0);
    let mut session = theirs.builder(dir.path(), plan(Scheme::Exact), 5).build().unwrap();
    let refused = session.restore(theirs.solver("cg").unwrap().as_mut()).unwrap_err();
    let difference = |error: &PipelineError| match error {
        PipelineError::OtherProblem { difference, .. } => Some(*difference),
        _ => None,
    };
    assert!(matches!(difference(&refused), Some(Difference::Operator(Evidence::Hash { .. }))), "{refused}");
    assert!(refused.to_string().contains("another operator"), "{refused}");
}

#[test]
fn iterate_of_another_matrix_is_taken_only_where_it_is_no_worse() {
    let ours = Problem::poisson(8);
    for (shift, is_taken) in [(50.0, false), (1e-3, true)] {
        let dir = tempfile::tempdir().unwrap();
        ours.save("cg", dir.path(), plan(Scheme::Exact), 5, 6);
        let theirs = shifted(&ours, shift);
        let builder = theirs.builder(dir.path(), plan(Scheme::Exact), 5).same_operator(false);
        let mut session = builder.build().unwrap();
        let mut solver = theirs.solver("cg").unwrap();
        let before = theirs.true_residual(solver.as_ref());
        let restored = session.restore(solver.as_mut()).unwrap().unwrap();
        let guess = restored.guess.unwrap();
        assert_eq!(
            (restored.version, restored.resume, guess.is_taken()),
            (5, Resume::Restarted, is_taken),
            "{guess:?}"
        );
        let norm = if is_taken { guess.restored_norm } else { guess.own_norm };
        let found = theirs.true_residual(solver.as_ref());
        let rhs_norm = theirs.b.iter().map(|b| b * b).sum::<f64>().sqrt();
        // Two sums of 512 terms in other orders.
        assert!((found - norm / rhs_norm).abs() <= 512.0 * f64::EPSILON * found, "{found}, {guess:?}");
        assert!(found <= before);
    }
}

/// The variables of another method may bear the same names, and mean something else: of a solver
/// that says its name the iterate alone is taken. Registered variables are all wanted.
#[test]
fn of_another_methods_version_the_iterate_is_taken_or_a_missing_variable_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let problem = Problem::poisson(8);
    problem.save("jacobi", dir.path(), plan(Scheme::Exact), 3, 4);
    let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 3).build().unwrap();
    let mut solver = problem.solver("cg").unwrap();
    let owner: &mut dyn Registered = solver.as_mut();
    let refused = session.restore_with(&mut [owner]);
    assert!(matches!(&refused, Err(PipelineError::Lacks { variable, .. }) if variable == "p"), "{refused:?}");
    let restored = session.restore(solver.as_mut()).unwrap().unwrap();
    let expected = (3, Resume::Restarted, Some("jacobi"));
    assert_eq!((restored.version, restored.resume, restored.other_method.as_deref()), expected);
}
