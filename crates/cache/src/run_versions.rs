//! The versions that a run has in memory on this machine, over all its shelves, for `inspect`,
//! `verify`, `status` and `prune`.

use std::time::SystemTime;

use recoup_core::{
    Comm, CommonError, Damage, Draft, FrameRecord, Manifest, NextBegin, Store, StoreError, VersionFiles,
};

use crate::run_memory::RankShelf;

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
        let mut error = StoreError::Missing { version };
        for shelf in self.holding(version, 0) {
            match shelf.store.manifest(version) {
                Ok(manifest) => return Ok(manifest),
                Err(found) => error = found,
            }
        }
        Err(error)
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
        let manifest = match self.manifest(version) {
            Err(StoreError::Manifest { what, .. }) => return Ok(vec![Damage::Manifest { what }]),
            other => other?,
        };
        let mut payload = Vec::new();
        let damage = |frame: &FrameRecord| {
            let what = self.read(version, frame, &mut payload).err()?.to_string();
            Some(Damage::Frame { frame: Box::new(frame.clone()), what })
        };
        Ok(manifest.frames.iter().filter_map(damage).collect())
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

impl VersionFiles for RunVersions {
    /// Returns when the last shelf on this machine got its commit mark.
    fn published_at(&self, version: u64) -> Option<SystemTime> {
        self.manifest(version).ok()?;
        self.holding(version, 0).filter_map(|shelf| shelf.store.committed_at(version)).max()
    }

    fn set_aside(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }

    fn remove_set_aside(&self) -> Result<(), StoreError> {
        Ok(())
    }
}
