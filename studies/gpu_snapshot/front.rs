//! A small program with an adaptive front: a reaction that spreads over blocks in Morton order, and
//! only blocks where something changes are computed.
//!
//! The equation is that of R. A. Fisher 1937, doi 10.1111/j.1469-1809.1937.tb02153.x, and of
//! Kolmogorov, Petrovsky and Piskunov: `u' = D lap(u) + r u (1 - u)`, explicit in time.

use std::ops::Range;

use crate::trace::{KernelWork, Recorder, WriteTrace};

/// Cells along the side of a block.
const SIDE: usize = 8;
/// Cells of a block.
const BLOCK: usize = SIDE * SIDE;
/// Bytes of a block.
const BLOCK_BYTES: u64 = 8 * BLOCK as u64;
/// `D dt / dx^2`.
const DIFFUSION: f64 = 0.2;
/// `r dt`.
const REACTION: f64 = 0.05;
/// Change of a cell in one step below which its block is stored.
const LEAST_CHANGE: f64 = 1e-4;
/// Steps before the version before, between the two, and behind.
const STEPS: usize = 60;

/// A square of blocks.
pub(crate) struct AdaptiveFront {
    /// Blocks along the side: a power of two.
    n: usize,
    /// Cells, block by block in Morton order.
    pub(crate) cells: Vec<f64>,
    /// Blocks that changed in the last step.
    active: Vec<[usize; 2]>,
}

/// Position of a block in Morton order: the bits of both coordinates in turn.
pub(crate) fn morton(x: usize, y: usize) -> usize {
    spread(x) | spread(y) << 1
}

/// Puts a zero before each of the lower 16 bits.
fn spread(bits: usize) -> usize {
    const MASKS: [(usize, usize); 4] = [(8, 0x00ff_00ff), (4, 0x0f0f_0f0f), (2, 0x3333_3333), (1, 0x5555_5555)];
    MASKS.into_iter().fold(bits, |bits, (shift, mask)| (bits | bits << shift) & mask)
}

impl AdaptiveFront {
    /// Starts with a disc of `u = 1` in the middle of `n x n` blocks.
    pub(crate) fn new(n: usize) -> Self {
        let active = (0..n).flat_map(|y| (0..n).map(move |x| [x, y])).collect();
        let mut front = Self { n, cells: vec![0.0; n * n * BLOCK], active };
        let middle = (n * SIDE) as f64 / 2.0;
        let radius = middle / 4.0;
        for (x, y) in (0..n * SIDE).flat_map(|y| (0..n * SIDE).map(move |x| (x, y))) {
            let cell = front.index(x, y);
            front.cells[cell] = f64::from(u8::from((x as f64 - middle).hypot(y as f64 - middle) < radius));
        }
        front
    }

    fn index(&self, x: usize, y: usize) -> usize {
        morton(x / SIDE, y / SIDE) * BLOCK + y % SIDE * SIDE + x % SIDE
    }

    /// u at a cell, or at the border next to it.
    fn cell(&self, x: isize, y: isize) -> f64 {
        let inside = |at: isize| at.clamp(0, (self.n * SIDE) as isize - 1) as usize;
        self.cells[self.index(inside(x), inside(y))]
    }

    /// Blocks to be computed, in Morton order: those that changed, and those around them.
    fn marked(&self) -> Vec<[usize; 2]> {
        let range = |at: usize| at.saturating_sub(1)..(at + 2).min(self.n);
        let around = |&[x, y]: &[usize; 2]| range(y).flat_map(move |y| range(x).map(move |x| [x, y]));
        let mut marked: Vec<[usize; 2]> = self.active.iter().flat_map(around).collect();
        marked.sort_unstable_by_key(|&[x, y]| morton(x, y));
        marked.dedup();
        marked
    }

    /// The next values of a block.
    fn next_block(&self, block: [usize; 2]) -> [f64; BLOCK] {
        std::array::from_fn(|cell| {
            let x = (block[0] * SIDE + cell % SIDE) as isize;
            let y = (block[1] * SIDE + cell / SIDE) as isize;
            let u = self.cell(x, y);
            let around = self.cell(x - 1, y) + self.cell(x + 1, y) + self.cell(x, y - 1) + self.cell(x, y + 1);
            // u + D lap(u) + r u (1 - u)
            u + DIFFUSION * (around - 4.0 * u) + REACTION * u * (1.0 - u)
        })
    }

    /// One step; returns the blocks that were computed, in order.
    pub(crate) fn step(&mut self) -> Vec<usize> {
        let marked = self.marked();
        let next: Vec<[f64; BLOCK]> = marked.iter().map(|&block| self.next_block(block)).collect();
        self.active.clear();
        let mut written = Vec::with_capacity(marked.len());
        for (&[x, y], next) in marked.iter().zip(&next) {
            let block = morton(x, y);
            let cells = &mut self.cells[block * BLOCK..(block + 1) * BLOCK];
            let change = cells.iter().zip(next).map(|(old, new)| (old - new).abs()).fold(0.0, f64::max);
            cells.copy_from_slice(next);
            if change > LEAST_CHANGE {
                self.active.push([x, y]);
            }
            written.push(block);
        }
        written
    }
}

/// Places in the memory of the device.
struct FrontMemory {
    cells: Range<u64>,
    flags: Range<u64>,
    next: Range<u64>,
}

impl FrontMemory {
    /// Records the kernels of a step: marks, next values, and their way into the blocks.
    fn record(&self, written: &[usize], recorder: &mut Recorder) {
        let n_flags = (self.flags.end - self.flags.start) as f64;
        let bytes = BLOCK_BYTES * written.len() as u64;
        let moved_bytes = 2.0 * bytes as f64;
        let flops = 9.0 * bytes as f64 / 8.0;
        let new = self.next.start..self.next.start + bytes;
        recorder.stream(KernelWork { moved_bytes: n_flags, flops: 0.0 }, &[]);
        recorder.stream(KernelWork { moved_bytes, flops }, &[new]);
        let cells = written.iter().map(|block| self.cells.start + BLOCK_BYTES * *block as u64);
        let flags = written.iter().map(|block| self.flags.start + *block as u64);
        recorder.scatter(KernelWork { moved_bytes, flops: 0.0 }, cells.chain(flags));
    }
}

/// Traces a front over `n x n` blocks.
pub(crate) fn front(n: usize) -> WriteTrace {
    let mut recorder = Recorder::default();
    let n_blocks = (n * n) as u64;
    let cells = recorder.allocate(BLOCK_BYTES * n_blocks);
    let flags = recorder.allocate(n_blocks);
    // Room for a quarter of the blocks: the front is thinner.
    let next = recorder.allocate(BLOCK_BYTES * n_blocks / 4);
    let memory = FrontMemory { cells: cells.clone(), flags: flags.clone(), next };
    let mut front = AdaptiveFront::new(n);
    for step in 0..3 * STEPS {
        match step {
            STEPS => recorder.start(),
            _ if step == 2 * STEPS => recorder.take_version(),
            _ => {}
        }
        let written = front.step();
        if step >= STEPS {
            memory.record(&written, &mut recorder);
        }
    }
    let what = format!("{n} x {n} blocks of {SIDE} x {SIDE} cells");
    recorder.finish("AMR front", what, vec![cells, flags])
}
