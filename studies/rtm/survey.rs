//! Shots of a survey: where each source and its receivers are, and what the source sends.

use std::f64::consts::PI;

use crate::grid::Grid;
use crate::medium::SPONGE_CELLS;

/// Cells between receivers, along each axis.
const RECEIVER_EVERY: usize = 2;

/// One shot.
#[derive(Clone, Debug)]
pub(crate) struct Shot {
    /// Position of the source in a field.
    pub(crate) source: usize,
    /// Positions of the receivers.
    pub(crate) receivers: Vec<usize>,
}

/// Lays `n_shots` shots along x, in the middle of y, with receivers in a line or a square over all
/// of them.
pub(crate) fn shots(grid: &Grid, n_shots: usize) -> Vec<Shot> {
    let inset = |axis: usize| SPONGE_CELLS.min(grid.extents[axis] / 4);
    let depth = inset(2) + 2;
    let across: Vec<usize> = inner(grid.extents[1], inset(1)).collect();
    let along = || inner(grid.extents[0], inset(0));
    let receivers: Vec<usize> =
        across.iter().flat_map(|&y| along().map(move |x| [x, y, depth])).map(|cell| grid.index(cell)).collect();
    let width = grid.extents[0] - 2 * inset(0);
    let source = |shot: usize| {
        let x = inset(0) + (2 * shot + 1) * width / (2 * n_shots);
        grid.index([x, grid.extents[1] / 2, depth])
    };
    (0..n_shots).map(|shot| Shot { source: source(shot), receivers: receivers.clone() }).collect()
}

/// Every second cell inside of the absorbing layer.
fn inner(extent: usize, inset: usize) -> impl Iterator<Item = usize> {
    (inset..(extent - inset).max(inset + 1)).step_by(RECEIVER_EVERY)
}

/// A Ricker wavelet whose spectrum peaks here, in `n` steps.
pub(crate) fn ricker(peak_hertz: f64, time_step: f64, n: usize) -> Vec<f64> {
    let delay = 1.2 / peak_hertz;
    let value = |step: usize| {
        let a = (PI * peak_hertz * (step as f64 * time_step - delay)).powi(2);
        (1.0 - 2.0 * a) * (-a).exp()
    };
    (0..n).map(value).collect()
}
