//! The adjoint of the example is exact, and each way to keep its states gives the same sums.

mod grid;
mod medium;
#[expect(dead_code, reason = "the example uses the rest")]
mod model;
mod passes;
mod real;
mod reverse;
mod states;
mod stencil;
mod survey;
mod wavefield;

use std::error::Error;

use recoup::core::{Bound, mix};

use grid::Grid;
use medium::{Medium, stable_time_step};
use passes::{AdjointPass, ShotProblem, misfit, residual};
use real::Real;
use reverse::{ImagedShot, image_by_revolve, image_stored, store_forward};
use states::{PassRange, PlainStates, TapeStates, TapeWay};

/// An error of any thread.
pub(crate) type Failed = Box<dyn Error + Send + Sync>;

const SECTION: Grid = Grid { extents: [41, 1, 36], spacing: 10.0 };
const CUBE: Grid = Grid { extents: [22, 17, 20], spacing: 10.0 };

/// A number in -1 .. 1.
fn random(seed: u64, index: usize) -> f64 {
    mix(mix(seed) ^ index as u64) as f64 / u64::MAX as f64 * 2.0 - 1.0
}

/// A shot in the smooth model, with the data of the layered one.
fn shot<T: Real>(grid: Grid, n_steps: usize, stride: usize) -> (ShotProblem<T>, Vec<T>) {
    let layered = model::layered(&grid);
    let smooth = model::smoothed(&grid, &layered, 2);
    let time_step = stable_time_step(&grid, model::VELOCITY_MAX);
    let shot = survey::shots(&grid, 1).remove(0);
    let wavelet = survey::ricker(20.0, time_step, n_steps).into_iter().map(T::of).collect();
    let of_model = |model: &[f64]| Medium::new(grid, model, time_step, model::VELOCITY_MAX);
    let problem = ShotProblem { medium: of_model(&smooth), shot, wavelet, stride };
    let observed = ShotProblem { medium: of_model(&layered), ..problem.clone() }.data();
    (problem, observed)
}

fn in_memory<T: Real>(problem: &ShotProblem<T>, observed: &[T]) -> ImagedShot<T> {
    image_stored(problem, observed, &mut PlainStates::default()).expect("memory")
}

fn on_tape<T: Real>(problem: &ShotProblem<T>, observed: &[T], bound: Option<Bound>, key_every: usize) -> ImagedShot<T> {
    let way = TapeWay { bound, key_every, threads: 1 };
    let mut store = TapeStates::new(way, problem.medium.grid.extents, 64 << 20, problem.field_bytes() as u64);
    image_stored(problem, observed, store.as_mut().expect("a tape")).expect("the tape")
}

/// Relative difference in the 2-norm.
fn difference<T: Real>(a: &[T], b: &[T]) -> f64 {
    let square = |a: &T, b: f64| (a.wide() - b).powi(2);
    let apart: f64 = a.iter().zip(b).map(|pair| square(pair.0, pair.1.wide())).sum();
    (apart / b.iter().map(|b| square(b, 0.0)).sum::<f64>()).sqrt()
}

fn bits<T: Real>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.wide().to_bits()).collect()
}

/// The error of `L` for a product of cosines, in its middle, where `k h` is this.
fn error_of_difference(kh: f64) -> f64 {
    let grid = Grid { extents: [41, 37, 33], spacing: 10.0 };
    let mut medium = Medium::<f64>::new(grid, &vec![2000_f64.powi(-2); grid.n_cells()], 1e-3, 2000.0);
    medium.damping.iter_mut().for_each(|damping| damping.fill(0.0));
    let middle = [20, 18, 16];
    let wave = |index: usize| -> f64 {
        let cell = grid.cell(index);
        (0..3).map(|axis| (kh * (cell[axis] as f64 - middle[axis] as f64)).cos()).product()
    };
    let now: Vec<f64> = (0..grid.n_cells()).map(wave).collect();
    let mut next = vec![0.0; grid.n_cells()];
    stencil::step(&medium, &now, &mut next);
    // u(k+1) = 2 u(k) + v L u(k), and L u = -3 k^2 u
    let index = grid.index(middle);
    let found = (next[index] - 2.0 * now[index]) / medium.scaled[index];
    let exact = -3.0 * (kh / grid.spacing).powi(2);
    ((found - exact) / exact).abs()
}

/// The first error of the weights is `(k h)^8 / 3150`; the next one, `(k h)^10 / 16632`, takes a
/// hundredth of it.
#[test]
fn space_differences_are_of_eighth_order() {
    for kh in [0.4, 0.2] {
        let expected = f64::powi(kh, 8) / 3150.0;
        let found = error_of_difference(kh);
        println!("k h = {kh}: {found:e}, {expected:e} expected");
        // Rounding of the difference: eps over v L u, which is 0.04 (k h)^2 here.
        let rounding = f64::EPSILON / (0.04 * kh * kh);
        assert!((found - expected).abs() <= 0.05 * expected + 10.0 * rounding, "{found:e}, {expected:e} expected");
    }
}

/// Energy that is left, as a share of the most there was, when the wave has gone.
fn energy_left(has_sponge: bool) -> f64 {
    let grid = Grid { extents: [101, 1, 101], spacing: 10.0 };
    let velocity = 2000.0;
    let time_step = stable_time_step(&grid, velocity);
    let mut medium = Medium::<f64>::new(grid, &vec![velocity.powi(-2); grid.n_cells()], time_step, velocity);
    if !has_sponge {
        medium.damping.iter_mut().for_each(|damping| damping.fill(0.0));
    }
    // To the corner and back to the middle.
    let n_steps = (2.0 * 707.0 / velocity / time_step) as usize;
    let source = grid.index([50, 0, 50]);
    let wavelet = survey::ricker(20.0, time_step, n_steps);
    let shot = survey::Shot { source, receivers: vec![source] };
    let problem = ShotProblem { medium, shot, wavelet, stride: 1 };
    let mut forward = passes::ForwardPass::new(&problem);
    let mut greatest = 0.0_f64;
    let mut energy = 0.0;
    for _ in 0..n_steps {
        forward.advance_block();
        energy = forward.field.now.iter().map(|value| value * value).sum();
        greatest = greatest.max(energy);
    }
    energy / greatest
}

/// The layer is made to leave 1e-3 of an amplitude, 1e-6 of the energy. Waves that graze it, and
/// the slow tail of waves in two dimensions, leave more: a hundredth is allowed.
#[test]
fn absorbing_layer_takes_the_wave_out() {
    let with = energy_left(true);
    let without = energy_left(false);
    println!("{with:e} of the energy is left, {without:e} without the layer");
    assert!(without > 0.1, "{without:e} without the layer: the wave cannot leave");
    assert!(with < 0.01 * without, "{with:e} of the energy is left");
}

/// `<F u, v> = <u, F' v>` for random sources and data: F takes the values of the source to the
/// data.
#[test]
fn adjoint_pass_is_the_transposed_forward_pass() {
    for (grid, n_steps) in [(SECTION, 160), (CUBE, 90)] {
        for seed in 1..=3 {
            let (mut problem, _) = shot::<f64>(grid, n_steps, 1);
            problem.wavelet = (0..n_steps).map(|step| random(seed, step)).collect();
            let data = problem.data();
            let v: Vec<f64> = (0..data.len()).map(|index| random(seed + 100, index)).collect();
            let mut adjoint = AdjointPass::new(&problem, &v);
            adjoint.reverse_to_sample(&vec![0.0; grid.n_cells()]);
            let transposed = adjoint.finish().at_source;
            let products = |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|pair| pair.0 * pair.1).collect() };
            let left: f64 = products(&data, &v).iter().sum();
            let right: f64 = products(&problem.wavelet, &transposed).iter().sum();
            let size = left.abs().max(right.abs());
            println!("{:?}, seed {seed}: {left:e} and {right:e}", grid.extents);
            assert!((left - right).abs() <= 1e-12 * size, "{left:e} and {right:e} differ");
        }
    }
}

/// `dJ/dm` in a random direction against `(J(m + e d) - J(m - e d)) / 2e`, whose error is `C e^2`
/// and rounding. Two differences tell both: they are 3 C e^2 apart, when one has twice the e.
#[test]
fn gradient_is_that_of_central_differences() {
    for (grid, n_steps) in [(SECTION, 140), (CUBE, 80)] {
        let (problem, observed) = shot::<f64>(grid, n_steps, 1);
        let imaged = in_memory(&problem, &observed);
        let gradient = imaged.sums.gradient;
        let layered = model::layered(&grid);
        let smooth = model::smoothed(&grid, &layered, 2);
        let direction: Vec<f64> = smooth.iter().enumerate().map(|(index, m)| m * random(7, index)).collect();
        let at = |e: f64| {
            let moved: Vec<f64> = smooth.iter().zip(&direction).map(|pair| pair.0 + e * pair.1).collect();
            let medium = Medium::new(grid, &moved, problem.medium.time_step, model::VELOCITY_MAX);
            misfit(&residual(&ShotProblem { medium, ..problem.clone() }.data(), &observed))
        };
        assert_eq!(imaged.misfit.to_bits(), at(0.0).to_bits(), "the misfit of the gradient is that of the data");
        let central = |e: f64| (at(e) - at(-e)) / (2.0 * e);
        let e = 1e-4;
        let exact: f64 = gradient.iter().zip(&direction).map(|pair| pair.0 * pair.1).sum();
        let near = central(e);
        let far = central(2.0 * e);
        // J is a sum over n values, each right to a few roundings of as many steps.
        let rounding = n_steps as f64 * f64::EPSILON * at(0.0) / e;
        let truncation = (far - near).abs() / 3.0;
        println!("{:?}: {exact:e}, {near:e}, {far:e}; {truncation:e}, {rounding:e}", grid.extents);
        assert!(truncation < 1e-4 * exact.abs(), "a step of {e} tells nothing: {truncation:e}");
        assert!((exact - near).abs() <= 1.5 * truncation + rounding, "{exact:e} and {near:e} differ");
    }
}

#[test]
fn lossless_tape_and_revolve_give_every_bit_of_the_image() {
    for (grid, n_steps, stride) in [(SECTION, 180, 3), (SECTION, 60, 1), (CUBE, 80, 4)] {
        let (problem, observed) = shot::<f32>(grid, n_steps, stride);
        let plain = in_memory(&problem, &observed);
        assert!(plain.sums.image.iter().any(|&value| value != 0.0), "an image");
        let states = [None, Some(Bound::Lossless)];
        let mut others: Vec<_> = states.map(|bound| on_tape(&problem, &observed, bound, 1)).into();
        others.push(on_tape(&problem, &observed, Some(Bound::Lossless), 5));
        for fields in [2, 5, 12, 1000] {
            let bytes = fields * problem.field_bytes() as u64;
            let revolved = image_by_revolve(&problem, &observed, bytes).expect("a schedule");
            assert!(revolved.state_bytes_max <= bytes, "{} of {bytes} bytes", revolved.state_bytes_max);
            others.push(revolved);
        }
        for other in others {
            assert_eq!(bits(&other.sums.image), bits(&plain.sums.image));
            assert_eq!(bits(&other.sums.gradient), bits(&plain.sums.gradient));
            assert_eq!(bits(&other.sums.at_source), bits(&plain.sums.at_source));
        }
    }
}

/// A state that is off by `e` moves each product by that much of its factor: image and gradient
/// move in proportion to the bound.
#[test]
fn errors_of_image_and_gradient_fall_with_the_bound() {
    for (grid, n_steps) in [(SECTION, 180), (CUBE, 100)] {
        let (problem, observed) = shot::<f32>(grid, n_steps, 4);
        let plain = in_memory(&problem, &observed);
        let mut range = PassRange::default();
        store_forward(&problem, &mut range).expect("a range");
        let of_state: Vec<Bound> = [1e-2, 1e-3, 1e-4, 1e-5].map(Bound::Range).into();
        let of_pass: Vec<Bound> = [1e-3, 1e-4, 1e-5, 1e-6].map(|bound| Bound::Absolute(bound * range.width())).into();
        for bounds in [of_state, of_pass] {
            let of_bound = |&bound: &Bound| {
                let lossy = on_tape(&problem, &observed, Some(bound), 1);
                let image = difference(&lossy.sums.image, &plain.sums.image);
                let gradient = difference(&lossy.sums.gradient, &plain.sums.gradient);
                println!("{:?}, {bound}: image {image:e}, gradient {gradient:e}", grid.extents);
                assert!(image > 0.0 && gradient > 0.0, "{bound} changes something");
                [image, gradient]
            };
            let errors: Vec<[f64; 2]> = bounds.iter().map(of_bound).collect();
            for pair in errors.windows(2) {
                assert!(pair[1][0] < 0.5 * pair[0][0] && pair[1][1] < 0.5 * pair[0][1], "{errors:?}");
            }
        }
    }
}

#[test]
fn revolve_takes_the_steps_of_its_formula() {
    let (problem, observed) = shot::<f32>(SECTION, 120, 2);
    let bytes = 8 * problem.field_bytes() as u64;
    let slots = reverse::revolve_slots(&problem, bytes);
    let revolved = image_by_revolve(&problem, &observed, bytes).expect("a schedule");
    // The block before each reverse is not taken, but for the last one, which has data.
    let blocks = recoup::tape::schedule::Revolve::forward_steps(60, slots) - 60 + 1;
    assert_eq!(revolved.forward_steps as u64, 2 * blocks);
}
