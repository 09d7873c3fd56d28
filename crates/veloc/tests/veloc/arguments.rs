//! Wrong arguments and wrong order.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Place, build_single, crate_dir, finish, has};

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| build_single("arguments", &crate_dir().join("tests/c/arguments.c")))
}

fn assert_passes(command: Command) {
    let output = finish(command);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
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
