//! The proof that what a run has in memory is not needed any more, without which nothing removes
//! it.
//!
//! Promises: a version that a later start would continue from is not removed from memory before the
//! slowest tier has it, or one that is newer, whole. Must not know why a run is done.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use recoup_core::{
    Comm, CommonError, Frame, FrameRecord, KindedError, Manifest, Store, StoreError, Tier, each, from_rank_0,
};

use crate::drain::{Cargo, carry};

/// The proof that what a run has in memory may be removed.
#[derive(Debug)]
pub struct Dispensable(());

impl Dispensable {
    /// Drains the newest version of a run to the slowest of its tiers where that lacks it, with all
    /// it is coded against, and checks that it is whole there. A store of one place has no slower
    /// tier: whoever removes its versions hands the solution over in another way. Nothing of the
    /// run may be saved meanwhile. Collective.
    ///
    /// A version that comes from memory is not readable by the filters of HDF5: its encoded bytes
    /// are kept as they are.
    ///
    /// # Errors
    /// [`StoreError::InMemoryAlone`] when the slowest tier does not have the newest version, and
    /// [`StoreError::Comm`]; the same on all ranks.
    pub fn drained(store: &dyn Store, comm: &dyn Comm) -> Result<Self, CommonError<StoreError>> {
        let Some(tiered) = store.as_tiered() else { return Ok(Self(())) };
        tiered.finish();
        let tiers = tiered.tiers();
        let Some((slowest, [_, ..])) = tiers.split_last() else { return Ok(Self(())) };
        let Some(newest) = from_rank_0(comm, || Ok::<_, StoreError>(store.versions()?.last().copied()))? else {
            return Ok(Self(()));
        };
        drain(store, slowest, newest, comm).map(|()| Self(())).map_err(|error| match &*error {
            StoreError::Comm(_) => error,
            _ => {
                let what = format!("{}: {error}", slowest.name);
                CommonError::alike(StoreError::InMemoryAlone { version: newest, kind: error.kind(), what })
            }
        })
    }

    /// Gives up what a run has in memory, although no other tier may have it: the run starts over,
    /// or the loss of a node is meant.
    #[must_use]
    pub fn given_up() -> Self {
        Self(())
    }
}

/// Drains a version to a tier, and those before it that it is coded against. Collective.
fn drain(store: &dyn Store, tier: &Tier, newest: u64, comm: &dyn Comm) -> Result<(), CommonError<StoreError>> {
    for version in from_rank_0(comm, || missing(store, tier, newest))? {
        let mut cargo = each(comm, from_faster(store, version, comm.rank(), comm.size()))?;
        carry(tier, &mut cargo, comm, &AtomicBool::new(false))?;
    }
    // The proof is not what was done, but what is there.
    from_rank_0(comm, || match missing(store, tier, newest)?.first() {
        Some(&version) => Err(StoreError::Missing { version }),
        None => Ok(()),
    })
}

/// Returns the versions that a tier lacks of those that `newest` needs, itself included, ascending.
fn missing(store: &dyn Store, tier: &Tier, newest: u64) -> Result<Vec<u64>, StoreError> {
    let mut needed = BTreeSet::from([newest]);
    let mut left = vec![newest];
    while let Some(version) = left.pop() {
        let parents = store.links(version)?.parents;
        left.extend(parents.into_iter().filter(|&parent| needed.insert(parent)));
    }
    let held = tier.store.versions()?;
    let is_whole = |version: &u64| {
        let files = tier.store.as_files();
        held.binary_search(version).is_ok()
            && tier.store.manifest(*version).is_ok()
            && files.is_none_or(|files| files.published_at(*version).is_some())
    };
    Ok(needed.into_iter().filter(|version| !is_whole(version)).collect())
}

/// Reads the part of `rank` of a version from the fastest tier that has it whole.
fn from_faster(store: &dyn Store, version: u64, rank: usize, ranks: usize) -> Result<Cargo, StoreError> {
    let manifest = store.manifest(version)?;
    if manifest.ranks != ranks {
        let what = format!("draining version {version}, in ranks");
        return Err(StoreError::Ranks { what, needed: manifest.ranks, found: ranks });
    }
    let own = |of: usize| of == rank;
    let variables = manifest.variables.iter().filter(|variable| own(variable.rank)).map(|variable| {
        let frames = manifest.frames.iter().filter(|frame| own(frame.rank) && frame.variable == variable.name);
        let frames: Result<Vec<_>, _> = frames.map(|frame| read(store, &manifest, frame)).collect();
        Ok((variable.clone(), frames?))
    });
    let variables: Result<Vec<_>, StoreError> = variables.collect();
    Ok(Cargo { variables: variables?, manifest: manifest.part_of(rank) })
}

/// Reads one frame; which filters of HDF5 it went through is not known any more.
fn read(store: &dyn Store, manifest: &Manifest, frame: &FrameRecord) -> Result<Frame<'static>, StoreError> {
    let mut payload = Vec::new();
    store.read(manifest.version, frame, &mut payload)?;
    Ok(Frame { record: frame.clone(), filters: Vec::new(), payload: payload.into() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use recoup_comm::{Solo, Threads};
    use recoup_core::{Storage, Store};
    use recoup_io::MemoryStore;
    use recoup_testkit::crashing_store::{Crash, CrashingStore};
    use recoup_testkit::store_suite::SampleVersion;

    use super::*;
    use crate::Tiers;

    fn tier(name: &str, store: impl Store + 'static, every: u64) -> Tier {
        Tier { name: name.to_owned(), store: Arc::new(store), every, keep: 2, max_bytes: None }
    }

    /// Two stores, of which the slower one got the first version alone.
    fn tiers(memory: &MemoryStore, pfs: impl Store + 'static, rank: usize) -> Tiers {
        Tiers::new(vec![tier("memory", memory.clone(), 1), tier("pfs", pfs, 100)], rank)
    }

    fn sample(version: u64, ranks: usize, parents: &[u64]) -> SampleVersion {
        let mut sample = SampleVersion::new(version, ranks);
        let coded = |frame: &&mut Frame<'static>| frame.record.storage == Storage::Coded;
        let frames = sample.parts.iter_mut().flat_map(|part| &mut part.frames);
        frames.filter(coded).for_each(|frame| frame.record.parents = parents.to_vec());
        sample
    }

    /// Memory was freed although an older version was the newest in the directory.
    #[test]
    fn memory_is_dispensable_once_the_slowest_tier_has_the_newest_version_and_what_it_needs() {
        let memory = MemoryStore::new();
        let pfs = MemoryStore::new();
        for (version, parents) in [(4, vec![]), (5, vec![]), (6, vec![5]), (7, vec![6])] {
            sample(version, 3, &parents).publish(&memory).unwrap();
        }
        sample(4, 3, &[]).publish(&pfs).unwrap();
        Threads::launch(3, |comm| {
            let store = tiers(&memory, pfs.clone(), comm.rank());
            Dispensable::drained(&store, &comm).unwrap();
            assert_eq!(pfs.versions().unwrap(), [4, 5, 6, 7]);
            // There is nothing left to do.
            Dispensable::drained(&store, &comm).unwrap();
        });
        for (version, parents) in [(5, vec![]), (6, vec![5]), (7, vec![6])] {
            sample(version, 3, &parents).assert_whole(&pfs);
        }
    }

    #[test]
    fn memory_is_not_dispensable_where_the_slowest_tier_fails_or_the_ranks_are_others() {
        let memory = MemoryStore::new();
        let pfs = MemoryStore::new();
        let one = tiers(&memory, pfs.clone(), 0);
        for version in [4, 5] {
            sample(version, 1, &[]).publish(&one).unwrap();
        }
        let mut failing = 0;
        while Dispensable::drained(&tiers(&memory, CrashingStore::new(pfs.clone(), Crash::At(failing)), 0), &Solo)
            .is_err()
        {
            failing += 1;
            assert!(failing < 100, "it comes to an end");
        }
        assert!(failing > 3, "listing, reading and writing failed once each");
        assert_eq!(pfs.versions().unwrap(), [4, 5]);
        sample(6, 1, &[]).publish(&one).unwrap();
        Threads::launch(2, |comm| {
            let refused = Dispensable::drained(&tiers(&memory, pfs.clone(), comm.rank()), &comm).unwrap_err();
            assert!(refused.to_string().starts_with("version 6 is in memory alone; pfs: "), "{refused}");
        });
    }

    #[test]
    fn versions_of_one_place_are_dispensable_when_their_owner_says_so() {
        let memory = MemoryStore::new();
        sample(3, 1, &[]).publish(&memory).unwrap();
        Dispensable::drained(&memory, &Solo).unwrap();
        Dispensable::drained(&Tiers::new(vec![tier("memory", memory, 1)], 0), &Solo).unwrap();
    }
}
