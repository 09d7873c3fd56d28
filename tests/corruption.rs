//! Is memory that was silently corrupted found before it is saved, and does the solve end at its
//! tolerance all the same?

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{Bit, ErrorKind, FailureKind, FailureSource, FlipTarget, Iteration, Operator, Scheme, SolveError};
use recoup::io::MemoryStore;
use recoup::model::Rng;
use recoup::model::failures::{AtIterations, Never};
use recoup::pipeline::{Corrupted, Ended, EventKind, FailedVersion, FlipCounts, RunLimits, RunReport, Session};
use recoup::solvers::{
    Bicgstab, Cg, Csr, Gmres, GmresOptions, JacobiPreconditioner, Pool, RightHandSide, Side, Stop, System, read_matrix,
};

use crate::support::{Hooked, Problem, plan, runner};

/// Highest bit of the exponent: a value below 2 becomes one above 1e300, or no number.
const HIGH: u32 = 62;
/// A bit of the exponent that multiplies or divides by 2^16.
const MIDDLE: u32 = 56;

fn flip(iteration: u64, target: &str, bit: u32) -> (u64, FailureKind) {
    let target = FlipTarget::Named(target.to_owned());
    (iteration, FailureKind::BitFlip { target, bit: Bit::At { row: 700, bit } })
}

fn session(problem: &Problem, scheme: Scheme, every: u64) -> (tempfile::TempDir, Session) {
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan(scheme), every).synchronous(true).build().unwrap();
    (dir, session)
}

/// A flip strikes after iteration 20, whose version it would have ended up in: the version is not
/// saved, the solve goes back to version 10 and does ten iterations again.
#[test]
fn a_flip_in_the_iterate_before_a_save_is_caught_and_undone() {
    let problem = Problem::poisson(12);
    let undisturbed = problem.run("cg", None, Never);
    for scheme in [Scheme::Exact, Scheme::Traditional, Scheme::Lossless, Scheme::Lossy] {
        for bit in [HIGH, MIDDLE] {
            let (_dir, session) = session(&problem, scheme, 10);
            let run = problem.run("cg", Some(session), AtIterations::with_kinds(vec![flip(20, "x", bit)]));
            assert_eq!(run.ended, Ended::Converged, "{scheme}, bit {bit}");
            assert_eq!((run.flips.injected, run.flips.caught, run.flips.lost), (1, 1, 10), "{scheme}, bit {bit}");
            assert_eq!(run.failures, 0, "no failure was declared");
            let caught: Vec<u64> = run.events.iter().filter_map(|event| suspicion(&event.kind)).collect();
            assert_eq!(caught, [20], "{scheme}, bit {bit}");
            let is_told = |failed: &FailedVersion| {
                (failed.version, failed.kind) == (20, ErrorKind::Damaged) && failed.message.contains("rounding")
            };
            assert!(run.failed.iter().any(is_told), "{:?}", run.failed);
            if scheme == Scheme::Exact {
                assert_eq!(run.executed, undisturbed.executed + 10);
            }
        }
    }
}

fn suspicion(kind: &EventKind) -> Option<u64> {
    match kind {
        EventKind::Corruption(Corrupted::State(suspicion)) => Some(suspicion.version),
        _ => None,
    }
}

/// The verdict of a version on its way comes iterations later; what was staged since is dropped
/// with it.
#[test]
fn a_flip_is_caught_behind_the_solver_too() {
    let problem = Problem::poisson(12);
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan(Scheme::Lossy), 5).build().unwrap();
    let run = problem.run("cg", Some(session), AtIterations::with_kinds(vec![flip(10, "x", MIDDLE)]));
    assert_eq!(run.ended, Ended::Converged);
    assert!(run.saved.iter().all(|saved| saved.residual.true_norm.unwrap() <= 2.0 * saved.residual.norm));
    // The last versions of a short solve can still be on their way when it ends.
    assert!(run.flips.caught == 1 || run.failed.iter().any(|failed| failed.version == 10), "{:?}", run.failed);
}

/// x and r are both made from whatever p is, so they stay consistent and every version is sound.
/// Small flips slow the method down a little; large ones would hold it up for good, and are healed
/// at the next save.
#[test]
fn a_flip_in_the_direction_harms_no_version() {
    let problem = Problem::poisson(12);
    let undisturbed = problem.run("cg", None, Never);
    for bit in [3, 30, 51, MIDDLE, 60] {
        let (_dir, session) = session(&problem, Scheme::Lossy, 5);
        let run = problem.run("cg", Some(session), AtIterations::with_kinds(vec![flip(12, "p", bit)]));
        assert_eq!(run.ended, Ended::Converged, "bit {bit}");
        assert_eq!(run.flips.caught, 0, "bit {bit}: {:?}", run.failed);
        // At most what was done so far is lost with the directions, and five iterations until the
        // next save.
        assert!(run.executed <= undisturbed.executed + 12 + 5 + 5, "bit {bit}: {}", run.executed);
    }
}

/// A recurrence whose residual was corrupted would carry x off; the true residual does not follow
/// it.
#[test]
fn a_flip_in_the_residual_is_caught_at_the_next_save() {
    let problem = Problem::poisson(12);
    let (_dir, session) = session(&problem, Scheme::Lossy, 5);
    let run = problem.run("cg", Some(session), AtIterations::with_kinds(vec![flip(12, "r", MIDDLE)]));
    assert_eq!((run.ended, run.flips.caught), (Ended::Converged, 1));
}

/// In mid-cycle GMRES does not look at x; at the cycle's end the residual has grown, which it never
/// does.
#[test]
fn a_flip_that_stops_gmres_is_rolled_back() {
    let problem = Problem::poisson(12);
    let (_dir, session) = session(&problem, Scheme::Lossy, 30);
    let run = problem.run("gmres", Some(session), AtIterations::with_kinds(vec![flip(40, "x", MIDDLE)]));
    assert_eq!((run.ended, run.flips.rolled_back, run.flips.lost), (Ended::Converged, 1, 30));
}

/// With nothing to blame but the operator, two rollbacks do not help, and the run ends as it would
/// have.
#[test]
fn a_genuine_breakdown_still_ends_the_run() {
    let csr = data("sherman1.mtx.gz");
    let problem = Problem::of(csr, RightHandSide::Random { seed: 3 });
    assert_eq!(problem.run("cg", None, Never).ended, Ended::Breakdown);
    let (_dir, session) = session(&problem, Scheme::Lossy, 5);
    let run = problem.run("cg", Some(session), Never);
    assert_eq!(run.ended, Ended::Breakdown);
    assert_eq!(run.flips, FlipCounts::default());
    assert!(run.breakdown_rollbacks <= 2, "{}", run.breakdown_rollbacks);
}

/// A matrix with a right-hand side, a method, a tolerance and a limit of iterations.
struct Case {
    name: String,
    a: Arc<Csr>,
    b: Arc<[f64]>,
    m: JacobiPreconditioner,
    pool: Pool,
    method: &'static str,
    rtol: f64,
    iterations: u64,
}

impl Case {
    fn new(name: &str, a: Csr, method: &'static str) -> Self {
        let a = Arc::new(a);
        let b = RightHandSide::Random { seed: 5 }.build(a.as_ref()).unwrap().into();
        let m = JacobiPreconditioner::new(a.as_ref()).unwrap();
        let pool = Pool::new(1);
        Self { name: format!("{name} {method}"), a, b, m, pool, method, rtol: 1e-8, iterations: 20_000 }
    }

    /// The same with another right-hand side.
    fn with_rhs(&self, seed: u64) -> Self {
        let b = RightHandSide::Random { seed }.build(self.a.as_ref()).unwrap().into();
        let name = self.name.clone();
        let a = self.a.clone();
        let pool = Pool::new(1);
        let m = JacobiPreconditioner::new(self.a.as_ref()).unwrap();
        Self { name, a, b, m, pool, method: self.method, rtol: self.rtol, iterations: self.iterations }
    }

    fn solver(&self) -> Result<Box<dyn Iteration + '_>, SolveError> {
        let system = System { a: self.a.as_ref(), b: &self.b, comm: &Solo, pool: &self.pool };
        let x0 = vec![0.0; self.b.len()];
        let stop = Stop::at(self.rtol);
        let gmres = |side| GmresOptions { restart: 30, side, stop };
        Ok(match self.method {
            "cg" => Box::new(Cg::new(system, &self.m, &x0, stop)?),
            "bicgstab" => Box::new(Bicgstab::new(system, &self.m, &x0, stop)?),
            "gmres left" => Box::new(Gmres::new(system, &self.m, &x0, gmres(Side::Left))?),
            "gmres right" => Box::new(Gmres::new(system, &self.m, &x0, gmres(Side::Right))?),
            other => panic!("no method {other}"),
        })
    }

    /// Runs it with a version every `every` iterations in memory, and gives the true relative
    /// residual at the end and what of it the arithmetic cannot get below, `10 eps ||A|| ||x|| /
    /// ||b||`.
    fn run(&self, scheme: Scheme, every: u64, failures: impl FailureSource) -> (RunReport, [f64; 2]) {
        let builder = recoup::open("unused").system(self.a.clone(), self.b.clone());
        let builder = builder.plan(plan(scheme)).every(every).synchronous(true);
        let session = builder.build_with(Arc::new(MemoryStore::new()), &Solo).unwrap();
        let last = RefCell::new(Vec::new());
        let mut runner =
            runner(Some(session), failures, RunLimits { iterations: self.iterations, executed: 3 * self.iterations });
        let report = runner
            .run(&mut || Ok(Box::new(Hooked { solver: self.solver()?, fails: None, last: Some(&last) })))
            .unwrap();
        drop(runner);
        let measured = self.measure(&last.borrow());
        (report, measured)
    }

    fn measure(&self, x: &[f64]) -> [f64; 2] {
        let mut r = vec![0.0; x.len()];
        let squared = self.a.residual(&self.b, x, &mut r).unwrap();
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        let spectral = (self.a.largest_row_sum().unwrap() * self.a.largest_column_sum().unwrap()).sqrt();
        let rhs = norm(&self.b);
        [squared.sqrt() / rhs, 10.0 * f64::EPSILON * spectral * norm(x) / rhs]
    }
}

fn alarms(run: &RunReport) -> Vec<u64> {
    run.events.iter().filter_map(|event| suspicion(&event.kind)).collect()
}

/// Rounding alone is never taken for corruption, on matrices well and badly conditioned and scaled,
/// down to tolerances below what double precision attains.
#[test]
fn sound_runs_on_real_matrices_never_alarm() {
    let names = ["bcsstk14", "wathen_small", "nos7", "copter2_lap", "sherman1", "sherman5", "orsirr_1", "add32"];
    for name in names {
        let methods: &[_] =
            if names[..4].contains(&name) { &["cg"] } else { &["gmres left", "gmres right", "bicgstab"] };
        for &method in methods {
            let mut case = Case::new(name, data(&format!("{name}.mtx.gz")), method);
            case.iterations = 1500;
            for rtol in [1e-6, 1e-15] {
                case.rtol = rtol;
                let (run, [reached, _]) = case.run(Scheme::Traditional, 20, Never);
                println!("{} to {rtol:e}: {:?} at {reached:.1e}, {:?}", case.name, run.ended, run.flips);
                assert_eq!(alarms(&run), Vec::<u64>::new(), "{} to {rtol:e}", case.name);
            }
        }
    }
}

/// One thousand flips, each of any bit of any value of any vector in a solve of its own: every
/// solve ends at its tolerance, or where the arithmetic cannot get below. As many sound solves
/// raise no alarm.
///
/// `cargo test -p recoup-tests --test questions -- --ignored --nocapture thousand_flips`
#[test]
#[ignore = "2,000 solves take 20 seconds"]
fn a_thousand_flips_end_at_the_tolerance() {
    let cases = [
        Case::new("poisson 10^3", Csr::poisson3d(10), "cg"),
        Case::new("poisson 10^3", Csr::poisson3d(10), "gmres right"),
        // Badly conditioned: 1e-6 is where its arithmetic ends.
        Case { rtol: 1e-6, ..Case::new("nos7", data("nos7.mtx.gz"), "cg") },
        Case::new("orsirr_1", data("orsirr_1.mtx.gz"), "gmres left"),
    ];
    let seed = 2026;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for case in &cases {
        let schemes = [Scheme::Lossy, Scheme::Exact, Scheme::Traditional, Scheme::Lossless];
        let sound = schemes.map(|scheme| case.run(scheme, 15, Never).0);
        let mut counts = FlipCounts::default();
        let mut extra = 0;
        let mut worst = 0;
        for trial in 0..250 {
            let which = trial % schemes.len();
            let undisturbed = &sound[which];
            let at = 1 + rng.next_u64() % (undisturbed.executed - 1);
            let kind = FailureKind::BitFlip { target: FlipTarget::Any, bit: Bit::Drawn(rng.next_u64()) };
            let (run, [reached, attainable]) = case.run(schemes[which], 15, AtIterations::with_kinds(vec![(at, kind)]));
            let context = format!("{}, {}, trial {trial}: {:?}", case.name, schemes[which], run.events);
            assert!(reached <= case.rtol.max(attainable), "{context}: {reached:e} {:?}", run.ended);
            let cost = run.executed.saturating_sub(undisturbed.executed);
            extra += cost;
            worst = worst.max(cost);
            counts = sum(counts, run.flips);
            let (run, _) = case.with_rhs(rng.next_u64()).run(schemes[which], 15, Never);
            assert_eq!(run.flips, FlipCounts::default(), "{}, sound trial {trial}: {:?}", case.name, run.events);
        }
        let n = sound[0].executed;
        let absorbed = counts.absorbed();
        println!(
            "{} ({n} iterations): {counts:?}, absorbed {absorbed}; extra iterations {:.2} each, at most {worst}",
            case.name,
            extra as f64 / 250.0
        );
    }
}

fn sum(a: FlipCounts, b: FlipCounts) -> FlipCounts {
    FlipCounts {
        injected: a.injected + b.injected,
        caught: a.caught + b.caught,
        rolled_back: a.rolled_back + b.rolled_back,
        healed: a.healed + b.healed,
        lost: a.lost + b.lost,
    }
}

/// One file of `tests/data`.
fn data(name: &str) -> Csr {
    read_matrix(&Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(name)).unwrap()
}
