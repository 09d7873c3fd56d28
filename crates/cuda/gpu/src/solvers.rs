//! Solvers on the device, against a triad of the same turn.
//!
//! Model bytes count each array once for each pass that reads or writes it, as on the host.

use std::sync::Arc;

use anyhow::{Result, ensure};
use recoup::comm::Solo;
use recoup::core::{Operator, Status};
use recoup::solvers::device::DeviceSystem;
use recoup::solvers::{
    BasisStorage, Csr, JacobiPreconditioner, METHODS, Method, MethodInputs, Poisson3d, Pool, RightHandSide, Side, Stop,
    System,
};

use crate::figure::{TimedFigure, TurnSample, in_turns};
use crate::measured::MeasuredDevice;
use crate::stopwatch::host_seconds;

/// No solve of the measurement gets here.
const RTOL: f64 = 1e-15;
/// Directions that deflated methods carry over.
const HARVEST: usize = 3;
const OMEGA: f64 = 0.9;

/// Measures every method that runs on a device, with a stencil and with a matrix.
pub(crate) fn figures(measured: &mut MeasuredDevice) -> Result<Vec<TimedFigure>> {
    let pool = Arc::new(Pool::new(std::thread::available_parallelism()?.get()));
    let side = measured.sizes.solver_side;
    let stencil = Poisson3d::new(side).with_pool(pool.clone());
    let mut found = of_operator(measured, "stencil", &stencil, &pool)?;
    found.extend(of_operator(measured, "matrix", &Csr::poisson3d(side), &pool)?);
    Ok(found)
}

/// Measures the methods with one operator.
fn of_operator(measured: &mut MeasuredDevice, name: &str, a: &dyn Operator, pool: &Pool) -> Result<Vec<TimedFigure>> {
    let b = RightHandSide::Random { seed: 1 }.build(a)?;
    let preconditioner = JacobiPreconditioner::new(a)?;
    let start = vec![0.0; b.len()];
    let system = System { a, b: &b, comm: &Solo, pool };
    let there = DeviceSystem::new(&system, &measured.device)?;
    let sizes = measured.sizes;
    let inputs = MethodInputs {
        system,
        rows: None,
        preconditioner: &preconditioner,
        x0: &start,
        stop: Stop::at(RTOL),
        omega: OMEGA,
        restart: sizes.restart,
        side: Side::Right,
        harvest: HARVEST,
        basis: BasisStorage::Double,
    };
    let mut found = Vec::new();
    for method in METHODS {
        let Some(make) = method.make_on_device else { continue };
        let mut solver = make(there.clone(), &inputs)?;
        let iterations = sizes.iterations.next_multiple_of(solver.cycle_length());
        let label = format!("{}, {name}", method.name);
        let bytes = solver.bytes_per_iteration();
        found.extend(in_turns(sizes.turns, || {
            let before = measured.triad.bytes_per_second()?;
            let seconds = host_seconds(|| {
                iterate(solver.as_mut(), iterations)?;
                anyhow::Ok(there.passes().stream().synchronize()?)
            })?;
            let after = measured.triad.bytes_per_second()?;
            let step = seconds / iterations as f64;
            let triad = f64::midpoint(before, after);
            Ok(vec![
                TurnSample::time(format!("{label}: an iteration"), bytes as usize, step),
                TurnSample::ratio(format!("{label}: over the triad"), bytes as usize, bytes / step / triad),
            ])
        })?);
    }
    Ok(found)
}

/// Takes steps, none of which is the last.
fn iterate(solver: &mut dyn Method, iterations: u64) -> Result<()> {
    for _ in 0..iterations {
        let progress = solver.step()?;
        let name = solver.name();
        let at = progress.iteration;
        ensure!(progress.status == Status::Running, "{name} ended at iteration {at}: {:?}", progress.status);
    }
    Ok(())
}
