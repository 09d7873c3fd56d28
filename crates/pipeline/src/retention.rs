//! Retention: the newest versions are kept, and every older one that some kept version is coded against.

use std::collections::{BTreeMap, BTreeSet};

use recoup_core::{Manifest, Store, StoreError};

/// Decides which versions of a store are no longer needed.
#[derive(Clone, Debug)]
pub struct Retention {
    keep: usize,
    /// The versions there are, where that is known: `None` has the store asked.
    versions: Option<BTreeSet<u64>>,
    /// What the manifests seen say of their versions' parents.
    parents: BTreeMap<u64, BTreeSet<u64>>,
}

impl Retention {
    /// Keeps the newest `keep` versions, and what they need.
    #[must_use]
    pub fn new(keep: usize) -> Self {
        Self { keep, versions: None, parents: BTreeMap::new() }
    }

    /// Keeps another number from now on.
    pub(crate) fn keep(&mut self, keep: usize) {
        self.keep = keep;
    }

    /// A version was written: its manifest need not be read again.
    pub fn published(&mut self, manifest: &Manifest) {
        self.parents.insert(manifest.version, manifest.parents());
        self.versions = None;
    }

    /// As [`Retention::published`], to a store that has no other versions than those it had, and this one: it is not asked again.
    pub(crate) fn published_alone(&mut self, manifest: &Manifest) {
        let mut versions = self.versions.take();
        self.published(manifest);
        versions.iter_mut().for_each(|versions| versions.extend([manifest.version]));
        self.versions = versions;
    }

    /// What was seen may no longer be so: versions were set aside, and others may take their numbers.
    pub fn forget(&mut self) {
        (self.versions, self.parents) = (None, BTreeMap::new());
    }

    /// The versions that are not among the newest, counted from `newest` downwards, and that no other needs;
    /// newest first: removed in this order, no version is ever without one it is coded against. The store is asked what versions it
    /// has the first time, and after [`Retention::published`] and [`Retention::forget`].
    ///
    /// A version whose manifest cannot be read may need any older one: those all stay. So do versions above
    /// `newest`, which are another run's, and what they need.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the versions cannot be listed.
    pub fn superfluous(&mut self, store: &dyn Store, newest: u64) -> Result<Vec<u64>, StoreError> {
        let versions = match self.versions.take() {
            Some(known) => known,
            None => store.versions()?.into_iter().collect(),
        };
        let superfluous = self.among(&versions, store, newest);
        self.versions = Some(versions);
        Ok(superfluous)
    }

    fn among(&mut self, versions: &BTreeSet<u64>, store: &dyn Store, newest: u64) -> Vec<u64> {
        self.parents.retain(|version, _| versions.contains(version));
        let (mut needed, mut superfluous) = (BTreeSet::new(), Vec::new());
        let newer = versions.iter().filter(|&&version| version > newest).count();
        for (position, &version) in versions.iter().rev().enumerate() {
            if position >= newer + self.keep && !needed.contains(&version) {
                superfluous.push(version);
                continue;
            }
            match self.parents(store, version) {
                Some(parents) => needed.extend(parents),
                None => break,
            }
        }
        superfluous
    }

    /// Removes what is superfluous. A version that cannot be removed is no reason to lose another: it is
    /// named in the log, and what it needs stays.
    pub(crate) fn apply(&mut self, store: &dyn Store, newest: u64) {
        let superfluous = self.superfluous(store, newest).unwrap_or_default();
        let mut needed = BTreeSet::new();
        for version in superfluous {
            let removed = if needed.contains(&version) { Ok(false) } else { remove(store, version).map(|()| true) };
            if let Err(error) = &removed {
                tracing::warn!(version, %error, "an old version is left over");
            }
            if matches!(removed, Ok(true)) {
                self.versions.iter_mut().for_each(|versions| versions.retain(|&v| v != version));
            } else {
                match self.parents(store, version) {
                    Some(parents) => needed.extend(parents),
                    None => return,
                }
            }
        }
    }

    /// The versions one version needs to be read first; `None` when that is not known.
    fn parents(&mut self, store: &dyn Store, version: u64) -> Option<BTreeSet<u64>> {
        if let Some(parents) = self.parents.get(&version) {
            return Some(parents.clone());
        }
        let parents = store.manifest(version).ok()?.parents();
        self.parents.insert(version, parents.clone());
        Some(parents)
    }
}

/// Removes a version; one that somebody else has removed is gone, too.
fn remove(store: &dyn Store, version: u64) -> Result<(), StoreError> {
    match store.remove(version) {
        Err(StoreError::Missing { .. }) => Ok(()),
        removed => removed,
    }
}
