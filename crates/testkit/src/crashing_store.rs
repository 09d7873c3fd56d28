//! A store whose n-th operation fails, to test what a pipeline does when its disk gives up.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use recoup_core::{
    Comm, CommonError, Draft, Frame, FullCause, Manifest, NextBegin, NextCall, Sealed, Store, StoreDecorator,
    StoreError, VariableRecord, agreed,
};

/// The operations that fail, counted from 0 over all ranks and drafts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// No operation; to count them.
    Never,
    /// The operation of this number.
    At(u64),
    /// The operation of this number and all after it, as when the disk is gone.
    From(u64),
    /// The operation of this number and all after it, for want of space.
    FullFrom(u64),
}

/// Passes every operation on to a store, except those that fail.
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
        match self.crash {
            Crash::FullFrom(n) if operation >= n => Err(StoreError::Full { path, cause: FullCause::Device }),
            Crash::At(n) if operation != n => Ok(()),
            Crash::From(n) if operation < n => Ok(()),
            Crash::Never | Crash::FullFrom(_) => Ok(()),
            Crash::At(_) | Crash::From(_) => {
                Err(StoreError::Io { action: "use", path, source: io::Error::other("injected") })
            }
        }
    }
}

impl<S: Store> CrashingStore<S> {
    /// Wraps `inner`.
    pub fn new(inner: S, crash: Crash) -> Self {
        Self { inner, fuse: Fuse { crash, count: Arc::default() } }
    }

    /// Returns how many operations were asked for so far, failed ones included.
    pub fn operations(&self) -> u64 {
        self.fuse.count.load(Ordering::Acquire)
    }
}

impl<S: Store> StoreDecorator for CrashingStore<S> {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    fn admit(&self) -> Result<(), StoreError> {
        self.fuse.burn()
    }

    fn begin_draft(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        Ok(Box::new(CrashingDraft { inner: self.inner.begin(version, rank)?, fuse: self.fuse.clone() }))
    }

    fn publish_version(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        // One operation for all ranks: a rank that skipped the call would leave the others waiting.
        agreed(comm, if comm.rank() == 0 { self.fuse.burn() } else { Ok(()) })?;
        self.inner.publish(manifest, comm)
    }
}

struct CrashingDraft {
    inner: Box<dyn Draft>,
    fuse: Fuse,
}

impl Draft for CrashingDraft {
    fn write(&mut self, variable: &VariableRecord, frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        self.fuse.burn()?;
        self.inner.write(variable, frames, next)
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        self.fuse.burn()?;
        self.inner.seal()
    }
}
