//! `recoup annotate`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/embed/lu.c")
}

fn annotate(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.arg("annotate").args(words);
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_program_goes_to_a_file_or_to_stdout() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.c");
    let printed = annotate(&[source().to_str().unwrap()]).output().unwrap();
    assert!(printed.status.success(), "{}", said(&printed));
    let words = [source().to_str().unwrap().to_owned(), "-o".to_owned(), file.to_str().unwrap().to_owned()];
    let written = annotate(&words.each_ref().map(String::as_str)).args(["--", "-DUNUSED=1"]).output().unwrap();
    assert!(written.status.success() && written.stdout.is_empty(), "{}", said(&written));
    let text = std::fs::read(&file).unwrap();
    assert!(text == printed.stdout && text.starts_with(b"#include <recoup_annotate.h>"));
}

#[test]
fn a_refused_source_writes_nothing_and_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let refused = folder.path().join("refused.c");
    let file = folder.path().join("out.c");
    let text = std::fs::read_to_string(source()).unwrap().replace("row[pivot] = other;", "seed++;");
    let line = 1 + text.lines().position(|line| line.contains("seed++;")).unwrap();
    std::fs::write(&refused, text).unwrap();
    let output = annotate(&[refused.to_str().unwrap(), "-o", file.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("refused.c:{line}: seed is written in the loop");
    assert!(said(&output).contains(&expected) && !file.exists(), "{}", said(&output));
}

/// Such words were found when the written program ran, after its compilation.
#[test]
fn words_of_the_memory_are_those_of_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lu.c");
    let text = std::fs::read_to_string(source()).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("recoup memory")).unwrap();
    for (words, what) in [
        ("fil=a", "unknown key \"fil\": expected one of file, keep, block, medium, interval, mtti"),
        ("keep=2", "file=FILE is missing"),
        ("file=a interval=often", "interval=often: expected auto, young"),
        ("file=a block=5", "block=5: blocks of 5 bytes: a power of two from 512"),
    ] {
        let begin = text.find("memory(\"").unwrap() + 8;
        let end = begin + text[begin..].find('"').unwrap();
        std::fs::write(&file, [&text[..begin], words, &text[end..]].concat()).unwrap();
        let output = annotate(&[file.to_str().unwrap()]).output().unwrap();
        let expected = format!("lu.c:{line}: memory: {what}");
        assert!(output.status.code() == Some(1) && said(&output).contains(&expected), "{words}: {}", said(&output));
    }
}

#[test]
fn without_clang_the_error_says_what_to_install() {
    let output = annotate(&[source().to_str().unwrap()]).env("PATH", "").output().unwrap();
    assert_eq!(output.status.code(), Some(5));
    assert!(said(&output).contains("apt-get install clang"), "{}", said(&output));
}

/// `-o` with the name of the source left the program of the user overwritten.
#[test]
fn the_source_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lu.c");
    let link = folder.path().join("out.c");
    std::fs::copy(source(), &file).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let expected = std::fs::read(&file).unwrap();
    for target in [&file, &link] {
        let output = annotate(&[file.to_str().unwrap(), "-o", target.to_str().unwrap()]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains("names this file twice"), "{}", said(&output));
        assert!(std::fs::read(&file).unwrap() == expected);
    }
}
