//! Wrong arguments and wrong order.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Place, build, build_single, crate_dir, finish, has, versions};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build_single("arguments", &crate_dir().join("tests/c/arguments.c")))
}

fn assert_passes(command: Command) {
    let output = finish(command);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{out}{err}");
    assert!(out.contains("0 failures"), "{out}{err}");
}

#[test]
fn every_call_with_every_wrong_argument_gives_its_code() {
    for mode in ["sync", "async"] {
        let place = Place::new(&format!("mode = {mode}"));
        let mut command = Command::new(program());
        command.arg(place.config());
        assert_passes(command);
    }
}

/// The codes were swapped, so a loop that polled for the end of a copy never ended.
#[test]
fn polling_for_the_end_of_a_copy_ends() {
    let source = crate_dir().join("tests/c/finished.c");
    for flavour in ["VELOC_API_1_8", "VELOC_API_HEAD"] {
        let define = format!("-D{flavour}");
        let program = build("cc", &format!("finished-{flavour}"), &source, &["-DVELOC_NO_MPI", &define]);
        for mode in ["async", "sync"] {
            let place = Place::new(&format!("mode = {mode}"));
            let mut command = Command::new(&program);
            command.arg(place.config());
            let output = finish(command);
            assert_eq!(output.status.code(), Some(0), "{flavour}: {}", String::from_utf8_lossy(&output.stderr));
            let arrived = versions(&place.persistent().join("single-000000"));
            assert_eq!(arrived, [1, 2, 3], "{flavour}, {mode}");
        }
    }
}

/// Memory is neither lost nor misused, by the wrong arguments and by two runs of the driver.
#[test]
fn valgrind_finds_nothing() {
    if !has("valgrind") {
        eprintln!("SKIPPED: valgrind is not there");
        return;
    }
    let clean = |program: &Path, arguments: &[&str]| {
        let place = Place::new("mode = async");
        for _ in 0..2 {
            let mut command = Command::new("valgrind");
            command.args(["--quiet", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
            command.arg(program).arg(place.config()).args(arguments);
            let output = finish(command);
            assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
            if arguments.is_empty() {
                return;
            }
        }
    };
    clean(program(), &[]);
    clean(crate::support::driver(None), &["6", "2", "5000", "memory"]);
}
