//! The program, started as scripts start it.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program with these words, in a screen of 80 columns and outside any batch system.
pub(crate) fn command(arguments: &str, dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    command.args(arguments.split_whitespace()).current_dir(dir).stdin(Stdio::null());
    command.env("COLUMNS", "80").env_remove("SLURM_JOB_END_TIME");
    command
}

pub(crate) fn recoup(arguments: &str, dir: &Path) -> Output {
    command(arguments, dir).output().unwrap()
}

/// The text on stderr.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A command that ended with `code`.
pub(crate) fn ended(arguments: &str, dir: &Path, code: i32) -> Output {
    let output = recoup(arguments, dir);
    assert_eq!(output.status.code(), Some(code), "{arguments}\n{}", said(&output));
    output
}

/// The text on stdout of a command that ended with `code`.
pub(crate) fn printed(arguments: &str, dir: &Path, code: i32) -> String {
    String::from_utf8(ended(arguments, dir, code).stdout).unwrap()
}

/// The JSON object on stdout of a command that ended with `code`, null if there is none, and the
/// text on stderr.
pub(crate) fn told(arguments: &str, dir: &Path, code: i32) -> (Value, String) {
    let output = ended(&format!("{arguments} --json"), dir, code);
    (serde_json::from_slice(&output.stdout).unwrap_or_default(), said(&output))
}

/// The one JSON object on stdout of a command that ended with `code`.
pub(crate) fn json(arguments: &str, dir: &Path, code: i32) -> Value {
    let (object, said) = told(arguments, dir, code);
    assert!(object.is_object(), "{arguments}\n{said}");
    object
}

/// The text on stderr of a command that ended with `code` and printed nothing.
pub(crate) fn refused(arguments: &str, dir: &Path, code: i32) -> String {
    let output = ended(arguments, dir, code);
    assert!(output.stdout.is_empty(), "{arguments}");
    said(&output)
}

/// Checks that `command` with each of these options is refused, with an exit code and words on
/// stderr, and returns all that was said.
pub(crate) fn each_refused(command: &str, cases: &[(&str, i32, &str)], dir: &Path) -> Vec<String> {
    let refusal = |&(options, code, words): &(&str, i32, &str)| {
        let told = refused(&format!("{command} {options}"), dir, code);
        assert!(told.contains(words), "{command} {options}\n{told}");
        told
    };
    cases.iter().map(refusal).collect()
}
