//! The keeper: retention in every store of a run, before a version is made and after it counts.
//!
//! Promises: a store never holds more than its number of versions, those they are coded against,
//! and one more while a version is published; the verdict on bytes is the same on all ranks. Must
//! not know what versions hold.

use recoup_core::{Comm, CommError, Manifest, Store, Tier, Tiered, broadcast_json};
use serde::{Deserialize, Serialize};

use super::retention::Retention;
use super::retention::Sweep;

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetentionLimits {
    pub(crate) keep: usize,
    pub(crate) max_bytes: Option<u64>,
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
    /// Limits of a store that is not made of tiers.
    limits: RetentionLimits,
    /// One for each tier, or for the store.
    retention: Vec<Retention>,
    /// The newest version, where slower tiers may get it later.
    newest: Option<Manifest>,
    has_warned: bool,
}

impl Keeper {
    pub(crate) fn new(limits: RetentionLimits) -> Self {
        Self { limits, retention: Vec::new(), newest: None, has_warned: false }
    }

    /// Forgets what was seen: versions may have been set aside.
    pub(crate) fn forget(&mut self) {
        self.retention.iter_mut().for_each(Retention::forget);
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
        manifest: Manifest,
        store: &dyn Store,
        comm: &dyn Comm,
    ) -> Result<Swept, CommError> {
        let swept = self.sweep(manifest.version, Some(&manifest), store, comm);
        self.newest = (!tiers(store).is_empty()).then_some(manifest);
        swept
    }

    /// Removes what is no longer needed now that slower tiers have all they were to have.
    pub(crate) fn finished(&mut self, store: &dyn Store, comm: &dyn Comm) {
        if let Some(manifest) = self.newest.take() {
            self.sweep_here(manifest.version, Some(&manifest), store, comm);
        }
    }

    fn sweep(
        &mut self,
        newest: u64,
        published: Option<&Manifest>,
        store: &dyn Store,
        comm: &dyn Comm,
    ) -> Result<Swept, CommError> {
        let mine = self.sweep_here(newest, published, store, comm);
        let is_limited = self.limits.max_bytes.is_some() || tiers(store).iter().any(|tier| tier.max_bytes.is_some());
        // Rank 0 alone sweeps a shared store, so its findings are everybody's.
        if is_limited { broadcast_json(comm, || mine) } else { Ok(mine) }
    }

    /// Sweeps on this rank: a version that cannot be removed is no reason to lose the new one.
    fn sweep_here(&mut self, newest: u64, published: Option<&Manifest>, store: &dyn Store, comm: &dyn Comm) -> Swept {
        let mut swept = Swept::default();
        let tiers = tiers(store);
        let is_alone = tiers.is_empty();
        let stores: Vec<(RetentionLimits, &dyn Store)> = match tiers.as_slice() {
            [] => vec![(self.limits, store)],
            tiers => tiers.iter().map(|tier| (RetentionLimits::of(tier), tier.store.as_ref())).collect(),
        };
        for (index, (limits, store)) in stores.into_iter().enumerate() {
            if self.retention.len() == index {
                self.retention.push(Retention::new(limits.keep).within(limits.max_bytes));
            }
            if !manages_versions(store, comm) {
                continue;
            }
            let retention = &mut self.retention[index];
            match published {
                Some(manifest) if is_alone => retention.published_alone(manifest),
                Some(manifest) => retention.published(manifest),
                None => retention.forget(),
            }
            let sweep = retention.apply(store, newest);
            self.weigh(&sweep, limits, &mut swept);
        }
        swept.dropped.sort_unstable();
        swept.dropped.dedup();
        swept
    }

    /// Adds what was found in one store.
    fn weigh(&mut self, sweep: &Sweep, limits: RetentionLimits, swept: &mut Swept) {
        swept.dropped.extend(&sweep.dropped);
        let (Some(newest), Some(max_bytes)) = (sweep.newest, limits.max_bytes) else { return };
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

impl RetentionLimits {
    fn of(tier: &Tier) -> Self {
        Self { keep: tier.keep, max_bytes: tier.max_bytes }
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
