//! Does a version of P ranks come back on Q ranks, with the same global values?

use std::ops::Range;
use std::path::Path;

use recoup::comm::Threads;
use recoup::core::{
    CodecId, Comm, CommError, Distribution, Iteration, Operator, Plan, Resume, Role, Scheme, Status, Store, Values,
    ValuesMut, gather_json,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{PipelineError, Session, Variables};
use recoup::solvers::{Cg, Csr, JacobiPreconditioner, Pool, RightHandSide, Stop, System};
use recoup_testkit::progress;

use crate::support::{fixed, plan};

/// The absolute bound of lossy versions here.
const E: f64 = 1e-7;
const SAVED_AT: u64 = 10;
const SWITCHES: [(usize, usize); 6] = [(4, 2), (2, 4), (4, 3), (8, 1), (1, 3), (3, 3)];

/// A contiguous run of rows of a matrix every rank holds whole: the plainest operator that is
/// spread over ranks.
struct Rows<'a> {
    whole: &'a Csr,
    range: Range<usize>,
    comm: &'a dyn Comm,
}

impl Rows<'_> {
    /// The global vector of which `x` is this rank's part.
    fn global(&self, x: &[f64]) -> Result<Vec<f64>, CommError> {
        gather(self.comm, x)
    }
}

impl Operator for Rows<'_> {
    fn rows(&self) -> usize {
        self.range.len()
    }

    fn first_row(&self) -> u64 {
        self.range.start as u64
    }

    fn global_rows(&self) -> u64 {
        self.whole.rows() as u64
    }

    fn nonzeros(&self) -> u64 {
        self.range.clone().map(|row| self.whole.row(row).0.len() as u64).sum()
    }

    fn bytes(&self) -> u64 {
        12 * self.nonzeros()
    }

    fn apply(&self, x: &[f64], y: &mut [f64]) -> Result<(), CommError> {
        let x = self.global(x)?;
        for (y, row) in y.iter_mut().zip(self.range.clone()) {
            let (columns, values) = self.whole.row(row);
            *y = columns.iter().zip(values).map(|(&column, a)| a * x[column as usize]).sum();
        }
        Ok(())
    }

    fn diagonal(&self) -> Option<Vec<f64>> {
        Some(self.whole.diagonal()?[self.range.clone()].to_vec())
    }
}

/// The parts of all ranks, in order.
fn gather(comm: &dyn Comm, part: &[f64]) -> Result<Vec<f64>, CommError> {
    let bits: Vec<u64> = part.iter().map(|value| value.to_bits()).collect();
    Ok(gather_json(comm, &bits)?.concat().into_iter().map(f64::from_bits).collect())
}

/// Uneven on purpose: no two ranks own as many rows.
fn range(n: usize, rank: usize, ranks: usize) -> Range<usize> {
    let start = |rank: usize| n * rank * (rank + ranks) / (2 * ranks * ranks);
    start(rank)..if rank + 1 == ranks { n } else { start(rank + 1) }
}

/// A CG solve of one rank of some.
struct Job {
    a: Csr,
    b: Vec<f64>,
}

impl Job {
    fn new() -> Self {
        let a = Csr::poisson3d(9);
        let b = RightHandSide::Random { seed: 3 }.build(&a).unwrap();
        Self { a, b }
    }

    /// Runs `work` with a fresh solver of this rank.
    fn with<T>(&self, comm: &dyn Comm, work: impl FnOnce(&mut Cg<'_>) -> T) -> T {
        let range = range(self.b.len(), comm.rank(), comm.size());
        let a = Rows { whole: &self.a, range: range.clone(), comm };
        let m = JacobiPreconditioner::new(&a).unwrap();
        let pool = Pool::new(1);
        let system = System { a: &a, b: &self.b[range.clone()], comm, pool: &pool };
        work(&mut Cg::new(system, &m, &vec![0.0; range.len()], Stop::at(1e-8)).unwrap())
    }

    /// Saves every five iterations up to [`SAVED_AT`]; the global iterate there.
    fn save(&self, dir: &Path, plan: Plan, ranks: usize) -> Vec<f64> {
        let parts = Threads::launch(ranks, |comm| {
            let mut session = session(dir, plan, &comm);
            self.with(&comm, |solver| {
                while solver.progress().iteration < SAVED_AT {
                    solver.step().unwrap();
                    session.step(solver).unwrap();
                }
                session.wait().unwrap();
                iterate(solver, &comm)
            })
        });
        parts[0].clone()
    }

    /// `||b - A x|| / ||b||`.
    fn relative_residual(&self, x: &[f64]) -> f64 {
        let mut r = vec![0.0; x.len()];
        let squared = self.a.residual(&self.b, x, &mut r).unwrap();
        (squared.rounded() / self.b.iter().map(|b| b * b).sum::<f64>()).sqrt()
    }
}

fn session(dir: &Path, plan: Plan, comm: &dyn Comm) -> Session {
    recoup::open(dir).plan(plan).every(5).keep(100).build_on(comm).unwrap()
}

fn iterate(solver: &dyn Iteration, comm: &dyn Comm) -> Vec<f64> {
    let Some(Values::F64(x)) = solver.variables()[0].values.host() else { panic!("x is the first variable") };
    gather(comm, x).unwrap()
}

/// A lossy version whose iterate is coded against the one before.
fn chained() -> Plan {
    Plan { resume: Resume::Deflated, ..fixed(CodecId::Qb, E) }
}

/// What a job of `ranks` ranks makes of it: the ranks that wrote it, the global iterate restored,
/// the one it ends with.
fn go_on(job: &Job, dir: &Path, plan: Plan, ranks: usize) -> (usize, Vec<f64>, Vec<f64>) {
    let parts = Threads::launch(ranks, |comm| {
        let mut session = session(dir, plan, &comm);
        job.with(&comm, |solver| {
            // A deflated resume moves the iterate, so the one restored is looked at before.
            session.restore_with(&mut [&mut *solver]).unwrap().unwrap();
            let x = iterate(solver, &comm);
            let restored = session.restore(solver).unwrap().unwrap();
            assert_eq!((restored.version, restored.resume), (SAVED_AT, plan.resume));
            while solver.progress().status == Status::Running {
                solver.step().unwrap();
                session.step(solver).unwrap();
            }
            assert!(solver.progress().is_converged());
            session.wait().unwrap();
            (restored.ranks, x, iterate(solver, &comm))
        })
    });
    assert!(parts.iter().all(|part| part == &parts[0]), "ranks disagree");
    parts[0].clone()
}

#[test]
fn cg_goes_on_from_any_rank_count_on_any_other_with_the_same_iterate() {
    let job = Job::new();
    let exact = Plan { resume: Resume::Exact, ..plan(Scheme::Exact) };
    for (saved, restored) in SWITCHES {
        for (what, plan, bound) in [("exact", exact, 0.0), ("deflated, chained", chained(), E)] {
            let dir = tempfile::tempdir().unwrap();
            let x = job.save(dir.path(), plan, saved);
            let (ranks, back, end) = go_on(&job, dir.path(), plan, restored);
            assert_eq!(ranks, saved);
            let worst = x.iter().zip(&back).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
            assert!(worst <= bound, "{saved} to {restored}, {what}: {worst}");
            // The solver stops on the true residual; here it is summed in another order.
            assert!(job.relative_residual(&end) <= 1e-8 * (1.0 + 1e-9), "{saved} to {restored}, {what}");
        }
    }
}

#[test]
fn versions_saved_before_on_other_ranks_are_chains_and_the_next_one_is_a_key() {
    let job = Job::new();
    let dir = tempfile::tempdir().unwrap();
    job.save(dir.path(), chained(), 4);
    let reading = Hdf5Store::open(dir.path(), "solve", Access::Read).unwrap();
    let parents = |version: u64| reading.manifest(version).unwrap().parents().into_iter().collect::<Vec<_>>();
    assert_eq!(parents(10), [5], "the version restored below is coded against another");
    go_on(&job, dir.path(), chained(), 3);
    assert_eq!((reading.manifest(15).unwrap().ranks, parents(15)), (3, vec![]));
    assert_eq!(parents(20), [15]);
}

/// Three variables of one rank: rows of a global vector, values all ranks share, and one of `own`
/// kind.
struct Owned {
    x: Vec<f64>,
    rho: Vec<f64>,
    clock: Vec<f64>,
}

impl Owned {
    fn filled(value: f64, comm: &dyn Comm) -> Self {
        let rows = range(6, comm.rank(), comm.size());
        Self { x: vec![value; rows.len()], rho: vec![value; 2], clock: vec![value] }
    }

    fn register(&mut self, own: Distribution, comm: &dyn Comm) -> Variables<'_> {
        let first = range(6, comm.rank(), comm.size()).start as u64;
        Variables::new()
            .with("x", Role::Iterate, ValuesMut::F64(&mut self.x), Distribution::Rows { first, global: 6 })
            .with("rho", Role::Dynamic, ValuesMut::F64(&mut self.rho), Distribution::Replicated)
            .with("clock", Role::Dynamic, ValuesMut::F64(&mut self.clock), own)
    }

    /// Saves ones on some ranks and restores them on others: what each rank gets, or the refusal.
    fn carry(saved: usize, restored: usize, own: Distribution) -> Vec<(Self, Result<usize, PipelineError>)> {
        let dir = tempfile::tempdir().unwrap();
        Threads::launch(saved, |comm| {
            let mut session = session(dir.path(), plan(Scheme::Exact), &comm);
            let mut ones = Self::filled(1.0, &comm);
            session.checkpoint(plan(Scheme::Exact), progress(5), &[&ones.register(own, &comm)]).unwrap();
            session.wait().unwrap();
        });
        Threads::launch(restored, |comm| {
            let mut session = session(dir.path(), plan(Scheme::Exact), &comm);
            let mut zeros = Self::filled(0.0, &comm);
            let result = session.restore_with(&mut [&mut zeros.register(own, &comm)]);
            (zeros, result.map(|restored| restored.unwrap().ranks))
        })
    }
}

#[test]
fn values_of_each_ranks_own_are_refused_by_name_with_both_counts() {
    for (saved, restored) in [(4, 2), (2, 3)] {
        for (values, refused) in Owned::carry(saved, restored, Distribution::RankLocal) {
            let message = refused.unwrap_err().to_string();
            let expected = format!("version 5 was written by {saved} ranks, this job has {restored}: variable clock");
            assert!(message.contains(&expected), "{message}");
            let untouched = [&values.x, &values.rho, &values.clock].into_iter().flatten().all(|&v| v == 0.0);
            assert!(untouched, "a refusal overwrites nothing");
        }
    }
}

#[test]
fn replicated_values_come_from_any_rank() {
    for (saved, restored) in [(4, 2), (2, 3)] {
        for (values, ranks) in Owned::carry(saved, restored, Distribution::Replicated) {
            assert_eq!(ranks.unwrap(), saved);
            let all = [&values.x, &values.rho, &values.clock].into_iter().flatten().all(|&v| v == 1.0);
            assert!(all, "{saved} to {restored}");
        }
    }
}
