//! Invariants of a run, by number and name.

use std::fmt;

use crate::disk::{JournalLine, PromiseKind, promises};
use crate::lived::Lived;
use crate::program::SeedProgram;
use crate::run_story::{RankState, RunStory, States};
use crate::tree::Tree;

/// A statement of ARCHITECTURE.md that a run can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// Everything promised is there after a loss that the promise survives.
    PromisedIsThere = 1,
    /// Values given out are of a state that the run had, as exact as the scheme says.
    GivenOutIsTrue = 2,
    /// All ranks restore the same version.
    OneVerdict = 3,
    /// Directories hold the versions that are kept, and nothing else, when a run has ended.
    AllBounded = 4,
    /// Each version that counts is whole.
    DraftNeverCounts = 5,
    /// No call waits without end.
    NoEndlessWait = 6,
    /// A run on a disk that obeys comes to its end without an error.
    NoError = 7,
    /// No fault of the disk is a panic.
    NoPanic = 8,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::PromisedIsThere => "promised-is-there",
            Self::GivenOutIsTrue => "given-out-is-true",
            Self::OneVerdict => "one-verdict",
            Self::AllBounded => "all-bounded",
            Self::DraftNeverCounts => "draft-never-counts",
            Self::NoEndlessWait => "no-endless-wait",
            Self::NoError => "no-error",
            Self::NoPanic => "no-panic",
        };
        write!(f, "{} {name}", *self as u8)
    }
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenInvariant {
    /// The invariant.
    pub invariant: Invariant,
    /// The state expected, and the one found.
    pub words: String,
}

pub(crate) fn finding(invariant: Invariant, words: impl Into<String>) -> Result<(), BrokenInvariant> {
    Err(BrokenInvariant { invariant, words: words.into() })
}

/// Checks the end of a run on a disk that obeys. Versions from `whole_from` on must be whole.
pub(crate) fn check_end(program: &SeedProgram, lived: &Lived, whole_from: u64) -> Result<(), BrokenInvariant> {
    check_faulty_end(lived)?;
    if let Ok(Err(error)) = &lived.past.result {
        return finding(Invariant::NoError, error);
    }
    let story = &lived.story;
    if let Some(failure) = story.failures.iter().find(|failure| !failure.contains("still on its way")) {
        return finding(Invariant::NoError, failure);
    }
    if let Some((version, damage)) = story.damaged.range(whole_from..).next() {
        return finding(Invariant::DraftNeverCounts, format!("version {version}: {damage}"));
    }
    let Some((directory, names_max)) = program.names_max() else { return Ok(()) };
    let names = names_in(&lived.past.tree, directory);
    check_durable(&lived.past.journal, &names)?;
    // A run that lost a rank leaves a draft, and the place where its parts are handed over.
    let names_max = names_max + if lived.end.loss.is_some() { 2 } else { 0 };
    // Without power, all that was retired since the last sync may come back, until a save retires
    // it again.
    let found = names_in(&lived.before.tree, directory);
    let has_saved = names.last() != found.last();
    let names_max = if has_saved { names_max } else { names_max.max(found.len()) };
    if names.len() > names_max {
        let words = format!("the directory holds {names:?}, expected {names_max} at most");
        return finding(Invariant::AllBounded, words);
    }
    Ok(())
}

/// The newest version that is said to be durable is in the directory, or a newer one.
fn check_durable(journal: &[JournalLine], names: &[String]) -> Result<(), BrokenInvariant> {
    let durable = promises(journal).filter(|promise| promise.kind == PromiseKind::Durable);
    let Some(version) = durable.map(|promise| promise.version).max() else { return Ok(()) };
    if names.iter().any(|name| *name >= format!("v{version:012}")) {
        return Ok(());
    }
    finding(Invariant::PromisedIsThere, format!("version {version} was promised, the directory holds {names:?}"))
}

fn names_in(tree: &Tree, path: &str) -> Vec<String> {
    let names = tree.find(path).and_then(|node| tree.names(node)).into_iter().flatten();
    names.map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
}

/// Checks the end of a run that may fail, because its disk did.
pub(crate) fn check_faulty_end(lived: &Lived) -> Result<(), BrokenInvariant> {
    match &lived.past.result {
        Err(waits) => finding(Invariant::NoEndlessWait, waits),
        Ok(Err(error)) if error.contains("panicked") => finding(Invariant::NoPanic, error),
        Ok(_) => Ok(()),
    }
}

/// Checks what a run restored after a loss, before it went on: `promised` or newer, of `states`.
pub(crate) fn check_restored(
    program: &SeedProgram,
    promised: Option<u64>,
    states: &States,
    story: &RunStory,
) -> Result<(), BrokenInvariant> {
    let mut restored = story.restored.values();
    let first = restored.next().cloned().flatten();
    let version = first.as_ref().map(|(version, _)| *version);
    if let Some(other) =
        restored.map(|other| other.as_ref().map(|(version, _)| *version)).find(|&other| other != version)
    {
        return finding(Invariant::OneVerdict, format!("rank 0 restored {version:?}, another rank {other:?}"));
    }
    if story.restored.len() == program.ranks() && version < promised {
        return finding(Invariant::PromisedIsThere, format!("{promised:?} was promised, {version:?} was restored"));
    }
    if let Some(words) = story.untrue.first() {
        return finding(Invariant::GivenOutIsTrue, words);
    }
    check_values(program, states, story)
}

/// Each rank has the values of one state that the run had at this iteration.
fn check_values(program: &SeedProgram, states: &States, story: &RunStory) -> Result<(), BrokenInvariant> {
    for (&rank, restored) in &story.restored {
        let Some((version, state)) = restored else { continue };
        let known: &[RankState] = states.get(&(*version, rank)).map_or(&[], Vec::as_slice);
        if known.is_empty() {
            return finding(Invariant::GivenOutIsTrue, format!("version {version} of rank {rank} is of no state"));
        }
        if !program.is_lossy() && !known.iter().any(|known| known.x == state.x) {
            return finding(Invariant::GivenOutIsTrue, format!("version {version} of rank {rank} has other values"));
        }
    }
    check_residual(program, states, story)
}

/// `||b - A x'|| <= (1 + theta) ||b - A x||`, with the rounding of two sums.
fn check_residual(program: &SeedProgram, states: &States, story: &RunStory) -> Result<(), BrokenInvariant> {
    let Some(Some((version, _))) = story.restored.get(&0) else { return Ok(()) };
    if story.restored.len() < program.ranks() {
        return Ok(());
    }
    let squared = |state: &Option<(u64, RankState)>| state.as_ref().map_or(0.0, |(_, state)| state.residual_squared);
    let found: f64 = story.restored.values().map(squared).sum();
    let worst = |rank| {
        let known = states.get(&(*version, rank)).into_iter().flatten();
        known.map(|state| state.residual_squared).fold(0.0, f64::max)
    };
    let known: f64 = (0..program.ranks()).map(worst).sum();
    let most = (1.0 + crate::session::THETA) * known.sqrt() + 1e-14;
    if found.sqrt() > most {
        let words = format!("version {version}: residual {:e}, expected {most:e} at most", found.sqrt());
        return finding(Invariant::GivenOutIsTrue, words);
    }
    Ok(())
}
