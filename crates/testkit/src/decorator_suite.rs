//! A suite for stores that wrap another: every call must reach the inner store.
//!
//! Promises: a decorator that passes loses nothing that its store can do. Must not know what a
//! decorator is for.

#![expect(clippy::unwrap_used, reason = "a suite is a test: it fails by panicking")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use recoup_comm::Solo;
use recoup_core::{
    Comm, CommonError, Damage, Draft, Frame, FrameRecord, Manifest, NextBegin, NextCall, Note, Reads, Sealed, Store,
    StoreError, Tier, Tiered, VariableRecord, VersionFiles, VersionLinks,
};

use crate::store_suite::SampleVersion;

/// The calls of a store, of what it can do with several places and with files, and of its drafts. A
/// draft's write has two names, as decorators must pass on whether it is the last.
const CALLS: [&str; 25] = [
    "begin",
    "publish",
    "discard_drafts",
    "versions",
    "holds",
    "manifest",
    "links",
    "read",
    "inspect_damage",
    "set_aside_newer",
    "remove",
    "as_tiered",
    "as_files",
    "prepare_restore",
    "can_follow",
    "tiers",
    "next_everywhere",
    "finish",
    "give_up",
    "take_notes",
    "published_at",
    "set_aside",
    "remove_set_aside",
    "write",
    "seal",
];

/// A version that the recorder holds and does not list.
const UNLISTED: u64 = 7;

/// A store whose answers differ from every default, and that records the calls it receives.
#[derive(Clone, Default)]
pub struct Recorder {
    calls: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Recorder {
    /// A store without recorded calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether a call of this name was made.
    pub fn was_asked(&self, call: &str) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).contains(call)
    }

    fn note(&self, call: &'static str) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(call);
    }
}

impl Store for Recorder {
    fn begin(&self, _version: u64, _rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.note("begin");
        Ok(Box::new(self.clone()))
    }

    fn publish(&self, _manifest: &Manifest, _comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>> {
        self.note("publish");
        Ok(NextBegin::AnyOrder)
    }

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.note("discard_drafts");
        Ok(())
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        self.note("versions");
        Ok(Vec::new())
    }

    fn holds(&self, version: u64) -> Result<bool, StoreError> {
        self.note("holds");
        Ok(version == UNLISTED)
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        self.note("manifest");
        Ok(SampleVersion::new(version, 1).manifest(Vec::new()))
    }

    fn links(&self, version: u64) -> Result<VersionLinks, StoreError> {
        self.note("links");
        Ok(VersionLinks { bytes: version, ..VersionLinks::default() })
    }

    fn read(&self, _version: u64, _frame: &FrameRecord, _payload: &mut Vec<u8>) -> Result<(), StoreError> {
        self.note("read");
        Ok(())
    }

    fn inspect_damage(&self, _version: u64) -> Result<Vec<Damage>, StoreError> {
        self.note("inspect_damage");
        Ok(Vec::new())
    }

    fn set_aside_newer(&self, _version: Option<u64>) -> Result<Vec<u64>, StoreError> {
        self.note("set_aside_newer");
        Ok(Vec::new())
    }

    fn remove(&self, _version: u64) -> Result<(), StoreError> {
        self.note("remove");
        Ok(())
    }

    fn as_tiered(&self) -> Option<&dyn Tiered> {
        self.note("as_tiered");
        Some(self)
    }

    fn as_files(&self) -> Option<&dyn VersionFiles> {
        self.note("as_files");
        Some(self)
    }
}

impl VersionFiles for Recorder {
    fn published_at(&self, _version: u64) -> Option<SystemTime> {
        self.note("published_at");
        Some(SystemTime::UNIX_EPOCH)
    }

    fn set_aside(&self) -> Result<Vec<String>, StoreError> {
        self.note("set_aside");
        Ok(vec!["recorded".to_owned()])
    }

    fn remove_set_aside(&self) -> Result<(), StoreError> {
        self.note("remove_set_aside");
        Ok(())
    }
}

impl Tiered for Recorder {
    fn prepare_restore(&self, _comm: &dyn Comm, _reads: &Reads<'_>) -> Result<(), CommonError<StoreError>> {
        self.note("prepare_restore");
        Ok(())
    }

    fn can_follow(&self, _version: u64, _parent: u64) -> bool {
        self.note("can_follow");
        false
    }

    fn tiers(&self) -> Vec<Tier> {
        self.note("tiers");
        Vec::new()
    }

    fn next_everywhere(&self) {
        self.note("next_everywhere");
    }

    fn finish(&self) {
        self.note("finish");
    }

    fn give_up(&self) {
        self.note("give_up");
    }

    fn take_notes(&self) -> Vec<Note> {
        self.note("take_notes");
        vec![Note::Dropped { version: 7, what: "recorded".to_owned() }]
    }
}

impl Draft for Recorder {
    fn write(&mut self, _record: &VariableRecord, _frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        self.note(if next == NextCall::Seal { "last write" } else { "write" });
        Ok(())
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        self.note("seal");
        Ok(Sealed::default())
    }
}

/// Makes every call of a store and of its drafts, and checks that each arrived.
///
/// # Panics
/// When one did not, or its answer got lost on the way back.
pub fn decorator_suite<S: Store>(decorate: impl FnOnce(Recorder) -> S) {
    let recorder = Recorder::new();
    let store = decorate(recorder.clone());
    let next_begin = SampleVersion::new(1, 1).publish(&store).unwrap();
    assert_eq!(next_begin, NextBegin::AnyOrder, "the store's own answer to publish");
    store.discard_drafts().unwrap();
    store.versions().unwrap();
    assert!(store.holds(UNLISTED).unwrap(), "the store's own answer to holds");
    let manifest = store.manifest(1).unwrap();
    assert_eq!(store.links(UNLISTED).unwrap().bytes, UNLISTED, "the store's own answer to links");
    store.read(1, &manifest.frames[0], &mut Vec::new()).unwrap();
    store.inspect_damage(1).unwrap();
    store.set_aside_newer(None).unwrap();
    store.remove(1).unwrap();
    let tiered = store.as_tiered().expect("the recorder is a store of several places");
    tiered.prepare_restore(&Solo, &|_| Vec::new()).unwrap();
    assert!(!tiered.can_follow(2, 1), "the store's own answer to can_follow");
    assert_eq!(tiered.take_notes().len(), 1, "the store's own notes");
    tiered.tiers();
    tiered.next_everywhere();
    tiered.finish();
    tiered.give_up();
    let files = store.as_files().expect("the recorder is a store of files");
    assert_eq!(files.published_at(1), Some(SystemTime::UNIX_EPOCH), "the store's own time");
    assert_eq!(files.set_aside().unwrap().len(), 1, "the store's own list");
    files.remove_set_aside().unwrap();
    let lost: Vec<&str> = CALLS.into_iter().chain(["last write"]).filter(|call| !recorder.was_asked(call)).collect();
    assert!(lost.is_empty(), "not passed on: {lost:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crashing_store::{Crash, CrashingStore};

    /// The traits as they are written: a call added to them is missing in this suite until it is
    /// added here.
    #[test]
    fn the_suite_makes_every_call_of_a_store_and_of_a_draft() {
        let source = include_str!("../../core/src/store.rs");
        let traits =
            ["pub trait Store:", "pub trait Tiered {", "pub trait VersionFiles {", "pub trait Draft:"].map(|head| {
                let body = source.split_once(head).unwrap().1;
                body.split_once("\n}\n").unwrap().0
            });
        let names = |body: &'static str| {
            body.lines().filter_map(|line| line.strip_prefix("    fn ")).map(|line| line.split('(').next().unwrap())
        };
        let declared: BTreeSet<&str> = traits.into_iter().flat_map(names).collect();
        assert_eq!(declared, CALLS.into_iter().collect());
    }

    /// The decorator used to answer for its store where the trait has a default, so no crash test
    /// ever wrote as a directory does.
    #[test]
    fn a_crashing_store_passes_every_call_on() {
        decorator_suite(|recorder| CrashingStore::new(recorder, Crash::Never));
    }
}
