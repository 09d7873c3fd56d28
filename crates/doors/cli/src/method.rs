//! The iterative method that options describe: the preconditioner once, and a new solver after each
//! failure.

use anyhow::{Context, Result};
use recoup::core::SolveError;
use recoup::pipeline::Reference;
use recoup::solvers::{
    AmgError, AmgPlan, BasisStorage, BlockJacobi, Csr, Ic0, Identity, Ilu0, JacobiPreconditioner, Method, MethodInputs,
    Need, PointBlockJacobi, Preconditioner, Setting, Side, SsorPreconditioner, Stop, find_hypre, usual_blocks,
};

use crate::exit::Exit;
use crate::options::{MethodArgs, PcKind, PcSide, SubPcKind, methods_with, name_of};
use crate::place::PlacedSystem;
use crate::problem::LinearProblem;
use crate::ranks::{agree, comm_for_library, was_repaired};

/// A basis of this size in doubles is read from memory at each step, so that fewer bytes pay. In
/// caches they do not, and are slower (`cargo xtask anchor solves -n 32 --only "gmres + jacobi"`).
const LARGE_BASIS_BYTES: u64 = 64_000_000;

/// All that a solver is made from; failures do not touch it.
pub(crate) struct Setup<'a> {
    problem: &'a LinearProblem,
    args: &'a MethodArgs,
    preconditioner: Box<dyn Preconditioner + 'a>,
    /// The system on the device, if one was asked for.
    on_device: Option<PlacedSystem<'a>>,
    /// Rows of this rank for which the Jacobi preconditioner replaces a zero diagonal by 1.
    zeros: usize,
    start: Vec<f64>,
}

impl<'a> Setup<'a> {
    /// Builds the preconditioner, of this rank's rows, and copies the system to the device if there
    /// is to be one. Collective.
    ///
    /// # Errors
    /// Exit 2 for options that contradict each other, exit 1 where A does not allow the
    /// preconditioner.
    pub(crate) fn new(problem: &'a LinearProblem, args: &'a MethodArgs) -> Result<Self> {
        check(args)?;
        let on_device = problem.device.as_ref().map(|device| device.place(&problem.system(), args)).transpose()?;
        let (preconditioner, zeros) = agree(problem.comm(), preconditioner(problem, args))?;
        Ok(Self { problem, args, preconditioner, on_device, zeros, start: vec![0.0; problem.n()] })
    }

    /// Returns the reference that a session verifies against. Collective.
    pub(crate) fn reference(&self) -> Result<Reference> {
        let on_device = self.on_device.as_ref().map(PlacedSystem::problem).transpose()?.flatten();
        Ok(Reference { on_device, ..self.problem.reference() })
    }

    /// Replaces the first guess x = 0 by this rank's rows of another one.
    pub(crate) fn starting_at(self, start: Option<Vec<f64>>) -> Self {
        Self { start: start.unwrap_or(self.start), ..self }
    }

    /// Warns of an operator that the method or the preconditioner does not suit, in the first life
    /// of a run. Collective.
    pub(crate) fn examine(&self) -> Result<()> {
        let system = self.problem.system();
        let method = self.args.method;
        let mut zeros = [self.zeros as f64];
        system.comm.sum(&mut zeros)?;
        // Numbers from 0 on are in the order of their bits.
        let shift = f64::from_bits(system.comm.max(self.preconditioner.shift().to_bits() as i64)? as u64);
        let needs_symmetry = method.needs == Some(Need::Symmetry);
        let defect = if needs_symmetry { system.symmetry_defect()? } else { 0.0 };
        if was_repaired() {
            return Ok(());
        }
        if zeros[0] > 0.0 {
            let rows = self.problem.unknowns();
            tracing::warn!(
                "the diagonal is zero in {} of {rows} rows: the Jacobi preconditioner takes 1 there",
                zeros[0]
            );
        }
        if shift > 0.0 {
            tracing::warn!(
                "the factors of A have pivots that are not positive: those of A + {shift} diag(A) precondition"
            );
        }
        if defect > 0.0 {
            let method = method.name;
            tracing::warn!("A is not symmetric: {method} may not converge; take gmres or bicgstab");
        }
        Ok(())
    }

    /// Returns the problem.
    pub(crate) fn problem(&self) -> &'a LinearProblem {
        self.problem
    }

    /// Returns the name under which versions hold the method, its preconditioner and its basis if
    /// that has fewer bits. Under another name the iterate alone is restored: directions of one
    /// preconditioner do not continue under another, nor a basis in other bits. The text lives as
    /// long as the process, so ask once.
    pub(crate) fn saved_as(&self, method: &dyn Method) -> Option<&'static str> {
        let name = method.method()?;
        let MethodArgs { method, pc, .. } = self.args;
        let is_plain = *pc == PcKind::None || !method.takes(Setting::Preconditioner);
        // Another hypre may make other levels.
        let of_library = match pc {
            PcKind::Amg => find_hypre().map_or_else(|_| String::new(), |[_, version]| format!(" of hypre {version}")),
            _ => String::new(),
        };
        let with = if is_plain { String::new() } else { format!(" with {}{of_library}", name_of(*pc)) };
        let basis = match self.basis() {
            BasisStorage::Double => "",
            BasisStorage::Float => " in floats",
            BasisStorage::Auto => " in few bits",
        };
        Some(format!("{name}{basis}{with}").leak())
    }

    /// Returns the name of the device that solvers are made on; `None` for the host.
    pub(crate) fn device_name(&self) -> Option<&str> {
        self.on_device.as_ref().map(PlacedSystem::device_name)
    }

    /// Returns the options.
    pub(crate) fn args(&self) -> &'a MethodArgs {
        self.args
    }

    /// Returns the bytes that a product with the operator moves, divided by those of an iteration;
    /// at most 1.
    pub(crate) fn product_share(&self) -> Result<f64, SolveError> {
        let operator = self.problem.system().a;
        let product_bytes = operator.bytes() as f64 + 16.0 * operator.rows() as f64;
        Ok((product_bytes / self.make()?.bytes_per_iteration()).min(1.0))
    }

    /// Returns the storage of the basis. Where nothing is chosen, one on the host that exceeds
    /// caches takes as few bits as it needs; the number of ranks is not asked, as none may change
    /// the iterations.
    fn basis(&self) -> BasisStorage {
        let vectors = u64::from(self.args.restart) + 1;
        let exceeds_caches = vectors.saturating_mul(8 * self.problem.unknowns()) >= LARGE_BASIS_BYTES;
        let has_choice = self.on_device.is_none() && self.args.method.takes(Setting::Basis);
        let usual = if has_choice && exceeds_caches { BasisStorage::Auto } else { BasisStorage::Double };
        self.args.basis.map_or(usual, BasisStorage::from)
    }

    /// Makes a solver at the first guess.
    pub(crate) fn make(&self) -> Result<Box<dyn Method + '_>, SolveError> {
        self.make_to(self.args.rtol)
    }

    /// Makes a solver at the first guess with another tolerance.
    pub(crate) fn make_to(&self, rtol: f64) -> Result<Box<dyn Method + '_>, SolveError> {
        let inputs = MethodInputs {
            system: self.problem.system(),
            rows: self.problem.rows.as_deref(),
            preconditioner: self.preconditioner.as_ref(),
            x0: &self.start,
            stop: Stop { rtol, dtol: self.args.dtol },
            omega: self.args.omega.unwrap_or(1.0),
            restart: self.args.restart as usize,
            side: match self.args.pc_side {
                Some(PcSide::Right) => Side::Right,
                _ => Side::Left,
            },
            harvest: self.args.harvest(),
            basis: self.basis(),
        };
        if let Some(made) = self.on_device.as_ref().and_then(|placed| placed.make(&inputs)) {
            return made;
        }
        let method = self.args.method;
        if method.needs != Some(Need::Rows) {
            return (method.make)(&inputs);
        }
        if inputs.rows.is_none() {
            let needed = "assembled rows (--operator csr)";
            return Err(SolveError::Operator { method: "a sweep over rows", needed });
        }
        (method.make)(&inputs).map_err(|error| in_global_rows(self.problem, error))
    }
}

/// Refuses options that contradict the method.
fn check(args: &MethodArgs) -> Result<()> {
    let method = args.method.name;
    if !args.method.takes(Setting::Preconditioner) && !matches!(args.pc, PcKind::None | PcKind::Jacobi) {
        return Err(Exit::Usage.because(format!("--method {method} takes no preconditioner: leave --pc out")));
    }
    if (args.sub_pc.is_some() || args.pc_blocks.is_some()) && args.pc != PcKind::Bjacobi {
        return Err(Exit::Usage.because("--sub-pc and --pc-blocks describe the blocks of --pc bjacobi: add it"));
    }
    if args.pc_block_size.is_some() != (args.pc == PcKind::Pbjacobi) {
        let text = "--pc pbjacobi needs --pc-block-size B, the unknowns of each point, and no other --pc takes it";
        return Err(Exit::Usage.because(text));
    }
    if args.pc_side.is_some() && !args.method.takes(Setting::Side) {
        let meant = methods_with(|method| method.takes(Setting::Side));
        return Err(Exit::Usage.because(format!("--pc-side is for --method {meant}; {method} has no sides")));
    }
    if args.harvest.is_some() && !args.method.takes(Setting::Harvest) {
        let meant = methods_with(|method| method.takes(Setting::Harvest));
        return Err(Exit::Usage.because(format!("--harvest is for --method {meant}; {method} carries nothing over")));
    }
    if args.method.takes(Setting::Harvest) && args.harvest() + 3 > args.restart as usize {
        let harvest = args.harvest();
        let restart = args.restart;
        return Err(Exit::Usage.because(format!("--harvest {harvest} leaves no room in cycles of --restart {restart}")));
    }
    if args.basis.is_some() && !args.method.takes(Setting::Basis) {
        let meant = methods_with(|method| method.takes(Setting::Basis));
        return Err(Exit::Usage.because(format!("--basis is for --method {meant}; {method} always keeps doubles")));
    }
    if args.omega.is_some_and(|omega| !(omega > 0.0 && omega < 2.0)) {
        return Err(Exit::Usage.because("--omega: expected a number between 0 and 2"));
    }
    Ok(())
}

/// Replaces the number of a row of this rank by its number among the rows of all.
fn in_global_rows(problem: &LinearProblem, error: SolveError) -> SolveError {
    error.in_rows_from(problem.operator.first_row() as usize)
}

/// Refuses more blocks than rows.
fn check_blocks(args: &MethodArgs, rows: usize) -> Result<()> {
    match args.pc_blocks {
        Some(blocks) if blocks as usize > rows => {
            Err(Exit::Usage.because(format!("--pc-blocks {blocks}: expected at most {rows}, a block for each row")))
        }
        _ => Ok(()),
    }
}

/// Sets up the blocks of all rows as far as they are this rank's.
fn block_jacobi(problem: &LinearProblem, rows: &Csr, args: &MethodArgs) -> Result<Box<dyn Preconditioner>, SolveError> {
    let a = problem.operator.as_ref();
    let blocks = args.pc_blocks.map_or_else(|| usual_blocks(a.global_rows() as usize), |blocks| blocks as usize);
    let usual = if args.method.needs == Some(Need::Symmetry) { SubPcKind::Icc } else { SubPcKind::Ilu };
    let omega = args.omega.unwrap_or(1.0);
    let pool = &problem.pool;
    Ok(match args.sub_pc.unwrap_or(usual) {
        SubPcKind::Icc => Box::new(BlockJacobi::on_rank(pool, a, rows, blocks, |block| Ic0::new(&block))?),
        SubPcKind::Ilu => Box::new(BlockJacobi::on_rank(pool, a, rows, blocks, |block| Ilu0::new(&block))?),
        SubPcKind::Ssor => {
            Box::new(BlockJacobi::on_rank(pool, a, rows, blocks, |block| SsorPreconditioner::keeping(block, omega))?)
        }
    })
}

/// Sets up multigrid over the rows of all ranks. Collective.
fn multigrid(problem: &LinearProblem) -> Result<Box<dyn Preconditioner>> {
    let refused = |error: AmgError| match error {
        AmgError::Solve(error) => error.into(),
        error => Exit::NotAvailable.because(format!("--pc amg: {error}")),
    };
    let comm = agree(problem.comm(), comm_for_library(problem.comm()).context("--pc amg needs MPI"))?;
    let plan = agree(problem.comm(), AmgPlan::new(problem.operator.as_ref(), comm).map_err(refused))?;
    Ok(Box::new(plan.set_up().map_err(refused)?))
}

/// Makes the preconditioner, and returns the number of zeros it replaced on the diagonal.
fn preconditioner<'a>(problem: &'a LinearProblem, args: &MethodArgs) -> Result<(Box<dyn Preconditioner + 'a>, usize)> {
    let needs_rows = || Exit::Usage.because(format!("--pc {} needs assembled rows: --operator csr", name_of(args.pc)));
    let rows = || -> Result<&'a Csr> { problem.rows.as_deref().ok_or_else(needs_rows) };
    let global = |error| in_global_rows(problem, error);
    let mut zeros = 0;
    let preconditioner: Box<dyn Preconditioner + 'a> = match args.pc {
        PcKind::None => Box::new(Identity),
        PcKind::Jacobi => {
            let jacobi = JacobiPreconditioner::new(problem.operator.as_ref())?;
            zeros = jacobi.zeros();
            Box::new(jacobi)
        }
        PcKind::Bjacobi => {
            let rows = rows()?;
            check_blocks(args, problem.unknowns() as usize)?;
            block_jacobi(problem, rows, args).map_err(global)?
        }
        PcKind::Pbjacobi => {
            let size = args.pc_block_size.map_or(1, |size| size as usize);
            Box::new(PointBlockJacobi::new(rows()?, size).map_err(global)?)
        }
        PcKind::Ssor => Box::new(SsorPreconditioner::new(rows()?, args.omega.unwrap_or(1.0)).map_err(global)?),
        PcKind::Ilu0 => Box::new(Ilu0::new(rows()?).map_err(global)?),
        PcKind::Ic0 => Box::new(Ic0::new(rows()?).map_err(global)?),
        PcKind::Amg => {
            rows()?;
            multigrid(problem)?
        }
    };
    Ok((preconditioner, zeros))
}
