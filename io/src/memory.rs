//! Versions in memory: for tests, for runs in virtual time, and as a tier that dies with its
//! process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use recoup_core::{
    Comm, CommonError, Damage, Draft, FileRecord, Frame, FrameRecord, Manifest, NextBegin, NextCall, Place, Sealed,
    Store, StoreError, VariableRecord, by_rank_0,
};

use crate::check::check;
use crate::throttle::{Throttle, in_slices};

/// A store that forgets everything when its last handle is dropped. Clones share the versions.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<MemoryState>>,
    throttle: Option<Throttle>,
}

#[derive(Debug, Default)]
struct MemoryState {
    drafts: BTreeMap<u64, BTreeMap<String, Vec<u8>>>,
    versions: BTreeMap<u64, MemoryVersion>,
}

#[derive(Debug)]
struct MemoryVersion {
    manifest: Manifest,
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the store behind a bandwidth limit.
    #[must_use]
    pub fn with_throttle(self, throttle: Throttle) -> Self {
        Self { throttle: Some(throttle), ..self }
    }

    fn publish_draft(&self, manifest: &Manifest) -> Result<(), StoreError> {
        let version = manifest.version;
        check(manifest, version).map_err(|what| StoreError::Manifest { version, what })?;
        let mut state = self.lock();
        let files = state.drafts.remove(&version).ok_or(StoreError::Missing { version })?;
        state.versions.insert(version, MemoryVersion { manifest: manifest.clone(), files });
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        let mut state = self.lock();
        if state.versions.contains_key(&version) {
            return Err(StoreError::Exists { version });
        }
        if rank == 0 {
            state.drafts.clear();
        }
        state.drafts.entry(version).or_default();
        let file = format!("rank-{rank:06}");
        Ok(Box::new(MemoryDraft { store: self.clone(), version, file, bytes: Vec::new() }))
    }

    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        let whole = manifest.collected(comm)?;
        by_rank_0(comm, || match whole {
            Some(whole) => self.publish_draft(&whole?),
            None => Ok(()),
        })?;
        Ok(NextBegin::RankZeroFirst)
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.lock().drafts.clear();
        Ok(())
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        Ok(self.lock().versions.keys().copied().collect())
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        let state = self.lock();
        state.versions.get(&version).map(|v| v.manifest.clone()).ok_or(StoreError::Missing { version })
    }

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        payload.clear();
        {
            let state = self.lock();
            let bytes = state.versions.get(&version).ok_or(StoreError::Missing { version })?.payload(frame);
            payload.extend(bytes.map_err(|what| StoreError::frame(version, frame, what))?);
        }
        in_slices(self.throttle.as_ref(), payload.len(), |_| Ok(()))
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        let state = self.lock();
        let kept = state.versions.get(&version).ok_or(StoreError::Missing { version })?;
        let damage = |frame: &FrameRecord| {
            let what = kept.payload(frame).err()?;
            Some(Damage::Frame { frame: Box::new(frame.clone()), what })
        };
        Ok(kept.manifest.frames.iter().filter_map(damage).collect())
    }

    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        let mut state = self.lock();
        let newer = match version {
            Some(version) => state.versions.split_off(&(version + 1)),
            None => std::mem::take(&mut state.versions),
        };
        Ok(newer.into_keys().collect())
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        self.lock().versions.remove(&version).map(drop).ok_or(StoreError::Missing { version })
    }
}

impl MemoryVersion {
    fn payload(&self, frame: &FrameRecord) -> Result<&[u8], String> {
        let place = frame.place.as_ref().ok_or("no place")?;
        let file = self.files.get(&place.file).ok_or("its file is missing")?;
        let end = place.offset.checked_add(frame.payload_bytes).ok_or("beyond the end of its file")?;
        let range = place.offset as usize..end as usize;
        let bytes = file.get(range).ok_or("beyond the end of its file")?;
        let found = crc32c::crc32c(bytes);
        if found == frame.crc32c {
            Ok(bytes)
        } else {
            Err(format!("checksum {:08x} expected, {found:08x} found", frame.crc32c))
        }
    }
}

struct MemoryDraft {
    store: MemoryStore,
    version: u64,
    file: String,
    bytes: Vec<u8>,
}

impl Draft for MemoryDraft {
    fn write(&mut self, _variable: &VariableRecord, frames: &mut [Frame], _next: NextCall) -> Result<(), StoreError> {
        for frame in frames {
            frame.record.place = Some(Place { file: self.file.clone(), offset: self.bytes.len() as u64 });
            in_slices(self.store.throttle.as_ref(), frame.payload.len(), |range| {
                self.bytes.extend_from_slice(&frame.payload[range]);
                Ok::<_, StoreError>(())
            })?;
        }
        Ok(())
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        let Self { store, version, file, bytes } = *self;
        let record = FileRecord::new(file.clone(), bytes.len() as u64, crc32c::crc32c(&[]));
        let mut state = store.lock();
        // A draft that was discarded meanwhile takes no more parts.
        state.drafts.get_mut(&version).ok_or(StoreError::Missing { version })?.insert(file, bytes);
        Ok(Sealed { files: vec![record] })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recoup_core::Clock;
    use recoup_testkit::crashing_store::{Crash, CrashingStore};
    use recoup_testkit::store_suite::{SampleVersion, publish_on_ranks, store_suite};

    use super::*;
    use crate::VirtualClock;

    #[test]
    fn memory_store_passes_its_suite() {
        store_suite(MemoryStore::new);
    }

    #[test]
    fn store_that_never_crashes_passes_the_suite() {
        store_suite(|| CrashingStore::new(MemoryStore::new(), Crash::Never));
    }

    #[test]
    fn parts_of_all_ranks_make_one_version() {
        let store = MemoryStore::new();
        publish_on_ranks(&SampleVersion::new(3, 5), |_| Ok(store.clone())).unwrap();
        SampleVersion::new(3, 5).assert_whole(&store);
    }

    #[test]
    fn throttled_payloads_take_their_bytes_over_the_rate_both_ways() {
        let clock = Arc::new(VirtualClock::new());
        let store = MemoryStore::new().with_throttle(Throttle::new(1000.0, clock.clone()));
        let mut sample = SampleVersion::new(1, 2);
        sample.publish(&store).unwrap();
        let bytes = store.manifest(1).unwrap().payload_bytes();
        assert_eq!(clock.now(), Duration::from_millis(bytes));
        sample.assert_whole(&store);
        assert_eq!(clock.now(), Duration::from_millis(2 * bytes));
    }
}
