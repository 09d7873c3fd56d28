//! Does each rule keep the residual it promises, and does the published one break it?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use recoup::comm::Solo;
use recoup::core::{BoundRule, CommError, Distribution, ExactSum, Operator, Plan, Progress, Role, Scheme, ValuesMut};
use recoup::io::MemoryStore;
use recoup::model::failures::Never;
use recoup::pipeline::{KnownNorms, Outcome, Variables};
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

/// `A x = 2 x`, which counts the norms that are taken of vectors.
#[derive(Default)]
struct CountedNorms(AtomicUsize);

impl Operator for CountedNorms {
    fn rows(&self) -> usize {
        64
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        y.iter_mut().zip(x).for_each(|(y, x)| *y = 2.0 * x);
        Ok(())
    }

    fn frobenius_squared(&self) -> Option<ExactSum> {
        Some(256.0.into())
    }

    fn squared_norm(&self, x: &[f64]) -> ExactSum {
        self.0.fetch_add(1, Ordering::Relaxed);
        x.iter().map(|x| x * x).collect()
    }
}

/// `||x||` cost each verified version a pass and a sum of all ranks, where it tells only that a
/// residual is not yet rounding.
#[test]
fn norm_of_an_iterate_is_taken_once_until_its_residual_nears_rounding() {
    let operator = Arc::new(CountedNorms::default());
    let plan = Plan { rule: BoundRule::Verified, ..plan(Scheme::Lossy) };
    let builder = recoup::open("unused").system(operator.clone(), vec![1.0; 64].into()).plan(plan).every(1);
    let mut session = builder.build_with(Arc::new(MemoryStore::new()), &Solo).unwrap();
    let mut norms_of = |iteration: u64, error: f64| {
        let before = operator.0.load(Ordering::Relaxed);
        let mut x: Vec<f64> = (0..64).map(|i| 0.5 + error * f64::from(i).sin()).collect();
        let norm = x.iter().map(|x| (1.0 - 2.0 * x).powi(2)).sum::<f64>().sqrt();
        let rows = Distribution::Rows { first: 0, global: 64 };
        let owner = Variables::new().with("x", Role::Iterate, ValuesMut::F64(&mut x), rows);
        let known = KnownNorms { residual_norm: Some(norm), ..KnownNorms::default() };
        let progress = Progress::running(iteration, norm, 8.0);
        session.checkpoint_with_norms(plan, progress, &[&owner], known).unwrap();
        session.wait().unwrap();
        assert!(matches!(session.take_outcomes()[..], [Outcome::Saved(_)]));
        operator.0.load(Ordering::Relaxed) - before
    };
    let counts = [1e-2, 1e-3, 1e-6, 1e-12].into_iter().zip(1..).map(|(error, iteration)| norms_of(iteration, error));
    assert_eq!(counts.collect::<Vec<_>>(), [1, 0, 0, 1]);
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
