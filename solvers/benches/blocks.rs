//! Iterations to 1e-8 with block Jacobi in 1 to 32 blocks, its usual number, and IC(0) or ILU(0) of
//! all rows: `cargo bench -p recoup-solvers --bench blocks`, with the side of the largest grid.
//!
//! Prints a Markdown table. Numbers do not depend on threads, which is checked on 1, 2 and 8.

use std::path::Path;
use std::sync::Arc;

use recoup_comm::Solo;
use recoup_core::Status;
use recoup_solvers::{
    BasisStorage, BlockJacobi, Csr, Ic0, Ilu0, METHODS, MethodInputs, Pool, Preconditioner, Side, Stop, System,
    read_matrix, usual_blocks,
};

type Failure = Box<dyn std::error::Error>;

const BLOCKS: [usize; 6] = [1, 2, 4, 8, 16, 32];
/// A solve that takes more is not counted.
const ITERATIONS_MAX: u64 = 2000;

/// The 7-point operator with these couplings along the grid's directions, and a flow along all.
fn grid(side: usize, couplings: [f64; 3], flow: f64) -> Result<Csr, Failure> {
    let a = Csr::poisson3d(side);
    let along = |row: usize, column: usize| match row.abs_diff(column) {
        1 => 0,
        distance if distance == side => 1,
        _ => 2,
    };
    Ok(a.mapped(|row, column, value| match row.cmp(&column) {
        std::cmp::Ordering::Equal => 2.0 * couplings.iter().sum::<f64>(),
        order => value * (couplings[along(row, column)] + flow * f64::from(order as i8)),
    })?)
}

fn matrices(side: usize) -> Result<Vec<(String, Csr)>, Failure> {
    let edge = 64.min(side);
    let mut all = vec![
        (format!("Poisson {edge}^3"), Csr::poisson3d(edge)),
        (format!("flow {edge}^3"), grid(edge, [1.0; 3], 0.5)?),
        (format!("weak last {edge}^3"), grid(edge, [1.0, 0.1, 0.01], 0.0)?),
        (format!("strong last {edge}^3"), grid(edge, [0.01, 0.1, 1.0], 0.0)?),
    ];
    if side > edge {
        all.push((format!("Poisson {side}^3"), Csr::poisson3d(side)));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    for name in ["sherman5", "copter2_lap", "bcsstk14", "wathen_small", "add32", "orsirr_1"] {
        let path = folder.join(format!("{name}.mtx.gz"));
        let matrix = read_matrix(&path)?;
        all.push((name.to_owned(), matrix));
    }
    Ok(all)
}

fn factored<'a>(method: &str, pool: &Pool, a: &'a Csr, blocks: Option<usize>) -> Option<Box<dyn Preconditioner + 'a>> {
    Some(match (method, blocks) {
        ("cg", Some(blocks)) => Box::new(BlockJacobi::new(pool, a, blocks, |block| Ic0::new(&block)).ok()?),
        ("cg", None) => Box::new(Ic0::new(a).ok()?),
        (_, Some(blocks)) => Box::new(BlockJacobi::new(pool, a, blocks, |block| Ilu0::new(&block)).ok()?),
        (_, None) => Box::new(Ilu0::new(a).ok()?),
    })
}

/// Iterations, and the bits of the last residual norm; `None` where there is no solution.
fn solved(method: &str, a: &Csr, threads: usize, blocks: Option<usize>) -> Result<Option<(u64, u64)>, Failure> {
    let pool = Arc::new(Pool::new(threads));
    let a = a.clone().with_pool(Arc::clone(&pool));
    let b = vec![1.0; a.n()];
    let Some(preconditioner) = factored(method, &pool, &a, blocks) else { return Ok(None) };
    let inputs = MethodInputs {
        system: System { a: &a, b: &b, comm: &Solo, pool: &pool },
        rows: None,
        preconditioner: preconditioner.as_ref(),
        x0: &vec![0.0; a.n()],
        stop: Stop::at(1e-8),
        omega: 1.0,
        restart: 30,
        side: Side::Right,
        harvest: 8,
        basis: BasisStorage::Double,
    };
    let named = METHODS.iter().find(|named| named.name == method).ok_or("no such method")?;
    let mut solver = (named.make)(&inputs)?;
    while solver.progress().status == Status::Running && solver.progress().iteration < ITERATIONS_MAX {
        solver.step()?;
    }
    let progress = solver.progress();
    Ok(progress.is_converged().then(|| (progress.iteration, progress.residual_norm.to_bits())))
}

fn main() -> Result<(), Failure> {
    let side = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100);
    println!("| matrix | method | all rows | usual | {} |", BLOCKS.map(|blocks| blocks.to_string()).join(" | "));
    println!("|---|---|---|---|{}", "---|".repeat(BLOCKS.len()));
    let mut logarithms = [(); 2 + BLOCKS.len()].map(|()| Vec::new());
    for (name, a) in matrices(side)? {
        for method in ["cg", "gmres", "bicgstab"] {
            let usual = usual_blocks(a.n());
            let columns = [None, Some(usual)].into_iter().chain(BLOCKS.map(Some));
            let found: Vec<_> = columns.map(|blocks| solved(method, &a, 2, blocks)).collect::<Result<_, _>>()?;
            if found.iter().all(Option::is_none) {
                continue;
            }
            for threads in [1, 8] {
                if a.n() < 1 << 18 && solved(method, &a, threads, Some(usual))? != found[1] {
                    return Err(format!("{name}, {method}: other bits on {threads} threads").into());
                }
            }
            if let Some(all) = found.iter().copied().collect::<Option<Vec<_>>>() {
                let whole = all[2].0 as f64;
                logarithms.iter_mut().zip(&all).for_each(|(sum, (of, _))| sum.push((*of as f64 / whole).ln()));
            }
            let counts = found.iter().map(|of| of.map_or("-".to_owned(), |(iterations, _)| iterations.to_string()));
            println!("| {name} | {method} | {} |", counts.collect::<Vec<_>>().join(" | "));
        }
    }
    let means = logarithms.map(|all| format!("{:.2}", (all.iter().sum::<f64>() / all.len() as f64).exp()));
    println!("| geometric mean, of one block | | {} |", means.join(" | "));
    Ok(())
}
