//! Is `mpirun -n P recoup --mpi` the same program: the same solve, the same checkpoints, the same
//! exit code on all ranks?
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod drains;
mod memory;
mod multigrid;
mod spares;
mod survives;

use std::path::Path;
use std::process::Command;

use recoup_testkit::mpirun::{self, EndedJob};
use serde_json::Value;

const RANKS: [usize; 4] = [1, 2, 4, 8];

/// Runs `recoup` on several ranks.
fn job(ranks: usize, arguments: &str, dir: &Path) -> EndedJob {
    mpirun::job(ranks, |command| add(command, arguments, dir))
}

fn add(command: &mut Command, arguments: &str, dir: &Path) {
    command.arg(env!("CARGO_BIN_EXE_recoup")).args(arguments.split_whitespace()).args(["--mpi", "--json"]);
    command.current_dir(dir);
}

/// The one JSON object that one rank prints.
fn json(ranks: usize, arguments: &str, dir: &Path) -> Value {
    let job = job(ranks, arguments, dir);
    assert!(job.success(), "{ranks} ranks: {arguments}\n{job}");
    serde_json::from_str(&job.stdout).unwrap_or_else(|error| panic!("{ranks} ranks: {arguments}: {error}\n{job}"))
}

/// What one process without MPI prints.
fn alone(arguments: &str, dir: &Path) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    let output = command.args(arguments.split_whitespace()).arg("--json").current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../tests/data/{name}.mtx.gz")).display().to_string()
}

#[test]
fn an_mpi_is_found_without_a_launcher_and_one_that_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let solve = |library: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
        command.args(["solve", "--poisson3d", "4", "--method", "cg", "--mpi"]).current_dir(dir.path());
        let output = command.envs(library.map(|path| ("RECOUP_MPI", path))).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, stderr) = solve(None);
    assert_eq!(code, Some(0), "{stderr}");
    let (code, stderr) = solve(Some("/nowhere/libmpi.so"));
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("/nowhere/libmpi.so: cannot open") && stderr.contains("RECOUP_MPI"), "{stderr}");
}

#[test]
fn every_number_of_ranks_takes_the_iterations_of_one_process() {
    let dir = tempfile::tempdir().unwrap();
    let copter = data("copter2_lap");
    for problem in [
        "--poisson3d 24 --operator stencil --rhs-kind random --method cg --rtol 1e-8".to_owned(),
        "--poisson3d 24 --rhs-kind smooth --method gmres --pc jacobi --rtol 1e-8".to_owned(),
        "--poisson3d 24 --operator stencil --method jacobi --rtol 1e-2".to_owned(),
        format!("--matrix {copter} --rhs-kind random --method cg --pc jacobi --rtol 1e-4"),
        format!("--matrix {copter} --rhs-kind random --method gmres --pc jacobi --rtol 1e-4"),
    ] {
        let arguments = format!("solve {problem} --threads 1");
        let one = alone(&arguments, dir.path());
        for ranks in RANKS {
            let many = json(ranks, &arguments, dir.path());
            println!("{ranks} ranks, {problem}: {} and {} iterations", one["iterations"], many["iterations"]);
            let count = |value: &Value| value["iterations"].as_u64().unwrap();
            assert!(count(&one).abs_diff(count(&many)) <= 1, "{ranks} ranks, {problem}: {many}");
            assert_eq!((&many["n"], &many["nnz"], &many["ranks"]), (&one["n"], &one["nnz"], &Value::from(ranks)));
            // The residual is summed in another order than the one that ended the solve.
            let rtol = many["rtol"].as_f64().unwrap();
            assert!(many["relative_residual"].as_f64().unwrap() <= rtol * (1.0 + 1e-10), "{many}");
        }
    }
}

#[test]
fn failures_strike_all_ranks_and_all_go_on_from_one_version() {
    for (ranks, scheme) in [(2, "exact"), (4, "lossy")] {
        let dir = tempfile::tempdir().unwrap();
        let problem = "--poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8";
        let one = alone(&format!("solve {problem}"), dir.path());
        let protection = format!("--scheme {scheme} --interval 10it --dir d --failures at:25,47");
        let run = json(ranks, &format!("run {problem} {protection} --sync"), dir.path());
        assert_eq!((&run["failures"], &run["recoveries"]), (&Value::from(2), &Value::from(2)), "{run}");
        assert_eq!(run["converged"], true, "{run}");
        if scheme == "exact" {
            // Iterations done again are the same; those of the first solve were summed in another
            // order.
            let count = |value: &Value| value["iterations"].as_u64().unwrap();
            assert!(count(&run).abs_diff(count(&one)) <= 1, "{run}");
        }
        let listed = alone("inspect d", dir.path());
        assert_eq!(listed["runs"][0]["versions"][0]["ranks"], ranks, "{listed}");
        alone("verify d", dir.path());
    }
}

/// sherman1 is of a 10 x 10 x 10 grid. Each rank has whole slices of it, and a version that another
/// number of ranks reads, or one process, has the grid again.
#[test]
fn rows_of_a_matrix_file_lie_on_the_grid_that_was_named() {
    let dir = tempfile::tempdir().unwrap();
    let problem = format!("--matrix {} --method bicgstab --pc jacobi --rtol 1e-6 --threads 1", data("sherman1"));
    let protection = "--scheme lossy --codec pyramid --bound range:1e-4 --interval 10it --sync";
    for ranks in [1, 2, 3] {
        for (name, grid, extents) in [("line", "", [1000, 1, 1]), ("grid", "--grid 10x10x10", [10; 3])] {
            let run = format!("{name}{ranks}");
            json(ranks, &format!("run {problem} {protection} --dir {run} {grid}"), dir.path());
            let exported = alone(&format!("export {run} --solution --to {run}.h5"), dir.path());
            assert_eq!(exported["variables"][0]["dims"], serde_json::json!(extents), "{run}: {exported}");
        }
    }
    let job = job(2, &format!("solve {problem} --grid 10x10x11"), dir.path());
    assert_eq!(job.status.code(), Some(2), "{job}");
    assert_eq!(job.stderr.matches("--grid 10x10x11 has 1100 points, and the matrix 1000 rows").count(), 1, "{job}");
}

/// Files of the versions of a run.
#[cfg(all(feature = "cuda", target_os = "linux", target_env = "gnu"))]
fn files(folder: &Path) -> std::collections::BTreeMap<std::path::PathBuf, Vec<u8>> {
    let list = |folder: &Path| -> Vec<std::path::PathBuf> {
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.exists()).collect()
    };
    let all = list(folder).into_iter().filter(|path| path.is_dir()).flat_map(|version| list(&version));
    all.map(|path| (path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap())).collect()
}

/// On the double of a device, which both share: values between them go by the host.
#[cfg(all(feature = "cuda", target_os = "linux", target_env = "gnu"))]
#[test]
fn two_ranks_on_a_device_write_the_versions_of_two_on_the_host_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(recoup_cuda_double::Double::path(), dir.path().join("libcuda.so")).unwrap();
    for operator in ["csr", "stencil"] {
        let problem =
            format!("--poisson3d 10 --operator {operator} --rhs-kind random --method cg --pc jacobi --rtol 1e-8");
        let protection = "--scheme lossy --codec qb --interval 5it --keep 100 --failures at:12 --sync --threads 1";
        let on = |place: &str| {
            let ended = mpirun::job(2, |command| {
                command.args(["env", &format!("LD_LIBRARY_PATH={}", dir.path().display())]);
                add(command, &format!("run {problem} {protection} --dir {operator}{place} {place}"), dir.path());
            });
            assert!(ended.success(), "{operator} {place}: {ended}");
            files(&dir.path().join(format!("{operator}{place}/solve")))
        };
        let [host, device] = ["", "--device"].map(on);
        assert!(host.len() > 12, "{operator}: {:?}", host.keys());
        assert_eq!(host.keys().collect::<Vec<_>>(), device.keys().collect::<Vec<_>>(), "{operator}");
        host.iter().for_each(|(name, bytes)| assert!(device[name] == *bytes, "{operator}: {} differs", name.display()));
    }
}

#[test]
fn failures_by_the_clock_strike_all_ranks_at_the_same_iteration() {
    let dir = tempfile::tempdir().unwrap();
    let problem = "--poisson3d 24 --rhs-kind random --method cg --rtol 1e-9 --baseline-iterations 100";
    let protection = "--scheme lossy --interval 5it --dir d --failures inject --mtti 0.5 --seed 3";
    let run = json(3, &format!("run {problem} {protection}"), dir.path());
    assert_eq!(run["converged"], true, "{run}");
}

#[test]
fn ranks_give_one_solution_one_log_and_start_from_one_guess() {
    let dir = tempfile::tempdir().unwrap();
    let problem = "--poisson3d 16 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1";
    let solved = json(3, &format!("solve {problem} --solution x.npy --residual-log r.csv"), dir.path());
    let lines = std::fs::read_to_string(dir.path().join("r.csv")).unwrap().lines().count() as u64;
    assert_eq!(lines, solved["iterations"].as_u64().unwrap() + 1);
    for again in [
        alone(&format!("solve {problem} --x0 x.npy"), dir.path()),
        json(2, &format!("solve {problem} --x0 x.npy"), dir.path()),
    ] {
        // The residual that met the tolerance on three ranks is summed in another order.
        assert!(again["iterations"].as_u64().unwrap() <= 1, "{again}");
    }
    let refused = job(2, &format!("solve {problem} --solution no/x.npy"), dir.path());
    assert!(
        refused.status.code() == Some(2) && refused.stderr.matches("there is no directory").count() == 1,
        "{refused}"
    );
}

#[test]
fn ranks_stop_together_before_the_end_and_save_the_solution_together() {
    let dir = tempfile::tempdir().unwrap();
    let run = "run --poisson3d 16 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1 --scheme lossy \
               --interval 10it --dir d";
    let stopped = job(3, &format!("{run} --t-iter 200ms --time-limit 2s"), dir.path());
    assert_eq!(stopped.status.code(), Some(75), "{stopped}");
    let report: Value = serde_json::from_str(&stopped.stdout).unwrap();
    let resumed = json(2, run, dir.path());
    assert_eq!(resumed["resumed_from"], report["iterations"], "{resumed}");
    assert_eq!(resumed["solution_version"], resumed["iterations"], "{resumed}");
    let status = alone("status d", dir.path())["runs"][0].clone();
    assert_eq!((&status["state"], &status["ranks"]), (&Value::from("converged"), &Value::from(2)), "{status}");
    alone("export d --solution --to x.mtx", dir.path());
    let again = job(2, &format!("{run} --solution y.mtx --stop-before 1min"), dir.path());
    // Each rank said so, before any knew that it was not the first.
    assert_eq!(again.stderr.matches("--stop-before has no effect").count(), 1, "{again}");
    let again: Value = serde_json::from_str(&again.stdout).unwrap();
    assert_eq!(again["iterations_executed"], 0, "{again}");
    let read = |name: &str| std::fs::read(dir.path().join(name)).unwrap();
    assert_eq!(read("x.mtx"), read("y.mtx"));
}

#[test]
fn all_ranks_end_with_the_code_of_one() {
    let dir = tempfile::tempdir().unwrap();
    for (ranks, arguments, code, expected) in [
        (2, "solve --matrix none.mtx --method cg", 1, "none.mtx"),
        (3, "solve --poisson3d 2 --operator stencil --method cg", 2, "3 ranks cannot share 2 planes"),
        (2, "solve --poisson3d 12 --method cg --max-iterations 3", 3, ""),
        (2, "run --poisson3d 8 --method cg --scheme lossy --dir /proc/none", 1, "/proc/none"),
    ] {
        let job = job(ranks, arguments, dir.path());
        assert_eq!(job.status.code(), Some(code), "{arguments}\n{job}");
        assert!(job.stderr.contains(expected), "{arguments}\n{job}");
        assert!(job.stderr.matches("error: ").count() <= 1, "{arguments}\n{job}");
    }
}
