//! PageRank of a random graph, two ways: all ranks in every round, or only those whose residual is
//! large.
//!
//! Sources: L. Page, S. Brin 1998, doi 10.1016/S0169-7552(98)00110-X; by residuals: R. Andersen, F.
//! Chung, K. Lang 2006, doi 10.1109/FOCS.2006.44; the graph (R-MAT): D. Chakrabarti, Y. Zhan, C.
//! Faloutsos 2004, doi 10.1137/1.9781611972740.43.

use std::ops::Range;
use std::slice;

use recoup::model::Rng;

use crate::trace::{KernelWork, Recorder, WriteTrace};

/// Edges for each vertex.
const EDGES: usize = 16;
/// Chances of the four quarters of the matrix, each with those before it.
const QUARTERS: [f64; 3] = [0.57, 0.76, 0.95];
/// Damping.
const DAMPING: f64 = 0.85;
/// Residual for each edge, in units of the mean rank, below which a vertex is stored.
const LEAST_RESIDUAL: f64 = 1e-3;
/// Rounds before the version before, between the two, and behind.
const ROUNDS: usize = 6;
/// Bytes that a device moves for a value somewhere in its memory.
const WORD_BYTES: f64 = 32.0;

/// A graph by its edges: targets of each vertex, one vertex after the other.
pub(crate) struct Graph {
    pub(crate) first: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

impl Graph {
    /// Makes a graph of `2^scale` vertices.
    pub(crate) fn random(scale: u32, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let n = 1 << scale;
        Self::of_edges(n, (0..n * EDGES).map(|_| Self::edge(scale, &mut rng)).collect())
    }

    fn of_edges(n: usize, mut edges: Vec<[u32; 2]>) -> Self {
        edges.sort_unstable();
        let mut first = vec![0; n + 1];
        edges.iter().for_each(|[source, _]| first[*source as usize + 1] += 1);
        (0..n).for_each(|vertex| first[vertex + 1] += first[vertex]);
        Self { first, targets: edges.into_iter().map(|[_, target]| target).collect() }
    }

    fn edge(scale: u32, rng: &mut Rng) -> [u32; 2] {
        (0..scale).fold([0, 0], |[source, target], _| {
            let chance = rng.uniform();
            let quarter = QUARTERS.iter().filter(|&&below| chance > below).count() as u32;
            [source << 1 | quarter >> 1, target << 1 | quarter & 1]
        })
    }

    pub(crate) fn n(&self) -> usize {
        self.first.len() - 1
    }

    fn targets_of(&self, vertex: usize) -> &[u32] {
        &self.targets[self.first[vertex] as usize..self.first[vertex + 1] as usize]
    }

    /// The graph with its edges turned round.
    pub(crate) fn reversed(&self) -> Self {
        let edges_of = |vertex| self.targets_of(vertex).iter().map(move |&target| [target, vertex as u32]);
        Self::of_edges(self.n(), (0..self.n()).flat_map(edges_of).collect())
    }

    /// Allocates the graph in the memory of the device.
    fn allocate(&self, recorder: &mut Recorder) {
        recorder.allocate(4 * self.first.len() as u64);
        recorder.allocate(4 * self.targets.len() as u64);
    }
}

/// Runs rounds around a version, each by `round`.
fn trace_rounds(recorder: &mut Recorder, mut round: impl FnMut(&mut Recorder)) {
    for index in 0..3 * ROUNDS {
        if index == ROUNDS {
            recorder.start();
        } else if index == 2 * ROUNDS {
            recorder.take_version();
        }
        round(recorder);
    }
}

/// One round over all vertices: `rank = 1 - d + d sum(rank / degree)` over the edges that come in.
pub(crate) fn power_round(graph: &Graph, reversed: &Graph, ranks: &mut [f64]) {
    let shares: Vec<f64> =
        ranks.iter().enumerate().map(|(v, rank)| rank / graph.targets_of(v).len().max(1) as f64).collect();
    for (vertex, rank) in ranks.iter_mut().enumerate() {
        let sum: f64 = reversed.targets_of(vertex).iter().map(|&source| shares[source as usize]).sum();
        *rank = 1.0 - DAMPING + DAMPING * sum;
    }
}

/// Traces rounds over all vertices of a graph of `2^scale`.
pub(crate) fn pagerank(scale: u32) -> WriteTrace {
    let graph = Graph::random(scale, 1);
    let reversed = graph.reversed();
    let mut recorder = Recorder::default();
    reversed.allocate(&mut recorder);
    recorder.allocate(4 * graph.first.len() as u64);
    let bytes = 8 * graph.n() as u64;
    let rank_place = recorder.allocate(bytes);
    let share_place = recorder.allocate(bytes);
    let mut ranks = vec![1.0; graph.n()];
    trace_rounds(&mut recorder, |recorder| {
        power_round(&graph, &reversed, &mut ranks);
        let all = bytes as f64;
        recorder.stream(KernelWork { moved_bytes: 2.5 * all, flops: all / 8.0 }, slice::from_ref(&share_place));
        let edges = graph.targets.len() as f64;
        let moved_bytes = (4.0 + WORD_BYTES).mul_add(edges, 1.5 * all);
        recorder.stream(KernelWork { moved_bytes, flops: edges }, slice::from_ref(&rank_place));
    });
    recorder.finish("PageRank", words(&graph), vec![rank_place])
}

/// Ranks by residuals: what has not yet been passed on.
pub(crate) struct ResidualRanks {
    pub(crate) ranks: Vec<f64>,
    pub(crate) residuals: Vec<f64>,
}

impl ResidualRanks {
    pub(crate) fn new(n: usize) -> Self {
        Self { ranks: vec![0.0; n], residuals: vec![1.0 - DAMPING; n] }
    }

    /// Passes on the large residuals; returns their vertices, in order.
    pub(crate) fn round(&mut self, graph: &Graph) -> Vec<usize> {
        let is_large =
            |&vertex: &usize| self.residuals[vertex] > LEAST_RESIDUAL * graph.targets_of(vertex).len().max(1) as f64;
        let active: Vec<usize> = (0..graph.n()).filter(is_large).collect();
        let passed: Vec<f64> = active.iter().map(|&vertex| std::mem::take(&mut self.residuals[vertex])).collect();
        for (&vertex, passed) in active.iter().zip(passed) {
            self.ranks[vertex] += passed;
            let targets = graph.targets_of(vertex);
            targets
                .iter()
                .for_each(|&target| self.residuals[target as usize] += DAMPING * passed / targets.len() as f64);
        }
        active
    }
}

/// Traces rounds over the vertices with large residuals of the same graph.
pub(crate) fn delta_pagerank(scale: u32) -> WriteTrace {
    let graph = Graph::random(scale, 1);
    let mut recorder = Recorder::default();
    graph.allocate(&mut recorder);
    let bytes = 8 * graph.n() as u64;
    let ranks = recorder.allocate(bytes);
    let residuals = recorder.allocate(bytes);
    let mut state = ResidualRanks::new(graph.n());
    trace_rounds(&mut recorder, |recorder| {
        let active = state.round(&graph);
        let at = |place: &Range<u64>, vertex: usize| place.start + 8 * vertex as u64;
        // A pass that looks for large residuals and takes them, and one along their edges.
        let taken = active.iter().flat_map(|&vertex| [at(&ranks, vertex), at(&residuals, vertex)]);
        let moved_bytes = WORD_BYTES.mul_add(2.0 * active.len() as f64, bytes as f64);
        recorder.scatter(KernelWork { moved_bytes, flops: active.len() as f64 }, taken);
        let targets: Vec<u64> = active
            .iter()
            .flat_map(|&vertex| graph.targets_of(vertex))
            .map(|&target| at(&residuals, target as usize))
            .collect();
        let edges = targets.len() as f64;
        recorder.scatter(KernelWork { moved_bytes: (4.0 + 2.0 * WORD_BYTES) * edges, flops: 2.0 * edges }, targets);
    });
    recorder.finish("delta PageRank", words(&graph), vec![ranks, residuals])
}

fn words(graph: &Graph) -> String {
    format!("R-MAT graph of {} vertices, {EDGES} edges each", graph.n())
}
