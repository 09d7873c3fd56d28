//! The shortest case that breaks the same invariant.

use std::io;

use crate::case::{Crash, Life, Lived, fresh};
use crate::choices::{ChoiceList, Choices};
use crate::invariants::{Finding, Invariant};
use crate::session::SessionChoices;
use crate::story;

/// A run, and a crash with the life after it, or none.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) session: SessionChoices,
    pub(crate) life: Life,
    pub(crate) crash: Option<(Crash, Life)>,
}

/// What a case came to.
struct CaseEnd {
    first: Lived,
    second: Option<Lived>,
    finding: Option<Finding>,
}

impl Case {
    fn run(&self) -> io::Result<CaseEnd> {
        let first = self.life.run(&self.session, fresh())?;
        let Some((crash, life)) = &self.crash else {
            let finding = self.life.check(&self.session, &first).err();
            return Ok(CaseEnd { first, second: None, finding });
        };
        if crash.line > first.past.journal.len() {
            return Ok(CaseEnd { first, second: None, finding: None });
        }
        let (second, verdict) = crash.recover(&self.session, &first, life)?;
        Ok(CaseEnd { first, second: Some(second), finding: verdict.err() })
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
pub(crate) fn shrunk(mut case: Case, invariant: Invariant) -> io::Result<String> {
    let end = case.run()?;
    case.life.choices = Choices::listed(end.first.past.choices);
    if let (Some((_, life)), Some(second)) = (&mut case.crash, end.second) {
        life.choices = Choices::listed(second.past.choices);
    }
    if !case.breaks(invariant)? {
        return Ok("the case does not repeat: something outside of the world decides it\n".to_owned());
    }
    let mut runs = RUNS_MAX;
    shorten_list(&mut case, invariant, &mut runs, |case| case.crash.as_mut().map(|(_, life)| life))?;
    crash_earlier(&mut case, invariant, &mut runs)?;
    shorten_list(&mut case, invariant, &mut runs, |case| Some(&mut case.life))?;
    crash_earlier(&mut case, invariant, &mut runs)?;
    let end = case.run()?;
    Ok(tell(&case, &end))
}

/// Leaves out choices of a life, half of them first, as long as the case breaks the invariant.
fn shorten_list(
    case: &mut Case,
    invariant: Invariant,
    runs: &mut usize,
    life: impl Fn(&mut Case) -> Option<&mut Life>,
) -> io::Result<()> {
    let Some(mut list) = life(case).map(|life| life.choices.list().clone()) else { return Ok(()) };
    let mut piece = list.len();
    while piece > 0 && *runs > 0 {
        let mut at = 0;
        while at < list.len() && *runs > 0 {
            *runs -= 1;
            let shorter: ChoiceList = without(&list, at, piece);
            let mut candidate = case.clone();
            if let Some(life) = life(&mut candidate) {
                life.choices = Choices::listed(shorter.clone());
            }
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
fn crash_earlier(case: &mut Case, invariant: Invariant, runs: &mut usize) -> io::Result<()> {
    let mut step = case.crash.as_ref().map_or(0, |(crash, _)| crash.line);
    while step > 0 && *runs > 0 {
        *runs -= 1;
        let mut candidate = case.clone();
        let Some((crash, _)) = &mut candidate.crash else { return Ok(()) };
        let is_earlier = crash.line >= step;
        crash.line = crash.line.saturating_sub(step);
        if is_earlier && candidate.breaks(invariant)? {
            *case = candidate;
        } else {
            step /= 2;
        }
    }
    Ok(())
}

fn tell(case: &Case, end: &CaseEnd) -> String {
    let mut words = format!("{:?}\n{:?}\n", case.session, case.life.habits);
    let line = case.crash.as_ref().map_or(end.first.past.journal.len(), |(crash, _)| crash.line);
    words += &story::of(&fresh(), &end.first.past, line);
    if let (Some((crash, _)), Some(second)) = (&case.crash, &end.second) {
        words += &format!("-- {}\n", crash.loss);
        words += &story::of(&crash.image(&case.session, &end.first), &second.past, second.past.journal.len());
        for (rank, restored) in &second.story.restored {
            let version = restored.as_ref().map_or("nothing".to_owned(), |(version, _)| format!("version {version}"));
            words += &format!("rank {rank} restored {version}\n");
        }
    }
    words
}
