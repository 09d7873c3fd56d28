//! The images that a crash may leave of a medium, from the log of its calls.
//!
//! A medium is made of cells: lines of 64 bytes of a map, sectors of 512 bytes of a file. A cell
//! holds what the last fence has made durable, or any later state of it. Cells are independent. The
//! words of a line are stored in order, since the processor keeps that order within a line. A disk
//! that loses its power within a sector may leave a part of what it was writing there: the first
//! half stands for it.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use recoup_model::Rng;

use super::recorder::LogEvent;

/// Ways in which a medium loses bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CrashModel {
    /// A map: lines, which need a write-back before the fence.
    Lines,
    /// A file: sectors, which the fence makes durable whether they were written back or not.
    Sectors,
}

impl CrashModel {
    fn cell_bytes(self) -> usize {
        match self {
            Self::Lines => 64,
            Self::Sectors => 512,
        }
    }

    /// Bytes that arrive at once of a store of `bytes` bytes into a cell.
    fn atom_bytes(self, bytes: usize) -> usize {
        match self {
            Self::Lines => 8,
            Self::Sectors => bytes.div_ceil(2),
        }
    }
}

/// States of a cell since the last fence, the durable one left out.
#[derive(Clone, Debug, Default)]
struct PendingCell {
    states: Vec<Vec<u8>>,
    /// Number of states that a write-back has come after.
    written_back: usize,
}

/// Replays a log, and gives out the images that a crash may leave at each point.
pub(super) struct ImageWalk {
    model: CrashModel,
    /// Bytes that are durable.
    base: Vec<u8>,
    /// Bytes of the medium, durable or not.
    grown: usize,
    cells: BTreeMap<usize, PendingCell>,
    /// All images of a point are given out if they are no more; else as many drawn ones.
    images_each: usize,
    rng: Rng,
    /// Hashes of the images that were given out since the last fence.
    seen: HashSet<u64>,
}

impl ImageWalk {
    pub(super) fn new(model: CrashModel, base: Vec<u8>, images_each: usize, seed: u64) -> Self {
        let grown = base.len();
        let rng = Rng::new(seed);
        Self { model, base, grown, cells: BTreeMap::new(), images_each, rng, seen: HashSet::new() }
    }

    /// Takes the next call, and gives out the images that a crash after it may leave, none twice.
    pub(super) fn advance(&mut self, event: &LogEvent, mut give: impl FnMut(&[u8])) {
        match event {
            LogEvent::Grow(bytes) => self.grown = *bytes as usize,
            LogEvent::Store { at, bytes } => self.store(*at as usize, bytes),
            LogEvent::WriteBack(range) => {
                let cell_bytes = self.model.cell_bytes();
                let touched = range.start as usize / cell_bytes..(range.end as usize).div_ceil(cell_bytes);
                self.cells.range_mut(touched).for_each(|(_, cell)| cell.written_back = cell.states.len());
                return;
            }
            LogEvent::Fence => return self.fence(),
            // What was promised asks more of the same images.
            LogEvent::Promise(_) => self.seen.clear(),
        }
        self.images(&mut give);
    }

    fn store(&mut self, at: usize, bytes: &[u8]) {
        let cell_bytes = self.model.cell_bytes();
        let mut done = 0;
        while done < bytes.len() {
            let place = at + done;
            let n = (cell_bytes - place % cell_bytes).min(bytes.len() - done);
            self.store_in_cell(place / cell_bytes, place % cell_bytes, &bytes[done..done + n]);
            done += n;
        }
    }

    fn store_in_cell(&mut self, index: usize, at: usize, bytes: &[u8]) {
        let durable = durable_cell(&self.base, index, self.model.cell_bytes());
        let cell = self.cells.entry(index).or_default();
        let mut state = cell.states.last().cloned().unwrap_or(durable);
        let atom_bytes = self.model.atom_bytes(bytes.len());
        for (atom, part) in bytes.chunks(atom_bytes).enumerate() {
            state[at + atom * atom_bytes..][..part.len()].copy_from_slice(part);
            cell.states.push(state.clone());
        }
    }

    fn fence(&mut self) {
        self.seen.clear();
        self.base.resize(self.grown, 0);
        let is_file = self.model == CrashModel::Sectors;
        let cell_bytes = self.model.cell_bytes();
        for (index, cell) in &mut self.cells {
            let durable = if is_file { cell.states.len() } else { cell.written_back };
            if let Some(state) = durable.checked_sub(1).map(|last| &cell.states[last]) {
                put_cell(&mut self.base, *index, state);
            }
            debug_assert_eq!(cell.states.iter().find(|state| state.len() != cell_bytes), None);
            cell.states.drain(..durable);
            cell.written_back = 0;
        }
        self.cells.retain(|_, cell| !cell.states.is_empty());
    }

    fn images(&mut self, give: &mut impl FnMut(&[u8])) {
        let sizes: Vec<usize> = self.cells.values().map(|cell| cell.states.len() + 1).collect();
        let lengths = if self.base.len() == self.grown { 1 } else { 2 };
        let total = sizes.iter().try_fold(lengths, |product: usize, size| product.checked_mul(*size));
        if let Some(total) = total.filter(|total| *total <= self.images_each) {
            for index in 0..total {
                self.image(&mixed_digits(index, &sizes), index * lengths / total, give);
            }
            return;
        }
        // One cell alone, and all but one, are what most errors of order need.
        for cell in 0..sizes.len() {
            let alone: Vec<usize> = (0..sizes.len()).map(|i| if i == cell { sizes[i] - 1 } else { 0 }).collect();
            let without: Vec<usize> = (0..sizes.len()).map(|i| if i == cell { 0 } else { sizes[i] - 1 }).collect();
            for choice in [alone, without] {
                (0..lengths).for_each(|length| self.image(&choice, length, give));
            }
        }
        for _ in 0..self.images_each {
            let choice: Vec<usize> = sizes.iter().map(|size| draw(&mut self.rng, *size)).collect();
            let length = self.rng.next_u64() as usize % lengths;
            self.image(&choice, length, give);
        }
    }

    /// Gives an image out: the state of each cell, and whether the medium has its new length.
    fn image(&mut self, choice: &[usize], length: usize, give: &mut impl FnMut(&[u8])) {
        let mut hasher = DefaultHasher::new();
        let changed = self.cells.keys().zip(choice).filter(|(_, state)| **state > 0);
        changed.collect::<Vec<_>>().hash(&mut hasher);
        length.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) {
            return;
        }
        let mut image = self.base.clone();
        if length > 0 {
            image.resize(self.grown, 0);
        }
        for ((index, cell), state) in self.cells.iter().zip(choice) {
            if let Some(last) = state.checked_sub(1) {
                put_cell(&mut image, *index, &cell.states[last]);
            }
        }
        give(&image);
    }
}

/// Draws the state of a cell: none of the new ones, the last, or any.
fn draw(rng: &mut Rng, size: usize) -> usize {
    match rng.next_u64() % 3 {
        0 => 0,
        1 => size - 1,
        _ => rng.next_u64() as usize % size,
    }
}

/// Digits of a number in a system with these bases; what is left over is dropped.
fn mixed_digits(mut number: usize, bases: &[usize]) -> Vec<usize> {
    let digit = |base: &usize| {
        let digit = number % base;
        number /= base;
        digit
    };
    bases.iter().map(digit).collect()
}

fn durable_cell(base: &[u8], index: usize, cell_bytes: usize) -> Vec<u8> {
    let start = (index * cell_bytes).min(base.len());
    let mut cell = base[start..(start + cell_bytes).min(base.len())].to_vec();
    cell.resize(cell_bytes, 0);
    cell
}

/// Puts a cell into an image; what lies behind its end is lost.
fn put_cell(image: &mut [u8], index: usize, state: &[u8]) {
    let start = (index * state.len()).min(image.len());
    let end = (start + state.len()).min(image.len());
    image[start..end].copy_from_slice(&state[..end - start]);
}

#[test]
fn images_of_a_small_log_are_all_that_are_legal() {
    let store = |at, bytes: &[u8]| LogEvent::Store { at, bytes: bytes.to_vec() };
    // Two words of one line in order, and one word of another line.
    let log = [store(0, &[1; 16]), store(64, &[2; 8])];
    let mut walk = ImageWalk::new(CrashModel::Lines, vec![0; 128], 100, 0);
    let mut images = HashSet::new();
    for event in &log {
        walk.advance(event, |image| assert!(images.insert(image.to_vec()), "an image is given out twice"));
    }
    assert_eq!(images.len(), 3 * 2);
    assert!(images.iter().all(|image| image[0] >= image[8]), "the second word alone is not legal");
    // The first line is durable after its write-back and a fence, the other one is not.
    walk.advance(&LogEvent::WriteBack(0..16), |_| {});
    walk.advance(&LogEvent::Fence, |_| {});
    let mut left = Vec::new();
    walk.advance(&LogEvent::Promise(1), |image| left.push((image[8], image[64])));
    assert_eq!(left, [(1, 0), (1, 2)]);
    // A file is durable after the fence as a whole. A sector has nothing of a store, half, or all.
    let mut walk = ImageWalk::new(CrashModel::Sectors, vec![0; 1024], 100, 0);
    let mut n_images = 0;
    for event in [store(0, &[1; 16]), store(512, &[2; 8]), store(8, &[3; 1]), LogEvent::Fence] {
        walk.advance(&event, |_| n_images += 1);
    }
    assert_eq!(n_images, (1 + 2 + 1) * (1 + 2));
    walk.advance(&LogEvent::Promise(1), |image| assert_eq!((image[0], image[8], image[512]), (1, 3, 2)));
}
