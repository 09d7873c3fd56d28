//! One seed: a run, its crashes, and the recoveries from them.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;

use crate::case::{CrashPoint, Life};
use crate::choices::Chance;
use crate::image::LossKind;
use crate::invariants::BrokenInvariant;
use crate::lived::{Lived, fresh};
use crate::program::SeedProgram;
use crate::shrink::{SeededCase, shrunk};
use crate::story::place_of;
use crate::world::Mistake;

/// Crashes that are drawn of one seed.
pub const CRASHES: u64 = 16;

/// The result of one seed.
#[derive(Clone, Debug, Default)]
pub struct SeedReport {
    /// Crashes that a recovery was run from.
    pub crashes: u64,
    /// Disks and promises that recoveries began with, each counted once.
    pub images: u64,
    /// A digest of the journals of all runs: the same for the same seed.
    pub digest: u64,
    /// Crashes by what was lost, and by what had just happened.
    pub places: BTreeMap<(LossKind, String), u64>,
    /// The first invariant that does not hold.
    pub finding: Option<BrokenInvariant>,
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
    let program = SeedProgram::drawn(&mut chance);
    let mut life = Life::drawn(&mut chance);
    life.habits.draw_faults(&mut chance);
    life.habits.mistake = mistake;
    let first = life.run(&program, fresh())?;
    let images = BTreeSet::new();
    let report = SeedReport::default();
    let mut sweep = SeedSweep { program, chance, mistake, digest: DefaultHasher::new(), images, report };
    first.past.journal.hash(&mut sweep.digest);
    let ended = life.check(&sweep.program, &first).err();
    let mut failed = ended.map(|finding| (finding, Vec::new()));
    while failed.is_none() && sweep.report.crashes < CRASHES {
        failed = sweep.crash(&first)?;
    }
    let SeedSweep { program, digest, images, mut report, .. } = sweep;
    report.images = images.len() as u64;
    report.digest = digest.finish();
    if let Some((finding, crashes)) = failed {
        if tells {
            report.story = shrunk(SeededCase { program, life, crashes }, finding.invariant)?;
        }
        report.finding = Some(finding);
    }
    Ok(report)
}

/// The crashes of one seed.
struct SeedSweep {
    program: SeedProgram,
    chance: Chance,
    mistake: Option<Mistake>,
    digest: DefaultHasher,
    images: BTreeSet<u64>,
    report: SeedReport,
}

/// An invariant that does not hold, and the crashes before that.
type FailedCase = (BrokenInvariant, Vec<(CrashPoint, Life)>);

impl SeedSweep {
    /// Crashes the first life and recovers. Some recoveries crash, too.
    fn crash(&mut self, first: &Lived) -> io::Result<Option<FailedCase>> {
        let mut lives: Vec<(CrashPoint, Life)> = Vec::new();
        let mut lived: Option<Lived> = None;
        loop {
            let before = lived.as_ref().unwrap_or(first);
            let crash = CrashPoint::drawn(&before.past.journal, &mut self.chance);
            let mut next = Life::drawn_after(&mut self.chance);
            next.habits.mistake = self.mistake;
            *self.report.places.entry((crash.loss, place_of(before, crash.line))).or_default() += 1;
            let (after, verdict) = crash.recover(&self.program, before, &next)?;
            self.report.crashes += 1;
            self.images.insert(after.before.digest());
            after.past.journal.hash(&mut self.digest);
            lives.push((crash, next));
            if let Err(finding) = verdict {
                return Ok(Some((finding, lives)));
            }
            if self.report.crashes == CRASHES || self.chance.is_in(48 << 10) {
                return Ok(None);
            }
            lived = Some(after);
        }
    }
}
