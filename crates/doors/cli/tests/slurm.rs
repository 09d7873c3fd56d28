//! Is a run at home on a cluster: does it stop before the job's end, say how it stands, and does
//! the script of docs/slurm.md bring a solve to its end through a requeue?

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use recoup_testkit::folders::newest_version;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{command, json, said};

/// Forty iterations or so, each of which takes its time.
const RUN: &str = "run --poisson3d 16 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1 --scheme lossless \
                   --interval 3it --dir d";

/// Waits until `is_so`, for a minute at most.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("a minute, and not {what}");
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_run_stops_with_a_version_before_the_end_of_its_job() {
    let in_seconds = |seconds: u64| SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
    // Ten seconds of work at least, and a job of three; one second is to be left.
    let ends = [
        ("--stop-before 1s", Some(in_seconds(3))),
        ("--stop-before 1s --time-limit 3s", None),
        ("", Some(in_seconds(50))),
    ];
    for (more, slurm) in ends {
        let dir = tempfile::tempdir().unwrap();
        let mut run = command(&format!("{RUN} --t-iter 250ms {more}"), dir.path());
        if let Some(end) = slurm {
            run.env("SLURM_JOB_END_TIME", end.to_string());
        }
        let output = run.output().unwrap();
        assert_eq!(output.status.code(), Some(75), "{more}: {}", said(&output));
        assert!(said(&output).contains("left of the job's time"), "{more}: {}", said(&output));
        let resumed = json(RUN, dir.path(), 0);
        assert!(resumed["resumed_from"].as_u64() > Some(0) && resumed["converged"] == true, "{more}: {resumed}");
    }
}

/// A stop came one step behind a safe point, where GMRES is in the middle of a cycle and cannot be
/// saved.
#[test]
fn a_run_with_safe_points_far_apart_stops_at_one() {
    let gmres = "run --poisson3d 12 --rhs-kind random --method gmres --restart 5 --rtol 1e-9 --threads 1 --dir d";
    // Exact versions are taken in mid-cycle, too.
    for (scheme, apart) in [("lossless", 5), ("exact", 1)] {
        let dir = tempfile::tempdir().unwrap();
        let run = format!("{gmres} --scheme {scheme}");
        let output = command(&format!("{run} --t-iter 100ms --time-limit 2s"), dir.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(75), "{scheme}: {}", said(&output));
        let resumed = json(&run, dir.path(), 0);
        let undisturbed = json(&format!("{run} --name other"), dir.path(), 0);
        let from = resumed["resumed_from"].as_u64().unwrap();
        assert!(from > 0 && from.is_multiple_of(apart), "{scheme}: {resumed}");
        assert_eq!(resumed["iterations"], undisturbed["iterations"], "{scheme}: such a version loses nothing");
    }
}

#[test]
fn durations_that_are_none_and_ends_that_are_not_known_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let refused = command(&format!("{RUN} --stop-before soon"), dir.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("10min"), "{}", said(&refused));
    let unknown = command(&format!("{RUN} --stop-before 5min"), dir.path()).output().unwrap();
    assert!(unknown.status.success() && said(&unknown).contains("no effect"), "{}", said(&unknown));
    // Such a job would be requeued for one iteration, again and again.
    let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 200;
    let late =
        command(&format!("{RUN} --stop-before 5min"), dir.path()).env("RECOUP_JOB_END", soon.to_string()).output();
    let late = late.unwrap();
    assert_eq!(late.status.code(), Some(2), "{}", said(&late));
    assert!(said(&late).contains("leaves no time of the job"), "{}", said(&late));
    let kills = format!("{RUN} --time-limit 5min --failures kill --mtti 1h");
    assert_eq!(command(&kills, dir.path()).output().unwrap().status.code(), Some(2));
}

#[test]
fn status_tells_a_run_that_computes_from_one_that_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(&format!("{RUN} --t-iter 1s"), dir.path()).stderr(Stdio::null()).spawn().unwrap();
    let status = || json("status d", dir.path(), 0)["runs"][0].clone();
    let has_begun = || dir.path().join("d/solve/status.json").exists() && status()["newest_version"].as_u64() > Some(0);
    wait_until("a version", || has_begun() && status()["iteration"].as_u64() > Some(0));
    let running = status();
    assert_eq!((&running["state"], &running["alive"]), (&Value::from("running"), &Value::from(true)), "{running}");
    assert_eq!((&running["process"], &running["failures"]), (&Value::from(child.id()), &Value::from(0)), "{running}");
    assert!(running["relative_residual"].as_f64() > Some(0.0) && running["scheme"] == "lossless", "{running}");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    let dead = status();
    assert_eq!((&dead["state"], &dead["alive"]), (&Value::from("dead"), &Value::from(false)), "{dead}");
    json(RUN, dir.path(), 0);
    let done = status();
    assert_eq!((&done["state"], &done["failures"]), (&Value::from("converged"), &Value::from(1)), "{done}");
    // A second run in the same directory is listed beside it.
    json(&format!("{RUN} --name other"), dir.path(), 0);
    assert_eq!(json("status d", dir.path(), 0)["runs"].as_array().unwrap().len(), 2);
    let table = command("status d", dir.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&table.stdout).contains("lossless, 3it"), "{table:?}");
    assert_eq!(command("status nowhere", dir.path()).output().unwrap().status.code(), Some(1));
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/slurm.md")).unwrap()
}

/// The script of the page.
fn script() -> String {
    page().split("```bash\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}

fn program(path: &Path, text: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A tridiagonal matrix, on which CG takes many iterations.
fn write_matrix(path: &Path) {
    let n = 400;
    let mut text = format!("%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {}\n", 2 * n - 1);
    for row in 1..=n {
        text += &format!("{row} {row} 2.0\n");
        if row < n {
            text += &format!("{} {row} -1.0\n", row + 1);
        }
    }
    std::fs::write(path, text).unwrap();
}

/// The script in the place of a job, with programs in the place of Slurm's: this build may know no
/// MPI, and iterations take their time.
fn job(dir: &Path) -> Command {
    let bin = dir.join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(dir.join("shm")).unwrap();
    program(&bin.join("srun"), "test \"$1\" = --mpi=pmix || exit 64\nshift\nexec \"$@\"");
    program(&bin.join("squeue"), "test \"$*\" = '-h -j 42 -o %e' && date -d '+1 hour' +%FT%T");
    program(&bin.join("scontrol"), "echo \"$@\" >> requeued");
    let real = env!("CARGO_BIN_EXE_recoup");
    let without_mpi = "for word; do shift; test \"$word\" = --mpi || set -- \"$@\" \"$word\"; done";
    program(
        &bin.join("recoup"),
        &format!("{without_mpi}\nexec {real} \"$@\" --t-iter 5ms --threads 1 --interval 20it"),
    );
    std::fs::write(dir.join("job.sh"), script()).unwrap();
    write_matrix(&dir.join("A.mtx"));
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut job = Command::new("bash");
    job.arg("job.sh").current_dir(dir).env("PATH", path).env("MEMORY", dir.join("shm"));
    job.envs([("SLURM_JOB_ID", "42"), ("SLURM_JOB_NAME", "poisson"), ("SLURM_NTASKS", "1")])
        .env_remove("SLURM_JOB_END_TIME");
    job.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    job
}

#[test]
fn the_script_of_the_page_stops_is_requeued_and_converges_in_its_second_life() {
    let dir = tempfile::tempdir().unwrap();
    let first = job(dir.path()).spawn().unwrap();
    wait_until("a version", || newest_version(&dir.path().join("versions/poisson")).is_some());
    signal(&first, Signal::USR1);
    let first = first.wait_with_output().unwrap();
    assert_eq!(first.status.code(), Some(75), "{}", said(&first));
    assert_eq!(std::fs::read_to_string(dir.path().join("requeued")).unwrap(), "requeue 42\n");
    assert!(!dir.path().join("x.npy").exists());
    let second = job(dir.path()).env("SLURM_RESTART_COUNT", "1").output().unwrap();
    assert_eq!(second.status.code(), Some(0), "{}", said(&second));
    assert!(said(&second).contains("resuming from version"), "{}", said(&second));
    assert_eq!(std::fs::read_to_string(dir.path().join("requeued")).unwrap(), "requeue 42\n");
    assert_eq!(std::fs::metadata(dir.path().join("x.npy")).unwrap().len(), 128 + 8 * 400);
    let log = std::fs::read_to_string(dir.path().join("residuals.csv")).unwrap();
    let executed: Vec<u64> = log.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(executed.windows(2).all(|pair| pair[1] == pair[0] + 1), "both lives in one log: {log}");
}

/// With the words of `qstat` of PBS; no other batch system was at hand.
#[test]
fn lines_of_the_page_give_the_end_of_a_job() {
    let dir = tempfile::tempdir().unwrap();
    let said = "Job Id: 12.pbs\n    Resource_List.nodect = 2\n    Resource_List.walltime = 02:30:00\n    resources_used.walltime = 00:00:02";
    program(&dir.path().join("qstat"), &format!("test \"$*\" = '-f 12.pbs' && printf '{said}\\n'"));
    let path = format!("{}:{}", dir.path().display(), std::env::var("PATH").unwrap());
    let lines: Vec<String> =
        page().split('`').filter(|code| code.starts_with("export RECOUP_JOB_END")).map(str::to_owned).collect();
    assert_eq!(lines.len(), 3);
    for line in lines {
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("{line}; echo $(( RECOUP_JOB_END - $(date +%s) ))")]).env("PATH", &path);
        let output = shell.envs([("PBS_WALLTIME", "9000"), ("PBS_JOBID", "12.pbs")]).output().unwrap();
        let left: i64 =
            String::from_utf8_lossy(&output.stdout).trim().parse().unwrap_or_else(|_| panic!("{line}: {output:?}"));
        let seconds = if line.contains("240 * 60") { 14_400 } else { 9_000 };
        assert!((seconds - 5..=seconds).contains(&left), "{line}: {left}");
    }
}

/// A killed rank ended the job for good, though a version was there, and code 0 of a launcher that
/// had lost a host passed for a solution.
#[test]
fn the_script_continues_after_killed_ranks_and_lost_hosts_a_few_times() {
    for (code, end) in [(137, 137), (0, 1), (1, 1), (3, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let mut life = job(dir.path());
        program(&dir.path().join("bin/srun"), &format!("test \"$SLURM_JOB_END_TIME\" -gt 0 && exit {code}"));
        let lives = |life: &mut Command, n: usize| {
            (0..n).for_each(|_| assert_eq!(life.output().unwrap().status.code(), Some(end), "{code}"));
            std::fs::read_to_string(dir.path().join("requeued")).map_or(0, |requeued| requeued.lines().count())
        };
        std::fs::create_dir_all(dir.path().join("versions/poisson")).unwrap();
        assert_eq!(lives(&mut life, 1), 0, "{code}: there is no version to continue from");
        std::fs::create_dir(dir.path().join("versions/poisson/v000000000020")).unwrap();
        std::fs::write(dir.path().join("versions/poisson/v000000000020/manifest.json"), "").unwrap();
        assert_eq!(lives(&mut life, 6), if code == 137 || code == 0 { 4 } else { 0 }, "{code}");
    }
}
