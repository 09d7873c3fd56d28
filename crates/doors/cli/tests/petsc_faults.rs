//! `recoup exec` where something is wrong: a damaged log, no room, no directory, no engine.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use recoup::io::{CallLog, LogPart, LogRows};

use super::petsc_exec::{CG, Counts, Plain, stderr, stdout};

/// The calls of all ranks.
const WORLD: &str = "0000000000000000";
/// What the log has for others than calls has numbers from here on.
const BESIDE_CALLS: u64 = 1 << 63;

/// The head of an entry of a log, as FORMAT.md has it.
struct Head {
    number: u64,
    /// All rows of the vector.
    rows: LogRows,
    /// The end of the entry in the file.
    end: usize,
}

fn heads(log: &[u8]) -> Vec<Head> {
    let wide = |at: usize| u64::from_le_bytes(*log[at..].first_chunk().unwrap());
    let narrow = |at: usize| u32::from_le_bytes(*log[at..].first_chunk().unwrap());
    let mut heads = Vec::new();
    let mut start = 0;
    while start < log.len() {
        let rows = LogRows { first: 0, count: wide(start + 32), global: wide(start + 32), bytes: narrow(start + 40) };
        let end = start + 64 + (narrow(start + 44) as usize) + (wide(start + 24) * u64::from(rows.bytes)) as usize;
        heads.push(Head { number: wide(start + 8), rows, end });
        start = end;
    }
    heads
}

/// Whether a place in a log is of an entry that is no call.
fn is_beside_calls(heads: &[Head], place: usize) -> bool {
    heads.iter().find(|head| place < head.end).is_some_and(|head| head.number >= BESIDE_CALLS)
}

fn log_files(heat: &Plain) -> Vec<PathBuf> {
    let files = std::fs::read_dir(heat.log().join("calls")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

/// What the engine reads, whichever byte of its log is damaged, is as it was kept, or not found. So
/// it is where one rank reads the log of two.
#[test]
fn petsc_log_gives_what_was_kept_or_nothing_whichever_byte_is_damaged() {
    let Some(heat) = Plain::heat() else { return };
    for ranks in [1, 2] {
        heat.killed(ranks, &format!("{CG} -n 4 -steps 4 -kill_at 3"));
        let files = log_files(&heat);
        assert_eq!(files.len(), ranks);
        let wanted = heads(&std::fs::read(&files[0]).unwrap());
        let n_beside = wanted.iter().filter(|head| head.number >= BESIDE_CALLS).count();
        assert_eq!((wanted.len(), n_beside), (5, 2), "three calls, and two keys of their rows");
        let read = || -> Vec<Option<(Vec<u8>, Vec<u8>)>> {
            let part = LogPart { stream: WORLD.to_owned(), rank: 0, size: 1 };
            let mut log = CallLog::open(&heat.log(), part, u64::MAX).unwrap();
            let find = |head: &Head| {
                let mut values = vec![0; (head.rows.count * u64::from(head.rows.bytes)) as usize];
                log.find(head.number, head.rows, &mut values).unwrap().map(|facts| (facts, values))
            };
            wanted.iter().map(find).collect()
        };
        let kept = read();
        assert!(kept.iter().all(Option::is_some), "{kept:?}");
        for file in &files {
            let mut bytes = std::fs::read(file).unwrap();
            for place in 0..bytes.len() {
                bytes[place] ^= 1 << (place % 8);
                std::fs::write(file, &bytes).unwrap();
                bytes[place] ^= 1 << (place % 8);
                let found = read();
                assert!(found.iter().any(Option::is_none), "byte {place}");
                assert!(found.iter().zip(&kept).all(|(found, kept)| found.is_none() || found == kept), "byte {place}");
            }
            std::fs::write(file, &bytes).unwrap();
        }
        std::fs::remove_dir_all(heat.log()).unwrap();
    }
}

/// Starts the program for each of these bytes of its log, with a bit of that flipped.
fn start_with_damage(size: u32, places: impl Fn(usize) -> Vec<usize>) {
    let Some(heat) = Plain::heat() else { return };
    let arguments = format!("{CG} -n {size} -steps 4");
    let expected = heat.plain(&arguments);
    heat.killed(1, &format!("{arguments} -kill_at 3"));
    let log = log_files(&heat).remove(0);
    let bytes = std::fs::read(&log).unwrap();
    let heads = heads(&bytes);
    for place in places(bytes.len()) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        std::fs::write(&log, damaged).unwrap();
        let (found, counts) = heat.finish(1, &arguments);
        assert_eq!(found, expected, "byte {place}");
        assert!(counts.replayed < 3 || is_beside_calls(&heads, place), "byte {place}: {counts:?}");
    }
}

/// Damage costs calls, which are solved again, and never a digit.
#[test]
fn petsc_log_that_is_damaged_costs_calls_alone() {
    // An eighth of an entry apart: in headers, facts and values.
    start_with_damage(8, |bytes| (0..bytes).step_by(bytes / 24).collect());
}

#[test]
#[ignore = "starts a program for each byte of a log: part of make soak"]
fn petsc_log_costs_calls_alone_whichever_byte_is_damaged() {
    start_with_damage(3, |bytes| (0..bytes).collect());
}

/// The program, what it prints, and a script in its place that ends with 7 after it.
fn heat_that_ends_with_7() -> Option<(Plain, String)> {
    let mut heat = Plain::heat()?;
    let expected = heat.plain(CG);
    let script = heat.folder.path().join("ends-with-7");
    std::fs::write(&script, format!("#!/bin/sh\n{} \"$@\"\nexit 7\n", heat.program)).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    heat.program = script.display().to_string();
    Some((heat, expected))
}

/// A program that ended with another code than 0 is answered from its log.
#[test]
fn petsc_log_is_left_where_the_program_ends_with_a_code_of_its_own() {
    let Some((heat, expected)) = heat_that_ends_with_7() else { return };
    for replayed in [0, 12] {
        let output = heat.run(1, CG, &["--share", "1"]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(7), expected.clone()), "{output:?}");
        assert_eq!(Counts::of(&output).replayed, replayed, "{output:?}");
        assert!(heat.log().exists());
    }
}

/// The program runs as without recoup, with its own exit code, and a line says what is missing.
#[test]
fn petsc_program_runs_where_nothing_can_be_saved() {
    let Some((heat, expected)) = heat_that_ends_with_7() else { return };
    let check = |what: &str, change: &dyn Fn(&mut Command)| {
        let mut command = heat.start(1, CG, Some(&[]));
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(7), expected.clone()), "{output:?}");
        assert!(stderr(&output).contains(what), "{what}: {output:?}");
    };
    check("nothing is saved: /dev/null/recoup/engine", &|command| {
        command.env("XDG_CACHE_HOME", "/dev/null");
    });
    std::fs::write(heat.log(), "a file").unwrap();
    check("nothing is saved: log cannot be made", &|_| {});
    std::fs::remove_file(heat.log()).unwrap();
    std::fs::create_dir(heat.log()).unwrap();
    let lock = std::fs::File::create(heat.log().join("exec.lock")).unwrap();
    lock.lock().unwrap();
    check("nothing is saved: another job has log", &|_| {});
}

/// A log that grows no more, or never began, leaves the program alone.
#[test]
fn petsc_program_runs_on_when_the_disk_is_full_or_read_only() {
    let Some((heat, expected)) = heat_that_ends_with_7() else { return };
    for (option, what) in [("size=32k", "nothing more is saved"), ("ro", "nothing is saved: ")] {
        // A file system of eight pages in a mount namespace of its own, for which one must be root.
        let mount = format!("mkdir -p log && mount -t tmpfs -o {option} none log");
        let inside =
            |body: &str| heat.command(&["unshare", "-m", "sh", "-c", &format!("{mount} && {body}")].map(str::to_owned));
        if !inside("true").status().is_ok_and(|status| status.success()) {
            eprintln!("SKIPPED: no file system can be mounted");
            return;
        }
        let recoup = env!("CARGO_BIN_EXE_recoup");
        let output = inside(&format!("{recoup} exec --dir log --share 1 -- {} {CG}", heat.program)).output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(7), expected.clone()), "{output:?}");
        assert!(stderr(&output).contains(what), "{output:?}");
    }
}

#[test]
fn petsc_engine_is_not_reached_from_static_and_setuid_programs_which_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("end.c"), "int main(void) { return 3; }").unwrap();
    for (flag, mode, reason) in [("-static", 0o755, "linked statically"), ("-O1", 0o4755, "setuid")] {
        let made = Command::new("cc").args([flag, "end.c", "-o", "end"]).current_dir(folder.path()).status();
        if !made.is_ok_and(|made| made.success()) {
            eprintln!("SKIPPED: cc makes no such program with {flag}");
            continue;
        }
        std::fs::set_permissions(folder.path().join("end"), Permissions::from_mode(mode)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_recoup"));
        command.args(["exec", "--dir", "log", "--", "./end"]).current_dir(folder.path());
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let said = stderr(&output);
        assert!(said.contains(reason) || said.contains("nothing is saved"), "{said}");
    }
}
