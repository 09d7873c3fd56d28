//! A case: a run, its crashes, and the recoveries from them. All of it repeats.

use std::io;
use std::sync::{Arc, Mutex};

use crate::choices::{Chance, ChoiceStream};
use crate::disk::{JournalLine, Promise, PromiseKind, promises};
use crate::image::{LOSSES, LossKind, image};
use crate::invariants::{BrokenInvariant, check_end, check_faulty_end, check_restored};
use crate::live::live;
use crate::lived::{Legacy, Lived};
use crate::program::SeedProgram;
use crate::ranks::{EarlyEnd, LostRank};
use crate::run_story::RunStory;
use crate::world::Habits;

/// One run of a program: what decides it.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) habits: Habits,
    pub(crate) choices: ChoiceStream,
    pub(crate) end: EarlyEnd,
}

/// The end of a life, and the disk that it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrashPoint {
    pub(crate) loss: LossKind,
    /// Lines of the journal that had happened.
    pub(crate) line: usize,
    /// Decides which bytes a loss of power leaves.
    pub(crate) seed: u64,
}

impl Life {
    /// Draws the habits of a life and the source of its choices.
    pub(crate) fn drawn(chance: &mut Chance) -> Self {
        let habits = Habits::drawn(chance);
        let loss = chance.is_in(6 << 10).then(|| LostRank::drawn(chance));
        let end = EarlyEnd { stops_after: None, loss };
        Self { habits, choices: ChoiceStream::drawn(Chance::new(chance.next(), 0)), end }
    }

    /// Draws a life after a crash: most end once they have restored, because what was lost shows at
    /// once.
    pub(crate) fn drawn_after(chance: &mut Chance) -> Self {
        let stops_after = match chance.below(16) {
            0 => None,
            1..4 => Some(1 + chance.below(3)),
            _ => Some(0),
        };
        let life = Self::drawn(chance);
        Self { end: EarlyEnd { stops_after, ..life.end }, ..life }
    }

    /// Lives on a disk.
    pub(crate) fn run(&self, program: &SeedProgram, before: Legacy) -> io::Result<Lived> {
        let story = Arc::new(Mutex::new(RunStory::default()));
        let theirs = story.clone();
        let own = program.clone();
        let end = self.end;
        let body = move || own.run(end, &theirs);
        let past = live(before.tree.clone(), self.habits, self.choices.clone(), body)?;
        // A thread that waits without end may hold it.
        let story = story.try_lock().map(|story| story.clone()).unwrap_or_default();
        Ok(Lived { end: self.end, before, past, story })
    }

    /// Checks the end of a first life.
    pub(crate) fn check(&self, program: &SeedProgram, lived: &Lived) -> Result<(), BrokenInvariant> {
        if self.habits.faults > 0 { check_faulty_end(lived) } else { check_end(program, lived, 0) }
    }
}

impl CrashPoint {
    /// Draws a crash in a journal.
    pub(crate) fn drawn(journal: &[JournalLine], chance: &mut Chance) -> Self {
        let line = chance.below(journal.len() as u64 + 1) as usize;
        Self { loss: chance.one_of(&LOSSES), line, seed: chance.next() }
    }

    /// Returns the legacy of a life that this crash has cut.
    pub(crate) fn legacy(&self, program: &SeedProgram, first: &Lived) -> Legacy {
        let journal = &first.past.journal[..self.line];
        let tree = image(&first.before.tree, journal, self.loss, program.ranks(), &mut Chance::new(self.seed, 0));
        let survives = |promise: &&Promise| match self.loss {
            LossKind::Process => true,
            LossKind::TreeNode => promise.kind == PromiseKind::Durable || program.has_guard(),
            LossKind::AllNodes | LossKind::Power => promise.kind == PromiseKind::Durable,
        };
        let is_second = self.loss == LossKind::TreeNode && first.before.has_lost_node;
        let older = first.before.promises.iter().filter(|promise| !is_second || promise.kind == PromiseKind::Durable);
        let promises = older.chain(promises(journal)).filter(survives).cloned().collect();
        let mut states = first.before.states.clone();
        for (place, reached) in &first.story.states {
            states.entry(*place).or_default().extend(reached.iter().cloned());
        }
        let has_lost_power = first.before.has_lost_power || self.loss == LossKind::Power;
        let has_lost_node = first.before.has_lost_node || self.loss == LossKind::TreeNode;
        Legacy { tree, promises, states, has_lost_node, has_lost_power }
    }

    /// Recovers from the crash, and checks what was recovered and how it went on.
    pub(crate) fn recover(
        &self,
        program: &SeedProgram,
        first: &Lived,
        second: &Life,
    ) -> io::Result<(Lived, Result<(), BrokenInvariant>)> {
        let lived = second.run(program, self.legacy(program, first))?;
        let promised = program.promised(&lived.before.promises);
        let verdict = check_restored(program, promised, &lived.before.states, &lived.story)
            .and_then(|()| check_end(program, &lived, whole_from(program, &lived)));
        Ok((lived, verdict))
    }
}

/// The first version that must be whole after a crash. Without power, a version that was retired
/// may come back, with the bytes of the one that reused its files: it is named as damaged, and
/// older than what is restored. It may stay through the crashes that follow.
///
/// A state that a tape was not asked to save may come back in part.
fn whole_from(program: &SeedProgram, lived: &Lived) -> u64 {
    if matches!(program, SeedProgram::Tape(_)) {
        return if lived.before.has_lost_power { u64::MAX } else { 0 };
    }
    let restored = lived.story.restored.values().flatten().map(|(version, _)| *version).next();
    // A rank may have been lost before any was restored.
    let least = if lived.end.loss.is_some() { u64::MAX } else { 0 };
    if lived.before.has_lost_power { restored.unwrap_or(least) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lived::fresh;

    /// Each rank has restored something, or none has.
    fn is_restored_after(loss: LossKind, first: &Lived, life: &Life, program: &SeedProgram) -> bool {
        let crash = CrashPoint { loss, line: first.past.journal.len(), seed: 1 };
        let (lived, verdict) = crash.recover(program, first, life).unwrap();
        assert_eq!(verdict, Ok(()), "{loss}");
        assert_eq!(lived.story.restored.len(), program.ranks());
        let mut restored = lived.story.restored.values().map(Option::is_some);
        restored.next().unwrap()
    }

    /// Where memory has no directory behind it, a loss of power was never drawn. A world needs a
    /// process of its own: no thread of it learns that one of no world has let the allocator's lock
    /// go.
    #[test]
    fn power_leaves_nothing_of_memory_alone_and_a_guard_what_one_node_had() {
        const OWN_PROCESS: &str = "RECOUP_SEED_TEST_HAS_ITS_PROCESS";
        if std::env::var_os(OWN_PROCESS).is_none() {
            let name = "case::tests::power_leaves_nothing_of_memory_alone_and_a_guard_what_one_node_had";
            let mut again = std::process::Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", name, "--test-threads=1"]).env(OWN_PROCESS, "1");
            let output = again.output().unwrap();
            assert!(
                output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"),
                "{output:?}"
            );
            return;
        }
        for has_guard in [true, false] {
            let is_wanted = |program: &SeedProgram| {
                program.names_max().is_some_and(|(_, names)| names == 0) && program.has_guard() == has_guard
            };
            let drawn = |seed| SeedProgram::drawn(&mut Chance::new(seed, 0));
            let program = (0..10_000).map(drawn).find(is_wanted).unwrap();
            let mut life = Life::drawn(&mut Chance::new(1, 0));
            life.end.loss = None;
            let first = life.run(&program, fresh()).unwrap();
            assert_eq!(life.check(&program, &first), Ok(()));
            let losses = [(LossKind::Process, true), (LossKind::AllNodes, false), (LossKind::Power, false)];
            for (loss, is_there) in losses.into_iter().chain([(LossKind::TreeNode, has_guard)]) {
                let is_restored = is_restored_after(loss, &first, &life, &program);
                assert!(is_restored == is_there, "{loss}: {program:?}");
            }
        }
    }

    /// A quarter went on to the end, which took half of the time of a sweep. The bounds are five
    /// standard deviations, of 28 and 16 in 4096 draws.
    #[test]
    fn of_sixteen_recoveries_twelve_end_once_judged_and_one_goes_on_to_the_end() {
        let mut chance = Chance::new(3, 0);
        let ends: Vec<_> = (0..4096).map(|_| Life::drawn_after(&mut chance).end.stops_after).collect();
        let count = |end| ends.iter().filter(|&&other| other == end).count();
        assert!(count(Some(0)).abs_diff(3072) < 140 && count(None).abs_diff(256) < 80);
        assert!((1..4).all(|after| count(Some(after)) > 0));
    }
}
