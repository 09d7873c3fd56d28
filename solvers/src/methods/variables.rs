//! Both views of a method's variables, from one list.
//!
//! A method lends its variables twice: to be read for a version, and to be overwritten by a
//! restore. [`lend_variables`] writes both methods of [`recoup_core::Registered`], and the revision
//! of the set, from one list, so that names and order cannot differ.

use recoup_core::{Distribution, Role, Values, ValuesMut, Variable, VariableMut, revision_with};

use crate::{System, Vector};

/// Writes `variables`, `variables_mut` and `revision` from one list of names, roles and places:
///
/// - `rows(name, role, place);` for a vector of one value for each row,
/// - `scalars(name, role, place);` for numbers that are the same on every rank,
/// - `each_rows(names, role, place);` for as many vectors as there are,
/// - `some(value in place) { .. }` for what an `Option` holds.
macro_rules! lend_variables {
    (|$solver:ident| $($list:tt)+) => {
        fn variables(&self) -> Vec<recoup_core::Variable<'_>> {
            let $solver = self;
            let mut lent = $crate::methods::variables::LentVariables::new(&$solver.system);
            lend_variables!(@lend lent [] $($list)+);
            lent.variables
        }

        fn variables_mut(&mut self) -> Vec<recoup_core::VariableMut<'_>> {
            let $solver = self;
            let mut lent = $crate::methods::variables::LentVariablesMut::default();
            lend_variables!(@lend lent [mut] $($list)+);
            lent.variables
        }

        fn revision(&self) -> u64 {
            let $solver = self;
            let mut lent = $crate::methods::variables::Revision::new(&$solver.system);
            lend_variables!(@lend lent [] $($list)+);
            lent.number
        }
    };
    (@lend $lent:ident [$($mutable:tt)?]) => {};
    (@lend $lent:ident [$($mutable:tt)?] some($value:ident in $place:expr) { $($inner:tt)+ } $($rest:tt)*) => {
        if let Some($value) = &$($mutable)? $place {
            lend_variables!(@lend $lent [$($mutable)?] $($inner)+);
        }
        lend_variables!(@lend $lent [$($mutable)?] $($rest)*);
    };
    (@lend $lent:ident [$($mutable:tt)?] $shape:ident($name:expr, $role:expr, $place:expr); $($rest:tt)*) => {
        $lent.$shape($name, $role, &$($mutable)? $place);
        lend_variables!(@lend $lent [$($mutable)?] $($rest)*);
    };
}
pub(crate) use lend_variables;

/// Variables lent to be read.
pub(crate) struct LentVariables<'v> {
    distribution: Distribution,
    dims: [usize; 3],
    pub(crate) variables: Vec<Variable<'v>>,
}

impl<'v> LentVariables<'v> {
    pub(crate) fn new(system: &System<'_>) -> Self {
        let distribution = Distribution::Rows { first: system.a.first_row(), global: system.a.global_rows() };
        Self { distribution, dims: system.a.grid(), variables: Vec::new() }
    }

    pub(crate) fn rows(&mut self, name: &'v str, role: Role, values: &'v [f64]) {
        let variable = Variable::new(name, role, Values::F64(values), self.distribution);
        self.variables.push(Variable { dims: self.dims, ..variable });
    }

    pub(crate) fn scalars(&mut self, name: &'v str, role: Role, values: &'v [f64]) {
        self.variables.push(Variable::new(name, role, Values::F64(values), Distribution::Replicated));
    }

    pub(crate) fn each_rows(&mut self, names: &[&'v str], role: Role, vectors: &'v [Vector]) {
        for (name, values) in names.iter().zip(vectors) {
            self.rows(name, role, values);
        }
    }
}

/// The revision of the set of variables, taken without a list of them.
pub(crate) struct Revision {
    dims: [usize; 3],
    pub(crate) number: u64,
}

impl Revision {
    pub(crate) fn new(system: &System<'_>) -> Self {
        Self { dims: system.a.grid(), number: 0 }
    }

    pub(crate) fn rows(&mut self, name: &str, role: Role, values: &[f64]) {
        self.add(name, role, values, self.dims);
    }

    pub(crate) fn scalars(&mut self, name: &str, role: Role, values: &[f64]) {
        self.add(name, role, values, [values.len(), 1, 1]);
    }

    pub(crate) fn each_rows(&mut self, names: &[&str], role: Role, vectors: &[Vector]) {
        for (name, values) in names.iter().zip(vectors) {
            self.rows(name, role, values);
        }
    }

    fn add(&mut self, name: &str, role: Role, values: &[f64], dims: [usize; 3]) {
        let variable = Variable::new(name, role, Values::F64(values), Distribution::Replicated);
        self.number = revision_with(self.number, &Variable { dims, ..variable });
    }
}

/// The same variables lent to be overwritten; their roles are known already.
#[derive(Default)]
pub(crate) struct LentVariablesMut<'v> {
    pub(crate) variables: Vec<VariableMut<'v>>,
}

impl<'v> LentVariablesMut<'v> {
    pub(crate) fn rows(&mut self, name: &'v str, _role: Role, values: &'v mut [f64]) {
        self.variables.push(VariableMut::new(name, ValuesMut::F64(values)));
    }

    pub(crate) fn scalars(&mut self, name: &'v str, role: Role, values: &'v mut [f64]) {
        self.rows(name, role, values);
    }

    pub(crate) fn each_rows(&mut self, names: &[&'v str], role: Role, vectors: &'v mut [Vector]) {
        for (name, values) in names.iter().zip(vectors) {
            self.rows(name, role, values);
        }
    }
}
