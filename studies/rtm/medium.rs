//! The medium as the wave kernels read it: velocity, time step, and the absorbing layer.

use crate::grid::Grid;
use crate::real::Real;

/// Half of the eighth-order second difference: weight of the centre, and of the neighbours 1 to 4
/// cells away.
pub(crate) const WEIGHTS: [f64; 5] = [-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];
/// Share of the largest stable time step that is taken.
const STABLE_SHARE: f64 = 0.8;
/// Cells of the absorbing layer at each side.
pub(crate) const SPONGE_CELLS: usize = 16;
/// Amplitude that is left of a wave that went through the layer and back.
const SPONGE_LEFT: f64 = 1e-3;

/// A medium on a grid.
#[derive(Clone, Debug)]
pub(crate) struct Medium<T> {
    /// The grid.
    pub(crate) grid: Grid,
    /// Seconds of a time step.
    pub(crate) time_step: f64,
    /// `v = c^2 dt^2` of each cell.
    pub(crate) scaled: Vec<T>,
    /// Damping along x, y and z; that of a cell is the sum.
    pub(crate) damping: [Vec<T>; 3],
    /// [`WEIGHTS`] over the square of the spacing.
    pub(crate) weights: [T; 5],
    /// Stands for rows outside of the grid, where waves are 0.
    pub(crate) zeros: Vec<T>,
}

impl<T: Real> Medium<T> {
    /// Makes the medium of squared slownesses (s^2/m^2). The damping depends on the time step and
    /// on a velocity alone: it stays as it is when the model changes.
    pub(crate) fn new(grid: Grid, slowness2: &[f64], time_step: f64, velocity_max: f64) -> Self {
        let v = |&slowness2: &f64| T::of(time_step * time_step / slowness2);
        let layer = |axis: usize| damping(grid.extents[axis], grid.spacing, velocity_max, time_step);
        Self {
            grid,
            time_step,
            scaled: slowness2.iter().map(v).collect(),
            damping: [0, 1, 2].map(|axis| layer(axis).into_iter().map(T::of).collect()),
            weights: WEIGHTS.map(|weight| T::of(weight / (grid.spacing * grid.spacing))),
            zeros: vec![T::default(); grid.extents[0]],
        }
    }

    /// Returns the damping `s` of a cell.
    pub(crate) fn damping_at(&self, index: usize) -> T {
        let cell = self.grid.cell(index);
        self.damping[0][cell[0]] + (self.damping[1][cell[1]] + self.damping[2][cell[2]])
    }
}

/// Returns the seconds of a time step that is stable for all waves of a grid.
///
/// `c dt / h <= 2 / sqrt(d w)`, where `d w` is the largest eigenvalue of the difference operator in
/// `d` axes: the sum of the absolute weights.
pub(crate) fn stable_time_step(grid: &Grid, velocity_max: f64) -> f64 {
    let of_axis = WEIGHTS[0].abs() + 2.0 * WEIGHTS[1..].iter().map(|weight| weight.abs()).sum::<f64>();
    STABLE_SHARE * 2.0 / (grid.n_axes() as f64 * of_axis).sqrt() * grid.spacing / velocity_max
}

/// Damping per time step along one axis: a square law from 0 at the inner end of the layer.
fn damping(extent: usize, spacing: f64, velocity: f64, time_step: f64) -> Vec<f64> {
    if extent == 1 {
        return vec![0.0];
    }
    let cells = SPONGE_CELLS.min(extent / 4).max(1);
    // A wave crosses the layer twice: exp(-2/c int eta) = left, eta = eta_max (x/w)^2.
    let eta_max = -1.5 * velocity * SPONGE_LEFT.ln() / (cells as f64 * spacing);
    let of_cell = |cell: usize| {
        let depth = cells.saturating_sub(cell.min(extent - 1 - cell)) as f64 / cells as f64;
        0.5 * time_step * eta_max * depth * depth
    };
    (0..extent).map(of_cell).collect()
}
