//! CG on a CUDA device: versions saved from there, and a solve that continues on the host bit for
//! bit.
//!
//! `cargo run --release -p recoup-examples --example gpu`; without a device it says why.

use std::error::Error;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{Iteration, Scheme};
use recoup::device::Device;
use recoup::solvers::device::DeviceSystem;
use recoup::solvers::{Cg, JacobiPreconditioner, Method, Poisson3d, Pool, RightHandSide, Stop, System};

/// Grid points in each direction.
const N: usize = 24;
/// The iteration after which the device is given up.
const GIVEN_UP_AFTER: u64 = 25;

fn main() -> Result<(), Box<dyn Error>> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("{error}: nothing to show here");
            return Ok(());
        }
    };
    println!("on {}", device.info().name);
    let pool = Arc::new(Pool::new(2));
    let a = Arc::new(Poisson3d::new(N).with_pool(pool.clone()));
    let b: Arc<[f64]> = RightHandSide::Random { seed: 2 }.build(&*a)?.into();
    let m = JacobiPreconditioner::new(&*a)?;
    let here = System { a: &*a, b: &b, comm: &Solo, pool: &pool };
    // A and b are copied to the device once. The solver's vectors never leave it.
    let there = DeviceSystem::new(&here, &device)?;
    let start = vec![0.0; b.len()];
    let stop = Stop::at(1e-10);

    // The undisturbed solve on the host, to compare with.
    let mut undisturbed = Cg::new(here, &m, &start, stop)?;
    while !undisturbed.step()?.is_converged() {}

    // Every tenth iteration a version is saved: a copy within the device, and the solve continues.
    let dir = std::env::temp_dir().join(format!("recoup-example-gpu-{}", std::process::id()));
    std::fs::create_dir(&dir)?;
    let mut session = recoup::open(&dir).system(a.clone(), b.clone()).scheme(Scheme::Exact).every(10).build()?;
    let mut on_device = Cg::new(there, &m, &start, stop)?;
    while on_device.progress().iteration < GIVEN_UP_AFTER {
        on_device.step()?;
        session.step(&on_device)?;
    }
    drop(on_device);

    // What the device has saved, the host continues from.
    let mut on_host = Cg::new(here, &m, &start, stop)?;
    let restored = session.restore(&mut on_host)?.ok_or("no version was saved")?;
    println!("gave the device up after iteration {GIVEN_UP_AFTER}, continued on the host from {}", restored.version);
    while !on_host.step()?.is_converged() {}

    let is_same = on_host.iterate()?.iter().zip(undisturbed.iterate()?).all(|(a, b)| a.to_bits() == b.to_bits());
    if !is_same {
        return Err("the solve that moved differs from the one on the host".into());
    }
    println!("converged at iteration {}; both iterates agree bit for bit", on_host.progress().iteration);

    drop(session);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
