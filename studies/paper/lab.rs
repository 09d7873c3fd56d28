//! Parts that the figures share: the problems, the cost of each choice on them, and the runs under
//! failures, each made once.

use std::cell::OnceCell;

use recoup::solvers::RightHandSide;

use crate::Failed;
use crate::measure::{Choice, Profile, Trial, profile, trials};
use crate::problem::{Kind, Problem};

/// Right-hand sides of all solves. A random one leaves a rough iterate, a smooth one an iterate as
/// compressible as the published sizes say theirs was.
pub(crate) const SIDES: [(&str, RightHandSide); 2] =
    [("random b", RightHandSide::Random { seed: 1 }), ("smooth b", RightHandSide::Smooth)];

/// One method on one right-hand side, and all choices on it.
pub(crate) struct Study {
    pub(crate) problem: Problem,
    /// By the order of [`Choice::ALL`].
    pub(crate) profiles: [Profile; 4],
}

impl Study {
    /// Returns the cost of a choice.
    pub(crate) fn profile(&self, choice: Choice) -> &Profile {
        &self.profiles[choice as usize]
    }
}

/// The runs of one method: for each choice, one per seed.
pub(crate) type Runs = [Vec<Trial>; 4];

/// Everything measured so far.
pub(crate) struct Lab {
    /// Runs of each bar.
    pub(crate) trials: u64,
    /// Seed of the first.
    pub(crate) seed: u64,
    /// Grid points in each direction, where not each method's own.
    pub(crate) grid: Option<usize>,
    studies: [OnceCell<Vec<Study>>; 2],
    runs: [OnceCell<Vec<Runs>>; 2],
}

impl Lab {
    pub(crate) fn new(trials: u64, seed: u64, grid: Option<usize>) -> Self {
        Self { trials, seed, grid, studies: Default::default(), runs: Default::default() }
    }

    /// The methods, in the order of [`Kind::ALL`], on a right-hand side of [`SIDES`].
    ///
    /// # Errors
    /// When a run fails.
    pub(crate) fn studies(&self, side: usize) -> Result<&[Study], Failed> {
        if let Some(studies) = self.studies[side].get() {
            return Ok(studies);
        }
        let studies =
            Kind::ALL.into_iter().map(|kind| study(kind, SIDES[side].1, self.grid)).collect::<Result<_, _>>()?;
        Ok(self.studies[side].get_or_init(|| studies))
    }

    /// One of each run under failures.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        (self.seed..self.seed + self.trials).collect()
    }

    /// The runs under failures, in the order of [`Kind::ALL`].
    ///
    /// # Errors
    /// When a run fails.
    pub(crate) fn runs(&self, side: usize) -> Result<&[Runs], Failed> {
        if let Some(runs) = self.runs[side].get() {
            return Ok(runs);
        }
        let seeds = self.seeds();
        let mut runs = Vec::new();
        for study in self.studies(side)? {
            let mut all: Runs = Default::default();
            for (slot, profile) in all.iter_mut().zip(&study.profiles) {
                *slot = trials(&study.problem, &profile.protection, &seeds)?;
            }
            runs.push(all);
        }
        Ok(self.runs[side].get_or_init(|| runs))
    }
}

fn study(kind: Kind, rhs: RightHandSide, grid: Option<usize>) -> Result<Study, Failed> {
    let problem = Problem::new(kind, rhs, grid)?;
    let [a, b, c, d] = Choice::ALL.map(|choice| profile(&problem, choice));
    Ok(Study { problem, profiles: [a?, b?, c?, d?] })
}
