//! Blocks of columns: `A X = B`, each column under a bound of its own, restored as a whole.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{
    Bound, CodecId, Distribution, Iteration, Manifest, Operator, Registered, Resume, Role, Scheme, Status, Store,
};
use recoup::io::{Access, Hdf5Store};
use recoup::pipeline::{PipelineError, Session};
use recoup::solvers::{Cg, Columns, Csr, Identity, Pool, RightHandSide, Stop, System};
use recoup::{Builder, pipeline};
use recoup_testkit::doubles;

const EDGE: usize = 12;
const ROWS: usize = EDGE * EDGE * EDGE;
const COLUMNS: usize = 3;
const RTOL: f64 = 1e-8;
const THETA: f64 = 0.5;

/// A block whose columns converge at different iterations: the first is an eigenvector of A, with
/// which CG ends at once; the last is tiny.
struct BlockProblem {
    a: Arc<Csr>,
    b: Arc<[f64]>,
    pool: Pool,
    start: Vec<f64>,
}

impl BlockProblem {
    fn new() -> Self {
        let a = Arc::new(Csr::poisson3d(EDGE));
        let wave = |i: usize| (std::f64::consts::PI * (i + 1) as f64 / (EDGE + 1) as f64).sin();
        let eigenvector = (0..ROWS).map(|at| wave(at % EDGE) * wave(at / EDGE % EDGE) * wave(at / EDGE / EDGE));
        let random = |seed| RightHandSide::Random { seed }.build(a.as_ref()).unwrap();
        let b = eigenvector.chain(random(1)).chain(random(2).into_iter().map(|b| 1e-6 * b)).collect();
        Self { a, b, pool: Pool::new(1), start: vec![0.0; ROWS] }
    }

    fn column(&self, column: usize) -> &[f64] {
        &self.b[column * ROWS..][..ROWS]
    }

    fn solver(&self) -> Columns<Cg<'_>> {
        let cg = |column| {
            let system = System { a: self.a.as_ref(), b: self.column(column), comm: &Solo, pool: &self.pool };
            Cg::new(system, &Identity, &self.start, Stop::at(RTOL)).unwrap()
        };
        Columns::new((0..COLUMNS).map(cg).collect()).unwrap()
    }

    fn builder(&self, dir: &Path, scheme: Scheme) -> Builder {
        let builder = recoup::open(dir).block(self.a.clone(), self.b.clone(), COLUMNS);
        builder.scheme(scheme).theta(THETA).tolerance(RTOL).every(5)
    }

    /// Residual norm of a column's iterate.
    fn residual_norm(&self, column: usize, x: &[f64]) -> f64 {
        let mut residual = vec![0.0; ROWS];
        self.a.residual(self.column(column), x, &mut residual).unwrap().sqrt()
    }
}

/// Steps until `end`, or to the end.
fn drive(session: &mut Session, solver: &mut Columns<Cg<'_>>, end: u64) {
    while solver.progress().status == Status::Running && solver.progress().iteration < end {
        solver.step().unwrap();
        session.step(solver).unwrap();
    }
}

fn bits(solver: &Columns<Cg<'_>>) -> Vec<u64> {
    solver.variables().into_iter().flat_map(|v| doubles(v.values)).map(f64::to_bits).collect()
}

/// The decoded columns of the newest version.
fn iterates(solver: &Columns<Cg<'_>>) -> Vec<Vec<f64>> {
    let of_column = |column: usize| {
        let name = format!("x.{column}");
        doubles(solver.variables().iter().find(|v| v.name == name).unwrap().values)
    };
    (0..COLUMNS).map(of_column).collect()
}

fn newest(dir: &Path) -> Manifest {
    let store = Hdf5Store::open(dir, "solve", Access::Read).unwrap();
    let version = *store.versions().unwrap().last().unwrap();
    store.manifest(version).unwrap()
}

#[test]
fn an_exact_block_goes_on_bit_for_bit_with_columns_that_have_converged() {
    let block = BlockProblem::new();
    let mut alone = block.solver();
    while alone.progress().status == Status::Running {
        alone.step().unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut solver = block.solver();
    drive(&mut block.builder(dir.path(), Scheme::Exact).build().unwrap(), &mut solver, 17);
    let mut again = block.solver();
    let mut session = block.builder(dir.path(), Scheme::Exact).build().unwrap();
    let restored = session.restore(&mut again).unwrap().unwrap();
    assert_eq!((restored.version, restored.resume), (15, Resume::Exact));
    assert!(again.solves()[0].progress().is_converged() && !again.progress().is_converged());
    drive(&mut session, &mut again, u64::MAX);
    assert_eq!(again.progress(), alone.progress());
    assert_eq!(bits(&again), bits(&alone));
}

/// `||b_j - A x'_j|| <= (1 + theta) ||r_j||` for each column, by its own residual; the column that
/// had converged meets the tolerance after the recovery, too. One bound for all, made for the
/// largest residual, would leave the tiny column without a digit.
#[test]
fn each_lossy_column_is_within_its_own_bound_and_a_converged_one_stays_converged() {
    let block = BlockProblem::new();
    let dir = tempfile::tempdir().unwrap();
    // From x alone: a deflated resume begins by moving x.
    let open = || block.builder(dir.path(), Scheme::Lossy).lossy_resume(Resume::Restarted).build().unwrap();
    let mut solver = block.solver();
    drive(&mut open(), &mut solver, 16);
    let manifest = newest(dir.path());
    assert_eq!((manifest.version, manifest.columns.len()), (15, COLUMNS));
    let mut again = block.solver();
    let mut session = open();
    let restored = session.restore(&mut again).unwrap().unwrap();
    assert_eq!(restored.version, 15);
    for (column, (record, x)) in manifest.columns.iter().zip(iterates(&again)).enumerate() {
        let found = block.residual_norm(column, &x);
        let before = record.true_norm.unwrap();
        // A restarted CG has not moved x; both norms are of the same sums.
        assert!(found <= (1.0 + THETA) * before, "column {column}: {found:e} after, {before:e} before");
        assert_eq!(record.verified_norm, Some(found), "column {column}");
    }
    let [converged, usual, tiny] = [0, 1, 2].map(|column| bound(&manifest, column));
    assert!(converged < 1e-6 * usual && tiny < 1e-4 * usual, "{converged:e} {usual:e} {tiny:e}");
    assert!(again.solves()[0].progress().is_converged());
    let worst = manifest.columns.iter().map(|c| c.norm / c.rhs_norm).fold(0.0, f64::max);
    assert_eq!(manifest.residual.norm / manifest.residual.rhs_norm, worst);
    drive(&mut session, &mut again, u64::MAX);
    assert!(again.progress().is_converged());
    for (column, x) in iterates(&again).iter().enumerate() {
        let norm_of_b = block.column(column).iter().map(|b| b * b).sum::<f64>().sqrt();
        assert!(block.residual_norm(column, x) <= RTOL * norm_of_b, "column {column}");
    }
}

/// Returns the bound of a column's iterate; 0 if it was saved without loss.
fn bound(manifest: &Manifest, column: usize) -> f64 {
    let name = format!("x.{column}");
    let frame = manifest.frames.iter().find(|frame| frame.variable == name).unwrap();
    frame.bound.value()
}

#[test]
fn recurrences_of_a_lossy_block_continue() {
    let block = BlockProblem::new();
    let mut alone = block.solver();
    while alone.progress().status == Status::Running {
        alone.step().unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let open = || block.builder(dir.path(), Scheme::Lossy).resume(Resume::Traditional).build().unwrap();
    let mut solver = block.solver();
    drive(&mut open(), &mut solver, 17);
    let mut again = block.solver();
    let mut session = open();
    assert_eq!(session.restore(&mut again).unwrap().unwrap().resume, Resume::Traditional);
    drive(&mut session, &mut again, u64::MAX);
    assert!(again.progress().is_converged());
    // As for a single column (tests/recurrences.rs): at most 1 % of extra iterations, and at least
    // one for rounding at the tolerance.
    assert!(again.progress().iteration <= alone.progress().iteration + 1);
}

#[test]
fn damage_of_one_column_is_named_and_costs_the_whole_version() {
    let block = BlockProblem::new();
    let dir = tempfile::tempdir().unwrap();
    let mut solver = block.solver();
    drive(&mut block.builder(dir.path(), Scheme::Lossy).build().unwrap(), &mut solver, 11);
    let manifest = newest(dir.path());
    let frame = manifest.frames.iter().find(|frame| frame.variable == "x.1").unwrap();
    let place = frame.place.clone().unwrap();
    let file = dir.path().join("solve").join(format!("v{:012}", manifest.version)).join(place.file);
    let mut bytes = fs::read(&file).unwrap();
    bytes[place.offset as usize] ^= 1;
    fs::write(&file, bytes).unwrap();
    let mut again = block.solver();
    let mut session = block.builder(dir.path(), Scheme::Lossy).build().unwrap();
    let restored = session.restore(&mut again).unwrap().unwrap();
    assert_eq!((manifest.version, restored.version), (10, 5));
    assert!(restored.skipped[0].damage[0].contains("x.1/0"), "{:?}", restored.skipped);
}

/// An owner of fewer columns than were saved.
struct Fewer<'s, 'a>(&'s mut Columns<Cg<'a>>);

impl Registered for Fewer<'_, '_> {
    fn variables(&self) -> Vec<recoup::core::Variable<'_>> {
        self.0.variables().into_iter().filter(|v| v.column < Some(COLUMNS - 1)).collect()
    }

    fn variables_mut(&mut self) -> Vec<recoup::core::VariableMut<'_>> {
        let last = format!(".{}", COLUMNS - 1);
        self.0.variables_mut().into_iter().filter(|v| !v.name.ends_with(&last)).collect()
    }
}

#[test]
fn a_block_is_restored_as_a_whole_or_refused() {
    let block = BlockProblem::new();
    let dir = tempfile::tempdir().unwrap();
    let mut solver = block.solver();
    drive(&mut block.builder(dir.path(), Scheme::Exact).build().unwrap(), &mut solver, 6);
    let mut session = recoup::open(dir.path()).scheme(Scheme::Exact).build().unwrap();
    let error = session.restore_with(&mut [&mut Fewer(&mut solver)]).unwrap_err();
    assert_eq!(error.to_string(), "version 5, variable x.0 of rank 0: 2 columns registered, 3 saved");
    drop(session);
    // Columns that have changed places are another right-hand side.
    let turned: Arc<[f64]> = [block.column(1), block.column(0), block.column(2)].concat().into();
    let mut session = recoup::open(dir.path()).block(block.a.clone(), turned, COLUMNS).build().unwrap();
    let error = session.restore(&mut solver).unwrap_err();
    assert!(error.to_string().contains("another right-hand side"), "{error}");
    let short = recoup::open(dir.path()).name("short").block(block.a.clone(), block.b.clone(), 2).build();
    assert!(
        short.is_err_and(|error| error.to_string() == format!("b: {} values expected, {} found", 2 * ROWS, 3 * ROWS))
    );
}

/// A program of its own reports the norms it knows, and none is measured. The norms of its method
/// are those of preconditioned residuals, as PETSc's: they made each version a jump of the residual
/// by the factor between the two, and lossy ones a bad choice.
#[test]
fn known_norms_of_columns_replace_measurements() {
    let block = BlockProblem::new();
    let dir = tempfile::tempdir().unwrap();
    let builder = block.builder(dir.path(), Scheme::Lossy).lossy_codec(CodecId::Qb);
    let plan = builder.plan_of(Scheme::Lossy);
    let mut session = builder.build().unwrap();
    let mut solver = block.solver();
    for _ in 0..10 {
        solver.step().unwrap();
    }
    let mut column_norms = Vec::new();
    solver.column_norms(&mut column_norms);
    let preconditioned: Vec<f64> = column_norms.iter().map(|norm| 1e-4 * norm).collect();
    session.report_columns(&preconditioned);
    let known = pipeline::KnownNorms { column_norms: column_norms.clone(), ..Default::default() };
    session.checkpoint_with_norms(plan, solver.progress(), &[&solver], known).unwrap();
    session.wait().unwrap();
    let outcomes = session.take_outcomes();
    let [pipeline::Outcome::Saved(saved)] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert!((0.5..=1.0 + THETA).contains(&saved.residual_jump), "{}", saved.residual_jump);
    let short = pipeline::KnownNorms { column_norms: column_norms[1..].to_vec(), ..Default::default() };
    let refused = session.checkpoint_with_norms(plan, solver.progress(), &[&solver], short).unwrap_err();
    assert_eq!(refused.to_string(), "residual norms of columns: 3 values expected, 2 found");
    assert!(matches!(refused, PipelineError::Solve(_)));
    drop(session);
    let manifest = newest(dir.path());
    for (record, norm) in manifest.columns.iter().zip(&column_norms) {
        assert_eq!((record.norm, record.true_norm), (1e-4 * norm, None));
        assert!(record.verified_norm.unwrap() <= (1.0 + THETA) * norm);
    }
    let columns: Vec<_> = manifest.variables.iter().filter(|v| v.role == Role::Iterate).collect();
    assert!(columns.iter().enumerate().all(|(at, v)| v.column == Some(at) && v.dims == [EDGE; 3]));
    assert!(columns.iter().all(|v| matches!(v.distribution, Distribution::Rows { .. })));
    assert!(manifest.frames.iter().all(|f| f.bound != Bound::Lossless || !f.variable.starts_with("x.1")));
}
