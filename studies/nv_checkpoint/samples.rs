//! Commits of one structure whose parts are touched at random, with the time that each takes.

use std::ops::Range;

use recoup::core::Clock as _;
use recoup::memory::{CommitWork, Versioned, VersionedArray, VersionedGraph, VersionedOctree};
use recoup::model::Rng;

use crate::Failed;
use crate::keeper::{Keeper, Storage};
use crate::programs::{SEED, Sizes};
use crate::settings::Settings;
use crate::unloaded::UnloadedClock;

/// Most runs of parts that are touched between two commits.
const RUNS_MOST: u64 = 32;
/// Least part of a structure that is touched, as a power of ten.
const PART_LEAST: f64 = -3.0;

/// A commit: its work as the marks have it, and its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitSample {
    pub(crate) work: CommitWork,
    pub(crate) seconds: f64,
}

/// A structure of the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Structure {
    Array,
    Octree,
    Graph,
}

impl Structure {
    pub(crate) const ALL: [Self; 3] = [Self::Array, Self::Octree, Self::Graph];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Octree => "octree",
            Self::Graph => "graph",
        }
    }
}

/// A structure whose parts can be touched: values, nodes or vertices.
trait Parts: Versioned {
    fn n_parts(&self) -> usize;
    fn touch_parts(&mut self, parts: Range<usize>);
}

impl Parts for VersionedArray<f64> {
    fn n_parts(&self) -> usize {
        self.len()
    }

    fn touch_parts(&mut self, parts: Range<usize>) {
        self.write(parts).iter_mut().for_each(|value| *value += 1.0);
    }
}

impl Parts for VersionedOctree<f64, 3> {
    fn n_parts(&self) -> usize {
        self.n_nodes()
    }

    fn touch_parts(&mut self, parts: Range<usize>) {
        parts.for_each(|node| self.set(node, self.data(node) + 1.0));
    }
}

impl Parts for VersionedGraph<u8, f64> {
    fn n_parts(&self) -> usize {
        self.n_vertices()
    }

    fn touch_parts(&mut self, parts: Range<usize>) {
        parts.for_each(|vertex| self.set(vertex, 1, self.data()[vertex] + 1.0));
    }
}

/// Makes a structure of about as many parts.
fn structure(structure: Structure, n_parts: usize) -> Box<dyn Parts> {
    match structure {
        Structure::Array => Box::new(VersionedArray::<f64>::zeros("array", n_parts)),
        Structure::Octree => {
            let mut tree = VersionedOctree::<f64, 3>::new("octree", 0.0);
            // Breadth first: nodes are refined in the order in which they come to be.
            for node in 0..n_parts / 8 {
                tree.refine(node);
            }
            Box::new(tree)
        }
        Structure::Graph => {
            let ring: Vec<(u32, u32)> = (0..n_parts as u32).map(|from| (from, (from + 1) % n_parts as u32)).collect();
            Box::new(VersionedGraph::<u8, f64>::new("graph", n_parts, &ring))
        }
    }
}

/// Commits a structure again and again. Each commit is made several times with the same parts
/// touched, and the fastest counts.
pub(crate) fn samples(kind: Structure, storage: Storage, settings: &Settings) -> Result<Vec<CommitSample>, Failed> {
    let [n_samples, n_parts] = match settings.sizes {
        Sizes::Full => [200, 2_000_000],
        Sizes::Small => [20, 20_000],
    };
    let mut keeper = Keeper::new(storage, settings)?;
    let mut state = structure(kind, n_parts);
    let mut rng = Rng::new(SEED);
    // The first commit stores all, into a file that grows: it is like none that follow.
    keeper.save(0, &mut *state)?;
    let mut samples = Vec::new();
    for step in 1..=n_samples as u64 {
        let parts = random_parts(state.n_parts(), &mut rng);
        let mut fastest: Option<CommitSample> = None;
        for _ in 0..settings.runs {
            parts.iter().cloned().for_each(|run| state.touch_parts(run));
            let sample = commit(&mut keeper, step, &mut *state)?;
            fastest = Some(fastest.filter(|before| before.seconds <= sample.seconds).unwrap_or(sample));
        }
        samples.extend(fastest);
    }
    Ok(samples)
}

fn commit(keeper: &mut Keeper, step: u64, state: &mut dyn Parts) -> Result<CommitSample, Failed> {
    let memory = keeper.memory().ok_or("no file of versions")?;
    let work = memory.pending_work(&mut [&mut *state]);
    let clock = UnloadedClock::new();
    let begun = clock.now();
    memory.commit(step, &mut [state])?;
    Ok(CommitSample { work, seconds: clock.seconds_since(begun) })
}

/// Draws a part of a structure, in runs.
fn random_parts(n_parts: usize, rng: &mut Rng) -> Vec<Range<usize>> {
    let runs = 1 + rng.next_u64() % RUNS_MOST;
    let touched = 10f64.powf(PART_LEAST * rng.uniform()) * n_parts as f64;
    let length = ((touched / runs as f64) as usize).clamp(1, n_parts);
    let first = |rng: &mut Rng| (rng.next_u64() % (n_parts - length + 1) as u64) as usize;
    (0..runs).map(|_| first(rng)).map(|first| first..first + length).collect()
}
