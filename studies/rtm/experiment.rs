//! The survey that all ways image: model, shots, and the data that would have been observed.

use crate::grid::Grid;
use crate::medium::{Medium, stable_time_step};
use crate::model::{self, VELOCITY_MAX, VELOCITY_MIN};
use crate::options::Options;
use crate::passes::{ShotData, ShotProblem};
use crate::survey;

/// Cells of the shortest wavelength, at 2.5 times the peak of the spectrum.
const CELLS_PER_WAVE: f64 = 5.0;
/// Velocity that the time to the bottom and back is reckoned with, in m/s.
const VELOCITY_MEAN: f64 = 2100.0;

/// A survey.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    pub(crate) grid: Grid,
    pub(crate) n_steps: usize,
    pub(crate) time_step: f64,
    /// Peak of the spectrum of the source, in Hz.
    pub(crate) peak_hertz: f64,
    /// Squared slownesses that made the data.
    pub(crate) layered: Vec<f64>,
    /// Squared slownesses that imaging starts from.
    pub(crate) smooth: Vec<f64>,
    /// Each shot, and its data.
    pub(crate) shots: Vec<ObservedShot>,
}

/// A shot and its data. Single precision, as programs of this kind have it: the states are half as
/// large, and their rounding is far below the noise of any data.
#[derive(Clone, Debug)]
pub(crate) struct ObservedShot {
    pub(crate) problem: ShotProblem<f32>,
    pub(crate) observed: ShotData<f32>,
}

impl Experiment {
    /// Makes the models, and the data of all shots.
    pub(crate) fn new(options: &Options) -> Self {
        let grid = options.grid;
        let time_step = stable_time_step(&grid, VELOCITY_MAX);
        let peak_hertz = VELOCITY_MIN / (2.5 * CELLS_PER_WAVE * grid.spacing);
        let depth = grid.extents[2] as f64 * grid.spacing;
        let seconds = 2.0 * depth / VELOCITY_MEAN + 1.2 / peak_hertz;
        let n_steps = options.n_steps.unwrap_or((seconds / time_step) as usize).max(2 * options.stride);
        let n_steps = n_steps.next_multiple_of(options.stride);
        let layered = model::layered(&grid);
        let smooth = model::smoothed(&grid, &layered, grid.extents[2] / 16);
        let wavelet = survey::ricker(peak_hertz, time_step, n_steps).into_iter().map(|value| value as f32);
        let wavelet: Vec<f32> = wavelet.collect();
        let observed_shot = |shot| {
            let medium = Medium::new(grid, &smooth, time_step, VELOCITY_MAX);
            let problem = ShotProblem { medium, shot, wavelet: wavelet.clone(), stride: options.stride };
            let medium = Medium::new(grid, &layered, time_step, VELOCITY_MAX);
            let observed = ShotProblem { medium, ..problem.clone() }.data();
            ObservedShot { problem, observed }
        };
        let shots = survey::shots(&grid, options.n_shots).into_iter().map(observed_shot).collect();
        Self { grid, n_steps, time_step, peak_hertz, layered, smooth, shots }
    }

    /// Bytes of one field.
    pub(crate) fn field_bytes(&self) -> u64 {
        (self.grid.n_cells() * size_of::<f32>()) as u64
    }

    /// States of a shot that are stored.
    pub(crate) fn n_states(&self, options: &Options) -> u64 {
        (self.n_steps / options.stride - 1) as u64
    }
}
