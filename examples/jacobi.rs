//! Jacobi through many failures in virtual time: the runner steps, decides, fails and rolls back.
//!
//! An hour between failures and a slow file system pass in a second, and the seed repeats exactly.
//! `cargo run --release -p recoup-examples --example jacobi`

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use recoup::VirtualClock;
use recoup::comm::Solo;
use recoup::core::{Clock, Iteration, SolveError};
use recoup::io::MemoryStore;
use recoup::model::failures::Exponential;
use recoup::pipeline::{RunLimits, Runner, Timing, VirtualCosts};
use recoup::solvers::{Csr, Jacobi, Pool, RightHandSide, Stop, System};

/// Grid points in each direction.
const N: usize = 16;
/// Mean time to interrupt.
const MTTI: Duration = Duration::from_secs(3600);

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Arc::new(Pool::new(1));
    let a = Arc::new(Csr::poisson3d(N).with_pool(pool.clone()));
    let b: Arc<[f64]> = RightHandSide::Random { seed: 3 }.build(&*a)?.into();
    let system = System { a: &*a, b: &b, comm: &Solo, pool: &pool };
    let start = vec![0.0; b.len()];

    // The machine we do not own: 20 s per iteration, and two minutes to write one vector raw.
    let vector_bytes = 8.0 * b.len() as f64;
    let costs = VirtualCosts {
        iteration_seconds: 20.0,
        product_seconds: 20.0,
        stage_bytes_per_second: 4e9,
        encode_bytes_per_second: 200e6,
        decode_bytes_per_second: 400e6,
        store_bytes_per_second: vector_bytes / 120.0,
    };
    let clock: Arc<dyn Clock> = Arc::new(VirtualClock::new());
    let timing = Timing::Virtual(costs);

    // No scheme and no interval are named: both are decided from what checkpoints turn out to cost.
    let session = recoup::open("unused")
        .system(a.clone(), b.clone())
        .mtti(MTTI)
        .tolerance(1e-6)
        .synchronous(true)
        .clock(clock.clone(), timing)
        .build_with(Arc::new(MemoryStore::new()), &Solo)?;
    let limits = RunLimits { iterations: 10_000, executed: 100_000 };
    let failures = Box::new(Exponential::new(MTTI, 7));
    let mut runner = Runner { timing, ..Runner::new(Some(session), failures, clock, limits) };
    // Called at the start and after every failure, as a process that comes up again would.
    let report = runner.run(&mut || -> Result<Box<dyn Iteration + '_>, SolveError> {
        Ok(Box::new(Jacobi::new(system, 1.0, &start, Stop::at(1e-6))?))
    })?;

    if !report.progress.is_converged() {
        return Err("the solve did not converge".into());
    }
    let productive = report.progress.iteration as f64 * costs.iteration_seconds;
    println!("converged at iteration {} after {} executed", report.progress.iteration, report.executed);
    println!("{} failures, {} recoveries, {} versions", report.failures, report.recoveries, report.saved.len());
    println!("overhead {:.1} % of {productive:.0} s", 100.0 * (report.seconds_total / productive - 1.0));
    for decision in &report.decisions {
        println!("iteration {}: {}", decision.iteration, decision.why);
    }
    Ok(())
}
