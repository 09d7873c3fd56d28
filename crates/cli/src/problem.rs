//! The problem a command works on: `A x = b`, read or made, and who computes with it.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use recoup::comm::Solo;
use recoup::compress::{codec, codec_on_cuda};
use recoup::core::{CodecId, Operator};
use recoup::pipeline::{CodecTable, Reference};
use recoup::solvers::{Csr, Poisson3d, Pool, RightHandSide, System, read_matrix, read_vector};

use crate::exit::Exit;
use crate::options::{Device, OperatorKind, ProblemArgs};

/// `A x = b` on this machine.
pub(crate) struct Problem {
    /// The operator.
    pub(crate) operator: Arc<dyn Operator + Send + Sync>,
    /// The same operator by rows, where it is assembled: some preconditioners and sweeps need it.
    pub(crate) rows: Option<Arc<Csr>>,
    /// The right-hand side.
    pub(crate) rhs: Arc<[f64]>,
    /// The threads.
    pub(crate) pool: Arc<Pool>,
    /// The codecs, some on the device.
    pub(crate) codecs: CodecTable,
    comm: Solo,
}

impl Problem {
    /// Reads or makes what the options say.
    ///
    /// # Errors
    /// Exit 5 for MPI and CUDA, exit 2 for options that contradict each other, exit 1 for files
    /// that cannot be used.
    pub(crate) fn load(args: &ProblemArgs) -> Result<Self> {
        let codecs = available_codecs(args)?;
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let pool = Arc::new(Pool::new(args.threads.map_or(cores, usize::from)));
        let (operator, rows) = operator(args, &pool)?;
        let rhs = right_hand_side(args, operator.as_ref())?;
        Ok(Self { operator, rows, rhs: rhs.into(), pool, codecs, comm: Solo })
    }

    /// What a solver is made from.
    pub(crate) fn system(&self) -> System<'_> {
        System { a: self.operator.as_ref(), b: &self.rhs, comm: &self.comm, pool: &self.pool }
    }

    /// What a session verifies against.
    pub(crate) fn reference(&self) -> Reference {
        Reference { operator: self.operator.clone(), rhs: self.rhs.clone() }
    }

    /// The communicator: one rank.
    pub(crate) fn comm(&self) -> &Solo {
        &self.comm
    }

    /// Unknowns.
    pub(crate) fn n(&self) -> usize {
        self.rhs.len()
    }

    /// Nonzeros of A.
    pub(crate) fn nonzeros(&self) -> u64 {
        self.operator.nonzeros()
    }

    /// `||b - A x|| / ||b||`, computed from x alone.
    ///
    /// # Errors
    /// When a rank is lost.
    pub(crate) fn relative_residual(&self, x: &[f64]) -> Result<f64> {
        let mut r = vec![0.0; self.n()];
        let residual = self.operator.residual(&self.rhs, x, &mut r)?.sqrt();
        let rhs = self.rhs.iter().map(|b| b * b).sum::<f64>().sqrt();
        Ok(if rhs > 0.0 { residual / rhs } else { residual })
    }
}

/// The codecs to use, once all that was asked for is there.
fn available_codecs(args: &ProblemArgs) -> Result<CodecTable> {
    if args.mpi {
        return Err(Exit::NotAvailable.because("--mpi: this build has no MPI; without it the program runs one rank"));
    }
    if args.device == Device::Host {
        return Ok(codec);
    }
    let qb = codec_on_cuda(CodecId::Qb);
    qb.map_err(|error| {
        Exit::NotAvailable.because(format!("--device cuda: no CUDA codec: {error}; use --device host"))
    })?;
    Ok(codec_on_cuda)
}

type Operators = (Arc<dyn Operator + Send + Sync>, Option<Arc<Csr>>);

fn operator(args: &ProblemArgs, pool: &Arc<Pool>) -> Result<Operators> {
    let csr = match (args.poisson3d, &args.matrix, args.operator) {
        (Some(n), _, OperatorKind::Stencil) => {
            return Ok((Arc::new(Poisson3d::new(n as usize).with_pool(pool.clone())), None));
        }
        (Some(n), _, OperatorKind::Csr) => Csr::poisson3d(n as usize),
        (None, Some(_), OperatorKind::Stencil) => {
            return Err(Exit::Usage.because("--operator stencil needs --poisson3d; a matrix file is kept as csr"));
        }
        (None, Some(path), OperatorKind::Csr) => read_matrix(path)?,
        (None, None, _) => return Err(Exit::Usage.because("give --poisson3d N or --matrix FILE")),
    };
    let csr = Arc::new(csr.with_pool(pool.clone()));
    Ok((csr.clone(), Some(csr)))
}

fn right_hand_side(args: &ProblemArgs, a: &dyn Operator) -> Result<Vec<f64>> {
    let Some(path) = &args.rhs else {
        let kind = match (args.rhs_kind, args.rhs_seed) {
            (RightHandSide::Random { .. }, Some(seed)) => RightHandSide::Random { seed },
            (_, Some(_)) => return Err(Exit::Usage.because("--rhs-seed needs --rhs-kind random")),
            (kind, None) => kind,
        };
        return kind.build(a).context("right-hand side");
    };
    let rhs = read_vector(path)?;
    check_length(path, a.rows(), rhs.len())?;
    Ok(rhs)
}

fn check_length(path: &Path, expected: usize, found: usize) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    anyhow::bail!("{}: right-hand side of {expected} values expected, {found} found", path.display())
}
