//! Velocities: layers with bent interfaces, and the smooth version that imaging starts from.

use std::f64::consts::TAU;

use crate::grid::Grid;

/// Velocities of the layers from the top, in m/s.
const LAYERS: [f64; 5] = [1500.0, 2000.0, 2300.0, 2900.0, 3500.0];
/// Depths of the interfaces, as shares of the grid's.
const INTERFACES: [f64; 4] = [0.3, 0.45, 0.62, 0.8];
/// Passes of the box filter.
const SMOOTHING_PASSES: usize = 3;

/// The greatest velocity.
pub(crate) const VELOCITY_MAX: f64 = LAYERS[LAYERS.len() - 1];
/// The least velocity.
pub(crate) const VELOCITY_MIN: f64 = LAYERS[0];

/// Squared slownesses of the layers.
pub(crate) fn layered(grid: &Grid) -> Vec<f64> {
    let velocity = |index: usize| {
        let [x, y, z] = grid.cell(index);
        let share = |position: usize, axis: usize| position as f64 / grid.extents[axis] as f64;
        let bend = (TAU * share(x, 0)).sin() + 0.5 * (TAU * (1.5 * share(x, 0) + share(y, 1))).cos();
        let is_above = |interface: &&f64| share(z, 2) >= **interface + 0.03 * bend;
        LAYERS[INTERFACES.iter().filter(is_above).count()]
    };
    (0..grid.n_cells()).map(|index| velocity(index).powi(-2)).collect()
}

/// The model without its edges: a box filter of `2 radius + 1` cells along each axis, three times.
pub(crate) fn smoothed(grid: &Grid, model: &[f64], radius: usize) -> Vec<f64> {
    let mut smooth = model.to_vec();
    for _ in 0..SMOOTHING_PASSES {
        for axis in (0..3).filter(|&axis| grid.extents[axis] > 1) {
            smooth = filtered(grid, &smooth, axis, radius);
        }
    }
    smooth
}

fn filtered(grid: &Grid, model: &[f64], axis: usize, radius: usize) -> Vec<f64> {
    let mean = |index: usize| {
        let cell = grid.cell(index);
        let first = cell[axis].saturating_sub(radius);
        let last = (cell[axis] + radius).min(grid.extents[axis] - 1);
        let at = |position: usize| {
            let mut cell = cell;
            cell[axis] = position;
            model[grid.index(cell)]
        };
        (first..=last).map(at).sum::<f64>() / (last - first + 1) as f64
    };
    (0..model.len()).map(mean).collect()
}
