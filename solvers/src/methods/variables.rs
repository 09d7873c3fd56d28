//! Both views of a method's variables, from one list.
//!
//! A method lends its variables twice: to be read for a version, and to be overwritten by a
//! restore. [`lend_variables`] writes both methods of [`recoup_core::Registered`], and the revision
//! of the set, from one list, so that names and order cannot differ.

use std::marker::PhantomData;

use recoup_core::{Distribution, Role, Values, ValuesMut, Variable, VariableMut, revision_with};

use crate::{Space, Vector, VectorElement};

/// Writes `variables`, `variables_mut` and `revision` from one list of names, roles and places:
///
/// - `rows(name, role, place);` for a vector of one value for each row,
/// - `scalars(name, role, place);` for numbers that are the same on every rank,
/// - `each_rows(names, role, place);` for as many vectors as there are, `each_of` in any numbers,
/// - `given(pattern in place) { .. }` for what an `Option` or another enum holds now.
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
            let mut lent = $crate::methods::variables::LentVariablesMut::new(&$solver.system);
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
    (@lend $lent:ident [$($mutable:tt)?] given($value:pat in $place:expr) { $($inner:tt)+ } $($rest:tt)*) => {
        if let $value = &$($mutable)? $place {
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
pub(crate) struct LentVariables<'v, S> {
    distribution: Distribution,
    dims: [usize; 3],
    pub(crate) variables: Vec<Variable<'v>>,
    space: PhantomData<S>,
}

impl<'v, S: Space> LentVariables<'v, S> {
    pub(crate) fn new(space: &S) -> Self {
        let a = space.host().a;
        let distribution = Distribution::Rows { first: a.first_row(), global: a.global_rows() };
        Self { distribution, dims: a.grid(), variables: Vec::new(), space: PhantomData }
    }

    pub(crate) fn rows(&mut self, name: &'v str, role: Role, vector: &'v S::Vector) {
        let variable = Variable::new(name, role, S::lend(vector), self.distribution);
        self.variables.push(Variable { dims: self.dims, zones: Some(vector), ..variable });
    }

    pub(crate) fn scalars(&mut self, name: &'v str, role: Role, values: &'v [f64]) {
        self.variables.push(Variable::new(name, role, Values::F64(values), Distribution::Replicated));
    }

    pub(crate) fn each_rows<N: AsRef<str>>(&mut self, names: &'v [N], role: Role, vectors: &'v [S::Vector]) {
        for (name, vector) in names.iter().zip(vectors) {
            self.rows(name.as_ref(), role, vector);
        }
    }

    pub(crate) fn each_of<T: VectorElement>(&mut self, names: &'v [String], role: Role, vectors: &'v [Vector<T>]) {
        let Self { dims, distribution, .. } = *self;
        self.variables
            .extend(names.iter().zip(vectors).map(|(name, vector)| of_numbers(name, role, vector, dims, distribution)));
    }
}

/// A vector of numbers of some type; those of several elements are saved as their elements.
fn of_numbers<'v, T: VectorElement>(
    name: &'v str,
    role: Role,
    vector: &'v Vector<T>,
    dims: [usize; 3],
    distribution: Distribution,
) -> Variable<'v> {
    let elements = size_of::<T>() / T::TYPE.size();
    let distribution = match distribution {
        Distribution::Rows { first, global } => {
            Distribution::Rows { first: first * elements as u64, global: global * elements as u64 }
        }
        other => other,
    };
    let variable = Variable::new(name, role, T::lend(vector), distribution);
    let dims = if elements == 1 { dims } else { variable.dims };
    Variable { dims, zones: Some(vector), ..variable }
}

/// The revision of the set of variables, taken without a list of them.
pub(crate) struct Revision<S> {
    dims: [usize; 3],
    pub(crate) number: u64,
    space: PhantomData<S>,
}

impl<S: Space> Revision<S> {
    pub(crate) fn new(space: &S) -> Self {
        Self { dims: space.host().a.grid(), number: 0, space: PhantomData }
    }

    pub(crate) fn rows(&mut self, name: &str, role: Role, vector: &S::Vector) {
        let variable = Variable::new(name, role, S::lend(vector), Distribution::Replicated);
        self.number = revision_with(self.number, &Variable { dims: self.dims, ..variable });
    }

    pub(crate) fn scalars(&mut self, name: &str, role: Role, values: &[f64]) {
        let variable = Variable::new(name, role, Values::F64(values), Distribution::Replicated);
        self.number = revision_with(self.number, &Variable { dims: [values.len(), 1, 1], ..variable });
    }

    pub(crate) fn each_rows<N: AsRef<str>>(&mut self, names: &[N], role: Role, vectors: &[S::Vector]) {
        for (name, vector) in names.iter().zip(vectors) {
            self.rows(name.as_ref(), role, vector);
        }
    }

    pub(crate) fn each_of<T: VectorElement>(&mut self, names: &[String], role: Role, vectors: &[Vector<T>]) {
        for (name, vector) in names.iter().zip(vectors) {
            let variable = of_numbers(name, role, vector, self.dims, Distribution::Replicated);
            self.number = revision_with(self.number, &variable);
        }
    }
}

/// The same variables lent to be overwritten; their roles are known already.
pub(crate) struct LentVariablesMut<'v, S> {
    pub(crate) variables: Vec<VariableMut<'v>>,
    space: PhantomData<S>,
}

impl<'v, S: Space> LentVariablesMut<'v, S> {
    pub(crate) fn new(_space: &S) -> Self {
        Self { variables: Vec::new(), space: PhantomData }
    }

    pub(crate) fn rows(&mut self, name: &'v str, _role: Role, vector: &'v mut S::Vector) {
        self.variables.push(VariableMut::new(name, S::lend_mut(vector)));
    }

    pub(crate) fn scalars(&mut self, name: &'v str, _role: Role, values: &'v mut [f64]) {
        self.variables.push(VariableMut::new(name, ValuesMut::F64(values)));
    }

    pub(crate) fn each_rows<N: AsRef<str>>(&mut self, names: &'v [N], role: Role, vectors: &'v mut [S::Vector]) {
        for (name, vector) in names.iter().zip(vectors) {
            self.rows(name.as_ref(), role, vector);
        }
    }

    pub(crate) fn each_of<T: VectorElement>(&mut self, names: &'v [String], _role: Role, vectors: &'v mut [Vector<T>]) {
        let lent = |(name, vector): (&'v String, &'v mut Vector<T>)| VariableMut::new(name, T::lend_mut(vector));
        self.variables.extend(names.iter().zip(vectors).map(lent));
    }
}
