//! Does every method of the table pass the suite, and is it what its line says?

use std::collections::BTreeSet;

use recoup_core::{Operator, Resume};
use recoup_solvers::{Csr, Ic0, Identity, Ilu0, JacobiPreconditioner, METHODS, Need, Preconditioner, Stop};
use recoup_testkit::solver_suite::{SolverCase, check_solver, exact_resume_is_bitwise_at_every_safe_point};

use crate::problem::Problem;
use crate::variants::{Variant, variants};

impl Problem {
    /// Runs the suite.
    fn check(&self, variant: &Variant<'_>) {
        self.with_case(variant, check_solver);
    }

    /// Runs a check, with what the table says of the method.
    fn with_case(&self, variant: &Variant<'_>, check: fn(&SolverCase<'_, '_>)) {
        println!("{}", variant.describe());
        let system = self.system();
        let x0 = self.zeros();
        let stop = Stop::at(1e-8);
        let profile = variant.method.profile;
        let deflated = (profile.lossy_resume == Resume::Deflated).then_some(Resume::Deflated);
        let resumes: Vec<Resume> = [Resume::Traditional].into_iter().chain(deflated).collect();
        assert_eq!(variant.solver(system, &self.a, &x0, stop).name(), variant.method.name);
        check(&SolverCase {
            make: &|| variant.solver(system, &self.a, &x0, stop),
            true_residual: &|x| self.a.residual(&self.b, x, &mut vec![0.0; x.len()]).unwrap().sqrt(),
            rtol: stop.rtol,
            profile,
            resumes: &resumes,
        });
    }
}

#[test]
fn every_method_passes_the_suite_with_the_profile_of_its_line() {
    let problem = Problem::new(Csr::poisson3d(9));
    let jacobi = JacobiPreconditioner::new(&problem.a).unwrap();
    let incomplete = Ic0::new(&problem.a).unwrap();
    for variant in variants(&[&Identity as &dyn Preconditioner, &jacobi, &incomplete]) {
        problem.check(&variant);
    }
}

/// An exact resume of Jacobi's method one iteration before the end stopped there: it measured the
/// residual of its iterate, which the run that was not killed did one sweep later.
#[test]
fn a_small_solve_killed_at_any_safe_point_ends_as_if_it_had_not_been() {
    let problem = Problem::new(Csr::poisson3d(3));
    let jacobi = JacobiPreconditioner::new(&problem.a).unwrap();
    for variant in variants(&[&Identity as &dyn Preconditioner, &jacobi]) {
        problem.with_case(&variant, exact_resume_is_bitwise_at_every_safe_point);
    }
}

#[test]
fn methods_for_any_matrix_pass_the_suite_where_it_is_not_symmetric() {
    let problem = Problem::read("orsirr_1");
    let incomplete = Ilu0::new(&problem.a).unwrap();
    let is_for_any =
        |variant: &Variant<'_>| variant.method.needs != Some(Need::Symmetry) && !variant.method.profile.is_stationary;
    for variant in variants(&[&incomplete]).iter().filter(|variant| is_for_any(variant)) {
        problem.check(variant);
    }
}

#[test]
fn names_are_unique_and_can_be_typed() {
    let names: BTreeSet<&str> = METHODS.iter().map(|method| method.name).collect();
    assert_eq!(names.len(), METHODS.len());
    let is_plain = |name: &str| name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-');
    assert!(names.iter().all(|name| is_plain(name)), "{names:?}");
}
