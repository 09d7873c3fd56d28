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
    /// Iterations after which the program stops of its own; `None` for one that goes on to the end.
    pub(crate) stops_after: Option<u64>,
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
        Self { habits, choices: Choices::drawn(Chance::new(chance.next(), 0)), stops_after: None }
    }

    /// Draws a life after a crash: most end soon, because what was lost shows at once.
    pub(crate) fn drawn_after(chance: &mut Chance) -> Self {
        let stops_after = if chance.is_in(48 << 10) { Some(chance.below(4)) } else { None };
        Self { stops_after, ..Self::drawn(chance) }
    }

    /// Lives on a disk.
    pub(crate) fn run(&self, session: &SessionChoices, tree: Tree) -> io::Result<Lived> {
        let story = Arc::new(Mutex::new(SessionStory::default()));
        let (theirs, own, stops_after) = (story.clone(), session.clone(), self.stops_after);
        let past = live(tree, self.habits, self.choices.clone(), move || session::run(&own, stops_after, &theirs))?;
        // A thread that waits without end may hold it.
        let story = story.try_lock().map(|story| story.clone()).unwrap_or_default();
        Ok(Lived { past, story })
    }

    /// Checks the end of a first life.
    pub(crate) fn check(&self, session: &SessionChoices, lived: &Lived) -> Result<(), Finding> {
        if self.habits.faults > 0 { check_faulty_end(lived) } else { check_end(session, lived, 0) }
    }
}

impl Crash {
    /// Draws a crash in a journal.
    pub(crate) fn drawn(journal: &[JournalLine], chance: &mut Chance) -> Self {
        let line = chance.below(journal.len() as u64 + 1) as usize;
        Self { loss: chance.one_of(&LOSSES), line, seed: chance.next() }
    }

    /// The disk that the next life begins with.
    pub(crate) fn image(&self, session: &SessionChoices, first: &Lived) -> Tree {
        image(&first.past.journal[..self.line], self.loss, session.ranks, &mut Chance::new(self.seed, 0))
    }

    /// The first version that must be whole. Without power, a version that was retired may come
    /// back, with the bytes of the one that reused its files: it is named as damaged, and older
    /// than what is restored.
    fn whole_from(&self, second: &Lived) -> u64 {
        let restored = second.story.restored.values().flatten().map(|(version, _)| *version).next();
        if self.loss == Loss::Power { restored.unwrap_or(0) } else { 0 }
    }

    /// Recovers from the crash, and checks what was recovered and how it went on.
    pub(crate) fn recover(
        &self,
        session: &SessionChoices,
        first: &Lived,
        second: &Life,
    ) -> io::Result<(Lived, Result<(), Finding>)> {
        let lived = second.run(session, self.image(session, first))?;
        let before = &first.past.journal[..self.line];
        let verdict = check_restored(session, self.loss, before, &first.story.states, &lived.story)
            .and_then(|()| check_end(session, &lived, self.whole_from(&lived)));
        Ok((lived, verdict))
    }
}
