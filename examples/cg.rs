//! CG with lossy checkpoints in ten lines of a program's own loop, and a failure in the middle of
//! it.
//!
//! `cargo run --release -p recoup-examples --example cg`

use std::error::Error;
use std::sync::Arc;

use recoup::comm::Solo;
use recoup::core::{Iteration, Scheme};
use recoup::solvers::{Cg, Csr, JacobiPreconditioner, Pool, RightHandSide, Stop, System};

/// Grid points in each direction.
const N: usize = 24;
/// The iteration after which everything in memory is lost.
const FAILS_AFTER: u64 = 45;

fn main() -> Result<(), Box<dyn Error>> {
    // The problem: the 3D Poisson equation with a random right-hand side. The session shares it, to
    // measure ||b - A x'|| of what it saves.
    let pool = Arc::new(Pool::new(2));
    let a = Arc::new(Csr::poisson3d(N).with_pool(pool.clone()));
    let b: Arc<[f64]> = RightHandSide::Random { seed: 1 }.build(&*a)?.into();
    let m = JacobiPreconditioner::new(&*a)?;
    let system = System { a: &*a, b: &b, comm: &Solo, pool: &pool };
    let start = vec![0.0; b.len()];
    let make = || Cg::new(system, &m, &start, Stop::at(1e-8));

    // The session: a version every 10 iterations, of x alone, so exact that the residual grows by
    // at most a factor 1.5. Without `.scheme(..)` it would decide from measured costs.
    let dir = std::env::temp_dir().join(format!("recoup-example-cg-{}", std::process::id()));
    // Everybody may write there: what somebody else has put under this name is not taken.
    std::fs::create_dir(&dir)?;
    let mut session =
        recoup::open(&dir).system(a.clone(), b.clone()).scheme(Scheme::Lossy).theta(0.5).every(10).build()?;

    let mut cg = make()?;
    let mut has_failed = false;
    while !cg.progress().is_converged() {
        let progress = cg.step()?;
        // A copy into a buffer; encoding, verifying and writing run behind the solver.
        session.step(&cg)?;
        if progress.iteration == FAILS_AFTER && !has_failed {
            has_failed = true;
            // A process that dies comes up with a fresh solver, and restores.
            cg = make()?;
            let restored = session.restore(&mut cg)?.ok_or("no version was saved")?;
            println!("lost everything after iteration {FAILS_AFTER}, continued from version {}", restored.version);
            let before = restored.residual.true_norm;
            let after = restored.residual.verified_norm;
            println!("||r|| of the version: {before:.3?} before encoding, {after:.3?} after");
        }
    }
    let progress = cg.progress();
    println!("converged at iteration {}: ||r||/||b|| = {:.2e}", progress.iteration, progress.relative_residual());

    drop(session);
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
