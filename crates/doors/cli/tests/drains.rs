//! Many ranks whose versions continue from memory to the directory behind the run: is what arrives
//! there whole, whoever shares a file, and does it come back on another number of ranks?
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::path::Path;
use std::process::Command;

use recoup_testkit::mpirun;
use serde_json::Value;

const SOLVE: &str = "run --mpi --json --poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1";
const SAVE: &str = "--scheme exact --interval 5it --tiers memory,pfs --pfs-every 1 --memory-dir m --dir d";

fn run(ranks: usize, more: &str, dir: &Path) -> Value {
    std::fs::create_dir_all(dir.join("m")).unwrap();
    let job = mpirun::job(ranks, |command| {
        command.arg(env!("CARGO_BIN_EXE_recoup")).current_dir(dir);
        command.args(format!("{SOLVE} {SAVE} {more}").split_whitespace());
    });
    let line = job.stdout.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("{job}"))).unwrap()
}

#[test]
fn what_is_drained_behind_the_ranks_comes_back_on_fewer_from_files_they_share_or_not() {
    for (files, expected) in [("rank", 4), ("node", 2), ("one", 1)] {
        let dir = tempfile::tempdir().unwrap();
        let first = run(
            4,
            &format!("--drain wait --node-ranks 2 --files {files} --no-save-last --max-iterations 27"),
            dir.path(),
        );
        assert_eq!((&first["checkpoints"], &first["notes"]), (&Value::from(5), &Value::Array(Vec::new())), "{first}");
        let version = std::fs::read_dir(dir.path().join("d/solve/v000000000025")).unwrap().flatten();
        let found = version.filter(|entry| entry.file_name().to_string_lossy().starts_with("rank")).count();
        assert_eq!(found, expected, "--files {files}");
        std::fs::remove_dir_all(dir.path().join("m")).unwrap();
        let second = run(3, "", dir.path());
        assert_eq!(second["resumed_from"], 25, "{files}: {second}");
        assert_eq!(second["converged"], true, "{files}: {second}");
        let verified =
            Command::new(env!("CARGO_BIN_EXE_recoup")).args(["verify", "d"]).current_dir(dir.path()).output();
        assert_eq!(verified.unwrap().status.code(), Some(0), "{files}");
    }
}
