//! The solvers' share of the memory's speed: `cargo run --release --example roofline -p
//! recoup-solvers -- [n] [threads]`.
//!
//! Prints bytes per row and iteration, milliseconds per iteration, and model bytes over time as a
//! fraction of a STREAM triad measured in turns with the solver.

use std::sync::Arc;
use std::time::{Duration, Instant};

use recoup_comm::Solo;
use recoup_core::{Clock, Operator, SolveError};
use recoup_solvers::roofline::{Repeats, Triad, measure};
use recoup_solvers::{
    Cg, Csr, Gmres, GmresOptions, Jacobi, JacobiPreconditioner, Method, Poisson3d, Pool, RightHandSide, Side, Stop,
    System,
};

/// Time since the start of the program.
struct Wall(Instant);

impl Clock for Wall {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, instant: Duration) {
        std::thread::sleep(instant.saturating_sub(self.now()));
    }
}

/// A tolerance no solve here reaches while it is measured.
const STOP: Stop = Stop::at(1e-12);

#[expect(clippy::disallowed_methods, reason = "an example that measures time is its own system clock")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let n = arguments.next().unwrap_or(Ok(128))?;
    let pool = Arc::new(Pool::new(arguments.next().unwrap_or(Ok(2))?));
    let clock = Wall(Instant::now());
    let csr = Csr::poisson3d(n).with_pool(Arc::clone(&pool));
    let stencil = Poisson3d::new(n).with_pool(Arc::clone(&pool));
    let b = RightHandSide::Ones.build(&csr)?;
    let mut triad = Triad::new(&pool, n.pow(3) * 4);
    println!("{n}^3, {} threads", pool.threads());
    println!("{:<14}{:>10}{:>10}{:>12}{:>12}", "", "B/row", "ms/it", "triad GB/s", "fraction");
    for (kind, a) in [("csr", &csr as &dyn Operator), ("stencil", &stencil)] {
        let system = System { a, b: &b, comm: &Solo, pool: &pool };
        for method in ["cg", "jacobi", "gmres"] {
            let preconditioner = JacobiPreconditioner::new(a)?;
            let mut solver = make(method, system, &preconditioner)?;
            let repeats = Repeats { count: 9, iterations: if method == "gmres" { 30 } else { 10 } };
            let seen = measure(&mut triad, &mut *solver, repeats, &clock)?;
            let row = [
                seen.bytes_per_iteration / n.pow(3) as f64,
                seen.seconds_per_iteration * 1e3,
                seen.triad_bytes_per_second / 1e9,
                seen.fraction,
            ];
            println!(
                "{:<14}{:>10.1}{:>10.2}{:>12.2}{:>12.3}",
                format!("{method} {kind}"),
                row[0],
                row[1],
                row[2],
                row[3]
            );
        }
    }
    Ok(())
}

fn make<'a>(
    method: &str,
    system: System<'a>,
    preconditioner: &'a JacobiPreconditioner,
) -> Result<Box<dyn Method + 'a>, SolveError> {
    let x = vec![0.0; system.b.len()];
    Ok(match method {
        "cg" => Box::new(Cg::new(system, preconditioner, &x, STOP)?),
        "jacobi" => Box::new(Jacobi::new(system, 1.0, &x, STOP)?),
        _ => {
            let options = GmresOptions { restart: 30, side: Side::Left, stop: STOP };
            Box::new(Gmres::new(system, preconditioner, &x, options)?)
        }
    })
}
