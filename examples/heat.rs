//! A time loop: implicit heat in a cube whose conductivity changes, one system for each time step,
//! all of them one run of checkpoints; and a failure in the middle of a step.
//!
//! `cargo run --release -p recoup-examples --example heat`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{Iteration, Scheme};
use recoup::pipeline::{Reference, Variables};
use recoup::solvers::{Cg, Csr, Identity, Method, Pool, RightHandSide, Stop, System};

/// Grid points in each direction.
const N: usize = 16;
/// Time steps.
const STEPS: u64 = 5;
/// Iterations, of all steps together, after which everything in memory is lost.
const FAILS_AFTER: u64 = 70;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("recoup-example-heat-{}", std::process::id()));
    // Everybody may write there: what somebody else has put under this name is not taken.
    std::fs::create_dir(&dir)?;
    let lost = heat(&dir, FAILS_AFTER)?;
    assert!(lost.is_none(), "the failure comes in the middle");
    // A process that dies comes up with nothing, and asks where to continue.
    let heat = heat(&dir, u64::MAX)?.ok_or("nothing fails twice")?;
    println!("||u|| after {STEPS} steps: {heat:.6}");
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}

/// Runs the time loop. Returns `||u||` at its end, or `None` where `life` iterations end before.
fn heat(dir: &Path, mut life: u64) -> Result<Option<f64>, Box<dyn Error>> {
    let pool = Pool::new(2);
    let mut session = recoup::open(dir).systems().scheme(Scheme::Lossy).every(5).build()?;
    // The state that A and b are made from, before any system: of the step that was under way.
    let mut u = RightHandSide::Random { seed: 2 }.build(&*matrix(0))?;
    let restored = session.restore_with(&mut [&mut Variables::new().dynamic("u", &mut u)])?;
    let first = restored.and_then(|restored| restored.system).map_or(0, |system| system.index);
    for step in first..STEPS {
        let a = matrix(step);
        let b: Arc<[f64]> = u.as_slice().into();
        session.begin_system(step, Reference::new(a.clone(), b.clone()))?;
        let system = System { a: &*a, b: &b, comm: &Solo, pool: &pool };
        let mut cg = Cg::new(system, &Identity, &b, Stop::at(1e-10))?;
        // Only the first step of a process has versions of its own.
        if let Some(restored) = session.restore(&mut cg)? {
            println!("continued in step {step}, from iteration {}", restored.iteration);
        }
        while !cg.progress().is_converged() {
            cg.step()?;
            session.step_with_state(&cg, &[&Variables::new().dynamic("u", &mut u)])?;
            life -= 1;
            if life == 0 {
                println!("lost everything in step {step}, after iteration {}", cg.progress().iteration);
                return Ok(None);
            }
        }
        u = cg.iterate()?;
    }
    Ok(Some(u.iter().map(|u| u * u).sum::<f64>().sqrt()))
}

/// `I + c A` of the 3D Poisson equation: a step of implicit Euler. c grows with time.
fn matrix(step: u64) -> Arc<Csr> {
    let poisson = Csr::poisson3d(N);
    let c = 1.0 + step as f64;
    let mut row_starts = vec![0];
    let mut columns = Vec::new();
    let mut values = Vec::new();
    for row in 0..poisson.n() {
        let (row_columns, entries) = poisson.row(row);
        let unit = |column: u32| f64::from(u8::from(column as usize == row));
        values.extend(row_columns.iter().zip(entries).map(|(&column, a)| unit(column) + c * a));
        columns.extend_from_slice(row_columns);
        row_starts.push(columns.len());
    }
    Arc::new(Csr::new(row_starts, columns, values).unwrap_or_else(|error| unreachable!("{error}")))
}
