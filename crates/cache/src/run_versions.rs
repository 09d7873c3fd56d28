//! The versions that a run has in memory on this machine, over all its shelves, for `inspect`,
//! `verify`, `status` and `prune`.

use std::collections::BTreeMap;
use std::time::SystemTime;

use recoup_core::{
    Comm, CommonError, Damage, Draft, FrameRecord, Manifest, NextBegin, Store, StoreError, VersionFiles, VersionLinks,
};

use crate::run_memory::RankShelf;
use crate::store::{joined, unreadable};

/// The versions on all shelves of a run. They can be read and removed; none is written.
#[derive(Debug)]
pub struct RunVersions {
    shelves: Vec<RankShelf>,
}

impl RunVersions {
    /// Joins the shelves that [`crate::RunMemory::shelves`] has opened.
    #[must_use]
    pub fn new(shelves: Vec<RankShelf>) -> Self {
        Self { shelves }
    }

    /// Returns the shelves.
    #[must_use]
    pub fn shelves(&self) -> &[RankShelf] {
        &self.shelves
    }

    /// Returns the manifest of a version as far as its parts are on this machine, and the ranks
    /// whose parts are not.
    ///
    /// # Errors
    /// [`StoreError::Missing`], and [`StoreError::Manifest`] where no part can be read.
    pub fn described(&self, version: u64) -> Result<(Manifest, Vec<usize>), StoreError> {
        let mut error = StoreError::Missing { version };
        let mut versions: BTreeMap<u64, (usize, BTreeMap<usize, Manifest>)> = BTreeMap::new();
        for shelf in self.holding(version, 0) {
            let mark = match shelf.store.mark(version) {
                Ok(mark) => mark,
                Err(found) => {
                    error = found;
                    continue;
                }
            };
            let (_, parts) = versions.entry(mark.id).or_insert_with(|| (mark.ranks, BTreeMap::new()));
            for (rank, part) in shelf.store.manifests(version)? {
                match part {
                    Ok(part) => drop(parts.entry(rank).or_insert(part)),
                    Err(what) => error = unreadable(version, what),
                }
            }
        }
        // Of two versions of this number, the one with more parts counts.
        let largest = versions.into_values().max_by_key(|(_, parts)| parts.len());
        let (ranks, parts) = largest.unwrap_or_default();
        let missing = (0..ranks).filter(|rank| !parts.contains_key(rank)).collect();
        joined(parts.into_values()).map(|manifest| (manifest, missing)).ok_or(error)
    }

    /// Returns the shelves that hold a part of a version, the rank's own before copies of it.
    fn holding(&self, version: u64, rank: usize) -> impl Iterator<Item = &RankShelf> {
        let holds = move |shelf: &&RankShelf| shelf.store.holds(version).unwrap_or(false);
        let is_own = move |shelf: &&RankShelf| shelf.rank == rank;
        let own = self.shelves.iter().filter(is_own);
        own.chain(self.shelves.iter().filter(move |shelf| shelf.rank != rank)).filter(holds)
    }

    fn read_only<T>(&self) -> Result<T, StoreError> {
        let source = std::io::ErrorKind::ReadOnlyFilesystem.into();
        Err(StoreError::Io { action: "write", path: "the versions in memory".to_owned(), source })
    }
}

impl Store for RunVersions {
    fn begin(&self, _version: u64, _rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.read_only()
    }

    fn publish(&self, _manifest: &Manifest, _comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        self.read_only().map_err(CommonError::alike)
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.shelves.iter().try_for_each(|shelf| shelf.store.discard_drafts())
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        let mut versions = Vec::new();
        for shelf in &self.shelves {
            versions.extend(shelf.store.versions()?);
        }
        versions.sort_unstable();
        versions.dedup();
        Ok(versions)
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        let (manifest, missing) = self.described(version)?;
        if missing.is_empty() { Ok(manifest) } else { Err(unreadable(version, not_here(&missing))) }
    }

    fn links(&self, version: u64) -> Result<VersionLinks, StoreError> {
        let mut links = self.holding(version, 0).map(|shelf| shelf.store.links(version));
        links.next().unwrap_or(Err(StoreError::Missing { version }))
    }

    /// A part that was lost with its node may be brought back from erasure sets by a restore; here
    /// it is named as damage.
    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        let mut error = StoreError::Missing { version };
        for shelf in self.holding(version, frame.rank) {
            match shelf.store.read(version, frame, payload) {
                Ok(()) => return Ok(()),
                Err(found) if shelf.rank == frame.rank => error = found,
                Err(_) => {}
            }
        }
        Err(error)
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        let (manifest, missing) = match self.described(version) {
            Err(StoreError::Manifest { what, .. }) => return Ok(vec![Damage::Manifest { what }]),
            other => other?,
        };
        let missing = (!missing.is_empty()).then(|| Damage::Manifest { what: not_here(&missing) });
        let mut payload = Vec::new();
        let damage = |frame: &FrameRecord| {
            let what = self.read(version, frame, &mut payload).err()?.to_string();
            Some(Damage::Frame { frame: Box::new(frame.clone()), what })
        };
        Ok(missing.into_iter().chain(manifest.frames.iter().filter_map(damage)).collect())
    }

    fn set_aside_newer(&self, _version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        self.read_only()
    }

    /// Removes a version from all shelves that hold a part of it.
    fn remove(&self, version: u64) -> Result<(), StoreError> {
        if !self.holds(version)? {
            return Err(StoreError::Missing { version });
        }
        self.holding(version, 0).try_for_each(|shelf| shelf.store.remove(version))
    }

    fn as_files(&self) -> Option<&dyn VersionFiles> {
        Some(self)
    }
}

fn not_here(ranks: &[usize]) -> String {
    let ranks: Vec<String> = ranks.iter().map(usize::to_string).collect();
    format!("the part of rank {} is not on this machine", ranks.join(", "))
}

impl VersionFiles for RunVersions {
    /// Returns when the last shelf on this machine got its commit mark.
    fn published_at(&self, version: u64) -> Option<SystemTime> {
        self.described(version).ok()?;
        self.holding(version, 0).filter_map(|shelf| shelf.store.committed_at(version)).max()
    }

    fn set_aside(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn remove_set_aside(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
