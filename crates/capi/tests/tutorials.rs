//! The tutorials of docs/start for programs in C run as they are printed, with an installed prefix.

use std::path::Path;
use std::process::Command;

use crate::build::{has, library_folder, output, root};

/// The script of a page: its first block fenced as `bash`.
fn script(page: &str) -> String {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let block = page.split("```bash\n").nth(1).and_then(|rest| rest.split_once("```"));
    block.expect("the page has a script").0.to_owned()
}

/// A home with recoup in `.local`, where the tutorials look for it, and the sources they compile.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let words =
        [format!("PREFIX={}", home.path().join(".local").display()), format!("BUILT={}", library_folder().display())];
    output(&["make", "-C", root().to_str().unwrap(), "install-library", &words[0], &words[1]]);
    std::os::unix::fs::symlink(root().join("examples"), home.path().join("examples")).unwrap();
    home
}

/// Runs a script in a home; what it printed.
fn run(script: &str, home: &Path) -> String {
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "200", "bash", "-c", script]).current_dir(home).env("HOME", home);
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    command.env("OMPI_MCA_rmaps_base_oversubscribe", "1");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{script}\n{printed}\n{}", String::from_utf8_lossy(&output.stderr));
    printed
}

/// The number behind each place of a word.
fn numbers(text: &str, word: &str) -> Vec<u64> {
    let behind = text.split(word).skip(1).filter_map(|rest| rest.trim_start().split([',', ' ', '\n']).next());
    behind.map(|number| number.parse().unwrap_or_else(|_| panic!("{number:?} behind {word:?}: {text}"))).collect()
}

#[test]
fn tutorial_for_a_solver_of_ones_own_runs_as_printed() {
    if !has("cc") || !has("pkg-config") || !has("make") {
        return;
    }
    let home = home();
    let printed = run(&script("docs/start/own-code.md"), home.path());
    // What the killed run has printed may be lost with it.
    let starts = numbers(&printed, "starts at");
    assert!(starts.first() == Some(&0) && starts.last() == Some(&30), "{printed}");
    let iterations = numbers(&printed, "iterations ");
    assert!(iterations.len() == 2 && iterations[0] == iterations[1], "{printed}");
}

#[test]
fn tutorial_for_petsc_runs_as_printed() {
    let knows_petsc = Command::new("pkg-config").args(["--exists", "PETSc"]).status().is_ok_and(|it| it.success());
    if !knows_petsc || !has("mpicc") || !has("mpirun") || !has("make") {
        eprintln!("SKIPPED: the tutorial needs PETSc, make and MPI");
        return;
    }
    let home = home();
    let printed = run(&script("docs/start/petsc.md"), home.path());
    assert_eq!(numbers(&printed, "from "), [0, 40], "{printed}");
    let iterations = numbers(&printed, "iterations ");
    // Iterations of the solve that come again after a restart are not counted twice. What a restart
    // from x alone forgets is 11 % of such a solve on average (BENCHMARKS.md, CG after a recovery).
    assert!(iterations.len() == 2 && iterations[1] <= iterations[0] + iterations[0] / 10, "{printed}");
}
