//! A droplet that moves through a mesh of octants, which are fine where its surface is.
//!
//! The share c of liquid in each octant follows dc/dt + div(v c) = 0 with a constant velocity, in a
//! cube of size 1 that continues at the opposite face. Finite volumes and upwind fluxes, of first
//! order: liquid is neither made nor lost, c stays from 0 to 1, and the surface widens (LeVeque,
//! Finite Volume Methods for Hyperbolic Problems, chapter 4).
//!
//! `cargo run --release -p recoup-examples --example droplet -- --memory droplet.memory`

mod keep; // plain: mod tree;

use std::error::Error;

use recoup::memory::{Versioned, VersionedOctree}; // plain: use tree::Tree;

/// Dimensions.
const D: usize = 3;
/// The coarsest and the finest octants: `2^level` make an edge of the cube.
const LEVELS: [u32; 2] = [3, 5];
const STEPS: u64 = 60;
const VELOCITY: [f64; D] = [1.0, 0.6, 0.3];
/// Differences between neighbours above which octants are refined, and below which they are merged.
const STEEP: f64 = 0.1;
const FLAT: f64 = 0.02;

/// The droplet after some steps.
#[derive(Versioned)] // plain:
pub(crate) struct Droplet {
    #[versioned(counter)] // plain:
    step: u64,
    /// Levels of the coarsest and the finest octants.
    #[versioned(constant)] // plain:
    levels: [u32; 2],
    /// Share of liquid in each octant.
    mesh: VersionedOctree<f64, D>, // plain: mesh: Tree<D>,
}

/// A place in the mesh: an octant of a level, by its position along each axis.
#[derive(Clone, Copy)]
struct Place {
    level: u32,
    position: [u64; D],
}

impl Place {
    fn of(key: u64) -> Self {
        let level = key.ilog2() / D as u32;
        let bit = |axis: usize, place: u32| (key >> (place as usize * D + axis) & 1) << place;
        Self { level, position: std::array::from_fn(|axis| (0..level).map(|place| bit(axis, place)).sum()) }
    }

    fn key(self) -> u64 {
        let bit = |axis: usize, place: u32| (self.position[axis] >> place & 1) << (place as usize * D + axis);
        let bits = (0..D).flat_map(|axis| (0..self.level).map(move |place| bit(axis, place)));
        bits.sum::<u64>() | 1 << (self.level as usize * D)
    }

    /// Returns the octant behind a face, across the end of the cube if it is there.
    fn behind(mut self, axis: usize, is_upper: bool) -> Self {
        let n = 1 << self.level;
        self.position[axis] = (self.position[axis] + if is_upper { 1 } else { n - 1 }) % n;
        self
    }

    fn size(self) -> f64 {
        0.5_f64.powi(self.level as i32)
    }
}

impl Droplet {
    /// Makes a droplet in a mesh whose coarsest and finest octants have these levels.
    pub(crate) fn new(levels: [u32; 2]) -> Self {
        let mesh = VersionedOctree::new("mesh", 0.0); // plain: let mesh = Tree::new(0.0);
        let mut droplet = Self { step: 0, levels, mesh };
        (0..levels[0]).for_each(|_| droplet.refine_where(|_, _| true));
        droplet.fill();
        for _ in levels[0]..levels[1] {
            droplet.refine_where(|droplet, node| droplet.steepness(node) > STEEP);
            droplet.fill();
        }
        droplet.balance();
        droplet
    }

    /// Fills a ball with liquid, sharp but for the octants on its surface.
    fn fill(&mut self) {
        for node in self.mesh.leaves().collect::<Vec<usize>>() {
            let place = Place::of(self.mesh.key(node));
            let middle = place.position.map(|position| (position as f64 + 0.5) * place.size() - 0.3);
            let distance = middle.iter().map(|x| x * x).sum::<f64>().sqrt() - 0.15;
            self.mesh.set(node, (0.5 - distance / place.size()).clamp(0.0, 1.0));
        }
    }

    /// Returns the nodes behind all faces of a node: leaves of its level or coarser ones, or nodes
    /// of its level with children.
    fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let place = Place::of(self.mesh.key(node));
        let faces = (0..D).flat_map(move |axis| [false, true].map(|is_upper| place.behind(axis, is_upper)));
        faces.map(|place| self.mesh.find(place.key()))
    }

    /// Returns the largest difference to a neighbour that is no finer.
    fn steepness(&self, node: usize) -> f64 {
        let difference = |other: usize| (self.mesh.data(node) - self.mesh.data(other)).abs();
        let others = self.neighbours(node).filter(|other| self.mesh.children(*other).is_none());
        others.map(difference).fold(0.0, f64::max)
    }

    /// Moves the liquid, then the mesh.
    pub(crate) fn step(&mut self) {
        self.flow();
        self.refine_where(|droplet, node| droplet.steepness(node) > STEEP);
        self.merge();
        self.balance();
        self.step += 1;
    }

    fn flow(&mut self) {
        // A step moves liquid by a third of a finest octant.
        let time_step = 1.0 / (3.0 * VELOCITY.iter().sum::<f64>() * (1 << self.levels[1]) as f64);
        let leaves: Vec<usize> = self.mesh.leaves().collect();
        let mut gains = vec![0.0; leaves.iter().max().map_or(0, |last| last + 1)];
        for node in &leaves {
            let place = Place::of(self.mesh.key(*node));
            for (axis, velocity) in VELOCITY.iter().enumerate() {
                for is_upper in [false, true] {
                    let other = self.mesh.find(place.behind(axis, is_upper).key());
                    // Each face once: that of a finer octant, or the upper one of two equals.
                    let is_coarser = self.mesh.level(other) < place.level;
                    if self.mesh.children(other).is_some() || !(is_coarser || is_upper) {
                        continue;
                    }
                    let [source, target] = if is_upper { [*node, other] } else { [other, *node] };
                    // v c dt A, with c from where the liquid comes: all velocities are positive.
                    let flow = velocity * self.mesh.data(source) * time_step * place.size().powi(D as i32 - 1);
                    gains[source] -= flow;
                    gains[target] += flow;
                }
            }
        }
        for node in leaves {
            let volume = Place::of(self.mesh.key(node)).size().powi(D as i32);
            self.mesh.set(node, self.mesh.data(node) + gains[node] / volume);
        }
    }

    fn refine_where(&mut self, is_wanted: impl Fn(&Self, usize) -> bool) {
        let may_refine = |node: &usize| self.mesh.level(*node) < self.levels[1] && is_wanted(self, *node);
        let wanted: Vec<usize> = self.mesh.leaves().filter(may_refine).collect();
        self.refine(wanted);
    }

    fn refine(&mut self, nodes: Vec<usize>) {
        for node in nodes {
            self.mesh.refine(node);
        }
    }

    /// Merges octants that differ little and whose neighbours are not finer.
    fn merge(&mut self) {
        let parent = |node: usize| self.mesh.find(self.mesh.key(node) >> D);
        let is_first = |node: &usize| self.mesh.key(*node).is_multiple_of(1 << D);
        let parents: Vec<usize> = self.mesh.leaves().filter(is_first).map(parent).collect();
        for node in parents {
            let children = self.mesh.children(node).unwrap_or(0..0);
            let is_flat = |child: usize| self.mesh.children(child).is_none() && self.steepness(child) < FLAT;
            let has_finer = |child: usize| self.neighbours(child).any(|other| self.mesh.children(other).is_some());
            if self.mesh.level(node) >= self.levels[0]
                && children.clone().all(|child| is_flat(child) && !has_finer(child))
            {
                let sum: f64 = children.map(|child| *self.mesh.data(child)).sum();
                self.mesh.set(node, sum / (1 << D) as f64);
                self.mesh.coarsen(node);
            }
        }
    }

    /// Refines octants until neighbours differ by one level at most.
    fn balance(&mut self) {
        loop {
            let level = |node: usize| self.mesh.level(node);
            let coarse = |node: usize| self.neighbours(node).filter(move |other| level(*other) + 1 < level(node));
            let mut wanted: Vec<usize> = self.mesh.leaves().flat_map(coarse).collect();
            wanted.sort_unstable();
            wanted.dedup();
            if wanted.is_empty() {
                return;
            }
            self.refine(wanted);
        }
    }

    /// Returns the volume of all liquid.
    fn volume(&self) -> f64 {
        let volume = |node: usize| Place::of(self.mesh.key(node)).size().powi(D as i32);
        self.mesh.leaves().map(|node| volume(node) * self.mesh.data(node)).sum()
    }

    /// Returns a number that differs if a bit of the result differs, but for rare chance.
    pub(crate) fn fingerprint(&self) -> u64 {
        let values = self.mesh.leaves().map(|node| self.mesh.key(node) ^ self.mesh.data(node).to_bits());
        values.fold(0, |hash, value| (hash ^ value).wrapping_mul(0x0100_0000_01b3).rotate_left(23))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut droplet = Droplet::new(LEVELS);
    let first = droplet.volume();
    let mut keep = keep::Keep::resume("droplet", &mut droplet)?; // plain:
    while droplet.step < STEPS {
        droplet.step();
        keep.save_if_due(&mut droplet)?; // plain:
    }
    let n_leaves = droplet.mesh.leaves().count();
    // A step rounds the share of a leaf, at most 1, once for each of at most 8 D faces and for
    // their sum, and 2^D times if leaves are merged. The two volumes are sums over the leaves.
    let roundings = STEPS as usize * (8 * D + 1 + (1 << D)) + 2 * n_leaves;
    let allowed = roundings as f64 * f64::EPSILON;
    let error = (droplet.volume() - first).abs();
    println!("{STEPS} steps, {n_leaves} octants, bits {:016x}", droplet.fingerprint());
    println!("volume {first:.6}, changed by {error:.1e}, at most {allowed:.1e} by rounding");
    let is_share = |node: usize| (-allowed..=1.0 + allowed).contains(droplet.mesh.data(node));
    if error <= allowed && droplet.mesh.leaves().all(is_share) { Ok(()) } else { Err("liquid was made or lost".into()) }
}
