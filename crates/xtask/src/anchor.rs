//! Our solvers beside PETSc's, and PETSc's CG with our checkpoints beside itself: the same problem, in turns within one run.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{cargo, succeed};

/// Iterations of every solve: none converges before.
const ITERATIONS: &str = "150";
/// Ranks of PETSc, threads of ours.
const WORKERS: &str = "2";

/// A method: its name, PETSc's options, ours, and the operators we have it with.
type Method = (&'static str, &'static str, &'static str, &'static [&'static str]);

const METHODS: [Method; 3] = [
    ("CG + Jacobi", "-ksp_type cg -pc_type jacobi", "--method cg --pc jacobi", &["csr", "stencil"]),
    ("Jacobi", "-ksp_type richardson -pc_type jacobi", "--method jacobi", &["csr", "stencil"]),
    ("GMRES(30) + Jacobi", "-ksp_type gmres -pc_type jacobi", "--method gmres --restart 30 --pc jacobi", &["csr"]),
];

/// What is saved every 20 iterations of an attached solve: its name, and options of the session.
const SAVES: [(&str, &str); 3] = [
    ("x as it is", "scheme=traditional codec=raw state=x"),
    ("x, lossy and verified", "scheme=lossy state=x"),
    ("x and the direction, lossy and verified", "scheme=lossy state=x+p"),
];

/// Prints both tables.
pub(crate) fn run(root: &Path, sizes: &[u32], rounds: usize) -> Result<()> {
    succeed(cargo(root).args(["build", "--release", "--locked", "-p", "recoup-cli", "-p", "recoup-capi"]))?;
    let target = root.join(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from));
    let programs = Programs { petsc: driver(root, &target)?, ours: target.join("release/recoup") };
    programs.print_attached(sizes, rounds)?;
    programs.print_methods(sizes, rounds)
}

/// The example with PETSc, compiled; without its checkpoints it is a plain solve.
fn driver(root: &Path, target: &Path) -> Result<PathBuf> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "PETSc"]).output().context("pkg-config")?;
    if !flags.status.success() {
        bail!("pkg-config knows no PETSc: install petsc-dev");
    }
    let program = target.join("release/anchor-petsc");
    let mut command = Command::new("mpicc");
    command.current_dir(root).args(["-O3", "-march=native", "-Icrates/capi/include", "examples/embed/ksp.c"]);
    command.args(String::from_utf8(flags.stdout)?.split_whitespace());
    command.arg("-L").arg(target.join("release")).args(["-lrecoup_c", "-lm"]);
    command.arg(format!("-Wl,-rpath,{}", target.join("release").display())).arg("-o").arg(&program);
    succeed(&mut command)?;
    Ok(program)
}

/// What the example says of a solve.
struct Solved {
    iterations: f64,
    seconds: f64,
}

struct Programs {
    petsc: PathBuf,
    ours: PathBuf,
}

impl Programs {
    /// Milliseconds per iteration, ours over PETSc's.
    fn print_methods(&self, sizes: &[u32], rounds: usize) -> Result<()> {
        println!("\n| grid | method | operator | PETSc ms | ours ms | ours / PETSc |\n|---|---|---|---|---|---|");
        for size in sizes {
            for method in METHODS {
                for (operator, [petsc, ours]) in self.compare(*size, method, rounds)? {
                    let ratio = ours / petsc;
                    println!("| {size}^3 | {} | {operator} | {petsc:.2} | {ours:.2} | {ratio:.2} |", method.0);
                }
            }
        }
        Ok(())
    }

    /// What PETSc's CG takes attached over what it takes plain: one rank, its second core free, and a rank on each.
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
        let (mut plain, mut attached) = (Vec::new(), vec![Vec::new(); SAVES.len()]);
        let mut iterations = 0.0;
        // Short solves and many turns: what the machine does beside them changes from second to second.
        for round in 0..3 * rounds.max(1) {
            let undisturbed = solve(&["-plain"])?;
            plain.push(undisturbed.seconds);
            for (number, (save, ratios)) in SAVES.iter().zip(&mut attached).enumerate() {
                let kept = directory.path().join(format!("{round}-{number}"));
                let options = format!("dir={} interval=20it {}", kept.display(), save.1);
                let solved = solve(&["-ckpt", &options])?;
                if solved.iterations != undisturbed.iterations {
                    bail!("{} iterations attached, {} plain", solved.iterations, undisturbed.iterations);
                }
                ratios.push(solved.seconds / undisturbed.seconds);
                iterations = solved.iterations;
                std::fs::remove_dir_all(&kept)?;
            }
        }
        let seconds = median(plain);
        for ((save, _), ratios) in SAVES.iter().zip(attached) {
            let ratio = median(ratios);
            println!("| {size}^3 | {ranks} | {save} | {seconds:.2} | {ratio:.3} | {iterations} |");
        }
        Ok(())
    }

    /// Medians over rounds in which every program has its turn: milliseconds of PETSc and of ours, for each operator.
    fn compare(
        &self,
        size: u32,
        (_, petsc, ours, operators): Method,
        rounds: usize,
    ) -> Result<Vec<(&'static str, [f64; 2])>> {
        let (mut theirs, mut mine) = (Vec::new(), vec![Vec::new(); operators.len()]);
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
        let limited = format!("{options} -ksp_rtol 1e-12 -ksp_max_it {ITERATIONS}");
        let Solved { iterations, seconds } = self.petsc_solve(WORKERS, size, &limited, &["-plain"])?;
        Ok(1e3 * seconds / iterations)
    }

    fn petsc_solve(&self, ranks: &str, size: u32, options: &str, how: &[&str]) -> Result<Solved> {
        let mut command = Command::new("mpirun");
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.args(["-n", ranks]).arg(&self.petsc).args(["-n", &size.to_string()]);
        let output = command.args(options.split_whitespace()).args(how).output().context("mpirun")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let number = |word: &str| text.split(word).nth(1)?.trim().split([',', '\n']).next()?.trim().parse::<f64>().ok();
        let numbers = number("iterations").zip(number("seconds"));
        let failed = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        numbers.map(|(iterations, seconds)| Solved { iterations, seconds }).with_context(failed)
    }

    fn our_milliseconds(&self, size: u32, options: &str, operator: &str) -> Result<f64> {
        let mut command = Command::new(&self.ours);
        command.args(["solve", "--json", "--threads", WORKERS, "--poisson3d", &size.to_string()]);
        command.args(options.split_whitespace()).args(["--operator", operator]);
        // Exit code 3, not converged, is what so few iterations end with.
        let output = command.args(["--rtol", "1e-12", "--max-iterations", ITERATIONS]).output()?;
        let json: Value = serde_json::from_slice(&output.stdout)
            .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
        json["seconds_per_iteration"].as_f64().map(|seconds| 1e3 * seconds).context("no seconds_per_iteration")
    }
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
