//! The measures of judges: products of vectors with the operator of the problem, and sums.
//!
//! Promises: a vector that is stored elsewhere is measured there where the problem does so too, and
//! gives the bits that the same values give here. All results are this rank's part.

use recoup_core::{Comm, CommError, DeviceSnapshot, Operator, ProblemOnDevice, SolveError, VariableRecord};

use super::reference::Reference;
use crate::error::{PipelineError, device_values_error};
use crate::staging::VectorView;

/// The problem, and memory for products.
pub(crate) struct ResidualOps {
    pub(crate) reference: Reference,
    product: Vec<f64>,
    difference: Vec<f64>,
}

impl ResidualOps {
    pub(crate) fn new(reference: Reference) -> Self {
        let product = vec![0.0; reference.operator.rows()];
        Self { reference, product, difference: Vec::new() }
    }

    pub(crate) fn operator(&self) -> &dyn Operator {
        self.reference.operator.as_ref()
    }

    /// Returns whether all ranks are to measure where their values are stored, this one if it can.
    /// A rank that measures elsewhere would wait for the others in another product. Collective.
    pub(crate) fn agree(&self, mine: bool, comm: &dyn Comm) -> Result<bool, CommError> {
        Ok(self.reference.on_device.is_some() && comm.max(i64::from(!mine))? == 0)
    }

    /// Returns whether values can be measured where they are stored.
    pub(crate) fn reaches(&self, values: &dyn DeviceSnapshot) -> bool {
        let on_device = self.reference.on_device.as_ref().filter(|_| self.reference.columns == 1);
        on_device.is_some_and(|problem| problem.is_beside(values))
    }

    /// ResidualOps `||b - A x||^2` for one right-hand side.
    pub(crate) fn squared_residual(&mut self, x: VectorView<'_>, column: usize) -> Result<f64, PipelineError> {
        if let Some(values) = x.device {
            return self.problem().squared_residual(values).map_err(in_variable(x.record));
        }
        let rhs = self.reference.column(column);
        Ok(self.reference.operator.residual(rhs, x.host, &mut self.product)?)
    }

    /// ResidualOps `x . x`.
    pub(crate) fn squared_norm(&self, x: VectorView<'_>) -> Result<f64, PipelineError> {
        match x.device {
            None => Ok(self.operator().squared_norm(x.host)),
            Some(values) => self.problem().squared_norm(values).map_err(in_variable(x.record)),
        }
    }

    /// ResidualOps `|| |A| |x| ||^2`; `None` where the entries are not known.
    pub(crate) fn squared_abs_product(&mut self, x: &[f64]) -> Option<Result<f64, PipelineError>> {
        let applied = self.reference.operator.abs_apply(x, &mut self.product)?;
        Some(applied.map(|()| self.operator().squared_norm(&self.product)).map_err(PipelineError::from))
    }

    /// ResidualOps `v . A v`.
    pub(crate) fn squared_energy(&mut self, v: VectorView<'_>) -> Result<f64, PipelineError> {
        match v.device {
            None => Ok(self.reference.operator.apply_dot(v.host, &mut self.product)?),
            Some(values) => self.problem().squared_energy(values).map_err(in_variable(v.record)),
        }
    }

    /// ResidualOps `(w - v) . A (w - v)`, w decoded at the place of v.
    pub(crate) fn squared_energy_of_error(
        &mut self,
        v: VectorView<'_>,
        w: VectorView<'_>,
    ) -> Result<f64, PipelineError> {
        if let Some((own, decoded)) = v.device.zip(w.device) {
            return self.problem().squared_energy_of_error(own, decoded).map_err(in_variable(v.record));
        }
        let mut difference = std::mem::take(&mut self.difference);
        difference.clear();
        difference.extend(w.doubles().iter().zip(v.doubles()).map(|(w, v)| w - v));
        let squared = self.squared_energy(VectorView { host: &difference, ..v });
        self.difference = difference;
        squared
    }

    fn problem(&self) -> &dyn ProblemOnDevice {
        self.reference.on_device.as_deref().unwrap_or_else(|| unreachable!("asked for by `reaches`"))
    }
}

/// Names the variable whose place failed.
fn in_variable(record: &VariableRecord) -> impl Fn(SolveError) -> PipelineError + use<> {
    let named = device_values_error(record);
    move |error| match error {
        SolveError::Device(error) => named(error),
        other => other.into(),
    }
}
