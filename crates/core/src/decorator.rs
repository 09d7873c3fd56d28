//! A store that wraps another and changes some of its calls.

use std::collections::BTreeSet;

use crate::{
    Comm, CommonError, Damage, Draft, FrameRecord, Manifest, NextBegin, RowRange, Store, StoreError, Tiered,
    VersionFiles, VersionLinks,
};

/// A store in front of another. Every call reaches the inner store unless the decorator changes it,
/// [`Store::as_tiered`] and [`Store::as_files`] included, so nothing the inner store can do is
/// lost.
pub trait StoreDecorator: Send + Sync {
    /// Returns the store behind this one.
    fn inner(&self) -> &dyn Store;

    /// Runs before every local call that can fail.
    ///
    /// # Errors
    /// The call fails with this error and does not reach the inner store.
    fn admit(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Begins this rank's part of a version; see [`Store::begin`].
    ///
    /// # Errors
    /// As [`Store::begin`].
    fn begin_draft(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.inner().begin(version, rank)
    }

    /// Publishes a version; see [`Store::publish`]. Collective.
    ///
    /// # Errors
    /// As [`Store::publish`].
    fn publish_version(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        self.inner().publish(manifest, comm)
    }
}

/// A store that is borrowed changes nothing.
impl StoreDecorator for &dyn Store {
    fn inner(&self) -> &dyn Store {
        *self
    }
}

impl<D: StoreDecorator> Store for D {
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.admit()?;
        self.begin_draft(version, rank)
    }

    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        self.publish_version(manifest, comm)
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.admit()?;
        self.inner().discard_drafts()
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        self.admit()?;
        self.inner().versions()
    }

    fn holds(&self, version: u64) -> Result<bool, StoreError> {
        self.admit()?;
        self.inner().holds(version)
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        self.admit()?;
        self.inner().manifest(version)
    }

    fn top(&self, version: u64) -> Result<Manifest, StoreError> {
        self.admit()?;
        self.inner().top(version)
    }

    fn parts(&self, top: &Manifest, ranks: &BTreeSet<usize>, rows: &[RowRange]) -> Result<Manifest, StoreError> {
        self.admit()?;
        self.inner().parts(top, ranks, rows)
    }

    fn links(&self, version: u64) -> Result<VersionLinks, StoreError> {
        self.admit()?;
        self.inner().links(version)
    }

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        self.admit()?;
        self.inner().read(version, frame, payload)
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        self.admit()?;
        self.inner().inspect_damage(version)
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        self.admit()?;
        self.inner().set_aside_newer(version)
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        self.admit()?;
        self.inner().remove(version)
    }

    fn as_tiered(&self) -> Option<&dyn Tiered> {
        self.inner().as_tiered()
    }

    fn as_files(&self) -> Option<&dyn VersionFiles> {
        self.inner().as_files()
    }
}
