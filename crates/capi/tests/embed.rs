//! Programs of examples/embed without PETSc: killed by SIGKILL, and resumed.

use std::path::Path;
use std::process::Command;

use crate::build::{compile, has, library_folder, output, root, run, strict};

/// The number behind a word of what a program printed.
fn number(text: &str, word: &str) -> f64 {
    let rest = text.split(word).nth(1).unwrap_or_else(|| panic!("no {word:?} in {text:?}"));
    let token = rest.trim_start().split([',', ' ', '\n']).next().unwrap_or_default();
    token.parse().unwrap_or_else(|_| panic!("{token:?} behind {word:?} is no number: {text:?}"))
}

/// Runs a solver undisturbed, then killed after 35 iterations and again; what the first and the last printed.
fn killed_and_resumed(program: &Path, options: &str) -> [String; 2] {
    let folder = tempfile::tempdir().unwrap();
    let solve = |name: &str, killed_after: &str| {
        let options = format!("dir={}/{name} interval=10it sync {options}", folder.path().display());
        run(&[program.to_str().unwrap(), &options, "24", killed_after])
    };
    let printed = |output: std::process::Output| {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let undisturbed = printed(solve("undisturbed", "0"));
    assert!(solve("killed", "35").stdout.is_empty(), "it was not killed");
    [undisturbed, printed(solve("killed", "0"))]
}

/// A lossless version holds the whole recurrence: the same count. A lossy one restarts the method.
fn check(program: &Path) {
    let [undisturbed, resumed] = killed_and_resumed(program, "scheme=lossless");
    assert_eq!((number(&undisturbed, "starts at"), number(&resumed, "starts at")), (0.0, 30.0));
    assert_eq!(number(&undisturbed, "iterations"), number(&resumed, "iterations"));
    let [undisturbed, resumed] = killed_and_resumed(program, "scheme=lossy");
    assert_eq!(number(&resumed, "starts at"), 30.0);
    // From the iterate alone, with at most 1.5 times its residual, no more than all iterations again.
    assert!(number(&resumed, "iterations") <= number(&undisturbed, "iterations") + 30.0);
    assert!(number(&resumed, "relative residual") <= 1.1e-8);
}

#[test]
fn killed_c_solver_goes_on_from_its_newest_version() {
    let folder = tempfile::tempdir().unwrap();
    check(&compile("cc", "examples/embed/cg.c", &strict("-std=c11"), folder.path()));
}

#[test]
fn valgrind_finds_nothing_in_the_c_solver() {
    if !has("valgrind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", "examples/embed/cg.c", &strict("-std=c11"), folder.path());
    for scheme in ["lossless", "lossy"] {
        let options = format!("dir={}/ckpt interval=5it scheme={scheme}", folder.path().display());
        let valgrind =
            ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"];
        let words: Vec<&str> = valgrind.into_iter().chain([program.to_str().unwrap(), &options, "10"]).collect();
        output(&words);
    }
}

#[test]
fn library_links_no_mpi_and_no_hdf5() {
    let needed = output(&["ldd", library_folder().join("librecoup_c.so").to_str().unwrap()]);
    assert!(!needed.contains("hdf5") && !needed.contains("mpi"), "{needed}");
}

#[test]
fn header_is_c99_and_cplusplus() {
    let header = root().join("crates/capi/include/recoup.h");
    for (compiler, language, standard) in [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11")] {
        let mut command = Command::new(compiler);
        command.args(["-x", language, standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]).arg(&header);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
