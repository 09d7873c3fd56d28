//! The programs with versions continue after a kill as if there had been none, and differ from the
//! plain ones in few lines.

mod changes;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use changes::{changed_lines, code};
use recoup::core::mix;
use recoup::memory::{
    AnyVersionedArray as _, ElementKind, MemoryReader, VersionView, VersionedArray, VersionedElement,
};

/// A place of versions, and the way in which their bytes are stored there.
struct Medium {
    root: PathBuf,
    /// As the programs name it.
    kind: &'static str,
}

/// A program with versions.
struct Program {
    name: &'static str,
    /// Steps that it takes.
    steps: u64,
    /// Steps between two versions.
    every: u64,
}

const PROGRAMS: [Program; 4] = [
    Program { name: "lu", steps: 200, every: 1 },
    Program { name: "droplet", steps: 60, every: 1 },
    Program { name: "pagerank", steps: 20, every: 1 },
    Program { name: "crack", steps: 1000, every: 5 },
];
/// Lines of code that a program may change to have versions.
const CHANGED_MOST: usize = 15;
const KILLS: usize = 3;
/// Runs in which a program may be faster than its kill.
const ATTEMPTS: u64 = 30;

type Failed = Box<dyn Error>;

impl Program {
    /// Returns the command, for a program that cargo has built before the tests of its package.
    fn command(&self, file: &Path, medium: &Medium) -> Result<Command, Failed> {
        let tests = std::env::current_exe()?;
        let profile = tests.parent().and_then(Path::parent).ok_or("no folder of programs")?;
        let path = profile.join("examples").join(self.name);
        if !path.exists() {
            return Err(format!("cargo build -p recoup-examples --example {}", self.name).into());
        }
        let mut command = Command::new(path);
        command.arg("--memory").arg(file).args(["--medium", medium.kind]);
        command.args(["--policy", &format!("every:{}", self.every)]);
        Ok(command)
    }

    /// Runs it to its end, and returns what it says.
    fn run(&self, file: &Path, medium: &Medium) -> Result<String, Failed> {
        said(&mut self.command(file, medium)?)
    }
}

/// Runs a program to its end, and returns what it says.
fn said(command: &mut Command) -> Result<String, Failed> {
    let output = command.output()?;
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Step of the newest version; 0 without one, or without a file.
fn newest_step(file: &Path) -> u64 {
    let newest = MemoryReader::open(file).and_then(|reader| reader.newest());
    newest.ok().flatten().map_or(0, |view| view.version().step)
}

/// Waits until a program has a version of `step`, and kills it. Returns whether it was faster.
fn ends_before_kill(child: &mut Child, file: &Path, step: u64) -> Result<bool, Failed> {
    while newest_step(file) < step {
        if child.try_wait()?.is_some() {
            break;
        }
    }
    // SIGKILL, wherever the program is now.
    child.kill()?;
    Ok(child.wait()?.success())
}

fn bytes_of<T: VersionedElement>(view: &VersionView, name: &str) -> Result<Vec<u8>, Failed> {
    Ok(VersionedArray::new(name, view.values::<T>(name)?).bytes().to_vec())
}

/// All bytes of the newest version, and their names.
fn newest_bytes(file: &Path) -> Result<Vec<(String, Vec<u8>)>, Failed> {
    let view = MemoryReader::open(file)?.newest()?.ok_or("no version")?;
    let mut all = vec![("step".to_owned(), view.version().step.to_le_bytes().to_vec())];
    for structure in view.version().structures {
        let name = structure.name;
        let bytes = match structure.kind {
            ElementKind::F64 => bytes_of::<f64>(&view, &name),
            ElementKind::U64 => bytes_of::<u64>(&view, &name),
            ElementKind::U32 => bytes_of::<u32>(&view, &name),
            ElementKind::U8 => bytes_of::<u8>(&view, &name),
            other => Err(format!("no program has values of {}", other.name()).into()),
        }?;
        all.push((name, bytes));
    }
    Ok(all)
}

/// Result of a run without kills.
struct WholeRun {
    said: String,
    newest: Vec<(String, Vec<u8>)>,
}

impl WholeRun {
    fn of(program: &Program, medium: &Medium) -> Result<Self, Failed> {
        let folder = tempfile::tempdir_in(&medium.root)?;
        let file = folder.path().join("whole.memory");
        Ok(Self { said: program.run(&file, medium)?, newest: newest_bytes(&file)? })
    }
}

/// Kills a program at random commits, and compares its end with that of a run without kills.
fn kill_and_compare(program: &Program, medium: &Medium, seed: u64, whole: &WholeRun) -> Result<(), Failed> {
    let name = program.name;
    let folder = tempfile::tempdir_in(&medium.root)?;
    let file = folder.path().join("killed.memory");
    let kept = folder.path().join("kept.memory");
    let mut kills = Vec::new();
    for attempt in 0..ATTEMPTS {
        if kills.len() == KILLS {
            break;
        }
        let before = newest_step(&file);
        // Well below the last step: the program continues until its kill reaches it.
        let step = before + 1 + mix(seed ^ attempt) % (program.steps / (KILLS as u64 + 1));
        let mut child = program.command(&file, medium)?.stdout(Stdio::null()).spawn()?;
        if ends_before_kill(&mut child, &file, step)? {
            // It was faster than this test: back to the kill before.
            fs::remove_file(&file)?;
            if !kills.is_empty() {
                fs::copy(&kept, &file)?;
            }
            continue;
        }
        let reached = newest_step(&file);
        assert!(reached >= step, "{name}: killed at step {step}, and now {reached}");
        kills.push(reached);
        fs::copy(&file, &kept)?;
    }
    println!("{name} in {}, {}: seed {seed}, killed after steps {kills:?}", medium.root.display(), medium.kind);
    assert!(!kills.is_empty(), "{name} ended before it was killed, {ATTEMPTS} times");
    let went_on = newest_step(&file);
    let said = program.run(&file, medium)?;
    assert_eq!(said, format!("continues after step {went_on}\n{}", whole.said), "{name}");
    assert!(newest_bytes(&file)? == whole.newest, "{name}: its newest version has other bits");
    Ok(())
}

/// A file in memory, one on a disk that is written at positions, and a map of one on a disk.
/// Without a file system in memory, the first is on the disk, too.
fn media() -> [Medium; 3] {
    let disk = std::env::temp_dir();
    let memory = Some(PathBuf::from("/dev/shm")).filter(|root| root.exists()).unwrap_or_else(|| disk.clone());
    [
        Medium { root: memory, kind: "map" },
        Medium { root: disk.clone(), kind: "file" },
        Medium { root: disk, kind: "map" },
    ]
}

#[test]
fn a_program_killed_at_random_commits_ends_with_the_same_bits_on_every_medium() -> Result<(), Failed> {
    let media = media();
    for (seed, program) in (1..).zip(&PROGRAMS) {
        let whole = WholeRun::of(program, &media[0])?;
        for (medium, seed) in media.iter().zip(1000 * seed..) {
            kill_and_compare(program, medium, seed, &whole)?;
        }
    }
    Ok(())
}

#[test]
fn a_policy_changes_the_versions_of_a_program_and_none_of_its_bits() -> Result<(), Failed> {
    let medium = &media()[0];
    let folder = tempfile::tempdir_in(&medium.root)?;
    let lu = &PROGRAMS[0];
    let file = |policy: &str| folder.path().join(format!("{policy}.memory"));
    let expected = lu.run(&file("every"), medium)?;
    for policy in ["auto", "young", "daly", "greedy", "1us", "1h"] {
        let mut command = lu.command(&file(policy), medium)?;
        let ended = command.args(["--policy", policy, "--mtti", "1min"]).output()?;
        assert_eq!(String::from_utf8(ended.stdout)?, expected, "{policy}");
        let reasons = String::from_utf8(ended.stderr)?;
        assert!(reasons.contains(" versions; the last step: "), "{policy}: {reasons}");
    }
    // The first step takes longer than the one, and the whole run less than the other.
    assert!(newest_step(&file("1us")) > 0);
    assert_eq!(newest_step(&file("1h")), 0);
    Ok(())
}

#[test]
fn versions_change_few_lines_of_a_program() -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("versions");
    for Program { name, .. } in PROGRAMS {
        let plain = fs::read_to_string(Path::new(env!("OUT_DIR")).join(format!("{name}_plain.rs")))?;
        let versioned = fs::read_to_string(folder.join(format!("{name}.rs")))?;
        let changed = changed_lines(&code(&plain), &code(&versioned));
        println!("{name}: {changed} of {} lines", code(&plain).len());
        assert!((1..=CHANGED_MOST).contains(&changed), "{name}: {changed} lines");
    }
    Ok(())
}

#[test]
fn lines_that_differ_are_counted_as_a_reader_counts_them() {
    assert_eq!(changed_lines(&["a", "b", "c"], &["a", "b", "c"]), 0);
    assert_eq!(changed_lines(&["a", "b", "c"], &["a", "x", "y", "c", "d"]), 3);
    assert_eq!(changed_lines(&["a", "b"], &[]), 2);
}
