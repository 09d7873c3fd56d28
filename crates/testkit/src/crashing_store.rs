//! A store whose n-th operation fails: what the pipeline does when its disk gives up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{
    Comm, Damage, Draft, Frame, FrameRecord, Manifest, Note, Reads, Sealed, Store, StoreError, Tier, VariableRecord,
    agreed,
};

/// Which operations fail, counted from 0 over all ranks: begin, write, seal, publish, read, and the
/// rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// None; to count them.
    Never,
    /// This one.
    At(u64),
    /// This one and all after it, as when the disk is gone.
    From(u64),
    /// This one and all after it, for want of space.
    FullFrom(u64),
}

/// Passes every operation on to a store, but for those that fail.
pub struct CrashingStore<S> {
    inner: S,
    fuse: Fuse,
}

#[derive(Clone)]
struct Fuse {
    crash: Crash,
    count: Arc<AtomicU64>,
}

impl Fuse {
    fn burn(&self) -> Result<(), StoreError> {
        let operation = self.count.fetch_add(1, Ordering::AcqRel);
        let path = "crashing store".to_owned();
        let lost = Err(StoreError::Io { action: "use", path: path.clone(), source: io::Error::other("injected") });
        match self.crash {
            Crash::At(n) if operation == n => lost,
            Crash::From(n) if operation >= n => lost,
            Crash::FullFrom(n) if operation >= n => Err(StoreError::Full { path }),
            _ => Ok(()),
        }
    }
}

impl<S: Store> CrashingStore<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, crash: Crash) -> Self {
        Self { inner, fuse: Fuse { crash, count: Arc::default() } }
    }

    /// Operations asked for so far, failed ones included.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.fuse.count.load(Ordering::Acquire)
    }

    /// The store underneath, which never fails on purpose.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: Store> Store for CrashingStore<S> {
    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn begins_in_any_order(&self) -> bool {
        self.inner.begins_in_any_order()
    }

    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.fuse.burn()?;
        Ok(Box::new(CrashingDraft { inner: self.inner.begin(version, rank)?, fuse: self.fuse.clone() }))
    }

    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<(), StoreError> {
        // Only rank 0 acts; a rank that skipped the call would leave the others waiting.
        let lit = if comm.rank() == 0 { self.fuse.burn() } else { Ok(()) };
        agreed(comm, lit)?;
        self.inner.publish(manifest, comm)
    }

    fn settle(&self, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), StoreError> {
        self.inner.settle(comm, reads)
    }

    fn can_follow(&self, version: u64, parent: u64) -> bool {
        self.inner.can_follow(version, parent)
    }

    fn tiers(&self) -> &[Tier] {
        self.inner.tiers()
    }

    fn every(&self, tier: usize) -> u64 {
        self.inner.every(tier)
    }

    fn next_everywhere(&self) {
        self.inner.next_everywhere();
    }

    fn finish(&self) {
        self.inner.finish();
    }

    fn give_up(&self) {
        self.inner.give_up();
    }

    fn take_notes(&self) -> Vec<Note> {
        self.inner.take_notes()
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.fuse.burn()?;
        self.inner.discard_drafts()
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        self.fuse.burn()?;
        self.inner.versions()
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        self.fuse.burn()?;
        self.inner.manifest(version)
    }

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        self.fuse.burn()?;
        self.inner.read(version, frame, payload)
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        self.fuse.burn()?;
        self.inner.inspect_damage(version)
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        self.fuse.burn()?;
        self.inner.set_aside_newer(version)
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        self.fuse.burn()?;
        self.inner.remove(version)
    }
}

struct CrashingDraft {
    inner: Box<dyn Draft>,
    fuse: Fuse,
}

impl Draft for CrashingDraft {
    fn next_is_last(&mut self) {
        self.inner.next_is_last();
    }

    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame]) -> Result<(), StoreError> {
        self.fuse.burn()?;
        self.inner.write(variable, frames)
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        self.fuse.burn()?;
        self.inner.seal()
    }
}
