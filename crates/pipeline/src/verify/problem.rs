//! The problem a session saves the iterate of: its fingerprint (hashes of what is known, and
//! products with fixed vectors), the norms a program knows of a state, and the measures of judges
//! (products of vectors with the operator, and sums).
//!
//! Promises: a vector that is stored elsewhere is measured there where the problem does so too, and
//! gives the bits that the same values give here. All measures are this rank's part.

use std::sync::Arc;

use recoup_core::{
    Comm, CommError, DeviceSnapshot, ElementType, ExactSum, Fingerprint, Operator, PROBES, Probe, ProblemOnDevice,
    Projection, SolveError, VariableRecord, agreed, probe_value, vector_fingerprint, wrapping_sums,
};

use crate::error::{PipelineError, device_values_error};
use crate::staging::VectorView;

/// The problem a session saves the iterate of: `A x = b`, or `A X = B` with several columns, shared
/// with the worker thread.
#[derive(Clone)]
pub struct Reference {
    /// The operator; applied by the worker while the solver applies it too.
    pub operator: Arc<dyn Operator + Send + Sync>,
    /// The right-hand sides, one after the other, of each this rank's rows.
    pub rhs: Arc<[f64]>,
    /// Number of right-hand sides, the same on all ranks. Where there are several, each variable of
    /// a solver names its [column](recoup_core::Variable::column).
    pub columns: usize,
    /// The same problem where the solver's vectors are stored, if that is elsewhere: what is stored
    /// there is measured there. The same on all ranks, or on none.
    pub on_device: Option<Arc<dyn ProblemOnDevice>>,
}

impl Reference {
    /// Makes the problem of one right-hand side, whose vectors are stored in this process's memory.
    #[must_use]
    pub fn new(operator: Arc<dyn Operator + Send + Sync>, rhs: Arc<[f64]>) -> Self {
        Self { operator, rhs, columns: 1, on_device: None }
    }

    /// Returns one right-hand side, this rank's rows.
    pub(crate) fn column(&self, column: usize) -> &[f64] {
        let rows = self.operator.rows();
        &self.rhs[column * rows..][..rows]
    }

    /// Returns whether a variable is a vector of this problem: real numbers, one per row, and of a
    /// known column where there are several.
    pub(crate) fn has_shape_of(&self, record: &VariableRecord) -> bool {
        let is_of_column = match record.column {
            Some(column) => column < self.columns,
            None => self.columns == 1,
        };
        is_of_column && is_vector(record, self.operator.rows())
    }

    /// Refuses right-hand sides of another length than the columns have together.
    pub(crate) fn check(&self) -> Result<(), SolveError> {
        let expected = self.operator.rows() * self.columns;
        let found = self.rhs.len();
        if found == expected { Ok(()) } else { Err(SolveError::Length { what: "b", expected, found }) }
    }
}

/// The norms a program knows of the state it saves, so that no product is spent on it; the same on
/// all ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KnownNorms {
    /// `||b - A x||` of the iterate. Bounds are held to it; should the first one fail, it is
    /// measured all the same.
    pub residual_norm: Option<f64>,
    /// The same of each column of a block; empty where they are not known.
    pub column_norms: Vec<f64>,
    /// `d . A d` of the direction, where there is one.
    pub direction_squared: Option<f64>,
}

/// Returns whether a variable is a vector of doubles or singles, this many.
pub(crate) fn is_vector(record: &VariableRecord, rows: usize) -> bool {
    matches!(record.element, ElementType::F64 | ElementType::F32) && record.len as usize == rows
}

/// The problem at hand, and what it is recognised by.
pub(crate) struct SessionProblem {
    pub(crate) reference: Reference,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) nonzeros: Option<u64>,
}

/// Takes the fingerprint of a problem: two products. Collective.
pub(crate) fn fingerprint(problem: &Reference, comm: &dyn Comm) -> Result<Fingerprint, PipelineError> {
    let operator = problem.operator.as_ref();
    let [operator_hash, rhs] = hashes(problem, comm)?;
    let mut sums = [0.0; 2 * PROBES + 2];
    let mut product = vec![0.0; operator.rows()];
    for vector in 0..PROBES {
        // An operator that fails on one rank fails on all, before they wait for its sums.
        agreed(comm, multiply(operator, vector, &mut product).map_err(PipelineError::from))?;
        sums[2 * vector..][..2].copy_from_slice(&local_sums(operator.first_row(), &product));
    }
    for column in 0..problem.columns {
        let sums_of_column = local_sums(first_row(problem, column), problem.column(column));
        sums[2 * PROBES..].iter_mut().zip(sums_of_column).for_each(|(sum, part)| *sum += part);
    }
    comm.sum(&mut sums)?;
    let projection = |at: usize| Projection { sum: sums[2 * at], norm: sums[2 * at + 1].sqrt() };
    let probe = Probe { operator: std::array::from_fn(projection), rhs: projection(PROBES) };
    let probe = Some(probe).filter(Probe::is_finite);
    Ok(Fingerprint { operator: operator_hash, rhs, rows: operator.global_rows(), probe })
}

/// Adds the hashes of A and b over all ranks.
fn hashes(problem: &Reference, comm: &dyn Comm) -> Result<[u64; 2], CommError> {
    let hash_of_column = |column| vector_fingerprint(first_row(problem, column), problem.column(column));
    let rhs = (0..problem.columns).map(hash_of_column).fold(0, u64::wrapping_add);
    let local = [problem.operator.fingerprint(), rhs];
    wrapping_sums(comm, local)
}

/// Returns the number of this rank's first row, as if each column lay below the one before: the
/// columns of a block cannot change places unseen, and a single column is a vector.
fn first_row(problem: &Reference, column: usize) -> u64 {
    let operator = problem.operator.as_ref();
    operator.global_rows().wrapping_mul(column as u64).wrapping_add(operator.first_row())
}

/// Computes `y = A v` for a vector of the probe.
fn multiply(operator: &dyn Operator, vector: usize, y: &mut [f64]) -> Result<(), CommError> {
    let rows = (operator.first_row()..).take(operator.rows());
    let v: Vec<f64> = rows.map(|row| probe_value(vector, row)).collect();
    operator.apply(&v, y)
}

/// Returns this rank's share of `u . y` and `||y||^2`.
fn local_sums(first_row: u64, y: &[f64]) -> [f64; 2] {
    let weighted = y.iter().zip(first_row..).map(|(y, row)| probe_value(PROBES, row) * y);
    [weighted.sum(), y.iter().map(|y| y * y).sum()]
}

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

    /// Measures `||b - A x||^2` for one right-hand side.
    pub(crate) fn squared_residual(&mut self, x: VectorView<'_>, column: usize) -> Result<ExactSum, PipelineError> {
        if let Some(values) = x.device {
            return self.problem().squared_residual(values).map_err(in_variable(x.record));
        }
        let rhs = self.reference.column(column);
        Ok(self.reference.operator.residual(rhs, x.host, &mut self.product)?)
    }

    /// Measures `x . x`.
    pub(crate) fn squared_norm(&self, x: VectorView<'_>) -> Result<ExactSum, PipelineError> {
        match x.device {
            None => Ok(self.operator().squared_norm(x.host)),
            Some(values) => self.problem().squared_norm(values).map_err(in_variable(x.record)),
        }
    }

    /// Measures `|| |A| |x| ||^2`; `None` where the entries are not known.
    pub(crate) fn squared_abs_product(&mut self, x: &[f64]) -> Option<Result<ExactSum, PipelineError>> {
        let applied = self.reference.operator.abs_apply(x, &mut self.product)?;
        Some(applied.map(|()| self.operator().squared_norm(&self.product)).map_err(PipelineError::from))
    }

    /// Measures `v . A v`.
    pub(crate) fn squared_energy(&mut self, v: VectorView<'_>) -> Result<ExactSum, PipelineError> {
        match v.device {
            None => Ok(self.reference.operator.apply_dot(v.host, &mut self.product)?),
            Some(values) => self.problem().squared_energy(values).map_err(in_variable(v.record)),
        }
    }

    /// Measures `(w - v) . A (w - v)`, w decoded at the place of v.
    pub(crate) fn squared_energy_of_error(
        &mut self,
        v: VectorView<'_>,
        w: VectorView<'_>,
    ) -> Result<ExactSum, PipelineError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Versions of older builds have no probe, and their field `fingerprint` reads as before.
    #[test]
    fn probe_is_an_optional_field() {
        let old = r#"{"operator":1,"rhs":2,"rows":3}"#;
        let read: Fingerprint = serde_json::from_str(old).unwrap();
        assert_eq!(read, Fingerprint { operator: 1, rhs: 2, rows: 3, probe: None });
        assert_eq!(serde_json::to_string(&read).unwrap(), old);
    }
}
