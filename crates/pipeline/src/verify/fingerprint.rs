//! The fingerprint of a session's problem: hashes of what is known, and products with fixed
//! vectors.

use recoup_core::{
    Comm, CommError, Fingerprint, Operator, PROBES, Probe, Projection, agreed, gather_words, probe_value,
    vector_fingerprint,
};

use super::reference::Reference;
use crate::error::PipelineError;

/// The problem at hand, and what it is recognised by.
pub(crate) struct SessionProblem {
    pub(crate) reference: Reference,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) nonzeros: Option<u64>,
    /// Versions of another one are refused.
    pub(crate) is_fixed: bool,
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

/// Gathers hashes of A and b over all ranks.
fn hashes(problem: &Reference, comm: &dyn Comm) -> Result<[u64; 2], CommError> {
    let hash_of_column = |column| vector_fingerprint(first_row(problem, column), problem.column(column));
    let rhs = (0..problem.columns).map(hash_of_column).fold(0, u64::wrapping_add);
    let local = [problem.operator.fingerprint(), rhs];
    let all = gather_words(comm, local)?;
    Ok(all
        .into_iter()
        .fold([0, 0], |[a, b]: [u64; 2], [operator, rhs]| [a.wrapping_add(operator), b.wrapping_add(rhs)]))
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
