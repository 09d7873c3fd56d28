//! recoup.h and recoup_mem.h from C: every wrong argument, and no memory misused on the way.

use std::path::Path;

use recoup::memory::{Memory, MemoryOptions, VersionedGraph};

use crate::build::{compile, has, output, strict};

/// Sources with the calls of handles, with values of every type, with blocks and many systems, and
/// with the calls of tapes and of versioned memories, in forked processes and signal handlers too.
const SOURCES: [&str; 6] = [
    "crates/doors/capi/tests/c/calls.c",
    "crates/doors/capi/tests/c/numbers.c",
    "crates/doors/capi/tests/c/many.c",
    "crates/doors/capi/tests/c/tape.c",
    "crates/doors/capi/tests/c/memory.c",
    "crates/doors/capi/tests/c/processes.c",
];

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

/// The struct and the graph that the C program has committed are structures of Rust.
#[test]
fn a_file_of_c_is_one_of_rust() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile("cc", "crates/doors/capi/tests/c/memory.c", &strict("-std=c11"), folder.path());
    output(&[text(&program), text(folder.path())]);
    let mut memory = Memory::open(&folder.path().join("structs"), MemoryOptions::default()).unwrap();
    let mut web = VersionedGraph::<u8, i64>::new("web", 3, &[]);
    memory.restore(2, &mut [&mut web]).unwrap();
    assert!(web.is_sound());
    assert_eq!((web.targets(0), web.targets(1), web.targets(2)), (&[1, 2][..], &[][..], &[0][..]));
    assert_eq!((web.states(), web.data()), (&[7, 8, 9][..], &[i64::MIN, -1, 5][..]));
    let view = memory.view(1).unwrap();
    assert_eq!(view.values::<f32>("rod.mean").unwrap(), [1.5]);
    assert_eq!(view.values::<i32>("rod.cells").unwrap()[63], -63);
}
