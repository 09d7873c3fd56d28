//! A version that is read: what its iterate is good for, and the owners' variables overwritten with
//! its values.
//!
//! Where A changes from solve to solve, the newest version may belong to the problem before. Its
//! iterate is taken only where its residual, measured for the problem at hand, is not above that of
//! the iterate the program brought. Directions and what a recurrence needs belong to the other
//! operator; everything else is the application's own and comes back.
//!
//! Values for a place elsewhere are decoded there first, to room of their own: what can fail for
//! want of room has failed before any variable is overwritten.

use std::borrow::Cow;

use recoup_core::{
    Borrowed, BorrowedMut, CommonError, DeviceSnapshot, Difference, FrameRecord, Manifest, Registered, Role, Scheme,
    Values, Variable, VariableMut, VariableRecord, each, summed,
};

use crate::encode::Decoded;
use crate::error::{PipelineError, device_values_error};
use crate::session::Session;
use crate::staging::{Buffer, PlacedValues, padded_len};
use crate::verify::{Reference, SessionProblem, is_vector};

/// The values of one version on this rank, decoded and compared, but not yet in the
/// owners' variables.
pub(crate) struct Candidate {
    pub(crate) manifest: Manifest,
    pub(crate) variables: Vec<Decoded>,
    /// The variables it lacks, which keep the program's values.
    pub(crate) defaults: Vec<String>,
    /// The next version may be coded against it: every rank has what it wrote, under its name.
    pub(crate) is_own: bool,
    /// The frames read to restore it, of all ranks, where that is charged.
    pub(crate) frames_read: Vec<FrameRecord>,
    /// The difference between its problem and the one at hand.
    pub(crate) difference: Option<Difference>,
    /// The method that saved it, where it is not the solver's.
    pub(crate) other_method: Option<String>,
}

impl Candidate {
    /// Returns what the next lossy version may be coded against: the iterate and the directions of
    /// a lossy version of this problem.
    pub(crate) fn into_parents(self) -> Vec<Decoded> {
        if !self.is_own || self.difference.is_some() || self.manifest.scheme != Scheme::Lossy {
            return Vec::new();
        }
        let is_lossy = |d: &Decoded| matches!(d.record.role, Role::Iterate | Role::Direction | Role::Recomputed { .. });
        self.variables.into_iter().filter(is_lossy).collect()
    }
}

/// Makes room for a variable where its values are stored; `None` where they rest here.
pub(crate) fn room_for(
    record: &VariableRecord,
    owners: &[&mut dyn Registered],
) -> Result<Option<Box<dyn DeviceSnapshot>>, PipelineError> {
    let mut variables = owners.iter().flat_map(|owner| owner.variables());
    match variables.find(|variable| variable.name == record.name).map(|variable| variable.values) {
        Some(Borrowed::Device(values)) => {
            values.alloc(padded_len(record)).map(Some).map_err(device_values_error(record))
        }
        _ => Ok(None),
    }
}

/// Copies decoded values into the owners' variables.
pub(crate) fn overwrite_variables(
    candidate: &Candidate,
    guess: Option<Guess>,
    owners: &mut [&mut dyn Registered],
) -> Result<(), PipelineError> {
    for owner in owners.iter_mut() {
        for VariableMut { name, values } in owner.variables_mut() {
            let Some(Decoded { record, values: decoded, .. }) = found(candidate, guess, name) else { continue };
            match (values, decoded) {
                (BorrowedMut::Host(target), PlacedValues::Host(decoded)) => decoded.copy_to(0, target),
                (BorrowedMut::Device(target), PlacedValues::Held(decoded)) => {
                    target.overwrite(decoded.as_ref()).map_err(|source| {
                        let rank = record.rank;
                        PipelineError::RestoredInPart { variable: name.to_owned(), rank, source }
                    })?;
                }
                _ => unreachable!("{name} was decoded to where it rests"),
            }
        }
    }
    Ok(())
}

/// Finds the values of a variable that is to be restored.
fn found<'a>(candidate: &'a Candidate, guess: Option<Guess>, name: &str) -> Option<&'a Decoded> {
    let mut restored = candidate.variables.iter().filter(|decoded| is_restored(decoded.record.role, guess));
    restored.find(|decoded| decoded.record.name == name)
}

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
