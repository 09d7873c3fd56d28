//! The installed prefix as programs for VELOC meet it: its CMake package and veloc-backend.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Place, assert_ends_well, core_dir, crate_dir, has, library_dir};

/// One program in C and one in C++, which includes the header as the programs of VELOC's own tree
/// do.
const PROJECT: &str = r#"
cmake_minimum_required(VERSION 3.14)
project(client C CXX)
set(CMAKE_CXX_STANDARD 11)
find_package(veloc 1.6 REQUIRED)
add_executable(in_c main.c)
target_link_libraries(in_c PRIVATE m veloc::client)
add_executable(in_cpp main.cpp)
target_link_libraries(in_cpp PRIVATE veloc-client)
# One that calls both interfaces, from one library of each kind.
find_package(recoup REQUIRED)
add_executable(in_both both.c)
target_link_libraries(in_both PRIVATE veloc::client recoup::recoup)
add_executable(in_both_static both.c)
target_link_libraries(in_both_static PRIVATE veloc::static recoup::static)
"#;

const IN_C: &str = r#"
#include "include/veloc.h"
int main(int argc, char **argv) {
    int x = 7;
    if (argc != 2 || VELOC_Init_single(1, argv[1]) != VELOC_SUCCESS)
        return 1;
    VELOC_Mem_protect(0, &x, 1, sizeof x);
    int failed = VELOC_Checkpoint("x", 1) != VELOC_SUCCESS;
    x = 0;
    failed = failed || VELOC_Restart("x", 1) != VELOC_SUCCESS || x != 7;
    return VELOC_Finalize(1) != VELOC_SUCCESS || failed;
}
"#;

const IN_BOTH: &str = r#"
#include <recoup.h>
#include <veloc.h>
int main(int argc, char **argv) {
    return argc != 2 || recoup_version() == NULL || VELOC_Init_single(3, argv[1]) || VELOC_Finalize(1);
}
"#;

/// On one rank of MPI, where there is MPI.
const IN_CPP: &str = r#"
#include <veloc.hpp>
int main(int argc, char **argv) {
    if (argc != 2)
        return 1;
#ifdef VELOC_NO_MPI
    veloc::client_t *client = veloc::get_client(2u, argv[1]);
#else
    MPI_Init(&argc, &argv);
    veloc::client_t *client = veloc::get_client(MPI_COMM_WORLD, argv[1]);
#endif
    int x = 7;
    bool ok = client->mem_protect(0, &x, 1, sizeof x) && client->checkpoint("y", 1);
    x = 0;
    ok = ok && client->restart("y", 1, 0) && x == 7;
    delete client;
#ifndef VELOC_NO_MPI
    MPI_Finalize();
#endif
    return !ok;
}
"#;

/// A prefix as `make install` leaves it.
fn install(prefix: &Path) {
    let mut make = Command::new("make");
    make.arg("-C").arg(crate_dir().join("../../..")).args(["install-library", "install-veloc"]);
    make.arg(format!("PREFIX={}", prefix.display())).arg(format!("VELOC={}", library_dir().display()));
    make.arg(format!("BUILT={}", core_dir().display()));
    assert_ends_well(make);
}

fn build_project(prefix: &Path, folder: &Path) -> PathBuf {
    for (name, text) in [("CMakeLists.txt", PROJECT), ("main.c", IN_C), ("main.cpp", IN_CPP), ("both.c", IN_BOTH)] {
        fs::write(folder.join(name), text).unwrap();
    }
    let binary = folder.join("build");
    let mut configure = Command::new("cmake");
    configure.arg("-S").arg(folder).arg("-B").arg(&binary).arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display()));
    assert_ends_well(configure);
    let mut build = Command::new("cmake");
    build.arg("--build").arg(&binary);
    assert_ends_well(build);
    binary
}

#[test]
fn cmake_finds_the_client_in_a_prefix_that_was_moved() {
    if !has("cmake") || !has("make") {
        eprintln!("SKIPPED: cmake or make is not there");
        return;
    }
    let place = Place::new("mode = async");
    let root = place.config().with_file_name("root");
    let first = root.join("first");
    let prefix = root.join("prefix");
    install(&first);
    let mut moved = Command::new("mv");
    moved.arg(&first).arg(&prefix);
    assert_ends_well(moved);
    let binary = build_project(&prefix, &root);
    for name in ["in_c", "in_cpp", "in_both", "in_both_static"] {
        // A program of one rank starts without mpirun.
        let mut command = Command::new(binary.join(name));
        command.arg(place.config()).env("OMPI_MCA_ess_singleton_isolated", "1");
        assert_ends_well(command);
    }
    let said = assert_ends_well(Command::new(prefix.join("bin/veloc-backend")));
    assert!(said.contains("nothing to start"), "{said}");
}
