//! The shortest case that breaks the same invariant.

use std::io;

use crate::case::{CrashPoint, Life};
use crate::choices::{ChoiceList, ChoiceStream};
use crate::invariants::{BrokenInvariant, Invariant};
use crate::lived::{Lived, fresh};
use crate::program::SeedProgram;
use crate::story;

/// A run, and crashes each with the life after it.
#[derive(Clone, Debug)]
pub(crate) struct SeededCase {
    pub(crate) program: SeedProgram,
    pub(crate) life: Life,
    pub(crate) crashes: Vec<(CrashPoint, Life)>,
}

/// The course of a case: its lives, up to the one that breaks an invariant.
struct CaseEnd {
    lives: Vec<Lived>,
    finding: Option<BrokenInvariant>,
}

impl SeededCase {
    fn run(&self) -> io::Result<CaseEnd> {
        let first = self.life.run(&self.program, fresh())?;
        if self.crashes.is_empty() {
            let finding = self.life.check(&self.program, &first).err();
            return Ok(CaseEnd { lives: vec![first], finding });
        }
        let mut end = CaseEnd { lives: vec![first], finding: None };
        for (crash, life) in &self.crashes {
            let Some(before) = end.lives.last().filter(|before| crash.line <= before.past.journal.len()) else { break };
            let (lived, verdict) = crash.recover(&self.program, before, life)?;
            end.lives.push(lived);
            end.finding = verdict.err();
            if end.finding.is_some() {
                break;
            }
        }
        Ok(end)
    }

    /// The first life for 0, then those after crashes.
    fn life(&mut self, number: usize) -> &mut Life {
        if number == 0 { &mut self.life } else { &mut self.crashes[number - 1].1 }
    }

    fn breaks(&self, invariant: Invariant) -> io::Result<bool> {
        Ok(self.run()?.finding.is_some_and(|finding| finding.invariant == invariant))
    }
}

/// Runs of one search, at most.
const RUNS_MAX: usize = 300;

/// Shortens a case that breaks `invariant`, and tells it.
///
/// # Errors
/// When the files of a world cannot be made.
pub(crate) fn shrunk(mut case: SeededCase, invariant: Invariant) -> io::Result<String> {
    for (number, lived) in case.run()?.lives.into_iter().enumerate() {
        case.life(number).choices = ChoiceStream::listed(lived.past.choices);
    }
    if !case.breaks(invariant)? {
        return Ok("the case does not repeat: something outside of the world decides it\n".to_owned());
    }
    let mut runs = RUNS_MAX;
    for _ in 0..2 {
        for number in (0..=case.crashes.len()).rev() {
            shorten_list(&mut case, invariant, &mut runs, number)?;
            crash_earlier(&mut case, invariant, &mut runs, number)?;
        }
    }
    let end = case.run()?;
    Ok(tell(&case, &end))
}

/// Leaves out choices of a life, many at once at first, as long as the case breaks the invariant.
fn shorten_list(case: &mut SeededCase, invariant: Invariant, runs: &mut usize, number: usize) -> io::Result<()> {
    let mut list = case.life(number).choices.list().clone();
    let mut piece = list.len();
    while piece > 0 && *runs > 0 {
        let mut at = 0;
        while at < list.len() && *runs > 0 {
            *runs -= 1;
            let shorter = without(&list, at, piece);
            let mut candidate = case.clone();
            candidate.life(number).choices = ChoiceStream::listed(shorter.clone());
            if candidate.breaks(invariant)? {
                (*case, list) = (candidate, shorter);
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    Ok(())
}

fn without(list: &ChoiceList, at: usize, piece: usize) -> ChoiceList {
    list.iter().enumerate().filter(|(i, _)| !(at..at + piece).contains(i)).map(|(_, (&k, &v))| (k, v)).collect()
}

/// Crashes at the earliest line that still breaks the invariant, of those that halving meets.
fn crash_earlier(case: &mut SeededCase, invariant: Invariant, runs: &mut usize, number: usize) -> io::Result<()> {
    let Some(mut step) = case.crashes.get(number).map(|(crash, _)| crash.line) else { return Ok(()) };
    while step > 0 && *runs > 0 {
        *runs -= 1;
        let mut candidate = case.clone();
        let line = &mut candidate.crashes[number].0.line;
        let earlier = line.checked_sub(step);
        *line = earlier.unwrap_or(*line);
        if earlier.is_some() && candidate.breaks(invariant)? {
            *case = candidate;
        } else {
            step /= 2;
        }
    }
    Ok(())
}

fn tell(case: &SeededCase, end: &CaseEnd) -> String {
    let mut words = format!("{:?}\n{:?}\n", case.program, case.life.habits);
    for (number, lived) in end.lives.iter().enumerate() {
        let crash = case.crashes.get(number).map(|(crash, _)| crash).filter(|_| number + 1 < end.lives.len());
        let line = crash.map_or(lived.past.journal.len(), |crash| crash.line);
        for (rank, restored) in &lived.story.restored {
            let version = restored.as_ref().map_or("nothing".to_owned(), |(version, _)| format!("version {version}"));
            words += &format!("rank {rank} restores {version}\n");
        }
        words += &format!("{:?}\n", case.clone().life(number).end);
        words += &story::of(lived, line);
        words += &crash.map(|crash| format!("-- {}\n", crash.loss)).unwrap_or_default();
    }
    words
}
