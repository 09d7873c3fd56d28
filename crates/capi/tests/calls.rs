//! recoup.h from C: every wrong argument, and no memory misused on the way.

use std::path::Path;

use crate::build::{compile, has, output, strict};

/// Sources with the calls of handles, and of tapes.
const SOURCES: [&str; 2] = ["crates/capi/tests/c/calls.c", "crates/capi/tests/c/tape.c"];

fn calls(flags: &[&str], before: &[&str]) {
    for source in SOURCES {
        let folder = tempfile::tempdir().unwrap();
        let mut all = strict("-std=c11");
        all.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let program = compile("cc", source, &all, folder.path());
        let mut words = before.to_vec();
        words.extend([text(&program), text(folder.path())]);
        assert_eq!(output(&words), "0 failures\n", "{source}");
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn every_wrong_argument_gets_its_documented_code() {
    calls(&[], &[]);
}

#[test]
fn address_sanitizer_finds_nothing() {
    calls(&["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], &[]);
}

#[test]
fn valgrind_finds_nothing() {
    if has("valgrind") {
        calls(&[], &["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    }
}
