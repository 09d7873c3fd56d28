//! The methods of the table, as the program makes them.

use recoup::core::{Operator, SolveError};
use recoup::solvers::{
    BasisStorage, Csr, Identity, JacobiPreconditioner, METHODS, Method, MethodInputs, NamedMethod, Need,
    Preconditioner, Side, Stop, System,
};

/// Restart length of GMRES and of restarted CG.
const RESTART: usize = 30;
/// Directions GMRES-DR carries over.
const HARVEST: usize = 8;
/// Relaxation of the methods that sweep by rows.
const OMEGA: f64 = 1.3;

/// Makes solvers of one problem.
pub(crate) struct Setup<'a> {
    pub(crate) system: System<'a>,
    pub(crate) matrix: &'a Csr,
    preconditioner: Box<dyn Preconditioner + 'a>,
    start: Vec<f64>,
}

impl<'a> Setup<'a> {
    /// With the diagonal as preconditioner where that is asked for and has no zero.
    pub(crate) fn new(system: System<'a>, matrix: &'a Csr, is_scaled: bool) -> Self {
        let preconditioner: Box<dyn Preconditioner> = match JacobiPreconditioner::new(matrix as &dyn Operator) {
            Ok(diagonal) if is_scaled => Box::new(diagonal),
            _ => Box::new(Identity),
        };
        Self { system, matrix, preconditioner, start: vec![0.0; matrix.n()] }
    }

    /// A fresh solver at x = 0.
    pub(crate) fn make(&self, name: &str, rtol: f64) -> Result<Box<dyn Method + '_>, SolveError> {
        let is_wanted = |method: &&NamedMethod| method.name == name;
        let method = METHODS.iter().find(is_wanted).unwrap_or_else(|| panic!("no method {name}"));
        let inputs = MethodInputs {
            system: self.system,
            rows: Some(self.matrix),
            preconditioner: self.preconditioner.as_ref(),
            x0: &self.start,
            stop: Stop::at(rtol),
            // Jacobi diverges far above 1.
            omega: if method.needs == Some(Need::Rows) { OMEGA } else { 1.0 },
            restart: RESTART,
            side: Side::Left,
            harvest: HARVEST,
            basis: BasisStorage::Double,
        };
        (method.make)(&inputs)
    }
}
