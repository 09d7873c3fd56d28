//! Vectors of each monitor, written by several threads.

use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

use recoup_core::Zones;
use recoup_snapshot::{PageSize, TouchedRegion, WatchedRegion, WriteWatch};

/// Rows that one pass of a kernel takes at a time, as the solvers' kernels do.
const BLOCK: usize = 1024;

/// A vector of a solver.
pub(crate) trait Written: Deref<Target = [f64]> + Zones {
    /// Overwrites each value by `f` of it and of the value in `other`, with these threads.
    fn update(&mut self, threads: usize, other: &[f64], f: impl Fn(f64, f64) -> f64 + Sync);
}

/// The values of each thread: whole blocks.
fn rows_of(len: usize, threads: usize) -> usize {
    len.div_ceil(threads).next_multiple_of(BLOCK)
}

impl Written for TouchedRegion<f64> {
    fn update(&mut self, threads: usize, other: &[f64], f: impl Fn(f64, f64) -> f64 + Sync) {
        let rows = rows_of(self.len(), threads);
        std::thread::scope(|scope| {
            let mut rest = self.part();
            for other in other.chunks(rows) {
                let (mut part, after) = rest.split_at(other.len());
                rest = after;
                let f = &f;
                let mut work = move || {
                    for (index, other) in other.chunks(BLOCK).enumerate() {
                        let block = part.write(index * BLOCK..index * BLOCK + other.len());
                        block.iter_mut().zip(other).for_each(|(value, other)| *value = f(*value, *other));
                    }
                };
                if rest.is_empty() { work() } else { drop(scope.spawn(work)) }
            }
        });
    }
}

impl Written for WatchedRegion<f64> {
    fn update(&mut self, threads: usize, other: &[f64], f: impl Fn(f64, f64) -> f64 + Sync) {
        let rows = rows_of(self.len(), threads);
        std::thread::scope(|scope| {
            let mut rest = self.part();
            for other in other.chunks(rows) {
                let (part, after) = rest.split_at(other.len());
                rest = after;
                let f = &f;
                let work = move || {
                    let set = |(value, other): (&Cell<f64>, &f64)| value.set(f(value.get(), *other));
                    part.into_cells().iter().zip(other).for_each(set);
                };
                if rest.is_empty() { work() } else { drop(scope.spawn(work)) }
            }
        });
    }
}

/// Zeros in a region that says what it writes.
pub(crate) fn touched(len: usize, size: PageSize) -> TouchedRegion<f64> {
    let region = TouchedRegion::zeros(len, size).expect("addresses");
    region.populate(0..len);
    region
}

/// Zeros in a region that the system watches over.
pub(crate) fn watched(watch: &Arc<WriteWatch>, len: usize, size: PageSize) -> WatchedRegion<f64> {
    WatchedRegion::zeros(watch, len, size).expect("the watch was tried")
}
