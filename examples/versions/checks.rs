//! The programs with versions go on after a kill as if there had been none, and differ from the
//! plain ones in few lines.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use recoup::core::mix;
use recoup::memory::{ElementKind, MemoryReader, MvArray, MvElement, VersionView, VersionedArray as _};

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
    fn command(&self, file: &Path) -> Result<Command, Failed> {
        let tests = std::env::current_exe()?;
        let profile = tests.parent().and_then(Path::parent).ok_or("no folder of programs")?;
        let path = profile.join("examples").join(self.name);
        if !path.exists() {
            return Err(format!("cargo build -p recoup-examples --example {}", self.name).into());
        }
        let mut command = Command::new(path);
        command.arg("--memory").arg(file).args(["--every", &self.every.to_string()]);
        Ok(command)
    }

    /// Runs it to its end, and returns what it says.
    fn run(&self, file: &Path) -> Result<String, Failed> {
        let output = self.command(file)?.output()?;
        assert!(output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    }
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

fn bytes_of<T: MvElement>(view: &VersionView, name: &str) -> Result<Vec<u8>, Failed> {
    Ok(MvArray::new(name, view.values::<T>(name)?).bytes().to_vec())
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

/// Kills a program at random commits, and compares its end with that of a run without kills.
fn kill_and_compare(program: &Program, root: &Path, seed: u64) -> Result<(), Failed> {
    let name = program.name;
    let folder = tempfile::tempdir_in(root)?;
    let whole = folder.path().join("whole.memory");
    let expected = program.run(&whole)?;
    let file = folder.path().join("killed.memory");
    let kept = folder.path().join("kept.memory");
    let mut kills = Vec::new();
    for attempt in 0..ATTEMPTS {
        if kills.len() == KILLS {
            break;
        }
        let before = newest_step(&file);
        // Well below the last step: the program goes on until its kill reaches it.
        let step = before + 1 + mix(seed ^ attempt) % (program.steps / (KILLS as u64 + 1));
        let mut child = program.command(&file)?.stdout(Stdio::null()).spawn()?;
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
    println!("{name} in {}: seed {seed}, killed after steps {kills:?}", root.display());
    assert!(!kills.is_empty(), "{name} ended before it was killed, {ATTEMPTS} times");
    let went_on = newest_step(&file);
    let said = program.run(&file)?;
    assert_eq!(said, format!("goes on after step {went_on}\n{expected}"), "{name}");
    assert!(newest_bytes(&file)? == newest_bytes(&whole)?, "{name}: its newest version has other bits");
    Ok(())
}

#[test]
fn a_program_killed_at_random_commits_ends_with_the_same_bits_on_disk_and_in_memory() -> Result<(), Failed> {
    let disk = std::env::temp_dir();
    let memory = Path::new("/dev/shm");
    for root in [disk.as_path(), memory].into_iter().filter(|root| root.exists()) {
        for (seed, program) in (1..).zip(&PROGRAMS) {
            kill_and_compare(program, root, 1000 * seed)?;
        }
    }
    Ok(())
}

/// Lines of code: neither blank nor a comment.
fn code(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).collect()
}

/// Counts the lines that differ, by a longest common subsequence. Lines that take the place of
/// others count once.
fn changed_lines(before: &[&str], after: &[&str]) -> usize {
    let mut common = vec![vec![0_usize; after.len() + 1]; before.len() + 1];
    for i in (0..before.len()).rev() {
        for j in (0..after.len()).rev() {
            let skipped = common[i + 1][j].max(common[i][j + 1]);
            common[i][j] = if before[i] == after[j] { common[i + 1][j + 1] + 1 } else { skipped };
        }
    }
    let mut at = [0, 0];
    let mut hunk = [0_usize, 0];
    let mut changed = 0;
    while at[0] < before.len() || at[1] < after.len() {
        let [i, j] = at;
        if i < before.len() && j < after.len() && before[i] == after[j] {
            changed += hunk[0].max(hunk[1]);
            hunk = [0, 0];
            at = [i + 1, j + 1];
        } else {
            let side = usize::from(i == before.len() || (j < after.len() && common[i][j + 1] >= common[i + 1][j]));
            hunk[side] += 1;
            at[side] += 1;
        }
    }
    changed + hunk[0].max(hunk[1])
}

#[test]
fn versions_change_few_lines_of_a_program() -> Result<(), Failed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("versions");
    for Program { name, .. } in PROGRAMS {
        let plain = fs::read_to_string(folder.join(format!("{name}_plain.rs")))?;
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
