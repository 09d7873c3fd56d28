//! The C++ headers that need no large library: objects, exceptions, vectors where they are, and
//! programs that are killed and resumed.

use std::path::Path;

use crate::build::{compile, output, strict};
use crate::embed::check;

fn compiled(source: &str, standard: &str, more: &[&str], folder: &Path) -> std::path::PathBuf {
    let mut flags = strict(standard);
    flags.extend(more.iter().map(|flag| (*flag).to_owned()));
    compile("c++", source, &flags, folder)
}

/// With the sanitizers: a callback that outlives what it uses is found.
#[test]
fn objects_close_what_they_own_and_errors_reach_the_call_that_made_them() {
    let sanitizers = ["-Wpedantic", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    for (standard, more) in [("-std=c++17", &sanitizers[..]), ("-std=c++20", &[])] {
        let folder = tempfile::tempdir().unwrap();
        let program = compiled("crates/doors/capi/tests/c/objects.cpp", standard, more, folder.path());
        let words = [program, folder.path().to_owned()];
        assert_eq!(output(&words.each_ref().map(|word| word.to_str().unwrap())), "0 failures\n", "{standard}");
    }
}

#[test]
fn killed_cpp_solver_goes_on_from_its_newest_version() {
    let folder = tempfile::tempdir().unwrap();
    check(&compiled("examples/embed/cg.cpp", "-std=c++17", &[], folder.path()));
}

/// CG restarts with the direction that came back and needs no more iterations; without it, it does.
#[test]
fn solve_of_a_library_goes_on_with_its_direction_or_from_the_end_of_a_cycle() {
    let folder = tempfile::tempdir().unwrap();
    let sanitizers = ["-Wpedantic", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = compiled("crates/doors/capi/tests/c/solve.cpp", "-std=c++17", &sanitizers, folder.path());
    let words = [program, folder.path().to_owned()];
    let printed = output(&words.each_ref().map(|word| word.to_str().unwrap()));
    assert!(printed.ends_with("\n0 failures\n"), "{printed}");
}

/// Where Eigen's headers are, as flags; says so where they are missing.
fn eigen() -> Option<Vec<&'static str>> {
    let folder = "/usr/include/eigen3";
    if !Path::new(folder).join("Eigen/Core").exists() {
        eprintln!("SKIPPED: {folder} has no Eigen");
        return None;
    }
    Some(vec!["-Wpedantic", "-isystem", folder])
}

#[test]
fn eigen_values_are_lent_where_they_are_and_gaps_are_refused() {
    let Some(mut flags) = eigen() else { return };
    flags.extend(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
    let folder = tempfile::tempdir().unwrap();
    let program = compiled("crates/doors/capi/tests/c/vectors.cpp", "-std=c++17", &flags, folder.path());
    let words = [program, folder.path().to_owned()];
    assert_eq!(output(&words.each_ref().map(|word| word.to_str().unwrap())), "0 failures\n");
}

#[test]
fn killed_eigen_solver_goes_on_from_its_newest_version() {
    let Some(flags) = eigen() else { return };
    let folder = tempfile::tempdir().unwrap();
    check(&compiled("examples/embed/eigen.cpp", "-std=c++17", &flags, folder.path()));
}
