//! The guide and the tutorial for those who come from VELOC say nothing that does not compile.

use std::fs;
use std::process::Command;

use crate::support::{Place, build_mpi, build_single, crate_dir, finish, has_mpi};

/// The C programs of a page, in order.
fn programs(page: &str) -> Vec<String> {
    let blocks = page.split("```c\n").skip(1);
    blocks.filter_map(|rest| rest.split_once("```").map(|(program, _)| program.to_owned())).collect()
}

#[test]
fn programs_of_the_guide_and_the_tutorial_run() {
    let pages = ["docs/veloc.md", "../../../docs/start/veloc.md"];
    let pages = pages.map(|page| fs::read_to_string(crate_dir().join(page)).unwrap());
    let programs = pages.iter().flat_map(|page| programs(page)).collect::<Vec<_>>();
    assert_eq!(programs.len(), 3);
    for (index, program) in programs.iter().enumerate() {
        let needs_mpi = program.contains("MPI_Init");
        if needs_mpi && !has_mpi() {
            continue;
        }
        let place = Place::new("mode = async");
        let source = place.config().with_file_name("guide.c");
        fs::write(&source, program).unwrap();
        let name = format!("guide-{index}");
        let built = if needs_mpi { build_mpi(&name, &source) } else { build_single(&name, &source) };
        for _ in 0..2 {
            let mut command = Command::new(&built);
            command.arg(place.config());
            let output = finish(command);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn headers_compile_as_every_c_and_as_cpp() {
    let headers = [
        ("cc", "-std=c99", "veloc.h"),
        ("cc", "-std=c17", "veloc.h"),
        ("c++", "-std=c++11", "veloc.h"),
        ("c++", "-std=c++11", "veloc.hpp"),
        ("c++", "-std=c++20", "veloc.hpp"),
    ];
    for (compiler, standard, header) in headers {
        let mut command = Command::new(compiler);
        let language = if compiler == "cc" { "c" } else { "c++" };
        command.args([standard, "-DVELOC_NO_MPI", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]);
        command.args(["-x", language]).arg(crate_dir().join("include").join(header));
        let output = finish(command);
        assert!(output.status.success(), "{standard}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

/// Programs for 1.8 use its functions and include nothing else.
#[test]
fn header_brings_the_functions_of_strings() {
    let place = Place::new("mode = sync");
    let source = place.config().with_file_name("strings.c");
    fs::write(&source, "#include <veloc.h>\nint main(void) { return (int)strlen(\"\"); }\n").unwrap();
    build_single("strings", &source);
}
