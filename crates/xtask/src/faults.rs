//! `cargo xtask faults`: real programs on a disk that fails one system call, or all from one on.
//!
//! Each program is run once to count its calls that write, then again and again in fresh folders,
//! each time with another call that fails. What is mapped into memory is written without calls, so
//! stores that are mapped cannot be failed here.

mod calls;
mod check;
mod subjects;
mod supervisor;
mod sys;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use check::{CleanRuns, Finding, check_case};
use subjects::{FaultSubject, SUBJECTS, Workplace};
pub(crate) use supervisor::DiskError;
use supervisor::{DiskFault, FaultSpan};

/// Seed of the sample of calls.
const SEED: u64 = 48;
/// Calls of the short version that fail, of each program and kind of fault.
const SHORT_CALLS: usize = 8;

/// The cases to be tried.
#[derive(Debug, clap::Args)]
pub(crate) struct FaultArguments {
    /// Programs: run, tiers, session, memory, tape, veloc [default: all].
    subjects: Vec<String>,
    /// Calls that fail of each program and kind of fault, evenly among all; 0 is all.
    #[arg(long, default_value = "40")]
    calls: usize,
    /// Fail this call alone, as a finding names it.
    #[arg(long, conflicts_with = "calls")]
    at: Option<usize>,
    /// Errors [default: all].
    #[arg(long, value_enum, ignore_case = true)]
    error: Vec<DiskError>,
    /// One call fails, and the next succeeds.
    #[arg(long)]
    once: bool,
    /// All calls fail from one on.
    #[arg(long)]
    from: bool,
    /// Programs of the release profile.
    #[arg(long)]
    release: bool,
    /// Some 60 cases in a few seconds.
    #[arg(long, conflicts_with_all = ["calls", "at", "error", "once", "from"])]
    short: bool,
}

impl FaultArguments {
    /// Returns the arguments that the short version stands for.
    fn short() -> Self {
        let subjects = vec!["run".to_owned(), "memory".to_owned()];
        let error = vec![DiskError::Enospc, DiskError::Eio];
        Self { subjects, calls: SHORT_CALLS, at: None, error, once: false, from: false, release: false, short: true }
    }

    fn errors(&self) -> Vec<DiskError> {
        if self.error.is_empty() { DiskError::ALL.to_vec() } else { self.error.clone() }
    }

    fn spans(&self) -> &'static [FaultSpan] {
        match (self.once, self.from) {
            (true, false) => &[FaultSpan::Once],
            (false, true) => &[FaultSpan::Onwards],
            _ => &[FaultSpan::Once, FaultSpan::Onwards],
        }
    }

    fn chosen(&self) -> Result<Vec<&'static FaultSubject>> {
        let unknown = self.subjects.iter().find(|name| !SUBJECTS.iter().any(|subject| subject.name == *name));
        ensure!(unknown.is_none(), "no program {unknown:?}");
        let is_chosen =
            |subject: &&FaultSubject| self.subjects.is_empty() || self.subjects.iter().any(|n| n == subject.name);
        Ok(SUBJECTS.iter().filter(is_chosen).collect())
    }
}

/// Runs the cases, prints a table and all findings, and fails if there are any.
pub(crate) fn run(root: &Path, arguments: &FaultArguments) -> Result<()> {
    let short = FaultArguments::short();
    let arguments = if arguments.short { &short } else { arguments };
    if !supervisor::is_possible() {
        println!("SKIPPED: seccomp user notification is not allowed here, or the kernel is older than 5.5");
        return Ok(());
    }
    let subjects = arguments.chosen()?;
    let programs = subjects::build(root, &subjects, arguments.release)?;
    // Syncs of files in memory take no time, and fail here all the same.
    let memory = PathBuf::from("/dev/shm");
    let folders = if memory.exists() { memory } else { std::env::temp_dir() };
    let workplace = Workplace { programs, folders: folders.canonicalize()? };
    println!("{:<10} {:>6} {:>6} {:>8}", "program", "calls", "cases", "findings");
    let mut n_findings = 0;
    for subject in subjects {
        n_findings += try_subject(&workplace, subject, arguments).with_context(|| subject.name.to_owned())?;
    }
    println!("Stores that are mapped into memory write without system calls, and were not failed.");
    if n_findings > 0 {
        bail!("{n_findings} findings");
    }
    Ok(())
}

/// Runs all cases of a program, and returns the number of findings.
fn try_subject(workplace: &Workplace, subject: &FaultSubject, arguments: &FaultArguments) -> Result<usize> {
    let clean = CleanRuns::of(workplace, subject)?;
    let calls = match arguments.at {
        Some(call) => vec![call],
        None => sample(clean.n_calls, arguments.calls),
    };
    let mut n_cases = 0;
    // Cases of one cause are told by the first of them.
    let mut causes = BTreeMap::<String, (String, usize)>::new();
    for error in arguments.errors() {
        for span in arguments.spans() {
            for call in &calls {
                let fault = DiskFault { error, span: *span, call: *call };
                n_cases += 1;
                for Finding { what, story } in check_case(workplace, subject, &clean, fault)? {
                    causes.entry(what).or_insert((story, 0)).1 += 1;
                }
            }
        }
    }
    let n_findings = causes.values().map(|(_, n)| n).sum();
    println!("{:<10} {:>6} {n_cases:>6} {n_findings:>8}", subject.name, clean.n_calls);
    for (what, (story, n)) in causes {
        println!("  {what}: {n} cases\n    {story}");
    }
    Ok(n_findings)
}

/// Positions from 1 to `n_calls`, evenly spread; all of them for `wanted` 0.
fn sample(n_calls: usize, wanted: usize) -> Vec<usize> {
    if wanted == 0 || wanted >= n_calls {
        return (1..=n_calls).collect();
    }
    // One in each of as many parts, drawn by a linear congruential generator.
    let mut state = SEED;
    let part = |index: usize| index * n_calls / wanted;
    let mut draw = |index: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        part(index) + 1 + (state >> 33) as usize % (part(index + 1) - part(index))
    };
    (0..wanted).map(&mut draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_even_and_within_range() {
        assert_eq!(sample(5, 0), [1, 2, 3, 4, 5]);
        assert_eq!(sample(3, 7), [1, 2, 3]);
        let calls = sample(103, 10);
        assert!(calls.iter().enumerate().all(|(i, call)| (10 * i + 1..=10 * i + 13).contains(call)), "{calls:?}");
    }
}
