//! The table "What survives what" of docs/operations.md: a test for each row goes through its
//! columns, as a user would, and prints a line for each cell.
//!
//! `cargo test -p recoup-cli --test mpi survives -- --nocapture --test-threads 1`.
//!
//! A host is a name (`unshare` gives it), a directory of memory, and a way to the directory that
//! all hosts share. A killed job gets SIGKILL, on all ranks at once. Exact versions continue bit
//! for bit: the values are right if the last residual is that of the undisturbed solve.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use recoup::model::Rng;
use recoup_testkit::folders::{newest_version, versions};
use recoup_testkit::mpirun::{self, wait_until};
use serde_json::Value;

use crate::alone;
use crate::memory::{family, has_note, kill, ranks};

/// As many as `rs:4+2` needs.
const HOSTS: [usize; 6] = [0, 1, 2, 3, 4, 5];
/// The hosts of the next job where host 1 is lost: all but the first have another place.
const WITHOUT_HOST_1: [usize; 6] = [0, 2, 3, 4, 5, 6];
const SOLVE: &str = "--poisson3d 20 --rhs-kind random --method cg --pc jacobi --rtol 1e-8 --threads 1";
/// A version takes some milliseconds, and the next is due after half a second.
const PACED: &str = "--scheme exact --interval 5it --t-iter 100ms";
/// Version at which jobs are killed; the one before is stored as well.
const KILLED_AT: u64 = 15;

const COLUMNS: [&str; 4] = ["memory", "memory,partner:ring1", "memory,rs:4+2", "pfs"];

/// What the next start does.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// Continues from the newest version. The words of its notes, if it has to say something.
    Newest(&'static str),
    /// Continues from the version before, and names the newest with these words.
    Before(&'static str),
    /// Begins at 0, and says these words.
    Start(&'static str),
}
use Next::{Before, Newest, Start};

/// One cell of the table: a run, and what is done to it.
struct Cell {
    row: &'static str,
    tiers: String,
    /// The host of each rank of the first job.
    hosts: [usize; 6],
    dir: tempfile::TempDir,
}

impl Cell {
    fn new(row: &'static str, tiers: &str) -> Self {
        let cell = Self { row, tiers: tiers.to_owned(), hosts: HOSTS, dir: tempfile::tempdir().unwrap() };
        fs::create_dir(cell.at("shared")).unwrap();
        for host in 0..8 {
            fs::create_dir_all(cell.memory(host)).unwrap();
            symlink("../shared", cell.pfs(host)).unwrap();
        }
        cell
    }

    /// A run that was killed when `KILLED_AT` counted on all ranks.
    fn killed(row: &'static str, tiers: &str) -> Self {
        let cell = Self::new(row, tiers);
        cell.kill_at(KILLED_AT, PACED);
        cell
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn memory(&self, host: usize) -> PathBuf {
        self.at(&format!("host{host}/memory"))
    }

    fn pfs(&self, host: usize) -> PathBuf {
        self.at(&format!("host{host}/pfs"))
    }

    fn is_in_memory(&self) -> bool {
        self.tiers.starts_with("memory")
    }

    /// The job, with a rank on each of the hosts. Files of `mpirun` go with the cell.
    fn job(&self, hosts: &[usize], more: &str) -> Command {
        let mut command = mpirun::command(1);
        for (rank, host) in hosts.iter().enumerate() {
            command.args([":", "-n", "1"].iter().skip(if rank == 0 { 3 } else { 0 }));
            let own = format!("--tiers {} --memory-dir host{host}/memory --dir host{host}/pfs/d", self.tiers);
            let words = format!("run --mpi --json {SOLVE} {own} {more}");
            if let Some(unshare) = unshare() {
                let name = format!("echo h{host} > /proc/sys/kernel/hostname && exec \"$0\" \"$@\"");
                command.args(unshare.split(' ')).args(["sh", "-c", &name]);
            }
            command.arg(env!("CARGO_BIN_EXE_recoup")).args(words.split_whitespace());
        }
        command.current_dir(self.dir.path()).env("TMPDIR", self.dir.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn kill_at(&self, version: u64, more: &str) {
        let mut job = self.job(&self.hosts, more).spawn().unwrap();
        wait_until(|| {
            assert_eq!(job.try_wait().unwrap(), None, "the job ends before it is killed");
            self.newest().is_some_and(|newest| newest >= version)
        });
        end(&mut job);
    }

    /// The newest version that counts on all hosts.
    fn newest(&self) -> Option<u64> {
        if !self.is_in_memory() {
            return newest_version(&self.at("shared/d/solve"));
        }
        let of_host = |host| self.marked(host).last().map(|(version, _)| *version);
        self.hosts.into_iter().map(of_host).min().flatten()
    }

    /// The versions that the shelf of a host's rank has marked, with their directories.
    fn marked(&self, host: usize) -> Vec<(u64, PathBuf)> {
        let mut shelf = self.memory(host);
        // The user's, the run's, the node's and the rank's.
        for _ in 0..4 {
            let Some(below) = fs::read_dir(&shelf).into_iter().flatten().flatten().next() else { return Vec::new() };
            shelf = below.path();
        }
        versions(&shelf).into_iter().filter(|(_, path)| path.join("commit").exists()).collect()
    }

    /// The file with the values of rank 1 in the newest version.
    fn file(&self) -> PathBuf {
        if !self.is_in_memory() {
            return self.at(&format!("shared/d/solve/v{:012}/rank-000001.h5", self.newest().unwrap()));
        }
        self.marked(1).pop().unwrap().1.join("blob-000001")
    }

    fn lose_hosts(&self, hosts: &[usize]) {
        hosts.iter().for_each(|&host| empty(&self.memory(host)));
    }

    /// Starts again on these hosts, `newest` being what counted, and checks what comes back.
    fn next(&self, done: &str, hosts: &[usize], newest: u64, expected: Next) {
        let output = self.job(hosts, "--scheme exact --interval 5it").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let run: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        let version = run["resumed_from"].as_u64().unwrap_or(0);
        self.tell(done, &format!("{newest} counted, continues from {version}"));
        let (is_right, words) = match expected {
            // A version that not all had marked counts where all of it is there.
            Newest(words) => (version >= newest, words),
            Before(words) => (0 < version && version < newest, words),
            Start(words) => (version == 0, words),
        };
        let cell = format!("{}, {}, {done}, {expected:?}: {run}\n{said}", self.row, self.tiers);
        assert!(is_right && (said.contains(words) || has_note(&run, words)), "{cell}");
        let undisturbed = undisturbed();
        for key in ["converged", "iterations", "relative_residual"] {
            assert_eq!(run[key], undisturbed[key], "{cell}");
        }
        assert_eq!(run["iterations"].as_u64().unwrap() - version, run["iterations_executed"].as_u64().unwrap());
    }

    fn tell(&self, done: &str, came: &str) {
        println!("{:33} | {:20} | {done:32} | {came}", self.row, self.tiers);
    }
}

/// The command that gives a process a host name of its own, where that is allowed.
fn unshare() -> Option<&'static str> {
    let is_allowed = |words: &&str| {
        let words: Vec<&str> = words.split(' ').collect();
        Command::new(words[0]).args(&words[1..]).arg("true").status().is_ok_and(|status| status.success())
    };
    static WORDS: OnceLock<Option<&str>> = OnceLock::new();
    let found = WORDS.get_or_init(|| ["unshare --uts", "unshare --map-root-user --uts"].into_iter().find(is_allowed));
    if found.is_none() {
        println!("SKIPPED: a host of another name needs unshare");
    }
    *found
}

fn undisturbed() -> &'static Value {
    static SOLVED: OnceLock<Value> = OnceLock::new();
    SOLVED.get_or_init(|| alone(&format!("solve {SOLVE}"), Path::new("/")))
}

/// SIGKILL for a job.
fn end(job: &mut Child) {
    kill("-KILL", &family(job.id()));
    job.wait().unwrap();
}

fn empty(folder: &Path) {
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
}

#[test]
fn process() {
    for tiers in COLUMNS {
        let cell = Cell::new("the process", tiers);
        let mut random = Rng::new(1);
        let mut newest = 0;
        for _ in 0..3 {
            let mut job = cell.job(&HOSTS, PACED).spawn().unwrap();
            // The three come to 4 s, and the solve takes 6 where nothing else runs.
            let instant = Duration::from_secs_f64(2.4 * random.uniform());
            std::thread::sleep(instant);
            end(&mut job);
            let before = std::mem::replace(&mut newest, cell.newest().unwrap_or(0));
            cell.tell(&format!("killed after {:.3} s", instant.as_secs_f64()), &format!("{newest} counts"));
            assert!(newest >= before, "{before} counted");
        }
        cell.kill_at(KILLED_AT.max(newest + 5), PACED);
        cell.next("killed", &HOSTS, cell.newest().unwrap(), Newest(""));
    }
}

#[test]
fn node() {
    if unshare().is_none() {
        return;
    }
    let lost = Start("the part of rank 1 is lost");
    // The partner has the place of rank 1 now, and its copy as its own.
    let next = [lost, Newest(""), Newest("from its erasure set"), Newest("")];
    for (tiers, next) in COLUMNS.into_iter().zip(next) {
        let cell = Cell::killed("a node and its memory", tiers);
        let newest = cell.newest().unwrap();
        cell.lose_hosts(&[1]);
        cell.next("host 1 lost, another behind", &WITHOUT_HOST_1, newest, next);
    }
}

#[test]
fn two_nodes() {
    let rebuilt = Newest("from its erasure set");
    for (tiers, hosts, next) in [
        (COLUMNS[0], [1, 3], Start("the part of rank 1, 3 is lost")),
        (COLUMNS[1], [1, 3], Newest("part of rank 3 from a copy")),
        (COLUMNS[1], [1, 2], Start("the part of rank 1 is lost")),
        (COLUMNS[2], [1, 3], rebuilt),
        (COLUMNS[2], [1, 2], rebuilt),
        (COLUMNS[3], [1, 2], Newest("")),
    ] {
        let cell = Cell::killed("two nodes", tiers);
        let newest = cell.newest().unwrap();
        cell.lose_hosts(&hosts);
        cell.next(&format!("hosts {} and {} lost", hosts[0], hosts[1]), &HOSTS, newest, next);
    }
    if unshare().is_none() {
        return;
    }
    // Each node holds two ranks of the group.
    let cell = Cell { hosts: [0, 0, 1, 1, 2, 2], ..Cell::new("two nodes", COLUMNS[2]) };
    cell.kill_at(KILLED_AT, PACED);
    let newest = cell.newest().unwrap();
    cell.lose_hosts(&[0, 1]);
    let next = Start("the part of rank 0, 1, 2, 3 is lost");
    cell.next("two hosts of two ranks each lost", &cell.hosts, newest, next);
}

#[test]
fn places() {
    for tiers in COLUMNS.into_iter().filter(|_| unshare().is_some()) {
        let cell = Cell::killed("the places of nodes", tiers);
        let newest = cell.newest().unwrap();
        cell.next("hosts in another order", &[3, 4, 5, 0, 1, 2], newest, Newest(""));
    }
}

#[test]
fn shared_directory() {
    for tiers in COLUMNS {
        let cell = Cell::new("the shared directory, on one node", tiers);
        let mut job = cell.job(&HOSTS, &PACED.replace("100ms", "200ms")).spawn().unwrap();
        wait_until(|| {
            assert_eq!(job.try_wait().unwrap(), None, "the job ends too early");
            cell.newest().is_some_and(|newest| newest >= 10)
        });
        // What `umount -l` leaves is an empty directory.
        fs::remove_file(cell.pfs(2)).unwrap();
        fs::create_dir(cell.pfs(2)).unwrap();
        let before = versions(&cell.at("shared/d/solve"));
        std::thread::sleep(Duration::from_secs(3));
        let left = versions(&cell.at("shared/d/solve"));
        fs::remove_dir_all(cell.pfs(2)).unwrap();
        symlink("../shared", cell.pfs(2)).unwrap();
        let output = job.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let run: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
        let failed = run["failed_checkpoints"].as_u64().unwrap();
        cell.tell("not there for 3 s", &format!("{} versions, {failed} failed", run["checkpoints"]));
        assert_eq!((&run["converged"], failed > 0), (&Value::from(true), !cell.is_in_memory()), "{run}\n{said}");
        if !cell.is_in_memory() {
            assert!(has_note(&run, "rank 2: "), "{run}");
            assert!(before.iter().all(|version| left.contains(version)), "{before:?}, {left:?}");
            assert_eq!(run["solution_version"], run["iterations"], "those after it count: {run}");
            alone("verify shared/d", cell.dir.path());
        }
    }
}

/// What a disk makes of bytes that were not synced is drawn by `cargo xtask seeds`.
#[test]
fn power() {
    let next = [Start("no version of this run is left"); 3];
    for (tiers, next) in COLUMNS.into_iter().zip(next.into_iter().chain([Newest("")])) {
        let cell = Cell::killed("all nodes", tiers);
        let newest = cell.newest().unwrap();
        cell.lose_hosts(&HOSTS);
        cell.next("all hosts without power", &HOSTS, newest, next);
    }
}

/// Damages the file of rank 1 in the newest version in each column.
fn damaged(row: &'static str, done: &'static str, damage: fn(&Path)) {
    let [lost, passed] = ["the part of rank 1 is lost", "is passed over for version"].map(Before);
    let [copied, rebuilt] = ["part of rank 1 from a copy on rank 2", "part of rank 1 from its erasure set"].map(Newest);
    for (tiers, next) in COLUMNS.into_iter().zip([lost, copied, rebuilt, passed]) {
        let cell = Cell::killed(row, tiers);
        let newest = cell.newest().unwrap();
        damage(&cell.file());
        cell.next(done, &HOSTS, newest, next);
    }
}

#[test]
fn flipped_bit() {
    damaged("a flipped bit", "a bit of rank 1 flipped", |file| {
        let mut bytes = fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 16;
        fs::write(file, bytes).unwrap();
    });
}

#[test]
fn truncated_file() {
    damaged("a truncated or removed file", "half a file of rank 1", |path| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    });
    damaged("a truncated or removed file", "a file of rank 1 removed", |path| fs::remove_file(path).unwrap());
}

#[test]
fn removed_version() {
    let cell = Cell::new("a version removed under a job", COLUMNS[3]);
    let chained = "--scheme lossy --codec qb --key-every 50 --keep 3 --interval 5it --t-iter 100ms";
    let mut job = cell.job(&HOSTS, chained).spawn().unwrap();
    let folder = cell.at("shared/d/solve");
    wait_until(|| versions(&folder).len() >= 2);
    let removed = versions(&folder)[1].clone();
    wait_until(|| versions(&folder).len() >= 3);
    fs::remove_dir_all(&removed.1).unwrap();
    let lost = versions(&folder).last().unwrap().0;
    wait_until(|| versions(&folder).last().unwrap().0 > lost);
    end(&mut job);
    let newest = cell.newest().unwrap();
    let mut verify = Command::new(env!("CARGO_BIN_EXE_recoup"));
    let output = verify.args(["verify", "shared/d"]).current_dir(cell.dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    cell.tell(&format!("{} removed", removed.0), &format!("{lost} lost, {newest} counts"));
    assert!(output.status.code() == Some(1) && said.contains(&format!("solve/{lost}: ")), "{said}");
    assert!(!said.contains(&format!("solve/{newest}: ")), "{said}");
}

#[test]
fn file_system() {
    for tiers in COLUMNS {
        let both = if tiers == "pfs" { tiers.to_owned() } else { format!("{tiers},pfs --pfs-every 1") };
        let cell = Cell::killed("the file system", &both);
        let newest = cell.newest().unwrap();
        empty(&cell.at("shared"));
        let next = if tiers == "pfs" { Start("") } else { Newest("read from memory") };
        cell.next("an empty one in its place", &HOSTS, newest, next);
    }
}

#[test]
fn hang() {
    for tiers in COLUMNS {
        let cell = Cell::new("a host that hangs", tiers);
        let job = cell.job(&HOSTS, &format!("{PACED} --hang-limit 8s")).spawn().unwrap();
        wait_until(|| cell.newest().is_some_and(|newest| newest >= KILLED_AT));
        kill("-STOP", &ranks(job.id(), &[2]));
        let output = job.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        cell.tell("rank 2 stopped", said.lines().find(|line| line.contains("have waited")).unwrap_or("not named"));
        assert_eq!(output.status.code(), Some(75), "{said}");
        assert!(said.contains("5 of 6 ranks have waited for") && said.contains("for rank 2 on "), "{said}");
        assert!(said.contains("--hang-limit: the job ends with code 75"), "{said}");
        cell.next("started again", &HOSTS, cell.newest().unwrap(), Newest(""));
    }
    // Without a limit it is named after a minute, and continues when the host does.
    let cell = Cell::new("a host that hangs", COLUMNS[3]);
    let job = cell.job(&HOSTS, PACED).spawn().unwrap();
    wait_until(|| cell.newest().is_some_and(|newest| newest >= KILLED_AT));
    let stopped = ranks(job.id(), &[2]);
    kill("-STOP", &stopped);
    wait_until(|| alone("status shared/d", cell.dir.path())["runs"][0]["missing_ranks"] == Value::from(vec![2]));
    kill("-CONT", &stopped);
    let output = job.wait_with_output().unwrap();
    let run: Value = serde_json::from_slice(&output.stdout).unwrap();
    cell.tell("rank 2 stopped and continued", &format!("converges at {}", run["iterations"]));
    assert_eq!(run["relative_residual"], undisturbed()["relative_residual"], "{run}");
    let refused = crate::job(1, "run --poisson3d 8 --dir e --hang-limit 1ms", cell.dir.path());
    assert!(refused.stderr.contains("expected at least 1s"), "{refused}");
}
