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
    Comm, CommonError, Damage, Draft, Frame, FrameRecord, Manifest, NextBegin, NextCall, Note, Reads, RowRange, Sealed,
    Store, StoreError, Tier, Tiered, VariableRecord, VersionFiles, VersionLinks,
};

use crate::store_suite::SampleVersion;

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

/// Calls that are noted by their names, and the answer of each.
macro_rules! recorded {
    ($self:ident: $($call:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)? = $answer:expr;)*) => {
        $(
            fn $call(&$self, $($argument: $kind),*) $(-> $result)? {
                $self.note(stringify!($call));
                $answer
            }
        )*
    };
}

impl Store for Recorder {
    recorded! { self:
        begin(_version: u64, _rank: usize) -> Result<Box<dyn Draft>, StoreError> = Ok(Box::new(self.clone()));
        publish(_manifest: &Manifest, _comm: &dyn Comm) -> Result<NextBegin, CommonError<StoreError>>
            = Ok(NextBegin::AnyOrder);
        discard_drafts() -> Result<(), StoreError> = Ok(());
        versions() -> Result<Vec<u64>, StoreError> = Ok(Vec::new());
        holds(version: u64) -> Result<bool, StoreError> = Ok(version == UNLISTED);
        manifest(version: u64) -> Result<Manifest, StoreError>
            = Ok(SampleVersion::new(version, 1).manifest(Vec::new()));
        top(version: u64) -> Result<Manifest, StoreError> = Ok(Manifest::new("top", version, 1));
        parts(top: &Manifest, _ranks: &BTreeSet<usize>, _rows: &[RowRange]) -> Result<Manifest, StoreError>
            = Ok(top.clone());
        links(version: u64) -> Result<VersionLinks, StoreError>
            = Ok(VersionLinks { bytes: version, ..VersionLinks::default() });
        read(_version: u64, _frame: &FrameRecord, _payload: &mut Vec<u8>) -> Result<(), StoreError> = Ok(());
        inspect_damage(_version: u64) -> Result<Vec<Damage>, StoreError> = Ok(Vec::new());
        set_aside_newer(_version: Option<u64>) -> Result<Vec<u64>, StoreError> = Ok(Vec::new());
        remove(_version: u64) -> Result<(), StoreError> = Ok(());
        as_tiered() -> Option<&dyn Tiered> = Some(self);
        as_files() -> Option<&dyn VersionFiles> = Some(self);
    }
}

impl VersionFiles for Recorder {
    recorded! { self:
        published_at(_version: u64) -> Option<SystemTime> = Some(SystemTime::UNIX_EPOCH);
        set_aside() -> Result<Vec<String>, StoreError> = Ok(vec!["recorded".to_owned()]);
        remove_set_aside() -> Result<(), StoreError> = Ok(());
    }
}

impl Tiered for Recorder {
    recorded! { self:
        prepare_restore(_comm: &dyn Comm, _reads: &Reads<'_>) -> Result<(), CommonError<StoreError>> = Ok(());
        can_follow(_version: u64, _parent: u64) -> bool = false;
        tiers() -> Vec<Tier> = Vec::new();
        next_everywhere() = ();
        finish() = ();
        give_up() = ();
        take_notes() -> Vec<Note> = vec![Note::Dropped { version: 7, what: "recorded".to_owned() }];
    }
}

impl Draft for Recorder {
    /// Has two names, as decorators must pass on whether it is the last.
    fn write(&mut self, _record: &VariableRecord, _frames: &mut [Frame], next: NextCall) -> Result<(), StoreError> {
        self.note(if next == NextCall::Seal { "last write" } else { "write" });
        Ok(())
    }

    fn seal(self: Box<Self>) -> Result<Sealed, StoreError> {
        self.note("seal");
        Ok(Sealed::default())
    }
}

/// The calls of a store, of what it can do with several places and with files, and of its drafts,
/// as the traits have them: a call that is added to them is missing until the suite makes it.
fn declared_calls() -> BTreeSet<&'static str> {
    let source = include_str!("../../core/src/store.rs");
    let heads = ["pub trait Store:", "pub trait Tiered {", "pub trait VersionFiles {", "pub trait Draft:"];
    let body = |head: &str| source.split_once(head).unwrap().1.split_once("\n}\n").unwrap().0;
    let lines = heads.into_iter().flat_map(|head| body(head).lines());
    lines.filter_map(|line| line.strip_prefix("    fn ")).map(|line| line.split('(').next().unwrap()).collect()
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
    let top = store.top(1).unwrap();
    assert_eq!(top.name, "top", "the store's own answer to top");
    store.parts(&top, &BTreeSet::new(), &[]).unwrap();
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
    let calls = declared_calls();
    assert!(calls.len() > 20, "{calls:?}");
    let lost: Vec<&str> = calls.into_iter().chain(["last write"]).filter(|call| !recorder.was_asked(call)).collect();
    assert!(lost.is_empty(), "not passed on: {lost:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crashing_store::{Crash, CrashingStore};

    /// The decorator used to answer for its store where the trait has a default, so no crash test
    /// ever wrote as a directory does.
    #[test]
    fn a_crashing_store_passes_every_call_on() {
        decorator_suite(|recorder| CrashingStore::new(recorder, Crash::Never));
    }
}
