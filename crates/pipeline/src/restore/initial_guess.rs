//! First guesses: what the version of another problem is good for.
//!
//! Where A changes from solve to solve, the newest version may belong to the problem before. Its
//! iterate is taken only where its residual, measured for the problem at hand, is not above that of
//! the iterate the program brought. Directions and what a recurrence needs belong to the other
//! operator; everything else is the application's own and comes back.

use std::borrow::Cow;

use recoup_core::{
    Borrowed, CommonError, DeviceSnapshot, Registered, Role, Values, Variable, VariableRecord, each, summed,
};

use super::candidate::Candidate;
use crate::encode::Decoded;
use crate::error::{PipelineError, device_values_error};
use crate::session::Session;
use crate::staging::{Buffer, PlacedValues};
use crate::verify::{Reference, SessionProblem, is_vector};

/// Residual norms, for the problem at hand, of two iterates: of blocks, the root of the sum of the
/// squares of their columns' norms. NaN where no iterate has the rows of the operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// Residual norm of the iterate of the version.
    pub restored_norm: f64,
    /// Residual norm of the iterate that the program brought.
    pub own_norm: f64,
}

impl Guess {
    /// Returns whether the iterate of the version was taken.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        let is_better = self.restored_norm <= self.own_norm || !self.own_norm.is_finite();
        self.restored_norm.is_finite() && is_better
    }
}

/// Returns whether a variable of this role is overwritten.
pub(crate) fn is_restored(role: Role, guess: Option<Guess>) -> bool {
    match (guess, role) {
        (None, _) | (_, Role::Dynamic | Role::Static) => true,
        (Some(guess), Role::Iterate) => guess.is_taken(),
        (Some(_), Role::Direction | Role::Recomputed { .. }) => false,
    }
}

impl Session {
    /// Compares the iterate of a version of another problem with the owners' own; `None` where it
    /// is of this one. Collective.
    pub(crate) fn guess(
        &self,
        candidate: &Candidate,
        owners: &[&mut dyn Registered],
    ) -> Result<Option<Guess>, CommonError<PipelineError>> {
        let (Some(problem), Some(_)) = (&self.problem, candidate.difference) else { return Ok(None) };
        let variables: Vec<Variable<'_>> = owners.iter().flat_map(|owner| owner.variables()).collect();
        let mut squared = Guess { restored_norm: 0.0, own_norm: 0.0 };
        for column in 0..problem.reference.columns {
            let pair = each(self.comm.as_ref(), pair(&variables, candidate, &problem.reference, column))?;
            if self.comm.max(i64::from(pair.is_none()))? > 0 {
                return Ok(Some(Guess { restored_norm: f64::NAN, own_norm: f64::NAN }));
            }
            let [own, restored] = pair.unwrap_or_default();
            squared.own_norm += self.squared_norm_of(problem, &own, column)?;
            squared.restored_norm += self.squared_norm_of(problem, &restored, column)?;
        }
        let Guess { restored_norm, own_norm } = squared;
        Ok(Some(Guess { restored_norm: restored_norm.sqrt(), own_norm: own_norm.sqrt() }))
    }

    /// ResidualOps `||b - A x||^2` over all ranks. A product that fails on one rank fails on all.
    fn squared_norm_of(
        &self,
        problem: &SessionProblem,
        x: &[f64],
        column: usize,
    ) -> Result<f64, CommonError<PipelineError>> {
        let mut residual = vec![0.0; x.len()];
        let rhs = problem.reference.column(column);
        let squared = problem.reference.operator.residual(rhs, x, &mut residual).map_err(PipelineError::from);
        summed(self.comm.as_ref(), squared.map(|squared| [squared])).map(|[sum]| sum)
    }
}

/// Returns the owners' iterate of a column and that of a version, if both are real numbers, one per
/// row of the operator; fetched if they are stored elsewhere.
fn pair<'a>(
    variables: &[Variable<'a>],
    candidate: &'a Candidate,
    problem: &Reference,
    column: usize,
) -> Result<Option<[Cow<'a, [f64]>; 2]>, PipelineError> {
    let rows = problem.operator.rows();
    let is_of_column = |variable: &Variable<'_>| variable.column.map_or(problem.columns == 1, |own| own == column);
    let is_iterate = |variable: &&Variable<'_>| variable.role == Role::Iterate && is_of_column(variable);
    for variable in variables.iter().filter(is_iterate) {
        let decoded = candidate.variables.iter().find(|decoded| decoded.record.name == variable.name);
        let Some(Decoded { record, values, .. }) = decoded.filter(|decoded| is_vector(&decoded.record, rows)) else {
            continue;
        };
        let own = match variable.values {
            Borrowed::Host(Values::F64(own)) if own.len() == rows => Cow::from(own),
            Borrowed::Host(Values::F32(own)) if own.len() == rows => own.iter().copied().map(f64::from).collect(),
            Borrowed::Device(own) if own.element() == record.element && own.len() == rows => {
                let held = own.snapshot(rows, None).map_err(device_values_error(record))?;
                Cow::from(fetched(held.as_ref(), record, rows)?)
            }
            _ => continue,
        };
        let restored = match values {
            PlacedValues::Host(Buffer::F64(restored)) => Cow::from(&restored[..rows]),
            PlacedValues::Host(restored) => Cow::from(widened(restored, rows)),
            PlacedValues::Held(restored) => Cow::from(fetched(restored.as_ref(), record, rows)?),
        };
        return Ok(Some([own, restored]));
    }
    Ok(None)
}

/// Fetches the rows of a vector.
fn fetched(held: &dyn DeviceSnapshot, record: &VariableRecord, rows: usize) -> Result<Vec<f64>, PipelineError> {
    let mut values = Buffer::new(record.element);
    values.resize(rows);
    held.fetch(0, values.slice_mut(0, rows)).map_err(device_values_error(record))?;
    Ok(match values {
        Buffer::F64(values) => values,
        values => widened(&values, rows),
    })
}

/// Returns singles as doubles.
fn widened(values: &Buffer, rows: usize) -> Vec<f64> {
    let mut wide = Vec::new();
    values.doubles(rows, &mut wide);
    wide
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guess_is_taken_where_it_is_finite_and_not_worse() {
        let is_taken = |restored_norm: f64, own_norm: f64| Guess { restored_norm, own_norm }.is_taken();
        assert!(is_taken(1.0, 1.0) && is_taken(0.5, 1.0) && is_taken(1.0, f64::NAN) && is_taken(1.0, f64::INFINITY));
        assert!(!is_taken(1.5, 1.0) && !is_taken(f64::NAN, 1.0) && !is_taken(f64::NAN, f64::NAN));
    }
}
