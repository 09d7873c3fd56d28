//! `--pc amg`: iterations that do not grow with the grid, the same bits on the same ranks, versions
//! under it, and what is refused. Skipped where hypre is not there.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::{Command, Output};

use recoup_testkit::mpirun;
use serde_json::Value;

use super::{job, json};

/// The program with these words, in one process without `--mpi`.
fn recoup(arguments: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(arguments.split_whitespace()).current_dir(dir).env_remove("RECOUP_HYPRE");
    command
}

fn ended(mut command: Command, code: i32) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{command:?}\n{}", said(&output));
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn told(arguments: &str, dir: &Path, code: i32) -> Value {
    serde_json::from_slice(&ended(recoup(&format!("{arguments} --json"), dir), code).stdout).unwrap()
}

/// Whether `recoup doctor` finds hypre; says that a test is skipped otherwise.
fn is_there() -> bool {
    let report = told("doctor", Path::new("/"), 0);
    let found =
        report["checks"].as_array().unwrap().iter().any(|check| check["name"] == "hypre" && check["state"] == "yes");
    if !found {
        println!("SKIPPED: no hypre; scripts/bootstrap.sh test-all installs libhypre-dev");
    }
    found
}

/// The bits of a solve, as far as a report has them.
fn bits(report: &Value) -> [&Value; 2] {
    ["iterations", "relative_residual"].map(|key| &report[key])
}

/// Two grids with 27 times the unknowns: CG with the diagonal takes three times the iterations, and
/// a V-cycle as good on all grids takes the same. One quarter more is left for the boundary.
#[test]
fn iterations_of_multigrid_do_not_grow_with_the_grid() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let count = |n: u32, method: &str, pc: &str| {
        let solve = format!("solve --poisson3d {n} --rhs-kind random --method {method} --rtol 1e-8 --pc {pc}");
        let report = told(&solve, dir.path(), 0);
        println!("{n}^3, {method} with {pc}: {} iterations", report["iterations"]);
        report["iterations"].as_u64().unwrap()
    };
    for method in ["cg", "pipecg", "gmres", "gmres --pc-side right", "bicgstab"] {
        let [small, large] = [12, 36].map(|n| count(n, method, "amg"));
        assert!(4 * large <= 5 * small + 4, "{method}: {small}, {large}");
        assert!(3 * large < count(36, method, "jacobi"), "{method}: {large}");
    }
}

#[test]
fn one_hierarchy_spans_all_ranks_and_gives_the_same_bits_again() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let solve = "solve --poisson3d 20 --rhs-kind random --method cg --rtol 1e-8 --pc amg --threads 1";
    let one = told(solve, dir.path(), 0);
    for ranks in [1, 2, 4] {
        let [first, again] = [(); 2].map(|()| json(ranks, solve, dir.path()));
        assert_eq!(bits(&first), bits(&again), "{ranks} ranks");
        assert_eq!(first["ranks"], ranks);
        // Sweeps are cut at ranks, and the matrix is not: that costs a few.
        let [one, many] = [&one, &first].map(|report| report["iterations"].as_u64().unwrap());
        assert!(many <= one + 4, "{ranks} ranks: {many} iterations, {one} alone");
        assert!(ranks > 1 || bits(&first) == bits(&told(solve, dir.path(), 0)), "{first}");
    }
}

#[test]
fn a_run_under_multigrid_comes_back_with_the_bits_of_the_undisturbed_one() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let run = |pc: &str, more: &str| {
        let problem = format!("--poisson3d 20 --rhs-kind random --method cg --rtol 1e-10 --pc {pc} --threads 1");
        format!("run {problem} --scheme exact --interval 2it --sync --no-save-last {more}")
    };
    let undisturbed = told(&run("amg", "--dir one"), dir.path(), 0);
    told(&run("amg", "--dir d --max-iterations 5"), dir.path(), 3);
    let resumed = told(&run("amg", "--dir d"), dir.path(), 0);
    assert_eq!(resumed["resumed_from"], 4, "{resumed}");
    assert_eq!(bits(&resumed), bits(&undisturbed));
    told(&run("amg", "--dir d --fresh --max-iterations 5"), dir.path(), 3);
    let output = ended(recoup(&run("jacobi", "--dir d"), dir.path()), 0);
    let words = ["was saved by cg with amg of hypre 2", ": cg with jacobi starts from its iterate alone"];
    assert!(words.iter().all(|words| said(&output).contains(words)), "{output:?}");
    let killed = told(&run("amg", "--dir k --failures kill --mtti 0.05 --seed 3"), dir.path(), 0);
    println!("{} kills", killed["failures"]);
    assert_eq!(bits(&killed), bits(&undisturbed));
    let [first, second] =
        ["--max-iterations 5", ""].map(|more| job(2, &run("amg", &format!("--dir m {more}")), dir.path()));
    assert_eq!(first.status.code(), Some(3), "{first}");
    let whole = json(2, &run("amg", "--dir w"), dir.path());
    assert_eq!(bits(&serde_json::from_str(&second.stdout).unwrap()), bits(&whole), "{second}");
}

#[test]
fn what_multigrid_cannot_do_is_refused_by_name() {
    if !is_there() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, size: usize, entries: &[&str]| {
        let head = format!("%%MatrixMarket matrix coordinate real general\n{size} {size} {}\n", entries.len());
        std::fs::write(dir.path().join(name), head + &entries.join("\n") + "\n").unwrap();
    };
    write("zero.mtx", 2, &["1 1 4.0", "1 2 1.0", "2 1 1.0"]);
    write("empty.mtx", 3, &["1 1 4.0", "2 2 1.0"]);
    write("absent.mtx", 3, &["1 1 4.0", "2 2 1.0", "3 1 1.0"]);
    write("nan.mtx", 2, &["1 1 4.0", "2 2 nan"]);
    write("row.mtx", 1, &["1 1 4.0"]);
    let gmres = "--method gmres --pc amg";
    for (words, code, expected) in [
        (format!("solve --matrix zero.mtx {gmres}"), 1, "usable diagonal: row 2 has 0"),
        (format!("solve --matrix absent.mtx {gmres}"), 1, "usable diagonal: row 3 has 0"),
        (format!("solve --matrix empty.mtx {gmres}"), 1, "an entry in each row expected"),
        (format!("solve --matrix nan.mtx {gmres}"), 1, "nan.mtx"),
        (format!("solve --matrix row.mtx {gmres}"), 0, ""),
        (format!("solve --poisson3d 4 --operator stencil {gmres}"), 2, "--pc amg needs assembled rows"),
        ("solve --poisson3d 4 --method jacobi --pc amg".to_owned(), 2, "takes no preconditioner"),
        (format!("run --mpi --spares 1 --poisson3d 4 {gmres} --dir d"), 2, "--pc amg does not survive a lost rank"),
    ] {
        let err = said(&ended(recoup(&words, dir.path()), code));
        assert!(err.contains(expected), "{words}\n{err}");
    }
    // A row of one rank is named by its number among all, and no rank waits for the other.
    let zeros = job(2, &format!("solve --matrix absent.mtx {gmres}"), dir.path());
    assert!(zeros.stderr.contains("row 3 has 0") && zeros.status.code() == Some(1), "{zeros}");
    let alone = mpirun::job(2, |command| {
        let words = format!("solve --poisson3d 4 {gmres}");
        command.arg(env!("CARGO_BIN_EXE_recoup")).args(words.split_whitespace()).current_dir(dir.path());
    });
    assert!(alone.stderr.contains("a launcher started 2 processes: add --mpi"), "{alone}");
}

#[test]
fn a_library_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text.so"), "no library").unwrap();
    let solve = "solve --poisson3d 4 --method cg --pc amg";
    for (library, expected) in [
        ("/nowhere/libHYPRE.so", "/nowhere/libHYPRE.so: cannot open"),
        ("./text.so", "./text.so"),
        ("libm.so.6", "it has no HYPRE_ClearAllErrors"),
    ] {
        let mut command = recoup(solve, dir.path());
        command.env("RECOUP_HYPRE", library);
        let err = said(&ended(command, 5));
        assert!(err.contains(expected) && err.contains("RECOUP_HYPRE"), "{library}\n{err}");
    }
    let Some(mpich) = mpirun::mpich().filter(|_| is_there()) else {
        println!("SKIPPED: no MPICH next to hypre");
        return;
    };
    let other = mpirun::mpich_job(&mpich, 2, |command| {
        command.arg(env!("CARGO_BIN_EXE_recoup")).args(format!("{solve} --mpi").split_whitespace());
    });
    assert!(other.stderr.contains("which is not the MPI of this job") && other.stderr.contains("libmpi"), "{other}");
}
