//! The registry: the ordered list of variables all owners lend, checked once per use.

use recoup_core::{Distribution, Registered, Resume, Role, ValuesMut, Variable, VariableMut};

use crate::PipelineError;

/// Collects the variables of all owners, in order, with unique and well-formed names.
pub(crate) fn collect<'a>(owners: &[&'a dyn Registered]) -> Result<Vec<Variable<'a>>, PipelineError> {
    let variables: Vec<Variable<'a>> = owners.iter().flat_map(|owner| owner.variables()).collect();
    for (index, variable) in variables.iter().enumerate() {
        check_name(variable.name, variables[..index].iter().any(|v| v.name == variable.name))?;
        let expected: usize = variable.dims.iter().product();
        if expected != variable.values.len() {
            let name = variable.name.to_owned();
            return Err(PipelineError::Shape { name, expected, found: variable.values.len() });
        }
    }
    Ok(variables)
}

fn check_name(name: &str, is_taken: bool) -> Result<(), PipelineError> {
    let refuse = |what| Err(PipelineError::Name { name: name.to_owned(), what });
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if is_taken {
        return refuse("registered twice");
    }
    if name.is_empty() || name.len() > 64 {
        return refuse("expected 1 to 64 characters");
    }
    if name.starts_with('.') || !name.chars().all(is_allowed) {
        return refuse("expected letters, digits, '_', '-' and '.', not first");
    }
    Ok(())
}

/// Adds up the raw bytes of versions meant for each of these resumes. Checks no names.
pub(crate) fn raw_bytes<const N: usize>(owners: &[&dyn Registered], resumes: [Resume; N]) -> [(Resume, u64); N] {
    let mut totals = resumes.map(|resume| (resume, 0));
    for variable in owners.iter().flat_map(|owner| owner.variables()) {
        let bytes = (variable.values.len() * variable.values.element().size()) as u64;
        for (resume, total) in &mut totals {
            *total += if variable.role.is_saved_for(*resume) { bytes } else { 0 };
        }
    }
    totals
}

/// Plain slices lent to a session, for code that has no type of its own to register.
///
/// ```
/// # use recoup_pipeline::Variables;
/// let (mut x, mut step) = (vec![0.0; 100], [0_i64]);
/// let owner = Variables::new().iterate("x", &mut x).counter("step", &mut step);
/// ```
#[derive(Debug, Default)]
pub struct Variables<'a> {
    entries: Vec<Entry<'a>>,
}

#[derive(Debug)]
struct Entry<'a> {
    name: &'a str,
    role: Role,
    values: ValuesMut<'a>,
    distribution: Distribution,
}

impl<'a> Variables<'a> {
    /// Makes a list of no variables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the vector the solver improves, all of it on one rank: the one that may be lossy.
    #[must_use]
    pub fn iterate(self, name: &'a str, values: &'a mut [f64]) -> Self {
        let global = values.len() as u64;
        self.iterate_rows(name, values, 0, global)
    }

    /// Adds this rank's rows of the vector the solvers improve, from global row `first` on, of
    /// `global` in all.
    #[must_use]
    pub fn iterate_rows(self, name: &'a str, values: &'a mut [f64], first: u64, global: u64) -> Self {
        self.with(name, Role::Iterate, ValuesMut::F64(values), Distribution::Rows { first, global })
    }

    /// Adds doubles to be saved exactly in every version.
    #[must_use]
    pub fn dynamic(self, name: &'a str, values: &'a mut [f64]) -> Self {
        self.with(name, Role::Dynamic, ValuesMut::F64(values), Distribution::RankLocal)
    }

    /// Adds integers to be saved exactly in every version.
    #[must_use]
    pub fn counter(self, name: &'a str, values: &'a mut [i64]) -> Self {
        self.with(name, Role::Dynamic, ValuesMut::I64(values), Distribution::RankLocal)
    }

    /// Adds any variable.
    #[must_use]
    pub fn with(mut self, name: &'a str, role: Role, values: ValuesMut<'a>, distribution: Distribution) -> Self {
        self.entries.push(Entry { name, role, values, distribution });
        self
    }
}

impl Registered for Variables<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.entries.iter().map(|e| Variable::new(e.name, e.role, e.values.as_values(), e.distribution)).collect()
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        self.entries.iter_mut().map(|e| VariableMut { name: e.name, values: e.values.reborrow() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain() {
        let (mut a, mut b) = (vec![1.0], vec![2.0]);
        let twice = Variables::new().iterate("x", &mut a).dynamic("x", &mut b);
        assert!(matches!(collect(&[&twice]), Err(PipelineError::Name { what: "registered twice", .. })));
        for name in ["", "a/b", ".hidden", "a b"] {
            let bad = Variables { entries: vec![] }.dynamic(name, &mut a);
            assert!(matches!(collect(&[&bad]), Err(PipelineError::Name { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_version_holds_what_its_resume_needs() {
        let (mut x, mut p) = (vec![0.0; 10], vec![0.0; 10]);
        let saved_for = Role::Recomputed { saved_for: Resume::Traditional };
        let owner =
            Variables::new().iterate("x", &mut x).with("p", saved_for, ValuesMut::F64(&mut p), Distribution::RankLocal);
        let kinds = [Resume::Restarted, Resume::Traditional];
        assert_eq!(raw_bytes(&[&owner], kinds), [(Resume::Restarted, 80), (Resume::Traditional, 160)]);
    }
}
