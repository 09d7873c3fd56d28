//! Blocks of columns and runs of many systems on several ranks: do they come back on as many, or
//! on another number of them?

use std::path::Path;
use std::sync::Arc;

use recoup::comm::Threads;
use recoup::core::{
    Comm, Distribution, Iteration, Manifest, Operator, Registered, Resume, Role, Scheme, Status, Store, ValuesMut,
    gather_json,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{Reference, Variables};
use recoup::solvers::{Cg, Columns, Csr, DistributedPoisson3d, Identity, Method, Pool, RightHandSide, Stop, System};
use recoup_testkit::doubles;

const EDGE: usize = 12;
const ROWS: usize = EDGE * EDGE * EDGE;
const COLUMNS: usize = 3;
const SAVED_AT: u64 = 15;
const RTOL: f64 = 1e-8;
const THETA: f64 = 0.5;
/// Ranks that save, and ranks that continue.
const SWITCHES: [(usize, usize); 5] = [(3, 3), (4, 2), (2, 3), (1, 4), (7, 3)];

/// The global right-hand sides: random ones, of which the last is tiny.
fn columns() -> Vec<Vec<f64>> {
    let a = Csr::poisson3d(EDGE);
    let column = |seed, scale: f64| {
        let b = RightHandSide::Random { seed }.build(&a).unwrap();
        b.into_iter().map(|b| scale * b).collect()
    };
    vec![column(1, 1.0), column(2, 1e3), column(3, 1e-6)]
}

/// `||b - A x||` of global vectors.
fn residual_norm(b: &[f64], x: &[f64]) -> f64 {
    Csr::poisson3d(EDGE).residual(b, x, &mut vec![0.0; ROWS]).unwrap().sqrt()
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The parts of all ranks, in order.
fn gather(comm: &dyn Comm, part: &[f64]) -> Vec<f64> {
    let bits: Vec<u64> = part.iter().map(|value| value.to_bits()).collect();
    gather_json(comm, &bits).unwrap().concat().into_iter().map(f64::from_bits).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// What one rank computes with.
struct Own<'a> {
    comm: &'a dyn Comm,
    pool: Arc<Pool>,
    a: DistributedPoisson3d,
}

impl<'a> Own<'a> {
    fn new(comm: &'a dyn Comm) -> Self {
        let pool = Arc::new(Pool::new(1));
        let a = DistributedPoisson3d::new(comm.dup().unwrap(), EDGE, pool.clone());
        Self { comm, pool, a }
    }

    /// This rank's part of a global vector.
    fn part(&self, x: &[f64]) -> Vec<f64> {
        x[self.a.first_row() as usize..][..self.a.rows()].to_vec()
    }

    /// The operator as a session has it: its messages are not the solver's.
    fn reference(&self) -> Arc<DistributedPoisson3d> {
        Arc::new(self.a.over(self.comm.dup().unwrap()))
    }

    /// The state of a time loop: this rank's rows.
    fn saved<'s>(&self, state: &'s mut [f64]) -> Variables<'s> {
        let rows = Distribution::Rows { first: self.a.first_row(), global: self.a.global_rows() };
        Variables::new().with("u", Role::Dynamic, ValuesMut::F64(state), rows)
    }

    fn cg<'s>(&'s self, b: &'s [f64]) -> Cg<'s> {
        let system = System { a: &self.a, b, comm: self.comm, pool: &self.pool };
        Cg::new(system, &Identity, &vec![0.0; b.len()], Stop::at(RTOL)).unwrap()
    }
}

/// What a job of some ranks had of a block.
struct BlockEnd {
    /// The global columns where it began: those of the version, if there is one.
    first: Vec<Vec<f64>>,
    last: Vec<Vec<f64>>,
    iteration: u64,
}

/// Solves the block, from its newest version if there is one, up to iteration `end`.
fn solve_block(dir: &Path, scheme: Scheme, ranks: usize, end: u64) -> BlockEnd {
    let b = columns();
    let mut ends = Threads::launch(ranks, |comm| {
        let own = Own::new(&comm);
        let b: Vec<Vec<f64>> = b.iter().map(|b| own.part(b)).collect();
        let mut solver = Columns::new(b.iter().map(|b| own.cg(b)).collect()).unwrap();
        let builder = recoup::open(dir).block(own.reference(), b.concat().into(), COLUMNS);
        // A deflated resume moves x at once, and its norms would not be those of the version.
        let builder = builder.scheme(scheme).theta(THETA).tolerance(RTOL).every(5).lossy_resume(Resume::Restarted);
        let mut session = builder.build_on(&comm).unwrap();
        session.restore(&mut solver).unwrap();
        let first = global(&solver, &comm);
        while solver.progress().status == Status::Running && solver.progress().iteration < end {
            solver.step().unwrap();
            session.step(&solver).unwrap();
        }
        session.wait().unwrap();
        BlockEnd { first, last: global(&solver, &comm), iteration: solver.progress().iteration }
    });
    ends.swap_remove(0)
}

/// The global iterates of a block.
fn global(solver: &Columns<Cg<'_>>, comm: &dyn Comm) -> Vec<Vec<f64>> {
    let of_column = |column: usize| {
        let name = format!("x.{column}");
        let part = doubles(solver.variables().iter().find(|v| v.name == name).unwrap().values);
        gather(comm, &part)
    };
    (0..COLUMNS).map(of_column).collect()
}

fn newest(dir: &Path) -> Manifest {
    let store = Hdf5Store::open(dir, "solve", Access::Read).unwrap();
    store.manifest(*store.versions().unwrap().last().unwrap()).unwrap()
}

#[test]
fn a_block_of_some_ranks_comes_back_on_others_within_the_bound_of_each_column() {
    let b = columns();
    for (saving, going_on) in SWITCHES {
        let dir = tempfile::tempdir().unwrap();
        solve_block(dir.path(), Scheme::Lossy, saving, SAVED_AT);
        let manifest = newest(dir.path());
        assert_eq!((manifest.version, manifest.columns.len()), (SAVED_AT, COLUMNS));
        let resumed = solve_block(dir.path(), Scheme::Lossy, going_on, u64::MAX);
        for (column, record) in manifest.columns.iter().enumerate() {
            let found = residual_norm(&b[column], &resumed.first[column]);
            let limit = (1.0 + THETA) * record.true_norm.unwrap();
            assert!(found <= limit, "{saving} to {going_on}, column {column}: {found:e} after, {limit:e} allowed");
            let end = residual_norm(&b[column], &resumed.last[column]);
            assert!(end <= RTOL * norm(&b[column]) * (1.0 + 1e-6), "{saving} to {going_on}, column {column}: {end:e}");
        }
    }
}

#[test]
fn an_exact_block_of_some_ranks_goes_on_bit_for_bit() {
    let whole = solve_block(tempfile::tempdir().unwrap().path(), Scheme::Exact, 1, u64::MAX);
    for (saving, going_on) in SWITCHES {
        let dir = tempfile::tempdir().unwrap();
        let saved = solve_block(dir.path(), Scheme::Exact, saving, SAVED_AT);
        let resumed = solve_block(dir.path(), Scheme::Exact, going_on, u64::MAX);
        for (column, (saved, resumed)) in saved.last.iter().zip(&resumed.first).enumerate() {
            assert_eq!(bits(saved), bits(resumed), "{saving} to {going_on}, column {column}");
        }
        assert_eq!(whole.iteration, resumed.iteration, "{saving} to {going_on}");
        let is_same = |(whole, resumed): (&Vec<f64>, &Vec<f64>)| bits(whole) == bits(resumed);
        assert!(whole.last.iter().zip(&resumed.last).all(is_same), "{saving} to {going_on}");
    }
}

/// Time steps of a run of many systems.
const STEPS: u64 = 4;

/// `A u' = u / ||u||`, step by step, up to `life` iterations of this job. Returns the global state
/// where it ended, and the step it began with.
fn march(dir: &Path, scheme: Scheme, ranks: usize, life: u64) -> (Vec<f64>, u64) {
    let start = &columns()[0];
    let mut ends = Threads::launch(ranks, |comm| {
        let own = Own::new(&comm);
        let builder = recoup::open(dir).systems().scheme(scheme).tolerance(RTOL).every(4);
        let mut session = builder.build_on(&comm).unwrap();
        let mut state = own.part(start);
        let restored = session.restore_with(&mut [&mut own.saved(&mut state)]).unwrap();
        let first = restored.and_then(|restored| restored.system).map_or(0, |system| system.index);
        let mut life = life;
        for step in first..STEPS {
            let size = norm(&gather(&comm, &state));
            let b: Arc<[f64]> = state.iter().map(|u| u / size).collect();
            session.begin_system(step, Reference::new(own.reference(), b.clone())).unwrap();
            let mut cg = own.cg(&b);
            session.restore(&mut cg).unwrap();
            while cg.progress().status == Status::Running && life > 0 {
                cg.step().unwrap();
                session.step_with_state(&cg, &[&own.saved(&mut state)]).unwrap();
                life -= 1;
            }
            if cg.progress().status == Status::Running {
                break;
            }
            state = cg.iterate().unwrap();
        }
        session.wait().unwrap();
        (gather(&comm, &state), first)
    });
    ends.swap_remove(0)
}

#[test]
fn a_time_loop_of_some_ranks_goes_on_in_its_step_on_others() {
    let alone = march(tempfile::tempdir().unwrap().path(), Scheme::None, 1, u64::MAX).0;
    for scheme in [Scheme::Exact, Scheme::Lossy] {
        for (saving, going_on) in SWITCHES {
            let dir = tempfile::tempdir().unwrap();
            march(dir.path(), scheme, saving, 90);
            let (resumed, first) = march(dir.path(), scheme, going_on, u64::MAX);
            assert!(0 < first && first < STEPS, "step {first}");
            if scheme == Scheme::Exact {
                assert_eq!(bits(&resumed), bits(&alone));
            }
            // Every step ends within the tolerance, and A damps what a step leaves.
            let off: Vec<f64> = resumed.iter().zip(&alone).map(|(resumed, alone)| resumed - alone).collect();
            let off = norm(&off) / norm(&alone);
            assert!(off <= 1e-5, "{scheme}, {saving} to {going_on}: {off:e}");
        }
    }
}
