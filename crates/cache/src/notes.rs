//! The notes of a row of tiers, from whichever thread they come.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::{ErrorKind, Note};

/// Notes kept until they are taken; further ones are in the log alone.
const NOTES_MAX: usize = 1000;

/// A list that all its clones share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<BTreeSet<Note>>>);

impl Notes {
    /// Adds a note without logging it.
    pub(crate) fn add(&self, note: Note) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.insert(note);
        }
    }

    /// Notes that a tier cannot read a version that it should hold.
    pub(crate) fn passed(&self, version: u64, tier: &str, what: &str) {
        let note = Note::Passed { version, tier: tier.to_owned(), what: what.to_owned() };
        tracing::warn!(%note, "tier passed over");
        self.add(note);
    }

    /// Notes that a tier did not get a version that was due there.
    pub(crate) fn unwritten(&self, version: u64, tier: &str, kind: ErrorKind, what: String) {
        let note = Note::Unwritten { version, tier: tier.to_owned(), what, kind };
        tracing::warn!(%note, "due again");
        self.add(note);
    }

    /// Takes all notes since the last call.
    pub(crate) fn take(&self) -> BTreeSet<Note> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
