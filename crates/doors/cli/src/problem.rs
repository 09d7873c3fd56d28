//! The problem a command works on: `A x = b`, read or made, and the resources to solve it.
//!
//! With several ranks each has a part of the rows. Every rank reads the matrix file and keeps the
//! entries of its own rows; no rank ever holds the rows of others. A file with b is read whole by
//! every rank.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use recoup::compress::codec;
use recoup::core::{Comm, Operator};
use recoup::pipeline::{Codecs, Reference};
use recoup::solvers::{
    Csr, DistributedCsr, DistributedPoisson3d, LocalRows, MatrixMarketError, Poisson3d, Pool, RightHandSide,
    RowPartition, System, read_matrix, read_matrix_rows,
};

use crate::exit::Exit;
use crate::free_memory::free_bytes;
use crate::options::row_grid::RowGrid;
use crate::options::{OperatorKind, ProblemArgs};
use crate::output::bytes;
use crate::place::SolveDevice;
use crate::ranks::{self, agree};
use crate::vector_file::{self, RIGHT_HAND_SIDE};

/// Bytes of b, x and two more vectors, for each row.
const VECTORS_BYTES: u64 = 4 * 8;
/// Bytes of an assembled row of the grid while it is made: seven entries and a start, twice.
const CSR_BYTES: u64 = 2 * (7 * 12 + 6);

type SharedOperator = Arc<dyn Operator + Send + Sync>;

/// The rows of `A x = b` that this rank has.
pub(crate) struct LinearProblem {
    /// The operator.
    pub(crate) operator: SharedOperator,
    /// The same operator, for the thread that verifies versions.
    reference: SharedOperator,
    /// The entries between rows of this rank, if the operator is assembled: some preconditioners
    /// and sweeps need them.
    pub(crate) rows: Option<Arc<Csr>>,
    /// The right-hand side.
    pub(crate) rhs: Arc<[f64]>,
    /// The threads of this rank.
    pub(crate) pool: Arc<Pool>,
    /// The codecs.
    pub(crate) codecs: Codecs,
    /// The device to solve on, if one was asked for.
    pub(crate) device: Option<SolveDevice>,
    /// Nonzeros of A on all ranks.
    pub(crate) nonzeros: u64,
    comm: Box<dyn Comm>,
}

/// An operator twice, for two threads, and its local rows.
struct Operators {
    operator: SharedOperator,
    reference: SharedOperator,
    rows: Option<Arc<Csr>>,
}

impl LinearProblem {
    /// Reads or makes what the options say. Collective.
    ///
    /// # Errors
    /// Exit 5 for MPI and CUDA, exit 2 for options that contradict each other, exit 1 for files
    /// that cannot be used; the same on all ranks.
    pub(crate) fn load(args: &ProblemArgs) -> Result<Self> {
        let comm = ranks::comm(args.mpi)?;
        let device = SolveDevice::open(args.device, args.device_staging, comm.as_ref())?;
        agree(comm.as_ref(), source(args).and_then(|source| check_memory(&source, comm.size())))?;
        let all = Codecs::shared(codec, comm.size());
        let codecs = Codecs { threads: args.threads.map_or(all.threads, usize::from), ..all };
        let pool = Arc::new(Pool::new(codecs.threads));
        let Operators { operator, reference, rows } =
            if comm.size() == 1 { whole(args, &pool)? } else { shared(args, comm.as_ref(), &pool)? };
        let rhs = right_hand_side(args, operator.as_ref(), comm.as_ref())?;
        let mut nonzeros = [operator.nonzeros() as f64];
        comm.sum(&mut nonzeros)?;
        let nonzeros = nonzeros[0] as u64;
        Ok(Self { operator, reference, rows, rhs: rhs.into(), pool, codecs, device, nonzeros, comm })
    }

    /// Returns the system that a solver is made from.
    pub(crate) fn system(&self) -> System<'_> {
        System { a: self.operator.as_ref(), b: &self.rhs, comm: self.comm.as_ref(), pool: &self.pool }
    }

    /// Returns the reference that a session verifies against.
    pub(crate) fn reference(&self) -> Reference {
        Reference::new(self.reference.clone(), self.rhs.clone())
    }

    /// Returns the communicator.
    pub(crate) fn comm(&self) -> &dyn Comm {
        self.comm.as_ref()
    }

    /// Returns the number of unknowns of this rank.
    pub(crate) fn n(&self) -> usize {
        self.rhs.len()
    }

    /// Returns the number of unknowns of all ranks.
    pub(crate) fn unknowns(&self) -> u64 {
        self.operator.global_rows()
    }

    /// Computes `||b - A x|| / ||b||` from x alone. Collective.
    pub(crate) fn relative_residual(&self, x: &[f64]) -> Result<f64> {
        let mut r = vec![0.0; self.n()];
        let residual = self.operator.residual(&self.rhs, x, &mut r)?;
        let mut squares = [residual, self.operator.squared_norm(&self.rhs)];
        self.comm.sum_exact(&mut squares)?;
        let [residual, rhs] = squares.map(|squared| squared.sqrt());
        Ok(if rhs > 0.0 { residual / rhs } else { residual })
    }
}

/// The operator that the options ask for.
enum OperatorSource<'a> {
    Stencil(usize),
    Poisson(usize),
    File(&'a Path, Option<RowGrid>),
}

fn source(args: &ProblemArgs) -> Result<OperatorSource<'_>> {
    match (args.poisson3d, &args.matrix, args.operator) {
        (Some(n), _, OperatorKind::Stencil) => Ok(OperatorSource::Stencil(n as usize)),
        (Some(n), _, OperatorKind::Csr) => Ok(OperatorSource::Poisson(n as usize)),
        (None, Some(_), OperatorKind::Stencil) => {
            Err(Exit::Usage.because("--operator stencil needs --poisson3d; a matrix file is kept as csr"))
        }
        (None, Some(path), OperatorKind::Csr) => Ok(OperatorSource::File(path, args.grid)),
        (None, None, _) => Err(Exit::Usage.because("give --poisson3d N or --matrix FILE")),
    }
}

/// Refuses a grid that leaves no memory for its operator and the vectors of a solve: of a system
/// that gives out more than it has, the process would be killed in the middle.
fn check_memory(source: &OperatorSource<'_>, ranks: usize) -> Result<()> {
    let (n, row_bytes, advice) = match source {
        OperatorSource::Stencil(n) => (*n, VECTORS_BYTES, "take a smaller N"),
        OperatorSource::Poisson(n) => {
            (*n, CSR_BYTES.max(VECTORS_BYTES), "take a smaller N, or --operator stencil, which keeps no A")
        }
        OperatorSource::File(..) => return Ok(()),
    };
    let rows = (n as u64).pow(3).div_ceil(ranks as u64);
    let needed = rows.saturating_mul(row_bytes);
    let Some(free) = free_bytes().filter(|free| *free < needed) else { return Ok(()) };
    let [needed, free] = [needed, free].map(|count| bytes(count as f64));
    let what = format!("A of {rows} rows and the vectors of a solve need {needed} of memory, {free} are available");
    Err(Exit::Failed.because(format!("--poisson3d {n}: {what}: {advice}")))
}

/// Makes the operator of one rank.
fn whole(args: &ProblemArgs, pool: &Arc<Pool>) -> Result<Operators> {
    let csr = match source(args)? {
        OperatorSource::Stencil(n) => {
            let operator: SharedOperator = Arc::new(Poisson3d::new(n).with_pool(pool.clone()));
            return Ok(Operators { reference: operator.clone(), operator, rows: None });
        }
        OperatorSource::Poisson(n) => Csr::poisson3d(n),
        OperatorSource::File(path, grid) => {
            let matrix = read_matrix(path).map_err(|error| named(&error))?;
            check_grid(grid, matrix.n())?;
            if let Some(RowGrid(grid)) = grid { matrix.with_grid(grid) } else { matrix }
        }
    };
    let csr = Arc::new(csr.with_pool(pool.clone()));
    Ok(Operators { operator: csr.clone(), reference: csr.clone(), rows: Some(csr) })
}

/// Makes the operator of several ranks. Collective.
fn shared(args: &ProblemArgs, comm: &dyn Comm, pool: &Arc<Pool>) -> Result<Operators> {
    let too_many = |rows: usize, what: &str| {
        Exit::Usage.because(format!("{} ranks cannot share {rows} {what}: start fewer", comm.size()))
    };
    let (partition, rows, grid) = match source(args)? {
        OperatorSource::Stencil(n) if n < comm.size() => return Err(too_many(n, "planes")),
        OperatorSource::Stencil(n) => {
            let operator = DistributedPoisson3d::new(comm.dup()?, n, pool.clone());
            let reference = Arc::new(operator.over(comm.dup()?));
            return Ok(Operators { operator: Arc::new(operator), reference, rows: None });
        }
        OperatorSource::Poisson(n) => {
            let grid = RowGrid([n; 3]);
            let partition = RowPartition::even(grid.points(), grid.slice(), comm.size());
            let rows = LocalRows::poisson3d(n, partition.range(comm.rank()));
            (partition, rows, Some(grid))
        }
        OperatorSource::File(path, grid) => {
            let (partition, rows) = agree(comm, read_own_rows(path, grid, comm))?;
            (partition, rows, grid)
        }
    };
    if partition.rows() < comm.size() {
        return Err(too_many(partition.rows(), "rows"));
    }
    let matrix = DistributedCsr::new(comm.dup()?, &partition, &rows, pool.clone());
    let matrix = agree(comm, matrix.map_err(anyhow::Error::from))?;
    let own_grid = grid.and_then(|grid| grid.of_rows(partition.range(comm.rank()).len()));
    let matrix = if let Some(grid) = own_grid { matrix.with_grid(grid) } else { matrix };
    let reference = Arc::new(matrix.over(comm.dup()?));
    let rows = Some(matrix.local());
    Ok(Operators { operator: Arc::new(matrix), reference, rows })
}

fn named(error: &MatrixMarketError) -> anyhow::Error {
    anyhow!("--matrix {error}")
}

fn read_own_rows(path: &Path, grid: Option<RowGrid>, comm: &dyn Comm) -> Result<(RowPartition, LocalRows)> {
    let mut partition = None;
    let choose = |rows: usize| -> Range<usize> {
        let slice = grid.filter(|grid| grid.points() == rows).map_or(1, RowGrid::slice);
        partition.insert(RowPartition::even(rows, slice, comm.size())).range(comm.rank())
    };
    let rows = read_matrix_rows(path, choose).map_err(|error| named(&error))?;
    let partition = partition.context("a matrix file has a size")?;
    check_grid(grid, partition.rows())?;
    Ok((partition, rows))
}

fn check_grid(grid: Option<RowGrid>, rows: usize) -> Result<()> {
    match grid {
        Some(grid) if grid.points() != rows => Err(Exit::Usage.because(format!(
            "--grid {grid} has {} points, and the matrix {rows} rows: give its extents",
            grid.points()
        ))),
        _ => Ok(()),
    }
}

/// Returns this rank's rows of b. Collective.
fn right_hand_side(args: &ProblemArgs, a: &dyn Operator, comm: &dyn Comm) -> Result<Vec<f64>> {
    let Some(path) = &args.rhs else {
        let kind = match (args.rhs_kind, args.rhs_seed) {
            (RightHandSide::Random { .. }, Some(seed)) => RightHandSide::Random { seed },
            (_, Some(_)) => return Err(Exit::Usage.because("--rhs-seed needs --rhs-kind random")),
            (kind, None) => kind,
        };
        return kind.build(a).context("right-hand side");
    };
    let read = || {
        let rhs = vector_file::read(path, "--rhs", RIGHT_HAND_SIDE)?;
        check_length(path, a.global_rows() as usize, rhs.len())?;
        Ok(rhs)
    };
    let rhs = agree(comm, read())?;
    let first = a.first_row() as usize;
    Ok(rhs[first..first + a.rows()].to_vec())
}

fn check_length(path: &Path, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    bail!("--rhs {}: {expected} values expected, as A has rows, {found} found", path.display())
}
