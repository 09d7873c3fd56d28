//! Are versions of GMRES in mid-cycle as good as those of cycle ends, at the cost of what is new in
//! them?

use std::path::Path;
use std::sync::Arc;

use recoup::comm::{Solo, Threads};
use recoup::core::{
    Comm, Iteration, Plan, Progress, Resume, SafePoint, Scheme, SolveError, Status, Store, Values, Variable,
};
use recoup::io::{Access, Hdf5Store};
use recoup::model::failures::AtIterations;
use recoup::pipeline::{Ended, Outcome, Restored, RunLimits, Saved, Session};
use recoup::solvers::{
    BasisStorage, Csr, DistributedCsr, Ilu0, JacobiPreconditioner, LocalRows, METHODS, MethodInputs, Pool,
    Preconditioner, RightHandSide, RowPartition, Side, Stop, System,
};

use crate::deflation::{matrix, mean};
use crate::support::{Problem, plan, runner};

/// Points of the grid's edges.
const GRID: usize = 7;
const ROWS: usize = GRID * GRID * GRID;
const RESTART: usize = 6;
/// Iterations that are saved: four cycles, and one step of the fifth.
const SAVED: u64 = 25;

/// A GMRES solve as one rank of some sees it.
#[derive(Clone, Copy, Debug)]
struct Solve {
    method: &'static str,
    side: Side,
    restart: usize,
    basis: BasisStorage,
}

impl Solve {
    /// Runs `work` with what makes fresh solvers of this rank.
    fn with<T>(self, comm: &dyn Comm, work: impl FnOnce(&Made<'_>) -> T) -> T {
        let partition = RowPartition::even(ROWS, GRID * GRID, comm.size());
        let rows = LocalRows::poisson3d(GRID, partition.range(comm.rank()));
        let pool = Arc::new(Pool::new(1));
        let a = DistributedCsr::new(comm.dup().unwrap(), &partition, &rows, pool.clone()).unwrap();
        let b = RightHandSide::Random { seed: 11 }.build(&a).unwrap();
        let m = JacobiPreconditioner::new(&a).unwrap();
        let x0 = vec![0.0; b.len()];
        let system = System { a: &a, b: &b, comm, pool: &pool };
        work(&Made { solve: self, system, preconditioner: &m, x0: &x0 })
    }
}

/// All that a solver is made from.
struct Made<'a> {
    solve: Solve,
    system: System<'a>,
    preconditioner: &'a dyn Preconditioner,
    x0: &'a [f64],
}

impl<'a> Made<'a> {
    fn solver(&self) -> Result<Box<dyn Iteration + 'a>, SolveError> {
        let Solve { method, side, restart, basis } = self.solve;
        let named = METHODS.iter().find(|known| known.name == method).unwrap();
        let inputs = MethodInputs {
            system: self.system,
            rows: None,
            preconditioner: self.preconditioner,
            x0: self.x0,
            stop: Stop::at(1e-8),
            omega: 1.0,
            restart,
            side,
            harvest: 2,
            basis,
        };
        Ok((named.make)(&inputs)?)
    }
}

/// The methods that offer exact versions in mid-cycle, from both sides.
fn solves() -> Vec<Solve> {
    let sides = [Side::Left, Side::Right];
    let of = |(method, basis)| sides.map(|side| Solve { method, side, restart: RESTART, basis });
    let [double, float, auto] = [BasisStorage::Double, BasisStorage::Float, BasisStorage::Auto];
    [("gmres", double), ("gmres", float), ("gmres", auto), ("gmres-dr", double)].into_iter().flat_map(of).collect()
}

fn session(dir: &Path, plan: Plan, every: u64, comm: &dyn Comm) -> Session {
    recoup::open(dir).plan(plan).every(every).keep(100).build_on(comm).unwrap()
}

/// The bits of the iterate.
fn iterate(solver: &dyn Iteration) -> Vec<u64> {
    let variables = solver.variables();
    let Some(Values::F64(x)) = variables[0].values.host() else { panic!("x is the first variable") };
    x.iter().map(|x| x.to_bits()).collect()
}

/// Steps to the end of a solve: every progress, and the bits of the iterate.
fn run_out(solver: &mut dyn Iteration) -> (Vec<Progress>, Vec<u64>) {
    let mut history = Vec::new();
    while solver.progress().status == Status::Running {
        history.push(solver.step().unwrap());
    }
    assert!(solver.progress().is_converged(), "{:?}", solver.progress());
    (history, iterate(solver))
}

/// Saves every one of the first iterations, and returns what was saved.
fn save_all(solver: &mut dyn Iteration, session: &mut Session) -> Vec<Saved> {
    for iteration in 1..=SAVED {
        solver.step().unwrap();
        let taken = session.step(solver).unwrap();
        assert_eq!(taken.map(|taken| taken.version), Some(iteration));
    }
    all_saved(session)
}

/// Waits for all versions: each must count.
fn all_saved(session: &mut Session) -> Vec<Saved> {
    session.wait().unwrap();
    let saved = |outcome| match outcome {
        Outcome::Saved(saved) => *saved,
        other => panic!("a version expected, {other:?} found"),
    };
    session.take_outcomes().into_iter().map(saved).collect()
}

/// Leaves the versions up to one, and restores it into a fresh solver.
fn restore<'a>(made: &Made<'a>, dir: &Path, version: u64, plan: Plan) -> (Box<dyn Iteration + 'a>, Restored) {
    let comm = made.system.comm;
    if comm.rank() == 0 {
        let store = Hdf5Store::open(dir, "solve", Access::Write).unwrap();
        store.set_aside_newer(Some(version)).unwrap();
    }
    comm.barrier().unwrap();
    let mut session = session(dir, plan, 1, comm);
    let mut solver = made.solver().unwrap();
    let restored = session.restore(&mut *solver).unwrap().unwrap();
    (solver, restored)
}

#[test]
fn every_iteration_can_be_saved_and_resumed_bit_for_bit_on_up_to_three_ranks() {
    for solve in solves() {
        for ranks in 1..=3 {
            let dir = tempfile::tempdir().unwrap();
            Threads::launch(ranks, |comm| {
                solve.with(&comm, |made| {
                    let (history, x) = run_out(&mut *made.solver().unwrap());
                    assert!(history.len() > SAVED as usize + RESTART, "{solve:?} ends after {}", history.len());
                    save_all(&mut *made.solver().unwrap(), &mut session(dir.path(), plan(Scheme::Exact), 1, &comm));
                    for version in (1..=SAVED).rev() {
                        let (mut solver, restored) = restore(made, dir.path(), version, plan(Scheme::Exact));
                        let what = format!("{solve:?} on {ranks} ranks, from version {version}");
                        assert_eq!((restored.version, restored.resume), (version, Resume::Exact), "{what}");
                        let (rest, found) = run_out(&mut *solver);
                        assert_eq!(rest, history[version as usize..], "{what}");
                        assert_eq!(found, x, "{what}");
                    }
                });
            });
        }
    }
}

/// Small variables of a cycle under way, at most: H, c, scales and nine numbers.
const SMALL_BYTES: u64 = 8 * (RESTART * (RESTART + 3) / 2 + 2 * (RESTART + 1) + 9) as u64;

/// The bits of the vectors that a solver lends.
fn vectors(solver: &dyn Iteration) -> Vec<Vec<u64>> {
    let bits = |variable: Variable<'_>| match variable.values.host() {
        Some(Values::F64(values)) if values.len() == ROWS => Some(values.iter().map(|value| value.to_bits()).collect()),
        Some(Values::F32(values)) => Some(values.iter().map(|value| u64::from(value.to_bits())).collect()),
        Some(Values::Bytes(values)) => Some(values.iter().copied().map(u64::from).collect()),
        _ => None,
    };
    solver.variables().into_iter().filter_map(bits).collect()
}

/// Two staging sets take turns. Each vector was once copied into both.
#[test]
fn the_solver_waits_for_the_vectors_that_are_new_in_a_version_only() {
    for solve in solves() {
        let dir = tempfile::tempdir().unwrap();
        Threads::launch(1, |comm| {
            solve.with(&comm, |made| {
                let mut solver = made.solver().unwrap();
                let mut before = Vec::new();
                let mut new = Vec::new();
                while new.len() < SAVED as usize {
                    solver.step().unwrap();
                    let now = vectors(&*solver);
                    new.push(now.iter().filter(|vector| !before.contains(*vector)).count());
                    before = now;
                }
                let mut session = session(dir.path(), plan(Scheme::Exact), 1, &comm);
                let saved = save_all(&mut *made.solver().unwrap(), &mut session);
                for (saved, new) in saved.iter().zip(new) {
                    let most = (8 * ROWS * new) as u64 + SMALL_BYTES;
                    assert!(
                        saved.copied_bytes <= most,
                        "{solve:?}: {} bytes, {new} vectors: {saved:?}",
                        saved.copied_bytes
                    );
                }
            });
        });
    }
}

#[test]
fn a_version_in_mid_cycle_names_no_residual_of_its_iterate_and_is_not_suspected() {
    let problem = Problem::poisson(16);
    for method in ["gmres", "gmres-dr"] {
        let dir = tempfile::tempdir().unwrap();
        let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 1).keep(100).build().unwrap();
        assert!(session.checks_corruption());
        let mut solver = problem.solver(method).unwrap();
        // The first cycle of 30, and the beginning of the second.
        let mut points = Vec::new();
        while points.len() < 35 {
            points.push(solver.step().unwrap().safe_point);
            session.step(&*solver).unwrap();
        }
        let saved = all_saved(&mut session);
        assert_eq!(saved.len(), points.len(), "{method}");
        assert!(points.contains(&SafePoint::Any) && points.contains(&SafePoint::Exact), "{method}");
        for (saved, point) in saved.iter().zip(points) {
            assert_eq!(saved.residual.true_norm.is_some(), point == SafePoint::Any, "{method}: {saved:?}");
        }
    }
}

/// Four steps into the third cycle of GMRES.
const MID_CYCLE: u64 = 2 * RESTART as u64 + 4;

/// Saves in mid-cycle, and returns the iterations of the whole solve.
fn save_in_mid_cycle(solve: Solve, dir: &Path, ranks: usize) -> u64 {
    let ends = Threads::launch(ranks, |comm| {
        solve.with(&comm, |made| {
            let mut solver = made.solver().unwrap();
            let mut session = session(dir, plan(Scheme::Exact), MID_CYCLE, &comm);
            while solver.progress().iteration < MID_CYCLE {
                solver.step().unwrap();
                session.step(&*solver).unwrap();
            }
            assert_eq!(solver.progress().safe_point, SafePoint::Exact);
            session.wait().unwrap();
            run_out(&mut *solver);
            solver.progress().iteration
        })
    });
    ends[0]
}

/// Restores the version into a fresh solver: what came back, the state it begins with, and the
/// iterations of the whole solve.
fn go_on(solve: Solve, dir: &Path, ranks: usize) -> (Restored, Progress, u64) {
    let ends = Threads::launch(ranks, |comm| {
        solve.with(&comm, |made| {
            let mut session = session(dir, plan(Scheme::Exact), 1000, &comm);
            let mut solver = made.solver().unwrap();
            let restored = session.restore(&mut *solver).unwrap().unwrap();
            let begin = solver.progress();
            run_out(&mut *solver);
            (restored, begin, solver.progress().iteration)
        })
    });
    ends.into_iter().next().unwrap()
}

#[test]
fn another_restart_length_goes_on_with_a_cycle_that_fits_and_restarts_from_x_otherwise() {
    for solve in solves() {
        let dir = tempfile::tempdir().unwrap();
        save_in_mid_cycle(solve, dir.path(), 1);
        // A shorter length with room for the directions carried over, the same, and a longer one.
        for restart in [5, RESTART, 2 * RESTART] {
            let other = Solve { restart, ..solve };
            let (restored, begin, _) = go_on(other, dir.path(), 1);
            assert_eq!((restored.version, begin.iteration), (MID_CYCLE, MID_CYCLE), "{other:?}");
            let resumed = [(Resume::Exact, SafePoint::Exact), (Resume::Restarted, SafePoint::Any)];
            assert!(resumed.contains(&(restored.resume, begin.safe_point)), "{other:?}: {restored:?}");
            assert!(restart < RESTART || restored.resume == Resume::Exact, "{other:?}: {restored:?}");
        }
    }
    let basis = BasisStorage::Double;
    let solve = Solve { method: "gmres", side: Side::Right, restart: RESTART, basis };
    let dir = tempfile::tempdir().unwrap();
    save_in_mid_cycle(solve, dir.path(), 1);
    let resume = |restart| go_on(Solve { restart, ..solve }, dir.path(), 1).0.resume;
    // Four steps are done: a fifth fits into cycles of five.
    assert_eq!([5, 4, 1].map(resume), [Resume::Exact, Resume::Restarted, Resume::Restarted]);
}

/// Half of the second cycle is done: 16 vectors and x. Cycles gain a factor of 20; the more they
/// gain, the more bits their vectors need.
#[test]
fn a_basis_in_few_bits_makes_versions_of_two_fifths_of_the_bytes() {
    let problem = Problem::poisson(32);
    let bytes = [BasisStorage::Double, BasisStorage::Auto].map(|basis| {
        let inputs = MethodInputs { restart: 30, basis, ..problem.inputs(Stop::at(1e-8)) };
        let named = METHODS.iter().find(|known| known.name == "gmres").unwrap();
        let mut solver = (named.make)(&inputs).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut session = problem.builder(dir.path(), plan(Scheme::Exact), 45).build().unwrap();
        while solver.progress().iteration < 45 {
            solver.step().unwrap();
            session.step(&*solver).unwrap();
        }
        all_saved(&mut session)[0].raw_bytes as f64
    });
    assert!(bytes[1] <= 0.4 * bytes[0], "{bytes:?}");
}

/// Variants of the 7-point Laplacian on `edge^3` points: with a flow, with weak and strong
/// couplings, badly scaled, and indefinite.
fn generated(edge: usize) -> impl Iterator<Item = (String, Csr)> {
    let steep = move |row: usize| if row < edge.pow(3) / 2 { 1.0 } else { 30.0 };
    // The value in the Laplacian, and 1, 0 or -1 for a column behind, on or before the diagonal.
    let entry = move |kind: usize, row: usize, column: usize, value: f64| {
        let side = f64::from(column.cmp(&row) as i8);
        let is_last = row.abs_diff(column) == edge * edge;
        match kind {
            0 => value + 0.3 * side,
            1 => value + 0.9 * side,
            2 => value + 0.5 * side * if (row / edge).is_multiple_of(2) { 1.0 } else { -1.0 },
            3 if is_last => 0.01 * value,
            3 if side == 0.0 => 4.02,
            4 if is_last => 20.0 * value,
            4 if side == 0.0 => 44.0,
            5 => value * steep(row) * steep(column),
            6 => value * steep(row),
            7 if side == 0.0 => 5.85,
            _ => value,
        }
    };
    let names = ["flow", "fast flow", "turning flow", "weak", "strong", "steep", "steep rows", "indefinite"];
    names.into_iter().enumerate().map(move |(kind, name)| {
        let a = Csr::poisson3d(edge).mapped(|row, column, value| entry(kind, row, column, value)).unwrap();
        (name.to_owned(), a)
    })
}

/// The table of docs/decisions/basis.md: `cargo test -p recoup-tests basis -- --ignored
/// --nocapture`.
#[test]
#[ignore = "minutes: every matrix, preconditioner and right-hand side, in three kinds of numbers"]
fn a_basis_in_few_bits_takes_about_the_iterations_of_doubles() {
    const ITERATIONS_MAX: u64 = 3000;
    let stored = ["add32", "bcsstk14", "copter2_lap", "nos7", "orsirr_1", "sherman1", "sherman5", "wathen_small"];
    let stored = stored.map(|name| (name.to_owned(), matrix(name)));
    let grids = [12, 16, 20, 24, 32].map(|edge| (format!("{edge}^3"), Csr::poisson3d(edge)));
    let mut matrices = Vec::new();
    let mut more = [Vec::new(), Vec::new()];
    for (name, a) in stored.into_iter().chain(grids).chain(generated(16)) {
        for rhs in [RightHandSide::Smooth, RightHandSide::Random { seed: 7 }] {
            let problem = Problem::of(a.clone(), rhs);
            let jacobi = JacobiPreconditioner::new(&a).ok().map(|m| Box::new(m) as Box<dyn Preconditioner>);
            let ilu = Ilu0::new(&a).ok().map(|m| Box::new(m) as Box<dyn Preconditioner>);
            for (kind, m) in [("jacobi", jacobi), ("ilu0", ilu)] {
                let Some(m) = m else { continue };
                let iterations = [BasisStorage::Double, BasisStorage::Float, BasisStorage::Auto].map(|basis| {
                    let inputs = MethodInputs { basis, preconditioner: m.as_ref(), ..problem.inputs(Stop::at(1e-8)) };
                    let mut solver =
                        (METHODS.iter().find(|known| known.name == "gmres").unwrap().make)(&inputs).unwrap();
                    while solver.progress().status == Status::Running
                        && solver.progress().iteration < 2 * ITERATIONS_MAX
                    {
                        solver.step().unwrap();
                    }
                    solver.progress().is_converged().then(|| solver.progress().iteration)
                });
                let Some(double) = iterations[0].filter(|&double| double <= ITERATIONS_MAX) else { continue };
                println!("{name:12} {kind:6} {rhs:?}: {iterations:?}");
                matrices.push(name.clone());
                for (more, found) in more.iter_mut().zip(&iterations[1..]) {
                    let found = found.unwrap_or_else(|| panic!("{name}, {kind}: {iterations:?}"));
                    more.push(100.0 * (found as f64 / double as f64 - 1.0));
                }
            }
        }
    }
    let [float, auto] = more.map(|more| {
        let [least, most] = [f64::min, f64::max].map(|of| more.iter().copied().reduce(of).unwrap());
        (more.len(), mean(&more), least, most)
    });
    matrices.dedup();
    println!("{} matrices; solves, mean, least and most in %: float {float:?}, auto {auto:?}", matrices.len());
    assert!(auto.1 <= 1.0, "{auto:?}");
}

/// Vectors in floats are not those that a solve in doubles would have, and the other way round.
#[test]
fn a_cycle_in_another_storage_is_restarted_from_x() {
    let [double, float] = [BasisStorage::Double, BasisStorage::Float];
    for [saved, other] in [[double, float], [float, double]] {
        let of = |basis| Solve { method: "gmres", side: Side::Right, restart: RESTART, basis };
        let dir = tempfile::tempdir().unwrap();
        save_in_mid_cycle(of(saved), dir.path(), 1);
        let (restored, begin, _) = go_on(of(other), dir.path(), 1);
        assert_eq!((restored.version, restored.resume), (MID_CYCLE, Resume::Restarted), "{saved:?}");
        assert_eq!((begin.iteration, begin.safe_point), (MID_CYCLE, SafePoint::Any), "{saved:?}");
    }
}

#[test]
fn another_method_takes_the_iterate_of_the_cycles_start() {
    for (saved, other) in [("gmres", "gmres-dr"), ("gmres-dr", "gmres"), ("gmres", "cg"), ("gmres-dr", "bicgstab")] {
        let of = |method| Solve { method, side: Side::Right, restart: RESTART, basis: BasisStorage::Double };
        let dir = tempfile::tempdir().unwrap();
        save_in_mid_cycle(of(saved), dir.path(), 1);
        let (restored, begin, _) = go_on(of(other), dir.path(), 1);
        assert_eq!((restored.resume, restored.other_method.as_deref()), (Resume::Restarted, Some(saved)), "{other}");
        assert_eq!((begin.iteration, begin.safe_point), (MID_CYCLE, SafePoint::Any), "{other}");
    }
}

#[test]
fn another_number_of_ranks_goes_on_in_mid_cycle() {
    for solve in solves() {
        for (saved, restored) in [(3, 1), (1, 2), (2, 3)] {
            let dir = tempfile::tempdir().unwrap();
            let undisturbed = save_in_mid_cycle(solve, dir.path(), saved);
            let (found, begin, iterations) = go_on(solve, dir.path(), restored);
            assert_eq!((found.ranks, found.resume), (saved, Resume::Exact), "{solve:?}");
            assert_eq!((begin.iteration, begin.safe_point), (MID_CYCLE, SafePoint::Exact), "{solve:?}");
            // Sums in another order move the end by rounding: by less than a cycle.
            assert!(iterations.abs_diff(undisturbed) < RESTART as u64, "{solve:?}: {iterations} of {undisturbed}");
        }
    }
}

/// A basis belongs to one operator, preconditioned from one side. With another one, x would be
/// moved along directions that mean nothing.
#[test]
fn a_cycle_of_another_preconditioner_or_side_is_refused_and_restarted_from_x() {
    let a = Csr::poisson3d(GRID);
    let b = RightHandSide::Random { seed: 11 }.build(&a).unwrap();
    let incomplete = Ilu0::new(&a).unwrap();
    let jacobi = JacobiPreconditioner::new(&a).unwrap();
    let pool = Pool::new(1);
    let x0 = vec![0.0; b.len()];
    let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
    let basis = BasisStorage::Double;
    let left = Solve { method: "gmres", side: Side::Left, restart: RESTART, basis };
    let right = Solve { side: Side::Right, ..left };
    let by_incomplete = |solve| Made { solve, system, preconditioner: &incomplete, x0: &x0 };
    let dir = tempfile::tempdir().unwrap();
    let mut solver = by_incomplete(left).solver().unwrap();
    let mut saving = session(dir.path(), plan(Scheme::Exact), 4, &Solo);
    for _ in 0..4 {
        solver.step().unwrap();
        saving.step(&*solver).unwrap();
    }
    drop(saving);
    let resume = |made: Made<'_>| {
        let mut solver = made.solver().unwrap();
        let restored = session(dir.path(), plan(Scheme::Exact), 4, &Solo).restore(&mut *solver);
        run_out(&mut *solver);
        restored.unwrap().unwrap().resume
    };
    assert_eq!(resume(by_incomplete(left)), Resume::Exact);
    assert_eq!(resume(by_incomplete(right)), Resume::Restarted);
    assert_eq!(resume(Made { preconditioner: &jacobi, ..by_incomplete(left) }), Resume::Restarted);
}

#[test]
fn a_run_killed_at_every_iteration_goes_on_bit_for_bit() {
    for solve in solves() {
        let dir = tempfile::tempdir().unwrap();
        Threads::launch(1, |comm| {
            solve.with(&comm, |made| {
                let (history, _) = run_out(&mut *made.solver().unwrap());
                let kills: Vec<u64> = (1..history.len() as u64).collect();
                let saving = recoup::open(dir.path()).plan(plan(Scheme::Exact)).every(1).synchronous(true);
                let mut runner = runner(
                    Some(saving.build_on(&comm).unwrap()),
                    AtIterations::new(&kills),
                    RunLimits { iterations: 1000, executed: 10_000 },
                );
                let report = runner.run(&mut || made.solver()).unwrap();
                assert_eq!((report.ended, report.failures), (Ended::Converged, kills.len() as u64), "{solve:?}");
                assert_eq!(report.failed, Vec::new(), "{solve:?}");
                // A failure strikes before the iteration is saved.
                assert_eq!((report.lost, report.recoveries), (report.failures, report.failures - 1), "{solve:?}");
                for sample in &report.history {
                    let undisturbed = history[sample.iteration as usize - 1].relative_residual();
                    assert_eq!(sample.relative_residual.to_bits(), undisturbed.to_bits(), "{solve:?}: {sample:?}");
                }
            });
        });
    }
}
