//! What a row of tiers has to say, from whichever thread it was found out on.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use recoup_core::Note;

/// Notes kept until somebody takes them; those beyond are in the log alone.
const NOTES_MAX: usize = 1000;

/// A list that all its clones share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes(Arc<Mutex<BTreeSet<Note>>>);

impl Notes {
    /// Adds a note, in silence.
    pub(crate) fn add(&self, note: Note) {
        let mut notes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() < NOTES_MAX {
            notes.insert(note);
        }
    }

    /// A tier cannot give what it should hold.
    pub(crate) fn passed(&self, version: u64, tier: &str, what: &str) {
        let note = Note::Passed { version, tier: tier.to_owned(), what: what.to_owned() };
        tracing::warn!(%note, "tier passed over");
        self.add(note);
    }

    /// A tier did not get what it was due to have.
    pub(crate) fn unwritten(&self, version: u64, tier: &str, what: &str) {
        let note = Note::Unwritten { version, tier: tier.to_owned(), what: what.to_owned() };
        tracing::warn!(%note, "due again");
        self.add(note);
    }

    /// All notes since the last call.
    pub(crate) fn take(&self) -> BTreeSet<Note> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
