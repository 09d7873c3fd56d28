//! `recoup memory list`, `recoup memory verify` and `recoup memory advise`.

use std::path::Path;
use std::process::Command;

use recoup::memory::{MediumKind, Memory, MemoryOptions, VersionedArray};

/// Runs a task of `recoup memory`, and returns its exit code and what it printed.
fn memory(task: &str, dir: &Path) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
    let output = command.args(["memory", task, "heat.memory"]).current_dir(dir).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), text)
}

/// Two versions of two structures, of which the second version changes a block of one.
fn write_versions(path: &Path) {
    let options = MemoryOptions { keep: 2, block_bytes: 512, medium: MediumKind::File };
    let mut writer = Memory::open(path, options).unwrap();
    let mut heat = VersionedArray::new("heat", vec![1.5_f64; 200]);
    let mut names = VersionedArray::new("names", b"abc".to_vec());
    writer.commit(40, &mut [&mut heat, &mut names]).unwrap();
    heat.write(0..1)[0] = 2.75;
    writer.commit(41, &mut [&mut heat, &mut names]).unwrap();
}

/// The checksum of the format, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let shift = |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), shift))
}

/// A file of as many blocks, whose list has as many names of one block table.
fn forged(n_blocks: u64, n_names: u64) -> Vec<u8> {
    let table = [0, 0, 1, 0].repeat(n_blocks as usize).into_iter().flat_map(u32::to_le_bytes).collect::<Vec<u8>>();
    let table_crc = crc32c(&table);
    let head = [[1, 0], [1, 0], [1, 0], [n_names as u32, 0]].concat();
    let mut list: Vec<u8> = head.into_iter().flat_map(u32::to_le_bytes).collect();
    for index in 0..n_names {
        list.extend([8, 0, 6, 0]);
        list.extend(table_crc.to_le_bytes());
        list.extend([512 * n_blocks, 0].map(u64::to_le_bytes).concat());
        list.extend(format!("{index:08x}").as_bytes());
    }
    let list_place = (table.len() as u64).div_ceil(512);
    let mut root = b"RCMEMRY\x01\x01\0\0\0\0\0\0\0\0\x02\0\0".to_vec();
    root.extend(crc32c(&list).to_le_bytes());
    root.extend([list_place, list.len() as u64].map(u64::to_le_bytes).concat());
    root.resize(60, 0);
    root.extend(crc32c(&root).to_le_bytes());
    let mut bytes = vec![0; 8192];
    bytes[4096..4160].copy_from_slice(&root);
    bytes.extend(table);
    bytes.resize(8192 + 512 * list_place as usize, 0);
    bytes.extend(list);
    let places = bytes.len().div_ceil(512) as u64;
    bytes.resize(512 * places.max(16 + n_blocks) as usize, 0);
    bytes
}

/// Returns whether versions are listed with this limit on memory, in KiB.
fn lists_within(kib: usize, dir: &Path) -> bool {
    let line = format!("ulimit -c 0; ulimit -d {kib}; exec {} memory list heat.memory", env!("CARGO_BIN_EXE_recoup"));
    Command::new("sh").args(["-c", &line]).current_dir(dir).output().unwrap().status.success()
}

/// A file of 4.1 MB with 20,000 names took 24 MB more than a file with one.
#[test]
fn a_list_of_many_names_takes_no_more_memory_than_the_file_is_long() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("heat.memory");
    std::fs::write(&path, forged(2, 1)).unwrap();
    let limits: Vec<usize> = (0..2048).map(|step| 64 * step).collect();
    let least = limits[limits.partition_point(|kib| !lists_within(*kib, dir.path()))];
    let bytes = forged(8000, 20_000);
    std::fs::write(&path, &bytes).unwrap();
    assert!(memory("list", dir.path()).1.lines().count() > 20_000);
    assert!(lists_within(least + bytes.len() / 1024, dir.path()), "{least} KiB for one name, {} bytes", bytes.len());
}

#[test]
fn versions_are_listed_and_damage_is_named_with_its_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("heat.memory");
    let (code, text) = memory("list", dir.path());
    assert!(code == 1 && text.contains("heat.memory: open the file"), "{code}: {text}");
    write_versions(&path);
    let (code, text) = memory("list", dir.path());
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(code, 0, "{text}");
    let row = |version, step, name, kind, values| {
        rows.iter().any(|row| row.len() > 5 && row[..5] == [version, step, name, kind, values])
    };
    assert!(row("1", "40", "heat", "f64", "200") && row("2", "41", "names", "u8", "3"), "{text}");
    assert_eq!(memory("verify", dir.path()).0, 0);

    let whole = std::fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let at = whole.windows(8).position(|window| window == 2.75_f64.to_le_bytes()).unwrap();
    damaged[at] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    assert_eq!(memory("list", dir.path()).0, 0, "blocks are not read");
    let (code, text) = memory("verify", dir.path());
    assert!(code == 1 && text.contains("version 2, heat, block 0: checksum "), "{code}: {text}");

    // Without its last block, which both versions share, none is whole.
    let at = whole.windows(3).position(|window| window == b"abc").unwrap();
    damaged[at] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let (code, text) = memory("verify", dir.path());
    assert!(code == 4 && text.contains("version 1, names, block 0: "), "{code}: {text}");

    // The newest root is damaged: the version before is listed, and the root is named.
    let mut damaged = whole;
    damaged[8] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let (code, text) = memory("list", dir.path());
    assert!(code == 0 && text.contains("root 0: its checksum does not hold"), "{code}: {text}");
    std::fs::write(&path, b"no memory").unwrap();
    let (code, text) = memory("verify", dir.path());
    assert!(code == 1 && text.contains("heat.memory: it is no versioned memory"), "{code}: {text}");
}

#[test]
fn advice_has_half_the_time_for_greedy_and_the_optimum_for_auto() {
    let machines = [
        ("1s", "1h", "97.63 %", "49.97 %"),
        ("10s", "1d", "98.47 %", "49.99 %"),
        ("100ms", "1min", "94.18 %", "49.83 %"),
    ];
    for (cost, mtti, optimum, half) in machines {
        let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
        let output = command.args(["memory", "advise", "--cost", cost, "--mtti", mtti]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let row = |policy: &str| text.lines().find(|line| line.starts_with(policy)).unwrap().to_owned();
        assert!(row("auto ").contains(optimum) && row("greedy ").contains(half), "{text}");
        assert!(text.contains("auto saves every "), "{text}");
    }
}

/// The name of an array cleared the screen of whoever listed the file, and a pipe of its name was
/// waited for without an end.
#[test]
fn names_give_the_terminal_no_orders_and_a_pipe_is_no_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("heat.memory");
    let mut writer = Memory::open(&path, MemoryOptions::default()).unwrap();
    writer.commit(1, &mut [&mut VersionedArray::new("heat\u{1b}[2J\u{9b}31m", vec![1.5_f64; 20])]).unwrap();
    for task in ["list", "verify"] {
        let (code, text) = memory(task, dir.path());
        assert!(code == 0 && text.contains("heat\\u{1b}[2J\\u{9b}31m"), "{text}");
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
    }
    drop(writer);
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let (code, text) = memory("list", dir.path());
    assert!(code == 1 && text.contains("a file expected"), "{code}: {text}");
}

/// Reading the command line overflowed a stack of 256 KiB.
#[test]
fn a_small_stack_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    write_versions(&dir.path().join("heat.memory"));
    for words in ["memory list heat.memory", "memory verify heat.memory", "solve --poisson3d 6 --method cg --pc jacobi"]
    {
        let line = format!("ulimit -s 256; exec \"$0\" {words}");
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", &line, env!("CARGO_BIN_EXE_recoup")]).current_dir(dir.path()).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
