//! The measures of a pipeline on the device: the sums of the host's operator, and no wrong sum when
//! a call fails.

use std::sync::Arc;

use recoup_comm::{Solo, Threads};
use recoup_core::{Comm, DeviceSnapshot, DeviceValues, DeviceValuesError, Operator, ProblemOnDevice, SolveError};
use recoup_cuda_double::{CudaStatus, Settings};
use recoup_device::{Device, DeviceVec, DeviceVector, Stream, device_values_error};
use recoup_solvers::device::{DeviceProblem, DeviceSystem};
use recoup_solvers::{Csr, DistributedPoisson3d, Poisson3d, Pool, System};

use super::support::{double, on_device, wave};

const SEEDS: u64 = 100;
/// Values of the frozen copies beyond the rows, as staging pads.
const PADDING: usize = 37;

fn operators() -> [Box<dyn Operator>; 2] {
    let stencil = Poisson3d::new(11);
    [Box::new(Csr::poisson3d(6)), Box::new(stencil)]
}

/// What a judge measures of an iterate, or of a direction and its decoded values.
#[derive(Clone, Debug, PartialEq)]
struct Measured([u64; 4]);

fn measured_here(operator: &dyn Operator, b: &[f64], x: &[f64], w: &[f64]) -> Measured {
    let mut product = vec![0.0; x.len()];
    let difference: Vec<f64> = w.iter().zip(x).map(|(w, x)| w - x).collect();
    let sums = [
        operator.residual(b, x, &mut product).unwrap(),
        operator.squared_norm(x),
        operator.apply_dot(x, &mut product).unwrap(),
        operator.apply_dot(&difference, &mut product).unwrap(),
    ];
    Measured(sums.map(|sum| sum.rounded().to_bits()))
}

/// A frozen copy, and its owner, who continues at once.
struct Frozen {
    held: Box<dyn DeviceSnapshot>,
    _owner: DeviceVector<f64>,
}

fn frozen(device: &Device, values: &[f64]) -> Result<Frozen, DeviceValuesError> {
    let stream = Stream::new(device).map_err(device_values_error)?;
    let values = DeviceVec::copy_of(&stream, values).map_err(device_values_error)?;
    let mut owner = DeviceVector::new(values, stream.clone());
    let held = owner.snapshot(owner.len() + PADDING, None)?;
    stream.fill_zero(&mut owner.write().map_err(device_values_error)?).map_err(device_values_error)?;
    Ok(Frozen { held, _owner: owner })
}

fn measured_there(problem: &DeviceProblem, device: &Device, x: &[f64], w: &[f64]) -> Result<Measured, SolveError> {
    let frozen = [frozen(device, x)?, frozen(device, w)?];
    let [x, w] = frozen.each_ref().map(|frozen| frozen.held.as_ref());
    let sums = [
        problem.squared_residual(x)?,
        problem.squared_norm(x)?,
        problem.squared_energy(x)?,
        problem.squared_energy_of_error(x, w)?,
    ];
    Ok(Measured(sums.map(|sum| sum.rounded().to_bits())))
}

#[test]
fn a_judge_measures_on_the_device_what_it_measures_on_the_host_in_every_order_of_streams() {
    let pool = Pool::new(1);
    for operator in operators() {
        let n = operator.rows();
        let [b, x, w] = [1, 2, 3].map(|phase| wave(n, phase));
        let expected = measured_here(operator.as_ref(), &b, &x, &w);
        let system = System { a: operator.as_ref(), b: &b, comm: &Solo, pool: &pool };
        for seed in 0..SEEDS {
            on_device(&Settings { seed, ..Settings::default() }, |device| {
                let problem = DeviceProblem::of(&DeviceSystem::new(&system, device).unwrap()).unwrap();
                assert_eq!(measured_there(&problem, device, &x, &w), Ok(expected.clone()), "seed {seed}");
            });
        }
    }
}

#[test]
fn ranks_that_share_a_problem_measure_what_as_many_on_the_host_measure() {
    on_device(&Settings::default(), |device| {
        Threads::launch(3, |comm| {
            let operator = DistributedPoisson3d::new(comm.dup().unwrap(), 7, Arc::new(Pool::new(1)));
            let reference = operator.over(comm.dup().unwrap());
            let pool = Pool::new(1);
            let [b, x, w] = [1, 2, 3].map(|phase| wave(operator.rows(), phase + comm.rank()));
            let system = System { a: &operator, b: &b, comm: &comm, pool: &pool };
            let expected = measured_here(&reference, &b, &x, &w);
            let problem = DeviceProblem::of(&DeviceSystem::new(&system, device).unwrap()).unwrap();
            assert_eq!(measured_there(&problem, device, &x, &w), Ok(expected), "rank {}", comm.rank());
        });
    });
}

/// A rank without a vector sends zeros: it has an error, and the others an answer.
#[test]
fn no_rank_waits_for_one_that_cannot_take_part() {
    on_device(&Settings::default(), |device| {
        Threads::launch(2, |comm| {
            let operator = DistributedPoisson3d::new(comm.dup().unwrap(), 6, Arc::new(Pool::new(1)));
            let pool = Pool::new(1);
            let b = wave(operator.rows(), 1);
            let system = System { a: &operator, b: &b, comm: &comm, pool: &pool };
            let problem = DeviceProblem::of(&DeviceSystem::new(&system, device).unwrap()).unwrap();
            let len = if comm.rank() == 0 { b.len() } else { 5 };
            let frozen = frozen(device, &b[..len]).unwrap();
            assert_eq!(problem.squared_energy(frozen.held.as_ref()).is_ok(), comm.rank() == 0);
            assert_eq!(problem.squared_residual(frozen.held.as_ref()).is_ok(), comm.rank() == 0);
        });
    });
}

#[test]
fn a_call_that_fails_gives_an_error_and_no_wrong_sum() {
    let Some(double) = double() else { return };
    let pool = Pool::new(1);
    let operator = Csr::poisson3d(5);
    let [b, x, w] = [1, 2, 3].map(|phase| wave(operator.rows(), phase));
    let system = System { a: &operator, b: &b, comm: &Solo, pool: &pool };
    let expected = measured_here(&operator, &b, &x, &w);
    double.reset(&Settings::default());
    let device = Device::open(0).unwrap();
    let there = DeviceSystem::new(&system, &device).unwrap();
    let problem = DeviceProblem::of(&there).unwrap();
    let before = double.report().total_calls();
    assert_eq!(measured_there(&problem, &device, &x, &w), Ok(expected.clone()));
    let n_calls = double.report().total_calls() - before;
    let mut errors = 0;
    for call in 1..=n_calls {
        let fail_call = Some(double.report().total_calls() + call);
        double.change(&Settings { fail_call, error: CudaStatus::Unknown, ..Settings::default() });
        match measured_there(&problem, &device, &x, &w) {
            Ok(found) => assert_eq!(found, expected, "call {call}"),
            Err(_) => errors += 1,
        }
        double.change(&Settings::default());
        assert_eq!(measured_there(&problem, &device, &x, &w), Ok(expected.clone()), "after call {call}");
    }
    assert!(errors > 20, "{errors} errors of {n_calls} calls");
}

#[test]
fn a_vector_that_is_too_short_or_elsewhere_is_refused() {
    on_device(&Settings::default(), |device| {
        let pool = Pool::new(1);
        let operator = Poisson3d::new(4);
        let b = wave(operator.rows(), 1);
        let system = System { a: &operator, b: &b, comm: &Solo, pool: &pool };
        let problem = DeviceProblem::of(&DeviceSystem::new(&system, device).unwrap()).unwrap();
        let values = DeviceVec::copy_of(&Stream::new(device).unwrap(), &b[..9]).unwrap();
        let short = DeviceVector::new(values, Stream::new(device).unwrap());
        let held = short.snapshot(9, None).unwrap();
        let error = problem.squared_norm(held.as_ref()).unwrap_err();
        assert!(error.to_string().contains("64 rows"), "{error}");
        let singles = DeviceVector::new(DeviceVec::<f32>::new(device, 64).unwrap(), short.stream().clone());
        assert!(!problem.is_beside(singles.snapshot(64, None).unwrap().as_ref()));
    });
}
