//! One seed: a run, its crashes, and the recoveries from them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use crate::case::{Crash, Life, fresh};
use crate::choices::Chance;
use crate::image::Loss;
use crate::invariants::Finding;
use crate::session::SessionChoices;
use crate::shrink::{Case, shrunk};
use crate::story::place_of;
use crate::world::Mistake;

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
    /// Crashes by what was lost, and by what had just happened.
    pub places: BTreeMap<(Loss, String), u64>,
    /// The first invariant that does not hold.
    pub finding: Option<Finding>,
    /// The shortest case that breaks it, in words; empty unless it was asked for.
    pub story: String,
}

/// Runs a seed, in worlds that make a mistake or none. With `tells`, a finding is shortened and
/// told.
///
/// # Errors
/// When the files of a world cannot be made.
pub fn run_seed(seed: u64, mistake: Option<Mistake>, tells: bool) -> io::Result<SeedReport> {
    let mut chance = Chance::new(seed, 0);
    let session = SessionChoices::drawn(&mut chance);
    let mut life = Life::drawn(&mut chance);
    life.habits.draw_faults(&mut chance);
    life.habits.mistake = mistake;
    let first = life.run(&session, fresh())?;
    let mut digest = DefaultHasher::new();
    first.past.journal.hash(&mut digest);
    let mut report = SeedReport { lines: first.past.journal.len(), digest: digest.finish(), ..SeedReport::default() };
    let ended = life.check(&session, &first);
    let mut failed = ended.err().map(|finding| (finding, None));
    for _ in 0..CRASHES {
        if failed.is_some() {
            break;
        }
        let crash = Crash::drawn(&first.past.journal, &mut chance);
        let mut second = Life::drawn_after(&mut chance);
        second.habits.mistake = mistake;
        let (lived, verdict) = crash.recover(&session, &first, &second)?;
        lived.past.journal.hash(&mut digest);
        report.crashes += 1;
        report.digest = digest.finish();
        *report.places.entry((crash.loss, place_of(&first.past.journal[..crash.line]))).or_default() += 1;
        failed = verdict.err().map(|finding| (finding, Some((crash, second))));
    }
    if let Some((finding, crash)) = failed {
        if tells {
            report.story = shrunk(Case { session, life, crash }, finding.invariant)?;
        }
        report.finding = Some(finding);
    }
    Ok(report)
}
