//! What every store that wraps another must do: pass on every call, those with a default too.
//!
//! Promises: a decorator that passes loses nothing that its store can do. Must not know what a
//! decorator is for.

#![expect(clippy::unwrap_used, reason = "a suite is a test: it fails by panicking")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_comm::Solo;
use recoup_core::{
    Comm, Damage, Draft, Frame, FrameRecord, Manifest, Note, Reads, Sealed, Store, StoreError, Tier, VariableRecord,
};

use crate::store_suite::Sample;

/// The calls of a store and of its drafts.
const CALLS: [&str; 22] = [
    "is_shared",
    "begins_in_any_order",
    "begin",
    "publish",
    "settle",
    "can_follow",
    "tiers",
    "every",
    "next_everywhere",
    "finish",
    "give_up",
    "take_notes",
    "discard_drafts",
    "versions",
    "manifest",
    "read",
    "inspect_damage",
    "set_aside_newer",
    "remove",
    "next_is_last",
    "write",
    "seal",
];

/// A store that answers as no default does, and takes note of what it is asked.
#[derive(Clone, Default)]
pub struct Recorder {
    calls: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Recorder {
    /// A store that was not asked yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a call of this name was made.
    #[must_use]
    pub fn was_asked(&self, call: &str) -> bool {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).contains(call)
    }

    fn note(&self, call: &'static str) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).insert(call);
    }
}

impl Store for Recorder {
    fn is_shared(&self) -> bool {
        self.note("is_shared");
        false
    }

    fn begins_in_any_order(&self) -> bool {
        self.note("begins_in_any_order");
        true
    }

    fn begin(&self, _version: u64, _rank: usize) -> Result<Box<dyn Draft>, StoreError> {
        self.note("begin");
        Ok(Box::new(self.clone()))
    }

    fn publish(&self, _manifest: &Manifest, _comm: &dyn Comm) -> Result<(), StoreError> {
        self.note("publish");
        Ok(())
    }

    fn settle(&self, _comm: &dyn Comm, _reads: &Reads<'_>) -> Result<(), StoreError> {
        self.note("settle");
        Ok(())
    }

    fn can_follow(&self, _version: u64, _parent: u64) -> bool {
        self.note("can_follow");
        false
    }

    fn tiers(&self) -> &[Tier] {
        self.note("tiers");
        &[]
    }

    fn every(&self, _tier: usize) -> u64 {
        self.note("every");
        7
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

    fn discard_drafts(&self) -> Result<(), StoreError> {
        self.note("discard_drafts");
        Ok(())
    }

    fn versions(&self) -> Result<Vec<u64>, StoreError> {
        self.note("versions");
        Ok(Vec::new())
    }

    fn manifest(&self, version: u64) -> Result<Manifest, StoreError> {
        self.note("manifest");
        Ok(Sample::new(version, 1).manifest(Vec::new()))
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
}

impl Draft for Recorder {
    fn next_is_last(&mut self) {
        self.note("next_is_last");
    }

    fn write(&mut self, _variable: &VariableRecord, _frames: &mut [Frame]) -> Result<(), StoreError> {
        self.note("write");
        Ok(())
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        self.note("seal");
        Ok(Sealed::default())
    }
}

/// Makes every call of a store and of its drafts, and looks whether each arrived.
///
/// # Panics
/// When one did not, or its answer got lost on the way back.
pub fn decorator_suite<S: Store>(decorate: impl FnOnce(Recorder) -> S) {
    let recorder = Recorder::new();
    let store = decorate(recorder.clone());
    let answers = [store.is_shared(), !store.begins_in_any_order(), store.can_follow(2, 1)];
    assert_eq!(answers, [false; 3], "the store's own answers to is_shared, begins_in_any_order and can_follow");
    assert_eq!((store.every(0), store.take_notes().len()), (7, 1), "the store's own answers to every and take_notes");
    let mut sample = Sample::new(1, 1);
    sample.publish(&store).unwrap();
    store.settle(&Solo, &|_| Vec::new()).unwrap();
    store.tiers();
    store.next_everywhere();
    store.finish();
    store.give_up();
    store.discard_drafts().unwrap();
    store.versions().unwrap();
    let manifest = store.manifest(1).unwrap();
    store.read(1, &manifest.frames[0], &mut Vec::new()).unwrap();
    store.inspect_damage(1).unwrap();
    store.set_aside_newer(None).unwrap();
    store.remove(1).unwrap();
    let lost: Vec<&str> = CALLS.into_iter().filter(|call| !recorder.was_asked(call)).collect();
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
        let traits = ["pub trait Store:", "pub trait Draft:"].map(|head| {
            let body = source.split_once(head).unwrap().1;
            body.split_once("\n}\n").unwrap().0
        });
        let names = |body: &'static str| {
            body.lines().filter_map(|line| line.strip_prefix("    fn ")).map(|line| line.split('(').next().unwrap())
        };
        let declared: BTreeSet<&str> = traits.into_iter().flat_map(names).collect();
        assert_eq!(declared, CALLS.into_iter().collect());
    }

    /// It used to answer for its store where the trait has a default, so no crash test ever wrote
    /// as a directory does.
    #[test]
    fn a_crashing_store_passes_every_call_on() {
        decorator_suite(|recorder| CrashingStore::new(recorder, Crash::Never));
    }
}
