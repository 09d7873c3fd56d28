//! Whole solves of the 3D Poisson equation with b = 1 to 1e-8, next to those of PETSc: `cargo xtask
//! anchor solves`, which compiles a program with PETSc and runs `cargo bench -p recoup-solvers
//! --bench solves -- PROGRAM SIDE ROUNDS NAMES`. PETSc is left out where PROGRAM is -.
//!
//! Prints rows of a Markdown table: medians of the rounds, in each of which every program has its
//! turn: one thread and one rank, then two.

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use recoup_comm::Solo;
use recoup_core::{Clock, Status};
use recoup_solvers::roofline::Triad;
use recoup_solvers::{
    BasisStorage, BlockJacobi, Csr, Ic0, Ilu0, JacobiPreconditioner, METHODS, Method, MethodInputs, Pool,
    Preconditioner, Side, Stop, System, usual_blocks,
};

/// The system's clock.
struct Since(Instant);

impl Clock for Since {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep_until(&self, instant: Duration) {
        std::thread::sleep(instant.saturating_sub(self.now()));
    }
}

type Failure = Box<dyn std::error::Error>;

const RTOL: f64 = 1e-8;
/// Values of a vector of the triad: four times the last cache.
const TRIAD_LEN: usize = 1 << 24;

/// A method, as PETSc is told of it, and the preconditioners and bases that are compared with it.
struct ComparedSolve {
    name: &'static str,
    /// Options of PETSc: it watches the true residual, too.
    petsc: &'static str,
    /// Iterations after which the solve is broken off: four times as many would be needed.
    limit: Option<u64>,
    ours: &'static [OwnSolve],
}

/// A preconditioner, and how GMRES stores its basis.
#[derive(Clone, Copy)]
struct OwnSolve {
    pc: &'static str,
    basis: BasisStorage,
}

impl OwnSolve {
    const fn new(pc: &'static str, basis: BasisStorage) -> Self {
        Self { pc, basis }
    }

    fn name(self, method: &str) -> String {
        let Self { pc, basis } = self;
        let basis = if basis == DOUBLE { String::new() } else { format!(", basis {basis:?}").to_lowercase() };
        format!("{method} + {pc}{basis}")
    }
}

const DOUBLE: BasisStorage = BasisStorage::Double;
const AUTO: BasisStorage = BasisStorage::Auto;
const SOLVES: [ComparedSolve; 4] = [
    ComparedSolve {
        name: "cg",
        petsc: "-ksp_type cg -pc_type bjacobi -sub_pc_type icc -ksp_norm_type unpreconditioned",
        limit: None,
        ours: &[OwnSolve::new("bjacobi", DOUBLE), OwnSolve::new("ic0", DOUBLE)],
    },
    ComparedSolve {
        name: "gmres",
        petsc: "-ksp_type gmres -pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right",
        limit: None,
        ours: &[
            OwnSolve::new("bjacobi", DOUBLE),
            OwnSolve::new("bjacobi", AUTO),
            OwnSolve::new("ilu0", DOUBLE),
            OwnSolve::new("ilu0", AUTO),
        ],
    },
    ComparedSolve {
        name: "bicgstab",
        petsc: "-ksp_type bcgs -pc_type bjacobi -sub_pc_type ilu -ksp_pc_side right",
        limit: None,
        ours: &[OwnSolve::new("bjacobi", DOUBLE), OwnSolve::new("ilu0", DOUBLE)],
    },
    ComparedSolve {
        name: "gmres",
        petsc: "-ksp_type gmres -pc_type jacobi -ksp_pc_side right",
        limit: Some(240),
        ours: &[
            OwnSolve::new("jacobi", DOUBLE),
            OwnSolve::new("jacobi", BasisStorage::Float),
            OwnSolve::new("jacobi", AUTO),
        ],
    },
];

/// Seconds of a set-up and a solve, and of all processors in them.
#[derive(Clone, Copy, Debug)]
struct TimedSolve {
    setup: f64,
    setup_used: f64,
    solve: f64,
    solve_used: f64,
    iterations: f64,
    bytes_per_iteration: f64,
}

impl TimedSolve {
    fn whole(&self) -> f64 {
        self.setup + self.solve
    }

    fn used(&self) -> f64 {
        self.setup_used + self.solve_used
    }
}

/// Seconds that all threads of this process have computed.
fn used() -> Result<f64, Failure> {
    // user and system time are fields 14 and 15, in hundredths of a second; the name before them
    // ends with the last bracket.
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    Ok(fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap_or(f64::NAN)).sum::<f64>() / 100.0)
}

fn preconditioner<'a>(
    name: &str,
    method: &str,
    pool: &Pool,
    a: &'a Csr,
) -> Result<Box<dyn Preconditioner + 'a>, Failure> {
    Ok(match name {
        "ic0" => Box::new(Ic0::new(a)?),
        "ilu0" => Box::new(Ilu0::new(a)?),
        "jacobi" => Box::new(JacobiPreconditioner::new(a)?),
        _ if method == "cg" => Box::new(BlockJacobi::new(pool, a, usual_blocks(a.n()), |block| Ic0::new(&block))?),
        _ => Box::new(BlockJacobi::new(pool, a, usual_blocks(a.n()), |block| Ilu0::new(&block))?),
    })
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is its own system clock")]
fn ours(
    system: System<'_>,
    a: &Csr,
    compared: &ComparedSolve,
    OwnSolve { pc, basis }: OwnSolve,
) -> Result<TimedSolve, Failure> {
    let ComparedSolve { name: method, limit, .. } = *compared;
    let begin = (Instant::now(), used()?);
    let preconditioner = preconditioner(pc, method, system.pool, a)?;
    let made = (Instant::now(), used()?);
    let inputs = MethodInputs {
        system,
        rows: None,
        preconditioner: preconditioner.as_ref(),
        x0: &vec![0.0; system.b.len()],
        stop: Stop::at(RTOL),
        omega: 1.0,
        restart: 30,
        side: Side::Right,
        harvest: 8,
        basis,
    };
    let named = METHODS.iter().find(|named| named.name == method).ok_or("no such method")?;
    let mut solver: Box<dyn Method + '_> = (named.make)(&inputs)?;
    while solver.progress().status == Status::Running && Some(solver.progress().iteration) != limit {
        solver.step()?;
    }
    if !solver.progress().is_converged() && limit.is_none() {
        return Err(format!("{method} with {pc} has not converged").into());
    }
    Ok(TimedSolve {
        setup: (made.0 - begin.0).as_secs_f64(),
        setup_used: made.1 - begin.1,
        solve: made.0.elapsed().as_secs_f64(),
        solve_used: used()? - made.1,
        iterations: solver.progress().iteration as f64,
        bytes_per_iteration: solver.bytes_per_iteration(),
    })
}

fn petsc(program: &str, ranks: usize, side: usize, compared: &ComparedSolve) -> Result<TimedSolve, Failure> {
    let iterations_max = compared.limit.unwrap_or(100_000).to_string();
    let mut command = Command::new("mpirun");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["--oversubscribe", "-n", &ranks.to_string(), program, "-n", &side.to_string()]);
    command.args(compared.petsc.split(' ')).args(["-ksp_rtol", "1e-8", "-ksp_max_it", &iterations_max]);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers = text.lines().find_map(|line| line.strip_prefix("solved "));
    let numbers: Vec<f64> = numbers.into_iter().flat_map(str::split_whitespace).flat_map(str::parse).collect();
    let &[setup, setup_used, solve, solve_used, iterations, residual] = &numbers[..] else {
        return Err(format!("{program}: {text}{}", String::from_utf8_lossy(&output.stderr)).into());
    };
    // The norm that it watches drifts from the true one by rounding.
    if residual > 2.0 * RTOL && compared.limit.is_none() {
        return Err(format!("PETSc's relative residual is {residual}").into());
    }
    Ok(TimedSolve { setup, setup_used, solve, solve_used, iterations, bytes_per_iteration: f64::NAN })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Prints the medians of one program; ratios are those of the rounds.
fn print(name: &str, all: &[TimedSolve], theirs: &[TimedSolve], triads: &[f64]) {
    let of = |part: fn(&TimedSolve) -> f64| median(all.iter().map(part));
    let iterations = of(|solve| solve.iterations);
    let each = of(|solve| 1e3 * solve.solve / solve.iterations);
    let each_used = of(|solve| 1e3 * solve.solve_used / solve.iterations);
    let ratio = |part: fn(&TimedSolve) -> f64| match theirs {
        [] => "-".to_owned(),
        _ => format!("{:.2}", median(all.iter().zip(theirs).map(|(ours, theirs)| part(ours) / part(theirs)))),
    };
    let fraction =
        |(solve, triad): (&TimedSolve, &f64)| solve.bytes_per_iteration * solve.iterations / solve.solve / triad;
    let fraction = median(all.iter().zip(triads).map(fraction));
    let fraction = if fraction.is_nan() { "-".to_owned() } else { format!("{fraction:.2}") };
    println!(
        "| {name} | {iterations} | {each:.1} | {each_used:.1} | {:.2} | {:.2} | {:.2} | {} | {} | {fraction} |",
        of(|solve| solve.setup_used),
        of(TimedSolve::whole),
        of(TimedSolve::used),
        ratio(TimedSolve::whole),
        ratio(TimedSolve::used)
    );
}

#[expect(clippy::disallowed_methods, reason = "a benchmark is its own system clock")]
fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let program = arguments.first().filter(|program| *program != "-");
    let number = |at: usize, usual| arguments.get(at).map_or(Ok(usual), |text| text.parse::<usize>());
    let side = number(1, 100)?;
    let rounds = number(2, 5)?;
    let only = arguments.get(3..).unwrap_or_default();
    let is_asked = |name: &str| only.is_empty() || only.iter().any(|part| name.contains(&part[..]));
    println!(
        "| grid, cores | solve | iterations | ms each | processor ms each | set-up s | whole s | processor s | whole / PETSc | processor / PETSc | of the triad |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let since = Since(Instant::now());
    for cores in [1, 2] {
        let pool = Arc::new(Pool::new(cores));
        let a = Csr::poisson3d(side).with_pool(Arc::clone(&pool));
        let b = vec![1.0; a.n()];
        let system = System { a: &a, b: &b, comm: &Solo, pool: &pool };
        let mut triad = Triad::new(&pool, TRIAD_LEN);
        for compared in &SOLVES {
            let asked: Vec<_> = compared.ours.iter().filter(|ours| is_asked(&ours.name(compared.name))).collect();
            let mut theirs = Vec::new();
            let mut mine = vec![Vec::new(); asked.len()];
            let mut triads = Vec::new();
            for _ in 0..rounds {
                if let Some(program) = program.filter(|_| !asked.is_empty()) {
                    theirs.push(petsc(program, cores, side, compared)?);
                }
                for (ours_of, mine) in asked.iter().zip(&mut mine) {
                    mine.push(ours(system, &a, compared, **ours_of)?);
                }
                triads.push(triad.bytes_per_second(&since));
            }
            if !theirs.is_empty() {
                let options = compared
                    .petsc
                    .replace("-ksp_type ", "")
                    .replace("-ksp_", "")
                    .replace("-pc_type ", "")
                    .replace("-sub_pc_type ", "");
                print(&format!("{side}^3, {cores} | PETSc: {options}"), &theirs, &[], &triads);
            }
            for (ours_of, mine) in asked.iter().zip(&mine) {
                print(&format!("{side}^3, {cores} | {}", ours_of.name(compared.name)), mine, &theirs, &triads);
            }
        }
    }
    Ok(())
}
