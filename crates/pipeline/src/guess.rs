//! First guesses: what the version of another problem is good for.
//!
//! Where A changes from solve to solve, the newest version may belong to the problem before. Its
//! iterate is taken only where its residual, measured for the problem at hand, is not above that of
//! the iterate the program brought. Directions and what a recurrence needs belong to the other
//! operator; everything else is the application's own and comes back.

use recoup_core::{Registered, Role, Values, Variable, summed};

use crate::candidate::Candidate;
use crate::fingerprint::SessionProblem;
use crate::staging::Buffer;
use crate::{PipelineError, Session};

/// Residual norms, for the problem at hand, of two iterates; NaN where no iterate has the
/// rows of the operator.
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
    ) -> Result<Option<Guess>, PipelineError> {
        let (Some(problem), Some(_)) = (&self.problem, candidate.difference) else { return Ok(None) };
        let variables: Vec<Variable<'_>> = owners.iter().flat_map(|owner| owner.variables()).collect();
        let pair = pair(&variables, candidate, problem.reference.operator.rows());
        if self.comm.max(i64::from(pair.is_none()))? > 0 {
            return Ok(Some(Guess { restored_norm: f64::NAN, own_norm: f64::NAN }));
        }
        let (own, restored) = pair.unwrap_or_default();
        let own_norm = self.norm_of(problem, own)?;
        let restored_norm = self.norm_of(problem, restored)?;
        Ok(Some(Guess { restored_norm, own_norm }))
    }

    /// Measures `||b - A x||` over all ranks. A product that fails on one rank fails on all.
    fn norm_of(&self, problem: &SessionProblem, x: &[f64]) -> Result<f64, PipelineError> {
        let comm = self.comm.as_ref();
        let mut residual = vec![0.0; x.len()];
        let reference = &problem.reference;
        let squared = reference.operator.residual(&reference.rhs, x, &mut residual).map_err(PipelineError::from);
        let [sum] = summed(comm, squared.map(|squared| [squared]))?;
        Ok(sum.sqrt())
    }
}

/// Returns the owners' iterate and that of the version: doubles, one per row of the operator.
fn pair<'a>(variables: &[Variable<'a>], candidate: &'a Candidate, rows: usize) -> Option<(&'a [f64], &'a [f64])> {
    variables.iter().filter(|variable| variable.role == Role::Iterate).find_map(|variable| {
        let decoded = candidate.variables.iter().find(|decoded| decoded.record.name == variable.name)?;
        match (variable.values.near(), decoded.values.near()) {
            (Some(Values::F64(own)), Some(Buffer::F64(restored))) if own.len() == rows => {
                Some((own, restored.get(..rows)?))
            }
            _ => None,
        }
    })
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
