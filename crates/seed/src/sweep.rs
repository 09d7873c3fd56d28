//! One seed: a run, its crashes, and the recoveries from them.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};

use crate::choices::{Chance, Choices};
use crate::image::{LOSSES, Loss, image};
use crate::invariants::{Finding, check_end, check_restored};
use crate::session::{self, MEMORY, SessionChoices, SessionStory};
use crate::tree::Tree;
use crate::world::{Habits, Past, live};

/// Crash points that are drawn of one run.
const CRASHES: u64 = 16;

/// What one seed came to.
#[derive(Clone, Debug, Default)]
pub struct SeedReport {
    /// Crashes that a recovery was run from.
    pub crashes: u64,
    /// Lines of the journal of the first run.
    pub lines: usize,
    /// A digest of the journals of all runs: the same for the same seed.
    pub digest: u64,
    /// The first invariant that does not hold, and where.
    pub finding: Option<(String, Finding)>,
}

struct Lived {
    past: Past<Result<(), String>>,
    story: SessionStory,
}

fn lived(choices: &SessionChoices, tree: Tree, habits: Habits, drawn: Chance) -> std::io::Result<Lived> {
    let story = Arc::new(Mutex::new(SessionStory::default()));
    let (theirs, own) = (story.clone(), choices.clone());
    let past = live(tree, habits, Choices::drawn(drawn), move || session::run(&own, &theirs))?;
    // A thread that waits without end may hold it.
    let story = story.try_lock().map(|story| story.clone()).unwrap_or_default();
    Ok(Lived { past, story })
}

/// The disk before a run.
fn fresh() -> Tree {
    let mut tree = Tree::default();
    tree.make_directory(MEMORY);
    tree
}

/// Runs a seed.
///
/// # Errors
/// When the files of a world cannot be made.
pub fn run_seed(seed: u64) -> std::io::Result<SeedReport> {
    let mut chance = Chance::new(seed, 0);
    let choices = SessionChoices::drawn(&mut chance);
    let habits = Habits::drawn(&mut chance);
    let first = lived(&choices, fresh(), habits, Chance::new(seed, 1))?;
    let mut digest = DefaultHasher::new();
    first.past.journal.hash(&mut digest);
    let mut report = SeedReport { lines: first.past.journal.len(), digest: digest.finish(), ..SeedReport::default() };
    if let Err(finding) = check_end(&choices, &first.past.result, &first.story, &first.past.tree) {
        report.finding = Some((format!("{choices:?}, {habits:?}, first run"), finding));
        return Ok(report);
    }
    for crash in 0..CRASHES {
        let line = chance.below(first.past.journal.len() as u64 + 1) as usize;
        let loss = chance.one_of(&LOSSES);
        let image = image(&fresh(), &first.past.journal[..line], loss, MEMORY, &mut chance);
        let second = lived(&choices, image, Habits::drawn(&mut chance), Chance::new(seed, 2 + crash))?;
        report.crashes += 1;
        second.past.journal.hash(&mut digest);
        report.digest = digest.finish();
        if let Err(finding) = recovered(&choices, loss, &first, line, &second) {
            report.finding = Some((format!("{choices:?}, {loss:?} lost after line {line}"), finding));
            return Ok(report);
        }
    }
    Ok(report)
}

fn recovered(choices: &SessionChoices, loss: Loss, first: &Lived, line: usize, second: &Lived) -> Result<(), Finding> {
    check_restored(choices, loss, &first.past.journal[..line], &first.story.states, &second.story)?;
    check_end(choices, &second.past.result, &second.story, &second.past.tree)
}
