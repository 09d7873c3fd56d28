//! The registry: the ordered list of variables all owners lend, its names and its bytes.

use std::sync::Arc;

use recoup_core::{
    Borrowed, Distribution, Registered, Resume, Role, SnapshotAllocator, ValuesMut, Variable, VariableMut,
    VariableRecord, revision_of,
};

use crate::error::PipelineError;
use crate::staging::{raw_bytes, record};

/// The resumes a version may be saved for.
pub(crate) const RESUMES: [Resume; 4] = [Resume::Restarted, Resume::Deflated, Resume::Traditional, Resume::Exact];

/// The registered variables as they were when they were last collected: what decisions and staging
/// need of them before the first version.
#[derive(Debug)]
pub(crate) struct Registry {
    rank: usize,
    /// The revision of each owner then. `None` before the first collection.
    revisions: Option<Vec<u64>>,
    needs: Vec<StagingNeed>,
}

impl Registry {
    pub(crate) fn new(rank: usize) -> Self {
        Self { rank, revisions: None, needs: Vec::new() }
    }

    /// Returns the raw bytes of a version for each resume.
    ///
    /// # Errors
    /// [`PipelineError::Name`] or [`PipelineError::Shape`].
    pub(crate) fn raw_bytes(&mut self, owners: &[&dyn Registered]) -> Result<Vec<(Resume, u64)>, PipelineError> {
        self.collect(owners)?;
        Ok(RESUMES.map(|resume| (resume, self.saved(resume).map(|need| raw_bytes(&need.record)).sum())).to_vec())
    }

    /// Returns the needs of the variables that a version for this resume holds.
    ///
    /// # Errors
    /// [`PipelineError::Name`] or [`PipelineError::Shape`].
    pub(crate) fn needs(
        &mut self,
        owners: &[&dyn Registered],
        resume: Resume,
    ) -> Result<Vec<StagingNeed>, PipelineError> {
        self.collect(owners)?;
        Ok(self.saved(resume).cloned().collect())
    }

    fn saved(&self, resume: Resume) -> impl Iterator<Item = &StagingNeed> {
        self.needs.iter().filter(move |need| need.record.role.is_saved_for(resume))
    }

    /// Collects the variables and checks their names, where they have changed since the last call.
    fn collect(&mut self, owners: &[&dyn Registered]) -> Result<(), PipelineError> {
        let revisions = || owners.iter().map(|owner| owner.revision());
        if self.revisions.as_ref().is_some_and(|collected| collected.iter().copied().eq(revisions())) {
            return Ok(());
        }
        self.forget();
        let variables: Vec<Variable<'_>> = owners.iter().flat_map(|owner| owner.variables()).collect();
        check_variables(&variables)?;
        let need = |variable: &Variable<'_>| StagingNeed {
            record: record(variable, self.rank),
            is_here: variable.values.host().is_some(),
            rooms: match variable.values {
                Borrowed::Host(_) => None,
                Borrowed::Device(values) => values.allocator(),
            },
            has_zones: variable.zones.is_some(),
        };
        self.needs.extend(variables.iter().map(need));
        self.revisions = Some(revisions().collect());
        Ok(())
    }

    /// Forgets the variables, which are collected at the next decision: other owners may lend them.
    pub(crate) fn forget(&mut self) {
        self.revisions = None;
        self.needs.clear();
    }
}

/// A variable that staging will copy.
#[derive(Clone, Debug)]
pub(crate) struct StagingNeed {
    pub(crate) record: VariableRecord,
    /// Its values, and their copy, are in this process's memory.
    pub(crate) is_here: bool,
    /// The maker of room at the place of its values elsewhere, if that has one.
    pub(crate) rooms: Option<Arc<dyn SnapshotAllocator>>,
    /// Its owner sees all writes to it.
    pub(crate) has_zones: bool,
}

/// Checks that names are unique and well formed, and that the extents of each variable hold its
/// values.
pub(crate) fn check_variables(variables: &[Variable<'_>]) -> Result<(), PipelineError> {
    for (index, variable) in variables.iter().enumerate() {
        check_name(variable.name, variables[..index].iter().any(|v| v.name == variable.name))?;
        let expected: usize = variable.dims.iter().product();
        if expected != variable.values.len() {
            let name = variable.name.to_owned();
            return Err(PipelineError::Shape { name, expected, found: variable.values.len() });
        }
    }
    Ok(())
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

/// Plain slices lent to a session, for code that has no type of its own to register.
///
/// ```
/// # use recoup_pipeline::Variables;
/// let mut x = vec![0.0; 100];
/// let mut step = [0_i64];
/// let owner = Variables::new().iterate("x", &mut x).counter("step", &mut step);
/// ```
#[derive(Debug, Default)]
pub struct Variables<'a> {
    entries: Vec<RegisteredSlice<'a>>,
}

#[derive(Debug)]
struct RegisteredSlice<'a> {
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
        self.entries.push(RegisteredSlice { name, role, values, distribution });
        self
    }
}

impl RegisteredSlice<'_> {
    fn variable(&self) -> Variable<'_> {
        Variable::new(self.name, self.role, self.values.as_values(), self.distribution)
    }
}

impl Registered for Variables<'_> {
    fn variables(&self) -> Vec<Variable<'_>> {
        self.entries.iter().map(RegisteredSlice::variable).collect()
    }

    fn revision(&self) -> u64 {
        revision_of(self.entries.iter().map(RegisteredSlice::variable))
    }

    fn variables_mut(&mut self) -> Vec<VariableMut<'_>> {
        self.entries.iter_mut().map(|e| VariableMut::new(e.name, e.values.reborrow())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_plain() {
        let mut a = vec![1.0];
        let mut b = vec![2.0];
        let twice = Variables::new().iterate("x", &mut a).dynamic("x", &mut b);
        assert!(matches!(
            check_variables(&twice.variables()),
            Err(PipelineError::Name { what: "registered twice", .. })
        ));
        for name in ["", "a/b", ".hidden", "a b"] {
            let bad = Variables { entries: vec![] }.dynamic(name, &mut a);
            assert!(matches!(check_variables(&bad.variables()), Err(PipelineError::Name { .. })), "{name:?}");
        }
    }

    #[test]
    fn a_version_holds_what_its_resume_needs() {
        let mut x = vec![0.0; 10];
        let mut p = vec![0.0; 10];
        let saved_for = Role::Recomputed { saved_for: Resume::Traditional };
        let owner =
            Variables::new().iterate("x", &mut x).with("p", saved_for, ValuesMut::F64(&mut p), Distribution::RankLocal);
        let raw_bytes = Registry::new(0).raw_bytes(&[&owner]).unwrap();
        let expected = [80, 80, 160, 160];
        assert_eq!(raw_bytes, RESUMES.into_iter().zip(expected).collect::<Vec<_>>());
    }
}
