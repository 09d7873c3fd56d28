//! The node's memory as the pipeline sees it: a store like any other.

use recoup_core::{
    Comm, CommonError, Damage, Draft, Frame, FrameRecord, Manifest, NextBegin, NextCall, Note, Place, Reads, Sealed,
    Store, StoreError, Tier, Tiered, VariableRecord, VersionLinks,
};

use crate::part::check_frame;
use crate::part_file::PartFile;
use crate::repair::repair;
use crate::shelf::{Shelf, ShelfPart};
use crate::store::{NodeStore, joined, unreadable};

impl Store for NodeStore {
    fn begin(&self, version: u64, rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        if self.require(version).is_ok() {
            return Err(StoreError::Exists { version });
        }
        if rank == self.rank || !self.shelf.has_place(version)? {
            self.shelf.clear(version)?;
        }
        Ok(Box::new(NodeDraft {
            file: self.shelf.start(version, ShelfPart::Payloads(rank))?,
            name: ShelfPart::Payloads(rank).file(),
        }))
    }

    fn publish(&self, manifest: &Manifest, comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        let version = manifest.version;
        let mask = self.publish_on_all(manifest, comm).inspect_err(|error| {
            // Where a rank is lost others may have seen this one's mark, and count the version:
            // repair will tell.
            if !matches!(**error, StoreError::Comm(_)) {
                // The first error is the one to report; a draft that stays never counts.
                self.shelf.remove(version).ok();
            }
        })?;
        let mut state = self.lock();
        state.sequence += 1;
        state.guarded.insert(version, mask);
        state.wholes.clear();
        for shelf in std::mem::take(&mut state.adopted) {
            if let Err(error) = shelf.remove_all() {
                tracing::warn!(%error, "a shelf that no rank uses is left over");
            }
        }
        Ok(NextBegin::RankZeroFirst)
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.shelf.remove_drafts()
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        self.shelf.versions()
    }

    fn holds(&self, version: u64) -> Result<bool, StoreError> {
        Ok(self.require(version).is_ok())
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        let ranks = self.mark(version)?.ranks;
        if let Some(whole) = self.lock().wholes.get(&version) {
            return Ok(whole.clone());
        }
        let parts = self.manifests(version)?;
        let missing = || "the part of this rank is missing".to_owned();
        let fault = match parts.iter().find(|(rank, _)| *rank == self.rank) {
            Some((_, part)) => part.as_ref().err().cloned(),
            None => (self.rank < ranks).then(missing),
        };
        // A damaged copy of another rank's part takes nothing from this one.
        let whole = joined(parts.into_iter().filter_map(|(_, part)| part.ok()));
        match fault {
            Some(what) => Err(unreadable(version, what)),
            None => whole.ok_or_else(|| unreadable(version, missing())),
        }
    }

    fn links(&self, version: u64) -> Result<VersionLinks, StoreError> {
        self.mark(version).map(|mark| VersionLinks { parents: mark.parents, bytes: mark.bytes })
    }

    fn read(&self, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), StoreError> {
        payload.clear();
        self.require(version)?;
        read(&self.shelf, version, frame, payload).map_err(|what| {
            payload.clear();
            StoreError::frame(version, frame, what)
        })
    }

    fn inspect_damage(&self, version: u64) -> Result<Vec<Damage>, StoreError> {
        let mut damage = Vec::new();
        match self.manifest(version) {
            Err(StoreError::Manifest { what, .. }) => damage.push(Damage::Manifest { what }),
            other => drop(other?),
        }
        let mut payload = Vec::new();
        for (_, part) in self.manifests(version)? {
            for frame in part.map(|part| part.frames).unwrap_or_default() {
                if let Err(what) = read(&self.shelf, version, &frame, &mut payload) {
                    damage.push(Damage::Frame { frame: Box::new(frame), what });
                }
            }
        }
        Ok(damage)
    }

    /// Removes the versions: no one would look at those set aside in memory.
    fn set_aside_newer(&self, version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        let newer: Vec<u64> =
            self.shelf.versions()?.into_iter().filter(|&v| version.is_none_or(|kept| v > kept)).collect();
        self.lock().wholes.retain(|version, _| !newer.contains(version));
        newer.iter().rev().try_for_each(|&version| self.shelf.remove(version))?;
        Ok(newer)
    }

    fn remove(&self, version: u64) -> Result<(), StoreError> {
        self.require(version)?;
        {
            let mut state = self.lock();
            state.guarded.remove(&version);
            state.wholes.remove(&version);
        }
        self.shelf.remove(version)
    }

    fn as_tiered(&self) -> Option<&dyn Tiered> {
        Some(self)
    }
}

/// One place on every node: parts come back from copies and sums, and nothing drains.
impl Tiered for NodeStore {
    fn prepare_restore(&self, comm: &dyn Comm, reads: &Reads<'_>) -> Result<(), CommonError<StoreError>> {
        repair(self, comm, reads)
    }

    fn can_follow(&self, _version: u64, parent: u64) -> bool {
        let guards = self.lock().guarded.get(&parent).copied();
        guards.is_some_and(|guards| self.due() & !guards == 0)
    }

    fn tiers(&self) -> Vec<Tier> {
        Vec::new()
    }

    fn next_everywhere(&self) {}

    fn finish(&self) {}

    fn give_up(&self) {}

    fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }
}

/// One rank's payloads on their way to its shelf.
struct NodeDraft {
    file: PartFile,
    name: String,
}

impl Draft for NodeDraft {
    fn write(&mut self, _variable: &VariableRecord, frames: &mut [Frame], _next: NextCall) -> Result<(), StoreError> {
        frames.iter_mut().try_for_each(|frame| {
            frame.record.place = Some(Place { file: self.name.clone(), offset: self.file.len() });
            self.file.append_summed(&frame.payload, frame.record.crc32c)
        })
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        let file = recoup_core::FileRecord::new(self.name, self.file.len(), crc32c::crc32c(&[]));
        self.file.finish()?;
        Ok(Sealed { files: vec![file] })
    }
}

/// One frame, its checksum verified.
fn read(shelf: &Shelf, version: u64, frame: &FrameRecord, payload: &mut Vec<u8>) -> Result<(), String> {
    let place = frame.place.as_ref().ok_or("no place")?;
    shelf.get_at(version, &place.file, (place.offset, frame.payload_bytes), payload)?;
    check_frame(frame, payload)
}
