//! The methods of the table, as the program makes them.

use recoup::core::{Operator, SolveError};
use recoup::solvers::{
    Bicgstab, Cg, Csr, GaussSeidel, Gmres, GmresOptions, Identity, Jacobi, JacobiPreconditioner, Method, PipelinedCg,
    Preconditioner, Relaxation, Side, Stop, System,
};

/// Restart length of GMRES and of restarted CG.
const RESTART: usize = 30;
/// Directions GMRES-DR carries over.
const HARVEST: usize = 8;
/// Relaxation of SOR and SSOR.
const OMEGA: f64 = 1.3;

/// The ten methods by their names.
pub(crate) const NAMES: [&str; 10] =
    ["jacobi", "gauss-seidel", "sor", "ssor", "cg", "cg-restarted", "pipecg", "gmres", "gmres-dr", "bicgstab"];

/// Makes solvers of one problem.
pub(crate) struct Setup<'a> {
    pub(crate) system: System<'a>,
    pub(crate) matrix: &'a Csr,
    preconditioner: Box<dyn Preconditioner + 'a>,
    start: Vec<f64>,
}

impl<'a> Setup<'a> {
    /// With the diagonal as preconditioner, where it has no zero.
    pub(crate) fn new(system: System<'a>, matrix: &'a Csr) -> Self {
        let diagonal = JacobiPreconditioner::new(matrix as &dyn Operator);
        let preconditioner: Box<dyn Preconditioner> = match diagonal {
            Ok(diagonal) => Box::new(diagonal),
            Err(_) => Box::new(Identity),
        };
        Self { system, matrix, preconditioner, start: vec![0.0; matrix.n()] }
    }

    /// A fresh solver at x = 0.
    pub(crate) fn make(&self, name: &str, rtol: f64) -> Result<Box<dyn Method + '_>, SolveError> {
        let system = self.system;
        let pc = self.preconditioner.as_ref();
        let x = &self.start[..];
        let stop = Stop::at(rtol);
        let gmres = || Gmres::new(system, pc, x, GmresOptions { restart: RESTART, side: Side::Left, stop });
        Ok(match name {
            "jacobi" => Box::new(Jacobi::new(system, 1.0, x, stop)?),
            "gauss-seidel" => self.sweeps(Relaxation::GaussSeidel, stop)?,
            "sor" => self.sweeps(Relaxation::Sor { omega: OMEGA }, stop)?,
            "ssor" => self.sweeps(Relaxation::Ssor { omega: OMEGA }, stop)?,
            "cg" => Box::new(Cg::new(system, pc, x, stop)?),
            "cg-restarted" => Box::new(Cg::new(system, pc, x, stop)?.restarted_every(RESTART as u64)?),
            "pipecg" => Box::new(PipelinedCg::new(system, pc, x, stop)?),
            "gmres" => Box::new(gmres()?),
            "gmres-dr" => Box::new(gmres()?.deflated(HARVEST)?),
            _ => Box::new(Bicgstab::new(system, pc, x, stop)?),
        })
    }

    fn sweeps(&self, relaxation: Relaxation, stop: Stop) -> Result<Box<dyn Method + '_>, SolveError> {
        Ok(Box::new(GaussSeidel::new(self.system, self.matrix, relaxation, &self.start, stop)?))
    }
}
