//! Files of a run and of a versioned memory, changed at random under every command that reads them:
//! the exit codes that the help names, no panic, no wait, and never another solution.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use recoup::memory::{MediumKind, Memory, MemoryOptions, VersionedArray};
use recoup::model::Rng;
use recoup_testkit::mutation::MutatedFolder;

const SEED: u64 = 48;
const RUN: &str = "run --poisson3d 4 --method cg --pc jacobi --rtol 1e-8 --scheme exact --interval 2it --dir files";
/// Commands, and the exit codes that their help names for damaged files.
const COMMANDS: [(&str, &[i32]); 9] = [
    ("verify files", &[0, 1, 4]),
    ("status files", &[0, 1, 4]),
    ("inspect files", &[0, 1, 4]),
    ("export files --solution --to x.npy", &[0, 1, 4]),
    ("prune files --keep 1", &[0, 1, 4]),
    ("memory list files/x.memory", &[0, 1, 4]),
    ("memory verify files/x.memory", &[0, 1, 4]),
    (RUN, &[0]),
    ("run --poisson3d 4 --method gmres --rtol 1e-8 --scheme lossy --interval 2it --dir files", &[0]),
];
/// Looks at a command, at most, each after [`LOOK`]: 30 seconds.
const LOOKS_MAX: u32 = 15_000;
const LOOK: Duration = Duration::from_millis(2);

/// Runs a command to its end, and returns its exit code and what it said on stderr.
fn recoup(arguments: &str, dir: &Path) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_recoup");
    let mut command = Command::new(program);
    command.args(arguments.split_whitespace()).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
    let said = dir.join("stderr");
    let mut child = command.stderr(File::create(&said).unwrap()).spawn().unwrap();
    for _ in 0..LOOKS_MAX {
        if let Some(status) = child.try_wait().unwrap() {
            return (status.code(), fs::read_to_string(&said).unwrap());
        }
        std::thread::sleep(LOOK);
    }
    child.kill().unwrap();
    panic!("{arguments} hangs");
}

/// Versions, status and lock of a run that has converged, and a memory with two versions.
fn write_files(dir: &Path) {
    assert_eq!(recoup(RUN, dir).0, Some(0));
    let options = MemoryOptions { keep: 2, block_bytes: 512, medium: MediumKind::File };
    let mut memory = Memory::open(&dir.join("files/x.memory"), options).unwrap();
    let mut heat = VersionedArray::new("heat", vec![1.5_f64; 200]);
    memory.commit(40, &mut [&mut heat]).unwrap();
    heat.write(0..1)[0] = 2.75;
    memory.commit(41, &mut [&mut heat]).unwrap();
}

fn change_files(cases: u64) {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    write_files(dir.path());
    let solution = dir.path().join("x.npy");
    assert_eq!(recoup(COMMANDS[3].0, dir.path()).0, Some(0));
    let true_solution = fs::read(&solution).unwrap();
    let files = MutatedFolder::of(&dir.path().join("files"));
    for case in 0..cases {
        let (arguments, codes) = COMMANDS[case as usize % COMMANDS.len()];
        let mut rng = Rng::new(SEED ^ (case << 8));
        let path = files.mutate(|| rng.next_u64());
        fs::remove_file(&solution).ok();
        let (code, said) = recoup(arguments, dir.path());
        let about = format!("{arguments}, case {case} of seed {SEED}, {}: {code:?}, {said}", path.display());
        assert!(code.is_some_and(|code| codes.contains(&code)) && !said.contains("panicked at"), "{about}");
        assert!(code == Some(0) || !said.trim().is_empty() || !arguments.starts_with("export"), "{about}");
        if let Ok(found) = fs::read(&solution) {
            assert!(found == true_solution, "another solution: {about}");
        }
        files.put_back();
    }
    println!("{cases} files changed at random under {} commands", COMMANDS.len());
}

#[test]
fn commands_say_what_is_wrong_with_files_changed_at_random() {
    change_files(36);
}

#[test]
#[ignore = "minutes: 4,000 processes"]
fn commands_say_what_is_wrong_with_four_thousand_files_changed_at_random() {
    change_files(4000);
}
