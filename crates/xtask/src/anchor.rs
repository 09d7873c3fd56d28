//! Our solvers beside PETSc's, and PETSc's CG with our checkpoints beside itself: the same problem,
//! in turns within one run.

mod blocks;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use serde_json::Value;

use crate::{cargo, succeed};

/// One of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnchorTable {
    /// The cost of one checkpoint to PETSc's CG, by blocks of 20 iterations with and without one,
    /// next to a file written by hand.
    Blocks,
    /// Milliseconds per iteration of our solvers on two threads and of PETSc's on two ranks.
    Iterations,
    /// Whole solves of ours with preconditioners and bases, on one thread and two, and of PETSc's
    /// on as many ranks: time, and time of all processors.
    Solves,
}

impl AnchorTable {
    /// The grids where none are named.
    fn sizes(self) -> &'static [u32] {
        match self {
            Self::Iterations => &[100, 128],
            Self::Blocks | Self::Solves => &[100],
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
        name: "GMRES(30) + Jacobi, basis double",
        petsc: "-ksp_type gmres -pc_type jacobi",
        ours: "--method gmres --basis double --restart 30 --pc jacobi",
        operators: &["csr"],
    },
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
            AnchorTable::Blocks => {
                let source = "crates/xtask/src/anchor/blocks.c";
                let program = driver(root, &target, source, &target.join("anchor-blocks"))?;
                blocks::print(&program, sizes, rounds)?;
            }
            AnchorTable::Iterations => programs.print_methods(sizes, rounds)?,
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

    fn petsc_milliseconds(&self, size: u32, options: &str) -> Result<f64> {
        let mut command = mpirun(WORKERS, &self.petsc);
        command.args(["-n", &size.to_string()]).args(options.split_whitespace());
        command.args(["-ksp_rtol", "1e-12", "-ksp_max_it", ITERATIONS, "-plain"]);
        let output = command.output().context("mpirun")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |word: &str| text.split(word).nth(1)?.trim().split([',', '\n']).next()?.trim().parse::<f64>().ok();
        let failed = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        let (iterations, seconds) = number("iterations").zip(number("seconds")).with_context(failed)?;
        Ok(1e3 * seconds / iterations)
    }

    /// Milliseconds that a solve of ours prints. Its exit code is 3, not converged, as so few
    /// iterations end with.
    fn our_milliseconds(&self, size: u32, options: &str, operator: &str) -> Result<f64> {
        let mut command = Command::new(&self.ours);
        command.args(["solve", "--threads", WORKERS, "--json", "--poisson3d", &size.to_string()]);
        command.args(["--operator", operator]).args(options.split_whitespace());
        let output = command.args(["--rtol", "1e-12", "--max-iterations", ITERATIONS]).output()?;
        let complaint = || String::from_utf8_lossy(&output.stderr).into_owned();
        let json: Value = serde_json::from_slice(&output.stdout).with_context(complaint)?;
        json["seconds_per_iteration"].as_f64().map(|seconds| 1e3 * seconds).context("no seconds_per_iteration")
    }
}

/// A program on `ranks` ranks, a core each.
fn mpirun(ranks: &str, program: &Path) -> Command {
    let mut command = Command::new("mpirun");
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["-n", ranks]).arg(program);
    command
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
