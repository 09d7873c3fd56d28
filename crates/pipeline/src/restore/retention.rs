//! Retention: the newest versions are kept, as far as their bytes allow, and every older one that
//! some kept version is coded against.
//!
//! The keeper does so in every store of a run, before a version is made and after it counts: a
//! store never holds more than its number of versions, those they are coded against, and one more
//! while a version is published; the verdict on bytes is the same on all ranks.

use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

use recoup_core::{Comm, CommError, Store, StoreError, Tier, Tiered, VersionLinks, broadcast_json};
use serde::{Deserialize, Serialize};

/// Decides which versions of a store are no longer needed.
#[derive(Clone, Debug)]
pub struct Retention {
    keep: usize,
    max_bytes: Option<u64>,
    /// The versions there are, where that is known: `None` has the store asked.
    versions: Option<BTreeSet<u64>>,
    /// Bytes and parents of the versions, from the manifests seen.
    seen: BTreeMap<u64, VersionLinks>,
}

/// A version that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedVersion {
    /// Its number.
    pub version: u64,
    /// The versions it is coded against.
    pub parents: BTreeSet<u64>,
}

/// The findings of retention in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// The versions no other needs, newest first: removed in this order, no version is ever without
    /// one it is coded against.
    pub superfluous: Vec<u64>,
    /// Superfluous versions that would be kept if the limit on bytes allowed it.
    pub dropped: Vec<u64>,
    /// The newest version; `None` where there is none, or its manifest cannot be read.
    pub newest: Option<u64>,
    /// Bytes of the newest version, where there is a limit.
    pub newest_bytes: u64,
    /// Bytes of the newest version and of all it is coded against, where there is a limit.
    pub needed_bytes: u64,
}

impl Retention {
    /// Keeps the newest `keep` versions, and those they are coded against.
    #[must_use]
    pub fn new(keep: usize) -> Self {
        Self { keep, max_bytes: None, versions: None, seen: BTreeMap::new() }
    }

    /// Keeps fewer where they take more than `max_bytes` together; the newest one, and those it is
    /// coded against, always. What counts is the versions' files: neither a draft nor what was set
    /// aside.
    #[must_use]
    pub fn within(self, max_bytes: Option<u64>) -> Self {
        Self { max_bytes, ..self }
    }

    /// Takes a version that was written: its manifest need not be read again.
    pub fn published(&mut self, published: &PublishedVersion) {
        self.versions = None;
        // How large a version is, its store says.
        match self.max_bytes {
            None => {
                self.seen.insert(published.version, VersionLinks { parents: published.parents.clone(), bytes: 0 });
            }
            Some(_) => drop(self.seen.remove(&published.version)),
        }
    }

    /// Takes a version as [`Retention::published`] does, of a store that has no other versions than
    /// those it had, and this one: it is not asked again.
    pub(crate) fn published_alone(&mut self, published: &PublishedVersion) {
        let mut versions = self.versions.take();
        self.published(published);
        versions.iter_mut().for_each(|versions| versions.extend([published.version]));
        self.versions = versions;
    }

    /// Forgets what was seen: versions were set aside, and others may take their numbers.
    pub fn forget(&mut self) {
        self.versions = None;
        self.seen.clear();
    }

    /// Finds the versions that are not among the newest, counted from `newest` downwards, and that
    /// no other needs. The store is asked for its versions the first time, and after
    /// [`Retention::published`] and [`Retention::forget`].
    ///
    /// A version whose manifest cannot be read may need any older one: those all stay. So do
    /// versions above `newest`, which are another run's, and what they need.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the versions cannot be listed.
    pub fn sweep(&mut self, store: &dyn Store, newest: u64) -> Result<Sweep, StoreError> {
        let versions = match self.versions.take() {
            Some(known) => known,
            None => store.versions()?.into_iter().collect(),
        };
        let sweep = self.among(&versions, store, newest);
        self.versions = Some(versions);
        Ok(sweep)
    }

    /// Returns the superfluous versions of [`Retention::sweep`].
    ///
    /// # Errors
    /// As [`Retention::sweep`].
    pub fn superfluous(&mut self, store: &dyn Store, newest: u64) -> Result<Vec<u64>, StoreError> {
        Ok(self.sweep(store, newest)?.superfluous)
    }

    fn among(&mut self, versions: &BTreeSet<u64>, store: &dyn Store, newest: u64) -> Sweep {
        self.seen.retain(|version, _| versions.contains(version));
        let newer = versions.iter().filter(|&&version| version > newest).count();
        let mut kept = BTreeSet::new();
        let mut bytes = 0;
        let mut sweep = Sweep::default();
        for (position, &version) in versions.iter().rev().enumerate() {
            if kept.contains(&version) {
                continue;
            }
            if position >= newer.saturating_add(self.keep) {
                sweep.superfluous.push(version);
                continue;
            }
            let Some(chain) = self.chain(store, version, versions) else { break };
            if position == newer {
                sweep.newest = Some(version);
                (sweep.newest_bytes, sweep.needed_bytes) = (self.bytes([&version]), self.bytes(&chain));
            }
            let more = self.bytes(chain.difference(&kept));
            let is_within_limit = self.max_bytes.is_none_or(|max| bytes + more <= max && sweep.dropped.is_empty());
            if position <= newer || is_within_limit {
                bytes += more;
                kept.extend(chain);
            } else {
                sweep.superfluous.push(version);
                sweep.dropped.push(version);
            }
        }
        sweep
    }

    /// Returns a version and all it is coded against, as far as they are there; `None` when that is
    /// not known.
    fn chain(&mut self, store: &dyn Store, version: u64, versions: &BTreeSet<u64>) -> Option<BTreeSet<u64>> {
        let mut chain = BTreeSet::from([version]);
        let mut left = vec![version];
        while let Some(version) = left.pop() {
            let parents = &self.seen(store, version)?.parents;
            left.extend(parents.iter().filter(|&parent| versions.contains(parent) && chain.insert(*parent)));
        }
        Some(chain)
    }

    /// Adds the bytes of versions that were seen.
    fn bytes<'a>(&self, versions: impl IntoIterator<Item = &'a u64>) -> u64 {
        versions.into_iter().filter_map(|version| self.seen.get(version)).map(|seen| seen.bytes).sum()
    }

    /// Removes what is superfluous. A version that cannot be removed is no reason to lose another:
    /// it is named in the log, and what it needs stays.
    pub(crate) fn apply(&mut self, store: &dyn Store, newest: u64) -> Sweep {
        let mut sweep = self.sweep(store, newest).unwrap_or_else(|error| {
            tracing::warn!(%error, "old versions stay: the store cannot list them");
            Sweep::default()
        });
        let mut needed = BTreeSet::new();
        let mut stays = BTreeSet::new();
        for &version in &sweep.superfluous {
            let removed = if needed.contains(&version) { Ok(false) } else { remove(store, version).map(|()| true) };
            if let Err(error) = &removed {
                tracing::warn!(version, %error, "an old version is left over");
            }
            if matches!(removed, Ok(true)) {
                self.versions.iter_mut().for_each(|versions| versions.retain(|&v| v != version));
                continue;
            }
            stays.insert(version);
            match self.seen(store, version) {
                Some(seen) => needed.extend(seen.parents.iter().copied()),
                None => break,
            }
        }
        sweep.dropped.retain(|version| !stays.contains(version));
        sweep
    }

    /// Reads what the manifest of a version says; `None` when it cannot be read.
    fn seen(&mut self, store: &dyn Store, version: u64) -> Option<&VersionLinks> {
        Some(match self.seen.entry(version) {
            Entry::Occupied(seen) => seen.into_mut(),
            Entry::Vacant(unseen) => unseen.insert(store.links(version).ok()?),
        })
    }
}

/// Removes a version. One that another process has removed counts as removed.
fn remove(store: &dyn Store, version: u64) -> Result<(), StoreError> {
    match store.remove(version) {
        Err(StoreError::Missing { .. }) => Ok(()),
        removed => removed,
    }
}

/// Older versions after a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Swept {
    /// Versions that were removed for want of bytes, ascending.
    pub(crate) dropped: Vec<u64>,
    /// Another version in the chain of the newest one would not fit.
    pub(crate) is_full: bool,
}

/// Retention in the stores of a run.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// The retention in a store that is not made of tiers.
    alone: Retention,
    /// One for each tier, made when it is first met.
    tiers: Vec<Retention>,
    /// The newest version, where slower tiers may get it later.
    newest: Option<PublishedVersion>,
    has_warned: bool,
}

impl Keeper {
    /// Takes the retention in a store that is not made of tiers.
    pub(crate) fn new(alone: Retention) -> Self {
        Self { alone, tiers: Vec::new(), newest: None, has_warned: false }
    }

    /// Forgets what was seen: versions may have been set aside.
    pub(crate) fn forget(&mut self) {
        self.alone.forget();
        self.tiers.iter_mut().for_each(Retention::forget);
        self.newest = None;
    }

    /// Removes what is no longer needed before `version` is made: a process that was killed may
    /// have left it. Collective.
    pub(crate) fn sweep_before(
        &mut self,
        version: u64,
        store: &dyn Store,
        comm: &dyn Comm,
    ) -> Result<Swept, CommError> {
        self.sweep(version, None, store, comm)
    }

    /// Removes what is no longer needed now that a version counts. Collective.
    pub(crate) fn published(
        &mut self,
        published: PublishedVersion,
        store: &dyn Store,
        comm: &dyn Comm,
    ) -> Result<Swept, CommError> {
        let swept = self.sweep(published.version, Some(&published), store, comm);
        self.newest = (!tiers(store).is_empty()).then_some(published);
        swept
    }

    /// Removes what is no longer needed now that slower tiers have all they were to have.
    pub(crate) fn finished(&mut self, store: &dyn Store, comm: &dyn Comm) {
        if let Some(published) = self.newest.take() {
            self.sweep_here(published.version, Some(&published), store, comm);
        }
    }

    fn sweep(
        &mut self,
        newest: u64,
        published: Option<&PublishedVersion>,
        store: &dyn Store,
        comm: &dyn Comm,
    ) -> Result<Swept, CommError> {
        let mine = self.sweep_here(newest, published, store, comm);
        let is_limited = self.alone.max_bytes.is_some() || tiers(store).iter().any(|tier| tier.max_bytes.is_some());
        // Rank 0 alone sweeps a shared store, so its findings are everybody's.
        if is_limited { broadcast_json(comm, || mine) } else { Ok(mine) }
    }

    /// Sweeps on this rank: a version that cannot be removed is no reason to lose the new one.
    fn sweep_here(
        &mut self,
        newest: u64,
        published: Option<&PublishedVersion>,
        store: &dyn Store,
        comm: &dyn Comm,
    ) -> Swept {
        let mut swept = Swept::default();
        let tiers = tiers(store);
        if tiers.is_empty() && manages_versions(store, comm) {
            match published {
                Some(published) => self.alone.published_alone(published),
                None => self.alone.forget(),
            }
            let sweep = self.alone.apply(store, newest);
            self.weigh(&sweep, self.alone.max_bytes, &mut swept);
        }
        for (index, tier) in tiers.iter().enumerate() {
            if self.tiers.len() == index {
                self.tiers.push(Retention::new(tier.keep).within(tier.max_bytes));
            }
            if !manages_versions(tier.store.as_ref(), comm) {
                continue;
            }
            let retention = &mut self.tiers[index];
            match published {
                Some(published) => retention.published(published),
                None => retention.forget(),
            }
            let sweep = retention.apply(tier.store.as_ref(), newest);
            self.weigh(&sweep, tier.max_bytes, &mut swept);
        }
        swept.dropped.sort_unstable();
        swept.dropped.dedup();
        swept
    }

    /// Adds what was found in one store.
    fn weigh(&mut self, sweep: &Sweep, max_bytes: Option<u64>, swept: &mut Swept) {
        swept.dropped.extend(&sweep.dropped);
        let (Some(newest), Some(max_bytes)) = (sweep.newest, max_bytes) else { return };
        if !sweep.dropped.is_empty() {
            tracing::info!(versions = ?sweep.dropped, "dropped: the limit is {max_bytes} bytes");
        }
        // The next version may take a little more than this one did.
        let next_bytes = sweep.newest_bytes + sweep.newest_bytes / 8;
        swept.is_full |= sweep.needed_bytes.saturating_add(next_bytes) > max_bytes;
        if sweep.needed_bytes > max_bytes && !std::mem::replace(&mut self.has_warned, true) {
            let bytes = sweep.needed_bytes;
            tracing::warn!(
                "version {newest} and the versions it is coded against take {bytes} bytes, the limit is {max_bytes}: \
                 the last version is kept all the same"
            );
        }
    }
}

/// Returns the tiers behind a store; none for a store that keeps its versions in one place.
fn tiers(store: &dyn Store) -> Vec<Tier> {
    store.as_tiered().map(Tiered::tiers).unwrap_or_default()
}

/// Returns whether this rank makes the calls that change what versions there are.
pub(crate) fn manages_versions(store: &dyn Store, comm: &dyn Comm) -> bool {
    comm.rank() == 0 || !store.is_shared()
}
