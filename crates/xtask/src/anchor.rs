//! Our solvers beside PETSc's, PETSc's CG with our checkpoints beside itself, and our ranks beside
//! our threads: the same problem, in turns within one run.

mod blocks;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use crate::{cargo, succeed};

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnchorTable {
    /// The cost of checkpoints every 20 iterations to PETSc's CG, on one rank and on two.
    Attached,
    /// The cost of one checkpoint to PETSc's CG, by blocks of 20 iterations with and without one,
    /// next to a file written by hand.
    Blocks,
    /// Milliseconds per iteration of our solvers on two threads and of PETSc's on two ranks.
    Iterations,
    /// Milliseconds per iteration of our CG on two ranks and on two threads.
    Ranks,
    /// Whole solves of ours with preconditioners and bases, on one thread and two, and of PETSc's
    /// on as many ranks: time, and time of all processors.
    Solves,
}

impl AnchorTable {
    /// The grids where none are named.
    fn sizes(self) -> &'static [u32] {
        match self {
            Self::Attached | Self::Iterations => &[100, 128],
            Self::Blocks | Self::Solves => &[100],
            Self::Ranks => &[128],
        }
    }
}

/// Iterations of every solve: none converges before.
const ITERATIONS: &str = "150";
/// Ranks of PETSc, threads of ours.
const WORKERS: &str = "2";

/// A method of both programs.
struct ComparedMethod {
    name: &'static str,
    petsc: &'static str,
    ours: &'static str,
    /// Operators that ours has it with.
    operators: &'static [&'static str],
}

const METHODS: [ComparedMethod; 3] = [
    ComparedMethod {
        name: "CG + Jacobi",
        petsc: "-ksp_type cg -pc_type jacobi",
        ours: "--method cg --pc jacobi",
        operators: &["csr", "stencil"],
    },
    ComparedMethod {
        name: "Jacobi",
        petsc: "-ksp_type richardson -pc_type jacobi",
        ours: "--method jacobi",
        operators: &["csr", "stencil"],
    },
    ComparedMethod {
        name: "GMRES(30) + Jacobi",
        petsc: "-ksp_type gmres -pc_type jacobi",
        ours: "--method gmres --restart 30 --pc jacobi",
        operators: &["csr"],
    },
];

/// The version saved every 20 iterations of an attached solve: its name, and options of the
/// session; none for a second plain solve, which says what the machine does by itself.
const SAVES: [(&str, &str); 4] = [
    ("nothing, not attached", ""),
    ("x as it is", "scheme=traditional codec=raw state=x"),
    ("x, lossy and verified", "scheme=lossy state=x"),
    ("x and the direction, lossy and verified", "scheme=lossy state=x+p"),
];

/// Prints these tables, or all, for grids of these sizes, or the usual ones; of whole solves those
/// with one of the names, or all.
pub(crate) fn run(root: &Path, tables: &[AnchorTable], sizes: &[u32], rounds: usize, only: &[String]) -> Result<()> {
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from));
    let tables = if tables.is_empty() { AnchorTable::value_variants() } else { tables };
    let (solves, others): (Vec<AnchorTable>, Vec<AnchorTable>) =
        tables.iter().partition(|table| **table == AnchorTable::Solves);
    for table in solves {
        print_solves(root, &target, if sizes.is_empty() { table.sizes() } else { sizes }, rounds, only)?;
    }
    if others.is_empty() {
        return Ok(());
    }
    let build = ["build", "--release", "--locked", "-p", "recoup-cli", "-p", "recoup-capi"];
    succeed(cargo(root).args(build))?;
    let target = target.join("release");
    let petsc = driver(root, &target, "examples/embed/ksp.c", &target.join("anchor-petsc"))?;
    let programs = Programs { petsc, ours: target.join("recoup") };
    for table in others {
        let sizes = if sizes.is_empty() { table.sizes() } else { sizes };
        match table {
            AnchorTable::Attached => programs.print_attached(sizes, rounds)?,
            AnchorTable::Blocks => {
                let source = "crates/xtask/src/anchor/blocks.c";
                let program = driver(root, &target, source, &target.join("anchor-blocks"))?;
                blocks::print(&program, sizes, rounds)?;
            }
            AnchorTable::Iterations => programs.print_methods(sizes, rounds)?,
            AnchorTable::Ranks => programs.print_ranks(sizes, rounds)?,
            AnchorTable::Solves => {}
        }
        println!();
    }
    Ok(())
}

/// Prints whole solves: the benchmark of the solvers gives PETSc's program its turns.
fn print_solves(root: &Path, target: &Path, sizes: &[u32], rounds: usize, only: &[String]) -> Result<()> {
    let folder = target.join("release");
    std::fs::create_dir_all(&folder)?;
    let program = compiled(root, "crates/xtask/src/anchor/solve.c", &folder.join("anchor-solve"), &[])?;
    for size in sizes {
        let mut bench = cargo(root);
        bench.args(["bench", "--locked", "--package", "recoup-solvers", "--bench", "solves", "--"]);
        succeed(bench.arg(&program).args([size.to_string(), rounds.to_string()]).args(only))?;
    }
    Ok(())
}

/// Compiles a program with PETSc and the librecoup in `folder`; its path.
pub(crate) fn driver(root: &Path, folder: &Path, source: &str, program: &Path) -> Result<PathBuf> {
    // The name that programs linked with it look for, as its installation has it.
    let soname = folder.join(concat!("librecoup.so.", env!("CARGO_PKG_VERSION_MAJOR")));
    match std::os::unix::fs::symlink("librecoup_c.so", &soname) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => bail!("{}: {error}", soname.display()),
        _ => (),
    }
    let from = format!("-L{}", folder.display());
    let found = format!("-Wl,--disable-new-dtags,-rpath,{}", folder.display());
    compiled(root, source, program, &[&from, "-lrecoup_c", &found])
}

/// Compiles a program with PETSc; its path.
fn compiled(root: &Path, source: &str, program: &Path, options: &[&str]) -> Result<PathBuf> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "PETSc"]).output().context("pkg-config")?;
    if !flags.status.success() {
        bail!("pkg-config knows no PETSc: install petsc-dev");
    }
    let mut command = Command::new("mpicc");
    command.current_dir(root).args(["-O3", "-march=native", "-Icrates/doors/capi/include", source]);
    command.args(String::from_utf8(flags.stdout)?.split_whitespace());
    command.args(options).args(["-lm", "-lpthread", "-o"]).arg(program);
    succeed(&mut command)?;
    Ok(program.to_owned())
}

/// The result of a solve as the example prints it.
struct TimedSolve {
    iterations: f64,
    seconds: f64,
}

struct Programs {
    /// The example with PETSc; without its checkpoints it is a plain solve.
    petsc: PathBuf,
    ours: PathBuf,
}

impl Programs {
    /// Milliseconds per iteration, ours over PETSc's.
    fn print_methods(&self, sizes: &[u32], rounds: usize) -> Result<()> {
        println!("| grid | method | operator | PETSc ms | ours ms | ours / PETSc |\n|---|---|---|---|---|---|");
        for size in sizes {
            for method in &METHODS {
                for (operator, [petsc, ours]) in self.compare(*size, method, rounds)? {
                    let ratio = ours / petsc;
                    println!("| {size}^3 | {} | {operator} | {petsc:.2} | {ours:.2} | {ratio:.2} |", method.name);
                }
            }
        }
        Ok(())
    }

    /// Prints the time of PETSc's CG attached over its time alone: one rank, its second core free,
    /// and a rank on each.
    fn print_attached(&self, sizes: &[u32], rounds: usize) -> Result<()> {
        println!(
            "| grid | ranks | saved every 20 iterations | plain s | attached / plain | iterations |\n|---|---|---|---|---|---|"
        );
        for size in sizes {
            for ranks in ["1", WORKERS] {
                self.print_attached_on(*size, ranks, rounds)?;
            }
        }
        Ok(())
    }

    fn print_attached_on(&self, size: u32, ranks: &str, rounds: usize) -> Result<()> {
        let directory = tempfile::tempdir()?;
        let solve = |how: &[&str]| {
            self.petsc_solve(ranks, size, "-random -ksp_type cg -pc_type jacobi -ksp_rtol 1e-12 -ksp_max_it 141", how)
        };
        let mut plain = Vec::new();
        let mut attached = vec![Vec::new(); SAVES.len()];
        let mut iterations = 0.0;
        // Short solves and many turns: what the machine does beside them changes from second to
        // second.
        for round in 0..3 * rounds.max(1) {
            let undisturbed = solve(&["-plain"])?;
            plain.push(undisturbed.seconds);
            for (number, (save, ratios)) in SAVES.iter().zip(&mut attached).enumerate() {
                let kept = directory.path().join(format!("{round}-{number}"));
                let options = format!("dir={} interval=20it {}", kept.display(), save.1);
                let how = ["-ckpt", &options];
                let solved = solve(if save.1.is_empty() { &["-plain"] } else { &how })?;
                if solved.iterations != undisturbed.iterations {
                    bail!("{} iterations attached, {} plain", solved.iterations, undisturbed.iterations);
                }
                ratios.push(solved.seconds / undisturbed.seconds);
                iterations = solved.iterations;
                if kept.exists() {
                    std::fs::remove_dir_all(&kept)?;
                }
            }
        }
        let seconds = median(plain);
        for ((save, _), ratios) in SAVES.iter().zip(attached) {
            let ratio = median(ratios);
            println!("| {size}^3 | {ranks} | {save} | {seconds:.2} | {ratio:.3} | {iterations} |");
        }
        Ok(())
    }

    /// Medians over rounds in which every program has its turn: milliseconds of PETSc and of ours,
    /// for each operator.
    fn compare(&self, size: u32, method: &ComparedMethod, rounds: usize) -> Result<Vec<(&'static str, [f64; 2])>> {
        let ComparedMethod { petsc, ours, operators, .. } = method;
        let mut theirs = Vec::new();
        let mut mine = vec![Vec::new(); operators.len()];
        for _ in 0..rounds.max(1) {
            theirs.push(self.petsc_milliseconds(size, petsc)?);
            for (operator, times) in operators.iter().zip(&mut mine) {
                times.push(self.our_milliseconds(size, ours, operator)?);
            }
        }
        let theirs = median(theirs);
        Ok(operators.iter().zip(mine).map(|(operator, times)| (*operator, [theirs, median(times)])).collect())
    }

    /// Milliseconds per iteration of CG on ranks of one thread, and on as many threads of one
    /// process.
    fn print_ranks(&self, sizes: &[u32], rounds: usize) -> Result<()> {
        println!(
            "| grid | operator | {WORKERS} threads ms | {WORKERS} ranks ms | ranks / threads |\n|---|---|---|---|---|"
        );
        let options = "--method cg --pc jacobi --rhs-kind random";
        for size in sizes {
            for operator in ["csr", "stencil"] {
                let mut threads = Vec::new();
                let mut ranks = Vec::new();
                for _ in 0..rounds.max(1) {
                    threads.push(self.our_milliseconds(*size, options, operator)?);
                    ranks.push(self.our_milliseconds_on_ranks(*size, options, operator)?);
                }
                let ratio = median(ranks.iter().zip(&threads).map(|(ranks, threads)| ranks / threads).collect());
                let threads = median(threads);
                let ranks = median(ranks);
                println!("| {size}^3 | CG + Jacobi, {operator} | {threads:.2} | {ranks:.2} | {ratio:.2} |");
            }
        }
        Ok(())
    }

    fn petsc_milliseconds(&self, size: u32, options: &str) -> Result<f64> {
        let limited = format!("{options} -ksp_rtol 1e-12 -ksp_max_it {ITERATIONS}");
        let TimedSolve { iterations, seconds } = self.petsc_solve(WORKERS, size, &limited, &["-plain"])?;
        Ok(1e3 * seconds / iterations)
    }

    fn petsc_solve(&self, ranks: &str, size: u32, options: &str, how: &[&str]) -> Result<TimedSolve> {
        let mut command = mpirun(ranks, &self.petsc);
        command.args(["-n", &size.to_string()]).args(options.split_whitespace()).args(how);
        let output = command.output().context("mpirun")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |word: &str| text.split(word).nth(1)?.trim().split([',', '\n']).next()?.trim().parse::<f64>().ok();
        let numbers = number("iterations").zip(number("seconds"));
        let failed = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        numbers.map(|(iterations, seconds)| TimedSolve { iterations, seconds }).with_context(failed)
    }

    fn our_milliseconds(&self, size: u32, options: &str, operator: &str) -> Result<f64> {
        let mut command = Command::new(&self.ours);
        command.args(["solve", "--threads", WORKERS]);
        milliseconds(&solve(&mut command, size, options, operator).output()?)
    }

    fn our_milliseconds_on_ranks(&self, size: u32, options: &str, operator: &str) -> Result<f64> {
        let mut command = mpirun(WORKERS, &self.ours);
        command.args(["solve", "--mpi", "--threads", "1"]);
        milliseconds(&solve(&mut command, size, options, operator).output().context("mpirun")?)
    }
}

/// A program on `ranks` ranks, a core each.
fn mpirun(ranks: &str, program: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["-n", ranks]).arg(program);
    command
}

/// Adds what every solve of ours is asked for.
fn solve<'a>(command: &'a mut Command, size: u32, options: &str, operator: &str) -> &'a mut Command {
    command.args(["--json", "--poisson3d", &size.to_string(), "--operator", operator]);
    command.args(options.split_whitespace()).args(["--rtol", "1e-12", "--max-iterations", ITERATIONS])
}

/// Returns the milliseconds that a solve of ours prints. Its exit code is 3, not converged, as so
/// few iterations end with.
fn milliseconds(output: &Output) -> Result<f64> {
    let complaint = || String::from_utf8_lossy(&output.stderr).into_owned();
    let json: Value = serde_json::from_slice(&output.stdout).with_context(complaint)?;
    json["seconds_per_iteration"].as_f64().map(|seconds| 1e3 * seconds).context("no seconds_per_iteration")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
    }
}
