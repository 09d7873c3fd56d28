//! GMRES(30): versions at cycle ends, and a resume that repeats the undisturbed solve bit for bit.
//!
//! `cargo run --release -p recoup-examples --example gmres`

use std::error::Error;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{Iteration, Scheme};
use recoup::solvers::{Csr, Gmres, GmresOptions, Ilu0, Method, Pool, RightHandSide, Side, Stop, System};

/// Grid points in each direction.
const N: usize = 20;
/// Restart length.
const RESTART: usize = 10;
/// The iteration after which everything in memory is lost: the middle of the third cycle.
const FAILS_AFTER: u64 = 25;

fn main() -> Result<(), Box<dyn Error>> {
    let pool = Arc::new(Pool::new(2));
    let a = Arc::new(Csr::poisson3d(N).with_pool(pool.clone()));
    let b: Arc<[f64]> = RightHandSide::Random { seed: 2 }.build(&*a)?.into();
    let m = Ilu0::new(&a)?;
    let system = System { a: &*a, b: &b, comm: &Solo, pool: &pool };
    let start = vec![0.0; b.len()];
    let options = GmresOptions { restart: RESTART, side: Side::Right, stop: Stop::at(1e-10) };
    let make = || Gmres::new(system, &m, &start, options);

    // The undisturbed solve, to compare with.
    let mut undisturbed = make()?;
    while !undisturbed.step()?.is_converged() {}

    // A checkpoint is asked for after every iteration, and taken at cycle ends: only there GMRES is
    // safe, because only there x is all there is. Exact: every bit comes back.
    let dir = std::env::temp_dir().join(format!("recoup-example-gmres-{}", std::process::id()));
    // Everybody may write there: what somebody else has put under this name is not taken.
    std::fs::create_dir(&dir)?;
    let mut session = recoup::open(&dir).system(a.clone(), b.clone()).scheme(Scheme::Exact).every(1).build()?;
    let mut gmres = make()?;
    let mut has_failed = false;
    while !gmres.progress().is_converged() {
        let progress = gmres.step()?;
        session.step(&gmres)?;
        if progress.iteration == FAILS_AFTER && !has_failed {
            has_failed = true;
            gmres = make()?;
            let restored = session.restore(&mut gmres)?.ok_or("no version was saved")?;
            let version = restored.version;
            println!("lost everything after iteration {FAILS_AFTER}, continued from the cycle end at {version}");
        }
    }

    let ours = gmres.progress();
    let theirs = undisturbed.progress();
    println!("converged at iteration {}, undisturbed at {}", ours.iteration, theirs.iteration);
    let is_same = gmres.iterate()?.iter().zip(undisturbed.iterate()?).all(|(a, b)| a.to_bits() == b.to_bits());
    if !is_same {
        return Err("the resumed solve differs from the undisturbed one".into());
    }
    println!("both iterates agree bit for bit");

    drop(session);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
