//! Files of others, files that are none, and limits of the process.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use recoup_memory::{MediumKind, Memory, MemoryOptions, MemoryReader, VersionedArray};

/// Names the file to the child process.
const FILE: &str = "RECOUP_TEST_MEMORY_FILE";
/// Kilobytes that the child may write to a file.
const LIMIT_KILOBYTES: usize = 256;

/// The error of a writer.
fn refusal(path: &Path) -> String {
    let error = Memory::open(path, MemoryOptions::default()).unwrap_err();
    format!("{error}")
}

/// A file that everybody may write to was used with the values that another user had put there.
#[test]
fn a_file_that_others_may_have_written_can_be_read_and_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heat.memory");
    let mut heat = VersionedArray::new("heat", vec![1.5_f64; 100]);
    Memory::open(&path, MemoryOptions::default()).unwrap().commit(1, &mut [&mut heat]).unwrap();
    let set_mode = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o666);
    assert!(refusal(&path).contains("chmod o-w"), "{}", refusal(&path));
    assert_eq!(MemoryReader::open(&path).unwrap().versions().unwrap().0.len(), 1);
    // A group may share it, and the user may reach it by a link.
    set_mode(0o664);
    let link = folder.path().join("link");
    symlink(&path, &link).unwrap();
    Memory::open(&link, MemoryOptions::default()).unwrap();
    if chown(&path, Some(65_533), None).is_err() {
        eprintln!("SKIPPED: giving a file to another user needs root");
        return;
    }
    assert!(refusal(&path).contains("belongs to user 65533"), "{}", refusal(&path));
    MemoryReader::open(&path).unwrap();
}

/// `recoup memory list` of a pipe waited without an end.
#[test]
fn a_pipe_is_an_error_and_no_wait() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let read = MemoryReader::open(&path).unwrap_err().to_string();
    for error in [refusal(&path), read] {
        assert!(error.contains("a file expected"), "{error}");
    }
}

/// Commits until the file may not become longer; continues with a smaller state.
#[test]
fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let path = Path::new(&path);
    for medium in [MediumKind::File, MediumKind::Map] {
        let options = MemoryOptions { medium, block_bytes: 4096, ..MemoryOptions::default() };
        let mut memory = Memory::open(path, options).unwrap();
        let mut small = VersionedArray::new("heat", vec![1.5_f64; 100]);
        let mut large = VersionedArray::new("heat", vec![2.5_f64; 1024 * LIMIT_KILOBYTES / 8]);
        let kept = memory.commit(1, &mut [&mut small]).unwrap();
        let error = format!("{:?}", memory.commit(2, &mut [&mut large]).unwrap_err());
        assert!(error.contains("FileTooLarge"), "{error}");
        small.write(0..1).fill(3.5);
        assert_eq!(memory.commit(3, &mut [&mut small]).unwrap(), kept + 1);
        drop(memory);
        fs::remove_file(path).unwrap();
    }
    println!("the limit was an error");
}

/// A file that grows beyond `ulimit -f` ended the program by a signal. After such an error, as
/// after a full disk, no commit worked that fitted: the file was to have room for the one that
/// did not.
#[test]
fn the_limit_of_the_size_of_files_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    // dash counts blocks of 512 bytes.
    let line = format!("ulimit -f {}; exec \"$0\" others::child --exact --nocapture", 2 * LIMIT_KILOBYTES);
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("dash");
    command.args(["-c", &line]).arg(program).env(FILE, folder.path().join("heat.memory"));
    let Ok(Output { stdout, stderr, status }) = command.output() else {
        eprintln!("SKIPPED: dash is not on this machine");
        return;
    };
    let said = String::from_utf8_lossy(&stdout);
    assert!(said.contains("the limit was an error"), "{status}: {said} {}", String::from_utf8_lossy(&stderr));
}
