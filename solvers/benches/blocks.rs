//! CG with IC(0) of the whole matrix and of its usual blocks, on 1 and 2 threads: `cargo bench -p
//! recoup-solvers --bench blocks`.
//!
//! Prints rows of a Markdown table: iterations, and the median milliseconds of set-up, of an
//! iteration and of the solve, from five set-ups and solves in turns.

use std::sync::Arc;
use std::time::Instant;

use recoup_comm::Solo;
use recoup_core::{Iteration, SolveError, Status};
use recoup_solvers::{BlockJacobi, Cg, Csr, Ic0, Pool, Preconditioner, Stop, System, usual_blocks};

const ROUNDS: usize = 5;

/// Milliseconds of one set-up and solve.
#[derive(Clone, Copy)]
struct Timed {
    iterations: u64,
    setup: f64,
    solve: f64,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is its own system clock")]
fn timed(
    system: System<'_>,
    set_up: impl FnOnce() -> Result<Box<dyn Preconditioner>, SolveError>,
) -> Result<Timed, SolveError> {
    let begin = Instant::now();
    let preconditioner = set_up()?;
    let setup = begin.elapsed().as_secs_f64() * 1e3;
    let mut solver = Cg::new(system, preconditioner.as_ref(), &vec![0.0; system.b.len()], Stop::at(1e-8))?;
    let begin = Instant::now();
    while solver.progress().status == Status::Running {
        solver.step()?;
    }
    Ok(Timed { iterations: solver.progress().iteration, setup, solve: begin.elapsed().as_secs_f64() * 1e3 })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<(), SolveError> {
    println!("| grid | threads | preconditioner | set-up ms | iterations | ms per iteration | solve ms |");
    println!("|---|---|---|---|---|---|---|");
    for (side, threads) in [(64, 1), (64, 2), (100, 1), (100, 2)] {
        let pool = Arc::new(Pool::new(threads));
        let a = Csr::poisson3d(side).with_pool(Arc::clone(&pool));
        let b = vec![1.0; a.n()];
        let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
        let blocks = usual_blocks(&a);
        let mut whole = Vec::new();
        let mut parts = Vec::new();
        for _ in 0..ROUNDS {
            whole.push(timed(system, || Ok(Box::new(Ic0::new(&a)?)))?);
            let of_blocks = || BlockJacobi::new(&pool, &a, blocks, |block| Ic0::new(&block));
            parts.push(timed(system, || Ok(Box::new(of_blocks()?)))?);
        }
        for (name, all) in [("IC(0)".to_owned(), whole), (format!("IC(0) in {blocks} blocks"), parts)] {
            let [setup, solve] =
                [|t: &Timed| t.setup, |t: &Timed| t.solve].map(|of| median(all.iter().map(of).collect()));
            let iterations = all[0].iterations;
            let each = solve / iterations as f64;
            println!("| {side}^3 | {threads} | {name} | {setup:.0} | {iterations} | {each:.2} | {solve:.0} |");
        }
    }
    Ok(())
}
