//! `cargo xtask cluster`: hosts on this machine, MPI over them, and what is left when one is lost.
//!
//! A host is a set of namespaces: its own name, processes, mounts and `/dev/shm`, and a directory
//! that all hosts share. Killed, it loses its processes and its memory at one instant. All hosts
//! share one network. Jobs are started by the `mpirun` that is found first, and by that of MPICH
//! where `scripts/bootstrap.sh test-all` could have it. It needs root.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tempfile::TempDir;

use crate::{cargo, succeed};

const CASES: &[Case] = &[
    Case {
        name: "a host loses the shared directory",
        tiers: "pfs",
        per_host: 2,
        hosts: &["h1", "h2", "h3"],
        loss: HostLoss::Directory("h2"),
        back: &["h1", "h3", "h4"],
    },
    Case {
        name: "the first host is lost, partner copies",
        tiers: "memory,partner:ring1",
        per_host: 2,
        hosts: &["h1", "h2", "h3"],
        loss: HostLoss::Host("h1"),
        back: &["h2", "h3", "h4"],
    },
    Case {
        name: "the hosts come in another order",
        tiers: "memory",
        per_host: 2,
        hosts: &["h1", "h2", "h3"],
        loss: HostLoss::Job,
        back: &["h3", "h1", "h2"],
    },
    Case {
        name: "a host stands still",
        tiers: "pfs",
        per_host: 2,
        hosts: &["h1", "h2", "h3"],
        loss: HostLoss::Hang("h2"),
        back: &["h1", "h3", "h4"],
    },
    Case {
        name: "two hosts of an erasure set are lost",
        tiers: "memory,rs:4+2",
        per_host: 1,
        hosts: &["h1", "h2", "h3", "h4", "h5", "h6"],
        loss: HostLoss::Hosts("h1", "h4"),
        back: &["h2", "h3", "h5", "h6", "h7", "h8"],
    },
    Case {
        name: "a host of a set for two hosts is lost",
        tiers: "memory,rs:4+3",
        per_host: 3,
        hosts: &["h1", "h2"],
        loss: HostLoss::Host("h1"),
        back: &["h2", "h3"],
    },
    Case {
        name: "an erasure set cannot stand a lost host",
        tiers: "memory,rs:4+2",
        per_host: 3,
        hosts: &["h1", "h2"],
        loss: HostLoss::Refused("rs:4+3 stands it"),
        back: &[],
    },
];

/// A solve that takes some seconds, and saves often.
const SOLVE: &str = "run --poisson3d 24 --operator stencil --method cg --rtol 1e-8 --t-iter 100ms --threads 1 \
                     --scheme traditional --interval 3it --mpi --json";

/// Longest wait for versions, and for the end of a job.
const PATIENCE: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(20);

/// One loss, and the hosts before and after it.
struct Case {
    name: &'static str,
    tiers: &'static str,
    per_host: usize,
    hosts: &'static [&'static str],
    loss: HostLoss,
    back: &'static [&'static str],
}

#[derive(Clone, Copy)]
enum HostLoss {
    /// The host unmounts the shared directory.
    Directory(&'static str),
    Host(&'static str),
    Hosts(&'static str, &'static str),
    /// All ranks of the host are stopped.
    Hang(&'static str),
    /// The job alone is killed.
    Job,
    /// The job does not start, with these words.
    Refused(&'static str),
}

/// Runs all cases, and prints a line for each.
///
/// # Errors
/// When a case ends otherwise than it should, or hosts cannot be made.
pub(crate) fn run(root: &Path) -> Result<()> {
    succeed(cargo(root).args(["build", "--locked", "-p", "recoup-cli"]))?;
    let program = root.join("target/debug/recoup");
    let mut wrong = 0;
    let mpich = Launcher::Hydra(root.join(".venv-mpich/bin/mpirun"));
    for launcher in [Launcher::First, mpich].into_iter().filter(Launcher::is_there) {
        println!("{}:", launcher.version()?);
        for case in CASES {
            let found = try_case(case, &program, &launcher).unwrap_or_else(|error| format!("WRONG: {error:#}"));
            wrong += usize::from(found.starts_with("WRONG"));
            println!("  {:43} {:22} {found}", case.name, case.tiers);
        }
    }
    ensure!(wrong == 0, "{wrong} cases are wrong");
    Ok(())
}

/// The program that starts jobs.
enum Launcher {
    /// The `mpirun` that is found first: Open MPI's.
    First,
    /// The one of MPICH.
    Hydra(PathBuf),
}

impl Launcher {
    fn path(&self) -> &Path {
        if let Self::Hydra(path) = self { path } else { Path::new("mpirun") }
    }

    fn is_there(&self) -> bool {
        matches!(self, Self::First) || self.path().exists()
    }

    /// The first two lines of what it says of itself.
    fn version(&self) -> Result<String> {
        let output = Command::new(self.path()).arg("--version").output().context("mpirun")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let words = text.lines().take(2).flat_map(str::split_whitespace).collect::<Vec<_>>();
        Ok(words.join(" "))
    }

    /// A job of `per_host` ranks on each of these hosts, whose daemons `agent` starts.
    fn job(&self, hosts: &[&str], per_host: usize, agent: &Path) -> Command {
        let slots: Vec<String> = hosts.iter().map(|host| format!("{host}:{per_host}")).collect();
        let mut job = Command::new(self.path());
        match self {
            Self::First => {
                job.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
                job.args(["--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "plm_rsh_agent"]).arg(agent);
                job.args(["--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo"]);
                job.args(["--oversubscribe", "--host", &slots.join(",")]);
            }
            Self::Hydra(_) => {
                // UCX would take hosts of one machine for one host, and use their shared memory.
                job.env("UCX_TLS", "tcp,self");
                job.args(["-launcher", "rsh", "-launcher-exec"]).arg(agent);
                job.args(["-iface", "lo", "-hosts", &slots.join(",")]);
            }
        }
        job
    }
}

/// Returns what was found, in words.
fn try_case(case: &Case, program: &Path, launcher: &Launcher) -> Result<String> {
    let mut cluster = Cluster::new(program)?;
    let mut names = [case.hosts, case.back].concat();
    names.sort_unstable();
    names.dedup();
    names.iter().try_for_each(|name| cluster.start(name))?;
    let first = cluster.job(case, case.hosts, launcher).spawn()?;
    if let HostLoss::Refused(words) = case.loss {
        let ended = ended(first)?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.code() == Some(2) && said.contains(words), "{}: {said}", ended.status);
        return Ok(format!("refused: {words}"));
    }
    cluster.await_versions(case)?;
    let end = cluster.lose(case, first)?;
    let code = end.status;
    if let HostLoss::Hang(host) = case.loss {
        let said = String::from_utf8_lossy(&end.stderr);
        let names_it = said.contains(&format!("for ranks 2, 3 on {host}\n"));
        ensure!(code.code() == Some(75) && names_it, "{code}: {said}");
    }
    if let HostLoss::Directory(_) = case.loss {
        let left = report(end)?;
        ensure!(left["converged"] == true && left["failed_checkpoints"].as_u64() > Some(0), "{left}");
        let verified = cluster.on("h1", &format!("{} verify {}", program.display(), cluster.dir("d").display()))?;
        ensure!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stdout));
    }
    let again = report(ended(cluster.job(case, case.back, launcher).spawn()?)?)?;
    let resumed_from = again["resumed_from"].as_u64().filter(|&version| version > 0);
    let Some(version) = resumed_from.filter(|_| again["converged"] == true) else { bail!("{again}") };
    Ok(format!("{code}; continues from version {version}"))
}

/// Some hosts, which end with it.
struct Cluster {
    program: PathBuf,
    place: TempDir,
    hosts: Vec<NamespaceHost>,
}

struct NamespaceHost {
    name: &'static str,
    /// Its process outside; all of the host's processes end with it.
    keeper: Child,
}

impl Drop for NamespaceHost {
    fn drop(&mut self) {
        self.keeper.kill().ok();
        self.keeper.wait().ok();
    }
}

impl Cluster {
    fn new(program: &Path) -> Result<Self> {
        let place = tempfile::tempdir()?;
        for name in ["shared", "mount", "keepers"] {
            fs::create_dir(place.path().join(name))?;
        }
        let cluster = Self { program: program.to_owned(), place, hosts: Vec::new() };
        // What mpirun starts its daemons with on another host.
        let agent = cluster.agent();
        let enter = "#!/bin/sh\nspaces=/proc/$(cat \"${0%/*}/keepers/$1\")/ns\nshift\n\
                     exec nsenter --mount=$spaces/mnt --uts=$spaces/uts --pid=$spaces/pid_for_children sh -c \"$*\"\n";
        fs::write(&agent, enter)?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
        Ok(cluster)
    }

    fn agent(&self) -> PathBuf {
        self.place.path().join("agent")
    }

    /// The path of a directory below the one that hosts share, as they see it.
    fn dir(&self, name: &str) -> PathBuf {
        self.place.path().join("mount").join(name)
    }

    fn start(&mut self, name: &'static str) -> Result<()> {
        let place = self.place.path().display();
        let script = format!(
            "hostname {name} && mount -t proc proc /proc && mount -t tmpfs {name} /dev/shm && \
             mount --bind {place}/shared {place}/mount && touch {place}/keepers/{name}-is-up && exec sleep infinity"
        );
        let spaces = ["--mount", "--uts", "--pid", "--fork", "--kill-child", "sh", "-c"];
        let keeper = Command::new("unshare").args(spaces).arg(script).spawn().context("unshare")?;
        fs::write(self.place.path().join("keepers").join(name), keeper.id().to_string())?;
        self.hosts.push(NamespaceHost { name, keeper });
        let is_up = self.place.path().join("keepers").join(format!("{name}-is-up"));
        wait_until(&format!("host {name}: is this root?"), || is_up.exists())
    }

    fn host(&self, name: &str) -> Result<&NamespaceHost> {
        self.hosts.iter().find(|host| host.name == name).with_context(|| format!("no host {name}"))
    }

    /// Runs a command on a host to its end.
    fn on(&self, host: &str, command: &str) -> Result<Output> {
        Command::new(self.agent()).args([host, command]).output().context("nsenter")
    }

    /// The job of a case on these hosts.
    fn job(&self, case: &Case, hosts: &[&str], launcher: &Launcher) -> Command {
        let mut job = launcher.job(hosts, case.per_host, &self.agent());
        job.arg(&self.program).args(SOLVE.split_whitespace());
        job.args(["--tiers", case.tiers, "--dir"]).arg(self.dir("d"));
        if matches!(case.loss, HostLoss::Hang(_)) {
            job.args(["--hang-limit", "6s"]);
        }
        job.current_dir(self.place.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        job
    }

    /// Waits until two versions were saved.
    fn await_versions(&self, case: &Case) -> Result<()> {
        let last = self.host(case.hosts[case.hosts.len() - 1])?.keeper.id();
        let memory = Path::new("/proc").join(last.to_string()).join("root/dev/shm");
        let shared = self.place.path().join("shared/d");
        let place = if case.tiers == "pfs" { shared } else { memory };
        wait_until("two versions", || versions(&place) >= 2)
    }

    /// Loses what the case loses, and waits for the end of the job.
    fn lose(&mut self, case: &Case, mut job: Child) -> Result<Output> {
        match case.loss {
            HostLoss::Directory(host) => {
                let mount = self.dir("");
                ensure!(self.on(host, &format!("umount -l {}", mount.display()))?.status.success(), "umount");
            }
            HostLoss::Hang(host) => {
                ensure!(self.on(host, "pkill -STOP -x recoup")?.status.success(), "pkill");
            }
            HostLoss::Host(lost) => self.hosts.retain(|host| host.name != lost),
            HostLoss::Hosts(one, other) => self.hosts.retain(|host| host.name != one && host.name != other),
            HostLoss::Job | HostLoss::Refused(_) => job.kill()?,
        }
        let end = ended(job)?;
        // Processes of the job end a moment after mpirun does.
        wait_until("the end of all ranks", || self.hosts.iter().all(|host| self.is_idle(host.name)))?;
        Ok(end)
    }

    fn is_idle(&self, host: &str) -> bool {
        self.on(host, "! grep -lsz '^run$' /proc/[0-9]*/cmdline").is_ok_and(|looked| looked.status.success())
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

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..PATIENCE.as_millis() / NAP.as_millis() {
        if is_so() {
            return Ok(());
        }
        sleep(NAP);
    }
    bail!("waited {} s for {what}", PATIENCE.as_secs())
}
