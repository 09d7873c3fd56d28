//! Changes of a program's variables since versions were saved, as the program declares them:
//! variables that older versions lack, that have other names there, or that the program has no
//! more.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{Manifest, Role, VariableRecord};

/// Declared changes of a program's variables. The same on all ranks.
///
/// ```
/// let mut changes = recoup_pipeline::VariableChanges::default();
/// changes.may_lack("limiter"); // Versions without it leave the program's values as they are.
/// changes.renamed("velocity", "u"); // Versions without it hold it as u.
/// changes.dropped("scratch"); // Versions may hold it; nothing is restored from it.
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableChanges {
    defaults: BTreeSet<String>,
    /// Former names, by the names of now.
    former: BTreeMap<String, String>,
    dropped: BTreeSet<String>,
}

impl VariableChanges {
    /// Declares that versions may lack a variable. A restore then leaves the program's values as
    /// they are.
    pub fn may_lack(&mut self, name: &str) {
        self.defaults.insert(name.to_owned());
    }

    /// Declares that versions which lack a variable hold it under its former name.
    pub fn renamed(&mut self, name: &str, former: &str) {
        self.former.insert(name.to_owned(), former.to_owned());
    }

    /// Declares that versions may hold a variable which the program has no more.
    pub fn dropped(&mut self, name: &str) {
        self.dropped.insert(name.to_owned());
    }

    /// Returns whether versions may lack a variable.
    #[must_use]
    pub fn has_default(&self, name: &str) -> bool {
        self.defaults.contains(name)
    }

    /// Returns the name under which a version holds a variable. A name that is the former one of
    /// another variable, which the version lacks, is that variable's.
    pub(crate) fn saved_name<'a>(&'a self, name: &'a str, manifest: &Manifest) -> Option<&'a str> {
        let is_taken = self.renames(manifest).any(|(_, former)| former == name);
        if holds(manifest, name) && !is_taken {
            return Some(name);
        }
        self.renames(manifest).find(|(now, _)| *now == name).map(|(_, former)| former)
    }

    /// Returns the pairs of new and former names that a version is older than.
    pub(crate) fn renames<'a>(&'a self, manifest: &Manifest) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.former.iter().map(|(now, former)| (now.as_str(), former.as_str()));
        pairs.filter(|(now, former)| !holds(manifest, now) && holds(manifest, former))
    }

    /// Returns the application's variables that a version holds and that are left out: neither one
    /// of `taken`, the names in the version, nor declared.
    pub(crate) fn left_over<'a>(&self, manifest: &'a Manifest, taken: &[String]) -> Vec<&'a str> {
        let is_left = |v: &&VariableRecord| {
            v.role == Role::Dynamic && !self.dropped.contains(&v.name) && !taken.contains(&v.name)
        };
        let mut names: Vec<&str> = manifest.variables.iter().filter(is_left).map(|v| v.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn holds(manifest: &Manifest, name: &str) -> bool {
    manifest.variables.iter().any(|variable| variable.name == name)
}
