//! GetDP, as Debian has it, below `recoup exec`: the example it comes with, killed from outside.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use recoup_testkit::{Random, mpirun};

use super::petsc_exec::{Counts, Plain, stdout};

/// Newton's method for a magnet in a core that saturates: five solves.
const MAGNET: &str = "demos/magnet.pro -setnumber Flag_NL 1 -solve Magnetostatics_phi -pos phi -v 4";

/// GetDP with its examples, which `scripts/bootstrap.sh long` unpacks.
fn getdp() -> Option<Plain> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.getdp/usr");
    let Ok(program) = root.join("bin/getdp").canonicalize() else {
        println!("SKIPPED: no GetDP; scripts/bootstrap.sh long unpacks it into .getdp");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    for examples in ["demos", "templates"] {
        let examples = root.join("share/doc/getdp/examples").join(examples);
        assert!(Command::new("cp").arg("-r").args([&examples, folder.path()]).status().unwrap().success());
    }
    Some(Plain { folder, program: program.display().to_string(), variables: Vec::new() })
}

/// The files that GetDP has written, with their bytes; they are removed.
fn take_files(getdp: &Plain) -> Vec<(PathBuf, Vec<u8>)> {
    let demos = std::fs::read_dir(getdp.folder.path().join("demos")).unwrap();
    let is_written =
        |path: &PathBuf| path.extension().is_some_and(|kind| kind == "pos" || kind == "txt" || kind == "res");
    let mut paths: Vec<_> = demos.map(|entry| entry.unwrap().path()).filter(is_written).collect();
    paths.sort();
    let files = paths.into_iter().map(|path| {
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (path, bytes)
    });
    files.collect()
}

/// The lines of the solver and of Newton's method.
fn residuals(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains("Residual")).collect()
}

fn log_bytes(getdp: &Plain) -> u64 {
    let files = std::fs::read_dir(getdp.log().join("calls")).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// Runs until the log has this size, and kills the program there. Where it was faster than the
/// kill, it begins again.
fn kill_at(getdp: &Plain, bytes: u64) {
    let is_killed = (0..50).any(|_| {
        let mut command = getdp.start(1, MAGNET, Some(&["--share", "1"]));
        let mut job = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        mpirun::wait_until(|| log_bytes(getdp) >= bytes || job.try_wait().unwrap().is_some());
        let group = format!("-{}", job.id());
        Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status().unwrap();
        !job.wait().unwrap().success()
    });
    assert!(is_killed, "each run ended before its log had {bytes} bytes");
}

/// Solves by factors alone, whose norms a monitor shows, were never answered: the norms were not
/// kept.
#[test]
#[ignore = "needs GetDP and kills it many times: part of make soak"]
fn petsc_getdp_killed_from_outside_writes_what_it_would_have_written() {
    let Some(getdp) = getdp() else { return };
    let shown = getdp.plain(MAGNET);
    let expected = take_files(&getdp);
    assert!(expected.len() >= 4 && residuals(&shown).len() >= 10, "{shown}");
    let mut random = Random(20_261_130);
    for _ in 0..10 {
        // A call has 12,672 bytes, and the keys of the rows, after the first call, 24,944.
        let bytes = 37_616 + random.below(40_000) as u64;
        kill_at(&getdp, bytes);
        take_files(&getdp);
        let output = getdp.run(1, MAGNET, &["--share", "1"]);
        let counts = Counts::of(&output);
        println!("killed at {bytes} bytes: {} calls answered, {} saved", counts.replayed, counts.saved);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(residuals(&stdout(&output)), residuals(&shown));
        assert!(take_files(&getdp) == expected, "files differ");
        assert!(counts.replayed > 0 && counts.replayed + counts.saved == 5, "{counts:?}");
    }
}
