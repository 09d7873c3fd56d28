//! PageRank: where a surfer is who follows links, and jumps to any page now and then.
//!
//! Source: Page et al., The PageRank Citation Ranking, Stanford 1999. The web is an R-MAT graph
//! (Chakrabarti et al., doi:10.1137/1.9781611972740.43). A page without links leads to all pages.
//!
//! `cargo run --release -p recoup-examples --example pagerank -- --memory web.memory`

mod keep; // plain: mod graph;

use std::error::Error;

use recoup::memory::{Versioned, VersionedGraph}; // plain: use graph::Graph;

/// Binary logarithm of the number of pages.
const SCALE: u32 = 15;
const PAGES: usize = 1 << SCALE;
const LINKS: usize = 16 * PAGES;
/// Probability to follow a link.
const DAMPING: f64 = 0.85;
/// Change of all ranks, as a sum, at which the iteration ends.
const TOLERANCE: f64 = 1e-12;
/// State of a page whose rank changes by no more than its part of the tolerance.
const SETTLED: u8 = 1;

/// Ranks of all pages after some steps.
#[derive(Versioned)] // plain:
pub(crate) struct PageRank {
    #[versioned(counter)] // plain:
    step: u64,
    /// Links between pages, and the state and rank of each.
    web: VersionedGraph<u8, f64>, // plain: web: Graph,
    /// Ranks that a step collects.
    #[versioned(skip = vec![0.0; self.web.n_vertices()])] // plain:
    next: Vec<f64>,
}

impl PageRank {
    pub(crate) fn new(n_pages: usize, links: &[(u32, u32)]) -> Self {
        let mut web = VersionedGraph::new("web", n_pages, links); // plain: let mut web = Graph::new(n_pages, links);
        (0..n_pages).for_each(|page| web.set(page, 0, 1.0 / n_pages as f64));
        Self { step: 0, web, next: vec![0.0; n_pages] }
    }

    /// Takes a step, and returns the sum of the changes.
    pub(crate) fn step(&mut self) -> f64 {
        let n_pages = self.web.n_vertices();
        self.next.fill(0.0);
        let mut unlinked = 0.0;
        for page in 0..n_pages {
            let rank = self.web.data()[page];
            let targets = self.web.targets(page);
            let share = rank / targets.len().max(1) as f64;
            targets.iter().for_each(|target| self.next[*target as usize] += share);
            unlinked += if targets.is_empty() { rank } else { 0.0 };
        }
        let mut change = 0.0;
        for page in 0..n_pages {
            // r' = d (sum over links of r / degree + unlinked / n) + (1 - d) / n
            let rank = DAMPING * (self.next[page] + unlinked / n_pages as f64) + (1.0 - DAMPING) / n_pages as f64;
            let moved = (rank - self.web.data()[page]).abs();
            self.web.set(page, if moved <= TOLERANCE / n_pages as f64 { SETTLED } else { 0 }, rank);
            change += moved;
        }
        self.step += 1;
        change
    }

    /// Returns the change of the sum of all ranks, 1 at the start, in units of what rounding
    /// explains: one unit of rounding for each addition and product of a step.
    fn error(&self) -> f64 {
        let operations = self.step as f64 * (self.web.n_edges() + 5 * self.web.n_vertices()) as f64;
        (self.web.data().iter().sum::<f64>() - 1.0).abs() / (operations * f64::EPSILON)
    }

    /// Returns a number that differs if a bit of the ranks differs, but for rare chance.
    pub(crate) fn fingerprint(&self) -> u64 {
        let hash = |hash: u64, value: &f64| (hash ^ value.to_bits()).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        self.web.data().iter().fold(0, hash)
    }
}

/// Links of an R-MAT graph of `2^scale` pages: each goes to one of four quarters of the matrix
/// again and again.
pub(crate) fn links(scale: u32, n_links: usize, mut seed: u64) -> Vec<(u32, u32)> {
    // Probabilities of three of the quarters, added up, as in the Graph 500 benchmark.
    const QUARTERS: [f64; 3] = [0.57, 0.76, 0.95];
    let mut link = || {
        let mut ends = [0_u32; 2];
        for _ in 0..scale {
            let drawn = random(&mut seed);
            let quarter = QUARTERS.iter().filter(|bound| drawn >= **bound).count() as u32;
            ends = [2 * ends[0] + quarter / 2, 2 * ends[1] + quarter % 2];
        }
        ends.into()
    };
    (0..n_links).map(|_| link()).collect()
}

/// A random number from 0 to 1 (Steele et al., doi:10.1145/2660193.2660195).
fn random(seed: &mut u64) -> f64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) as f64 / u64::MAX as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut ranks = PageRank::new(PAGES, &links(SCALE, LINKS, 1));
    let mut keep = keep::Keep::resume("pagerank", &mut ranks)?; // plain:
    while ranks.step() > TOLERANCE {
        keep.save_if_due(&mut ranks)?; // plain:
    }
    let PageRank { step, web, .. } = &ranks;
    let n_settled = web.states().iter().filter(|state| **state == SETTLED).count();
    let error = ranks.error();
    println!("{step} steps, {n_settled} of {PAGES} pages settled, bits {:016x}", ranks.fingerprint());
    println!("ranks add up to 1, but for {error:.3} of what rounding explains");
    if error <= 1.0 { Ok(()) } else { Err("ranks were lost".into()) }
}
