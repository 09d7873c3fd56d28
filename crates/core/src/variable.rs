//! Variables: what is registered, under which name and role.

use serde::{Deserialize, Serialize};

use crate::{Borrowed, BorrowedMut, Resume, Zones, mix};

/// The role of a variable in the solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The vector the solver improves: saved in every version, and the one that may be lossy.
    Iterate,
    /// A search direction: saved for a deflated resume, for which it may be lossy, and for every
    /// more faithful one.
    Direction,
    /// Saved in every version, exactly.
    Dynamic,
    /// Rebuilt from the dynamic variables, or saved for a resume at least this faithful.
    Recomputed {
        /// The least faithful resume that needs it saved.
        saved_for: Resume,
    },
    /// Saved once.
    Static,
}

impl Role {
    /// Returns whether a version meant for `resume` holds a variable of this role.
    #[must_use]
    pub fn is_saved_for(self, resume: Resume) -> bool {
        match self {
            Self::Iterate | Self::Dynamic => true,
            Self::Direction => Resume::Deflated <= resume,
            Self::Recomputed { saved_for } => saved_for <= resume,
            Self::Static => false,
        }
    }
}

/// The distribution of a variable's elements over the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Contiguous rows of a global array: this rank's first row, and how many there are in all.
    Rows {
        /// Global number of this rank's first element.
        first: u64,
        /// Global number of elements.
        global: u64,
    },
    /// The same values on every rank.
    Replicated,
    /// Each rank has its own, of no common shape.
    RankLocal,
}

/// A registered variable.
#[derive(Clone, Debug)]
pub struct Variable<'a> {
    /// Unique among all owners of one session: letters, digits, `_`, `.` and `-`.
    pub name: &'a str,
    /// Role in the solver.
    pub role: Role,
    /// The current values.
    pub values: Borrowed<'a>,
    /// Extents of a grid, fastest first, when the values lie on one; `[n, 1, 1]` otherwise.
    pub dims: [usize; 3],
    /// Interleaved unknowns per point.
    pub stride: usize,
    /// The two unknowns of a point are the parts of a complex number.
    pub is_complex: bool,
    /// Distribution over the ranks.
    pub distribution: Distribution,
    /// Knowledge of the writes to the values, where the owner sees all of them.
    pub zones: Option<&'a dyn Zones>,
    /// Column of the right-hand side it belongs to, from 0, where the problem has several.
    pub column: Option<usize>,
}

impl<'a> Variable<'a> {
    /// Makes a variable of a vector without a grid.
    #[must_use]
    pub fn new(name: &'a str, role: Role, values: impl Into<Borrowed<'a>>, distribution: Distribution) -> Self {
        let values = values.into();
        Self {
            name,
            role,
            dims: [values.len(), 1, 1],
            stride: 1,
            is_complex: false,
            values,
            distribution,
            zones: None,
            column: None,
        }
    }
}

/// Returns a [`Registered::revision`](crate::Registered::revision) for these variables: a hash of
/// what a registry knows of them, which does not touch their values.
#[must_use]
pub fn revision_of<'a>(variables: impl IntoIterator<Item = Variable<'a>>) -> u64 {
    variables.into_iter().fold(0, |revision, variable| revision_with(revision, &variable))
}

/// Returns the revision of a set that begins with the variables of `revision`, 0 for none, and goes
/// on with this one.
#[must_use]
pub fn revision_with(revision: u64, variable: &Variable<'_>) -> u64 {
    let Variable { name, role, values, dims, stride, is_complex, distribution: _, zones: _, column } = variable;
    let role = match role {
        Role::Iterate => 0,
        Role::Direction => 1,
        Role::Dynamic => 2,
        Role::Static => 3,
        Role::Recomputed { saved_for } => 4 + *saved_for as u64,
    };
    let unknowns = 2 * *stride as u64 + u64::from(*is_complex);
    let numbers = [role, values.element() as u64, values.len() as u64, unknowns, name.len() as u64];
    let column = column.map_or(0, |column| column as u64 + 1);
    let numbers = numbers.into_iter().chain([column]).chain(dims.map(|extent| extent as u64));
    let all = numbers.chain(name.bytes().map(u64::from));
    all.fold(revision, absorb)
}

/// Adds one number to a hash.
fn absorb(hash: u64, number: u64) -> u64 {
    // The golden ratio's step of splitmix64 keeps zeros from leaving the hash at 0.
    mix((hash ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15))
}

/// A registered variable to be overwritten.
#[derive(Debug)]
pub struct VariableMut<'a> {
    /// The name it was registered under.
    pub name: &'a str,
    /// The place that restored values go to.
    pub values: BorrowedMut<'a>,
}

impl<'a> VariableMut<'a> {
    /// Makes a variable to be overwritten.
    #[must_use]
    pub fn new(name: &'a str, values: impl Into<BorrowedMut<'a>>) -> Self {
        Self { name, values: values.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    #[test]
    fn revision_changes_with_everything_a_registry_knows_and_not_with_values() {
        let zeros = [0.0; 6];
        let ones = [1.0; 6];
        let longer = [0.0; 7];
        let variable = |name, role, values| Variable::new(name, role, values, Distribution::RankLocal);
        let x = || variable("x", Role::Iterate, Values::F64(&zeros));
        let sets: [&[Variable<'_>]; 12] = [
            &[],
            &[x()],
            &[x(), x()],
            &[variable("y", Role::Iterate, Values::F64(&zeros))],
            &[variable("xx", Role::Iterate, Values::F64(&zeros))],
            &[variable("x", Role::Dynamic, Values::F64(&zeros))],
            &[variable("x", Role::Recomputed { saved_for: Resume::Exact }, Values::F64(&zeros))],
            &[variable("x", Role::Iterate, Values::I64(&[0; 6]))],
            &[variable("x", Role::Iterate, Values::F64(&longer))],
            &[Variable { dims: [3, 2, 1], ..x() }],
            &[Variable { column: Some(0), ..x() }],
            &[Variable { column: Some(1), ..x() }],
        ];
        let revisions = sets.map(|set| revision_of(set.iter().cloned()));
        for (at, revision) in revisions.iter().enumerate() {
            assert!(!revisions[..at].contains(revision), "{:?}", sets[at]);
        }
        assert_eq!(revision_of([variable("x", Role::Iterate, Values::F64(&ones))]), revisions[1]);
    }
}
