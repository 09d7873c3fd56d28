//! Jobs of programs whose ranks wait for one that stands still: it is named, and the job ends at
//! the limit.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use recoup::roll_call::{HANG_LIMIT_VARIABLE, MissingRanks, by_host, missing};
use recoup_testkit::folders::newest_version;
use recoup_testkit::mpirun;

use crate::build::{compile, has, root, strict};
use crate::petsc::{CG, Example};

const WAIT: &str = "have waited for";

/// Returns the process of rank `rank` of a job whose ranks run `program`.
fn process_of(program: &Path, rank: usize) -> Option<String> {
    let own = [format!("OMPI_COMM_WORLD_RANK={rank}"), format!("PMI_RANK={rank}")];
    std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let is_program = std::fs::read_link(entry.path().join("exe")).ok()? == program;
        let variables = std::fs::read(entry.path().join("environ")).ok()?;
        let is_rank = variables.split(|&byte| byte == 0).any(|one| own.iter().any(|own| one == own.as_bytes()));
        (is_program && is_rank).then(|| entry.file_name().to_string_lossy().into_owned())
    })
}

/// Waits until the job has saved `version`, stops rank 1, and waits for the end of the job. Returns
/// the ranks that were missing meanwhile, and what the job printed on stderr.
fn stopped(mut command: Command, program: &Path, run: &Path, version: u64) -> (MissingRanks, String) {
    let mut job = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    mpirun::wait_until(|| newest_version(run) >= Some(version) || job.try_wait().unwrap().is_some());
    // Time to leave the call that saved it.
    std::thread::sleep(Duration::from_millis(500));
    let process = process_of(program, 1).expect("rank 1 runs");
    assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
    let mut found = MissingRanks::default();
    mpirun::wait_until(|| {
        found = missing(run);
        !found.ranks.is_empty() || job.try_wait().unwrap().is_some()
    });
    let ended = job.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(75), "{text}");
    (found, text)
}

/// Checks that rank 1 was missing, and that the others said so in one of these words.
fn check(found: &MissingRanks, text: &str, verbs: &[&str]) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let expected = format!("rank 1 on {}", host.trim());
    assert_eq!(by_host(&found.ranks), expected, "{text}");
    assert!(found.said_ago < Duration::from_secs(60), "{found:?}");
    let line = text.lines().find(|line| line.starts_with("recoup: 1 of 2 ranks have ")).expect(text);
    assert!(verbs.iter().any(|verb| line.contains(verb)) && line.ends_with(&expected), "{line}");
    assert!(text.contains("recoup: hang-limit: the job ends with code 75"), "{text}");
}

/// A program of the library waited without end and without a word.
#[test]
fn ranks_of_a_c_program_name_one_that_stands_still_and_end_the_job_at_the_limit() {
    if !has("mpicc") || !has("mpirun") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = compile("mpicc", "crates/doors/capi/tests/c/hang.c", &strict("-std=c11"), folder.path());
    // With one thread the callbacks are made in calls of the program only.
    for (threads, options, variable) in [("multiple", "hang-limit=6s", None), ("single", "", Some("6s"))] {
        let dir = folder.path().join(threads);
        let mut command = mpirun::command(2);
        command.arg(&program).arg(format!("dir={} interval=5it {options}", dir.display())).arg(threads);
        command.envs(variable.map(|limit| (HANG_LIMIT_VARIABLE, limit)));
        let (found, text) = stopped(command, &program, &dir.join("solve"), 10);
        check(&found, &text, &[WAIT]);
        assert_eq!(missing(&dir.join("solve")), MissingRanks::default(), "no rank waits any more");
    }
    // Rank 1 is stopped where rank 0 waits for it in a call of the program's own.
    let dir = folder.path().join("own");
    let mut command = mpirun::command(2);
    command.arg(&program).arg(format!("dir={} interval=5it sync hang-limit=6s", dir.display())).arg("own");
    let (found, text) = stopped(command, &program, &dir.join("solve"), 100);
    check(&found, &text, &["have made no call for"]);
    let mut command = mpirun::command(1);
    command.arg(&program).arg(format!("dir={}", folder.path().join("d").display())).arg("single");
    let refused = command.env(HANG_LIMIT_VARIABLE, "soon").output().unwrap();
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(text.contains("RECOUP_HANG_LIMIT: expected at least 1s"), "{text}");
}

#[test]
fn ranks_of_a_fortran_program_name_one_that_stands_still_and_end_the_job_at_the_limit() {
    if !["mpicc", "mpifort", "mpirun"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let comm = compile("mpicc", "crates/doors/capi/tests/c/hang_comm.c", &["-c".to_owned()], folder.path());
    let mut flags = strict("-std=f2008");
    flags.push(root().join("crates/doors/capi/tests/c/hang.f90").display().to_string());
    flags.push(comm.display().to_string());
    let program = compile("mpifort", "crates/doors/capi/include/recoup.f90", &flags, folder.path());
    for (name, options, variable) in [("option", "hang-limit=6s", None), ("variable", "", Some("6s"))] {
        let dir = folder.path().join(name);
        let mut command = mpirun::command(2);
        command.arg(&program).arg(format!("dir={} interval=5it {options}", dir.display()));
        command.envs(variable.map(|limit| (HANG_LIMIT_VARIABLE, limit)));
        let (found, text) = stopped(command, &program, &dir.join("solve"), 10);
        check(&found, &text, &[WAIT]);
    }
}

#[test]
fn ranks_of_a_petsc_program_name_one_that_stands_still_and_end_the_job_at_the_limit() {
    let Some(ksp) = Example::of("examples/embed/ksp.c") else { return };
    let dir = ksp.dir("hang");
    let mut command = mpirun::command(2);
    command.arg(ksp.program()).args(["-n", "100"]).args(CG.split(' ')).args(["-ksp_rtol", "1e-13"]);
    command.args(["-ckpt", &format!("dir={} interval=5it hang-limit=6s", dir.display())]);
    let (found, text) = stopped(command, ksp.program(), &dir.join("solve"), 20);
    // Most probably the others wait in a call of PETSc's own.
    check(&found, &text, &[WAIT, "have made no call for"]);
}
