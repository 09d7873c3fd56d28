//! Do a method's recurrences go on from lossy values as if nothing had happened?

use recoup::core::{Plan, Resume, Scheme};
use recoup::model::failures::{AtIterations, Never};
use recoup::pipeline::{Ended, RunReport};
use recoup::solvers::{Csr, RightHandSide};

use crate::deflation::{matrix, mean, negated, resumed_as};
use crate::support::{Problem, plan};

fn lossy(resume: Resume) -> Plan {
    Plan { resume, ..plan(Scheme::Lossy) }
}

/// A solve that saves at one iteration and fails after the next.
fn struck_at(at: u64, (problem, method): (&Problem, &str), plan: Plan) -> RunReport {
    let dir = tempfile::tempdir().unwrap();
    let session = problem.builder(dir.path(), plan, at).synchronous(true).build().unwrap();
    let report = problem.run(method, Some(session), AtIterations::new(&[at + 1]));
    assert_eq!((report.ended, &report.failed), (Ended::Converged, &Vec::new()), "{method} at {at}");
    assert_eq!(resumed_as(&report), [plan.resume], "{method} at {at}");
    assert_eq!((report.flips.caught, report.flips.rolled_back, report.flips.healed), (0, 0, 0), "{method} at {at}");
    report
}

/// Extra iterations of one recovery at each of nine instants, as fractions of the undisturbed
/// solve.
fn extra((problem, method): (&Problem, &str), plan: Plan) -> Vec<f64> {
    let undisturbed = problem.run(method, None, Never).progress.iteration;
    let at = |tenth: u64| (undisturbed * tenth / 10).max(1);
    let extra = |at| {
        let report = struck_at(at, (problem, method), plan);
        (report.progress.iteration as f64 - undisturbed as f64) / undisturbed as f64
    };
    (1..=9).map(at).map(extra).collect()
}

/// Where a restart costs a fifth of the solve, and twice that on a ring, whose residual falls at
/// the very end.
#[test]
fn recurrences_held_to_what_the_residual_has_yet_to_fall_lose_no_iteration() {
    let of = |a| Problem::of(a, RightHandSide::Random { seed: 7 });
    let (ring, sherman1, sherman5) = (of(ring(1500)), of(negated(&matrix("sherman1"))), of(matrix("sherman5")));
    let cases = [
        ("cg", &ring, 0.3, 0.01),
        ("cg", &sherman1, 0.1, 0.01),
        ("pipecg", &sherman1, 0.1, 0.01),
        // Rounding alone sends it another way, by this much.
        ("bicgstab", &sherman5, 0.1, 0.06),
    ];
    for (method, problem, restarted, continued) in cases {
        let plain = mean(&extra((problem, method), lossy(Resume::Restarted)));
        let ours = mean(&extra((problem, method), lossy(Resume::Traditional)));
        assert!(plain > restarted, "{method}: {plain}");
        assert!(ours <= continued, "{method}: {ours} where a restart costs {plain}");
    }
}

/// Not only the iterate is lossy: from the middle of a solve on they take little more than half of
/// the bytes, where lossless coding saves a tenth.
#[test]
fn recurrences_are_lossy_too() {
    let sherman1 = Problem::of(negated(&matrix("sherman1")), RightHandSide::Random { seed: 7 });
    let sherman5 = Problem::of(matrix("sherman5"), RightHandSide::Random { seed: 7 });
    for (method, problem) in [("cg", &sherman1), ("pipecg", &sherman1), ("bicgstab", &sherman5)] {
        let half = problem.run(method, None, Never).progress.iteration / 2;
        let ratio = |plan| {
            let saved = &struck_at(half, (problem, method), plan).saved[0];
            saved.raw_bytes as f64 / saved.payload_bytes as f64
        };
        let (ours, lossless) = (ratio(lossy(Resume::Traditional)), ratio(plan(Scheme::Lossless)));
        assert!(ours > 1.7 && lossless < 1.2, "{method}: {ours} beside {lossless}");
    }
}

/// The Laplacian of a ring, and a little on the diagonal.
fn ring(n: usize) -> Csr {
    let mut entries = nalgebra_sparse::CooMatrix::new(n, n);
    for i in 0..n {
        entries.push(i, i, 2.0 + 1e-5);
        entries.push(i, (i + 1) % n, -1.0);
        entries.push((i + 1) % n, i, -1.0);
    }
    Csr::try_from(&nalgebra_sparse::CsrMatrix::from(&entries)).unwrap()
}
