//! Does each rule keep the residual it promises, and does the published one break it?

use recoup::core::{BoundRule, Plan, Scheme};
use recoup::model::failures::Never;
use recoup::solvers::RightHandSide;

use crate::support::{Problem, plan};

/// Residual jumps `||b - A x'|| / ||b - A x||` of the versions of one CG solve.
fn jumps(problem: &Problem, rule: BoundRule, theta: f64) -> Vec<f64> {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan { rule, theta, ..plan(Scheme::Lossy) };
    let session = problem.builder(dir.path(), plan, 2).keep(1).build().unwrap();
    let run = problem.run("cg", Some(session), Never);
    assert!(run.failed.is_empty(), "{:?}", run.failed);
    assert!(run.saved.len() >= 5);
    run.saved.iter().map(|s| s.residual.verified_norm.unwrap() / s.residual.true_norm.unwrap()).collect()
}

#[test]
fn proven_and_measured_rules_keep_the_residual_within_one_plus_theta() {
    let problem = Problem::poisson(16);
    for rule in [BoundRule::Verified, BoundRule::Guaranteed, BoundRule::Corrected] {
        let worst = jumps(&problem, rule, 0.5).into_iter().fold(0.0, f64::max);
        assert!(worst <= 1.5, "{rule}: {worst}");
    }
}

/// Theorem 3 promises a residual of the same order. Its proof takes ||A e|| <= eb ||A x|| for
/// granted; on a smooth field, ||A e|| / ||r|| = sqrt(jump^2 - 1) grows with the square of the
/// grid's extent: nine times from 8 to 24 points. Half of that is asked for, because the iterates
/// differ too.
#[test]
fn the_published_rule_lets_the_residual_jump_and_the_jump_grows_with_the_grid() {
    let gain = |n| {
        let jumps = jumps(&Problem::poisson_with(n, RightHandSide::Ones), BoundRule::Theorem3, 1.0);
        jumps.into_iter().map(|j| (j * j - 1.0).sqrt()).fold(0.0, f64::max)
    };
    let coarse = gain(8);
    let fine = gain(24);
    assert!(fine > 10.0, "{fine}");
    assert!(fine > 4.5 * coarse, "{coarse} {fine}");
}

const ONES: RightHandSide = RightHandSide::Ones;
const RANDOM: RightHandSide = RightHandSide::Random { seed: 7 };
/// What CG has by default, and twice of it.
const THETA_CG: f64 = 0.5;
const THETA_TWICE: f64 = 1.0;

fn worst_jump(n: usize, rhs: RightHandSide, rule: BoundRule, theta: f64) -> f64 {
    jumps(&Problem::poisson_with(n, rhs), rule, theta).into_iter().fold(0.0, f64::max)
}

/// The corrected rule allows `1 + theta`; errors of all signs do not add up to that, and the less
/// the more there are. Where they are few (8^3 under a right-hand side of ones, whose 48 symmetries
/// leave 20 different values), that is luck: 1.05 is held on every grid at CG's theta, and at twice
/// of it where there are values enough.
#[test]
fn the_corrected_rule_leaves_the_residual_where_it_was_on_every_grid() {
    for n in [8, 12, 16, 24, 32, 40] {
        for rhs in [ONES, RANDOM] {
            let jump = worst_jump(n, rhs, BoundRule::Corrected, THETA_CG);
            assert!(jump <= 1.05, "{n}^3, {rhs:?}: {jump}");
        }
    }
    for n in [32, 40] {
        let jump = worst_jump(n, ONES, BoundRule::Corrected, THETA_TWICE);
        assert!(jump <= 1.05, "{n}^3: {jump}");
    }
}

/// `cargo test --release -p recoup-tests residual_jumps -- --ignored --nocapture`: the table in the
/// docs of `recoup::model::residual_bound`.
#[test]
#[ignore = "a minute of solves"]
fn residual_jumps_by_rule_and_grid() {
    println!("worst ||b - A x'|| / ||b - A x||, CG, a version every second iteration");
    println!("{:>5}{:>36}{:>24}", "", "b = ones", "random b");
    println!("{:>5}{:>12}{:>12}{:>12}{:>12}{:>12}", "", "theorem3", "corrected", "theta 1", "corrected", "theta 1");
    for n in [8, 16, 32, 48, 64] {
        let corrected = |rhs, theta| worst_jump(n, rhs, BoundRule::Corrected, theta);
        print!("{n:>3}^3{:>12.1}", worst_jump(n, ONES, BoundRule::Theorem3, THETA_CG));
        for rhs in [ONES, RANDOM] {
            print!("{:>12.3}{:>12.3}", corrected(rhs, THETA_CG), corrected(rhs, THETA_TWICE));
        }
        println!();
    }
}

/// The search learns: on average little more than one encoding per version.
#[test]
fn the_verified_rule_needs_about_one_try() {
    let problem = Problem::poisson(16);
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan(Scheme::Lossy), 2).keep(1).build().unwrap();
    let run = problem.run("cg", Some(session), Never);
    let tries: u32 = run.saved.iter().map(|s| s.residual.tries).sum();
    let mean = f64::from(tries) / run.saved.len() as f64;
    assert!(mean <= 1.3, "{mean} tries over {} versions", run.saved.len());
}
