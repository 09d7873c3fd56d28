//! The suite that every solver must pass: it converges truly, lends its variables properly, and
//! comes back from a version.
//!
//! The suite sees a solver through `recoup_core::Iteration` alone and knows the system only by a
//! plain residual, so it judges all methods alike. What a version does not hold is poisoned with
//! NaN before a resume.

use std::collections::BTreeMap;

use recoup_core::{Iteration, MethodProfile, Progress, Resume, Role, SafePoint, SolveError, Status, Variable};

use crate::doubles::{doubles, set_doubles};

/// Iterations after which a small problem counts as not solved.
const ITERATIONS_MAX: u64 = 20_000;
/// Instants in the course of a solve at which it is killed, at most.
const KILLS_MAX: usize = 60;
/// Instants at its end, where it decides whether it has converged.
const LAST_KILLS: usize = 3;

/// A small problem and how to start its solver.
pub struct SolverCase<'c, 's> {
    /// A fresh solver, always from the same initial guess.
    pub make: &'c dyn Fn() -> Box<dyn Iteration + 's>,
    /// `||b - A x||`, computed plainly.
    pub true_residual: &'c dyn Fn(&[f64]) -> f64,
    /// The tolerance on `||r|| / ||b||` the solver was made with.
    pub rtol: f64,
    /// Profile of the method in the table of methods.
    pub profile: MethodProfile,
    /// Resumes that the method offers in addition to an exact and a restarted one.
    pub resumes: &'c [Resume],
}

/// Runs every check.
///
/// # Panics
/// When the solver fails one.
pub fn check_solver(case: &SolverCase<'_, '_>) {
    provided_answers_are_replaced(case);
    converged_means_the_true_residual(case);
    variables_are_lent_in_one_order(case);
    revision_changes_with_the_variables(case);
    exact_resume_is_bitwise_at_every_safe_point(case);
    every_resume_converges_from_what_its_version_holds(case);
    versions_in_mid_cycle_restart_from_their_iterate(case);
    unknown_resumes_are_refused(case);
}

/// The solver names itself, its profile and its tolerance: the answers that the trait provides
/// would compile, and mislead a policy.
///
/// # Panics
/// When it does not.
pub fn provided_answers_are_replaced(case: &SolverCase<'_, '_>) {
    let solver = (case.make)();
    assert!(solver.method().is_some(), "the solver has no name");
    assert_eq!(solver.profile(), case.profile, "profile of {:?}", solver.method());
    let tolerance = solver.tolerance().expect("a tolerance");
    // It is divided by the norm of b and multiplied again: two roundings.
    assert!((tolerance - case.rtol).abs() <= 2.0 * f64::EPSILON * case.rtol, "tolerance {tolerance}");
}

/// The solver reaches its tolerance in the true residual, and then stays as it is.
///
/// # Panics
/// When it does not.
pub fn converged_means_the_true_residual(case: &SolverCase<'_, '_>) {
    let mut solver = (case.make)();
    let end = run(&mut *solver, |_| {});
    assert_true_residual(case, &*solver, end);
    let x = iterate(&*solver);
    assert_eq!(solver.step(), Ok(end), "a converged solve stays as it is");
    assert_eq!(iterate(&*solver), x, "a converged solve keeps its iterate");
}

/// Names are unique and plain, one variable is the iterate, and both lists agree.
///
/// # Panics
/// When they do not.
pub fn variables_are_lent_in_one_order(case: &SolverCase<'_, '_>) {
    let mut solver = (case.make)();
    let lent: Vec<(String, usize)> = solver.variables().iter().map(|v| (v.name.to_owned(), v.values.len())).collect();
    let lent_mut: Vec<(String, usize)> =
        solver.variables_mut().iter().map(|v| (v.name.to_owned(), v.values.as_borrowed().len())).collect();
    assert_eq!(lent, lent_mut, "the two lists of variables differ");
    for (index, (name, _)) in lent.iter().enumerate() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        assert!(!name.is_empty() && name.chars().all(plain), "variable name {name:?}");
        assert!(lent[..index].iter().all(|(other, _)| other != name), "variable {name} twice");
    }
    let variables = solver.variables();
    assert_eq!(variables.iter().filter(|v| v.role == Role::Iterate).count(), 1, "one iterate");
    for variable in &variables {
        let points = variable.dims.iter().product::<usize>() * variable.stride;
        assert_eq!(points, variable.values.len(), "extents of {}", variable.name);
    }
}

/// Two states of a solve with the same revision lend the same variables: decisions go by what was
/// lent when the revision last changed.
///
/// # Panics
/// When they do not.
pub fn revision_changes_with_the_variables(case: &SolverCase<'_, '_>) {
    let mut seen: BTreeMap<u64, Vec<(String, Role, usize)>> = BTreeMap::new();
    let mut check = |solver: &dyn Iteration| {
        let lent = solver.variables().iter().map(|v| (v.name.to_owned(), v.role, v.values.len())).collect();
        let first = seen.entry(solver.revision()).or_insert_with(|| Vec::clone(&lent));
        assert_eq!(*first, lent, "both of revision {:x}", solver.revision());
    };
    let mut solver = (case.make)();
    check(&*solver);
    run(&mut *solver, check);
}

/// A solve that is killed at a safe point and resumed exactly has the residual history of the
/// undisturbed one, bit for bit, and ends at the same iteration with the same iterate.
///
/// # Panics
/// When it is not.
pub fn exact_resume_is_bitwise_at_every_safe_point(case: &SolverCase<'_, '_>) {
    let mut solver = (case.make)();
    let mut history = Vec::new();
    let mut states = vec![(solver.progress(), saved(&*solver, Resume::Exact))];
    let undisturbed = run(&mut *solver, |solver| {
        history.push(solver.progress());
        if solver.progress().safe_point != SafePoint::No {
            states.push((solver.progress(), saved(solver, Resume::Exact)));
        }
    });
    let x = iterate(&*solver);
    let stride = states.len().div_ceil(KILLS_MAX);
    let is_killed = |(index, _): &(usize, _)| index % stride == 0 || index + LAST_KILLS >= states.len();
    for (_, (at, state)) in states.iter().enumerate().filter(is_killed) {
        let mut solver = resumed(case, state, at.iteration, Resume::Exact);
        let mut rest = Vec::new();
        let end = run(&mut *solver, |solver| rest.push(solver.progress()));
        assert_eq!(end.iteration, undisturbed.iteration, "killed at {}", at.iteration);
        let is_same = iterate(&*solver).iter().zip(&x).all(|(ours, theirs)| ours.to_bits() == theirs.to_bits());
        assert!(is_same, "killed at {}: another solution", at.iteration);
        for (ours, theirs) in rest.iter().zip(&history[at.iteration as usize..]) {
            let bits = [ours.residual_norm.to_bits(), theirs.residual_norm.to_bits()];
            assert_eq!(bits[0], bits[1], "killed at {}: {ours:?} is not {theirs:?}", at.iteration);
        }
    }
}

/// Checks that for every kind of resume, the solver starts at the true residual of the restored
/// version and converges.
///
/// # Panics
/// When it does not.
pub fn every_resume_converges_from_what_its_version_holds(case: &SolverCase<'_, '_>) {
    let half = run(&mut *(case.make)(), |_| {}).iteration / 2;
    let mut solver = (case.make)();
    while solver.progress().iteration < half || solver.progress().safe_point != SafePoint::Any {
        step(&mut *solver);
    }
    let at = solver.progress().iteration;
    for &how in [Resume::Restarted, Resume::Exact].iter().chain(case.resumes) {
        let mut solver = resumed(case, &saved(&*solver, how), at, how);
        assert_eq!(solver.progress().iteration, at, "{how}");
        if how != Resume::Exact {
            let known = solver.progress().residual_norm;
            let norm = (case.true_residual)(&iterate(&*solver));
            // Both are sums of the same squares in another order, of residuals rounded alike: n eps
            // apart.
            assert!((known - norm).abs() <= 1e-9 * norm, "{how}: residual {known} is {norm}");
        }
        let end = run(&mut *solver, |_| {});
        assert_true_residual(case, &*solver, end);
    }
}

/// Checks that a version of a state that offers exact versions only serves a restarted resume, from
/// its iterate, and refuses to pass for one of a resume in between.
///
/// # Panics
/// When it does not.
pub fn versions_in_mid_cycle_restart_from_their_iterate(case: &SolverCase<'_, '_>) {
    let mut solver = (case.make)();
    while solver.progress().safe_point != SafePoint::Exact {
        if step(&mut *solver).status != Status::Running {
            return;
        }
    }
    let at = solver.progress().iteration;
    let state = saved(&*solver, Resume::Exact);
    let mut solver = room_for(case, &state);
    for &how in case.resumes.iter().filter(|&&how| how != Resume::Restarted) {
        let refused = solver.resume(at, how);
        assert!(matches!(refused, Err(SolveError::Resume { .. })), "{how}: {refused:?}");
    }
    let progress = solver.resume(at, Resume::Restarted).unwrap_or_else(|error| panic!("restarted resume: {error}"));
    assert_eq!((progress.iteration, progress.safe_point), (at, SafePoint::Any));
    let norm = (case.true_residual)(&iterate(&*solver));
    // As for every other resume: sums in another order.
    assert!((progress.residual_norm - norm).abs() <= 1e-9 * norm, "residual {} is {norm}", progress.residual_norm);
    let end = run(&mut *solver, |_| {});
    assert_true_residual(case, &*solver, end);
}

/// A resume that the method does not offer is an error, and no panic.
///
/// # Panics
/// When it is not.
pub fn unknown_resumes_are_refused(case: &SolverCase<'_, '_>) {
    if !case.resumes.contains(&Resume::Deflated) {
        let refused = (case.make)().resume(0, Resume::Deflated);
        assert!(matches!(refused, Err(SolveError::Resume { .. })), "{refused:?}");
    }
}

/// The variables in order, with values where a version for `how` holds them.
type SavedVariables = Vec<(String, Option<Vec<f64>>)>;

fn saved(solver: &dyn Iteration, how: Resume) -> SavedVariables {
    let saved = |v: &Variable<'_>| v.role.is_saved_for(how).then(|| doubles(v.values));
    solver.variables().iter().map(|v| (v.name.to_owned(), saved(v))).collect()
}

/// A fresh solver after a restore of `state` and a resume.
fn resumed<'s>(
    case: &SolverCase<'_, 's>,
    state: &SavedVariables,
    iteration: u64,
    how: Resume,
) -> Box<dyn Iteration + 's> {
    let mut solver = room_for(case, state);
    let progress = solver.resume(iteration, how).unwrap_or_else(|error| panic!("{how} resume: {error}"));
    assert_eq!(progress, solver.progress(), "resume reports the progress");
    solver
}

/// A fresh solver with the variables of `state`, everything else NaN.
fn room_for<'s>(case: &SolverCase<'_, 's>, state: &SavedVariables) -> Box<dyn Iteration + 's> {
    let mut solver = (case.make)();
    let held: Vec<&str> = state.iter().filter(|(_, saved)| saved.is_some()).map(|(name, _)| name.as_str()).collect();
    solver.make_room(&held);
    for variable in &mut solver.variables_mut() {
        let nans = vec![f64::NAN; variable.values.as_borrowed().len()];
        let found = state.iter().find(|(name, _)| name == variable.name);
        set_doubles(&mut variable.values, found.and_then(|(_, saved)| saved.as_ref()).unwrap_or(&nans));
    }
    let room: Vec<&str> = solver.variables_mut().iter().map(|variable| variable.name).collect();
    assert!(held.iter().all(|name| room.contains(name)), "no room for all of {held:?}");
    solver
}

fn iterate(solver: &dyn Iteration) -> Vec<f64> {
    let variables = solver.variables();
    let x = variables.iter().find(|v| v.role == Role::Iterate).expect("an iterate");
    doubles(x.values)
}

fn step(solver: &mut dyn Iteration) -> Progress {
    let progress = solver.step().unwrap_or_else(|error| panic!("step: {error}"));
    assert_eq!(progress, solver.progress(), "a step reports the progress");
    progress
}

/// Steps until the solve ends, `after` each; it must converge.
fn run(solver: &mut dyn Iteration, mut after: impl FnMut(&dyn Iteration)) -> Progress {
    while solver.progress().status == Status::Running {
        let progress = step(solver);
        after(solver);
        assert!(progress.iteration < ITERATIONS_MAX, "no convergence: {progress:?}");
    }
    assert!(solver.progress().is_converged(), "{:?}", solver.progress());
    solver.progress()
}

fn assert_true_residual(case: &SolverCase<'_, '_>, solver: &dyn Iteration, end: Progress) {
    let norm = (case.true_residual)(&iterate(solver));
    // The solver measured the same residual with sums in another order: n eps.
    assert!(norm <= case.rtol * end.rhs_norm * (1.0 + 1e-9), "{end:?} but ||b - A x|| = {norm}");
}
