//! The measures of judges: products of vectors with the operator of the problem, and sums.
//!
//! Promises: a vector that rests elsewhere is measured there where the problem does so too, and
//! gives the bits that the same values give here. All results are this rank's part.

use recoup_core::{AfarProblem, Comm, CommError, HeldValues, Operator, SolveError, VariableRecord};

use super::reference::Reference;
use crate::error::PipelineError;
use crate::error::afar_error;

/// A vector of the problem as a judge sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum JudgedVector<'a> {
    /// Its values here, without padding.
    Near(&'a [f64]),
    /// Its values where they rest.
    Held(HeldVector<'a>),
}

/// The values of a variable where they rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeldVector<'a> {
    pub(crate) values: &'a dyn HeldValues,
    pub(crate) record: &'a VariableRecord,
}

impl<'a> JudgedVector<'a> {
    /// No values.
    pub(crate) const NONE: JudgedVector<'static> = JudgedVector::Near(&[]);

    /// Returns the values of a vector that was brought here.
    pub(crate) fn doubles(self) -> &'a [f64] {
        match self {
            Self::Near(values) => values,
            Self::Held(held) => unreachable!("{} is to be brought near for this measure", held.record.name),
        }
    }
}

/// The problem, and memory for products.
pub(crate) struct Measures {
    pub(crate) reference: Reference,
    product: Vec<f64>,
    difference: Vec<f64>,
}

impl Measures {
    pub(crate) fn new(reference: Reference) -> Self {
        let product = vec![0.0; reference.operator.rows()];
        Self { reference, product, difference: Vec::new() }
    }

    pub(crate) fn operator(&self) -> &dyn Operator {
        self.reference.operator.as_ref()
    }

    /// Returns whether all ranks are to measure where their values rest, this one if it can. A rank
    /// that measures elsewhere would wait for the others in another product. Collective.
    pub(crate) fn agree(&self, mine: bool, comm: &dyn Comm) -> Result<bool, CommError> {
        Ok(self.reference.afar.is_some() && comm.max(i64::from(!mine))? == 0)
    }

    /// Returns whether values can be measured where they rest.
    pub(crate) fn reaches(&self, values: &dyn HeldValues) -> bool {
        let afar = self.reference.afar.as_ref().filter(|_| self.reference.columns == 1);
        afar.is_some_and(|problem| problem.is_beside(values))
    }

    /// Measures `||b - A x||^2` for one right-hand side.
    pub(crate) fn squared_residual(&mut self, x: JudgedVector<'_>, column: usize) -> Result<f64, PipelineError> {
        match x {
            JudgedVector::Near(x) => {
                let rhs = self.reference.column(column);
                Ok(self.reference.operator.residual(rhs, x, &mut self.product)?)
            }
            JudgedVector::Held(x) => self.problem().squared_residual(x.values).map_err(in_variable(x.record)),
        }
    }

    /// Measures `x . x`.
    pub(crate) fn squared_norm(&self, x: JudgedVector<'_>) -> Result<f64, PipelineError> {
        match x {
            JudgedVector::Near(x) => Ok(self.operator().squared_norm(x)),
            JudgedVector::Held(x) => self.problem().squared_norm(x.values).map_err(in_variable(x.record)),
        }
    }

    /// Measures `|| |A| |x| ||^2`; `None` where the entries are not known.
    pub(crate) fn squared_abs_product(&mut self, x: &[f64]) -> Option<Result<f64, PipelineError>> {
        let applied = self.reference.operator.abs_apply(x, &mut self.product)?;
        Some(applied.map(|()| self.operator().squared_norm(&self.product)).map_err(PipelineError::from))
    }

    /// Measures `v . A v`.
    pub(crate) fn squared_energy(&mut self, v: JudgedVector<'_>) -> Result<f64, PipelineError> {
        match v {
            JudgedVector::Near(v) => Ok(self.reference.operator.apply_dot(v, &mut self.product)?),
            JudgedVector::Held(v) => self.problem().squared_energy(v.values).map_err(in_variable(v.record)),
        }
    }

    /// Measures `(w - v) . A (w - v)`, w decoded at the place of v.
    pub(crate) fn squared_energy_of_error(
        &mut self,
        v: JudgedVector<'_>,
        w: JudgedVector<'_>,
    ) -> Result<f64, PipelineError> {
        if let (JudgedVector::Held(v), JudgedVector::Held(w)) = (v, w) {
            return self.problem().squared_energy_of_error(v.values, w.values).map_err(in_variable(v.record));
        }
        let mut difference = std::mem::take(&mut self.difference);
        difference.clear();
        difference.extend(w.doubles().iter().zip(v.doubles()).map(|(w, v)| w - v));
        let squared = self.squared_energy(JudgedVector::Near(&difference));
        self.difference = difference;
        squared
    }

    fn problem(&self) -> &dyn AfarProblem {
        self.reference.afar.as_deref().unwrap_or_else(|| unreachable!("asked for by `reaches`"))
    }
}

/// Names the variable whose place failed.
fn in_variable(record: &VariableRecord) -> impl Fn(SolveError) -> PipelineError + use<> {
    let named = afar_error(record);
    move |error| match error {
        SolveError::Afar(error) => named(error),
        other => other.into(),
    }
}
