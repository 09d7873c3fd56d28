//! One case: a run with a fault, a look at what it left, and a second run on a sound disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::subjects::{FaultSubject, Verification, Workplace};
use super::supervisor::{self, DiskFault, FaultSpan, SupervisedRun};

/// Lines of stderr that a story quotes, at most.
const QUOTED_LINES: usize = 3;

/// A run and a second one, both on a sound disk.
pub(super) struct CleanRuns {
    pub(super) n_calls: usize,
    answer: String,
    /// Number of files of each kind that are there at the end, the most of both runs.
    files: BTreeMap<String, usize>,
}

impl CleanRuns {
    pub(super) fn of(workplace: &Workplace, subject: &FaultSubject) -> Result<Self> {
        let folder = tempfile::tempdir_in(&workplace.folders)?;
        subject.prepare(folder.path())?;
        let first = supervisor::run(subject.command(&workplace.programs), folder.path(), None)?;
        ensure!(first.status.success(), "without a fault: {}, {}", first.status, first.stderr);
        let mut files = files_by_kind(folder.path())?;
        let second = supervisor::run(subject.command(&workplace.programs), folder.path(), None)?;
        for (kind, n) in files_by_kind(folder.path())? {
            files.entry(kind).and_modify(|most| *most = n.max(*most)).or_insert(n);
        }
        let answer = (subject.answer)(&first.stdout).context("no answer without a fault")?;
        ensure!((subject.answer)(&second.stdout).as_ref() == Some(&answer), "another answer of the second run");
        Ok(Self { n_calls: first.n_calls, answer, files })
    }
}

/// An expectation that does not hold.
pub(super) struct Finding {
    /// The call that failed, and what is not as expected: the same for cases of one cause.
    pub(super) what: String,
    /// The command that shows it again, and how the run ended.
    pub(super) story: String,
}

/// Runs a case, and returns its findings.
pub(super) fn check_case(
    workplace: &Workplace,
    subject: &FaultSubject,
    clean: &CleanRuns,
    fault: DiskFault,
) -> Result<Vec<Finding>> {
    let folder = tempfile::tempdir_in(&workplace.folders)?;
    subject.prepare(folder.path())?;
    let failing = supervisor::run(subject.command(&workplace.programs), folder.path(), Some(fault))?;
    if failing.failed.is_none() {
        // A run whose threads came in another order may have fewer calls.
        return Ok(Vec::new());
    }
    let mut found = faults_of_end(subject, clean, fault, &failing);
    if failing.status.success() {
        found.extend(missing_results(subject, folder.path()));
    }
    found.extend(damage(workplace, subject, folder.path(), &failing)?);
    let again = supervisor::run(subject.command(&workplace.programs), folder.path(), None)?;
    found.extend(faults_of_second(subject, clean, &failing, &again));
    found.extend(left_behind(clean, &failing, folder.path())?);
    Ok(found.into_iter().map(|what| finding(subject, fault, &failing, &what)).collect())
}

/// Expectations of the end of a run with a fault that do not hold.
fn faults_of_end(subject: &FaultSubject, clean: &CleanRuns, fault: DiskFault, run: &SupervisedRun) -> Vec<String> {
    let mut found = Vec::new();
    let code = run.status.code();
    if run.is_hung {
        found.push("it hangs".to_owned());
    } else if code != Some(0) && code != Some(subject.failed_code) {
        found.push(format!("exit code 0 or {} expected: {}", subject.failed_code, run.status));
    }
    if run.stderr.contains("panicked at") {
        found.push("it panics".to_owned());
    }
    let n_lost =
        serde_json::from_str(&run.stdout).map_or(0, |run: Value| run["failed_checkpoints"].as_u64().unwrap_or(0));
    // A disk that fails from the first half of a run on takes a save at least.
    let loses_save = fault.span == FaultSpan::Onwards && 2 * fault.call < clean.n_calls;
    if (code != Some(0) || n_lost > 0 || loses_save) && run.stderr.trim().is_empty() {
        found.push(format!("{}, a version or a result lost, and no word on stderr", run.status));
    }
    found
}

fn missing_results(subject: &FaultSubject, folder: &Path) -> Vec<String> {
    let missing = subject.results.iter().filter(|name| !folder.join(name).exists());
    missing.map(|name| format!("it ends with 0, and {name} is not there")).collect()
}

/// Damage of what the run has left, and a promised version that is not there.
fn damage(workplace: &Workplace, subject: &FaultSubject, folder: &Path, run: &SupervisedRun) -> Result<Vec<String>> {
    let mut command = Command::new(workplace.programs.join("recoup"));
    let is_there = match subject.verification {
        Verification::Versions(name) => {
            command.arg("verify").arg(name);
            has_versions(&folder.join(name))
        }
        Verification::Memory(name) => {
            command.args(["memory", "verify", name]);
            folder.join(name).exists()
        }
        Verification::Restart => false,
    };
    let mut found = Vec::new();
    if is_there {
        let output = command.current_dir(folder).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        // A memory may have been made and hold no version yet.
        let is_empty_memory = matches!(subject.verification, Verification::Memory(_)) && !text.contains("damaged");
        let is_whole = output.status.success() || is_empty_memory && output.status.code() == Some(4);
        if !is_whole {
            found.push(format!("what it left is not whole: {}", text.trim()));
        }
    }
    if let (Some(version), Verification::Versions(name)) = ((subject.promise)(&run.stdout), subject.verification) {
        let promised = folder.join(name).join(format!("solve/v{version:012}"));
        if !promised.exists() {
            found.push(format!("version {version} is promised and not there"));
        }
    }
    Ok(found)
}

/// Returns whether a run has a visible version.
fn has_versions(directory: &Path) -> bool {
    let names =
        |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
    let is_version = |name: &std::ffi::OsString| name.to_string_lossy().starts_with('v');
    names(directory).iter().any(|run| names(&directory.join(run)).iter().any(is_version))
}

/// Expectations of the second run, on a sound disk, that do not hold.
fn faults_of_second(
    subject: &FaultSubject,
    clean: &CleanRuns,
    first: &SupervisedRun,
    again: &SupervisedRun,
) -> Vec<String> {
    let mut found = Vec::new();
    if again.is_hung {
        found.push("the second start hangs".to_owned());
    } else if !again.status.success() {
        found.push(format!("the second start ends with {}: {}", again.status, quoted(&again.stderr)));
    } else if (subject.answer)(&again.stdout).as_ref() != Some(&clean.answer) {
        let answer = (subject.answer)(&again.stdout);
        found.push(format!("the second start ends with {answer:?}, {} expected", clean.answer));
    }
    let promised = (subject.promise)(&first.stdout);
    if matches!(subject.verification, Verification::Restart) && promised > (subject.restarted)(&again.stdout) {
        let restarted = (subject.restarted)(&again.stdout);
        found.push(format!("version {promised:?} is promised, and the second start continues from {restarted:?}"));
    }
    found
}

/// Files that no sound run leaves, or leaves fewer of. A whole version too many is none of them, as
/// the next save removes it, and neither is a file that the broken disk did not let a run remove.
fn left_behind(clean: &CleanRuns, run: &SupervisedRun, folder: &Path) -> Result<Vec<String>> {
    let files = files_by_kind(folder)?;
    let not_removed: Vec<String> = run.not_removed.iter().map(|path| without_numbers(path)).collect();
    let is_known = |kind: &String| kind.split('/').any(|name| name == "v#") || not_removed.contains(kind);
    let most = |kind: &String| clean.files.get(kind).copied().unwrap_or(0);
    let is_surplus = |kind: &String| files.get(kind).is_some_and(|n| *n > most(kind)) && !is_known(kind);
    // A folder stands for all that is in it.
    let is_told =
        |kind: &str| Path::new(kind).ancestors().skip(1).any(|above| is_surplus(&above.display().to_string()));
    let surplus = files.iter().filter(|(kind, _)| is_surplus(kind) && !is_told(kind));
    Ok(surplus.map(|(kind, n)| format!("{n} of {kind} are left after the second start")).collect())
}

/// Counts the files below a folder by their kinds.
fn files_by_kind(folder: &Path) -> Result<BTreeMap<String, usize>> {
    let mut kinds = BTreeMap::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let below = path.strip_prefix(folder)?.to_string_lossy().into_owned();
            *kinds.entry(without_numbers(&below)).or_default() += 1;
            if path.is_dir() {
                pending.push(path);
            }
        }
    }
    Ok(kinds)
}

/// Returns the kind of a path: each number in it, and each name that is a hash, is #.
fn without_numbers(path: &str) -> String {
    let is_hash = |name: &&str| name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let names: Vec<&str> = path.split('/').map(|name| if is_hash(&name) { "0" } else { name }).collect();
    let mut kind = String::new();
    for c in names.join("/").chars() {
        if !c.is_ascii_digit() {
            kind.push(c);
        } else if !kind.ends_with('#') {
            kind.push('#');
        }
    }
    kind
}

fn finding(subject: &FaultSubject, fault: DiskFault, run: &SupervisedRun, expectation: &str) -> Finding {
    let (call, path) = run.failed.as_ref().map_or(("no call", ""), |(call, path)| (*call, path.as_str()));
    let span = if fault.span == FaultSpan::Once { "--once" } else { "--from" };
    let again =
        format!("cargo xtask faults {} --error {} {span} --at {}", subject.name, fault.error.name(), fault.call);
    let story = format!("{again}: {path}\n      {}, stderr: {}", run.status, quoted(&run.stderr));
    Finding { what: format!("{call} of {}: {}", without_numbers(path), without_numbers(expectation)), story }
}

fn quoted(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let shown = lines.iter().take(QUOTED_LINES).copied().collect::<Vec<_>>().join(" | ");
    if shown.is_empty() { "nothing".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_differ_by_numbers_are_of_one_kind() {
        assert_eq!(without_numbers("solve/v000000000012/rank-000003.h5"), "solve/v#/rank-#.h#");
        assert_eq!(without_numbers("recoup-0/4b6f3cc4c8245d16/node-000000"), "recoup-#/#/node-#");
        assert_eq!(without_numbers("lock"), "lock");
    }
}
