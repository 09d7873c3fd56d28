//! Every method of the table, with each preconditioner and on each side it can be given.

use recoup_solvers::{
    BasisStorage, Csr, METHODS, Method, MethodInputs, NamedMethod, Preconditioner, Setting, Side, Stop, System,
};

/// A method of the table, and what it is made with.
pub(crate) struct Variant<'a> {
    pub(crate) method: &'static NamedMethod,
    preconditioner: &'a dyn Preconditioner,
    side: Side,
    basis: BasisStorage,
}

/// All variants with the preconditioners given; methods that take none have one variant.
pub(crate) fn variants<'a>(preconditioners: &[&'a dyn Preconditioner]) -> Vec<Variant<'a>> {
    let mut all = Vec::new();
    for method in METHODS {
        let n_preconditioners = if method.takes(Setting::Preconditioner) { preconditioners.len() } else { 1 };
        let sides: &[Side] = if method.takes(Setting::Side) { &[Side::Left, Side::Right] } else { &[Side::Left] };
        let bases: &[BasisStorage] = if method.takes(Setting::Basis) {
            &[BasisStorage::Double, BasisStorage::Float, BasisStorage::Auto]
        } else {
            &[BasisStorage::Double]
        };
        for &preconditioner in &preconditioners[..n_preconditioners] {
            for &side in sides {
                all.extend(bases.iter().map(|&basis| Variant { method, preconditioner, side, basis }));
            }
        }
    }
    all
}

impl<'a> Variant<'a> {
    /// A fresh solver at `x0` with short cycles. The relaxation of 0.9 suits Jacobi, which diverges
    /// far above 1, and differs from plain Gauss-Seidel.
    pub(crate) fn solver(&self, system: System<'a>, rows: &'a Csr, x0: &'a [f64], stop: Stop) -> Box<dyn Method + 'a> {
        let inputs = MethodInputs {
            system,
            rows: Some(rows),
            preconditioner: self.preconditioner,
            x0,
            stop,
            omega: 0.9,
            restart: 5,
            side: self.side,
            harvest: 2,
            basis: self.basis,
        };
        (self.method.make)(&inputs).unwrap_or_else(|error| panic!("{}: {error}", self.describe()))
    }

    /// What a failed check names.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} with {} on the {:?}, basis {:?}",
            self.method.name,
            self.preconditioner.name(),
            self.side,
            self.basis
        )
    }
}
