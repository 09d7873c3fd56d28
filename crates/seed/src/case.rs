//! A case: a run, and a crash of it with the recovery, or none. All of it repeats.

use std::io;
use std::sync::{Arc, Mutex};

use crate::choices::{Chance, Choices};
use crate::disk::JournalLine;
use crate::image::{LOSSES, Loss, image};
use crate::invariants::{Finding, check_end, check_faulty_end, check_restored};
use crate::session::{self, MEMORY, SessionChoices, SessionStory};
use crate::tree::Tree;
use crate::world::{Habits, Past, live};

/// One run of a program: what decides it.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) habits: Habits,
    pub(crate) choices: Choices,
}

/// The end of a life, and the disk that it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub(crate) loss: Loss,
    /// Lines of the journal that had happened.
    pub(crate) line: usize,
    /// What decides which bytes a loss of power leaves.
    pub(crate) seed: u64,
}

/// What one life came to.
pub(crate) struct Lived {
    pub(crate) past: Past<Result<(), String>>,
    pub(crate) story: SessionStory,
}

/// The disk before a run.
pub(crate) fn fresh() -> Tree {
    let mut tree = Tree::default();
    tree.make_directory(MEMORY);
    tree
}

impl Life {
    /// Draws the habits of a life and the source of its choices.
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        let habits = Habits::drawn(chance);
        Self { habits, choices: Choices::drawn(Chance::new(chance.next(), 0)) }
    }

    /// Lives on a disk.
    pub(crate) fn run(&self, session: &SessionChoices, tree: Tree) -> io::Result<Lived> {
        let story = Arc::new(Mutex::new(SessionStory::default()));
        let (theirs, own) = (story.clone(), session.clone());
        let past = live(tree, self.habits, self.choices.clone(), move || session::run(&own, &theirs))?;
        // A thread that waits without end may hold it.
        let story = story.try_lock().map(|story| story.clone()).unwrap_or_default();
        Ok(Lived { past, story })
    }

    /// Checks the end of a first life.
    pub(crate) fn check(&self, session: &SessionChoices, lived: &Lived) -> Result<(), Finding> {
        if self.habits.faults > 0 { check_faulty_end(lived) } else { check_end(session, lived) }
    }
}

impl Crash {
    /// Draws a crash in a journal.
    pub(crate) fn drawn(journal: &[JournalLine], chance: &mut Chance) -> Self {
        let line = chance.below(journal.len() as u64 + 1) as usize;
        Self { loss: chance.one_of(&LOSSES), line, seed: chance.next() }
    }

    /// The disk that the next life begins with.
    pub(crate) fn image(&self, first: &Lived) -> Tree {
        image(&fresh(), &first.past.journal[..self.line], self.loss, MEMORY, &mut Chance::new(self.seed, 0))
    }

    /// Recovers from the crash, and checks what was recovered and how it went on.
    pub(crate) fn recover(
        &self,
        session: &SessionChoices,
        first: &Lived,
        second: &Life,
    ) -> io::Result<(Lived, Result<(), Finding>)> {
        let lived = second.run(session, self.image(first))?;
        let before = &first.past.journal[..self.line];
        let verdict = check_restored(session, self.loss, before, &first.story.states, &lived.story)
            .and_then(|()| check_end(session, &lived));
        Ok((lived, verdict))
    }
}
